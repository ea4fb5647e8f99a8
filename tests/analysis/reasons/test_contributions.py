"""Contributions add up to the change, for any rankings, labels, metric and conventions."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, evaluate, judge, parse_measure, registry
from rankdash.core.study.reasons.contributions import (
    CAUSES,
    MOST,
    Split,
    split,
    splits,
    statements,
    with_top_label,
    without,
)
from tests.results import results, several, shown

DOCS = "abcdefghij"
QUALITY = [name for name, metric in registry.items() if metric.measures_quality]
LABELS = st.dictionaries(
    st.sampled_from(DOCS + "xy"), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0])
)
CONVENTIONS = st.builds(
    Conventions,
    judged_only=st.booleans(),
    threshold=st.sampled_from([0.5, 1.0, 2.0]),
    ap_norm=st.sampled_from(["R", "min(R,k)"]),
    negative=st.sampled_from(["nonrelevant", "unjudged"]),
    ties=st.sampled_from(["as_ranked", "trec", "stable"]),
    score_precision=st.sampled_from(["float64", "float32"]),
    missing=st.sampled_from(["zero", "skip"]),
    no_relevant=st.sampled_from(["skip", "count"]),
    mrr_none=st.sampled_from(["zero", "skip"]),
    queries=st.sampled_from(["qrels", "both"]),
)


@st.composite
def rankings(draw) -> Ranking:
    """Queries q and r over some of the documents, with ties; r must not affect q."""
    rows = []
    for query in draw(st.sampled_from(["qr", "rq", "r", "q"])):
        docs = draw(st.lists(st.sampled_from(DOCS), unique=True, min_size=1))
        steps = draw(st.lists(st.sampled_from([0.0, 1e-9, 1.0]), min_size=10, max_size=10))
        scores = -np.cumsum(steps)[: len(docs)]
        rows += [(query, doc, score) for doc, score in zip(docs, scores, strict=True)]
    queries, docs, scores = zip(*rows, strict=True)
    return Ranking.from_columns(queries, docs, scores)


def table(labels: dict[str, float], other: dict[str, float]) -> pd.DataFrame:
    rows = [("q", doc, label) for doc, label in labels.items()]
    rows += [("r", doc, label) for doc, label in other.items()]
    return pd.DataFrame(
        {
            "query_id": pd.Series([row[0] for row in rows], dtype="str"),
            "doc_id": pd.Series([row[1] for row in rows], dtype="str"),
            "label": np.array([row[2] for row in rows], dtype=float),
        }
    )


def ranked(docs: str, scores: list[float] | None = None) -> Ranking:
    return Ranking.from_lists([("q", list(docs), scores or [-float(n) for n in range(len(docs))])])


@pytest.mark.parametrize("name", QUALITY)
@settings(max_examples=12)
@given(
    before=rankings(), after=rankings(), labels=LABELS, other=LABELS,
    k=st.sampled_from([None, 1, 3, 8, 25]), rules=CONVENTIONS,
)  # fmt: skip
def test_contributions_sum_to_both_values_and_to_the_change(
    name, before, after, labels, other, k, rules
):
    measure = parse_measure(name if k is None or not registry[name].has_cutoff else f"{name}@{k}")
    qrels = table(labels, other)
    found = split(before, after, qrels, "q", measure, rules)
    values = []
    for ranking in (before, after):
        evaluation = evaluate(judge(ranking, qrels, rules), [measure], rules)
        frame = evaluation.frame().set_index("query_id")
        known = "q" in frame.index
        values.append((frame.loc["q", "value"], frame.loc["q", "state"]) if known else (np.nan, ""))
    for (value, state), own, side in zip(
        values, (found.before, found.after), ("before", "after"), strict=True
    ):
        np.testing.assert_allclose(own, value, rtol=0, atol=1e-12)
        if not found.why_not:
            assert state == "scored"
            assert math.fsum(found.documents[side]) == pytest.approx(value, abs=1e-12)
    if found.why_not:
        assert found.documents.empty
        assert any(state != "scored" for _, state in values)
    else:
        delta = values[1][0] - values[0][0]
        assert found.documents["delta"].sum() == pytest.approx(delta, abs=1e-12)
        told = statements(found, qrels, rules)
        assert len(told) <= MOST
        own = sum(each.amount for each in told if each.kind not in CAUSES)
        assert own == pytest.approx(delta, abs=1e-12)
        assert all(each.amount < 0 for each in told if each.kind in CAUSES)


def parts(
    before: str | Ranking, after: str | Ranking, labels: dict[str, float], spec: str,
    other: dict[str, float] | None = None, left_out: dict[str, str] | None = None, **rules,
) -> tuple[Split, str]:  # fmt: skip
    """Return the split, and its statements, one per line."""
    qrels, conventions = table(labels, other or {}), Conventions(**rules)
    lists = (ranked(each) if isinstance(each, str) else each for each in (before, after))
    found = split(*lists, qrels, "q", parse_measure(spec), conventions, left_out=left_out)
    said = () if found.why_not else statements(found, qrels, conventions)
    return found, "".join(f"\n  {shown(each)}" for each in said)


def documents(*given, **rules) -> str:
    found, _ = parts(*given, **rules)
    rows = "".join(f"\n  {shown(row.dropna())}" for _, row in found.documents.iterrows())
    return f"{shown([found.before, found.after])} {found.why_not}".rstrip() + rows


def told(*given, **rules) -> str:
    found, said = parts(*given, **rules)
    return f"{shown([found.before, found.after])}{said}"


ONLY_R = Ranking.from_lists([("r", ["a"], [1.0])])
NEGATIVE = {"a": -1, "b": 0, "c": 2}
SIX = dict.fromkeys("abcdef", 1)

SPLITS = {
    "no sum over documents": lambda: documents("ab", "ba", {"a": 1}, "judged@10"),
    "the challenger lacks one": lambda: documents("ab", "b", {"a": 2, "b": 1}, "ndcg@10"),
    "the baseline lacks one": lambda: documents("b", "ab", {"a": 2, "b": 1}, "ndcg@10"),
    **several(
        "a label below 0, {}", lambda rules: documents("abc", "cba", NEGATIVE, "mrr", **rules),
        ({}, {"negative": "unjudged"}, {"judged_only": True},
        {"judged_only": True, "negative": "unjudged"}),
    ),
    **{
        state: lambda state=state: documents(
            "ab", "ba", {"a": 1}, "ndcg@10", left_out={"q": state}
        )
        for state in ("failed", "skipped")
    },
    "one ranking lacks the query": lambda: documents("ab", ONLY_R, {"a": 1}, "ndcg@10", {"a": 1}),
    "no labels and no ranking": lambda: documents(ONLY_R, ONLY_R, {}, "ndcg", {"a": 1}),
    "discounted gain, the largest change first": lambda: documents(
        "abc", "cba", {"a": 3, "b": 1, "x": 2}, "ndcg@3"
    ),
    # The last digits of equal changes differ by rounding.
    "equal changes in the order of the challenger": lambda: documents(
        "abcxyz", "zyxwfed", SIX, "recall@6"
    ),
    "condensed ranks": lambda: documents("uba", "ua", {"a": 1, "b": 0}, "mrr", judged_only=True),
    "in mrr the credit passes on": lambda: documents("ab", "cb", {"a": 1, "b": 1}, "mrr"),
    "in map a document counts less below a gap": lambda: documents(
        "ab", "cb", {"a": 1, "b": 1}, "map"
    ),
}  # fmt: skip
ONE_LABEL = pd.DataFrame({"query_id": ["q", "r"], "doc_id": ["a", "a"], "label": [1.0, 2.0]})


def left(gone: str) -> float:
    """Return the challenger's value without some documents: the others move up."""
    qrels = table({"a": 1, "d": 0}, {})
    found = split(ranked("abcd"), ranked("bcad"), qrels, "q", parse_measure("mrr"))
    return without(found, list(gone), qrels, Conventions())


OF_OTHERS = {
    **several("without {}", left, ("b", "bc")),
    **{
        f"top label of {name}, {rules}": with_top_label(Conventions(**rules), qrels).err_top_label
        for name, qrels in {"two": ONE_LABEL, "zeros": ONE_LABEL.assign(label=0.0),
                            "none": ONE_LABEL.head(0)}.items()
        for rules in ({}, {"err_top_label": 3})
    },
}  # fmt: skip
ABOVE = {"a": 1}
STATEMENTS = {
    "map below a gap": lambda: told("ab", "cb", {"a": 1, "b": 1}, "map"),
    "entrants and leavers": lambda: told(
        "abcdef", "defabc", {"a": 1, "d": 1, "f": 1, "b": 0, "c": 0}, "recall@3"
    ),
    "the first relevant one alone counts": lambda: told("abcd", "bcda", {"a": 1, "d": 1}, "mrr@2"),
    "the first of at least 1": lambda: told("abcd", "cbda", {"a": 1, "b": 2}, "mrr@4"),
    "the first of at least 2": lambda: told(
        "abcd", "bcda", {"a": 1, "b": 2}, "mrr@4", threshold=2.0
    ),
    "the first in the baseline alone": lambda: told("ab", "bc", {"a": 1}, "mrr"),
    "the first in the challenger alone": lambda: told("bc", "ba", {"a": 1}, "mrr"),
    "unjudged ones lifted above": lambda: told("abcd", "bcad", {"a": 1, "d": 0}, "ndcg@4"),
    "what stood above already was not lifted": lambda: told("uab", "uba", {"a": 1}, "ndcg@3"),
    "both were lifted": lambda: told("aub", "uba", {"a": 1}, "ndcg@3"),
    **several(
        "a grade of {} lifted above 2",
        lambda label: told("ab", "ba", {"a": 2, "b": label}, "ndcg"),
        (0, -1, 0.5),
    ),
    # "c" passed "a", and "u" passed "b", which rose anyway.
    "above one that lost nothing": lambda: told(
        "acdebu", "caubde", {"a": 3, "c": 1, "b": 1}, "ndcg@6"
    ),
    "risen, as they stood before": lambda: told("xyab", "baxy", {"a": 1, "b": 1}, "ndcg@4"),
    "above one that is gone": lambda: told("abcd", "bcd", {"a": 1, "d": 1}, "ndcg@4"),
    "c passed both, u only b": lambda: told("abcu", "caub", {"a": 2, "b": 1}, "ndcg@4"),
    "the dearer of two causes": lambda: told(
        "abcde", "dcbea", {"a": 2, "b": 0, "c": 0, "e": 0}, "ndcg@5"
    ),
    # If only x or only y is removed, a is still below rank 3.
    "no cause alone": lambda: told("rsaxy", "rsxya", {"r": 1, "s": 1, "a": 1, "x": 0}, "recall@3"),
    "a cause alone": lambda: told("rsaxy", "rsxa", {"r": 1, "s": 1, "a": 1, "x": 0}, "recall@3"),
    **{
        f"below the threshold {threshold} of {spec}": lambda spec=spec, threshold=threshold: told(
            "ab", "ba", {"a": 2, "b": 1}, spec, threshold=threshold
        )
        for spec in ("mrr", "map")
        for threshold in (1, 2)
    },
    # In both cases "u" and "v" are unjudged and were lifted over "a".
    "lost, so there is a cause": lambda: told("auvd", "duva", {"a": 2, "d": 1.8}, "ndcg@4"),
    "won, so there is none": lambda: told("auvd", "duva", {"a": 2, "d": 2.2}, "ndcg@4"),
    "what entered makes good": lambda: told(
        "axbcde", "cxbade", {"a": 1, "b": 1, "c": 1}, "recall@2"
    ),
    "room for three groups": lambda: told("abcd", "dacb", {"a": 1, "b": 1, "c": 1, "d": 3},
                                          "ndcg@3"),
    "three groups and a cause, room for two": lambda: told(
        "abcdx", "bxadc", {"a": 3, "b": 1, "c": 1, "d": 0}, "ndcg@3"
    ),
    "more than there is room for": lambda: told(
        "abcdefgh", "cfbdgahe", {"a": 3, "b": 1, "c": 2, "d": 2, "e": 1, "f": 3}, "ndcg@4"
    ),
    "nothing changed": lambda: told("abc", "abc", ABOVE, "ndcg@3"),
    "nothing that counts changed": lambda: told("abc", "bac", {"a": 1, "b": 1}, "mrr"),
}  # fmt: skip


def test_what_each_document_adds_and_what_is_told_of_it(approved):
    approved("analysis/contributions", results(SPLITS | OF_OTHERS))
    approved("analysis/statements", results(STATEMENTS))


@pytest.mark.parametrize("name", QUALITY)
def test_a_document_adds_what_the_list_gains_by_it(name):
    """A list without any of them has the same value; ERR uses the highest label of the set."""
    spec = f"{name}@4" if registry[name].has_cutoff else name
    assert splits(parse_measure(spec)) and not splits(parse_measure("judged@10"))
    for other, rules in (({"z": 3}, Conventions()), ({}, Conventions(threshold=2, ap_norm="R"))):
        qrels, docs = table({"a": 3, "b": 1, "c": 2, "x": 2, "n": 0}, other), "bnacxd"
        found = split(ranked(docs), ranked("x"), qrels, "q", parse_measure(spec), rules)
        starts = [Ranking.from_lists([("q", [], [])]), *(ranked(docs[:n]) for n in range(1, 7))]
        values = [
            evaluate(judge(each, qrels, rules), [spec], rules).values[0, 0] for each in starts
        ]
        added = found.documents.set_index("doc_id")["before"][list(docs)]
        assert added.tolist() == pytest.approx(np.diff(values).tolist(), abs=1e-12)
        assert without(found, [], qrels, rules) == pytest.approx(found.after)
