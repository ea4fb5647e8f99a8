"""Texts of caveats, risks and steps: shares, sides, and the number of named systems."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.errors import Finding
from rankdash.core.data.dataset import Dataset, FirstStage
from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import SHIPPED_WITH, Ranking
from rankdash.core.readers.checks.check import CheckReport, LabelSpread
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.runs.combining import KIND as FUSION
from rankdash.core.study.costs import choices
from rankdash.core.study.groups import DERIVED_SEGMENTS, Group
from rankdash.core.study.latency import Apart
from rankdash.core.study.pricing import Bill, Waiting
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.prices import shipped
from rankdash.core.words import queries as words_queries
from rankdash.core.words import verdicts
from rankdash.core.words.latency import added, busy_notes, excluded_from_times, where_measured
from rankdash.features.data.words import label_count, lights
from rankdash.features.overview import caveats
from rankdash.features.overview.caveat import Caveat
from rankdash.features.report import words as report_words
from rankdash.features.report.decision import HitCounts, Step, decision
from tests.study.best_or_worst import best_or_worst
from tests.study.test_headroom import QUERIES
from tests.study.test_headroom import study_of as ceilings
from tests.study.test_latency import DATA, study_on
from tests.study.test_latency import study_of as times_of

LISTED = shipped()[0]
REVERSED = Finding("warning", "label_direction", "Labels of {name} look reversed.", {"name": "<b>"})


@pytest.fixture(scope="module")
def study() -> Study:
    """The last four of twelve queries get worse, by far."""
    return best_or_worst(12, "ndcg@3", lambda at: at > 7, lambda at: at < 8)


def own_segment(study: Study, name: str) -> Study:
    data = study.dataset
    queries = data.queries.assign(**{name: "v"})
    own = Dataset(data.name, queries, data.documents, data.qrels, data.candidates)
    return replace(study, dataset=own)


def fit(name: str) -> str:
    return name.replace("<", "&lt;")


def group(value: str, *, proven: bool = True, column: str = DERIVED_SEGMENTS[0].name) -> Group:
    return Group(column, value, 7, -0.2, proven)


def every_caveat(run: str) -> dict[str, Caveat]:
    return {
        "labels look reversed": caveats.Implausible(REVERSED),
        "refused rows": caveats.RefusedRows(200, 1000),
        "unlabelled, as not relevant": caveats.Unlabelled(0.2, 0.3, False),
        "unlabelled, skipped": caveats.Unlabelled(0.2, 0.3, True),
        "tokens": caveats.UnknownTokens(run, 0.6),
        "worse and proven": caveats.TurnedGroups(True, (group("a"),)),
        "worse and not proven": caveats.TurnedGroups(True, (group("a", proven=False),)),
        "three kinds": caveats.TurnedGroups(False, tuple(map(group, "abc"))),
        "one kind more": caveats.TurnedGroups(False, tuple(map(group, "abcd"))),
        "two kinds more": caveats.TurnedGroups(False, tuple(map(group, "abcde"))),
        "a lead": caveats.UnprovenLead(run, 0.01),
        "better on others": caveats.OtherMetrics(("MRR",), ()),
        "worse on others": caveats.OtherMetrics((), ("MAP",)),
        "both on others": caveats.OtherMetrics(("MRR",), ("MAP", "P@5")),
        "short lists": caveats.ShortLists(run, 1, 20),
        "too easy": caveats.NearCeiling(0.95, 0.99),
        "no negatives": caveats.NoNegatives(1, 12),
        "timings": caveats.ShippedTimings(),
        **{
            f"first stage: {how}": caveats.MadeBaseline(how, labelled_only=how == "bm25")
            for how in get_args(FirstStage)
        },
    }


def test_a_caveat_names_the_side_and_the_share(study, texts):
    column, cases = DERIVED_SEGMENTS[0].name, every_caveat(*study.challengers)
    price = caveats.ExamplePrice(Bill(LISTED, choices(study)[1].load, "USD"))
    texts(
        "caveats",
        {name: each.sentence(study, fit) for name, each in cases.items()}
        | {
            "an example price": price.sentence(study),
            "unlabelled, of whole lists": cases["unlabelled, skipped"].sentence(
                replace(study, metric="map", cutoff=None)
            ),
            # A user's column may have the name of a derived one.
            "a column of one's own": verdicts.kinds(own_segment(study, column), [group("x")]),
        },
    )


def test_risks_gaps_and_the_step_are_said_from_where_they_are_risks(study, texts):
    usual = replace(decision(study, *study.challengers), groups=(), caveats=(), defaults=())
    choice = replace(usual.choice, bill=None, waiting=Waiting(200.0, 400.0))
    usual = replace(usual, choice=choice, target_ms=400.0, priced=True, unlabelled=0, step="price")
    gain = usual.row.copy()
    gain["verdict"] = "better"
    assert usual.kind == "unproven"

    def waiting(*given: float | None, **more: object) -> dict[str, object]:
        return {"choice": replace(usual.choice, waiting=Waiting(*given, **more))}

    def billed(**more: object) -> dict[str, object]:
        bill = Bill(None, usual.choice.load, "USD", **more)
        return {"choice": replace(usual.choice, bill=bill)}

    none = gain.copy()
    none["paired"] = none["hurt"] = 0
    unproven = {"groups": (group("a"), group("b", proven=False))}
    cases = {
        "a third is hurt, on the target": {},
        "nobody is hurt": {"worst": None},
        "nothing is compared": {"row": none},
        "kinds of queries without a gain": unproven | {"row": gain},
        "where the whole gains nothing, no kind is expected to": unproven,
        "over the target": {"target_ms": 399.0},
        "a busy machine": waiting(200.0, 400.0, busy=True),
        "no latency": waiting(None, None),
        "few latencies": waiting(200.0, None, timed=4),
        "no price": {"priced": False} | billed(lack="price"),
        "an example without throughput": billed(lack="throughput"),
        "no throughput": billed(lack="throughput", chosen=True),
        "no exchange rate": billed(lack="rate", chosen=True),
        "no texts": billed(lack="tokens", chosen=True),
        "an unlabelled document": {"unlabelled": 1},
        "two, and defaults": {"unlabelled": 2, "defaults": Money().defaults[:1]},
        "caveats that are risks or gaps": {
            "caveats": tuple(every_caveat(*study.challengers).values())
        },
    }

    def said(of: Study, changes: dict[str, object]) -> list[tuple[str, ...]]:
        found = replace(usual, **changes)
        return [
            ("risks", *report_words.risks(of, found, fit)),
            ("gaps", *report_words.gaps(of, found, fit)),
            ("step", report_words.next_step(of, found)),
            *([("others", report_words.other_metrics(of, found))] if found.caveats else []),
        ]

    first, *rest = (said(study, changes) for changes in cases.values())
    shown = [first, *([line for line in each if line not in first] for each in rest)]
    money = [None, Money(), Money.of({"value_per_search": 1.0})]
    texts(
        "decision",
        dict(zip(cases, shown, strict=True))
        | {
            "a metric that is no quality": said(replace(study, metric="judged"), {})[0],
            "unlabelled, of whole lists": said(
                replace(study, metric="map", cutoff=None), {"unlabelled": 2}
            )[1],
            "one query": report_words.hits(HitCounts(0, 1, 1, 3, gain)),
            "queries": report_words.hits(HitCounts(7, 1000, 2000, 3, gain)),
            "nothing compared": report_words.nothing_compared(study, fit),
        },
    )
    texts(
        "steps",
        {
            step: list(
                dict.fromkeys(
                    report_words.next_step(
                        replace(study, statistics=replace(study.statistics, worthwhile=0.3)),
                        replace(usual, step=step, more=more, unlabelled=more),
                    )
                    for more in (1, 1200)
                )
            )
            for step in get_args(Step)
        }
        | {
            "price set, or not": [
                report_words.next_step(replace(study, money=each), replace(usual, **changes))
                for each in money
                for changes in ({}, billed(lack="price"))
            ]
        },
    )


PARTS = {"part_ids": "one, first stage, two"}
SHIPPED = {SHIPPED_WITH: "sample", "cpu": "AMD EPYC"}


def test_times_that_are_not_a_run_s_own_or_not_of_this_machine_say_so(texts):
    ranking = Ranking.from_lists([("q", ["a", "b"], np.array([2.0, 1.0]))])
    usual = run_from_ranking("r", "data", ranking, "r.trec")
    shipped_at = {"machine": SHIPPED, "created": "2026-11-21T06:14:49+00:00"}
    runs = {
        "a sum, whoever made it": {"reranker": FUSION, "settings": PARTS},
        "a sum that was shipped": {"reranker": FUSION, "settings": PARTS, "machine": SHIPPED},
        # A sum of the first stage only, without any part that takes time.
        "no parts": {"reranker": FUSION, "settings": {"part_ids": "first stage, first stage"}},
        "a cascade": {"reranker": "cascade"},
        "a model": {"reranker": "bi-encoder"},
        "shipped": {"reranker": "bi-encoder", **shipped_at},
        "a cluster": {"machine": {"ray_actors": 4, "node": "head"}},
    }
    made = {name: replace(usual, **each) for name, each in runs.items()}
    nothing = Apart(9, 0, 0, 0, 0, 0, 0.0, 0)
    lost = {
        "nothing": {},
        "failed and in batches": {"failed": 1, "untimed": 2},
        "given up": {"timed_out": 2, "limit_ms": 2000.0},
        "retried": {"retried": 1, "retry_wait_ms": 3000.0},
        "not requested": {"skipped": 1},
        "all of it": {"failed": 2, "timed_out": 1, "limit_ms": 9.0, "retried": 2, "skipped": 2},
    }
    assert added(None) == ""
    held = Measured(seconds=20.0, cpu_seconds=9.0, threads=2)
    busy = [replace(times_of().run(each), measured=held) for each in ("two", "untimed")]
    texts(
        "latency",
        {name: (where_measured(each), added(each)) for name, each in made.items()}
        | {
            f"in no time, {name}": excluded_from_times(replace(nothing, **each), Measured())
            for name, each in lost.items()
        }
        | {"busy, of which one was timed": busy_notes(study_on(DATA, *busy))}
        | {"prepared": excluded_from_times(nothing, Measured(index_seconds=5.0))}
        | {
            f"{n} without a text, {rule}": str(
                words_queries.without_text(Measured(textless_pairs=n, without_text=rule))
            )
            for n, rule in (
                (0, "exclude"),
                (1, "exclude"),
                (2, "exclude"),
                (1, "empty"),
                (2, "empty"),
            )
        },
    )


def labelled(study: Study, *relevant: str) -> Study:
    """Return the study with only these documents relevant."""
    pairs = [(query, doc, 1.0) for query in QUERIES for doc in relevant]
    data = study.dataset
    qrels = pd.DataFrame(pairs, columns=["query_id", "doc_id", "label"])
    changed = Dataset("set", data.queries, data.documents, qrels, data.candidates)
    return Study(changed, study.systems, study.baseline, study.challengers)


def test_a_ceiling_is_said_of_the_documents_that_it_is_of(texts, monkeypatch):
    reranked, uploaded = ceilings("reranked"), ceilings("dense", "sparse")
    shallow = ceilings("reranked", reranked=5)
    cases = {
        "the first stage found everything": labelled(reranked, "d5"),
        "it found a part": reranked,
        "the candidates down to a depth hold a part": labelled(shallow, "d5", "d4"),
        "they hold everything": labelled(shallow, "d4"),
        "uploaded runs, each with its own list": uploaded,
        "a list of everything, and one of nothing": labelled(uploaded, "d5"),
        "a reranked and an uploaded run": ceilings("reranked", "dense"),
    }
    said = {name: verdicts.notes(each, str.upper) for name, each in cases.items()}
    for own in (True, False):
        said[f"own: {own}"] = (verdicts.documents(own), verdicts.best_order(own))
    # A share below 1 is never shown as all.
    split = reranked.headroom("reranked")
    for changes in (
        *({"recall_ceiling": share} for share in (0.994, 0.996, 1 - 1e-12, None)),
        {"n": 0},
    ):
        found = replace(split, **changes)
        monkeypatch.setattr(Study, "headroom", lambda *_, found=found: found)
        said[f"{changes}"] = verdicts.notes(reranked)
    texts("headroom", said)


CHARS = LabelSpread(3, 4, 5)


def report(*findings: Finding, labels: int = 10, chars: LabelSpread | None = CHARS) -> CheckReport:
    return CheckReport(5, 9, labels, 5, None, (), chars, chars, (), findings)


def warning(code: str) -> Finding:
    return Finding("warning", code, "What of {name}.", {"name": "*x*"}, "Do {name}.")


def test_a_light_says_what_is_wrong_and_what_to_do(texts):
    rows = {"count": 3, "lines": "1", "rows": 10}
    refused = Finding("warning", "bad_label", "{count} (lines {lines})", rows, file="a", count=3)
    cases = {
        "nothing is wrong": report(),
        "no labels": report(labels=0),
        "no texts": report(chars=None),
        "many rows are refused": report(refused),
        "what is wrong comes before what is to be looked at": report(
            warning("ties"), warning("none_in_top"), warning("rank_gaps")
        ),
    }
    counts = [label_count(n, of) for n, of in ((1, 0), (325, 0), (325, 3307))]
    texts(
        "lights",
        {
            name: [(each.title, each.state, each.what, each.remedy) for each in lights(of)]
            for name, of in cases.items()
        }
        | {"labels": counts, "a sample": lights(report(labels=325), 3307)[0].what},
    )
    assert lights(report(labels=325))[0].what == ""


@pytest.mark.parametrize(
    ("light", "wrong", "look"),
    [
        (0, ["unused_labels"], ["none_relevant", "mostly_unjudged", "no_relevant"]),
        (1, ["labels_by_accident", "counted_queries"], ["labelled_not_ranked"]),
        (2, ["label_direction"], []),
        (3, ["few_documents"], ["texts_differ", "any_other_warning"]),
        (4, ["none_in_top"], ["rank_gaps", "ties"]),
    ],
)
def test_each_warning_turns_its_own_light_and_says_what_to_do(light, wrong, look):
    other = "texts_differ" if light != 3 else "rank_against_score"
    for state, codes in (("wrong", wrong), ("look", look)):
        for code in codes:
            found = lights(report(warning(other), warning(code)))
            assert found[light].state == state
            assert (found[light].what, found[light].remedy) == ("What of *x*.", "Do *x*.")
            assert [each.state for each in found].count("good") == 3
