"""The entry point of `python -m ldp_budget_cli`, which is the command `ldp-budget`."""

from . import main

main()
