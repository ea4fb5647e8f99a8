"""A run made of runs: names of the parts, queries, and failures."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.runs.combining import CombinedRun, fuse, part_ids, unknown_tokens, with_times_of
from tests.results import results, shown

QUERIES = ["q1", "q2", "q3", "q4", "q5"]


@pytest.fixture
def dataset():
    lists = [(query, ["a", "b", "c"], [3.0, 2.0, 1.0]) for query in QUERIES[:4]]
    return Dataset(
        name="shop",
        queries=pd.DataFrame({"query_id": QUERIES, "text": QUERIES}),
        documents=pd.DataFrame({"doc_id": ["a", "b", "c"], "title": "", "text": "text"}),
        qrels=pd.DataFrame({"query_id": QUERIES, "doc_id": "c", "label": 1.0}),
        candidates=Ranking.from_lists(lists),
    )


def a_run(dataset, name, states, latency=math.nan):
    """Return a run that reverses the candidates, with these states of the queries."""
    done = [query for query, state in states.items() if state == "done"]
    rows = pd.DataFrame({"query_id": list(states), "state": list(states.values())}, dtype="str")
    rows["reason"] = pd.Series([f"why {state}" for state in states.values()], dtype="str")
    for column in ("latency_ms", "index_ms", "pairs", "tokens", "truncated"):
        rows[column] = math.nan
    rows.loc[rows["state"] == "done", "latency_ms"] = latency
    ranking = Ranking.from_lists([(query, ["c", "b", "a"], [3.0, 2.0, 1.0]) for query in done])
    return Run(f"id-{name}", name, dataset.id, ranking, "stub", rows)


def as_parts(*runs):
    return [CombinedRun(run.name, run.ranking, run) for run in runs]


def parts(dataset):
    whole = a_run(dataset, "whole", dict.fromkeys(QUERIES[:4], "done") | {"q5": "skipped"}, 10.0)
    some = dict(zip(QUERIES, ("done", "failed", "skipped", "done", "skipped"), strict=True))
    broken = a_run(dataset, "broken", some, 5.0)
    return [CombinedRun("First stage", dataset.candidates), *as_parts(whole, broken)]


def told(run):
    lines = [f"{shown(dict(run.settings))}, machine {shown(dict(run.machine))}"]
    for row in run.queries.to_dict("records"):
        done = row["state"] == "done"
        lines.append(f"{shown(row)}{shown(run.ranking.documents_of(row['query_id'])) * done}")
    return "\n".join(lines)


def test_fused_runs_are_as_approved(dataset, approved):
    """Fused runs name their parts and have no times: nothing was scored. A query that failed in one
    run has failed, also if another run skipped it; it never has a partial result."""
    first = a_run(dataset, "first", {"q1": "done", "q2": "skipped"})
    second = a_run(dataset, "second", {"q1": "done", "q2": "failed"})
    runs = {
        "by minmax": fuse(dataset, parts(dataset), Fusion("minmax", (1, 2, 0.5)), "both"),
        "by reciprocal ranks": fuse(dataset, parts(dataset), Fusion("rrf", k=10), "both"),
        "failed and skipped": fuse(dataset, as_parts(first, second), Fusion(), "both"),
    }
    apart = as_parts(*(a_run(dataset, query, {query: "done"}) for query in ("q1", "q2")))
    runs["no query in common"] = lambda: fuse(dataset, apart, Fusion(), "both")
    approved("runs/fused", results(runs, told))
    wishes = [("rrf", 60, "both"), ("rrf", 10, "both"), ("rrf", 60, "other"), ("z", 60, "both")]
    made = parts(dataset)
    ids = [fuse(dataset, made, Fusion(how, k=k), name).id for how, k, name in wishes * 2]
    assert len(set(ids)) == 4 and ids[:4] == ids[4:]


def test_its_times_are_those_of_its_parts_in_sum(dataset):
    made = parts(dataset)
    run = fuse(dataset, made, Fusion(), "both")
    assert part_ids(run) == ("id-whole", "id-broken")
    assert part_ids(made[1].run) == part_ids(replace(run, reranker="bm25")) == ()
    timed = with_times_of(run, [part.run for part in made if part.run]).queries
    assert timed["latency_ms"].tolist() == pytest.approx(
        [15.0, math.nan, math.nan, 15.0, math.nan], nan_ok=True
    )
    assert timed["pairs"][[0, 3]].isna().all(), "its parts do not tell"
    # A query that is not fused has no times, though its parts have: the first stage lacks q5.
    runs = [a_run(dataset, name, dict.fromkeys(QUERIES, "done"), 4.0) for name in ("one", "two")]
    runs = [replace(run, queries=run.queries.assign(pairs=3.0, tokens=7.0)) for run in runs]
    fused = fuse(dataset, [made[0], *as_parts(*runs)], Fusion(), "x")
    timed = with_times_of(fused, runs).queries
    for name, both in (("latency_ms", 8.0), ("pairs", 6.0), ("tokens", 14.0)):
        assert timed[name].tolist() == pytest.approx([both] * 4 + [math.nan], nan_ok=True)


def test_a_fused_run_knows_as_few_tokens_as_the_part_that_knows_least(dataset):
    made = [part.run for part in parts(dataset)[1:]]
    fused = fuse(dataset, parts(dataset), Fusion(), "both")

    def share(*told):
        by_id = {
            run.id: replace(run, measured=None if each is None else Measured(unknown_tokens=each))
            for run, each in zip(made, told, strict=False)
        }
        return unknown_tokens(fused, by_id.get)

    assert share(0.1, 0.3) == share(0.3, 0.1) == share(math.nan, 0.3) == 0.3
    assert share(0.2, None) == share(0.2) == 0.2, "a part may be gone"
    assert math.isnan(share(None, math.nan))
    alone = replace(made[0], measured=Measured(unknown_tokens=0.4))
    assert unknown_tokens(alone, {}.get) == 0.4
    nested = {"id-whole": replace(fused, id="id-whole", settings={"part_ids": "id-broken"}),
              "id-broken": replace(made[1], measured=Measured(unknown_tokens=0.7))}  # fmt: skip
    assert unknown_tokens(fused, nested.get) == 0.7
