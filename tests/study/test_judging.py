"""A judge and human labels in a study: each number equals the one computed from its parts."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers import sources_from_path
from rankdash.core.readers.loading import load
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.sampling.label_plan import Additive, LabelPlan, draws_table, pool_of
from rankdash.core.sampling.rater_agreement import Circularity
from rankdash.core.study.costs import gain
from rankdash.core.study.judged import agreement_groups, circularity, favours, verdicts
from rankdash.core.study.labelling import with_sampled_labels
from rankdash.core.study.study import Study
from rankdash.features.report.decision import decision
from tests.approved import table
from tests.sets import SAMPLE
from tests.study.builders import changed, keeping, lists_of, ranking, shown, study_on
from tests.study.test_study import study_of

PEOPLE = 40


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load(sources_from_path(SAMPLE)).dataset


def labelled_in(data: Dataset, queries: Collection[str]) -> Dataset:
    return changed(data, qrels=data.qrels[data.qrels["query_id"].isin(set(queries))])


def judge_of(study: Study, labels: pd.DataFrame, *, noise: float = 0.2, depth: int = 10, **fields):
    """Return grades of all pairs within the depth: the labels, some of them one too high."""
    pool = pool_of({system: study.ranking(system) for system in study.chosen}, depth)
    wrong = np.random.default_rng(1).random(len(pool)) < noise
    grades = np.minimum(np.nan_to_num(pool.aligned(labels)) + wrong, 3.0)
    rows = pd.DataFrame({"query_id": pool.query_ids[pool.query], "doc_id": pool.doc_ids})
    rows = rows.assign(grade=grades, error="")
    return Judgements(**{"name": "Judge A", "scale": (0, 3), "table": rows} | fields)


@pytest.fixture(scope="module")
def few(data):
    """The sample with labels of 40 queries, reordered; and a judge of all."""
    chosen = np.random.default_rng(2).permutation(list(data.candidates.query_ids))[:PEOPLE]
    study = study_of(labelled_in(data, chosen), 2)
    return study, judge_of(study, data.qrels)


def without(judge: Judgements, rows, kind: str = "") -> Judgements:
    """Return the judge with some rows failed."""
    own = judge.table.assign(kind="")
    own.loc[rows, ["grade", "error"]] = [np.nan, "timeout"]
    own.loc[rows[:1], "kind"] = kind
    return replace(judge, table=own)


def drawn_study(data: Dataset, mode: str, count: int, same: int = 0) -> Study:
    """Return a study with `count` sampled labels. same: the number of first documents with the same
    order in both rankings."""
    study = study_of(labelled_in(data, []), 1)
    (challenger,) = study.challengers
    if same:
        lists = {query: [*docs[:same], *docs[same:][::-1]]
                 for query, docs in lists_of(data.candidates).items()}  # fmt: skip
        system = replace(study.systems[challenger], load=None, ranking=ranking(lists))
        study = replace(study, systems={**study.systems, challenger: system})
    pool = pool_of({study.name(each): study.ranking(each) for each in study.chosen}, 10)
    plan = LabelPlan.make(pool, Additive.of("dcg@10", top=3), seed=3, mode=mode)
    first = plan.order[plan.draw < count]
    rows = pd.DataFrame({"query_id": pool.query_ids[pool.query[first]],
                         "doc_id": pool.doc_ids[first]})  # fmt: skip
    labels = rows.assign(label=np.nan_to_num(pool.aligned(data.qrels))[first])
    draws = draws_table(plan).iloc[first].reset_index(drop=True)
    drawn = pd.concat([rows, draws], axis=1).assign(cannot_tell=False)
    own = replace(study, dataset=changed(data, qrels=labels), metric="dcg")
    found = with_sampled_labels(own, drawn)
    assert found.labelling is not None and found.labelling.mode == mode
    return found


def cases(few: tuple[Study, Judgements], data: Dataset) -> Iterator[tuple[str, Study, Judgements]]:
    study, judge = few
    first, _second = study.challengers
    qrels, own = study.dataset.qrels, set(study.dataset.qrels["query_id"])
    strict = replace(study, statistics=replace(study.statistics, level=0.99))
    yield "two systems", study, judge
    yield "at the level 0.99", strict, judge
    yield "turned: a loss is a gain", turned(study), judge
    share = 1.1 * relative(turned(study), judge)
    wanted = replace(study.statistics, worthwhile=share)
    yield "turned, and more is wanted", turned(replace(study, statistics=wanted)), judge
    yield "a metric that describes labels", replace(study, metric="judged"), judge
    pool = pool_of({side: study.ranking(side) for side in (study.baseline, first)}, 10)
    rows = judge.table["query_id"]
    alone = replace(study, challengers=(first,))
    elsewhere = next(each for each in pool.query_ids if each not in own)
    other = rows.index[rows == elsewhere][:1]
    yield "a grade of the others is no zero", alone, without(judge, other)
    people = next(each for each in pool.query_ids if each in own)
    lost = without(judge, rows.index[rows == people][:2], "time_out")
    yield "two grades of people's queries are lost, one by a time-out", alone, lost
    asked = replace(judge, table=judge.table[~rows.isin(own)])
    yield "nobody asked about the queries of people", alone, asked
    yield "no grade at all", alone, without(judge, judge.table.index)
    yield "grades of the first five of each list", alone, judge_of(study, qrels, depth=5)
    others = [query for query in pool.query_ids if query not in own][:30]
    part = replace(judge, table=judge.table[rows.isin({*own, *others})])
    yield "of the others, 30 queries that were asked about count", alone, part
    for count in (0, 1, 9):
        bare = study_of(labelled_in(data, list(data.candidates.query_ids)[:count]), 1)
        yield f"a judge and {count} queries of people", bare, judge_of(bare, data.qrels)
    for mode in ("weight", "random"):
        drawn = drawn_study(data, mode, 400)
        yield f"pairs drawn by {mode} are no whole queries", drawn, judge_of(drawn, data.qrels)
    none = Ranking.from_lists([("elsewhere", ["d"], [1.0])])
    system = replace(study.systems[first], load=None, ranking=none)
    apart = replace(alone, systems={**study.systems, first: system})
    yield "systems without a query in common", apart, judge


def turned(study: Study) -> Study:
    first = study.challengers[0]
    return replace(study, baseline=first, challengers=(study.baseline,))


def relative(study: Study, judge: Judgements) -> float:
    (found,) = verdicts(study, judge).values()
    return found.three.corrected.mean / found.before


def told(study: Study, judge: Judgements) -> str:
    study, lines = replace(study, judge=judge), []
    for challenger, found in verdicts(study, judge).items():
        own: dict[str, Any] = {name: getattr(found, name) for name in (
            "kind", "p", "before", "queries", "people", "graded", "incomplete", "documents",
            "missing", "labelled", "sampled",
        )}  # fmt: skip
        kinds = found.lost["kind"].value_counts().to_dict()
        favour = favours(study, judge)[challenger]
        groups = agreement_groups(study, judge)
        own["lifted"] = groups.loc[groups["by"] == challenger, "pairs"].sum()
        lines.append(f"{study.name(challenger)}: {shown(own)}, lost {kinds}, {shown(favour)}")
        lines.append(f"  {shown(found.three)}")
        lines.append(f"  {shown(gain(study, challenger))}")
    return "\n".join(lines)


def test_verdicts_are_as_approved(few, data, approved) -> None:
    found = [(name, told(*case)) for name, *case in cases(few, data)]
    approved("study/judging", table(found))


@pytest.mark.parametrize("same", [0, 3])
def test_whole_queries_that_were_drawn_are_peoples(data, same: int) -> None:
    study = drawn_study(data, "query", 30, same)
    (challenger,) = study.challengers
    judge = judge_of(study, data.qrels)
    found = verdicts(study, judge)[challenger]
    assert (found.sampled, found.three.people.n) == (True, 30)
    pool = pool_of({side: study.ranking(side) for side in study.chosen}, 10)
    queries = np.unique(pool.query[pool.ranks[0] != pool.ranks[1]])
    assert found.three.others == len(queries) - 30
    everything = replace(study, dataset=data, labelling=None)
    true = everything.pairs(challenger).set_index("query_id")["delta"]
    truth = true.reindex(pool.query_ids[queries]).fillna(0).mean()
    assert found.three.people.low <= truth <= found.three.people.high
    assert found.three.corrected.low <= truth <= found.three.corrected.high
    # NDCG depends also on documents with equal ranks in both systems.
    ndcg = verdicts(replace(study, metric="ndcg"), judge)[challenger]
    assert (ndcg.three.people.n > 0) == (not same)


def test_whether_a_minimum_can_be_proven_follows_from_the_corrected_interval(few, data) -> None:
    rng, first = np.random.default_rng(5), lists_of(data.candidates)
    one, run = (
        run_from_ranking(name, data.id, ranking(
            {query: [*rng.permutation(docs[:3]), *docs[3:]] for query, docs in first.items()}
        ), "run.trec") for name in ("one", "other")
    )  # fmt: skip
    study = study_on(few[0].dataset, one, run, baseline=one.id, challengers=(run.id,),
                     statistics=StatisticsSettings(resamples=100), cache=keeping())  # fmt: skip
    study = replace(study, judge=judge_of(study, data.qrels, noise=0.05))
    found = verdicts(study, study.judge)[run.id]
    ends = found.three.corrected.high / found.before, found.three.people.high / found.before
    assert found.kind == "unproven" and ends[0] < ends[1]
    steps = []
    for share in (0.9 * ends[0], (ends[0] + ends[1]) / 2):
        rules = replace(study.statistics, worthwhile=share)
        steps.append(decision(replace(study, statistics=rules), run.id).step)
    assert steps[0] != steps[1] == "unprovable"


def test_a_judge_of_a_compared_systems_maker_is_named(data) -> None:
    study = study_of(data, 2)
    first, _ = study.challengers
    asked = {"reranker": "llm", "settings": {"model": "gpt-4o", "depth": 20}}
    run = replace(study.systems[first].load(), **asked)
    systems = {**study.systems, first: replace(study.systems[first], load=lambda: run)}
    study = replace(study, systems=systems)
    for judge, found in (
        ({"model": "openai/gpt-4o"}, (True, "OpenAI")),
        # If the judge's model is unknown, its name is used.
        ({"name": "GPT-4.1 judge"}, (False, "OpenAI")),
        ({"model": "claude-haiku-4-5"}, None),
    ):
        expected = [] if found is None else [Circularity(first, *found)]
        assert circularity(study, judge_of(study, data.qrels, **judge)) == expected
