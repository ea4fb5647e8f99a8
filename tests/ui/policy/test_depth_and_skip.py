"""The page Policy: depth and skipping, each answer on both sides of its threshold."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.i18n import speaking
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study import study as evaluating
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money
from rankdash.core.value.prices import ListedPrice, Price
from rankdash.features.policy import page as policy_page
from rankdash.features.policy import page_depth, page_skipping
from rankdash.features.policy.skipping import rank_after, skipping
from tests.approved import table
from tests.ui.parts import LANGUAGES, dataset_of, said, study_of, unlike
from tests.ui.test_pages import open_page

TODAY = date(2026, 1, 2)
HEAD = "query_id,query,doc_id,document,label,score\n"


def ranked(name: str, data, lists: dict[str, list[str]], **fields: object) -> Run:
    rows = ((query, docs, np.arange(len(docs), 0.0, -1.0)) for query, docs in lists.items())
    return replace(run_from_ranking(name, data.id, Ranking.from_lists(rows), name), **fields)


def moved(places: list[tuple[int, int]], docs: int = 12, k: int = 20) -> Study:
    """Return one relevant document per query, at a rank before and after "turned". The first query
    has the largest score margin."""
    rows, lists = [], {}
    for q, (before, after) in enumerate(places):
        documents = [f"d{d}" for d in range(docs)]
        right = documents.pop(before - 1)
        rows += [
            f"q{q},find {q},d{d},text {d},{int(d == before - 1)},{50 - d * d if d else 200 - 4 * q}"
            for d in range(docs)
        ]
        documents.insert(after - 1, right)
        lists[f"q{q}"] = documents
    data = dataset_of(HEAD + "\n".join(rows))
    return study_of(data, ranked("turned", data, lists), cutoff=k)


def decided(queries: int = 60) -> Study:
    """Return a study whose first stage is right on every other query, with a large margin there.
    "better" is right on all, and took 10 ms on each."""
    docs, rows, lists = 6, [], {}
    for q in range(queries):
        sure = q % 2 == 0
        right = 0 if sure else docs - 1
        scores = [100.0 if sure else 50.1 + q / 100, *(50.0 - 10 * d for d in range(docs - 1))]
        rows += [f"q{q},find {q},d{d},text {d},{int(d == right)},{scores[d]}" for d in range(docs)]
        lists[f"q{q}"] = [f"d{d}" for d in (right, *(d for d in range(docs) if d != right))]
    data = dataset_of(HEAD + "\n".join(rows))
    run = ranked("better", data, lists)
    timed = run.queries.assign(latency_ms=10.0, pairs=float(docs))
    return study_of(data, replace(run, queries=timed), cutoff=3)


def failed(study: Study) -> Study:
    """Return the study with a run that failed on all queries."""
    run = study.run(study.challengers[0])
    lost = replace(run, queries=run.queries.assign(state="failed", reason="why"))
    return study_of(study.dataset, lost, cutoff=study.cutoff)


def instead(study: Study, **fields: object) -> Study:
    """Return the study with other fields of its run."""
    run = replace(study.run(study.challengers[0]), **fields)
    return study_of(study.dataset, run, cutoff=study.cutoff)


SURE = decided()
RETRIEVED = instead(SURE, reranker="retrieval")
AGAIN = instead(SURE, settings={"candidates": "Vectors", "candidates_id": "vectors"})
UNPROVEN = moved([(2, 1)] * 10 + [(1, 2)] * 10)
PROVEN = moved([(2, 1)] * 20)
GAPS = pd.Series([0.1, 0.4, 0.9])
FOUND = skipping(SURE, SURE.challengers[0], "first", 3, 0.01)
RULE = replace(FOUND.rule, share=0.4, threshold=0.5)
HELD_OUT = replace(FOUND.held_out, share=0.38, change=-0.01, low=-0.015, high=0.002)
FITS = replace(FOUND, n=100, tolerance=0.02, reranked=0.8, first_stage=0.7, rule=RULE,
               held_out=HELD_OUT)  # fmt: skip


def readout(study: Study = SURE, gaps: pd.Series = GAPS, **changes: object) -> Callable[[], None]:
    found = replace(FITS, **changes)
    return partial(page_skipping.readout, study, study.challengers[0], found, gaps)


def skipped(study: Study) -> Callable[[], None]:
    return partial(page_skipping.show, study, study.challengers[-1])


def priced(run: Run, price: float | None) -> Money:
    """Return a price of 1,000 searches with a run."""
    prices = (
        {}
        if price is None
        else {run.id: ListedPrice("p", "P", "", Price(price, "flat"), "", TODAY)}
    )
    return Money(prices=prices)


def savings(price: float | None = None, state: str = "done", pairs=np.nan, ms=np.nan):
    """Return savings over ten queries, four of them with a margin above the rule's threshold."""
    data = dataset_of(HEAD + "".join(f"q{q},a,d0,text,1,1\n" for q in range(10)))
    run = ranked("run", data, {f"q{q}": ["d0"] for q in range(10)})
    rows = run.queries.assign(state=state, pairs=pairs, latency_ms=ms)
    study = study_of(data, replace(run, queries=rows), money=priced(run, price))
    gaps = pd.Series(np.arange(10) / 10, index=[f"q{q}" for q in range(10)])
    return partial(page_skipping.savings, study, study.challengers[0], gaps, 0.6)


TENTH = np.arange(10)
READOUTS = {
    "19 queries are too few": readout(rule=None, n=19),
    "20 evenly spaced ones": readout(gaps=GAPS * 0, rule=None, n=20),
    "no rule, and a gain that is not proven": readout(UNPROVEN, rule=None),
    "no rule, and a proven gain": readout(PROVEN, rule=None),
    "nothing held out": readout(held_out=None),
    "a rule that does not hold": readout(held_out=replace(HELD_OUT, low=-0.021)),
    "a rule that just holds": readout(held_out=replace(HELD_OUT, low=-0.02)),
    "every query, and a proven gain": readout(PROVEN, rule=replace(RULE, share=1.0)),
    "every query, and none": readout(UNPROVEN, rule=replace(RULE, share=1.0)),
    # Skipping the same number of random queries loses an equal share of the whole gain of 0.1.
    "a margin that does not help": readout(advantage_low=0.0),
    "0.4% are not nothing": readout(rule=replace(RULE, share=0.004)),
    "9.4% with a digit": readout(rule=replace(RULE, share=0.094)),
    "9.5% without": readout(rule=replace(RULE, share=0.095)),
    "90.5% without": readout(rule=replace(RULE, share=0.905)),
    "90.6% with a digit": readout(rule=replace(RULE, share=0.906)),
    "99.9% are not all": readout(rule=replace(RULE, share=0.999)),
    "no query was asked for": savings(2.0, state="failed"),
    "calls": savings(),
    "calls and pairs": savings(pairs=np.where(TENTH < 6, 13.0, 10.0)),
    "six timed queries": savings(ms=np.where(TENTH > 3, 10.0, np.nan)),
    "a price": savings(2.0),
    "a price of nothing": savings(0.0),
}
WHOLE = {
    "with a price": (
        skipped(replace(SURE, money=priced(SURE.run(SURE.challengers[0]), 2.0))),
        {},
    ),
    "15 queries": (skipped(decided(15)), {}),
    "lists too short for the margin": (skipped(replace(SURE, cutoff=20)), {"margin": "edge"}),
    "rerank everything": (skipped(PROVEN), {}),
    "no proven gain": (skipped(UNPROVEN), {}),
    "a gain within the loss": (skipped(moved([(12, 11)] * 20)), {"loss": "0.05"}),
    "no gain": (skipped(moved([(12, 11), (11, 12)] * 10)), {"loss": "0.05"}),
    "the first stage itself": (partial(policy_page.draw, SURE, FIRST_STAGE), {}),
    "every query failed": (skipped(failed(SURE)), {}),
    "a retrieval": (partial(policy_page.draw, RETRIEVED, RETRIEVED.challengers[0]), {}),
    "candidates of a retrieval": (partial(policy_page.draw, AGAIN, AGAIN.challengers[0]), {}),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_when_reranking_can_be_skipped(approved, language):
    cases = {name: said(part, language) for name, part in READOUTS.items()}
    usual = said(skipped(SURE), language)
    opened = said(skipped(SURE), language, ["policy.thresholds", "policy.near"])
    cases |= {"a sure first stage": usual, "its tables": unlike(usual, opened)} | {
        name: unlike(usual, said(part, language, **given)) for name, (part, given) in WHOLE.items()
    }
    approved(f"ui/skipping.{language}", table(cases))


@pytest.mark.parametrize(("cutoff", "depth"), [(3, 3), (None, 10)])
def test_margins_are_at_the_cutoff_or_at_ten(cutoff, depth):
    assert rank_after(replace(SURE, cutoff=cutoff)) == depth
    with speaking("en"):
        words = page_skipping.margin_words(depth)
    assert words == {
        "first": "gap between ranks 1 and 2",
        "edge": f"gap between ranks {depth} and {depth + 1}",
    }


def incomplete(study: Study) -> Study:
    """Return the study with a run that lacks a candidate."""
    run = ranked("short", study.dataset, {"q0": ["d0", "d1"]})
    return study_of(study.dataset, run, cutoff=study.cutoff)


PRICED = replace(PROVEN, money=priced(PROVEN.run(PROVEN.challengers[0]), 2.0))
DEPTHS = {
    "a price, and a chosen depth": (PRICED, {"policy_depth": "5"}),
    "timed": (SURE, {}),
    "an unknown depth": (PROVEN, {"policy_depth": "7"}),
    "not proven": (UNPROVEN, {}),
    "worse": (moved([(1, 2)] * 20), {}),
    "too few queries": (decided(4), {}),
    "not the candidates": (incomplete(PROVEN), {}),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_how_many_documents_to_rerank(approved, language):
    usual = said(partial(page_depth.show, PROVEN, PROVEN.challengers[0]), language)
    cases = {"proven": usual} | {
        name: unlike(
            usual, said(partial(page_depth.show, study, study.challengers[0]), language, **given)
        )
        for name, (study, given) in DEPTHS.items()
    }
    approved(f"ui/depth.{language}", table(cases))


@pytest.mark.parametrize(
    ("family", "others"), [("metric", set()), ("all", {"mrr@10", "recall@10"})]
)
def test_the_chosen_metric_alone_is_evaluated_unless_all_are_corrected_together(
    app, stored, monkeypatch, family, others
):
    evaluated: set[str] = set()
    made = evaluating.evaluate

    def noted(judged, specs, *given, **named):
        evaluated.update(specs)
        return made(judged, specs, *given, **named)

    monkeypatch.setattr(evaluating, "evaluate", noted)
    open_page(app, "policy", family=family)
    assert evaluated >= {"ndcg@10", *others}
    assert others or evaluated == {"ndcg@10"}
