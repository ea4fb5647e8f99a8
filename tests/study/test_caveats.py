"""Texts of each caveat on both sides of its threshold."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

import pytest

from rankdash.core.base.errors import Finding
from rankdash.core.base.rules import RULE_OF_THUMB
from rankdash.core.data.measured import Measured, Stopped
from rankdash.core.data.ranking import CHURN, SOURCE, SOURCE_ID
from rankdash.core.metrics import Conventions
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.runs.combining import CombinedRun, Tuned, fuse
from rankdash.core.study import costs
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money
from rankdash.core.value.prices import shipped
from rankdash.features.overview import command_compare, page_verdict
from rankdash.features.overview.caveat import Caveat
from rankdash.features.overview.caveats import caveats, kinds
from rankdash.features.overview.report_systems import board
from rankdash.features.policy.policy import Choices, expected
from rankdash.features.policy.words import basis
from rankdash.features.report.report import PRESETS, Front, html
from tests.approved import table
from tests.reporting.reading import Read
from tests.study.builders import (
    DOCS,
    FEW,
    FLAT,
    TOP,
    changed,
    compared,
    lists_of,
    moved,
    on,
    own_price,
    ranking,
    reversed_,
    rows,
    shown,
    small,
    timed,
    together,
    with_finding,
)  # fmt: skip
from tests.ui import parts

RULE = replace(FEW, worthwhile=RULE_OF_THUMB)


def told(of: Study, *codes: str) -> str:
    """Return the caveats on the first challenger. codes: only these."""
    (first, *_) = of.challengers
    found = [each for each in caveats(of, first) if not codes or each.code in codes]
    said = [f"{each.code}: {each.sentence(of)}" for each in found]
    said += [f"  {shown(each)}" for each in found if each.code not in ("price", "segments")]
    for each in found:
        said += [f"  {shown(group)}" for group in getattr(each, "groups", ())]
    text = "\n".join(said) or "-"
    for system, known in of.systems.items():
        text = text.replace(system, known.name) if system != FIRST_STAGE else text
    return text


def unlabelled(lacking: int, queries: int = 10, **given: object) -> Study:
    loaded = rows([3] * queries, labelled={0: DOCS - lacking})
    return compared(loaded, moved(loaded, [1] * queries), **given)


def apart() -> Study:
    """Return a study with one unlabelled document in the first stage's top four, and four in the
    other."""
    loaded = rows(TOP, labelled=dict.fromkeys(range(10), 3))
    return compared(loaded, reversed_(loaded), cutoff=4)


def made(how: str = "", between: bool = False, labels: slice | None = None, **given) -> Study:
    """Return a study with a first stage made by rankdash. between: of two other runs."""
    loaded = rows(FLAT, **given)
    data = changed(loaded.dataset, **({"first_stage": how} if how else {}))
    if labels is not None:
        data = changed(data, qrels=data.qrels.iloc[labels])
    loaded = replace(loaded, dataset=data)
    of = compared(loaded, moved(loaded, TOP), moved(loaded, [2] * 10, "other"))
    return (
        replace(of, baseline=of.challengers[1], challengers=of.challengers[:1]) if between else of
    )


def blind(share: float, of_baseline: bool = False) -> Study:
    loaded = rows(FLAT)
    one = moved(loaded, TOP, "blind", measured=Measured(unknown_tokens=share))
    if not of_baseline:
        return compared(loaded, one)
    other = moved(loaded, [2] * 10, "other")
    return compared(loaded, other, one, baseline=one.id, challengers=(other.id,))


def fetched(churn: float) -> Study:
    loaded = rows(FLAT)
    return compared(loaded, moved(loaded, TOP, "engine", machine={CHURN: churn}))


def over_fetched(churn: float) -> Study:
    loaded = rows(FLAT)
    engine = moved(loaded, TOP, "engine", machine={CHURN: churn})
    over = moved(loaded, [2] * 10, "over", settings={SOURCE: "engine", SOURCE_ID: engine.id})
    return replace(compared(loaded, over, engine), challengers=(over.id,))


def stopped() -> Study:
    """Return a study of a run that was stopped by its result after 10 of 30 queries."""
    loaded = rows(FLAT)
    return compared(loaded, moved(loaded, TOP, measured=Measured(stopped=Stopped(10, 30))))


def fused_with_a_stopped_part() -> Study:
    """Return a study of a fusion with a run that was stopped after 10 of 30 queries."""
    loaded = rows(FLAT)
    part = moved(loaded, TOP, "part", measured=Measured(stopped=Stopped(10, 30)))
    first = CombinedRun("first stage", loaded.dataset.candidates, None)
    fused = fuse(
        loaded.dataset, [first, CombinedRun(part.name, part.ranking, part)], Fusion("rrf"), "both"
    )
    return compared(loaded, part, fused, challengers=(fused.id,))


def tuned_here(ranks: Sequence[int], on: str = "", gain: float = 0.031) -> Study:
    """Return a study of a run with weights tuned on a data set, by default on its own."""
    loaded = rows([3] * len(ranks))
    record = Tuned(on or loaded.dataset.id, "nested 5-fold", "NDCG@10", 0.95, gain, 0.014, 0.054)
    return compared(loaded, moved(loaded, ranks, settings=record.settings))


def priced(kind: str) -> Study:
    loaded = rows(FLAT)
    run = moved(loaded, TOP)
    if kind != "a ranking from a file":
        run = replace(timed(run, 5.0), reranker="bm25", machine={"cpu": "a processor"})
    own = replace(shipped()[0], as_of=date(2026, 11, 1), source="our contract")
    money = {
        "no money": None,
        "own": Money(prices={run.id: own}),
        "example": Money(example=True),
    }
    return compared(loaded, run, money=money.get(kind, Money()))


def with_sample_times(ms: float | None, machine: bool = True) -> Study:
    loaded = rows(FLAT)
    run = moved(loaded, TOP, machine={"shipped_with": "sample"} if machine else {})
    return compared(loaded, run if ms is None else timed(run, ms))


def easy(labels: str) -> Study:
    """Return labels of the two candidates of each query; "-": none."""
    names = {f"q{n}": pair for n, pair in enumerate(labels.split())}
    known = {query: {doc: float(label) for doc, label in zip("ab", pair, strict=True)
                     if label != "-"} for query, pair in names.items()}  # fmt: skip
    lists = dict.fromkeys(names, "ab")
    return small(lists, lists, labels=known, metric="mrr")


def led(best: Sequence[int], *others: Sequence[int], **given: object) -> Study:
    loaded = rows([3] * len(best))
    runs = [moved(loaded, ranks, f"next {n}" if n else "new")
            for n, ranks in enumerate((best, *others))]  # fmt: skip
    return compared(loaded, *runs, **given)


def as_good(**given: object) -> Study:
    """The best of three takes 9 ms and $2. The second is as good within 0.05; the third is not."""
    loaded = rows([3] * 200)
    ranks = {"best": [1] * 200, "second": [1] * 198 + [2] * 2, "third": [1] * 100 + [2] * 100}
    systems = {
        name: timed(moved(loaded, places, name), ms)
        for (name, places), ms in zip(ranks.items(), (9.0, 5.0, 1.0), strict=True)
    }
    prices = {systems["best"].id: own_price(2.0), systems["second"].id: own_price(1.0)}
    usual = {"statistics": replace(FEW, equal_margin=0.05), "money": Money(prices=prices)}
    return compared(loaded, *systems.values(), **(usual | given))


def falling(queries: int) -> Study:
    """Return twelve queries of a kind, `queries` of which lose their document at rank 10: -0.0083
    each."""
    loaded = rows([3] * 30 + [10] * 12, kinds=["a"] * 30 + ["b"] * 12)
    run = moved(loaded, [1] * 30 + [10] * 12)
    gone = {f"q{30 + n}" for n in range(queries)}
    lists = {query: docs[:-1] if query in gone else docs
             for query, docs in lists_of(run.ranking).items()}  # fmt: skip
    return compared(loaded, replace(run, ranking=ranking(lists)),
                    statistics=replace(FEW, tie_band=0.01))  # fmt: skip


def turning(*groups: tuple[int, int, int], whole: int = 60) -> Study:
    """Return groups of queries, each of another kind, and `whole` queries that gain. groups:
    (queries of a kind, their rank before, after)."""
    before, after, kinds = [3] * whole, [1] * whole, ["gain"] * whole
    for place, (size, was, now) in enumerate(groups):
        before, after = before + [was] * size, after + [now] * size
        kinds += [f"kind {place}"] * size
    return on(before, after, kinds)


def difficult(named: bool) -> Study:
    """Return queries that get worse if the baseline did well. named: a user's column difficulty
    separates the same queries."""
    loaded = rows([3] * 30 + [1] * 10, kinds=["a"] * 30 + [""] * 10)
    queries = loaded.dataset.queries
    own = queries.assign(difficulty=["hard"] * 30 + ["easy"] * 10).drop(columns="kind")
    loaded = replace(loaded, dataset=changed(loaded.dataset, queries=own if named else queries))
    return compared(loaded, moved(loaded, [1] * 30 + [2] * 10))


def shortened(metric: str, cutoff: int | None, documents: int, side: str) -> Study:
    loaded = rows(FLAT)
    full, run = moved(loaded, TOP, "full"), moved(loaded, TOP, "short")
    lists = {query: docs[:documents] for query, docs in lists_of(run.ranking).items()}
    run = replace(run, ranking=ranking(lists))
    base, challenger = (full, run) if side == "challenger" else (run, full)
    return compared(loaded, full, run, baseline=base.id, challengers=(challenger.id,),
                    metric=metric, cutoff=cutoff)  # fmt: skip


def others(**given: object) -> Study:
    """Return a study from rank 5 to 4 in ten queries and from 1 to 2 in thirty: MRR is worse, Hit@4
    better."""
    return on([5] * 10 + [1] * 30, [4] * 10 + [2] * 30, **given)


def suspect() -> Study:
    refused = {"count": 12872, "lines": "1, 2", "rows": 30000}
    return with_finding(
        rows(FLAT),
        Finding("warning", "none_in_top", "Nothing in {name}.", {"name": "<b>x</b>"}),
        Finding("warning", "ties", "Not among them."),
        Finding("warning", "bad_label", "Refused: {count} (lines {lines}).", refused,
                file="a.csv", count=12872),
    )  # fmt: skip


FIVE = (10, 9, 10), (10, 1, 2), (10, 4, 5), (10, 2, 4), (10, 6, 8)


def cases() -> dict[str, tuple[Any, ...]]:
    return {
        "one document of a hundred without a label: 1 %": (unlabelled(1), "unlabelled"),
        "none": (unlabelled(0), "unlabelled"),
        "one of a hundred and ten: below 1 %": (unlabelled(1, 11), "unlabelled"),
        "skipped by the conventions": (
            unlabelled(1, conventions=Conventions(judged_only=True)), "unlabelled",
        ),
        "each side has its own share without a label": (apart(), "unlabelled"),
        "the user's own search": (made(), "baseline"),
        "ordered by BM25": (made(scores=False), "baseline"),
        "the order of the rows": (made(scores=False, texts=False, retrieval="rows"), "baseline"),
        "the order of the rows, which an older version did not store": (
            made("given", scores=False, texts=False, retrieval="rows"), "baseline",
        ),
        "ordered by BM25, but another system is the baseline": (
            made(scores=False, between=True), "baseline",
        ),
        "ordered by BM25, of which not all documents are labelled": (
            made(labels=slice(1, None), scores=False), "baseline",
        ),
        "retrieved by BM25": (made("corpus-bm25", labelled={0: 9}), "baseline"),
        "retrieved by a bi-encoder": (made("corpus-bi-encoder", labelled={0: 9}), "baseline"),
        "retrieved by both": (made("corpus-fused", labelled={0: 9}), "baseline"),
        "stopped by its result": (stopped(), "stopped"),
        "a fusion with a stopped part": (fused_with_a_stopped_part(), "stopped"),
        "weights tuned on these queries": (tuned_here(TOP), "tuned"),
        "an unknown gain": (tuned_here(TOP, gain=math.nan), "tuned"),
        "tuned on another data set": (tuned_here(TOP, "another"), "tuned"),
        "11 % of the tokens are not known": (blind(0.11), "unknown_tokens"),
        "11 % to the baseline's model": (blind(0.11, of_baseline=True), "unknown_tokens"),
        "10 %": (blind(0.1), "unknown_tokens"),
        "nobody knows how many": (blind(math.nan), "unknown_tokens"),
        "the baseline reaches 0.95 of the best": (on([1] * 9 + [2], TOP), "ceiling"),
        "0.9 of the best": (on([1] * 8 + [2] * 2, TOP), "ceiling"),
        "a ranking from a file has no price, and no example of one": (
            priced("a ranking from a file"), "price",
        ),
        "nothing of prices was asked": (priced("no money"), "price"),
        "an example stands in for the price": (priced("example"), "price"),
        "neither price nor example is in use": (priced("not set"), "price"),
        "the user's own price": (priced("own"), "price"),
        "proven on another metric": (
            others(others=("hit@4", "judged@10", "hit@10")), "other_metrics",
        ),
        "better on one and worse on another": (others(others=("hit@4", "hit@1")), "other_metrics"),
        "equal on the others": (others(others=("hit@10", "judged@10")), "other_metrics"),
        "a small gain on another metric is proven too": (
            on([2] * 8 + [1] * 52, [1] * 60, metric="hit", others=("mrr",), statistics=RULE),
            "other_metrics",
        ),
        **{name: (
            on([3] * 30 + [1] * n, [1] * 30 + [2] * n, ["easy to say"] * 30 + ["hard"] * n),
            "segments",
        ) for name, n in (("ten queries of a kind lose", 10), ("nine", 9))},
        "they gain where the whole loses": (
            on([1] * 30 + [2] * 10 + [4] * 10, [3] * 30 + [1] * 10 + [3] * 10,
               ["easy to say"] * 30 + ["hard"] * 10 + ["dull"] * 10),
            "segments",
        ),
        "a kind loses less than the tie band of 0.01": (falling(1), "segments"),
        "and more": (falling(2), "segments"),
        "of five kinds the largest three are named": (turning(*FIVE), "segments"),
        "of three all": (turning(*FIVE[:3]), "segments"),
        "a proven kind comes before one that turns farther": (
            on([3] * 60 + [1] * 5 + [3] * 5 + [4] * 10, [1] * 60 + [10] * 5 + [3] * 5 + [5] * 10,
               ["gain"] * 60 + ["far"] * 10 + ["sure"] * 10),
            "segments",
        ),
        **{
            f"seven of ten fall, p 0.016, at level {level}": (
                on([3] * 40 + [1] * 10, [1] * 40 + [2] * 7 + [1] * 3, ["gain"] * 40 + ["turn"] * 10,
                   statistics=replace(FEW, level=level)),
                "segments",
            )
            for level in (0.95, 0.99)
        },
        "no change on the whole": (
            on([1] * 10 + [2] * 10, [2] * 10 + [1] * 10, ["down"] * 10 + ["up"] * 10), "segments",
        ),
        "queries of no known kind, or told apart by the baseline's value": (
            difficult(named=False), "segments",
        ),
        "the user's own column of that name": (difficult(named=True), "segments"),
        "all candidates of 2 of 3 queries are relevant": (easy("12 11 01 00"), "no_negatives"),
        "of 1 of 3": (easy("12 01 01"), "no_negatives"),
        "a candidate without a label may not be relevant": (easy("1- 10"), "no_negatives"),
        "no relevant document": (easy("00 00"), "no_negatives"),
        "the sample has no timings": (with_sample_times(None), "timings"),
        "timings that come with the sample": (with_sample_times(5.0), "timings"),
        "own timings": (with_sample_times(5.0, machine=False), "timings"),
        "a lead of 0.05 over the next": (led(TOP, [1] * 9 + [2]), "lead"),
        "a proven lead": (led(TOP, [2] * 10), "lead"),
        "the next best has none": (led([1] * 9 + [2], TOP), "lead"),
        "the baseline comes next": (led(TOP, [4] * 10), "lead"),
        "the baseline comes next, and is hardly worse": (led([1] + [3] * 9, [4] * 10), "lead"),
        "faster, cheaper and as good": (as_good(), "as_good"),
        "faster, with example prices": (as_good(money=Money(example=True)), "as_good"),
        "without a margin": (as_good(statistics=FEW), "as_good"),
        "a narrow margin": (as_good(statistics=replace(FEW, equal_margin=0.001)), "as_good"),
        "small, and proven": (led([1] * 60, [1] * 52 + [2] * 8, statistics=RULE), "lead"),
        "what looks wrong about the data": (suspect(), "implausible", "refused_rows"),
        "an engine with churn": (fetched(0.08), "churn"),
        "a run over the candidates of an engine with churn": (over_fetched(0.08), "churn"),
        "an engine without churn": (fetched(0.0), "churn"),
        "a metric that describes labels has none": (unlabelled(5, metric="judged"),),
        **{
            f"{metric} at {cutoff}: lists of {documents} documents of the {side}": (
                shortened(metric, cutoff, documents, side), "short_lists",
            )
            for metric, cutoff, documents in (
                *(("ndcg", 6, 5), ("ndcg", 5, 5), ("ndcg", 10, 10)),
                *(("map", None, 8), ("map", None, 9)),
            )
            for side in ("challenger", "baseline")
        },
    }  # fmt: skip


def test_caveats_are_as_approved(approved):
    approved("study/caveats", table((name, told(*case)) for name, case in cases().items()))


def test_each_caveat_is_on_the_page_the_decision_page_and_the_command_line():
    examples: dict[type[Caveat], Study] = {}
    for of, *_codes in cases().values():
        examples |= {type(each): of for each in caveats(of, of.challengers[0])}
    assert examples.keys() == {*kinds()}
    for of in {id(each): each for each in examples.values()}.values():
        first = of.challengers[0]
        written = command_compare.text(command_compare.Compared("", "refuse", None, of))
        surfaces = {
            "page": parts.said(partial(page_verdict.draw, of, first)),
            "decision page": Read(html(of, Front(sections=PRESETS["decision"]))).text("decision"),
            "command line": "".join(written),
        }
        for each in caveats(of, first):
            for name, text in surfaces.items():
                if (name, each.section) != ("decision page", "elsewhere"):
                    assert " ".join(each.sentence(of).split()) in " ".join(text.split()), name


def test_a_tuned_gain_is_in_sample_in_policy_cost_and_report():
    of = tuned_here(TOP)
    [system] = of.challengers
    choices = Choices(system, depth=2)
    found, gain = expected(of, choices), costs.gain(of, system)
    assert found is not None and any("in-sample" in each for each in basis(of, choices, found))
    assert gain is not None and gain.in_sample
    footer = "a system that was tuned on these queries, so it cannot be verified"
    assert footer in html(of, Front(sections=PRESETS["decision"])).decode()


def test_names_and_values_are_made_fit_for_where_they_stand():
    of = on([3] * 30 + [1] * 10, [1] * 30 + [2] * 10, ["a"] * 30 + ["<b>"] * 10)
    said = "\n".join(
        each.sentence(of, lambda text: f"[{text}]") for each in caveats(of, of.challengers[0])
    )
    assert "[kind] “[<b>]”" in said


@pytest.mark.parametrize("deep", [False, True])
def test_a_fused_run_does_not_know_what_one_of_its_parts_does_not_know(deep):
    loaded = rows(FLAT)
    data = loaded.dataset
    unread, reads = (
        moved(loaded, TOP, name, measured=Measured(unknown_tokens=share))
        for name, share in (("blind", 0.6), ("reads", 0.02))
    )
    other = moved(loaded, [3] * 10, "other")
    fused, sound = together(data, unread, reads), together(data, reads, other)
    last = together(data, fused, other) if deep else fused
    runs = list({each.id: each for each in (unread, reads, other, fused, sound, last)}.values())
    of = compared(loaded, *runs, challengers=(last.id,))
    assert of.unknown_tokens(last.id) == 0.6
    assert of.unknown_tokens(sound.id) == 0.02
    assert math.isnan(of.unknown_tokens(other.id))
    # The unknown tokens of a deleted part are not known.
    assert math.isnan(compared(loaded, fused).unknown_tokens(fused.id))


def test_the_most_serious_caveat_comes_first():
    loaded = rows([1] * 9 + [2] * 31, labelled={0: 5}, scores=False)
    machine = {"cpu": "a processor", "shipped_with": "sample"}
    run = replace(timed(moved(loaded, TOP * 4), 5.0), reranker="bm25", machine=machine)
    next_best = moved(loaded, [1] * 39 + [2], "next")
    of = compared(loaded, run, next_best, others=("hit@1",), money=Money(example=True))
    assert [each.code for each in caveats(of, of.challengers[0])] == [
        *("baseline", "unlabelled", "lead", "other_metrics", "price", "timings"),
    ]
    # Without example values, no page shows a price that the user did not set.
    of = replace(of, money=Money())
    assert "price" not in [each.code for each in caveats(of, of.challengers[0])]


def test_the_leaderboard_marks_the_fastest_and_cheapest_system_as_good_as_the_best():
    def marked(study: Study) -> list[tuple[str, str]]:
        (_column, cells), *_rest = board(study, "p95")
        return [(cell.value, cell.below.split(": ")[-1])
                for cell in cells if "as good as the best" in cell.below]  # fmt: skip

    assert marked(as_good()) == [("second", "fastest and cheapest")]
    assert marked(as_good(money=Money())) == [("second", "fastest")]
    assert marked(as_good(statistics=FEW)) == []
    assert b"as good as the best" in html(as_good(), Front())
