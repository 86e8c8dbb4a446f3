"""Identifiers of requests."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

from ldp_budget_service.request_limits import identifier


def test_identifiers_of_threads_are_whole_and_all_different() -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: identifier([]), range(3000)))
    assert len(set(found)) == 3000
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in found)


def test_identifier_of_the_caller_is_kept_if_it_is_no_name() -> None:
    sent = b"0123456789abcdef-0123"
    assert identifier([(b"x-request-id", sent)]) == sent.decode()
    assert identifier([(b"x-request-id", b"alice")]) != "alice"
