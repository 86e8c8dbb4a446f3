"""`ldp-budget` in the process of the test, on a ledger of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result


class CommandLine:
    """Run `ldp-budget` in this process, on a ledger of its own."""

    def __init__(self, ledger: Path | str) -> None:
        self.ledger = ledger
        self._runner = CliRunner(env={"LDP_BUDGET_LEDGER": str(ledger)})

    def __call__(self, *arguments: object, code: int = 0, **options: Any) -> Result:
        """Run a command and check its exit code. No command may end in a traceback."""
        from ldp_budget_cli.app import cli

        words = [str(argument) for argument in arguments]
        result = self._runner.invoke(cli, words, prog_name="ldp-budget", **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    def json(self, *arguments: object, code: int = 0, **options: Any) -> Any:
        """Return the output of a command with `--json`: one JSON value and nothing else."""
        return json.loads(self(*arguments, "--json", code=code, **options).stdout)

    def error(self, *arguments: object, code: int = 1, **options: Any) -> str:
        """Return the message of a command that must fail; stdout must be empty."""
        result = self(*arguments, code=code, **options)
        assert result.stdout == ""
        return result.stderr
