"""The entry point of `python -m ldp_budget_cli`, which is the command `ldp-budget`."""

if __name__ == "__main__":  # the service's worker processes import this module, but run nothing of it
    from . import main

    main()
