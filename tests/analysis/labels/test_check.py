"""The check report: counts, refusals, matching ids, label direction, and its JSON."""

import json
from dataclasses import fields, replace

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers.checks.check import CheckReport, check, relabelled
from tests.lists import ranking
from tests.results import results, several, shown


def dataset(
    labels: list[tuple[str, str, float]], candidates: dict[str, list[str]], *,
    texts: dict[str, str] | None = None, queries: dict[str, str] | None = None,
) -> Dataset:  # fmt: skip
    texts, queries = texts or {}, queries or {}
    ids = dict.fromkeys([*(q for q, _, _ in labels), *candidates, *queries])
    docs = dict.fromkeys(
        [*(d for _, d, _ in labels), *(d for own in candidates.values() for d in own)]
    )
    titled = pd.DataFrame({"doc_id": list(docs), "title": ""})
    return Dataset(
        "set",
        pd.DataFrame(
            [(q, queries.get(q, f"about {q}")) for q in ids], columns=["query_id", "text"]
        ),
        titled.assign(text=[texts.get(doc, f"text {doc}") for doc in docs]),
        pd.DataFrame(labels, columns=["query_id", "doc_id", "label"]),
        ranking(**candidates),
    )


def report_of(data: Dataset, *findings: Finding, **rankings: Ranking) -> CheckReport:
    return check(data, findings, rankings)


def found(report: CheckReport, code: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.code == code]
    return finding


def codes(report: CheckReport) -> set[str]:
    return {finding.code for finding in report.findings}


def shallow(labels_of_each: list[float], queries: int = 5) -> Dataset:
    """Return queries with ten candidates; the first candidates have these labels."""
    every = range(queries)
    return dataset(
        [(f"q{q}", f"d{rank}", label) for q in every for rank, label in enumerate(labels_of_each)],
        {f"q{q}": [f"d{rank}" for rank in range(10)] for q in every},
    )


def one_pair(labelled: str, ranked: str) -> CheckReport:
    return report_of(dataset([(labelled, "a", 1)], {ranked: ["a"]}))


def directed(sign: int, queries: int, seed: int = 5) -> CheckReport:
    """Return the report of labels that follow the rank (sign 1: low on top; 0: not), with noise."""
    rng = np.random.default_rng(seed)
    labels, lists = [], {}
    for q in range(queries):
        docs = lists[f"q{q}"] = [f"d{q}-{i}" for i in range(10)]
        order = np.argsort(sign * np.arange(10) + rng.normal(scale=4, size=10))
        labels += [(f"q{q}", docs[d], float(1 + 3 * place // 9)) for place, d in enumerate(order)]
    return report_of(dataset(labels, lists))


def three_reversed_of_five() -> CheckReport:
    lists = {f"q{q}": [f"d{q}-{i}" for i in range(4)] for q in range(5)}
    low_on_top, high_on_top = [0, 1, 2, 3], [2, 3, 1, 0]
    labels = [
        (query, doc, float(label))
        for q, (query, docs) in enumerate(lists.items())
        for doc, label in zip(docs, low_on_top if q < 3 else high_on_top, strict=True)
    ]
    return report_of(dataset(labels, lists))


def without_texts() -> CheckReport:
    return report_of(
        Dataset(
            "set",
            pd.DataFrame({"query_id": ["q"], "text": [None]}),
            pd.DataFrame({"doc_id": ["d"], "title": [None], "text": [None]}),
            pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "label": [1.0]}),
            Ranking.from_columns([], [], []),
        )
    )


def labelled_later(more: int) -> CheckReport:
    """Return the report after more labels; three of ten documents had a label before."""
    data = shallow([1, 0, 0])
    added = [(f"q{q}", f"d{rank}", 0.0) for q in range(5) for rank in range(3, 10)]
    full = data.relabelled(pd.DataFrame(added[:more], columns=["query_id", "doc_id", "label"]))
    return relabelled(report_of(data), full, {})


def given_here() -> CheckReport:
    bare = dataset([], {"q1": ["a", "b"], "q2": ["a"]})
    rows = [("q1", "a", 1.0), ("q1", "b", 0.0)]
    given = bare.relabelled(pd.DataFrame(rows, columns=["query_id", "doc_id", "label"]))
    run = {"other": Ranking.from_lists([("q1", ["b"], [1.0])])}
    read = relabelled(check(bare, (), run), given, run)
    assert relabelled(read, bare, run).rankings == check(bare, (), run).rankings
    return read


MINE = Ranking.from_lists([("q0", [f"d{rank}" for rank in (0, 9, 8, 7, 6)], [5, 4, 3, 2, 1.0])])
GOOD = dataset(
    [("q1", "a", 2), ("q1", "b", 0), ("q2", "c", 1)], {"q1": ["a", "b", "x", "y"], "q2": ["c"]}
)
CASES = {
    "counts": lambda: report_of(GOOD),
    "a hundred labels in ten bins": lambda: report_of(
        dataset([("q", f"d{i}", i / 100) for i in range(100)], {"q": ["d0"]})
    ),
    "findings of the reader, errors first": lambda: report_of(
        GOOD, Finding("note", "n", "A note."), Finding("warning", "w", "A warning.")
    ),
    "a system beside the first stage": lambda: report_of(
        GOOD, other=ranking(q1=["b", "z"])
    ),
    **several(
        "{!r} is ranked, {!r} labelled", lambda ranked, labelled: one_pair(labelled, ranked),
        (("1", "q1"), ("q1", "Q1"), ("q1", "q1 "), ("7", "007"), ("alpha", "beta")),
    ),
    "documents match nothing": lambda: report_of(
        dataset([("q", "D1", 1), ("q", "D2", 0)], {"q": ["d1", "d2"]})
    ),
    "a ranking that contains nothing": lambda: report_of(
        dataset([("q", "a", 1)], {"q": ["a"]}), other=Ranking.from_lists([])
    ),
    "a labelled query that is not ranked, with the near match": lambda: report_of(
        dataset([("q1", "a", 1), ("q2", "b", 1)], {"q1": ["a"], "Q2": ["b"]})
    ),
    "labels under the wrong query": lambda: report_of(
        dataset([("q1", "b", 1), ("q2", "a", 1)], {"q1": ["a"], "q2": ["b"]})
    ),
    "missing texts and candidates": lambda: report_of(dataset(
        [("q1", "a", 1)], {"q1": ["a", "b"]}, texts={"b": ""}, queries={"q1": "", "q3": "waiting"}
    )),
    "no labels": lambda: report_of(dataset([], {"q": ["a"]})),
    "labels given in rankdash": given_here,
    "low labels on top": lambda: directed(1, 30),
    "high labels on top": lambda: directed(-1, 30),
    "random labels": lambda: directed(0, 20),
    "low labels on top of three queries": lambda: directed(1, 3),
    "three reversed of five": three_reversed_of_five,
    "a single label is no scale that starts at 1": lambda: one_pair("q", "q"),
    "one grade says nothing of a direction": lambda: report_of(dataset(
        [(f"q{q}", f"d{q}", 1.0) for q in range(10)], {f"q{q}": [f"d{q}", "x"] for q in range(10)}
    )),
    "no texts, nothing ranked": without_texts,
    **{
        f"{len(labels)} of ten are judged: {labels}": lambda labels=labels: report_of(
            shallow(labels)
        )
        # With only relevant documents no list can be condensed. One relevant document per query is
        # common in published sets.
        for labels in ([1, 0, 0], [1, 1, 2, 1], [1], [1, 0, 0, 0, 2])
    },
    **several("{} of 35 are labelled later", labelled_later, (5, 34)),
    "enough are judged": lambda: report_of(shallow([1, 0, 0, 1, 0])),
    "not of another ranking": lambda: check(shallow([1, 0, 0, 1, 0]), (), {"mine": MINE}),
}  # fmt: skip


def told(report: CheckReport) -> str:
    """Return all numbers, and the findings in their order."""
    assert CheckReport.from_json(report.to_json()) == report
    by = [each for level in ("errors", "warnings", "notes") for each in getattr(report, level)]
    assert tuple(by) == report.findings
    numbers = {each.name: getattr(report, each.name) for each in fields(report)}
    del numbers["findings"]
    numbers["label_histogram"] = [(x.low, x.high, x.count) for x in report.label_histogram]
    return "\n".join(
        [
            shown(numbers),
            *(
                f"  {each.severity} {each.code} ({each.count}): {each.text} | {each.remedy} | "
                f"{shown(each.examples)}"
                for each in report.findings
            ),
        ]
    )


def test_what_is_in_a_set_and_what_looks_wrong(approved):
    approved("analysis/check", results(CASES, told))


def test_stored_warnings_are_those_of_today():
    old = Finding("warning", "no_labels", "There are no labels, so.", remedy="Add the file.")
    stored = replace(report_of(dataset([], {"q": ["a"]})), findings=(old,))
    read = CheckReport.from_json(stored.to_json())
    assert not read.warnings and "page Label" in found(read, "no_labels").remedy

    of_today = found(report_of(shallow([1, 0, 0])), "mostly_unjudged")
    old = replace(
        of_today,
        template="Of the first ten documents of the first stage only {judged:.0%} have a label. A "
        "document without a label counts as not relevant, so a system that brings up good new "
        "documents looks worse than it is.",
        params={key: each for key, each in of_today.params.items() if key != "name"},
        remedy="See Overview > Documents without a label for what they could change and which to "
        "label first, or choose Condensed lists (judged documents only) under Metric conventions.",
    )
    stored = replace(report_of(shallow([1, 0, 0])), findings=(old,))
    assert found(CheckReport.from_json(stored.to_json()), "mostly_unjudged") == of_today


def test_the_report_survives_json():
    noticed = [
        Finding("note", "n", "{count} of {name}", {"count": np.int64(3), "name": "\u202e\ud7ff"}),
        Finding("error", "", "", {}, "Do it.", "a file", 1, 9, ("one", "two")),
    ]
    report = report_of(GOOD, *noticed)
    assert CheckReport.from_json(report.to_json()) == report
    findings = json.loads(report.to_json())["findings"]
    assert {"count": 3, "name": "\u202e\ud7ff"} in [each["params"] for each in findings]
