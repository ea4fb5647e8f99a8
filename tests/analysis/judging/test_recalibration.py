"""Changes expected from a judge's grades, by the human labels of other queries."""

from dataclasses import replace

import numpy as np
import pytest

from rankdash.core.sampling.bias_corrected import correct, expected_changes
from rankdash.core.sampling.label_plan import LabelPool

NAN = float("nan")


def pool_like(queries: int, docs: int) -> LabelPool:
    rng = np.random.default_rng(1)
    ranks = [
        np.concatenate([rng.permutation(docs) + 1.0 for _ in range(queries)]) for _ in range(2)
    ]
    ids = (np.array([f"{kind}{n}" for n in range(size)], dtype=object)
           for kind, size in (("q", queries), ("d", queries * docs)))  # fmt: skip
    query_ids, doc_ids = ids
    owner = np.repeat(np.arange(queries), docs)
    return LabelPool(("one", "other"), query_ids, owner, doc_ids, np.array(ranks))


def summed(pool: LabelPool):
    """Return a function of changes: each label counts for the system that ranks it higher."""
    side = np.sign(pool.ranks[0] - pool.ranks[1])
    return lambda labels: np.bincount(pool.query, labels * side, len(pool.query_ids))


def judged(queries: int = 60, docs: int = 10, people: int = 20, top: int = 3):
    """Return a pool, grades and labels (NaN except for the first queries)."""
    rng = np.random.default_rng(2)
    pool = pool_like(queries, docs)
    labels = rng.choice(top + 1, len(pool), p=[0.7, *[0.3 / top] * top]).astype(float)
    wrong = rng.random(len(pool)) < 0.3
    grades = np.where(wrong, rng.integers(0, top + 1, len(pool)), labels).astype(float)
    return pool, grades, np.where(pool.query < people, labels, NAN)


def test_a_grade_is_worth_what_people_say_of_it_by_who_ranks_it_higher() -> None:
    """Half of the 1s are relevant if the challenger ranks the document higher; otherwise all."""
    pool = pool_like(400, 10)
    rng = np.random.default_rng(3)
    grades = (rng.random(len(pool)) < 0.4).astype(float)
    lifted = pool.ranks[1] < pool.ranks[0]
    every_other = np.cumsum(grades * lifted) % 2
    labels = grades * np.where(lifted, every_other, 1)
    labels[pool.query >= 200] = NAN
    found = expected_changes(pool, grades, labels, summed(pool))
    worth = grades * np.where(lifted, 0.5, np.where(pool.ranks[1] > pool.ranks[0], -1.0, 0.0))
    expected = np.bincount(pool.query, worth)
    assert found == pytest.approx(expected, abs=0.45)
    assert found[200:].mean() == pytest.approx(expected[200:].mean(), abs=0.05)
    assert found[:200].mean() == pytest.approx(expected[:200].mean(), abs=0.05)


@pytest.mark.parametrize("place", [0, 7, 19])
def test_what_people_said_of_a_query_is_not_used_for_it(place: int) -> None:
    pool, grades, labels = judged()
    changed = np.where(pool.query == place, 3.0 - labels, labels)
    before, after = (
        expected_changes(pool, grades, each, summed(pool)) for each in (labels, changed)
    )
    assert after[place] == pytest.approx(before[place], abs=1e-12)
    assert (np.delete(after, place) != np.delete(before, place)).sum() > 30


def test_names_order_scale_and_side_of_systems_change_nothing_else() -> None:
    pool, grades, labels = judged()
    found = expected_changes(pool, grades, labels, summed(pool))
    assert np.ptp(found) > 1
    turned = replace(pool, systems=pool.systems[::-1], ranks=pool.ranks[::-1])
    assert expected_changes(turned, grades, labels, summed(turned)) == pytest.approx(-found)
    # Only the equality of grades matters, not their values.
    for scaled in (10 * grades + 5, np.sqrt(grades), grades - 7):
        assert expected_changes(pool, scaled, labels, summed(pool)) == pytest.approx(found)
    order = np.random.default_rng(4).permutation(60)
    within = np.random.default_rng(5).permuted(np.tile(range(10), (60, 1)), axis=1)
    rows = (order[:, None] * 10 + within).ravel()
    other = replace(
        pool,
        systems=("A", "B"),
        query_ids=pool.query_ids[order],
        doc_ids=pool.doc_ids[rows],
        ranks=pool.ranks[:, rows],
    )
    moved = expected_changes(other, grades[rows], labels[rows], summed(other))
    assert moved == pytest.approx(found[order])


def test_queries_without_grades_or_values_and_a_rare_grade() -> None:
    pool, grades, labels = judged()
    none = np.where(np.isin(pool.query, [2, 43]), NAN, grades)
    found = expected_changes(pool, none, labels, summed(pool))
    assert np.flatnonzero(np.isnan(found)).tolist() == [2, 43]

    def changes(drawn):
        relevant = np.bincount(pool.query, drawn >= 3) > 0
        return np.where(relevant & (np.arange(60) != 11), 0.25, NAN)

    found = expected_changes(pool, grades, labels, changes)
    assert np.isnan(found[11])
    assert (np.delete(found, 11) == 0.25).mean() > 0.9
    # The expected label of a rare grade equals the next grade's.
    grades = np.minimum(grades, 2.0)
    plain = expected_changes(pool, grades, labels, summed(pool))
    rare = grades.copy()
    rare[51 * 10 + int(np.flatnonzero(grades[510:520] == 2)[0])] = 3.0
    assert expected_changes(pool, rare, labels, summed(pool)) == pytest.approx(plain)


def test_a_missing_grade_is_one_more_grade_whose_worth_is_learned() -> None:
    """A judge that fails on all relevant documents, or on one in five; failure is like a grade."""
    pool, grades, labels = judged(queries=120, people=60)
    rng = np.random.default_rng(9)
    for lost in (grades == 3, rng.random(len(pool)) < 0.2):
        failed = np.where(lost, NAN, grades)
        found = expected_changes(pool, failed, labels, summed(pool))
        named = np.where(lost, -1.0, grades)
        assert found == pytest.approx(expected_changes(pool, named, labels, summed(pool)))
        assert not np.isnan(found).any()
    # The grades of the other documents stay informative.
    whole = expected_changes(pool, grades, labels, summed(pool))
    assert np.corrcoef(found, whole)[0, 1] > 0.8


def test_a_grade_that_is_missing_in_few_documents_is_worth_what_all_are() -> None:
    pool, grades, labels = judged(queries=120, people=60)
    places = [(n, n * 10) for n in range(60, 120)]
    grades[[place for _, place in places]] = NAN
    worths = [
        expected_changes(pool, grades, labels, lambda drawn, at=at: np.full(120, drawn[at]))[query]
        for query, at in places[::6]
    ]
    assert np.mean(worths) == pytest.approx(np.nanmean(labels), abs=0.1)


@pytest.mark.parametrize("lacking", [0, 1], ids=["grades", "labels"])
def test_a_judge_without_grades_leaves_what_people_say(lacking: int) -> None:
    pool, *given = judged()
    given[lacking] = np.full(len(pool), NAN)
    found = expected_changes(pool, *given, summed(pool))
    assert np.isnan(found).all()
    people = np.where(np.arange(60) < 20, np.random.default_rng(6).normal(size=60), NAN)
    corrected = correct(people, np.zeros(60), expected=found, level=0.95)
    assert (corrected.weight, corrected.corrected) == (0, corrected.people)


@pytest.mark.parametrize("many", ["grades", "labels", "both"])
def test_a_scale_without_steps_is_taken_in_steps(many: str) -> None:
    pool, grades, labels = judged()
    rng = np.random.default_rng(7)
    plain = expected_changes(pool, grades, labels, summed(pool))
    if many != "labels":
        grades = grades + rng.uniform(-0.3, 0.3, len(grades))
    if many != "grades":
        labels = labels + rng.uniform(-0.3, 0.3, len(labels))
    found = expected_changes(pool, grades, labels, summed(pool))
    assert np.corrcoef(found, plain)[0, 1] > 0.85


@pytest.mark.parametrize("favours", [False, True])
def test_it_follows_people_more_closely_than_the_judge_does(favours: bool) -> None:
    """On queries without human labels, by the human labels of 40 others. Errors in favour of a
    system nearly disappear."""
    pool, _, labels = judged(queries=240, people=240)
    off = np.random.default_rng(8).choice([-1.0, 0.0, 1.0], len(labels))
    grades = np.clip(labels + (pool.ranks[1] < pool.ranks[0] if favours else off), 0, 3)
    known = np.where(pool.query < 40, labels, NAN)
    expected = expected_changes(pool, grades, known, summed(pool))[40:]
    people, judge = (summed(pool)(each)[40:] for each in (labels, grades))
    ours, theirs = (np.corrcoef(people, side)[0, 1] for side in (expected, judge))
    assert ours > theirs
    if favours:
        assert abs((expected - people).mean()) < abs((judge - people).mean()) / 3
