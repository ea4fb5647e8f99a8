from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from rankdash.core.sampling.label_plan import (
    Additive,
    Answered,
    LabelPlan,
    LabelPool,
    labels_table,
    next_pairs,
    no_answers,
)
from rankdash.core.sampling.status import status
from rankdash.features.label.trail import read_plan, write_answers, write_plan
from tests.results import results

QUERIES, DOCS = 12, 10


@pytest.fixture(scope="module")
def plan() -> LabelPlan:
    """Return a plan of 120 pairs; the second system has the same documents in reverse order."""
    ranks = np.tile(np.arange(1.0, DOCS + 1), QUERIES)
    pool = LabelPool(
        ("old", "new"),
        np.array([f"q{number}" for number in range(QUERIES)], dtype=object),
        np.repeat(np.arange(QUERIES), DOCS),
        np.array([f"d{number}" for number in range(DOCS)] * QUERIES, dtype=object),
        np.vstack([ranks, 11 - ranks]),
        excluded=("only old",),
    )
    return LabelPlan.make(pool, Additive.of("dcg@10", top=3), seed=2)


def answers(plan: LabelPlan, *rows: tuple[int, float, str, str]) -> pd.DataFrame:
    """Return a table of answers. rows: (place in the order of draws, label, rater, time)."""
    pairs = plan.order[[place for place, *_ in rows]]
    ids = plan.pool.query_ids[plan.pool.query[pairs]], plan.pool.doc_ids[pairs]
    table = pd.DataFrame([row[1:] for row in rows], columns=["label", "rater", "time"])
    return pd.DataFrame(dict(zip(("query_id", "doc_id"), ids, strict=True))).join(
        table.astype({"label": float})
    )


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.25, 10), (0.5, 20), (1.0, 40)])
def test_the_share_of_double_labels_is_what_was_asked(plan, share: float, count: int) -> None:
    rows = [(place, 1, "ann", "") for place in range(40)]
    done = Answered.of(plan.pool, answers(plan, *rows))
    first = set(plan.order[:40])
    asked = [pair for pair in next_pairs(plan, done, "ben", 120, doubled=share) if pair in first]
    assert len(asked) == count
    # A pair never returns to its first rater, and never has a third.
    assert not first & set(next_pairs(plan, done, "ann", 120, doubled=share))
    twice = Answered.of(
        plan.pool, answers(plan, *rows, *((place, 1, "ben", "") for place in range(40)))
    )
    assert not first & set(next_pairs(plan, twice, "cat", 120, doubled=share))


def test_labels_go_out_with_draw_probability_raters_and_time(plan) -> None:
    known = np.full(len(plan.pool), np.nan)
    known[plan.order[5]] = 3.0
    again = LabelPlan.make(plan.pool, plan.metric, seed=2, known=known)
    rows = answers(
        again,
        (1, 2, "ben", "2026-01-01T10:00:00+00:00"),
        (1, 1, "ann", "2026-01-02T10:00:00+00:00"),
        (0, np.nan, "ann", ""),
    )
    table = labels_table(again, Answered.of(again.pool, rows))
    assert list(table) == ["query_id", "doc_id", "label", "draw", "probability", "rater", "time"]
    drawn = table[table["rater"] == "ann; ben"].iloc[0]
    assert (drawn["label"], drawn["draw"], drawn["rater"]) == (1.5, 2, "ann; ben")
    assert drawn["time"] == "2026-01-02T10:00:00+00:00"
    assert drawn["probability"] == pytest.approx(again.probabilities[1])
    before = table[table["rater"] == ""].iloc[0]
    assert before["label"] == 3
    assert pd.isna(before["draw"])
    untold = table[table["rater"] == "ann"].iloc[0]
    assert (untold["label"], untold["draw"]) == ("cannot tell", 1)
    assert len(table) == 3


def test_the_status_has_raters_and_how_they_agree(plan) -> None:
    rng = np.random.default_rng(5)
    ann = rng.integers(0, 4, 60)
    ben = np.where(rng.random(60) < 0.7, ann, rng.integers(0, 4, 60))
    # Every 12 seconds, with a pause of an hour in the middle.
    start = pd.Timestamp("2026-01-01T09:00:00Z")
    seconds = [12 * place + 3600 * (place >= 30) for place in range(60)]
    times = [(start + pd.Timedelta(seconds=each)).isoformat() for each in seconds]
    rows = answers(
        plan,
        *((place, ann[place], "ann", times[place]) for place in range(60)),
        *((place, ben[place], "ben", "") for place in range(60)),
        (60, np.nan, "ben", ""),
    )
    found = status(plan, Answered.of(plan.pool, rows))
    assert [rater.name for rater in found.raters] == ["ann", "ben"]
    assert found.raters[0].grades == {grade: (ann == grade).sum() for grade in range(4)}
    assert (found.raters[1].cannot_tell, found.raters[1].answers) == (1, 61)
    assert found.raters[0].seconds == found.seconds == 12
    assert np.isnan(found.raters[1].seconds)
    (agreement,) = found.agreements
    assert agreement.raters == ("ann", "ben")
    assert agreement.unweighted.kappa == pytest.approx(cohen_kappa_score(ann, ben), abs=1e-12)
    assert agreement.quadratic.kappa == pytest.approx(
        cohen_kappa_score(ann, ben, weights="quadratic"), abs=1e-12
    )
    assert found.cannot_tell == 1
    assert found.estimates[0].labels == 61
    if found.needed is not None:
        assert found.seconds_left == found.needed * 12
    numbers = found.numbers()
    assert numbers["raters"][1]["seconds_per_label"] is None
    assert numbers["agreements"][0]["pairs"] == 60


def test_a_plan_and_its_answers_are_read_as_they_were_written(plan) -> None:
    known = np.full(len(plan.pool), np.nan)
    known[3] = 2.0
    odd = plan.pool.doc_ids.copy()
    odd[0] = 'd "0",\n\ufffd 中'
    pool = replace(
        plan.pool, doc_ids=odd, ranks=np.where(plan.pool.ranks > 9, np.inf, plan.pool.ranks)
    )
    written = LabelPlan.make(pool, plan.metric, seed=9, known=known, level=0.9)
    rows = answers(written, (0, 1, "ann", "t"), (1, np.nan, "<b>ben</b>", ""))
    content = write_plan(written) + write_answers(rows[:1]) + write_answers(rows[1:])
    found, given = read_plan(content, "plan.jsonl")
    assert found.order.tolist() == written.order.tolist()
    assert found.probabilities == pytest.approx(written.probabilities, abs=0)
    assert np.array_equal(found.pool.ranks, pool.ranks)
    assert np.array_equal(found.known, known, equal_nan=True)
    assert found.pool.doc_ids.tolist() == odd.tolist()
    for name in ("metric", "contrasts", "seed", "level"):
        assert getattr(found, name) == getattr(written, name)
    assert (found.pool.systems, found.pool.excluded) == (("old", "new"), ("only old",))
    pd.testing.assert_frame_equal(given, rows)
    assert write_plan(found) == write_plan(written)


@pytest.mark.parametrize("mode", ["random", "query", "weight"])
def test_how_it_was_drawn_is_in_the_plan(plan, mode) -> None:
    written = LabelPlan.make(plan.pool, plan.metric, seed=9, mode=mode)
    found, _ = read_plan(write_plan(written), "plan.jsonl")
    assert found.mode == mode
    assert found.draw.tolist() == written.draw.tolist()
    assert found.probabilities == pytest.approx(written.probabilities, abs=0)
    # A plan of an earlier version has no field "mode".
    assert (b"mode" in write_plan(written)) == (mode != "weight")


def test_answers_are_joined_passed_over_and_read_back(plan, approved) -> None:
    pool = plan.pool
    several = answers(
        plan, (0, 1, "ann", ""), (0, 3, "ben", ""), (0, 2, "ann", ""), (1, np.nan, "ann", ""),
        (2, np.nan, "ann", ""), (2, 1, "ben", ""),
    )  # fmt: skip
    clock = ["00:00:00", "00:01:40", "00:01:50", "00:03:20"]
    timed = [(at, 1, "ann", f"2026-11-23T{time}+00:00") for at, time in enumerate(clock)]
    # Resumed after each of the two pauses, and after another annotator's.
    ends = {
        "ann": ["2026-11-23T00:03:10+00:00", "2026-11-23T00:01:28+00:00"],
        "ben": ["2026-11-23T00:01:45+00:00"],
    }
    place = {int(pair): at for at, pair in enumerate(plan.order)}
    lines = write_plan(plan).splitlines()

    def first_four(rows: pd.DataFrame) -> dict[str, object]:
        found = Answered.of(pool, rows)
        columns = ("labels", "cannot_tell", "raters")
        told = {name: getattr(found, name)[plan.order][:4] for name in columns}
        return told | {"latest": len(found.latest)}

    def next_for(rater: str, count: int, *rows: tuple) -> list[int]:
        done = Answered.of(pool, answers(plan, *rows))
        return [place[int(pair)] for pair in next_pairs(plan, done, rater, count)]

    def read(*kept: bytes) -> object:
        return len(read_plan(b"".join(each + b"\n" for each in kept), "plan.jsonl")[1])

    done = ((0, 1, "ann", ""), (2, 1, "ben", ""))
    all_of_ann = [(at, 1, "ann", "") for at in range(len(plan.order))]
    cases = {
        "a later answer replaces, two raters are averaged": lambda: first_four(several),
        "of other pairs": lambda: first_four(several.assign(doc_id="elsewhere")),
        "no answers": lambda: first_four(no_answers()),
        **{f"the next of {who}": lambda who=who: next_for(who, 3, *done)
           for who in ("ann", "ben", "new one")},
        "all have an answer": lambda: next_for("ben", 5, *all_of_ann),
        "seconds without a pause": lambda: [
            status(plan, Answered.of(pool, answers(plan, *timed)), **more).raters[0].seconds
            for more in ({}, {"resumed": ends})
        ],
        "the plan": lambda: read(*lines),
        "an answer that was cut off": lambda: len(read_plan(
            (write_plan(plan) + write_answers(several[:2]))[:-7], "plan.jsonl"
        )[1]),
        "another first line": lambda: read(b"{}", *lines[1:]),
        "no first line": lambda: read(*lines[1:]),
        "a line of another file": lambda: read(*lines[:4], b"q1 0 d1 1", *lines[4:]),
        "a line without ranks": lambda: read(
            *lines[:2], lines[1].replace(b'"rank', b'"tank'), *lines[2:]
        ),
        "one line": lambda: read(lines[0]),
        "no line": read,
    }  # fmt: skip
    approved("analysis/answers", results(cases))
