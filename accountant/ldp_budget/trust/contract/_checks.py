"""The list of checks, and how they are run where no test framework does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import _clients as clients
from . import _company as company
from . import _forms as forms
from . import _inputs as inputs
from . import _losses as losses
from . import _memos as memos
from . import _parameters as parameters
from . import _programs as programs
from . import _servers as servers
from . import _wholes as wholes
from ._outcome import Broken, NotChecked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...authoring.base import Mechanism

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

CHECKS: dict[str, Callable[[Mechanism], None]] = {
    "parameters_round_trip": parameters.parameters_round_trip,
    "bad_parameters_are_refused": parameters.bad_parameters_are_refused,
    "fingerprint_is_stable": parameters.fingerprint_is_stable,
    "fingerprint_is_the_same_elsewhere": parameters.fingerprint_is_the_same_elsewhere,
    "calibration_is_safe": losses.calibration_is_safe,
    "guarantee_is_exact": losses.guarantee_is_exact,
    "audit_finds_no_more": losses.audit_finds_no_more,
    "memo_is_kept": memos.memo_is_kept,
    "many_reports_stay_within_the_cap": memos.many_reports_stay_within_the_cap,
    "client_matches_channel": clients.client_matches_channel,
    "reports_say_no_more_than_described": wholes.reports_say_no_more_than_described,
    "reports_have_one_form": forms.reports_have_one_form,
    "reports_lie_on_their_grid": forms.reports_lie_on_their_grid,
    "users_are_drawn_alone_as_together": company.users_are_drawn_alone_as_together,
    "noise_is_used_once": company.noise_is_used_once,
    "program_draws_what_the_client_draws": programs.program_draws_what_the_client_draws,
    "program_law_is_the_channel": programs.program_law_is_the_channel,
    "seed_decides": clients.seed_decides,
    "bad_input_is_refused": inputs.bad_input_is_refused,
    "unknown_values_do_not_leak": inputs.unknown_values_do_not_leak,
    "inputs_are_left_alone": inputs.inputs_are_left_alone,
    "no_users_no_reports": inputs.no_users_no_reports,
    "estimator_is_unbiased": servers.estimator_is_unbiased,
    "aggregates_merge": servers.aggregates_merge,
    "reports_survive_the_file": servers.reports_survive_the_file,
}
"""Every check by its name, in the order in which they are worth reading."""


@dataclass(frozen=True)
class Result:
    """What a check came to: "passed", "failed" or "skipped", and where it did not pass, why.

    `applies`: whether it is asked of such a mechanism; where it is not, it is skipped, and nothing is open.
    """

    check: str
    verdict: str
    why: str = ""
    applies: bool = True

    def to_json(self) -> dict[str, str | bool]:
        """A JSON object of the fields."""
        return dict(vars(self))


def run(check: str, mechanism: Mechanism) -> Result:
    """One check. Whatever else it meets with than `NotChecked` is a failure of the mechanism."""
    try:
        CHECKS[check](mechanism)
    except NotChecked as reason:
        return Result(check, SKIPPED, str(reason), applies=reason.applies)
    except MemoryError:
        return Result(check, SKIPPED, "its reports do not fit into memory")
    except Broken as reason:
        return Result(check, FAILED, str(reason))
    except Exception as error:
        return Result(check, FAILED, f"{type(error).__name__}: {error}")
    return Result(check, PASSED)


def run_all(mechanism: Mechanism, leave_out: Iterable[str] = ()) -> list[Result]:
    """Every check but those named."""
    left_out = set(leave_out)
    return [run(check, mechanism) for check in CHECKS if check not in left_out]
