"""Where documents went and who agrees: of which systems, from which to which."""

from dataclasses import replace

import pytest

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.metrics import Conventions
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study import ranks
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of
from tests.study.builders import changed, small, study_on

FIRST = {"q": "abcd", "r": "abcd"}
LABELS = {"q": {"a": 1.0, "d": 2.0}, "r": {"a": 1.0}}


def study_of(**given: object) -> Study:
    """ "d" rises from the last rank to the first in "q"."""
    return small(FIRST, {"q": "dabc", "r": "abcd"}, FIRST, labels=LABELS, **given)


def test_documents_go_from_the_baseline_to_the_challenger():
    of = study_of()
    risen, same = of.challengers
    found = ranks.moves(of, risen)
    frame = found.frame(found.up > 0)[["query_id", "doc_id", "before", "after"]]
    assert frame.to_numpy().tolist() == [["q", "d", 4.0, 1.0]]
    turned = replace(of, baseline=risen, challengers=(FIRST_STAGE, same))
    assert (ranks.moves(turned, FIRST_STAGE).up == -3).sum() == 1
    flows = {k: ranks.flow(of, risen, k) for k in (1, 3, 4)}
    assert {k: (flow.entered, flow.left) for k, flow in flows.items()} == {
        1: (1, 1), 3: (1, 0), 4: (0, 0)
    }  # fmt: skip
    sizes = ranks.move_sizes(of, risen).set_index("step")
    assert sizes.loc["3…5", ["relevant", "other"]].tolist() == [1, 0]
    assert ranks.move_sizes(of, same)["relevant"].sum() == 3
    pairs = ranks.agreement_table(of).iloc[:, :2].to_numpy().tolist()
    assert sorted(map(tuple, pairs)) == sorted(
        [(FIRST_STAGE, risen), (FIRST_STAGE, same), (risen, same)]
    )


@pytest.mark.parametrize(("threshold", "relevant"), [(1.0, 3), (2.0, 1), (3.0, 0)])
def test_a_document_is_relevant_from_the_threshold_of_the_study_on(threshold, relevant):
    of = study_of(conventions=Conventions(threshold=threshold))
    risen = of.challengers[0]
    assert ranks.moves(of, risen).relevant.sum() == relevant
    only, every = (ranks.transitions(of, risen, relevant_only=each) for each in (True, False))
    assert (only.to_numpy().sum(), every.to_numpy().sum()) == (relevant, 8)


def test_equal_scores_are_put_in_the_order_that_the_metrics_read():
    """By id descending "b" comes before "a": then both systems agree."""
    of = small({"q": "ba"}, {"q": "ab"}, labels={"q": {"a": 1.0}})
    tied = Ranking.from_lists([("q", ["a", "b"], [1.0, 1.0])])
    run = replace(of.run(of.challengers[0]), ranking=tied)
    of = replace(of, systems=systems_of(of.dataset, [run]))
    for ties, moved in (("as_ranked", 2), ("trec", 0)):
        found = ranks.moves(replace(of, conventions=Conventions(ties=ties)), run.id)
        assert (found.up != 0).sum() == moved


def test_skipping_is_about_the_first_stage_whatever_the_baseline():
    of = study_of(metric="mrr")
    risen, same = of.challengers
    turned = replace(of, baseline=risen, challengers=(same, FIRST_STAGE))
    strict = replace(turned, conventions=Conventions(threshold=2.0))
    for study, values in ((of, [1.0, 1.0]), (turned, [1.0, 1.0]), (strict, [0.25, 1.0])):
        found = ranks.against_first_stage(study, risen).set_index("query_id")
        assert found.loc["q", ["before", "after"]].tolist() == values


def test_the_margin_of_a_change_is_that_of_the_first_stage():
    """In "q" the first two scores of the first stage are far apart and in "r" they are equal; the
    challenger has them the other way round."""
    apart, tied = [9.0, 1.0, 0.0], [9.0, 9.0, 0.0]
    labels = {query: {"a": 1.0} for query in "qr"}
    data = small(dict.fromkeys("qr", "abc"), labels=labels).dataset
    candidates = Ranking.from_lists([("q", list("abc"), apart), ("r", list("abc"), tied)])
    lists = Ranking.from_lists([("q", list("bac"), tied), ("r", list("abc"), apart)])
    data = changed(data, candidates=candidates)
    run = run_from_ranking("run", data.id, lists, "run.trec")
    of = study_on(data, run, metric="mrr")
    found = ranks.margins(of, FIRST_STAGE, 2)
    assert found["first"].to_dict() == pytest.approx({"q": 8 / 9, "r": 0.0})
    assert found["edge"].to_dict() == pytest.approx({"q": 1 / 9, "r": 1.0})
    for margin, changes in (("first", [0.0, -0.5]), ("edge", [-0.5, 0.0])):
        rows = ranks.change_by_margin(of, run.id, margin, 2)
        assert rows["delta"].tolist() == pytest.approx(changes)


@pytest.mark.parametrize(
    ("rules", "kind"),
    [({"correction": "none"}, "better"), ({}, "better"), ({"family": "all"}, "unproven")],
    ids=str,
)
def test_the_verdict_on_the_first_stage_is_corrected_as_the_settings_say(rules, kind):
    """Seven of seven queries helped is p 0.016: below 0.05 also where two systems are compared, and
    above it where they are compared on three metrics."""
    first = {f"q{place:02}": "ab" for place in range(40)}
    labels = {query: {"b": 1.0} for query in first}
    helped = {query: "ba" if place < 7 else "ab" for place, query in enumerate(first)}
    of = small(first, helped, helped, labels=labels, metric="hit", cutoff=1,
               others=("mrr", "ndcg@2"))  # fmt: skip
    one, other = of.challengers
    of = replace(of, baseline=one, challengers=(other,),
                 statistics=StatisticsSettings(resamples=1000, **rules))  # fmt: skip
    assert ranks.first_stage_kind(of, other) == kind
