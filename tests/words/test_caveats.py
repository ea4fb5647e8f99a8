"""Caveats and gaps in words: whose share, which side, and how many are named."""

from types import SimpleNamespace

import pandas as pd
import pytest

from rankdash.analysis.labels.query_groups import DERIVED_SEGMENTS
from rankdash.findings import Finding
from rankdash.ranking.measured import Measured
from rankdash.runs.usage import MeasuredLoad
from rankdash.study.caveats import (
    Implausible,
    MadeBaseline,
    NearCeiling,
    OtherMetrics,
    RefusedRows,
    TurnedGroups,
    Unlabelled,
    UnprovenLead,
)
from rankdash.study.pricing import Bill, Waiting
from rankdash.study.query_groups import Group
from rankdash.study.systems import Money
from rankdash.value.billing import Load
from rankdash.words import caveats, decision, rankings


def study(**changes: object) -> SimpleNamespace:
    usual = {
        "baseline": "base",
        "name": str.upper,
        "cutoff": 10,
        "measure": SimpleNamespace(title="NDCG@10", k=10),
        "dataset": SimpleNamespace(segments={"topic": ()}, query_names={"q1": "how to return"}),
        "statistics": SimpleNamespace(tie_band=0.005),
        "measures_quality": True,
        "money": None,
    }
    return SimpleNamespace(**(usual | changes))


@pytest.mark.parametrize(
    ("cutoff", "skipped", "said"),
    [
        (10, False, "30% of the top 10 have no label (BASE: 20%). They count as not relevant."),
        (None, True, "30% of the ranked documents have no label (BASE: 20%). They are skipped."),
    ],
)
def test_labels_that_are_missing_are_those_of_the_challenger_beside_the_baseline(
    cutoff, skipped, said
):
    found = Unlabelled(baseline=0.2, challenger=0.3, skipped=skipped)
    assert caveats.line(study(cutoff=cutoff), found) == said


def group(value: str, *, proven: bool = True, column: str = "topic") -> Group:
    return Group(column, value, 7, -0.2, proven)


@pytest.mark.parametrize(
    ("count", "end"),
    [
        (1, "topic “a” (7 queries, -0.200, proven)."),
        (3, "and topic “c” (7 queries, -0.200, proven)."),
        (4, "topic “c” (7 queries, -0.200, proven), and 1 other kind."),
        (5, "topic “c” (7 queries, -0.200, proven), and 2 other kinds."),
    ],
)
def test_three_kinds_of_queries_are_named_and_the_others_counted(count, end):
    groups = tuple(group(value) for value in "abcde"[:count])
    worse = caveats.line(study(), TurnedGroups(worse=True, groups=groups))
    assert worse.startswith("Worse for some kinds of queries: topic “a”") and worse.endswith(end)
    better = caveats.line(study(), TurnedGroups(worse=False, groups=groups))
    assert better.startswith("Better for some kinds of queries: ")


def test_a_kind_that_is_not_proven_says_so_and_a_derived_one_has_a_title():
    said = caveats.kinds(study(), [group("a", proven=False)])
    assert said == "topic “a” (7 queries, -0.200, not proven)"
    column, title = DERIVED_SEGMENTS[0].name, DERIVED_SEGMENTS[0].title
    derived = caveats.kinds(study(), [group("x", column=column)])
    assert derived.startswith(f"{title} “x”")
    # A column of one's own may have the name of a derived one.
    own = study(dataset=SimpleNamespace(segments={column: ()}))
    assert caveats.kinds(own, [group("x", column=column)]).startswith(f"{column} “x”")


@pytest.mark.parametrize(
    ("better", "worse", "said"),
    [
        (("MRR",), (), "Proven better on MRR."),
        ((), ("MAP",), "Proven worse on MAP."),
        (("MRR",), ("MAP",), "Proven better on MRR, proven worse on MAP."),
    ],
)
def test_other_metrics_are_named_on_their_side(better, worse, said):
    assert caveats.line(study(), OtherMetrics(better, worse)) == said


def test_what_is_too_easy_and_what_is_only_ahead_is_said_in_numbers():
    assert caveats.line(study(), NearCeiling(0.95, 0.99)) == (
        "The test set is too easy to tell rerankers apart: BASE reaches 0.950; the best possible "
        "NDCG@10 is 0.990."
    )
    lead = caveats.line(study(), UnprovenLead("other", 0.01))
    assert lead == "The lead over OTHER (+0.010) is not proven."


@pytest.mark.parametrize("labelled_only", [True, False])
def test_a_baseline_that_ranks_labelled_documents_only_says_so(labelled_only):
    said = caveats.line(study(), MadeBaseline("rows", labelled_only))
    assert said.startswith("BASE is not your own search: it is the order of the rows")
    assert ("It ranks labelled documents only" in said) is labelled_only


@pytest.mark.parametrize(
    ("pairs", "rule", "said"),
    [
        (0, "exclude", None),
        (1, "exclude", "1 candidate without a text was excluded: it stays below the reranked "
         "ones."),
        (2, "empty", "2 candidates without a text were scored as empty texts."),
    ],
)  # fmt: skip
def test_candidates_without_a_text_were_excluded_or_scored_empty(pairs, rule, said):
    assert rankings.without_text(Measured(textless_pairs=pairs, without_text=rule)) == said


# What a decision says.


def found(**changes: object) -> SimpleNamespace:
    choice = SimpleNamespace(waiting=Waiting(200.0, 400.0), bill=None, unset=False)
    usual = {
        "challenger": "mini",
        "row": pd.Series({"verdict": "better", "paired": 40, "hurt": 10}),
        "worst": pd.Series({"query_id": "q1", "before": 0.9, "after": 0.1}),
        "groups": (),
        "target_ms": 400.0,
        "caveats": (),
        "priced": True,
        "unlabelled": 0,
        "defaults": (),
        "choice": choice,
        "step": "price",
    }
    given = usual | changes
    return SimpleNamespace(kind=given["row"]["verdict"], **given)


REVERSED = Finding("warning", "label_direction", "Labels of {name} look reversed.", {"name": "<b>"})
HURT = "10 of 40 queries get worse (25%). Worst: “how to return”, NDCG@10 0.900 → 0.100."


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, [HURT]),
        ({"worst": None}, ["No query gets worse by more than 0.005 (40 queries compared)."]),
        ({"row": pd.Series({"verdict": "better", "paired": 0, "hurt": 0})},
         ["No query can be compared."]),
        ({"groups": (group("a"), group("b", proven=False))},
         [HURT, "Worse in: topic “a” (7 queries, -0.200, proven).",
          "No gain is proven in: topic “b” (7 queries, -0.200, not proven)."]),
        # Where the whole gains nothing, no kind of queries is expected to.
        ({"groups": (group("b", proven=False),), "row": pd.Series(
            {"verdict": "unproven", "paired": 40, "hurt": 10})}, [HURT]),
        ({"target_ms": 399.0}, [HURT, "p95 latency is 400 ms: over the target of 399 ms."]),
        ({"choice": SimpleNamespace(waiting=Waiting(200.0, 400.0, busy=True))},
         [HURT, "The machine was busy while MINI was measured: measure its latency again."]),
        ({"priced": False},
         [HURT, "The price or the value of a search is not set: it is open whether MINI pays."]),
        ({"caveats": (UnprovenLead("other", 0.01), MadeBaseline("rows", False))},
         [HURT, "The lead over OTHER (+0.010) is not proven."]),
        ({"caveats": (Implausible(REVERSED), RefusedRows(200, 1000))},
         [HURT, "Labels of <b> look reversed.",
          "200 of 1,000 rows of the files were excluded: the verdict is about the others."]),
    ],
)  # fmt: skip
def test_risks_are_said_from_where_they_are_risks(changes, said):
    assert decision.risks(study(), found(**changes)) == said


def test_latency_that_was_not_measured_is_open_and_a_share_of_labels_hurts_nobody():
    unmeasured = SimpleNamespace(waiting=Waiting(None, None))
    said = decision.risks(study(measures_quality=False), found(choice=unmeasured))
    assert said == [
        "Latency is not measured: it is open whether MINI meets the target of 400 ms (p95)."
    ]
    few = SimpleNamespace(waiting=Waiting(200.0, None, timed=4))
    said = decision.risks(study(measures_quality=False), found(choice=few))
    assert said == [
        "Latency is timed for 4 queries, and p95 needs 5: it is open whether MINI meets the target "
        "of 400 ms (p95)."
    ]


@pytest.mark.parametrize(
    ("chosen", "lack", "said"),
    [
        (False, "price", "Missing: the price of MINI."),
        (False, "throughput", "Missing: the price of MINI."),
        (True, "throughput",
         "Missing: the searches per second that one machine serves with MINI."),
        (True, "rate", "Missing: the exchange rate for the price of MINI."),
    ],
)  # fmt: skip
def test_what_a_cost_lacks_may_be_less_than_its_price(chosen, lack, said):
    sent = MeasuredLoad(Load(10.0, 100.0, 50.0), estimated=False)
    bill = Bill(None, sent, "USD", lack=lack, chosen=chosen)
    assert decision.gaps(study(), found(choice=SimpleNamespace(bill=bill, unset=True))) == [said]


def test_what_is_missing_is_said_and_otherwise_that_nothing_is():
    assert decision.gaps(study(), found()) == [
        "Nothing: labels, price and assumptions are your own."
    ]
    unset = SimpleNamespace(bill=None, unset=True)
    assert decision.gaps(study(), found(unlabelled=1, choice=unset)) == [
        "Missing: the label of 1 document in the top 10 of BASE or MINI.",
        "Missing: the price of MINI.",
    ]
    whole = study(measure=SimpleNamespace(title="MAP", k=None))
    assert decision.gaps(whole, found(unlabelled=2)) == [
        "Missing: labels of 2 documents in the lists of BASE or MINI."
    ]


@pytest.mark.parametrize(
    ("unset", "valued", "said"),
    [
        (False, False, "Set the value of a search, then compare gain and cost."),
        (False, True, "Set the value of a search, then compare gain and cost."),
        (True, True, "Set the price of MINI, then compare gain and cost."),
        (True, False, "Set the price of MINI and the value of a search, then compare gain and "
         "cost."),
        (True, None, "Set the price of MINI and the value of a search, then compare gain and "
         "cost."),
    ],
)  # fmt: skip
def test_of_price_and_value_what_is_not_set_is_asked_for(unset, valued, said):
    choice = SimpleNamespace(unset=unset)
    money = None if valued is None else Money.of({"value_per_search": 1.0} if valued else {})
    assert decision.next_step(study(money=money), found(choice=choice)) == said
