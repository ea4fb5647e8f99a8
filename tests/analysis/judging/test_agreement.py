import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from rankdash.core.data.judgements import Judgements
from rankdash.core.sampling.label_plan import pool_of
from rankdash.core.sampling.rater_agreement import (
    FEWEST_PAIRS,
    agreement,
    clustered_reach,
    lifted_by,
    repeated,
)
from tests.lists import ranking
from tests.results import results, shown


def judged(rows, scale=(0, 3), name="Judge A") -> Judgements:
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "grade"])
    failed = table["grade"].isna()
    return Judgements(name, scale, table.assign(error=np.where(failed, "timeout", "")))


def labelled(rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def random_pairs(queries: int, each: int, seed: int = 1):
    rng = np.random.default_rng(seed)
    ids = [(f"q{q}", f"d{d}") for q in range(queries) for d in range(each)]
    label = rng.integers(0, 4, len(ids)).astype(float)
    grade = np.where(rng.random(len(ids)) < 0.6, label, rng.integers(0, 4, len(ids)))
    table = labelled([(*pair, value) for pair, value in zip(ids, label, strict=True)])
    rows = [(*pair, value) for pair, value in zip(ids, grade, strict=True)]
    return judged(rows), table, label.astype(int), grade.astype(int)


@pytest.mark.parametrize(("queries", "each"), [(2, 6), (30, 20)])
def test_matrix_and_kappa_are_those_of_scikit_learn(queries: int, each: int) -> None:
    judge, labels, label, grade = random_pairs(queries, each)
    # The order of rows does not matter.
    found = agreement(judge, labels.sample(frac=1, random_state=3), threshold=2)
    assert (found.unweighted.table == confusion_matrix(label, grade)).all()
    for ours, theirs in (("unweighted", None), ("quadratic", "quadratic")):
        expected = cohen_kappa_score(label, grade, weights=theirs)
        assert getattr(found, ours).kappa == pytest.approx(expected, abs=1e-12)
    expected = cohen_kappa_score(label >= 2, grade >= 2)
    assert found.relevant.kappa == pytest.approx(expected, abs=1e-12)
    row = found.overall
    assert row["people_relevant"] == pytest.approx((label >= 2).mean())
    assert row["judge_relevant"] == pytest.approx((grade >= 2).mean())
    assert row["over"] == pytest.approx((grade > label).mean())
    assert row["under"] == pytest.approx((grade < label).mean())
    assert row["agree"] == pytest.approx((grade == label).mean())
    assert row["difference"] == pytest.approx((grade - label).mean())
    assert (row["queries"], row["pairs"]) == (queries, queries * each)


ROWS = [
    ("a", "1", 3.0, 3.0),
    ("a", "2", 0.0, 1.0),
    ("a", "3", 3.0, 0.0),
    ("b", "1", 0.0, 2.0),
    ("b", "2", 2.0, 2.0),
    ("c", "1", 1.0, 3.0),
]


def small(**fields):
    judge = judged([(query, doc, grade) for query, doc, _, grade in ROWS])
    return agreement(judge, labelled([row[:3] for row in ROWS]), threshold=2, **fields)


def by_group() -> pd.DataFrame:
    groups = {
        "language": pd.Series({"a": "one", "b": "other", "c": None, "never judged": "one"}),
        "length": pd.Series({("a", "2"): "long", ("b", "1"): "long", ("b", "9"): "short"}),
    }
    return small().by_group(groups)


ONE_SIDE = pd.Series({("a", "1"): "reranked", ("b", "1"): "reranked", ("z", "1"): "first"})
TWO = judged([("a", "1", 3.0), ("a", "2", 0.0)])
# A label of 2 of 100 is not one of the highest grade: few such labels may be on the judge's scale,
# many are not, and neither are only the labels of pairs that the judge graded too.
HUNDRED = [("a", "1", 2.0), ("a", "2", 0.0), *(("b", str(n), n % 3) for n in range(98))]
CASES = {
    "the furthest apart first": small,
    "by groups": by_group,
    "pairs that one side has do not count": lambda: agreement(
        judged([("a", "1", 3.0), ("a", "2", np.nan), ("a", "9", 0.0)]),
        labelled([("a", "1", 3.0), ("a", "2", 0.0), ("b", "1", 2.0)]),
        threshold=1,
    ),
    "nothing in common": lambda: agreement(
        judged([("a", "1", 3.0)]), labelled([("b", "1", 0.0)]), threshold=1
    ),
    **{
        f"{len(rows)} labels up to {rows[-1][2]}": lambda rows=rows: agreement(
            TWO, labelled(rows), threshold=1
        ).binary
        for rows in (HUNDRED, HUNDRED[1:], [*HUNDRED, ("b", "98", 3.0)])
    },
    "nor by one side of many": lambda: agreement(*random_pairs(8, 2)[:2], threshold=1).favours(
        pd.Series("new", index=pd.MultiIndex.from_frame(random_pairs(8, 2)[1].iloc[:, :2])),
        "new", "old",
    ),
    "nobody is favoured by one side alone": lambda: small().favours(
        ONE_SIDE, "reranked", "first"
    ),
}  # fmt: skip


def told(found: object) -> object:
    if isinstance(found, pd.DataFrame):
        return "\n".join(shown(row.dropna()) for _, row in found.iterrows())
    if not hasattr(found, "disagreements"):
        return found
    numbers = {name: getattr(found, name) for name in ("binary", "cut", "highest", "top")}
    table = [] if found.overall["pairs"] == 0 else [found.unweighted.grades, found.unweighted.table]
    known = {name: value for name, value in found.overall.items() if not pd.isna(value)}
    return (numbers, "without a grade:", found.without_grade, table, known,
            "disagreements:", found.disagreements)  # fmt: skip


def test_what_is_compared_and_where_they_disagree(approved) -> None:
    nothing = agreement(judged([("a", "1", 3.0)]), labelled([("b", "1", 0.0)]), threshold=1)
    assert nothing.by_group().empty and not small().by_group().empty
    approved("analysis/judge_agreement", results(CASES, told))


def test_which_system_lifted_a_document_and_which_the_judge_favours() -> None:
    queries = [f"q{n}" for n in range(12)]
    pool = pool_of(
        {
            "first": ranking(**dict.fromkeys(queries, "abc")),
            "reranked": ranking(**dict.fromkeys(queries, "bac")),
        },
        2,
    )
    lifted = lifted_by(pool, "reranked", "first")
    assert lifted[("q0", "a")] == "first"
    assert lifted[("q0", "b")] == "reranked"
    rows = [
        (query, *(("a", 2.0, 2.0) if doc == "a" else ("b", 1.0, 2.0 + (n % 3 == 0))))
        for n, query in enumerate(queries)
        for doc in "ab"
    ]
    judge = judged([(query, doc, grade) for query, doc, _, grade in rows])
    found = agreement(judge, labelled([row[:3] for row in rows]), threshold=1)
    favour = found.favours(lifted, "reranked", "first")
    assert favour.difference == pytest.approx(4 / 3)
    assert favour.proven
    assert favour.low < 4 / 3 < favour.high
    # The t interval of the difference between a mean with variance and a constant mean.
    spread = np.std([2.0 if n % 3 == 0 else 1.0 for n in range(12)], ddof=1)
    assert favour.high - 4 / 3 == pytest.approx(2.200985 * spread / 12**0.5, rel=1e-6)
    table = found.by_group({"lifted": lifted}).set_index(["by", "group"])
    assert table.loc[("lifted", "reranked"), "over"] == 1.0
    assert table.loc[("lifted", "first"), "over"] == 0.0


def test_the_interval_of_a_clustered_mean() -> None:
    rng = np.random.default_rng(8)
    values = rng.random(30)
    alone = 2.04523 * values.std(ddof=1) / 30**0.5
    assert clustered_reach(values, np.arange(30), 0.95) == pytest.approx(alone, rel=1e-5)
    # Pairs that only repeat their query add no information to the query.
    again, owners = np.repeat(values, 7), np.repeat(np.arange(30), 7)
    assert clustered_reach(again, owners, 0.95) == pytest.approx(alone, rel=1e-5)
    assert np.isnan(clustered_reach(values, np.zeros(30, dtype=int), 0.95))


def test_repeats_of_a_judge() -> None:
    first = judged([("a", "1", 3), ("a", "2", 0), ("a", "3", 1), ("b", "1", 2)])
    second = judged([("b", "1", 2), ("a", "1", 3), ("a", "2", 1), ("a", "3", np.nan)])
    third = judged([("a", "1", 3), ("a", "2", 1), ("b", "1", 2)])
    found = repeated([first, second, third])
    assert (found.repeats, found.pairs) == (3, 3)
    assert found.same == pytest.approx(2 / 3)
    # Three pairs are too few for kappa.
    assert np.isnan(found.kappa)
    grades = np.random.default_rng(2).integers(0, 4, (3, 12))
    many = [judged([("a", str(n), grade) for n, grade in enumerate(each)]) for each in grades]
    expected = [
        cohen_kappa_score(grades[one], grades[two]) for one, two in ((0, 1), (0, 2), (1, 2))
    ]
    assert repeated(many).kappa == pytest.approx(np.mean(expected), abs=1e-12)
    none = repeated([first, judged([("z", "1", 0)])])
    assert none.pairs == 0
    assert np.isnan(none.same)


@pytest.mark.parametrize(("queries", "each"), [(4, 2), (5, 2), (6, 2), (2, 8)])
def test_few_pairs_have_no_kappa_and_no_interval(queries: int, each: int) -> None:
    """Kappa needs 10 pairs, and an interval needs 6 queries; the matrix and the shares need no
    minimum."""
    judge, labels, label, grade = random_pairs(queries, each)
    found = agreement(judge, labels, threshold=2)
    kappas, intervals = queries * each >= FEWEST_PAIRS, queries == 6
    assert found.unweighted.table.sum() == queries * each
    row = found.overall
    assert row["agree"] == pytest.approx((label == grade).mean())
    for name in ("kappa_low", "quadratic_high", "difference_low", "difference_high"):
        assert np.isfinite(row[name]) == intervals
    for kappa in (found.unweighted, found.quadratic, found.relevant):
        assert np.isfinite(kappa.kappa) == kappas
        assert np.isfinite([kappa.low, kappa.high]).all() == intervals
    kinds = pd.Series(["x", "y"], index=["q0", "q1"])
    own = found.by_group({"kind": kinds})
    own = own[own["by"] == "kind"]
    assert own["pairs"].tolist() == [each, each]
    assert own[["kappa", "kappa_low", "difference_low"]].isna().all(axis=None)
    assert own["difference"].notna().all()
    places = pd.MultiIndex.from_frame(labels[["query_id", "doc_id"]])
    owner = pd.Series((["new", "old"] * queries * each)[: queries * each], index=places)
    favour = found.favours(owner, "new", "old")
    assert np.isfinite(favour.difference) == kappas
    assert np.isfinite(favour.low) == intervals


@pytest.mark.parametrize(
    ("labels", "scale", "threshold", "cut"),
    [
        # Halfway between the labels at the threshold, at the same share of the judge's scale.
        ([0, 1], (0, 3), 1, 2),
        ([0, 1], (0, 10), 1, 5),
        ([0, 1, 2], (0, 3), 1, 1),
        ([0, 1, 2], (0, 10), 1, 3),
        ([0, 1, 2], (0, 10), 2, 8),
        ([0, 1, 2, 3], (0, 100), 2, 50),
        ([0, 1, 2, 3], (0, 1), 1, 1),
        ([0, 1, 2, 3, 4], (0, 3), 1, 1),
    ],
)
def test_another_scale_is_compared_as_relevant_or_not(labels, scale, threshold, cut) -> None:
    rng = np.random.default_rng(1)
    label = rng.choice(labels, 400).astype(float)
    grade = rng.integers(scale[0], scale[1] + 1, 400).astype(float)
    pairs = [(f"q{n // 10}", f"d{n}") for n in range(400)]
    table = labelled([(*pair, each) for pair, each in zip(pairs, label, strict=True)])
    judge = judged([(*pair, each) for pair, each in zip(pairs, grade, strict=True)], scale)
    found = agreement(judge, table, threshold=threshold)
    assert found.binary
    assert (found.cut, found.highest, found.top) == (cut, labels[-1], scale[1])
    expected = cohen_kappa_score(label >= threshold, grade >= cut)
    for kappa in (found.unweighted, found.quadratic, found.relevant):
        assert kappa.kappa == pytest.approx(expected, abs=1e-12)
    # A judge with the labels as grades, on another scale, agrees in full.
    share = label / labels[-1]
    same = judged(
        [(*pair, np.round(each * scale[1])) for pair, each in zip(pairs, share, strict=True)], scale
    )
    if scale[1] > 1:
        assert agreement(same, table, threshold=threshold).relevant.kappa == pytest.approx(1)
