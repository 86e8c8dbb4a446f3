"""`python -m ldp_budget_cli` is the command `ldp-budget`."""

from . import main

main()
