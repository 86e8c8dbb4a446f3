"""The commands by group, each with its module and one line of help."""

from __future__ import annotations

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("demo", "Walk through one real survey, from the choice of ε to the estimate."),
        "help": ("help", "Show the help of a command."),
    },
    "Design": {
        "mechanisms": ("calculations", "List the mechanisms, or describe one."),
        "compare": ("calculations", "Rank the mechanisms by predicted error."),
        "calibrate": ("calculations", "Find the parameters that meet a privacy target."),
        "plan": ("calculations", "Find the ε that each of many reports may cost."),
        "compose": ("calculations", "Show the total cost of many reports, under every rule."),
        "audit": ("plugin", "Check that a mechanism keeps its guarantee."),
        "check": ("check", "Check a certificate, a public definition or a published survey."),
    },
    "Policies": {
        "policy": ("policy", "Set, show, list and simulate the limits of users."),
    },
    "Surveys": {
        "collection": ("collection", "Define the set-up that clients and server share."),
        "survey": ("survey", "Define a survey of several questions that are charged as one."),
        "randomize": ("randomize", "Randomize a column of answers into private reports."),
        "estimate": ("estimate", "Estimate counts or a mean from reports."),
        "contributions": ("contributions", "Write a table of reports for R, Stata, SPSS and statsmodels."),
        "regress": ("regress", "Regress a hidden answer on public columns."),
        "report": ("report", "Write one page about a survey, for people who decide."),
        "inbox": ("collection", "Take the reports that devices send one by one, and seal them."),
        "publish": ("publish", "Publish a survey so that its respondents can check it."),
        "prove": ("publish", "Print the proof that a respondent needs to check her part."),
        "invite": ("access", "Print a personal survey link for each respondent."),
    },
    "Spend": {
        "spend": ("spend", "Charge a user, or refuse with exit code 3."),
        "spend-many": ("spend", "Charge every user of a file."),
        "quote": ("spend", "Show the cost of a report and if it fits; change nothing."),
        "reserve": ("spend", "Charge a user now, and commit or void the charge later."),
        "commit": ("spend", "Keep the charge of a reservation."),
        "void": ("spend", "Give back the charge of a reservation."),
    },
    "Users": {
        "balance": ("balance", "Show what a user has spent and has left."),
        "statement": ("statement", "Write one page about a user, for an access request or a court."),
        "history": ("balance", "Show every charge of a user."),
        "reservations": ("balance", "Show the open reservations."),
        "erase": ("balance", "Erase the link between a user and the account."),
    },
    "Operate": {
        "serve": ("serve", "Serve the ledger over HTTP."),
        "api-key": ("access", "Create, list, rotate and revoke the API keys of a service."),
        "ledger": ("ledger", "Create, verify, export, back up and move a ledger."),
    },
    "Extend": {
        "plugin": ("plugin", "Start a mechanism of your own, and certify it."),
    },
}

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
"""Each command with the module that has it, and its line of help."""

MECHANISM_MODULES = ("calculations", "collection", "plugin", "policy", "spend")
"""The modules of the commands that take MECHANISM and its options."""
