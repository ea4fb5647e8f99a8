"""The verdict on the first stage, and hard negatives with the file that trainers read."""

import json
from dataclasses import replace

import pytest

from rankdash.core.base.errors import DataError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.metrics import Conventions
from rankdash.core.study import labelling
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.report import report_exports
from rankdash.features.report.report_exports import triplet_lines
from tests.study.builders import changed, small

DOCS = "abcdefgh"


@pytest.mark.parametrize(
    ("rules", "kind"),
    [({"correction": "none"}, "better"), ({}, "better"), ({"family": "all"}, "unproven")],
    ids=str,
)
def test_the_verdict_on_the_first_stage_is_corrected_as_the_settings_say(rules, kind):
    """Seven of seven queries helped is p 0.016: below 0.05 also if two systems are compared, and
    above it if they are compared on three metrics."""
    first = {f"q{place:02}": "ab" for place in range(40)}
    labels = {query: {"b": 1.0} for query in first}
    helped = {query: "ba" if place < 7 else "ab" for place, query in enumerate(first)}
    of = small(first, helped, helped, labels=labels, metric="hit", cutoff=1,
               others=("mrr", "ndcg@2"))  # fmt: skip
    one, other = of.challengers
    of = replace(of, baseline=one, challengers=(other,),
                 statistics=StatisticsSettings(resamples=1000, **rules))  # fmt: skip
    assert labelling.first_stage_kind(of, other) == kind


def labelled(labels: dict[str, list[float | None]], texts: bool = True, **given: object) -> Study:
    """Return a study from labels of each query in rank order; None: no label."""
    lists = {query: DOCS[: len(row)] for query, row in labels.items()}
    known = {
        query: {doc: label for doc, label in zip(DOCS, row, strict=False) if label is not None}
        for query, row in labels.items()
    }
    said = {doc: f'{doc} "says" {{this}}\nand 那' if texts else "" for doc in DOCS}
    of = small(lists, lists, labels=known, texts=said, metric="mrr", **given)
    asked = of.dataset.queries.assign(text=[f"ask {query}" for query in labels])
    return replace(of, dataset=changed(of.dataset, queries=asked))


@pytest.mark.parametrize(
    ("labels", "threshold", "negatives"),
    [
        # Documents labelled not relevant, above a relevant document.
        ({"q": [0, None, 0, 1, 0, 2]}, 1, {"d": "ac", "f": "ace"}),
        ({"perfect": [1, 0, 0], "unlabelled above": [None, 1], "none": [0, 0]}, 1, {}),
        ({"q": [1, 2]}, 2, {"b": "a"}),
        # The documents with the highest ranks are used.
        ({"q": [0] * 7 + [1]}, 1, {"h": "abcde"}),
    ],
)
def test_negatives_of_each_relevant_document(labels, threshold, negatives):
    of = labelled(labels, conventions=Conventions(threshold=threshold))
    rows = report_exports.triplets(of, FIRST_STAGE)[["query_id", "positive_id", "negative_id"]]
    expected = [("q", doc, each) for doc, found in negatives.items() for each in found]
    assert list(rows.itertuples(index=False, name=None)) == expected


def test_the_file_has_query_positive_and_negative_in_the_order_that_a_trainer_takes():
    """The trainer of sentence-transformers reads columns by their order, not by their names."""
    lines = triplet_lines(labelled({"q": [0, 1], "p": [0, 0, 1]}), FIRST_STAGE).decode()
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [list(row) for row in rows] == [["query", "positive", "negative"]] * 3
    assert [*rows[0].values()] == ["ask q", *(f'{doc} "says" {{this}}\nand 那' for doc in "ba")]
    assert triplet_lines(labelled({"q": [1, 0]}), FIRST_STAGE) == b""
    with pytest.raises(DataError, match="no texts"):
        triplet_lines(labelled({"q": [0, 1]}, texts=False), FIRST_STAGE)
