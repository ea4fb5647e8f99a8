"""What is said of a judge and people together."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.judging.agreement import lifted_by
from rankdash.analysis.judging.corrected import correct
from rankdash.analysis.judging.judgements import Judgements
from rankdash.analysis.labelling.label_pool import pool_of
from rankdash.loading import load
from rankdash.readers import sources_from_path
from rankdash.study.judging import JudgedVerdict, verdicts
from rankdash.words.judged import (
    bias_sentence,
    judge_caveats,
    judge_warnings,
    judged_facts,
    judged_lines,
    judged_sentence,
    three_ways,
    worth_sentence,
)
from tests.sets import SAMPLE
from tests.study.test_study import study_of


@pytest.fixture(scope="module")
def study():
    return study_of(load(sources_from_path(SAMPLE)).dataset, 1)


def verdict(study, kind: str, n: int = 20, others: int = 100, noise: float = 0.3, **fields):
    rng = np.random.default_rng(1)
    judge = rng.normal(0.1, 0.4, n + others)
    people = judge + noise * rng.normal(0, 0.4, n + others)
    people[n:] = np.nan
    usual = {
        "judge": "Judge A", "challenger": study.challengers[0], "p": 0.01, "queries": n + others,
        "people": n, "graded": n, "incomplete": 0, "documents": 10 * (n + others), "missing": 0,
        "lost": lost_pairs({}), "drawn": False, "labelled": 1.0, "before": 0.5,
    }  # fmt: skip
    three = correct(people, judge, level=0.95)
    return JudgedVerdict(three=three, kind=kind, **(usual | fields))


def lost_pairs(kinds) -> pd.DataFrame:
    """(query, document) → kind of failure, as a verdict has them."""
    rows = [(*pair, kind) for pair, kind in kinds.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "kind"])


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("better", "by 1 is better than First stage: NDCG@10 "),
        (
            "small",
            "by 1 is better than First stage, but by less than the minimum practically relevant "
            "gain (set by the user): NDCG@10 ",
        ),
        ("worse", "by 1 is worse than First stage: NDCG@10 "),
        ("unproven", "Not proven that by 1 differs from First stage: NDCG@10 "),
    ],
)
def test_each_verdict_says_by_whom_and_how_surely(study, kind, said) -> None:
    found = verdict(study, kind)
    change = found.three.corrected
    sentence = judged_sentence(study, found)
    ends = f"{change.low:+.3f} … {change.high:+.3f}"
    assert sentence == (
        f"{said}{change.mean:+.4f} (95% {ends}), by the judge Judge A, corrected by people's "
        "labels of 20 queries."
    )


def test_a_verdict_names_the_grades_that_the_judge_lacks(study) -> None:
    found = verdict(study, "better", documents=4220, missing=211)
    whole = judged_sentence(study, replace(found, missing=0))
    loss = " The judge has no grade for 211 of 4,220 documents (5.0%)."
    assert judged_sentence(study, found) == whole + loss


def test_what_is_missing_for_a_verdict(study) -> None:
    assert judged_sentence(study, verdict(study, "too_few", n=7)) == (
        "No verdict by the judge Judge A: people labelled 7 queries with a value, and at least 10 "
        "are needed to correct a judge."
    )
    drawn = judged_sentence(study, verdict(study, "too_few", n=0, drawn=True))
    assert drawn.startswith("No verdict by the judge Judge A: these labels are of single documents")
    assert judged_sentence(study, verdict(study, "descriptive")) == "no verdict"


def test_what_the_judge_saves(study) -> None:
    found = verdict(study, "better")
    three = found.three
    assert worth_sentence(found) == (
        f"The judge is worth {three.worth:.1f} times the labels: without it, about "
        f"{three.saved:.0f} more queries would have to be labelled for the same certainty."
    )
    useless = replace(found, three=replace(three, weight=0.0, corrected=three.people))
    assert worth_sentence(useless).endswith(
        "so this is people's verdict: its changes do not follow theirs."
    )
    # Of a run that was cancelled, nothing is known of how its changes follow people's.
    for graded in (0, 1, 9):
        assert worth_sentence(replace(useless, graded=graded)).endswith(
            f"it graded only {graded} of the 20 labelled queries, too few to see what it is worth."
        )
    everything = verdict(study, "better", others=0)
    assert worth_sentence(everything).endswith(
        "so this is people's verdict: they labelled all of its queries."
    )
    assert worth_sentence(verdict(study, "too_few", n=5)) == ""


def test_the_three_ways_stand_in_one_order(study) -> None:
    three = verdict(study, "better").three
    assert three_ways(three) == [
        ("people alone", three.people),
        ("judge alone", three.judge),
        ("corrected by people", three.corrected),
    ]


def test_a_study_without_a_judge_says_nothing(study) -> None:
    assert judged_lines(study) == []


def test_what_is_not_labelled_and_what_is_assumed_is_said(study) -> None:
    def caveats(kind="better", **fields):
        return judge_caveats(judged, verdict(study, kind, **fields))

    table = study.dataset.qrels.rename(columns={"label": "grade"}).assign(error="")
    judged = replace(study, judge=Judgements("Judge A", (0.0, 3.0), table))
    sample = "People's queries are taken to be a random sample of all."
    partly = (
        "Of the documents that the two systems rank first in people's queries, 11% have a label; "
        "the others count as not relevant."
    )
    assert sample in caveats() and partly not in caveats()
    assert partly in caveats(labelled=0.114)
    assert not [each for each in caveats(labelled=0.996) if "have a label" in each]
    assert partly not in caveats(labelled=0.114, drawn=True)
    assert sample not in caveats("too_few", n=5)
    few = "A mean of fewer than 6 queries has no interval."
    assert few in caveats("too_few", n=2)
    assert few not in caveats("too_few", n=6) and few not in caveats("too_few", n=0)


@pytest.fixture(scope="module")
def judged(study):
    table = study.dataset.qrels.rename(columns={"label": "grade"}).assign(error="")
    table["grade"] = 3 - table["grade"]
    return replace(study, judge=Judgements("Judge A", (0.0, 3.0), table))


def test_where_people_labelled_and_the_judge_failed_it_is_a_warning_with_what_to_do(judged) -> None:
    lost = lost_pairs(
        {("q1", "d1"): "time_out", ("q1", "d2"): "unreadable", ("q2", "d1"): "time_out"}
        | {("q3", "d1"): "not_asked"}
    )
    found = verdict(judged, "better", incomplete=5, lost=lost)
    assert judge_warnings(judged, found) == [
        "In 3 of the 20 labelled queries, the judge lacks a grade (documents by reason: no answer "
        "in time: 2, answer not in the form: 1, not asked yet: 1). A missing grade counts as one "
        "more grade, whose worth is learned from the human labels; a query without any grade "
        "counts by its human labels only. Let the judge grade these queries too. Ask again for "
        "those that failed, on the page Judge or with rankdash judge run and the same file."
    ]
    never = verdict(judged, "better", lost=lost_pairs({("q3", "d1"): "not_asked"}))
    assert judge_warnings(judged, never)[0].endswith("Let the judge grade these queries too.")
    file = verdict(judged, "better", lost=lost_pairs({("q3", "d1"): "elsewhere"}))
    assert judge_warnings(judged, file)[0].endswith(
        "(documents by reason: no grade in the file: 1). A missing grade counts as one more grade, "
        "whose worth is learned from the human labels; a query without any grade counts by its "
        "human labels only. Read its file again with a grade for each of these."
    )
    assert judge_warnings(judged, verdict(judged, "better")) == []
    copy = replace(judged.judge, table=judged.judge.table.assign(
        grade=judged.dataset.qrels["label"].to_numpy()))  # fmt: skip
    assert judge_warnings(replace(judged, judge=copy), verdict(judged, "better"))[0].startswith(
        f"The judge's grades are people's labels on all {len(copy):,} pairs that both graded."
    )


def test_the_bias_is_the_first_line_below_the_verdict(study) -> None:
    """A judge that gives one grade more to what the challenger ranks higher; one that errs evenly;
    one with too few labelled queries to know."""
    (challenger,) = study.challengers
    qrels = study.dataset.qrels
    pool = pool_of({each: study.ranking(each) for each in study.chosen}, 10)
    owner = lifted_by(pool, challenger, study.baseline).reindex(
        pd.MultiIndex.from_frame(qrels[["query_id", "doc_id"]])
    )
    label = qrels["label"].to_numpy()
    # The same share of what each ranks higher, of documents that can have a higher grade.
    even = np.zeros(len(qrels), dtype=bool)
    for system in (challenger, study.baseline):
        lower = np.flatnonzero((owner == system).to_numpy() & (label < 3))
        even[lower[: round((owner == system).sum() / 20)]] = True
    for high, said in (
        ((owner == challenger).to_numpy(), "Bias: the judge errs in favour of by 1. Compared"),
        ((owner == study.baseline).to_numpy(), "Bias: the judge errs in favour of First stage. C"),
        (even, "Bias: not proven that the judge favours by 1 or First"),
    ):
        table = qrels.assign(grade=np.minimum(label + high, 3.0), error="")
        judged = replace(study, judge=Judgements("Judge A", (0.0, 3.0), table))
        lines = judged_lines(judged)
        assert lines[0].startswith(("by 1 is ", "Not proven that by 1 differs"))
        assert lines[1].startswith(said)
        (found,) = verdicts(judged, judged.judge).values()
        assert judged_facts(judged, found)[0] == lines[1]
        assert bias_sentence(judged, found) == lines[1]
        assert sum("Bias: " in line for line in lines) == 1
    few = table[table["query_id"].isin(table["query_id"].unique()[:4])]
    judged = replace(study, judge=Judgements("Judge A", (0.0, 3.0), few))
    assert not [line for line in judged_lines(judged) if "Bias" in line or "nan" in line]


def test_a_shared_maker_is_said_where_that_system_is_compared() -> None:
    study = study_of(load(sources_from_path(SAMPLE)).dataset, 2)
    first, second = study.challengers
    run = replace(study.systems[first].load(), reranker="llm", settings={"model": "gpt-4o"})
    own = replace(study.systems[first], load=lambda: run)
    table = study.dataset.qrels.rename(columns={"label": "grade"}).assign(error="")
    table["grade"] = 3 - table["grade"]
    judge = Judgements("Judge A", (0.0, 3.0), table, model="gpt-4.1")
    study = replace(study, systems={**study.systems, first: own}, judge=judge)
    said = [
        judge_warnings(study, verdict(study, "better", challenger=each)) for each in (first, second)
    ]
    assert [len(each) for each in said] == [1, 0]
    assert said[0][0].startswith("Judge A and by 1 share a maker, OpenAI")
    turned = replace(study, baseline=first, challengers=(study.baseline, second))
    assert len(judge_warnings(turned, verdict(turned, "better", challenger=second))) == 1


def test_the_numbers_of_queries_add_up(judged) -> None:
    found = verdict(judged, "better", people=23, queries=123, incomplete=3)
    assert (
        "Of 123 queries, people labelled 23: 20 with a value, 3 without one, as where nothing is "
        "relevant. The judge graded 120 in full: 120 with a value, 0 without one; in 3 it lacks a "
        "grade."
    ) in judge_caveats(judged, found)
