"""The traffic lights of a check report, each state, in English and in Chinese."""

import pytest

from rankdash.analysis.labels.check import CheckReport
from rankdash.findings import Finding
from rankdash.i18n import speaking
from rankdash.words.lights import lights


def report(*findings: Finding, labels: int = 10) -> CheckReport:
    return CheckReport(5, 9, labels, 5, None, (), None, None, (), findings)


def warning(code: str, **more: object) -> Finding:
    return Finding("warning", code, "What of {name}.", {"name": "*x*"}, "Do {name}.", **more)


def states(of: CheckReport) -> list[str]:
    return [light.state for light in lights(of)]


def test_a_report_without_warnings_has_five_green_lights():
    assert states(report()) == ["good"] * 5


def test_without_labels_what_needs_them_is_not_known():
    assert states(report(warning("no_labels"), labels=0)) == [
        "wrong", "unknown", "unknown", "good", "unknown",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "light", "state"),
    [
        ("unused_labels", 0, "wrong"),
        ("none_relevant", 0, "look"),
        ("labels_by_accident", 1, "wrong"),
        ("counted_queries", 1, "wrong"),
        ("labelled_not_ranked", 1, "look"),
        ("label_direction", 2, "wrong"),
        ("few_documents", 3, "wrong"),
        ("texts_differ", 3, "look"),
        ("none_in_top", 4, "wrong"),
        ("rank_gaps", 4, "look"),
    ],
)
def test_each_warning_turns_its_own_light_and_says_what_to_do(code, light, state):
    found = lights(report(warning("texts_differ" if light != 3 else "ties"), warning(code)))

    assert found[light].state == state
    assert (found[light].what, found[light].remedy) == ("What of *x*.", "Do *x*.")


def test_many_refused_rows_turn_the_light_of_the_rows():
    refused = Finding(
        "warning", "bad_label", "{count} (lines {lines})", {"count": 3, "lines": "1", "rows": 10},
        file="a", count=3,
    )  # fmt: skip

    assert lights(report(refused))[3].what == "3 of 10 rows are excluded."
    with speaking("zh"):
        assert lights(report(refused))[3].what == "10 行中有 3 行被排除。"
