"""The page to decide by: what was found, cost, risk, what is missing and one next step, under every
combination of verdict, labels, price and latency."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from rankdash.dataset import Dataset
from rankdash.ranking.measured import Measured
from rankdash.ranking.ranking import Ranking
from rankdash.reporting import targets as target_table
from rankdash.reporting.report import PRESETS, Front, html
from rankdash.study.decision import decision
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money, System
from rankdash.value.billing import Price
from rankdash.value.price_list import shipped
from rankdash.value.targets import Goals, Limit, Profile
from rankdash.value.targets import shipped as targets
from rankdash.words import prices
from rankdash.words.rankings import first_stage
from tests.reporting.test_report import DOCS, FAILED, QUERIES, SKIPPED, Read, study_of

OWN = dataclasses.replace(
    shipped()[0], source="our contract", price=dataclasses.replace(shipped()[0].price, amount=1.0)
)
DEAR = dataclasses.replace(OWN, price=dataclasses.replace(OWN.price, amount=1000.0))
# Nothing of the sample's own texts, so that a sentence of the page is one line here.
MONEY = Money.of({"searches_per_day": 5000.0, "value_per_search": 0.01}, prices={"run": OWN})


@pytest.fixture(scope="module")
def better() -> Study:
    return study_of()


def page(study: Study, language: str = "en") -> str:
    """The text of the page on one line, and that there is no other section."""
    read = Read(html(study, Front(sections=PRESETS["decision"], language=language)))
    assert list(read.sections) == ["", "decision"]
    assert not read.attributes("nav")
    return " ".join(read.text("decision").split())


def moved(study: Study, place: Callable[[int], int]) -> Study:
    """The study with a run that puts the relevant document of each query at a place; it is fourth
    in the first stage."""
    run = study.run("run")
    assert run is not None

    def order(query: str) -> list[str]:
        at = place(QUERIES.index(query))
        rest = [f"{query}-d{d}" for d in range(DOCS) if d != 3]
        return [*rest[:at], f"{query}-d3", *rest[at:]]

    done = [q for q in QUERIES if q not in FAILED + SKIPPED]
    ranking = Ranking.from_lists((q, order(q), np.arange(DOCS, 0, -1.0)) for q in done)
    return changed(study, ranking=ranking)


def changed(study: Study, **changes: object) -> Study:
    """The study with a run that came about otherwise."""
    run = study.run("run")
    assert run is not None
    other = dataclasses.replace(run, **changes)
    systems = {**study.systems, "run": System("run", run.name, load=lambda: other)}
    return dataclasses.replace(study, systems=systems)


def with_minimum(study: Study, share: float) -> Study:
    return dataclasses.replace(
        study, statistics=dataclasses.replace(study.statistics, worthwhile=share)
    )


def labelled(study: Study, keep: Callable[[str, float], bool], **changes: object) -> Study:
    """The study with the labels for which `keep` holds."""
    data = study.dataset
    kept = [keep(*each) for each in zip(data.qrels["query_id"], data.qrels["label"], strict=True)]
    fewer = Dataset(
        data.name, data.queries, data.documents, data.qrels[kept], data.candidates, **changes
    )
    return dataclasses.replace(study, dataset=fewer)


def test_what_was_found_is_counted_in_queries_beside_the_metric(better):
    narrow = dataclasses.replace(better, cutoff=3)
    said = page(narrow)
    hits = narrow.comparison.row("run", "hit@3")
    paired = narrow.pairs("run", "hit@3").dropna()
    before, after = int(paired["before"].sum()), int(paired["after"].sum())
    assert f"{before} → {after} of 27 queries have a relevant document in the top 3." in said
    assert (before, after) == (0, 17)
    assert f"Hit@3 +{hits['delta']:.3f} (95%: {hits['delta_low']:+.3f} …" in said
    assert "): better mover plain is better than first: NDCG@3 rises from 0 to" in said
    assert "3 queries are excluded on both sides" in said


def test_a_price_that_nobody_set_carries_no_verdict(better):
    said = page(better)
    assert (
        "Break-even only: the price of mover plain is an example. Set its price and the value of a "
        "search to see from which point it pays."
    ) in said
    for word in ("pays under", " net ", "contract", "costs $"):
        assert word not in said
    assert "Missing: the price of mover plain." in said
    # Of a price alone, what a search is worth is still open.
    half = page(dataclasses.replace(better, money=Money(prices={"run": OWN})))
    assert "Break-even only: the value of a search is not set. It pays if 1% more" in half
    assert "the price of" not in half
    assert "Set the value of a search, then compare gain and cost." in half
    valued = Money.of({"value_per_search": 0.02})
    priceless = page(dataclasses.replace(better, money=valued))
    assert "Set the price of mover plain, then compare gain and cost." in priceless
    assert "It pays while 1,000 searches cost at most" in priceless


def test_example_values_are_marked_and_decide_nothing(better):
    shown = dataclasses.replace(better, money=Money(example=True))
    said = page(shown)
    assert "Example values. mover plain pays under these assumptions." in said
    assert "Missing: the price of mover plain." in said
    assert decision(shown, "run").step == "price"


@pytest.mark.parametrize(
    ("price", "said"),
    [
        (Price(1.0, "hour"), "the searches per second that one machine serves with mover plain."),
        (Price(1.0, "flat", "EUR"), "the exchange rate for the price of mover plain."),
    ],
)
def test_a_price_that_was_set_is_not_reported_as_missing(better, price, said):
    untimed = changed(better, measured=None, queries=better.run("run").queries.assign(
        latency_ms=np.nan))  # fmt: skip
    set_ = dataclasses.replace(OWN, price=price)
    shown = page(dataclasses.replace(untimed, money=Money(prices={"run": set_})))
    assert f"Missing: {said}" in shown
    assert "Missing: the price" not in shown


def test_a_price_that_was_set_carries_the_verdict_and_what_is_left_at_its_default(better):
    said = page(dataclasses.replace(better, money=MONEY))
    assert "mover plain pays under these assumptions." in said
    assert "1,000 searches cost $1.00." in said
    assert "Missing" not in said
    left = said[said.index("At their defaults: ") : said.index("Next step")]
    assert "Value gained for each 1% of quality (1%)" in left
    assert "Latency target (p95) (500 ms)" in left
    # What was set, and what does not count here, is no default that anything hangs on.
    for title in ("Searches a day", "Cost of a ticket", "Price of the LLM's input"):
        assert title not in left


def test_who_is_hurt_is_counted_and_the_worst_query_named(better):
    said = page(better)
    pairs = better.pairs("run").dropna()
    hurt = int((pairs["delta"] < 0).sum())
    worst = pairs.set_index("query_id")["delta"].idxmin()
    row = pairs.set_index("query_id").loc[worst]
    assert f"{hurt} of 27 queries get worse ({hurt / 27:.0%})." in said
    assert (
        f"Worst: “plain question {worst}”, NDCG@10 {row['before']:.3f} → {row['after']:.3f}."
        in said
    )
    alone = page(moved(better, lambda at: DOCS - 1 if at == 9 else 0))
    assert "1 of 27 queries gets worse (4%)." in alone
    nobody = page(moved(better, lambda at: 0))
    assert "No query gets worse by more than 0.005 (27 queries compared)." in nobody
    assert "Worst" not in nobody


def test_nobody_is_hurt_by_fewer_labels_in_the_list(better):
    few = labelled(better, lambda query, label: label > 0)
    described = dataclasses.replace(few, metric="judged", cutoff=3)
    assert (described.pairs("run")["delta"].dropna() != 0).any()
    assert "worse" not in page(described).lower()


def test_kinds_of_queries_without_a_proven_gain_are_named(better):
    said = page(better)
    found = decision(better, "run")
    assert {each.column for each in found.groups} <= {"kind", "query_length", "language"}
    for group in found.groups[:3]:
        row = better.segment("run", group.column).set_index("segment").loc[group.value]
        assert row["low"] <= 0 or row["p_corrected"] > 0.05 or row["delta"] <= 0
        assert f"“{group.value}” ({group.n} queries, {group.delta:+.3f}, not proven)" in said
    # Every third query is of the kind "return", and only those lose.
    worse = page(moved(better, lambda at: 7 if at % 3 == 1 else 0))
    assert "Worse in: kind “return” (9 queries, -0.115, proven)." in worse


STEPS = {
    "price": (lambda study: study, "Set the price of mover plain and the value of a search"),
    "trial": (
        lambda study: dataclasses.replace(study, money=MONEY),
        "Run a trial: serve mover plain to part of the traffic and compare it with first.",
    ),
    "loss": (
        lambda study: dataclasses.replace(
            study, money=dataclasses.replace(MONEY, prices={"run": DEAR})
        ),
        "Stop: keep first. mover plain costs more than it brings under these assumptions.",
    ),
    "latency": (
        lambda study: study_of(timed=False),
        "Measure the latency of mover plain on the machine that will serve it.",
    ),
    "faster": (
        lambda study: dataclasses.replace(
            study, money=Money.of({"latency_target_ms": 10.0}, prices={"run": OWN})
        ),
        "Make mover plain faster (fewer documents, a smaller model), then measure it again.",
    ),
    "worse": (
        lambda study: moved(study, lambda at: 7),
        "Stop: keep first. mover plain is worse.",
    ),
    "same": (
        lambda study: moved(study, lambda at: 3),
        "Stop: keep first. mover plain changes nothing that counts.",
    ),
    "settle": (
        lambda study: moved(study, lambda at: 0 if at % 3 == 0 else 7),
        "more queries like these, then compare again.",
    ),
    "unprovable": (
        lambda study: with_minimum(moved(study, lambda at: (2, 4)[at % 2]), 0.3),
        "Stop: keep first. More queries like these are not likely to show the minimum practically "
        "relevant gain of 30% (set by the user).",
    ),
    "minimum": (
        lambda study: moved(study, lambda at: (2, 5)[at % 2]),
        "Set the minimum practically relevant gain. The true change may be 0, and only this "
        "minimum shows whether more labels are worth their effort.",
    ),
    "open": (
        lambda study: with_minimum(moved(study, lambda at: (2, 5)[at % 2]), 0.01),
        "Label more queries like these, then compare again: neither 0 nor the minimum practically "
        "relevant gain of 1% (set by the user) is excluded.",
    ),
    "more": (
        lambda study: labelled(
            moved(study, lambda at: (2, 4)[at % 2]), lambda query, label: query < "q12"
        ),
        "more queries like these, then compare again: how many prove the change cannot be "
        "estimated from fewer than 20.",
    ),
    "judge": (
        lambda study: labelled(study, lambda query, label: label > 0),
        "Label documents in the top 10 of first and mover plain, those first that could turn the "
        "verdict: 189 have no label.",
    ),
    "label": (
        lambda study: labelled(study, lambda query, label: False),
        "Label documents of at least 6 queries, then compare again.",
    ),
    "queries": (
        lambda study: labelled(study, lambda query, label: query in ("q00", "q01", "q02")),
        "Label 3 more queries: fewer give no verdict.",
    ),
    "baseline": (
        lambda study: labelled(study, lambda query, label: True, first_stage="bm25"),
        "Add the ranking of your own search and compare mover plain with it.",
    ),
    "model": (
        lambda study: changed(moved(study, lambda at: 7), measured=Measured(unknown_tokens=0.6)),
        "Run a model that reads the language of the texts, then compare it.",
    ),
    "metric": (
        lambda study: dataclasses.replace(study, metric="judged"),
        "Choose a metric of quality, such as NDCG@10, for the verdict.",
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_there_is_one_next_step(better, step):
    change, sentence = STEPS[step]
    study = change(better)
    assert decision(study, "run").step == step
    said = page(study)
    assert said.count("Next step") == 1
    assert sentence in said[said.index("Next step") :]
    # Whatever is known and is not, it is said in Chinese too.
    assert "下一步" in page(study, "zh")


def test_equal_values_of_documents_without_labels_are_no_reason_to_stop(better):
    """bpref knows nothing of a list without documents that are labelled as not relevant."""
    few = labelled(better, lambda query, label: label > 0)
    blind = dataclasses.replace(few, metric="bpref", cutoff=None)
    assert blind.comparison.row("run", "bpref")["verdict"] == "identical"
    assert decision(blind, "run").step == "judge"
    assert "of the ranked documents have no label (first: 88%). They are skipped." in page(blind)
    same = moved(dataclasses.replace(few, cutoff=3), lambda at: 3)
    assert decision(same, "run").step == "same"


@pytest.mark.parametrize("place", [7, 3])
@pytest.mark.parametrize("made", ["bm25", "corpus-bm25", "rows"])
def test_a_baseline_that_was_made_here_is_never_to_be_kept(better, place, made):
    """Worse than it, or the same: that says nothing of the user's own search."""
    study = labelled(moved(better, lambda at: place), lambda query, label: True, first_stage=made)
    said = page(study)
    assert decision(study, "run").step == "baseline"
    assert "Stop: keep" not in said and "the order of the search" not in said
    assert f"first: {first_stage(made)}, before any reranking." in said


def test_latency_that_nobody_measured_blocks_the_target_by_name(better):
    bare = page(study_of(timed=False))
    assert (
        "Latency is not measured: it is open whether mover plain meets the target of 500 ms (p95)."
    ) in bare
    assert "Latency: p95" not in bare
    timed = page(better)
    assert "not measured" not in timed
    assert "Latency: p95 47.7 ms (27 queries timed)." in timed
    slow = Money.of({"latency_target_ms": 10.0}, prices={"run": OWN})
    assert "p95 latency is 47.7 ms: over the target of 10 ms." in page(
        dataclasses.replace(better, money=slow)
    )


@pytest.mark.parametrize(
    ("ms", "said"),
    [(499.96, None), (500.0, None), (500.0 * (1 + 1e-12), None), (500.3, "500.3"), (501.2, "501")],
)
def test_exactly_the_target_is_met_everywhere_and_what_is_over_is_never_written_like_it(
    better, ms, said
):
    run = better.run("run")
    slow = changed(better, queries=run.queries.assign(latency_ms=ms))
    limit = Profile("Own", (), (Limit("p95_ms", 500.0),))
    judged = dataclasses.replace(slow, goals=Goals(targets().with_profile("own", limit), "own"))
    [row] = [each for each in target_table.rows(judged, judged.goals) if each[0] == "mover plain"]
    over = f"p95 latency is {said} ms: over the target of 500 ms."
    of_choice = prices.cautions(decision(slow, "run").choice, 500.0)
    if said is None:
        assert "over the target" not in page(slow)
        assert not any("misses" in each for each in of_choice)
        # 27 queries are too few to prove either.
        assert row[8] == "? undecided"
    else:
        assert over in page(slow)
        assert of_choice[-1] == f"▼ p95 of {said} ms misses the target of 500 ms"
        assert (row[2], row[8]) == (said, "▼ missed")


def test_labels_that_are_missing_are_counted(better):
    few = page(labelled(better, lambda query, label: label > 0))
    assert "Missing: labels of 189 documents in the top 10 of first or mover plain." in few
    assert "88% of the top 10 have no label (first: 88%). They count as not relevant." in few
    assert "no label" not in page(better)


def test_one_system_says_what_cannot_be_decided(better):
    alone = dataclasses.replace(better, challengers=())
    said = page(alone)
    assert "Only first is here: whether reranking helps cannot be decided." in said
    assert f"NDCG@10 is {alone.mean(FIRST_STAGE)[0]:.3f} on average." in said
    assert "Run a reranker or add its ranking, then compare it with first." in said


def test_all_systems_stand_below_the_best_one_under_their_full_names(better):
    name = "a cross-encoder with a long name that a table would like to cut, 50 candidates"
    last = moved(better, lambda at: 7).systems["run"]
    systems = {**better.systems, "worse": dataclasses.replace(last, id="worse", name=name)}
    both = dataclasses.replace(better, systems=systems, challengers=("worse", "run"))
    read = Read(html(both, Front(sections=PRESETS["decision"])))
    names = [row[0] for row in read.rows]
    assert names[0].startswith("System")
    wanted = ("mover plain", "first", name)
    assert [each.startswith(full) for each, full in zip(names[1:], wanted, strict=True)] == [
        True
    ] * 3
    assert "worse" in names[3]
    assert read.rows[3][3:5] == ["0 / 27", "47.7 ms"]
    assert "mover plain against first" in " ".join(read.text("decision").split())


def test_a_page_without_charts_carries_none_of_what_draws_them(better):
    content = html(better, Front(sections=PRESETS["decision"]))
    assert len(content) < 50_000
    assert b"Plotly.newPlot" not in content
    assert len(html(better)) > 1_000_000


def test_the_answer_stands_before_the_links_to_the_rest(better):
    content = html(better).decode()
    assert content.index('<section id="decision">') < content.index("<nav>")
    assert content.index("<nav>") < content.index('<section id="verdict">')
