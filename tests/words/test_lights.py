"""The traffic lights of a check report, each state, in English and in Chinese."""

import pytest

from rankdash.analysis.labels.check import CheckReport, LabelSpread
from rankdash.findings import Finding
from rankdash.i18n import speaking
from rankdash.words.lights import lights

CHARS = LabelSpread(3, 4, 5)


def report(*findings: Finding, labels: int = 10, texts: LabelSpread | None = CHARS) -> CheckReport:
    return CheckReport(5, 9, labels, 5, None, (), texts, texts, (), findings)


def warning(code: str, **more: object) -> Finding:
    return Finding("warning", code, "What of {name}.", {"name": "*x*"}, "Do {name}.", **more)


def states(of: CheckReport) -> list[str]:
    return [light.state for light in lights(of)]


def test_a_report_without_warnings_has_five_green_lights():
    assert states(report()) == ["good"] * 5


def test_no_labels_are_a_start_and_what_needs_them_is_not_known():
    assert states(report(labels=0)) == ["none", "unknown", "unknown", "good", "unknown"]
    light = lights(report(labels=0))[0]
    assert "rankdash picks the documents to label" in light.what
    assert "page Label" in light.remedy and "page Judge" in light.remedy


def test_texts_that_are_missing_are_to_be_looked_at():
    light = lights(report(texts=None))[3]
    assert (light.state, light.what.split(".")[0]) == ("look", "No document has a text")
    assert "corpus.jsonl" in light.remedy


def test_a_sample_of_labels_is_called_one_and_of_what():
    assert lights(report(labels=325), 3307)[0].what == (
        "325 labels, a sample of the 3,307 documents that can change the result"
    )
    assert lights(report(labels=325))[0].what == ""
    with speaking("zh"):
        said = lights(report(labels=325), 3307)[0].what
    assert "325" in said and "3,307" in said and "抽样" in said


@pytest.mark.parametrize(
    ("code", "light", "state"),
    [
        ("unused_labels", 0, "wrong"),
        ("none_relevant", 0, "look"),
        ("mostly_unjudged", 0, "look"),
        ("no_relevant", 0, "look"),
        ("labels_by_accident", 1, "wrong"),
        ("counted_queries", 1, "wrong"),
        ("labelled_not_ranked", 1, "look"),
        ("label_direction", 2, "wrong"),
        ("few_documents", 3, "wrong"),
        ("texts_differ", 3, "look"),
        ("any_other_warning", 3, "look"),
        ("none_in_top", 4, "wrong"),
        ("rank_gaps", 4, "look"),
        ("ties", 4, "look"),
    ],
)
def test_each_warning_turns_its_own_light_and_says_what_to_do(code, light, state):
    other = "texts_differ" if light != 3 else "rank_against_score"
    found = lights(report(warning(other), warning(code)))

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
