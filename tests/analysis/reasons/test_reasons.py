"""One reason for each query: every rule by a case from both sides, exactly one by property."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.base.rules import TIE_BAND
from rankdash.core.data.ranking import Ranking, Reading
from rankdash.core.metrics import Conventions, evaluate, judge, parse_measure, registry
from rankdash.core.study.reasons.contributions import split
from rankdash.core.study.reasons.main_document import evidence
from rankdash.core.study.reasons.reasons import REASONS, counted, reasons
from rankdash.core.study.unjudged.system_bounds import RankedLabels
from tests.referee import why
from tests.referee.rules import RULES
from tests.results import results, several
from tests.sets import ROOT, SETS, loaded

QUALITY = [name for name, metric in registry.items() if metric.measures_quality]
NAN = float("nan")
# Scores with uneven steps: clear margins everywhere.
CLEAR = [20.0, 17.0, 15.0, 12.0, 11.0, 8.0, 7.0, 5.0, 4.0, 2.0, 1.5, 0.5]
CLEAR += [0.0, -2.0, -5.0, -6.0, -9.0, -9.5, -12.0, -13.0]
UNRANKED = Ranking.from_lists([("r", ["a"], [1.0])])
"""A ranking of another query only."""
FAILED, SKIPPED = {"q": "failed"}, {"q": "skipped"}


def ranked(docs, scores=None) -> Ranking:
    return Ranking.from_lists([("q", list(docs), scores or CLEAR[: len(docs)])])


def table(labels: str) -> pd.DataFrame:
    """Return a table of labels; "a1 b0" labels a with 1 and b with 0."""
    rows = [("q", each[0], float(each[1:])) for each in labels.split()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def reason(
    before: str | Ranking, after: str | Ranking, labels: str, spec: str = "ndcg@5",
    *, failed: dict[str, str] | None = None, failed_before: dict[str, str] | None = None,
    read: dict[str, tuple[int, int]] | None = None, tie_band: float = TIE_BAND, **rules,
) -> pd.Series:  # fmt: skip
    """Return the row of a query. read: document → tokens that the model read, and in all."""
    conventions, qrels = Conventions(**rules), table(labels)
    ours, theirs = (ranked(each) if isinstance(each, str) else each for each in (before, after))
    sides = [
        replace(RankedLabels(each, judge(each, qrels, conventions)), left_out=out or {})
        for each, out in ((ours, failed_before), (theirs, failed))
    ]
    reading = None
    if read is not None:
        pairs = [read.get(doc, (50, 50)) for doc in theirs.doc_ids[theirs.docs]]
        reading = Reading(*np.array(pairs, dtype=np.int32).T.copy())
    found = reasons(*sides, parse_measure(spec), conventions, tie_band=tie_band, reading=reading)
    return found.iloc[0].drop("query_id")


def told(row: pd.Series) -> pd.Series:
    """Return the fields of a row that have a value."""
    return row.drop(["read", "full"] if row["read"] == -1 else []).dropna()


def moved(lost: int, gained: int, spare: int = 0) -> tuple[str, str, str, str]:
    """Return rankings and labels in which `lost` relevant documents leave the first k and `gained`
    enter; `spare` ranks have nothing relevant before and after. All have the same label."""
    relevant = "abcdefghijklmnopqr"[: lost + gained]
    out, into, rest = relevant[:lost], relevant[lost:], "456789"
    k, fill = max(lost, gained), "0123"[:spare]
    before = fill + (out + rest)[:k] + into
    after = fill + (into + rest)[:k] + out
    return before, after, " ".join(f"{doc}1" for doc in relevant), f"recall@{k + spare}"


def by_a_hair(before: str, after: str, labels: str, spec: str) -> pd.Series:
    """Return the row for scores a thousandth apart, and one far below them."""
    scores = [100 - n / 1000 for n in range(len(after))]
    return reason(before, ranked(after + "z", [*scores, 0.0]), labels, spec)


def fell(start: int, end: int, spec: str) -> pd.Series:
    docs = "bcdefghijklmn"
    before, after = (docs[: at - 1] + "a" + docs[at - 1 :] for at in (start, end))
    return reason(before, after, "a1", spec)


def straight(swap: int, score) -> pd.Series:
    """Return the row for 49 documents of which two neighbours change places."""
    docs = [f"d{n}" for n in range(49)]
    swapped = [*docs[:swap], docs[swap + 1], docs[swap], *docs[swap + 2 :]]
    before = Ranking.from_lists([("q", swapped, range(0, -49, -1))])
    after = Ranking.from_lists([("q", docs, [score(n) for n in range(49)])])
    labels = pd.DataFrame({"query_id": ["q"], "doc_id": [docs[swap]], "label": [1.0]})
    sides = [RankedLabels(each, judge(each, labels)) for each in (before, after)]
    return reasons(*sides, parse_measure("ndcg@5")).iloc[0].drop("query_id")


CLOSE = [20.0, 19.9, 12.0, 3.0]
BELOW_DEPTH = ("q", list("bacde"), [9.0, 8.9, 3.0, NAN, NAN])
OTHER = ("r", ["a"], [1.0])
OUT, IN = "bcdefgha", "abcdefgh"
NO_LABELS_OF_X = {
    "nothing is judged": ("x1", "ndcg@2", {}),
    "below the cutoff one is": ("x1 c0", "ndcg@2", {}),
    "within it one is": ("x1 b0", "ndcg@2", {}),
    "within a larger cutoff one is": ("x1 c0", "ndcg@3", {}),
    "without a cutoff one is": ("x1 c0", "ndcg", {}),
    "condensed one is": ("x1 c0", "ndcg@2", {"judged_only": True}),
    "condensed nothing is": ("x1", "ndcg@2", {"judged_only": True}),
    "the relevant one is below": ("c1", "ndcg@2", {}),
    "none is relevant": ("x0", "ndcg@2", {}),
}

CASES = {
    "the challenger failed": lambda: reason("ab", "ba", "a1", failed=FAILED),
    "the baseline failed": lambda: reason("ab", "ba", "a1", failed_before=FAILED),
    "another query failed": lambda: reason("ab", "ba", "a1", failed={"r": "failed"}),
    "skipped": lambda: reason("ab", UNRANKED, "a1", failed=SKIPPED),
    "skipped comes before no relevant label": lambda: reason("ab", "ba", "a0", failed=SKIPPED),
    **{
        f"not ranked {side}, {rules or 'counts 0'}": lambda b=b, a=a, rules=rules: reason(
            b, a, "a1", **rules
        )
        for side, b, a in (
            ("after", "ab", UNRANKED), ("before", UNRANKED, "ab"), ("at all", UNRANKED, UNRANKED)
        )
        for rules in ({}, {"missing": "skip"}, {"queries": "both"})
    },
    "a label comes before a ranking": lambda: reason("ab", UNRANKED, "a0"),
    "a ranking comes before candidates": lambda: reason("ab", UNRANKED, "x1"),
    "no candidate is relevant": lambda: reason("abc", "cba", "x1 a0"),
    "no label is relevant: 0": lambda: reason("abc", "cba", "a0"),
    "no label is relevant: -1": lambda: reason("abc", "cba", "a-1"),
    "no label is relevant: two of 0": lambda: reason("abc", "cba", "x0 a0"),
    "below the threshold of mrr": lambda: reason("ab", "ba", "a1 b0", "mrr", threshold=2),
    "not among candidates": lambda: reason("ab", "ba", "x2 a1", "mrr", threshold=2),
    "ndcg has no threshold": lambda: reason("ab", "ba", "a1 b0", "ndcg", threshold=2),
    "ideal and kept": lambda: reason("abcd", "abdc", "a2 b1"),
    "ideal and equal ones swapped": lambda: reason("abcd", "bacd", "a1 b1"),
    "ideal comes before idle": lambda: reason("abc", "abc", "a1"),
    "an ideal order that was hurt": lambda: reason("abcd", "cbad", "a2 c0"),
    "a value of 0 is not ideal": lambda: reason("bc", "bcdefa", "a1 b0"),
    "a value of 0 within a wide band": lambda: reason("bc", "bcdefa", "a1 b0", tie_band=1.0),
    "another is first in mrr": lambda: reason("abcd", "dbca", "a1 d1 b0", "mrr@5"),
    # x is relevant and below the second place, in one of the lists.
    **{
        f"ideal by its own candidates: {before} {after} {spec}": lambda b=before, a=after, s=spec: (
            reason(b, a, "a1 x1", s)
        )
        for before, after in (("ab", "abx"), ("abx", "ab"), ("ab", "ba"))
        for spec in ("hit@2", "recall@2")
    },
    "below k": lambda: reason("bcdefag", "bcdefga", "a1"),
    "from within k": lambda: reason("bcdefag", "bcdefga", "a1", "ndcg@6"),
    "below k, one is judged": lambda: reason("bcdefag", "bcdefga", "a1 b0"),
    "below k of one list": lambda: reason("bcdefa", "bcdef", "a1"),
    "below k in mrr nothing is missed": lambda: reason("bac", "bac", "a1 c1", "mrr@2"),
    "below k in recall": lambda: reason("bac", "bac", "a1 c1", "recall@2"),
    "below k and ideal": lambda: reason("abc", "abc", "a2 b1 c1", "ndcg@2"),
    "below k would add the band": lambda: reason("bac", "bac", "a1 c1", "recall@2", tie_band=0.5),
    "below k more": lambda: reason("bac", "bac", "a1 c1", "recall@2", tie_band=0.4999),
    **{
        f"shown: {name}": lambda labels=labels, spec=spec, rules=rules: reason(
            "abcd", "bacd", labels, spec, **rules
        )
        for name, (labels, spec, rules) in NO_LABELS_OF_X.items()
    },
    "judged before alone": lambda: reason("abcd", "cdab", "x1 a0", "ndcg@2"),
    "judged after alone": lambda: reason("cdab", "abcd", "x1 a0", "ndcg@2"),
    "buried: counts are within k": lambda: reason(IN, OUT, "a1 b0"),
    "buried below the first page": lambda: reason("abcdefghijkl", "bcdefghijkla", "a1", "ndcg"),
    "within the first page": lambda: reason("abcdefghijkl", "bcdaefghijkl", "a1", "ndcg"),
    **{
        f"from {start} to {end} in {spec}": lambda start=start, end=end, spec=spec: (
            fell(start, end, spec)
        )
        for spec, page in (("ndcg@5", 5), ("ndcg@11", 11), ("ndcg", 10))
        for start, end in ((page, page + 1), (1, page), (page + 1, page + 2))
    },
    "buried comes before a distractor": lambda: reason("abc", "bca", "a1 b0 c0", "ndcg@2"),
    "a distractor and an unjudged": lambda: reason("abcd", "bcad", "a1 b0"),
    "a distractor and two unjudged": lambda: reason("abcde", "bcdae", "a1 b0"),
    "a lower grade is a distractor": lambda: reason("ab", "ba", "a3 b0.5"),
    "negative is not relevant": lambda: reason("abc", "bac", "a1 b-1"),
    "negative is unjudged": lambda: reason("abc", "bac", "a1 b-1", negative="unjudged"),
    "whole lists": lambda: reason("abcde", "cdeba", "a1 b0", "ndcg@2"),
    "condensed": lambda: reason("abcde", "cdeba", "a1 b0", "ndcg@2", judged_only=True),
    "condensed, within k": lambda: reason("abcd", "bcda", "a1 b0 c0 d0", "ndcg@2",
                                          judged_only=True),
    "threshold 2, passed by 2": lambda: reason("acbx", "bxac", "a2 c2 b2", "recall@2", threshold=2),
    "threshold 2, passed by 1": lambda: reason("acbx", "bxac", "a2 c2 b1", "recall@2", threshold=2),
    "threshold 2, unjudged": lambda: reason("acbx", "bxac", "a2 c2", "recall@2", threshold=2),
    **several(
        "read {} of {}", lambda read, full: reason(IN, OUT, "a1", read={"a": (read, full)}),
        ((100, 400), (200, 400), (201, 400), (399, 400), (0, 400), (50, 50),
        (-1, -1), (-1, 400), (0, 0)),
    ),
    "another was truncated": lambda: reason(IN, OUT, "a1", read={"b": (100, 400)}),
    "what rose was truncated": lambda: reason(OUT, IN, "a1", read={"a": (100, 400)}),
    "ties settled again": lambda: reason("acb", ranked("bac", [3.0, 1.0, 1.0]), "a1 c1", "ndcg@2",
                                         read={"a": (1, 9), "c": (7, 7)}, ties="trec"),
    "as good as any order, for what fell made room": lambda: reason("bac", "abc", "a3 b2.5"),
    "a hundredth": lambda: reason("bacd", ranked("abcd", [100.0, 99.0, 40.0, 0.0]), "a1"),
    "more": lambda: reason("bacd", ranked("abcd", [100.0, 98.999, 40.0, 0.0]), "a1"),
    "near tie comes before buried": lambda: reason(
        "bcdeaf", ranked("bcdefa", [99.0, 8.0, 4.0, 1.5, 1.01, 1.0]), "a1"
    ),
    "truncated comes before buried": lambda: reason("abcdef", "bcdefa", "a1", read={"a": (1, 9)}),
    "ranks in disguise": lambda: straight(0, lambda n: -float(n)),
    # A straight line from first to last meets these at every quarter of the list.
    "ties at every second rank": lambda: straight(1, lambda n: -float((n + 1) // 2)),
    "below the depth": lambda: reason(
        "abcde", Ranking.from_lists([("q", list("bcdae"), [9.0, 8.9, 3.0, NAN, NAN])]), "a1"
    ),
    "the range ends at the depth": lambda: reason(
        "abcde", Ranking.from_lists([BELOW_DEPTH, OTHER]), "a1"
    ),
    "the other query first": lambda: reason(
        "abcde", Ranking.from_lists([OTHER, BELOW_DEPTH]), "a1"
    ),
    "two scores": lambda: reason("ba", ranked("ab", [5.0, 1.0]), "a1 b0"),
    "equal scores": lambda: reason("bac", ranked("abc", [5.0, 5.0, 5.0]), "a1 b0"),
    "one score": lambda: reason("b", ranked("a", [5.0]), "a1 b0"),
    "from below a shorter list": lambda: reason("bcdea", "abc", "a1"),
    # The last place of the challenger's list, and the next row, which is another query's first.
    **{
        f"its old place, {before}": lambda before=before: reason(
            before, Ranking.from_lists([("q", list("abc"), [20.0, 17.0, 15.0]), OTHER]), "a1"
        )
        for before in ("bca", "bcda")
    },
    "it kept its place, below one that rose": lambda: reason("xyab", "xbay", "a1 b1", "map"),
    # Each makes half of the change, or a third.
    "one of two by a hair": lambda: by_a_hair(*moved(2, 0)),
    "one of three by a hair": lambda: by_a_hair(*moved(3, 0)),
    "by a hair, either way": lambda: by_a_hair(
        *moved(2, 2, spare=1)[:2], "a3 b1 c2.5 d1", "ndcg@3"
    ),
    # A gain of 2.26 in two documents against a loss of 2 in one, and the other way around.
    "another moved more, helped": lambda: reason("xyabc", "xbcya", "a4 b2 c2", "dcg@3"),
    "another moved more, hurt": lambda: reason("xbcya", "xyabc", "a4 b2 c2", "dcg@3"),
    "gone, overtaken by all": lambda: reason("xabcd", "xbcde", "a2 b0 x2"),
    "gone, by those within k": lambda: reason("xabcd", "xbcde", "a2 b0 x2", "ndcg@3"),
    "one of each": lambda: reason("axbcde", "cxbade", "a1 b1 c1", "recall@2"),
    "hurt, and nearly as much gained": lambda: reason("abcdefg", "dcefgab", "a2 d3"),
    "in mrr the first counts": lambda: reason(IN, "bdcefgha", "a1 d1 b0", "mrr@5"),
    # A spare rank, because a list that cannot be better is always a rescue.
    **several(
        "{} lost, {} gained", lambda lost, gained: reason(*moved(lost, gained, spare=1)),
        ((8, 4), (9, 5), (4, 8), (5, 9), (0, 1)),
    ),
    "gains of the tie band": lambda: reason("axbcde", "cxbade", "a1 b1 c1", "recall@2",
                                            tie_band=1 / 3),
    "gains beyond it": lambda: reason("axbcde", "cxbade", "a1 b1 c1", "recall@2", tie_band=0.3333),
    # In floating point three tenths add up to 0.30000000000000004.
    **{
        f"three tenths, a band of {band}": lambda band=band: reason(
            "abcxdefghij", "defxabcghij", "a1 b1 c1 d1 e1 f1 g1 h1 i1 j1", "recall@4", tie_band=band
        )
        for band in (0.3, 0.29)
    },
    "no sum over documents": lambda: reason("ab", "ba", "a1", "judged@5"),
}  # fmt: skip


def test_each_rule_decides_on_its_side_of_its_boundary(approved):
    approved("analysis/reasons", results(CASES, told))


def test_the_documentation_has_the_codes_in_their_order():
    documented = (
        (ROOT / "docs" / "statistics" / "causes.md").read_text().split("## Reasons for changes")[1]
    )
    rows = [line for line in documented.split("## ")[0].splitlines() if line.startswith("| ")]
    codes = [row.split("`")[1] for row in rows if "`" in row]
    assert [each.code for each in REASONS] == codes
    assert len(set(codes)) == len(codes)


def made_of_all_kinds() -> tuple[Ranking, Ranking, pd.DataFrame]:
    """Return lists of up to 14 of 16 documents, labels from -1 to 3, similar scores, and queries
    that a ranking lacks."""
    rng = np.random.default_rng(28)
    docs = np.array([f"d{number}" for number in range(16)], dtype=object)
    lists: tuple[list, list] = ([], [])
    rows = []
    for query in (f"q{number}" for number in range(400)):
        for side in lists:
            if length := int(rng.integers(0, 15)):
                scores = np.sort(np.round(rng.normal(size=length) * rng.choice([1, 8]), 2))[::-1]
                scores = scores - 1e-3 * np.arange(length)
                side.append((query, list(rng.permutation(docs)[:length]), list(scores)))
        for doc in rng.permutation(docs)[: rng.integers(1, 9)]:
            rows.append((query, doc, float(rng.choice([-1, 0, 0, 1, 2, 3]))))
    qrels = pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])
    return *map(Ranking.from_lists, lists), qrels


@pytest.mark.parametrize("name", [*SETS, "all kinds"])
def test_the_reason_of_every_query_follows_from_the_documentation(name):
    if name == "all kinds":
        before, after, qrels = made_of_all_kinds()
    else:
        data = loaded(name).dataset
        before, after, qrels = data.candidates, loaded(name).runs[-1].ranking, data.qrels
    sides = [RankedLabels(each, judge(each, qrels)) for each in (before, after)]
    found = reasons(*sides, parse_measure("ndcg@10")).set_index("query_id")["reason"]
    expected = {}
    for query, own in qrels.groupby("query_id"):
        known = dict(zip(own["doc_id"], own["label"], strict=True))
        lists = [
            list(zip(*each.documents_of(query), strict=True)) or None for each in (before, after)
        ]
        relevant = any(label > 0 for label in known.values())
        expected[query] = why.reason(*lists, known, RULES[0])
        if None in lists:
            expected[query] = "missing" if relevant else "no_relevant_label"
    assert found.to_dict() == expected
    assert len(set(expected.values())) >= (8 if name == "all kinds" else 3)


@settings(max_examples=20)
@given(scale=st.floats(1e-6, 1e6), shift=st.floats(-1e3, 1e3))
def test_a_near_tie_does_not_depend_on_the_scale_of_the_scores(scale, shift):
    close = [(score + shift) * scale for score in CLOSE]
    assert reason("bacd", ranked("abcd", close), "a1")["reason"] == "near_tie"


@pytest.mark.parametrize(
    ("lists", "labels", "expected"),
    [
        (
            ("xabcd", "xdcbeya"),
            "a3 b0 d3",
            "d other 5→2 3, c unjudged 4→3 nan, b worse 3→4 0, e unjudged nan→5 nan",
        ),
        (("bac", "bac"), "a1", ""),
        (("bc", "cb"), "a1", ""),
    ],
)
def test_the_evidence_is_what_overtook_the_main_document_best_first(lists, labels, expected):
    own = split(*map(ranked, lists), table(labels), "q", parse_measure("ndcg@5"))
    found = evidence(reason(*lists, labels), own, Conventions())
    assert expected == ", ".join(
        f"{each.doc_id} {each.kind} {each.rank_before:g}→{each.rank_after:g} {each.label:g}"
        for each in found
    )


def test_reasons_sum_to_the_queries_and_the_change_that_the_mean_counts():
    reason_of = pd.Series({"a": "mixed", "b": "failed", "c": "buried", "d": "mixed", "e": "idle"})
    pairs = pd.DataFrame({"query_id": list("abcdx"), "delta": [0.2, NAN, -0.4, -0.1, NAN]})
    found = counted(reason_of, pairs)
    assert list(found.index) == ["buried", "mixed"], "in the order of a list, and no other"
    assert found["queries"].tolist() == [1, 2]
    assert found["mean"].tolist() == pytest.approx([-0.4, 0.05])
    assert found["adds"].tolist() == pytest.approx([-0.4 / 3, 0.1 / 3])
    assert counted(reason_of, pairs.iloc[[1, 4]]).empty


DOCS = "abcdefghij"


@st.composite
def cases(draw):
    """Return five queries, each in either ranking or not, with separate labels."""
    sides, labels = ([], []), []
    for query in "vwxyz":
        for side in sides:
            docs = draw(st.lists(st.sampled_from(DOCS), unique=True))
            steps = draw(st.lists(st.sampled_from([0.0, 0.01, 1.0]), min_size=10, max_size=10))
            side += [
                (query, doc, -score)
                for doc, score in zip(docs, np.cumsum(steps)[: len(docs)], strict=True)
            ]
        own = draw(
            st.dictionaries(st.sampled_from(DOCS + "k"), st.sampled_from([-1, 0, 0.5, 1, 3]))
        )
        labels += [(query, doc, float(label)) for doc, label in own.items()]
    frames = [pd.DataFrame(side, columns=["q", "d", "s"]) for side in sides]
    rankings = [
        Ranking.from_columns(side["q"].astype("str"), side["d"].astype("str"), side["s"])
        for side in frames
    ]
    qrels = pd.DataFrame(labels, columns=["query_id", "doc_id", "label"])
    qrels = qrels.astype({"query_id": "str", "doc_id": "str", "label": float})
    return rankings, qrels


@pytest.mark.parametrize("name", QUALITY)
@settings(max_examples=10)
@given(
    case=cases(), k=st.sampled_from([None, 1, 3, 25]), judged_only=st.booleans(),
    ties=st.sampled_from(["as_ranked", "trec"]),
)  # fmt: skip
def test_every_labelled_query_has_one_reason_that_its_documents_bear_out(
    name, case, k, judged_only, ties
):
    rankings, qrels = case
    measure = parse_measure(name if k is None or not registry[name].has_cutoff else f"{name}@{k}")
    rules = Conventions(judged_only=judged_only, ties=ties)
    sides = [RankedLabels(each, judge(each, qrels, rules)) for each in rankings]
    found = reasons(*sides, measure, rules)
    assert list(found["query_id"]) == list(sides[0].judged.query_ids)
    assert set(found["reason"]) <= {each.code for each in REASONS}
    values = [evaluate(side.judged, [measure], rules).values[:, 0] for side in sides]
    delta = values[1] - values[0]
    known = ~np.isnan(delta) & (found["reason"] != "failed").to_numpy()
    np.testing.assert_allclose(found["delta"][known], delta[known], rtol=0, atol=1e-12)
    hurt = found["reason"].isin(["truncated", "buried", "distractor_lifted", "unjudged_lifted"])
    assert (found["delta"][hurt] < -0.005).all()
    assert (found["delta"][found["reason"] == "rescued"] > 0.005).all()
    still = found["reason"].isin(
        ["already_ideal", "idle", "no_relevant_candidate", "below_cutoff", "nothing_judged"]
    )
    assert (found["delta"][still].abs() <= 0.005 + 1e-9).all()
    for _, row in found.iterrows():
        own = split(*rankings, qrels, row["query_id"], measure, rules)
        if own.why_not or not np.isfinite(row["rank_before"]):
            continue
        counts = [each.kind for each in evidence(row, own, rules)]
        told = [counts.count(kind) for kind in ("worse", "unjudged", "other")]
        assert told == [row["worse"], row["unjudged"], row["other"]]
