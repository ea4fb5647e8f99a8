"""Each caveat from both sides of where it begins to hold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

import pytest

from rankdash.analysis.statistics.settings import RULE_OF_THUMB, StatisticsSettings
from rankdash.dataset import Dataset
from rankdash.findings import Finding
from rankdash.loading import Loaded, load
from rankdash.metrics import Conventions
from rankdash.ranking.measured import Measured
from rankdash.ranking.ranking import Ranking, Run
from rankdash.readers import Source
from rankdash.rerankers.fusion import Fusion
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.runs.combining import CombinedRun, fuse
from rankdash.study.caveats import (
    Caveat,
    ExamplePrice,
    MadeBaseline,
    NearCeiling,
    OtherMetrics,
    ShippedTimings,
    ShortLists,
    TurnedGroups,
    UnknownTokens,
    Unlabelled,
    UnprovenLead,
    caveats,
    unknown_tokens,
)
from rankdash.study.query_groups import Group
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money, systems_of
from rankdash.value.price_list import shipped
from rankdash.words import caveats as words
from tests.study.test_queries import keeping

DOCS = 10
EASIER = (
    "It ranks labelled documents only: a search would have to find them among all others, so its "
    "values are higher here."
)


def rows(
    relevant: Sequence[int],
    *,
    labelled: Mapping[int, int] | None = None,
    kinds: Sequence[str] = (),
    scores: bool = True,
    texts: bool = True,
    retrieval: str | None = None,
) -> Loaded:
    """A query for each rank of its relevant document. labelled: query → how many of its first
    documents have a label (all). kinds: of the queries."""
    lines = []
    for q, rank in enumerate(relevant):
        for d in range(DOCS):
            known = d < (labelled or {}).get(q, DOCS)
            line = {
                "query_id": f"q{q}",
                "query": f"text {q}" if texts else None,
                "doc_id": f"d{d}",
                "document": f"document {d}" if texts else None,
                "label": str(int(d + 1 == rank)) if known else "",
                "score": str(DOCS - d) if scores else None,
                "kind": kinds[q] if kinds else None,
            }
            lines.append({name: each for name, each in line.items() if each is not None})
    head = ",".join(lines[0])
    body = "".join(",".join(line.values()) + "\n" for line in lines)
    return load([Source("rows.csv", f"{head}\n{body}".encode())], retrieval=retrieval)


def run(loaded: Loaded, ranks: Sequence[int], name: str = "new", **changes: object) -> Run:
    """The relevant document of each query moved to a rank."""
    relevant = {
        row.query_id: row.doc_id for row in loaded.dataset.qrels.itertuples() if row.label > 0
    }
    lists = []
    for q, rank in enumerate(ranks):
        best = relevant[f"q{q}"]
        others = [f"d{d}" for d in range(DOCS) if f"d{d}" != best]
        order = [*others[: rank - 1], best, *others[rank - 1 :]]
        lists.append((f"q{q}", order, [float(DOCS - place) for place in range(DOCS)]))
    made = run_from_ranking(name, loaded.dataset.id, Ranking.from_lists(lists), f"{name}.trec")
    return replace(made, **changes)


def study(loaded: Loaded, *runs: Run, **changes: object) -> Study:
    given = {
        "baseline": FIRST_STAGE,
        "challengers": tuple(each.id for each in runs),
        "metric": "mrr",
        "others": (),
        "check": loaded.report,
    }
    return Study(loaded.dataset, systems_of(loaded.dataset, runs), **(given | changes))


def together(loaded: Loaded, *parts: Run) -> Run:
    combined = [CombinedRun(each.name, each.ranking, each) for each in parts]
    return fuse(loaded.dataset, combined, Fusion(), " + ".join(each.name for each in parts))


def one(of: Study, kind: type[Caveat]) -> Caveat | None:
    """The caveat of a kind on the first challenger."""
    found = [each for each in caveats(of, of.challengers[0]) if isinstance(each, kind)]
    assert len(found) <= 1
    return found[0] if found else None


def lines(of: Study) -> list[str]:
    return words.lines(of, of.challengers[0])


FLAT, TOP = [3] * 10, [1] * 10


@pytest.mark.parametrize(("unlabelled", "holds"), [(1, True), (0, False)])
def test_documents_without_a_label(unlabelled, holds):
    """One of the hundred documents looked at is 1 %."""
    loaded = rows(FLAT, labelled={0: DOCS - unlabelled})
    of = study(loaded, run(loaded, TOP))
    found = one(of, Unlabelled)
    assert (found is not None) is holds
    if holds:
        assert (found.baseline, found.challenger) == pytest.approx((0.01, 0.01))
        said = "1% of the top 10 have no label (First stage: 1%). They count as not relevant."
        assert said in lines(of)
        skipping = replace(of, conventions=Conventions(judged_only=True))
        assert "(First stage: 1%). They are skipped." in "\n".join(lines(skipping))


def test_a_share_below_one_percent_without_a_label_is_none():
    loaded = rows([3] * 11, labelled={0: DOCS - 1})
    assert one(study(loaded, run(loaded, [1] * 11)), Unlabelled) is None


@pytest.mark.parametrize(
    ("given", "found", "said"),
    [
        ({}, None, ""),
        (
            {"scores": False},
            MadeBaseline("bm25", labelled_only=True),
            "First stage (BM25, listed documents only) is not your own search: BM25 ordered the "
            f"documents that the files list for each query. {EASIER}",
        ),
        (
            {"scores": False, "texts": False, "retrieval": "rows"},
            MadeBaseline("rows", labelled_only=True),
            "First stage (order of the rows) is not your own search: it is the order of the rows "
            f"in your files. {EASIER}",
        ),
    ],
)
def test_a_baseline_that_is_not_the_users_own_search(given, found, said):
    loaded = rows(FLAT, **given)
    first, other = run(loaded, TOP), run(loaded, [2] * 10, "other")
    of = study(loaded, first, other)
    assert one(of, MadeBaseline) == found
    assert said in lines(of) or not said
    between = replace(of, baseline=other.id, challengers=(first.id,))
    assert one(between, MadeBaseline) is None


def test_a_baseline_made_here_of_documents_that_are_not_all_labelled():
    loaded = rows(FLAT, scores=False)
    given = loaded.dataset
    tables = given.queries, given.documents, given.qrels.iloc[1:]
    data = Dataset(given.name, *tables, given.candidates, first_stage="bm25")
    of = study(replace(loaded, dataset=data), run(loaded, TOP))
    assert one(of, MadeBaseline) == MadeBaseline("bm25", labelled_only=False)
    assert (
        "First stage (BM25, listed documents only) is not your own search: BM25 ordered the "
        "documents that the files list for each query." in lines(of)
    )


@pytest.mark.parametrize(
    ("how", "name", "said"),
    [
        ("corpus-bm25", "BM25", "BM25 retrieved it from all documents"),
        ("corpus-bi-encoder", "bi-encoder", "a bi-encoder retrieved it from all documents"),
        (
            "corpus-fused",
            "BM25 + bi-encoder",
            "BM25 and a bi-encoder, fused, retrieved it from all documents",
        ),
    ],
)
def test_a_baseline_retrieved_here_says_so_in_its_name_and_beside_the_verdict(how, name, said):
    loaded = rows(FLAT, labelled={0: DOCS - 1})
    given = loaded.dataset
    tables = given.queries, given.documents, given.qrels
    data = Dataset(given.name, *tables, given.candidates, first_stage=how)
    of = study(replace(loaded, dataset=data), run(loaded, TOP))
    assert one(of, MadeBaseline) == MadeBaseline(how, labelled_only=False)
    assert f"First stage ({name}) is not your own search: {said}." in lines(of)
    verdict = of.comparison.verdict(of.challengers[0], of.spec, of.names).sentence
    assert f"First stage ({name})" in verdict


def test_the_order_of_the_rows_that_an_older_version_took_unasked_is_still_told():
    loaded = rows(FLAT, scores=False, texts=False, retrieval="rows")
    given = loaded.dataset
    tables = given.queries, given.documents, given.qrels
    stored = Dataset(given.name, *tables, given.candidates)
    of = study(replace(loaded, dataset=stored), run(loaded, TOP))
    assert one(of, MadeBaseline) == MadeBaseline("rows", labelled_only=True)


@pytest.mark.parametrize(
    ("share", "holds"), [(0.11, True), (0.1, False), (math.nan, False), (0.0, False)]
)
@pytest.mark.parametrize("of_baseline", [False, True])
def test_a_model_that_does_not_know_the_tokens(share, holds, of_baseline):
    loaded = rows(FLAT)
    blind = run(loaded, TOP, "blind", measured=Measured(unknown_tokens=share))
    of = study(loaded, blind)
    if of_baseline:
        other = run(loaded, [2] * 10, "other")
        of = study(loaded, other, blind, baseline=blind.id, challengers=(other.id,))
    found = one(of, UnknownTokens)
    assert found == (UnknownTokens(blind.id, share) if holds else None)
    if holds:
        assert lines(of)[0] == (
            "blind: the model does not know 11% of the tokens, so this says nothing about "
            "reranking. Use a model that reads the language of the texts."
        )


@pytest.mark.parametrize("deep", [False, True])
def test_a_fused_run_does_not_know_what_one_of_its_parts_does_not_know(deep):
    loaded = rows(FLAT)
    blind = run(loaded, TOP, "blind", measured=Measured(unknown_tokens=0.6))
    reads = run(loaded, [2] * 10, "reads", measured=Measured(unknown_tokens=0.02))
    other = run(loaded, [3] * 10, "other")
    fused = together(loaded, blind, reads)
    parts = [blind, reads, other, fused]
    if deep:
        parts.append(together(loaded, fused, other))
    shown = parts[-1]
    of = study(loaded, *parts, challengers=(shown.id,))
    assert one(of, UnknownTokens) == UnknownTokens(shown.id, 0.6)
    sound = together(loaded, reads, other)
    of = study(loaded, reads, other, sound, challengers=(sound.id,))
    assert one(of, UnknownTokens) is None
    assert unknown_tokens(of, sound.id) == 0.02
    assert math.isnan(unknown_tokens(of, other.id))
    # What became of a part that was deleted is not known.
    of = study(loaded, fused)
    assert math.isnan(unknown_tokens(of, fused.id))


@pytest.mark.parametrize(("ranks", "holds"), [([1] * 9 + [2], True), ([1] * 8 + [2] * 2, False)])
def test_a_baseline_near_the_best_possible_value(ranks, holds):
    """0.95 of 1, and 0.9."""
    loaded = rows(ranks)
    of = study(loaded, run(loaded, TOP))
    found = one(of, NearCeiling)
    assert (found is not None) is holds
    if holds:
        assert (found.value, found.best) == pytest.approx((0.95, 1.0))
        said = (
            "The test set is too easy to tell rerankers apart: First stage reaches 0.950; the best "
            "possible MRR@10 is 1.000."
        )
        assert said in lines(of)


def test_a_price_that_nobody_set():
    loaded = rows(FLAT)
    made = run(loaded, TOP)
    # A ranking from a file has no price, and no example of one.
    assert one(study(loaded, made, money=Money()), ExamplePrice) is None
    queries = made.queries.assign(latency_ms=5.0)
    made = replace(made, reranker="bm25", machine={"cpu": "a processor"}, queries=queries)
    of = study(loaded, made)
    assert one(of, ExamplePrice) is None
    assert one(replace(of, money=Money()), ExamplePrice) is not None
    assert any(
        "for 1,000 searches is assumed" in line for line in lines(replace(of, money=Money()))
    )
    own = replace(shipped()[0], as_of=date(2026, 11, 1), source="our contract")
    assert one(replace(of, money=Money(prices={made.id: own})), ExamplePrice) is None


def test_other_metrics_that_are_proven():
    """The relevant document goes from rank 5 to 2 or from 1 to 3: MRR, of which ten ones make more
    than twenty gains, is worse; the hit rate at 4 is better."""
    loaded = rows([5] * 10 + [1] * 30)
    of = study(loaded, run(loaded, [4] * 10 + [2] * 30), others=("hit@4", "judged@10", "hit@10"))
    assert one(of, OtherMetrics) == OtherMetrics(better=("Hit@4",), worse=())
    assert "Proven better on Hit@4." in lines(of)
    both = replace(of, others=("hit@4", "hit@1"))
    assert one(both, OtherMetrics) == OtherMetrics(("Hit@4",), ("Hit@1",))
    assert "Proven better on Hit@4, proven worse on Hit@1." in lines(both)
    assert one(replace(of, others=("hit@10", "judged@10")), OtherMetrics) is None


@pytest.mark.parametrize(("size", "holds"), [(10, True), (9, False)])
def test_kinds_of_queries_that_turn_the_other_way(size, holds):
    kinds = ["easy to say"] * 30 + ["hard"] * size
    loaded = rows([3] * 30 + [1] * size, kinds=kinds)
    of = study(loaded, run(loaded, [1] * 30 + [2] * size))
    found = one(of, TurnedGroups)
    assert (found is not None) is holds
    if holds:
        # What is made of values and labels is none: nobody knows which query is of which kind.
        assert found.groups == (Group("kind", "hard", 10, pytest.approx(-0.5), True),)
        assert found.worse
        [said] = [line for line in lines(of) if line.startswith("Worse for some kinds of queries:")]
        assert said.endswith(": kind “hard” (10 queries, -0.500, proven).")
        turned = replace(of, baseline=of.challengers[0], challengers=(FIRST_STAGE,))
        assert not one(turned, TurnedGroups).worse


@pytest.mark.parametrize(("fallen", "holds"), [(1, False), (2, True)])
def test_a_kind_of_queries_within_the_tie_band_does_not_turn(fallen, holds):
    """Of twelve queries, one that falls from 10 to none is -0.0083; the band is set to 0.01."""
    loaded = rows([3] * 30 + [10] * 12, kinds=["a"] * 30 + ["b"] * 12)
    made = run(loaded, [1] * 30 + [10] * 12)
    lists = [
        (query, [doc for doc in docs if query not in gone or doc != "d9"], scores)
        for gone in [{f"q{30 + n}" for n in range(fallen)}]
        for query, docs, scores in (
            (each, list(made.ranking.documents_of(each)[0]), list(range(DOCS, 0, -1)))
            for each in made.ranking.query_ids
        )
        for scores in [[float(s) for s in scores][: DOCS - (query in gone)]]
    ]
    made = replace(made, ranking=Ranking.from_lists(lists))
    of = study(loaded, made)
    of = replace(of, statistics=replace(of.statistics, tie_band=0.01))
    found = one(of, TurnedGroups)
    assert any(group.column == "kind" for group in (found.groups if found else ())) is holds


def test_timings_that_come_with_the_sample():
    loaded = rows(FLAT)
    made = run(loaded, TOP, machine={"shipped_with": "sample"})
    assert one(study(loaded, made), ShippedTimings) is None
    timed = replace(made, queries=made.queries.assign(latency_ms=5.0))
    assert one(study(loaded, timed), ShippedTimings) is not None
    assert lines(study(loaded, timed))[-1].startswith("The latency comes with the sample")
    assert one(study(loaded, replace(timed, machine={})), ShippedTimings) is None


def test_a_lead_over_the_next_best_that_is_not_proven():
    loaded = rows(FLAT)
    best, next_best = run(loaded, TOP), run(loaded, [1] * 9 + [2], "next")
    of = study(loaded, best, next_best)
    assert one(of, UnprovenLead) == UnprovenLead(next_best.id, pytest.approx(0.05))
    assert "The lead over next (+0.050) is not proven." in lines(of)
    far = study(loaded, best, run(loaded, [2] * 10, "next"))
    assert one(far, UnprovenLead) is None
    # Of the next best there is no lead, and over the baseline the verdict speaks.
    assert one(study(loaded, next_best, best), UnprovenLead) is None
    assert one(study(loaded, best, run(loaded, [4] * 10, "worse")), UnprovenLead) is None


def test_names_and_values_are_made_fit_for_where_they_stand():
    loaded = rows([3] * 30 + [1] * 10, kinds=["a"] * 30 + ["<b>"] * 10)
    of = study(loaded, run(loaded, [1] * 30 + [2] * 10))
    said = "\n".join(words.lines(of, of.challengers[0], lambda text: f"[{text}]"))
    assert "[kind] “[<b>]”" in said


def test_a_metric_that_describes_labels_has_no_caveats():
    loaded = rows(FLAT, labelled={0: 5})
    of = study(loaded, run(loaded, TOP), metric="judged")
    assert caveats(of, of.challengers[0]) == ()


def test_each_side_has_its_own_share_without_a_label():
    """Of its first four documents the first stage shows one without a label, the other four."""
    loaded = rows([1] * 10, labelled=dict.fromkeys(range(10), 3))
    first = loaded.dataset.candidates
    lists = [(query, list(first.documents_of(query)[0])[::-1], list(range(DOCS, 0, -1)))
             for query in first.query_ids]  # fmt: skip
    made = run_from_ranking("new", loaded.dataset.id, Ranking.from_lists(lists), "new.trec")
    found = one(study(loaded, made, cutoff=4), Unlabelled)
    assert (found.baseline, found.challenger) == pytest.approx((0.25, 1.0))
    assert not found.skipped


def turning(groups: Sequence[tuple[int, int, int]], whole: int = 60) -> Study:
    """groups: (queries of a kind, their rank before, after), beside so many that gain."""
    before, after, kinds = [3] * whole, [1] * whole, ["gain"] * whole
    for place, (size, was, now) in enumerate(groups):
        before += [was] * size
        after += [now] * size
        kinds += [f"kind {place}"] * size
    loaded = rows(before, kinds=kinds)
    of = study(loaded, run(loaded, after))
    return replace(of, statistics=replace(of.statistics, resamples=1000))


def own(found: TurnedGroups) -> list[tuple[str, bool]]:
    return [(each.value, each.proven) for each in found.groups if each.column == "kind"]


def test_of_kinds_that_turn_the_largest_three_are_named_and_the_others_counted():
    groups = [(10, 9, 10), (10, 1, 2), (10, 4, 5), (10, 2, 4), (10, 6, 8)]
    of, three = turning(groups), turning(groups[:3])
    found, few = one(of, TurnedGroups), one(three, TurnedGroups)
    assert own(found) == [(f"kind {place}", True) for place in (1, 3, 2, 4, 0)]
    said = words.line(of, found)
    assert (said.count("“"), said.endswith("proven), and 2 other kinds.")) == (3, True)
    assert own(few) == [(f"kind {place}", True) for place in (1, 2, 0)]
    assert "other kind" not in words.line(three, few)


def test_a_kind_that_is_proven_to_turn_comes_before_one_that_turns_farther():
    """Five of ten fall from 1 to 10, which five signs do not prove."""
    before = [3] * 60 + [1] * 5 + [3] * 5 + [4] * 10
    after = [1] * 60 + [10] * 5 + [3] * 5 + [5] * 10
    kinds = ["gain"] * 60 + ["far"] * 10 + ["sure"] * 10
    loaded = rows(before, kinds=kinds)
    found = one(study(loaded, run(loaded, after)), TurnedGroups)
    assert own(found) == [("sure", True), ("far", False)]
    assert [each.delta for each in found.groups] == pytest.approx([-0.05, -0.45])


@pytest.mark.parametrize(("level", "proven"), [(0.95, True), (0.99, False)])
def test_a_kind_is_proven_to_turn_at_the_level_of_the_study(level, proven):
    """Seven of ten fall, and none rises: p is 0.016."""
    before, after = [3] * 40 + [1] * 10, [1] * 40 + [2] * 7 + [1] * 3
    loaded = rows(before, kinds=["gain"] * 40 + ["turn"] * 10)
    of = study(loaded, run(loaded, after))
    of = replace(of, statistics=replace(of.statistics, level=level, resamples=1000))
    assert own(one(of, TurnedGroups)) == [("turn", proven)]


def test_where_nothing_changes_on_the_whole_no_kind_turns():
    loaded = rows([1] * 10 + [2] * 10, kinds=["down"] * 10 + ["up"] * 10)
    of = study(loaded, run(loaded, [2] * 10 + [1] * 10))
    assert of.comparison.row(of.challengers[0], of.spec)["delta"] == 0
    assert one(of, TurnedGroups) is None


def test_a_group_of_unknown_kind_turns_nothing_and_the_baselines_own_value_makes_none():
    """The queries that lose are those that the baseline did well on; their kind is not known."""
    loaded = rows([3] * 30 + [1] * 10, kinds=["a"] * 30 + [""] * 10)
    of = study(loaded, run(loaded, [1] * 30 + [2] * 10))
    assert "difficulty" in of.segments
    assert one(of, TurnedGroups) is None
    data = loaded.dataset
    named = Dataset(
        data.name,
        data.queries.assign(difficulty=["hard"] * 30 + ["easy"] * 10).drop(columns="kind"),
        data.documents,
        data.qrels,
        data.candidates,
    )
    found = one(study(replace(loaded, dataset=named), run(loaded, [1] * 30 + [2] * 10)),
                TurnedGroups)  # fmt: skip
    assert [(each.column, each.value) for each in found.groups] == [("difficulty", "easy")]


def test_a_lead_is_proven_also_where_it_is_small():
    """Over 60 queries eight go from 2 to 1: 6.7 % more, which is proven and small."""
    loaded = rows([3] * 60)
    best, next_best = run(loaded, TOP * 6), run(loaded, [1] * 52 + [2] * 8, "next")
    of = study(loaded, best, next_best, statistics=StatisticsSettings(worthwhile=RULE_OF_THUMB))
    pair = replace(of, baseline=next_best.id, challengers=(best.id,))
    assert pair.comparison.row(best.id, pair.spec)["verdict"] == "small"
    assert one(of, UnprovenLead) is None


def test_a_small_gain_on_another_metric_is_proven_too():
    loaded = rows([2] * 8 + [1] * 52)
    chosen = StatisticsSettings(worthwhile=RULE_OF_THUMB)
    of = study(
        loaded, run(loaded, [1] * 60), metric="hit", cutoff=10, others=("mrr",), statistics=chosen
    )
    assert of.comparison.row(of.challengers[0], "mrr")["verdict"] == "small"
    assert one(of, OtherMetrics) == OtherMetrics(better=("MRR",), worse=())


def test_the_most_serious_caveat_comes_first():
    loaded = rows([1] * 9 + [2] * 31, labelled={0: 5}, scores=False)
    made = run(loaded, TOP * 4, machine={"cpu": "a processor", "shipped_with": "sample"})
    queries = made.queries.assign(latency_ms=5.0)
    made = replace(made, reranker="bm25", queries=queries)
    next_best = run(loaded, [1] * 39 + [2], "next")
    of = study(loaded, made, next_best, others=("hit@1",), money=Money())
    assert [each.code for each in caveats(of, of.challengers[0])] == [
        *("baseline", "unlabelled", "lead", "other_metrics", "price", "timings"),
    ]


@pytest.mark.parametrize("queries", ["qrels", "both"])
def test_kinds_of_queries_are_told_apart_for_each_system_by_its_own_queries(queries):
    """What is kept for one challenger or metric is not taken for another."""
    loaded = rows([3] * 30 + [1] * 12, kinds=["a"] * 30 + ["b"] * 12)
    gain, loss = run(loaded, [1] * 30 + [3] * 12, "gain"), run(loaded, [5] * 30 + [1] * 12, "loss")
    short = replace(loss, ranking=loss.ranking.without([f"q{q}" for q in range(0, 30, 2)]))
    rules = Conventions(queries=queries)
    of = study(loaded, gain, short, conventions=rules, cache=keeping(), dataset_id="set")
    for metric in ("mrr", "map"):
        for order in (of.challengers, of.challengers[::-1]):
            shared = replace(of, metric=metric, challengers=order)
            alone = replace(shared, cache=None)
            assert [caveats(shared, each) for each in order] == [
                caveats(alone, each) for each in order
            ]
    turned = one(of, TurnedGroups)
    assert [each.value for each in turned.groups] == ["b"]


def test_a_verdict_repeats_what_looks_wrong_about_its_data():
    good = rows(FLAT)
    warned = replace(
        good.report,
        findings=(
            *good.report.findings,
            Finding("warning", "none_in_top", "Nothing in {name}.", {"name": "<b>x</b>"}),
            Finding("warning", "ties", "Not among them."),
            Finding(
                "warning",
                "bad_label",
                "Refused: {count} (lines {lines}).",
                {"count": 12872, "lines": "1, 2", "rows": 30000},
                file="a.csv",
                count=12872,
            ),
        ),
    )

    before, after = (
        lines(study(good, run(good, TOP), check=each)) for each in (good.report, warned)
    )

    assert [each for each in after if each not in before] == [
        "Nothing in <b>x</b>.",
        "12,872 of 30,000 rows of the files were excluded: the verdict is about the others.",
    ]


@pytest.mark.parametrize(
    ("metric", "cutoff", "documents", "warned"),
    [
        ("ndcg", 6, 5, True),
        ("ndcg", 5, 5, False),
        ("ndcg", 10, 5, True),
        ("ndcg", 10, 10, False),
        ("map", None, 8, True),
        ("map", None, 9, False),
        ("map", None, 10, False),
    ],
)
@pytest.mark.parametrize("short_side", ["challenger", "baseline"])
def test_lists_that_end_before_the_cutoff_are_a_caveat(
    metric, cutoff, documents, warned, short_side
):
    loaded = rows(FLAT)
    full, made = run(loaded, TOP, "full"), run(loaded, TOP, "short")
    lists = [
        (query, docs[:documents], scores[:documents])
        for query in made.ranking.query_ids
        for docs, scores in [made.ranking.documents_of(query)]
    ]
    made = replace(made, ranking=Ranking.from_lists(lists))
    base, challenger = (full, made) if short_side == "challenger" else (made, full)
    of = study(loaded, full, made, baseline=base.id, challengers=(challenger.id,),
               metric=metric, cutoff=cutoff)  # fmt: skip
    found = one(of, ShortLists)
    assert found == (ShortLists(made.id, documents, DOCS) if warned else None)
    if warned:
        title = of.measure.title
        assert words.line(of, found) == (
            f"short lists at most {documents} documents per query and the other ranking 10: "
            f"{title} also measures how many documents each lists."
        )
