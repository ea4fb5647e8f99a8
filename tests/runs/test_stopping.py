"""Runs that stop by their result, and how they are reported."""

import math
import threading
import unittest.mock
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from rankdash.core.data.measured import STOPPED
from rankdash.core.metrics import Conventions
from rankdash.core.rerankers import Scored
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.runs import jobs, runner
from rankdash.core.runs.combining import CombinedRun, fuse
from rankdash.core.runs.jobs import JobRequest, StopRule, Timing
from rankdash.core.runs.plan import plan, random_order
from rankdash.core.runs.results import QueryResult
from rankdash.core.runs.runner import Cancelled
from rankdash.core.runs.stopping import Look, Watch
from rankdash.core.runs.worker import Attempt
from rankdash.core.statistics.anytime import half_width
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.features.overview.caveats import caveats
from rankdash.kit.widgets.run_records import Record
from tests.runs.stub import BLOCKS, ONE_BY_ONE, Stub, failed, go
from tests.runs.test_worker import Made
from tests.runs.test_worker import asked as asked
from tests.runs.test_worker import small_batches as small_batches
from tests.runs.test_worker import work as work
from tests.stored import keep_sample

pytestmark = pytest.mark.usefixtures("small_batches")
ITSELF = StopRule("mrr@10", by_itself=True)


@pytest.fixture(scope="module")
def large(make_dataset):
    return make_dataset(queries=80, depth=8)


@pytest.fixture
def dataset(workspace, large):
    """The data set of the jobs: in most queries, the relevant document is not the first one."""
    workspace.save_dataset(large)
    return large


def best(request):
    """Rank the relevant document first, in three queries of four."""
    sure = int(request.query_id[1:]) % 4 != 0
    return Scored(np.array([(doc == "d0") if sure else 0.0 for doc in request.doc_ids], float))


class Better(Made):
    runtime = "first"

    def score(self, requests):
        self.usual = best
        return super().score(requests)


class Same(Made):
    """A reranker that returns the order of the first stage."""

    def score(self, requests):
        self.usual = lambda request: Scored(-np.arange(len(request.doc_ids), dtype=float))
        return super().score(requests)


def watch(data, rule=ITSELF, seed=0):
    return Watch(data, plan(data), rule, seed)


def study(data, *runs, **fields):
    first, *challengers = systems = systems_of(data, runs, "")
    return Study.on(
        fields.pop("metric", "mrr@10"),
        dataset=data,
        systems=systems,
        baseline=first,
        challengers=tuple(challengers),
        **fields,
    )


@pytest.mark.parametrize("able", [BLOCKS, ONE_BY_ONE])
def test_a_run_stops_at_the_first_conclusive_look_in_random_order(large, able):
    model, watched = Stub(usual=best), watch(large)
    run = go(large, model, capabilities=able, watch=watched)
    states = run.queries.set_index("query_id")["state"]
    done = {*states.index[states == "done"]}
    order = random_order(plan(large).documents, 0)
    assert done == {*order[: len(done)]}
    assert 20 <= len(done) < 48
    skipped = run.queries[~run.queries["query_id"].isin(done)]
    assert {*skipped["state"]} == {"skipped"} and {*skipped["reason"]} == {STOPPED}
    stopped = run.stopped
    assert (stopped.scored, stopped.planned, stopped.seed) == (len(done), 80, 0)
    assert (stopped.metric, stopped.level) == ("mrr@10", 0.95)
    assert Conventions(**stopped.conventions) == Conventions()
    assert run.measured.throughput == ()


def test_the_look_is_the_interval_of_the_changes_so_far(large):
    watched = watch(large)
    run = go(large, Stub(usual=best), watch=watched)
    changes = study(large, run).pairs(run.id)["delta"].dropna()
    look = watched.look
    assert look.done == look.queries == len(changes)
    assert look.change == pytest.approx(changes.mean())
    half = changes.std() * half_width(np.float64(len(changes)), 0.05)
    assert [look.low, look.high] == pytest.approx([look.change - half, look.change + half])
    assert Look.from_mapping(look.as_dict()) == look
    before = replace(look, change=math.nan, low=math.nan, high=math.nan)
    assert str(Look.from_mapping(before.as_dict())) == str(before)


def test_a_query_without_a_result_ends_the_start_that_counts(large):
    watched, order = watch(large), random_order(plan(large).documents, 0)

    def done(query):
        docs = plan(large).documents[query]
        return QueryResult(query, "done", scores=np.arange(len(docs), 0.0, -1))

    watched.add([done(query) for query in (*order[:10], *order[11:40])])
    assert (watched.look.done, watched.look.queries) == (10, 10)
    watched.add([QueryResult(order[10], "failed", "no")])
    assert (watched.look.done, watched.look.queries) == (40, 39)
    assert not watched.look.conclusive and math.isnan(watched.look.low), "nothing changed"


def test_a_run_with_failed_queries_stops_too_and_does_not_count_them(large):
    order = random_order(plan(large).documents, 0)
    model = Stub(usual=best, odd={query: failed("broken") for query in order[3:6]})
    watched = watch(large)
    run = go(large, model, watch=watched)
    assert watched.look.done - watched.look.queries == 3
    assert (run.queries["state"] == "failed").sum() == 3
    assert run.stopped.scored == watched.look.done


def test_a_run_that_does_not_stop_is_an_ordinary_run(large):
    rules = [replace(ITSELF, by_itself=False), replace(ITSELF, metric="judged@10")]
    for watched in (watch(large, rule) for rule in rules):
        run = go(large, Stub(usual=best), watch=watched)
        assert run.stopped is None
        assert (run.queries["state"] == "done").all()
        assert not study(large, run).stopped(run.id)
    plain = go(large, Stub(usual=best))
    assert run.ranking.frame().equals(plain.ranking.frame())


def test_cancelling_is_not_stopping(large):
    watched, seen = watch(large, replace(ITSELF, by_itself=False)), []
    with pytest.raises(Cancelled):
        go(
            large,
            Stub(usual=best),
            watch=watched,
            on_batch=seen.extend,
            cancelled=lambda: len(seen) > 30,
        )


def test_results_from_the_cache_count_in_the_random_order_only(large):
    """A run that is stopped although the scores of some later queries were there."""
    order = random_order(plan(large).documents, 0)
    later = [
        QueryResult(query, "done", scores=np.zeros(len(plan(large).documents[query])))
        for query in order[60:]
    ]
    run = go(large, Stub(usual=best), watch=watch(large), done=later)
    assert run.stopped.scored < 48
    assert {*run.ranking.query_ids} == {*order[: run.stopped.scored]}


def test_a_job_stops_by_itself_and_stores_why(workspace, submit, work, dataset, asked):
    run_id = submit(stop=ITSELF, fused="fused")
    row = work(Better)
    assert row.state == "done"
    look = Look.from_mapping(row.look)
    assert look.conclusive and look.done == row.done < 48
    assert len({*asked()}) == row.done
    run, fused = workspace.run(run_id), workspace.run(f"{run_id}-fused")
    assert run.stopped == fused.stopped
    assert run.stopped.scored == row.done
    assert study(dataset, run).rules(FIRST_STAGE, run_id) != study(dataset, run).statistics


def test_a_user_stops_a_conclusive_job_or_lets_it_go_on(workspace, submit, work):
    ask, looks = replace(ITSELF, by_itself=False, dollars=10.2), []
    stopped, complete = submit(stop=ask), submit(stop=ask, timing=Timing(latency="every"))

    def stop():
        row = Queue(workspace).row(stopped)
        looks.append(Look.from_mapping(row.look))
        if looks[-1].done > 60:
            assert looks[-1].conclusive
            jobs.stop_when_conclusive(workspace, stopped)

    assert work(Better, between=stop).state == "done"
    assert 60 < workspace.run(stopped).stopped.scored < 66
    assert [look.done for look in looks] == sorted(look.done for look in looks)
    assert StopRule.from_mapping(Queue(workspace).row(stopped).stop) == replace(ask, by_itself=True)
    assert work(Better).state == "done"
    assert workspace.run(complete).stopped is None
    assert (workspace.run(complete).queries["state"] == "done").all()


def test_an_inconclusive_job_does_not_stop(workspace, submit, work):
    run_id = submit(stop=ITSELF)
    row = work(Same)
    assert (row.state, row.done) == ("done", 80)
    assert workspace.run(run_id).stopped is None
    assert not Look.from_mapping(row.look).conclusive


def test_a_killed_job_resumes_in_the_same_order_and_stops(workspace, submit, work, until_told):
    once = submit(stop=ITSELF, timing=Timing(latency="every"))
    assert work(Better).state == "done"
    again = submit(stop=ITSELF, timing=Timing(latency="every"))
    cancel = until_told(Queue, lambda: jobs.cancel(workspace, again))
    batches = []

    def late():
        batches.append(1)
        if len(batches) == 8:
            cancel()

    row = work(Better, between=late)
    assert (row.state, row.done) == ("cancelled", 8)
    jobs.resume(workspace, again)
    assert work(Better).state == "done"
    first, second = workspace.run(once), workspace.run(again)
    assert first.stopped == second.stopped
    assert first.queries["state"].tolist() == second.queries["state"].tolist()


def test_a_job_that_was_conclusive_when_it_was_cancelled_does_not_score_again(
    workspace, submit, work, asked, until_told
):
    ask = replace(ITSELF, by_itself=False)
    job_id, batches = submit(stop=ask), []
    cancel = until_told(Queue, lambda: jobs.cancel(workspace, job_id))

    def late():
        batches.append(1)
        if len(batches) == 60:
            cancel()

    assert work(Better, between=late).state == "cancelled"
    jobs.stop_when_conclusive(workspace, job_id)
    jobs.resume(workspace, job_id)
    before = len(asked())
    assert work(Better).state == "done"
    assert len(asked()) == before
    assert workspace.run(job_id).stopped.scored == 60


def test_a_retry_of_failed_queries_has_the_rule_too(workspace, submit, work, dataset):
    order = random_order(plan(dataset).documents, 0)

    class Odd(Better):
        def score(self, requests):
            self.odd = dict.fromkeys(order[3:6], failed("broken"))
            return super().score(requests)

    first = submit(stop=ITSELF)
    assert work(Odd).failed == 3
    again = jobs.retry(workspace, first, "again")
    assert work(Better).failed == 0
    assert 0 < workspace.run(again).stopped.scored <= workspace.run(first).stopped.scored


def attempt(workspace, request):
    """Run a job with its real reranker in this process; return its row and its run."""
    job_id, owner = jobs.submit(workspace, request), Owner()
    Attempt(workspace, owner, Queue(workspace).claim(owner), threading.Event()).run()
    return Queue(workspace).row(job_id), workspace.run(job_id)


def test_a_local_run_of_the_sample_stops(workspace):
    rule = StopRule("ndcg@10", by_itself=True)
    request = JobRequest(keep_sample(workspace), "bm25", {"language": "none"}, stop=rule)
    row, run = attempt(workspace, request)
    assert (row.state, run.stopped.planned) == ("done", 168)
    assert 20 <= run.stopped.scored < 168
    data = workspace.dataset(row.dataset_id)
    verdict = study(data, run, metric="ndcg@10").comparison.verdict(run.id, "ndcg@10")
    assert verdict.kind == "worse" and "by its result" in verdict.sentence


def test_a_paid_service_bills_only_the_queries_before_the_stop(workspace, server):
    settings = {
        "dialect": "cohere",
        "base_url": server.url,
        "key_variable": "none",
        "model": "m",
        "price_searches": 2.0,
        "concurrency": 1,
    }
    rule = StopRule("ndcg@10", by_itself=True)
    request = JobRequest(keep_sample(workspace), "endpoint", settings, stop=rule)
    row, run = attempt(workspace, request)
    assert (row.state, run.stopped.planned) == ("done", 168)
    assert len(server.seen) == run.stopped.scored < 168
    assert len(run.calls) == run.stopped.scored


# How a stopped run is reported.


@pytest.fixture(scope="module")
def stopped(large):
    with unittest.mock.patch.object(runner, "BATCH_SECONDS", 0.0):
        return replace(go(large, Stub(usual=best), watch=watch(large)), id="stopped")


@pytest.fixture(scope="module")
def full(large):
    return replace(go(large, Stub()), id="full")


def anytime(changes, level=0.95):
    half = changes.std() * half_width(np.float64(len(changes)), 1 - level)
    return changes.mean() - half, changes.mean() + half


def test_its_effect_has_the_anytime_interval_and_no_p(large, stopped, full):
    made = study(large, stopped, full)
    for spec in made.specs:
        row, other = (made.comparison.row(each, spec) for each in ("stopped", "full"))
        changes = made.pairs("stopped", spec)["delta"].dropna()
        if row["verdict"] != "descriptive" and (changes != 0).sum() >= 10:
            low, high = np.clip(anytime(changes), *made.comparison.measures[0].changes)
            assert [row["delta_low"], row["delta_high"]] == pytest.approx([low, high])
        assert np.isnan([row["p"], row["p_corrected"], row["smallest_detectable"]]).all()
        assert other["delta_low"] == pytest.approx(
            study(large, full).comparison.row("full", spec)["delta_low"]
        ), "an ordinary run has its ordinary interval"
    row = made.comparison.row("stopped", "mrr@10")
    assert row["verdict"] == "better"
    values = made.evaluate("stopped", ("mrr@10",)).column("mrr@10")
    values = values[~np.isnan(values)]
    mean = values.mean()
    half = values.std(ddof=1) * half_width(np.float64(len(values)), 0.05)
    assert [row["mean_low"], row["mean_high"]] == pytest.approx([mean - half, min(mean + half, 1)])
    sentence = made.comparison.verdict("stopped", "mrr@10").sentence
    assert "stopped by its result" in sentence
    assert "stopped because" not in made.comparison.verdict("full", "mrr@10").sentence


def test_it_as_the_baseline_and_its_fusion_have_anytime_intervals_too(large, stopped, full):
    parts = [CombinedRun("", large.candidates), CombinedRun("stopped", stopped.ranking, stopped)]
    fusion = replace(fuse(large, parts, Fusion(), "fusion"), id="fusion")
    made = replace(
        study(large, stopped, full, fusion), baseline="stopped", challengers=("full", "fusion")
    )
    for system in made.challengers:
        changes = made.pairs(system)["delta"].dropna()
        row = made.comparison.row(system, "mrr@10")
        expected = np.clip(anytime(changes), -1, 1) if (changes != 0).sum() >= 10 else np.nan
        assert np.array([row["delta_low"], row["delta_high"]]) == pytest.approx(
            expected, nan_ok=True
        )
        assert math.isnan(row["p"])


def test_several_comparisons_need_a_smaller_anytime_p(large, stopped):
    others = [replace(stopped, id=f"other {n}", name=f"other {n}") for n in range(30)]
    made = study(large, stopped, *others)
    alone = study(large, stopped).comparison.row("stopped", "mrr@10")["verdict"]
    row = made.comparison.row("stopped", "mrr@10")
    assert (alone, row["verdict"]) == ("better", "unproven")
    assert row["delta_low"] > 0
    assert "due to chance" in made.comparison.verdict("stopped", "mrr@10").sentence


def test_groups_curves_and_money_have_anytime_intervals(large, stopped):
    from rankdash.core.study import costs

    made = study(large, stopped)
    segment = made.segment("stopped", made.segments[0])
    whole = segment[segment["n"] == segment["n"].max()].iloc[0]
    assert whole["high"] - whole["low"] > 0
    gain = costs.gain(made, "stopped")
    change = made.pairs("stopped").dropna(subset="delta")
    usual = NormalDist().inv_cdf(0.975) * change["delta"].std() / math.sqrt(len(change))
    assert gain.relative.high - gain.relative.low > 2 * usual / change["before"].mean()
    curve = made.curves
    at = curve[(curve["system"] == "stopped") & (curve["k"] == 8)].iloc[0]
    row = made.comparison.row("stopped", "mrr@10")
    assert [at["low"], at["high"]] == pytest.approx([row["mean_low"], row["mean_high"]])


def test_a_caveat_and_the_list_of_runs_name_it(workspace, large, stopped, full):
    made = study(large, stopped, full)
    [caveat] = [each for each in caveats(made, "stopped") if each.code == "stopped"]
    assert caveat.sentence(made).startswith(f"stub was scored on {stopped.stopped.scored} of 80 ")
    assert "stopped" not in {each.code for each in caveats(made, "full")}
    workspace.save_dataset(large)
    workspace.save_run(stopped)
    assert workspace.run("stopped").stopped == stopped.stopped
    remarks = Record(*workspace.recorded("stopped")).remarks()
    assert "stopped by its result" in [*remarks]
