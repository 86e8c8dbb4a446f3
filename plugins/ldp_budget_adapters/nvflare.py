"""`BudgetFilter`: a filter of an NVFlare site's own `local/privacy.json`, with a durable budget.

    "task_result_filters": [{"path": "ldp_budget_adapters.nvflare.BudgetFilter", "direction": "out",
        "args": {"ledger": "/var/lib/site/budget.db", "user": "site-1", "norm_bound": "1", "epsilon": "1", "delta": "1e-6"}}]

What leaves the site is a weight difference with the names and shapes of the arrays that the server sent; see `site_release`.
NVFlare answers in ways that no filter sees: with a return code if code of the job raises an error, with what a filter
*of the job* made of the result after the site's filters, with messages that components of the job send (metrics), and with
replies to messages and to an administrator's `show_stats` and `show_errors`. So the first filter of a process also takes these
ways out of the client: `_process_task`, whose answer it makes from its own release alone; messages, of which only the runner's
own pass, made afresh; replies; and the properties of a context, which go with every message. If NVFlare
has no such methods, the job does not start. If one scope of the site has the filter, nothing leaves from a scope without it.
And it takes the process off `error_log.txt`, which NVFlare uploads after a job; `log.txt` has the same lines.

Python code of a job runs in the process of the filter and can replace it, or open a connection. The filter holds for jobs
whose code the site has reviewed, and not for code that means to get around it.
"""

from __future__ import annotations

import copy
import functools
import logging
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import FilterKey, FLContextKey, ReservedKey, ReservedTopic, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import ReservedHeaderKey, Shareable, make_reply
from nvflare.apis.utils.task_utils import contains_lazy_download_ref, materialize_lazy_download_refs
from nvflare.private.fed.client.client_run_manager import ClientRunManager
from nvflare.private.fed.client.client_runner import ClientRunner
from nvflare.widgets.info_collector import InfoCollector

from .site_release import SiteRelease

if TYPE_CHECKING:
    from .site_release import Arrays, Shapes

_OWN_TOPICS = {ReservedTopic.SYNC_RUNNER, ReservedTopic.JOB_HEART_BEAT, ReservedTopic.TASK_CHECK}
"""The messages of the runner itself, which have no content but the id of a task."""
_TASKS: set[str] = set()
"""The ids of the tasks of this process, which the server gave."""
_OWN_PROPERTIES = {
    *(ReservedKey.IDENTITY_NAME, ReservedKey.RUN_NUM, ReservedKey.CLIENT_NAME, ReservedKey.FQSN, ReservedKey.IS_LEAF),
    FLContextKey.CURRENT_JOB_ID,
}
"""The properties of a context that go with every message; a job may add others."""


class BudgetFilter(Filter):  # type: ignore[misc]
    """A result filter that charges the site's ledger for each task, and lets one randomized weight difference pass.

    Parameters:
        ledger: as for `SiteRelease`, and so are the others.
    """

    def __init__(self, ledger: str, user: str, **terms: Any) -> None:
        super().__init__()
        self._release = SiteRelease(ledger, user, **terms)
        self._task = threading.local()
        _guard()

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Return the answer to the current task: noise on its update, or an error that says nothing."""
        task = getattr(self._task, "now", None)
        if task is None:  # not within a task of the guarded runner
            return _refusal()
        if task.released is None:
            task.released = self._released(shareable, task.shapes, fl_ctx)
        return _answer(task.released)

    def answer(self, task: Any, fl_ctx: FLContext, inner: Any) -> Shareable:
        """Run a task, and return the answer that this filter released for it, whatever became of it later."""
        if contains_lazy_download_ref(task.data):
            task.data = materialize_lazy_download_refs(task.data, fl_ctx.get_engine().get_cell())
        self._task.now = now = _Task(_shapes(task.data))
        try:
            inner(task, fl_ctx)
        except BaseException as error:  # also an exit: an error of the job is not to be told from an update
            self.log_warning(fl_ctx, f"the job returned no update: {error!r:.300}")
        finally:
            self._task.now = None
        if now.released is None:  # an error of the job's code, for which NVFlare asks no filter
            now.released = self._released(None, now.shapes, fl_ctx)
        return _answer(now.released)

    def _released(self, shareable: Shareable | None, shapes: Shapes, fl_ctx: FLContext) -> Arrays:
        if not shapes:
            self.log_warning(fl_ctx, "the server sent no arrays, so no result of this task leaves")
            return {}
        update = None if shareable is None else _update(shareable)
        return self._release.release(update, shapes, lambda line: self.log_warning(fl_ctx, line)) or {}


class _Task:
    """A task that runs: the shapes of the arrays received, and what was released for it; an empty mapping: nothing."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.released: Arrays | None = None


def _refusal() -> Shareable:
    return make_reply(ReturnCode.TASK_RESULT_FILTER_ERROR)


def _answer(released: Arrays) -> Shareable:
    """Return a fresh answer without any header, meta or name of the job's choice."""
    if not released:
        return _refusal()
    data = {name: array.copy() for name, array in released.items()}
    return DXO(DataKind.WEIGHT_DIFF, data=data).update_shareable(make_reply(ReturnCode.OK))


def _update(shareable: Shareable) -> object:
    """Return the arrays of a result if it is a weight difference, else None."""
    try:
        dxo = from_shareable(shareable)
        fits = shareable.get_return_code() == ReturnCode.OK and dxo.data_kind == DataKind.WEIGHT_DIFF
    except Exception:  # code of the job may return objects that raise anything
        return None
    return dxo.data if fits else None


def _shapes(data: Any) -> Shapes:
    """Return the names and shapes of the weights that the server sent; empty if it sent none."""
    try:
        dxo = from_shareable(data)
    except ValueError:
        return {}
    if dxo.data_kind not in (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF):
        return {}
    return {str(name): np.shape(array) for name, array in dxo.data.items()}


# -- the ways out of a client ---------------------------------------------------------------------------------


def _filter_of(fl_ctx: FLContext) -> BudgetFilter | None:
    """Return the filter of the job's scope."""
    scope = fl_ctx.get_prop(FLContextKey.SCOPE_OBJECT)
    filters = [] if scope is None else scope.task_result_filters[FilterKey.OUT]
    return next((each for each in filters if isinstance(each, BudgetFilter)), None)


def _guarded_task(own: Any) -> Any:
    @functools.wraps(own)
    def process(self: Any, task: Any, fl_ctx: FLContext) -> Shareable:
        _TASKS.add(task.task_id)
        cookies = copy.deepcopy(task.data.get_cookie_jar())
        found = _filter_of(fl_ctx)
        if found is None:  # a job would choose this scope
            self.log_error(fl_ctx, "the scope of this job has no BudgetFilter, so nothing leaves. Give it one.")
            answer = _refusal()
        else:
            answer = found.answer(task, fl_ctx, functools.partial(own, self))
        if cookies:
            answer.set_cookie_jar(cookies)  # the server's own, which it gets back
        answer.set_header(ReservedHeaderKey.TASK_NAME, task.name)
        answer.set_header(ReservedKey.TASK_ID, task.task_id)
        return answer

    return process


def _guarded_message(own: Any) -> Any:
    @functools.wraps(own)
    def send(self: Any, *args: Any, **options: Any) -> dict[str, Any]:
        topic = options.get("topic", args[1] if len(args) > 1 else None)
        if own.__name__ == "send_aux_request" and topic in _OWN_TOPICS and "request" in options:
            return dict(own(self, *args, **{**options, "request": _own_message(options["request"])}))
        self.logger.warning("a message of the job was not sent: only weight differences leave this site")
        return {}

    return send


def _own_message(given: Any) -> Shareable:
    """Return a message of the runner with nothing of the job's choice."""
    made, task = Shareable(), given.get_header(ReservedKey.TASK_ID)
    if task in _TASKS:
        made.set_header(ReservedKey.TASK_ID, task)
    return made


def _guarded_reply(own: Any) -> Any:
    @functools.wraps(own)
    def dispatch(self: Any, *args: Any, **options: Any) -> Shareable:
        own(self, *args, **options)  # its reply, also an error, may be an answer of the job
        return make_reply(ReturnCode.OK)

    return dispatch


def _guarded_collection(own: Any) -> Any:
    @functools.wraps(own)
    def collection(self: Any) -> dict[str, Any]:
        return {}

    return collection


def _guarded_properties(own: Any) -> Any:
    @functools.wraps(own)
    def properties(self: Any) -> dict[str, Any]:
        return {key: value for key, value in own(self).items() if key in _OWN_PROPERTIES}

    return properties


_GUARDS = (
    (ClientRunner, "_process_task", _guarded_task),
    (ClientRunManager, "send_aux_request", _guarded_message),
    (ClientRunManager, "multicast_aux_requests", _guarded_message),
    (ClientRunManager, "stream_objects", _guarded_message),
    (ClientRunManager, "dispatch", _guarded_reply),
    (InfoCollector, "get_run_stats", _guarded_collection),
    (InfoCollector, "get_errors", _guarded_collection),
    (FLContext, "get_all_public_props", _guarded_properties),
)


def _guard() -> None:
    """Take the ways out of the client's runner, once in a process. Raises RuntimeError if NVFlare has no such methods."""
    for kind, name, guarded in _GUARDS:
        own = getattr(kind, name, None)
        if own is None:
            raise RuntimeError(f"this NVFlare has no {kind.__name__}.{name}. Install a version that was tried: 2.9.")
        if not hasattr(own, "guarded"):
            setattr(kind, name, guarded(own))
            getattr(kind, name).guarded = True
    for handler in list(logging.getLogger().handlers):
        if str(getattr(handler, "baseFilename", "")).endswith("error_log.txt"):
            logging.getLogger().removeHandler(handler)
