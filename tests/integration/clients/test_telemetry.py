"""The hooks of telemetry libraries, in front of the real ones in Chromium: what reaches a sink on another origin."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import ldp_budget
from chromium import devices
from client_cases import CASES
from ldp_budget.registry.collections import Collection
from sdk_pages import Site, bundled, served

PLANS = ["no", "topaz", "zirconium-plan"]
RAW = re.compile("topaz|zirconium")
SDKS = ["posthog", "snowplow", "openfeature", "otel"]


def definition(*answers: str, epsilon: float = 1, name: str = "plan") -> dict[str, Any]:
    mechanism = ldp_budget.mechanism("random-substitution")(epsilon=epsilon, domain_size=len(answers))
    return Collection(name, mechanism, answers).definition()


PLAN = definition("none", *PLANS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served(bundled(tmp_path_factory.mktemp("sdks") / "sdks", "telemetry.js")) as made:
        yield made


@pytest.fixture
def device(browser: Any, site: Site) -> Iterator[Any]:
    """Make pages of new devices, each with a library and its hook."""
    with devices(browser, 60_000) as made:

        def opened(which: str, query: str = "", **options: Any) -> Any:
            page = made()
            page.goto(f"{site.page}{query}")
            page.wait_for_function("window.ready")
            site.clear()
            page.evaluate(
                "(options) => start(options)", {"which": which, "sink": site.sink, "definition": PLAN, **options}
            )
            return page

        yield opened


def days(page: Any, number: int, each: int, plans: list[str], extra: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("([n, e, p, x]) => days(n, e, p, x)", [number, each, plans, extra])
    return found


def reports(site: Site) -> list[dict[str, Any]]:
    """The reports at the sink, each as a dictionary of its members, whatever the library wraps around them."""
    found = []
    for body in site.events():
        found += list(_reports(body))
    return found


def _reports(node: Any) -> Iterator[dict[str, Any]]:
    """Dictionaries with a digest, and OpenTelemetry's lists of keys and values."""
    if isinstance(node, dict) and {"digest", "report", "metric"} <= node.keys():
        yield {name: node[name] for name in ("metric", "period", "digest", "key", "report")}
    elif isinstance(node, list) and {"digest", "report"} <= {
        each.get("key") for each in node if isinstance(each, dict)
    }:
        yield {each["key"]: each["value"]["stringValue"] for each in node}
    elif isinstance(node, str) and '"digest"' in node:
        yield from _reports(json.loads(node))
    elif isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            yield from _reports(each)


def wait_for_reports(page: Any, site: Site, count: int) -> list[dict[str, Any]]:
    """The libraries send when they like; a minute is plenty."""
    for _ in range(300):
        if len(reports(site)) >= count:
            break
        page.wait_for_timeout(200)
    before = -1
    while before < (before := len(site.sent)):  # no library waits so long before it sends
        page.wait_for_timeout(500)
    return reports(site)


def raw(site: Site) -> list[str]:
    """Where an answer is readable at the sink."""
    text = "\n".join(each.readable for each in site.sent)
    return [text[max(0, found.start() - 80) : found.end()] for found in RAW.finditer(text)][:5]


def sent_events(site: Site) -> Counter[tuple[str, int]]:
    """The events at the sink, each with the length of all that is sent of it."""
    found: Counter[tuple[str, int]] = Counter()
    for event in _events(site.events()):
        name = next((event[member] for member in ("event", "eventName", "name", "e") if event.get(member)), "flag")
        found[name, len(json.dumps(event))] += 1
    return found


def _events(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, list):
        for each in node:
            yield from _events(each)
    elif isinstance(node, dict):
        inner = [node[name] for name in _WRAPPERS if isinstance(node.get(name), list)]
        if not inner:
            yield node
        for each in inner:
            yield from _events(each)


_WRAPPERS = ["batch", "data", "resourceSpans", "scopeSpans", "spans", "resourceLogs", "scopeLogs", "logRecords"]


def use(page: Any) -> None:
    """Click links and buttons, fill in a form: what libraries listen to."""
    page.click("#topaz")
    page.click("#buy")
    page.fill("#field", "zirconium")
    page.select_option("#list", "topaz")
    page.click("#send")
    page.evaluate("history.pushState({}, '', '?plan=zirconium')")
    page.evaluate("history.pushState({}, '', '/plans/topaz')")


QUERY = "?plan=topaz&utm_source=topaz&gclid=topaz#zirconium"


@pytest.mark.parametrize("which", SDKS)
@pytest.mark.parametrize("count", [150, pytest.param(16_700, marks=pytest.mark.exhaustive)], ids=["few", "many"])
def test_events_of_a_metric_leave_as_one_report_a_day_and_nothing_else(
    device: Any, site: Site, which: str, count: int
) -> None:
    page = device(which, QUERY, lifetime="4")
    use(page)
    found = days(page, 6, count, ["topaz", "zirconium-plan"])
    arrived = wait_for_reports(page, site, 4)
    assert raw(site) == []
    assert sum(each.readable.count("step") > 0 for each in site.sent) or which == "openfeature", "no other events"
    assert [each["period"] for each in arrived] == [f"2026-11-0{day}" for day in (2, 3, 4, 5)]
    assert {each["digest"] for each in arrived} == {PLAN["digest"]}
    assert len({each["key"] for each in arrived}) == 4
    assert (found["balance"]["lifetime"]["left"], found["refused"]) == ("0", ["plan"])
    assert not RAW.search(page.evaluate("stored()"))
    page.goto("about:blank")  # beacons
    page.wait_for_timeout(500)
    assert raw(site) == []


@pytest.mark.parametrize("which", [each for each in SDKS if each != "openfeature"])
def test_library_without_its_hook_sends_the_answers(device: Any, site: Site, which: str) -> None:
    page = device(which, QUERY, bare=True)
    use(page)
    days(page, 1, 3, ["topaz"])
    wait_for_reports(page, site, 0)
    assert len(raw(site)) == 5
    if which == "posthog":  # what is left, in Base64
        site.sent.clear()
        page.evaluate("posthog.capture('last', { plan: 'topaz' })")
        page.goto("about:blank")
        page.wait_for_timeout(500)
        assert raw(site)


@pytest.mark.parametrize(
    "which",
    ["posthog", "snowplow", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("openfeature", "otel"))],
)
def test_device_with_events_sends_as_much_as_one_without(device: Any, site: Site, which: str) -> None:
    sent, kept = [], set()
    for plans in ([], ["no"], ["zirconium-plan", "topaz", "no"]):
        page = device(which, f"?{plans}")
        use(page)
        days(page, 3, 40 * len(plans), plans)
        wait_for_reports(page, site, 3)
        sent.append(sent_events(site))
        kept.add(re.sub(r'"id":"[0-9a-f]{32}"', "", page.evaluate("stored()")))
        assert len(reports(site)) == 3
        page.close()
    assert sent[0] == sent[1] == sent[2]
    assert len(kept) == 1, "what the device keeps"


def test_event_neither_begins_a_day_nor_sends_a_report(device: Any, site: Site) -> None:
    page = device("openfeature", given={"still": True})
    page.evaluate("pass(1)")
    for plan in ("topaz", "no"):
        page.evaluate("(plan) => choose(plan)", plan)
    page.wait_for_timeout(1500)
    assert site.sent == []
    page.evaluate("turn()")
    assert [each["period"] for each in wait_for_reports(page, site, 1)] == ["2026-11-02"]
    page.evaluate("turn(1)")
    assert [each["period"] for each in wait_for_reports(page, site, 2)] == ["2026-11-02", "2026-11-03"]


def test_day_that_ends_while_a_page_is_open_is_reported_without_an_event(device: Any, site: Site) -> None:
    page = device("openfeature")
    for day in (2, 3):
        page.evaluate("pass(1)")
        assert wait_for_reports(page, site, day - 1)[-1]["period"] == f"2026-11-0{day}"


@pytest.mark.parametrize(
    ("which", "given"),
    [("posthog", {"persistence": "localStorage"}), ("snowplow", {"stateStorageStrategy": "localStorage"})],
)
def test_settings_of_the_guide_leave_no_cookie_that_counts_events(
    device: Any, site: Site, which: str, given: dict[str, Any]
) -> None:
    page = device(which, QUERY, given=given)
    days(page, 1, 5, ["topaz"])
    assert page.evaluate("document.cookie") == ""
    assert wait_for_reports(page, site, 1)


# -- stripped events -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [each for each in SDKS if each != "openfeature"])
def test_stripped_event_keeps_what_is_allowed_and_nothing_of_its_answer(device: Any, site: Site, which: str) -> None:
    lengths = []
    for plan in ("no", "zirconium-plan"):
        page = device(which, f"?{plan}", original="strip")
        days(page, 2, 20, [plan], 0)
        wait_for_reports(page, site, 2)
        stripped = [each for each in _events(site.events()) if "pricing" in json.dumps(each)]
        assert len(stripped) == 40
        lengths.append({len(json.dumps(each)) for each in stripped})
        assert not raw(site)
        page.close()
    assert lengths[0] == lengths[1]
    assert len(lengths[0]) <= 2, "of OpenTelemetry: spans and logs"


def test_snowplow_with_base64_sends_no_answer(device: Any, site: Site) -> None:
    page = device("snowplow", QUERY, original="strip", given={"base64": True})
    days(page, 2, 20, ["topaz"])
    wait_for_reports(page, site, 0)
    text = "\n".join(each.readable for each in site.sent)
    assert text.count("pricing") == 40
    assert text.count('"period":"2026-11-02"') == 1
    assert not RAW.search(text)


# -- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", SDKS)
def test_report_that_meets_a_lost_network_arrives_later_as_the_same_bytes(
    device: Any, site: Site, which: str
) -> None:
    page = device(which)
    lost: list[str] = []

    def offline(route: Any) -> None:
        lost.append(route.request.post_data or "")
        route.abort()

    page.route("http://localhost:*/**", offline)
    page.evaluate("(flush) => days(1, 10, ['topaz'], 1, flush)", which != "otel")
    for _ in range(100):
        if any(PLAN["digest"] in each for each in lost):
            break
        page.wait_for_timeout(100)
    page.unroute("http://localhost:*/**")
    site.faults[:] = [503]
    if which in (
        "openfeature",
        "snowplow",
    ):  # as the timer does, and Snowplow with events; others try again by themselves
        for _ in range(3):
            page.evaluate("turn()")
            page.wait_for_timeout(500)
    arrived = wait_for_reports(page, site, 1)
    (before,) = {each["report"] for text in lost for each in _reports(json.loads(text or "0"))}
    assert {each["report"] for each in arrived} == {before}
    assert len({each["key"] for each in arrived}) == 1


def test_reports_are_drawn_and_charged_once_in_two_tabs_and_after_a_reload(device: Any, site: Site) -> None:
    page = device("openfeature")
    other = page.context.new_page()
    options = {"which": "openfeature", "sink": site.sink, "definition": PLAN}
    other.goto(site.page)
    other.wait_for_function("window.ready")
    other.evaluate("(options) => start(options)", options)
    days(page, 1, 3, ["topaz"], 0)
    days(other, 1, 3, ["no"], 0)
    page.reload()
    page.wait_for_function("window.ready")
    page.evaluate("(options) => start(options)", {**options, "given": {"clock": 1_793_696_400_000}})
    found = days(page, 1, 1, ["no"], 0)
    other.close()
    arrived = wait_for_reports(page, site, 2)
    assert Counter(each["period"] for each in arrived) == {"2026-11-02": 1, "2026-11-03": 1}
    assert found["balance"]["lifetime"]["spent"] == "3"


def test_clock_that_goes_back_draws_and_charges_nothing_again(device: Any, site: Site) -> None:
    page = device("openfeature")
    days(page, 3, 1, ["topaz"], 0)
    page.evaluate("turn(-3)")
    found = days(page, 3, 1, ["no"], 0)
    assert len(wait_for_reports(page, site, 3)) == 3
    assert found["balance"]["lifetime"]["spent"] == "4"


def test_week_is_one_report(device: Any, site: Site) -> None:
    page = device("openfeature", period="week")
    found = days(page, 15, 2, ["topaz"], 0)
    arrived = wait_for_reports(page, site, 2)
    assert [each["period"] for each in arrived] == ["2026-11-02", "2026-11-09"]
    assert found["balance"]["lifetime"]["spent"] == "3"


def test_posthog_with_requests_for_flags_sends_nothing_and_says_why(device: Any, site: Site) -> None:
    page = device("posthog", given={"clock": 1_793_610_000_000, "advanced_disable_flags": False})
    days(page, 2, 2, ["no"])
    page.wait_for_timeout(1500)
    assert reports(site) == []
    assert not [each for each in site.sent if "checkout" in each.readable]
    assert any("advanced_disable_flags" in each for each in page.evaluate("warnings"))


def test_posthog_reports_wait_until_it_captures(device: Any, site: Site) -> None:
    page = device("posthog", given={"opt_out_capturing_by_default": True})
    days(page, 2, 2, ["topaz"])
    page.wait_for_timeout(1500)
    assert reports(site) == []
    page.evaluate("posthog.opt_in_capturing(); turn()")
    assert len(wait_for_reports(page, site, 2)) == 2


NESTED = {
    "posthog": """posthog.capture("basket", { step: 1, cart: { plan: "topaz", many: [{ plan: "topaz" }] } });""",
    "snowplow": """trackSelfDescribingEvent({ event: {
        schema: `${ORG}/basket/jsonschema/1-0-0`, data: { step: 1, cart: [{ plan: "topaz" }] } } });""",
    "otel": """
        const span = SDKS.otel.tracer.startSpan("basket", { attributes: { step: 1 } });
        span.addEvent("clicked", { plan: "topaz" });
        span.addLink({ context: span.spanContext(), attributes: { plan: "topaz" } });
        span.end();
        SDKS.otel.logger.emit({ eventName: "basket", body: { plan: "topaz" }, attributes: { cart: { plan: "topaz" } } });""",
}


@pytest.mark.parametrize("which", NESTED)
def test_other_event_with_an_answer_deep_inside_is_sent_without_it(device: Any, site: Site, which: str) -> None:
    page = device(which)
    page.evaluate(f"() => {{ {NESTED[which]} }}")
    days(page, 2, 1, ["no"], 0)
    wait_for_reports(page, site, 2)
    assert sum(each.readable.count("basket") for each in site.sent)
    assert raw(site) == []


def test_spans_and_logs_of_a_metric_are_not_sent_by_another_name_or_beside_it(device: Any, site: Site) -> None:
    page = device("otel")
    page.evaluate("""() => {
        const { tracer, logger } = SDKS.otel;
        const renamed = tracer.startSpan("plan_chosen", { attributes: { page: "beside" } });
        logger.emit({ eventName: "beside", body: "x", context: trace.setSpan(ROOT_CONTEXT, renamed) });
        renamed.addEvent("topaz");
        renamed.updateName("beside");
        renamed.end();
    }""")
    days(page, 2, 0, [])
    wait_for_reports(page, site, 2)
    assert [each for each in site.sent if "beside" in each.readable] == []


def test_posthog_tells_in_no_report_that_a_person_was_described(device: Any, site: Site) -> None:
    profiles = []
    for plan in ("", "topaz"):
        page = device("posthog", f"?{plan}", given={"person_profiles": "identified_only"})
        page.evaluate("(plan) => plan && posthog.setPersonProperties({ plan })", plan)
        days(page, 1, 0, [], 0)
        wait_for_reports(page, site, 1)
        profiles.append(
            {word for each in site.sent for word in re.findall(r'"\$process_person_profile":\w+', each.readable)}
        )
        page.close()
    assert profiles == [{'"$process_person_profile":false'}] * 2


def test_report_that_left_is_never_drawn_again_also_if_the_clock_goes_back(device: Any, site: Site) -> None:
    page = device("openfeature", given={"still": True})
    page.evaluate("window.sent = []; window.fails = true; failing(sent)")
    page.evaluate("turn(1)")
    for _ in range(20):  # at ε = 1, twenty draws do not happen to be equal
        page.evaluate("pass(-1); choose('topaz')")
        page.evaluate("turn()")
        page.evaluate("turn(1)")
    sent = page.evaluate("sent")
    assert len(sent) == 21
    assert len({*sent}) == 1


def test_answer_that_page_code_changes_later_is_reported_as_it_was(device: Any, site: Site) -> None:
    page = device("openfeature")
    page.evaluate("const answer = ['topaz']; reports_().seen('plan_flag', { variant: answer }); answer[0] = 'ruby';")
    days(page, 1, 0, [], 0)
    assert len(wait_for_reports(page, site, 1)) == 1
    assert [each for each in page.evaluate("warnings") if "ruby" in each] == []


# -- what is refused -------------------------------------------------------------------------------------------------

REFUSED = {
    "there is no option propery": {"propery": "plan"},
    "`property` must name the property of the event that holds the answer": {"property": None},
    "`period` must be day, week or month: got hour": {"period": "hour"},
    "`original` must be drop or strip: got send": {"original": "send"},
    '`allow` is for `original: "strip"`: an event that is not sent keeps nothing': {"allow": ["page"]},
    'a device on which nothing happened reports `none`: "nothing" is no answer of the collection': {
        "none": "nothing"
    },
    "allows plan, which is the answer of plan": {"original": "strip", "allow": ["plan"]},
    "the definition has the digest": {"digest": "0" * 64},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_metric_that_would_tell_more_is_refused_with_the_reason(device: Any, reason: str) -> None:
    page = device("openfeature")
    metric = {"property": "plan", "definition": PLAN, **REFUSED[reason]}
    said = page.evaluate("(metrics) => declare(metrics)", {"plan": metric})
    assert said.startswith("TypeError: ")
    assert reason in said


def test_metric_of_a_collection_that_repeats_draws_is_refused(device: Any) -> None:
    made = Collection("plan", CASES["loloha"]).definition()
    page = device("openfeature")
    said = page.evaluate("(metrics) => declare(metrics)", {"plan": {"property": "plan", "definition": made}})
    assert "repeats draws, whose charges tell whether an answer is new" in said


def test_event_without_an_answer_of_the_collection_counts_as_nothing(device: Any, site: Site) -> None:
    page = device("openfeature")
    days(page, 1, 2, ["ruby"], 0)
    assert len(wait_for_reports(page, site, 1)) == 1
    said = page.evaluate("warnings")
    assert [each for each in said if "has no answer of the collection in variant" in each]
    assert not [each for each in said if "ruby" in each]
