"""A judge beside people in a study: each number is what the parts give, whoever renders it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rankdash.analysis.judging.circularity import Circularity
from rankdash.analysis.judging.corrected import correct
from rankdash.analysis.judging.judgements import Judgements
from rankdash.analysis.judging.recalibration import expected_changes
from rankdash.analysis.labelling.additive import Additive
from rankdash.analysis.labelling.answers import draws_table
from rankdash.analysis.labelling.draws import LabelPlan
from rankdash.analysis.labelling.label_pool import LabelPool, pool_of
from rankdash.analysis.statistics.pairs import paired
from rankdash.dataset import Dataset
from rankdash.loading import load
from rankdash.metrics import evaluate
from rankdash.metrics import judge as join
from rankdash.ranking.ranking import Ranking
from rankdash.readers import sources_from_path
from rankdash.reporting.report import PRESETS, Front, html
from rankdash.study.decision import decision
from rankdash.study.drawn import with_draws
from rankdash.study.gains import gain
from rankdash.study.judging import (
    agreed,
    agreement_groups,
    circularity,
    favours,
    verdicts,
)
from rankdash.study.study import Study
from tests.sets import SAMPLE
from tests.study.test_study import study_of

PEOPLE = 40


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load(sources_from_path(SAMPLE)).dataset


def labelled_in(data: Dataset, queries) -> Dataset:
    kept = data.qrels[data.qrels["query_id"].isin(set(queries))]
    return Dataset(data.name, data.queries, data.documents, kept, data.candidates)


def judge_of(study: Study, labels: pd.DataFrame, *, noise: float = 0.2, depth: int = 10, **fields):
    """Grades of all pairs within the depth: the labels, some of them one too high."""
    pool = pool_of({system: study.ranking(system) for system in study.chosen}, depth)
    known = np.nan_to_num(pool.aligned(labels))
    wrong = np.random.default_rng(1).random(len(pool)) < noise
    table = pd.DataFrame(
        {
            "query_id": pool.query_ids[pool.query],
            "doc_id": pool.doc_ids,
            "grade": np.minimum(known + wrong, 3.0),
            "error": "",
        }
    )
    return Judgements(**{"name": "Judge A", "scale": (0, 3), "table": table} | fields)


@pytest.fixture(scope="module")
def few(data):
    """The sample with labels of 40 queries, reordered; and a judge of all."""
    queries = list(data.candidates.query_ids)
    chosen = np.random.default_rng(2).permutation(queries)[:PEOPLE]
    study = study_of(labelled_in(data, chosen), 2)
    return study, judge_of(study, data.qrels)


def without(judge: Judgements, rows) -> Judgements:
    """The judge with some rows failed."""
    table = judge.table.copy()
    table.loc[rows, ["grade", "error"]] = [np.nan, "timeout"]
    return replace(judge, table=table)


def changes(study: Study, challenger: str, labels: pd.DataFrame) -> pd.Series:
    sides = (
        evaluate(join(study.ranking(side), labels, study.conventions), [study.spec])
        for side in (study.baseline, challenger)
    )
    return paired(*sides, study.spec).set_index("query_id")["delta"]


def by_pool(study: Study, challenger: str, pool: LabelPool, labels) -> np.ndarray:
    ids = {"query_id": pool.query_ids[pool.query], "doc_id": pool.doc_ids}
    found = changes(study, challenger, pd.DataFrame(ids | {"label": labels}))
    return found.reindex(pool.query_ids).to_numpy()


@pytest.mark.parametrize(("metric", "cutoff"), [("ndcg", 10), ("mrr", 5), ("map", None)])
def test_each_way_is_what_the_metric_gives_with_those_labels(few, metric, cutoff) -> None:
    study, judge = few
    study = replace(study, metric=metric, cutoff=cutoff)
    for challenger, found in verdicts(study, judge).items():
        own = study.pairs(challenger).set_index("query_id")["delta"]
        by_judge = changes(study, challenger, judge.graded)
        assert found.three.people.mean == pytest.approx(own.mean())
        assert found.three.people.error == pytest.approx(stats.sem(own.dropna()))
        assert found.three.judge.mean == pytest.approx(by_judge.mean())
        sides = {each: study.ranking(each) for each in (study.baseline, challenger)}
        pool = pool_of(sides, cutoff or 10)
        everyone = pool.query_ids
        labelled = np.isin(everyone, study.dataset.qrels["query_id"].unique())
        labels = np.nan_to_num(pool.aligned(study.dataset.qrels))
        known = expected_changes(
            pool,
            pool.aligned(judge.graded),
            np.where(labelled[pool.query], labels, np.nan),
            partial(by_pool, study, challenger, pool),
        )
        expected = correct(
            own.reindex(everyone).to_numpy(),
            by_judge.reindex(everyone).to_numpy(),
            expected=known,
            labelled=labelled,
            level=0.95,
        )
        assert found.three.corrected == expected.corrected
        assert not np.isnan(known).all()
        assert found.three.others == (~np.isnan(known[~labelled])).sum()
        assert found.three.weight > 0
        assert found.incomplete == 0


@pytest.mark.parametrize("turned", [False, True])
def test_value_and_verdict_follow_the_same_corrected_change(few, turned) -> None:
    """Of people's labels alone, money would follow another change than the headline."""
    study, judge = few
    study = replace(study, judge=judge, challengers=study.challengers[:1])
    if turned:
        study = replace(study, baseline=study.challengers[0], challengers=(study.baseline,))
    (challenger,) = study.challengers
    (found,) = verdicts(study, judge).values()
    change = found.three.corrected
    own = study.pairs(challenger).dropna(subset="delta")
    choice = decision(study, challenger).choice
    gained = choice.option.gain
    assert gained.relative.value == pytest.approx(change.mean / own["before"].mean())
    assert gained.relative.low == pytest.approx(change.low / own["before"].mean())
    assert gained.relative.high == pytest.approx(change.high / own["before"].mean())
    assert gained.relative.value != pytest.approx(own["delta"].mean() / own["before"].mean())
    proven = found.kind in ("better", "worse")
    assert gained.relative.proof == ("proven" if proven else "unproven")
    assert (gained.queries, gained.judge) == (change.n, "Judge A")
    hits = verdicts(replace(study, metric="hit", cutoff=10), judge)[challenger]
    assert gained.hit.value == pytest.approx(hits.three.corrected.mean)
    page = html(study, Front(sections=PRESETS["decision"])).decode()
    assert "by the judge Judge A, corrected by labels of" in page
    alone = gain(replace(study, judge=None), challenger)
    assert alone.judge == ""
    assert alone.relative.value == pytest.approx(own["delta"].mean() / own["before"].mean())


def test_a_verdict_is_by_the_corrected_change(few, data) -> None:
    study, judge = few
    for found in verdicts(study, judge).values():
        corrected = found.three.corrected
        proven = found.p <= 0.05 and (corrected.low > 0 or corrected.high < 0)
        assert found.kind == ("worse" if proven else "unproven")
        # Holm, of two.
        assert found.p >= corrected.p
    # With the sides swapped a loss is a gain.
    (first, _) = study.challengers
    turned = replace(study, baseline=first, challengers=(study.baseline,))
    (found,) = verdicts(turned, judge).values()
    (before,) = verdicts(replace(study, challengers=(first,)), judge).values()
    assert found.three.corrected.mean == pytest.approx(-before.three.corrected.mean)
    assert (before.kind, found.kind) == ("worse", "better")
    share = found.three.corrected.mean / found.before
    for worthwhile, kind in ((0.9 * share, "better"), (1.1 * share, "small")):
        wanted = replace(turned, statistics=replace(turned.statistics, worthwhile=worthwhile))
        assert verdicts(wanted, judge)[study.baseline].kind == kind
    described = replace(study, metric="judged")
    assert {each.kind for each in verdicts(described, judge).values()} == {"descriptive"}


def test_the_level_is_that_of_the_study(few) -> None:
    study, judge = few
    strict = replace(study, statistics=replace(study.statistics, level=0.99))
    for challenger in study.challengers:
        wide = verdicts(strict, judge)[challenger].three.corrected
        narrow = verdicts(study, judge)[challenger].three.corrected
        assert wide.mean == narrow.mean
        assert wide.high - wide.low > 1.3 * (narrow.high - narrow.low)


def test_what_the_judge_could_not_grade_is_no_zero(few) -> None:
    study, judge = few
    (challenger, _) = study.challengers
    pool = pool_of({side: study.ranking(side) for side in (study.baseline, challenger)}, 10)
    lost = pool.query_ids[5]
    rows = judge.table.index[judge.table["query_id"] == lost][:1]
    found = verdicts(study, without(judge, rows))[challenger]
    assert found.incomplete == 1
    by_judge = changes(study, challenger, judge.graded)
    assert found.three.judge.mean == pytest.approx(by_judge.drop(lost).mean())
    assert found.three.judge.n == verdicts(study, judge)[challenger].three.judge.n - 1
    # One of people's: with how many documents and why, and nothing else.
    own = next(each for each in pool.query_ids if each in set(study.dataset.qrels["query_id"]))
    rows = judge.table.index[judge.table["query_id"] == own][:2]
    table = without(judge, rows).table.assign(kind="")
    table.loc[rows, "kind"] = ["time_out", ""]
    partly = replace(judge, table=table)
    found = verdicts(study, partly)[challenger]
    assert found.people == PEOPLE
    assert sorted(found.lost["kind"]) == ["elsewhere", "time_out"]
    assert set(found.lost["query_id"]) == {own}
    assert found.three.people == verdicts(study, judge)[challenger].three.people
    whole = found.queries - found.incomplete
    assert found.queries == len(pool.query_ids)
    assert whole == len(pool.query_ids) - 1
    assert found.three.people.n <= found.people
    assert found.three.judge.n <= whole
    # Nobody asked about the queries of people.
    asked = ~judge.table["query_id"].isin(study.dataset.qrels["query_id"])
    none = verdicts(study, replace(judge, table=judge.table[asked]))[challenger]
    assert set(none.lost["kind"]) == {"not_asked"}
    assert none.lost["query_id"].nunique() == none.incomplete == PEOPLE
    nothing = verdicts(study, without(judge, judge.table.index))[challenger]
    assert nothing.three.judge.n == 0
    assert nothing.three.corrected == nothing.three.people
    # Grades of the first five say nothing of the first ten.
    shallow = verdicts(study, judge_of(study, study.dataset.qrels, depth=5))[challenger]
    assert shallow.three.judge.n <= 1


def test_queries_that_nobody_looked_at_do_not_count(few) -> None:
    study, judge = few
    (challenger, _) = study.challengers
    labelled = set(study.dataset.qrels["query_id"])
    asked = [query for query in study.dataset.candidates.query_ids if query not in labelled][:30]
    part = judge.table[judge.table["query_id"].isin({*labelled, *asked})]
    found = verdicts(study, replace(judge, table=part))[challenger]
    assert found.three.others == 30
    assert found.incomplete == 0


@pytest.mark.parametrize("queries", [0, 1, 9])
def test_a_judge_alone_has_no_verdict(data, queries: int) -> None:
    chosen = list(data.candidates.query_ids)[:queries]
    study = study_of(labelled_in(data, chosen), 1)
    (found,) = verdicts(study, judge_of(study, data.qrels)).values()
    assert found.kind == "too_few"
    assert np.isnan(found.p)
    assert np.isnan(found.three.corrected.mean)
    assert found.three.people.n <= queries
    assert found.three.judge.n > 100


def drawn_study(data: Dataset, mode: str, count: int, same: int = 0) -> Study:
    """A study whose labels came by so many draws. same: how many first documents of every list
    both rankings have in the same order."""
    study = study_of(labelled_in(data, []), 1)
    (challenger,) = study.challengers
    if same:
        lists = []
        for query in data.candidates.query_ids:
            docs = list(data.candidates.documents_of(query)[0])
            docs[same:] = docs[same:][::-1]
            lists.append((query, docs, np.arange(len(docs), 0, -1.0)))
        system = replace(study.systems[challenger], load=None, ranking=Ranking.from_lists(lists))
        study = replace(study, systems={**study.systems, challenger: system})
    pool = pool_of({study.name(each): study.ranking(each) for each in study.chosen}, 10)
    plan = LabelPlan.make(pool, Additive.of("dcg@10", top=3), seed=3, mode=mode)
    first = plan.order[plan.draw < count]
    table = pd.DataFrame(
        {
            "query_id": pool.query_ids[pool.query[first]],
            "doc_id": pool.doc_ids[first],
            "label": np.nan_to_num(pool.aligned(data.qrels))[first],
        }
    )
    own = Dataset(data.name, data.queries, data.documents, table, data.candidates)
    draws = draws_table(plan).iloc[first].reset_index(drop=True)
    drawn = pd.concat([table[["query_id", "doc_id"]], draws], axis=1).assign(cannot_tell=False)
    found = with_draws(replace(study, dataset=own, metric="dcg"), drawn)
    assert found.labelling is not None
    assert found.labelling.mode == mode
    return found


@pytest.mark.parametrize("same", [0, 3])
def test_whole_queries_that_were_drawn_are_peoples(data, same: int) -> None:
    study = drawn_study(data, "query", 30, same)
    (challenger,) = study.challengers
    judge = judge_of(study, data.qrels)
    found = verdicts(study, judge)[challenger]
    assert found.drawn
    assert found.three.people.n == 30
    pool = pool_of({side: study.ranking(side) for side in study.chosen}, 10)
    queries = np.unique(pool.query[pool.ranks[0] != pool.ranks[1]])
    assert found.three.others == len(queries) - 30
    everything = replace(study, dataset=data, labelling=None)
    true = everything.pairs(challenger).set_index("query_id")["delta"]
    truth = true.reindex(pool.query_ids[queries]).fillna(0).mean()
    assert found.three.people.low <= truth <= found.three.people.high
    assert found.three.corrected.low <= truth <= found.three.corrected.high
    # NDCG divides by what stands at the same rank in both, too.
    ndcg = verdicts(replace(study, metric="ndcg"), judge)[challenger]
    assert (ndcg.three.people.n > 0) == (not same)


@pytest.mark.parametrize("mode", ["weight", "random"])
def test_pairs_that_were_drawn_are_no_whole_queries(data, mode) -> None:
    study = drawn_study(data, mode, 400)
    (found,) = verdicts(study, judge_of(study, data.qrels)).values()
    assert found.drawn
    assert found.three.people.n == 0
    assert found.kind == "too_few"


def test_systems_without_a_query_in_common_have_no_verdict(few) -> None:
    study, judge = few
    (challenger, _) = study.challengers
    none = Ranking.from_lists([("elsewhere", ["d"], [1.0])])
    system = replace(study.systems[challenger], load=None, ranking=none)
    apart = replace(study, systems={**study.systems, challenger: system})
    found = verdicts(apart, judge)[challenger]
    assert found.kind == "too_few"
    assert found.three.people.n == found.three.judge.n == found.three.others == 0
    assert np.isnan(favours(apart, judge)[challenger].difference)
    assert challenger not in set(agreement_groups(apart, judge)["by"])


def test_agreement_is_on_the_pairs_that_both_graded(few) -> None:
    study, judge = few
    found = agreed(study, judge)
    both = study.dataset.qrels.merge(judge.table, on=["query_id", "doc_id"])
    assert len(found.pairs) == len(both)
    assert found.overall["over"] == pytest.approx((both["grade"] > both["label"]).mean())
    groups = agreement_groups(study, judge)
    names = {"label", "grade", "language", "query_length", "type", "document_length"}
    assert names | set(study.challengers) <= set(groups["by"])
    lengths = groups[groups["by"] == "document_length"]
    assert set(lengths["group"]) == {"short", "medium", "long"}
    assert lengths["pairs"].sum() == len(both)
    for challenger in study.challengers:
        lifted = groups[groups["by"] == challenger]
        assert set(lifted["group"]) == {challenger, study.baseline}
        assert lifted["pairs"].sum() <= len(both)


def test_a_judge_that_favours_a_system_is_found_out(few, data) -> None:
    study, _ = few
    even = judge_of(study, data.qrels, noise=0.0)
    for found in favours(study, even).values():
        assert found.difference == 0
        assert not found.proven
    (challenger, _) = study.challengers
    pool = pool_of({side: study.ranking(side) for side in (study.baseline, challenger)}, 10)
    higher = pool.ranks[1] < pool.ranks[0]
    lifted = pd.MultiIndex.from_arrays([pool.query_ids[pool.query], pool.doc_ids])[higher]
    own = pd.MultiIndex.from_frame(even.table[["query_id", "doc_id"]]).isin(lifted)
    grade = np.where(own, np.minimum(even.table["grade"] + 1, 3), even.table["grade"])
    partisan = replace(even, table=even.table.assign(grade=grade))
    found = favours(study, partisan)[challenger]
    assert found.difference > 0.5
    assert found.low > 0
    assert found.proven


def test_a_judge_of_a_compared_systems_maker_is_named(data) -> None:
    study = study_of(data, 2)
    first, _ = study.challengers
    run = replace(
        study.systems[first].load(), reranker="llm", settings={"model": "gpt-4o", "depth": 20}
    )
    systems = {**study.systems, first: replace(study.systems[first], load=lambda: run)}
    study = replace(study, systems=systems)
    assert circularity(study, judge_of(study, data.qrels, model="openai/gpt-4o")) == [
        Circularity(first, True, "OpenAI")
    ]
    # Where nobody said what the judge is made of, its name may tell.
    assert circularity(study, judge_of(study, data.qrels, name="GPT-4.1 judge")) == [
        Circularity(first, False, "OpenAI")
    ]
    assert circularity(study, judge_of(study, data.qrels, model="claude-haiku-4-5")) == []
