"""Regression of hidden answers on public attributes, and of public numbers on hidden answers."""

from .analysis import Regression as Regression
from .analysis import regress as regress
