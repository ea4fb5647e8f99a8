"""Texts of a judge and human labels."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.judgements import Judgements
from rankdash.core.readers import sources_from_path
from rankdash.core.readers.loading import load
from rankdash.core.sampling.bias_corrected import correct
from rankdash.core.sampling.label_plan import pool_of
from rankdash.core.sampling.rater_agreement import lifted_by
from rankdash.core.study.judged import JudgedVerdict, verdicts
from rankdash.core.study.study import Study
from rankdash.core.words.judged import (
    bias_sentence,
    judge_caveats,
    judge_warnings,
    judged_facts,
    judged_lines,
    judged_sentence,
    worth_sentence,
)
from tests.sets import SAMPLE
from tests.study.test_study import study_of


@pytest.fixture(scope="module")
def study() -> Study:
    return study_of(load(sources_from_path(SAMPLE)).dataset, 1)


def judgements(study: Study, grades, **more: object) -> Judgements:
    """Return the judge's grades of every labelled pair."""
    pairs = study.dataset.qrels[["query_id", "doc_id"]]
    return Judgements("Judge A", (0.0, 3.0), pairs.assign(grade=grades, error=""), **more)


@pytest.fixture(scope="module")
def judged(study) -> Study:
    return replace(study, judge=judgements(study, 3 - study.dataset.qrels["label"]))


def verdict(
    study: Study, kind: str = "better", n: int = 20, others: int = 100, **fields: object
) -> JudgedVerdict:
    rng = np.random.default_rng(1)
    judge = rng.normal(0.1, 0.4, n + others)
    people = judge + 0.3 * rng.normal(0, 0.4, n + others)
    people[n:] = np.nan
    usual = {
        "judge": "Judge A", "challenger": study.challengers[0], "p": 0.01, "queries": n + others,
        "people": n, "graded": n, "incomplete": 0, "documents": 10 * (n + others), "missing": 0,
        "lost": lost(), "sampled": False, "labelled": 1.0, "before": 0.5,
    }  # fmt: skip
    return JudgedVerdict(three=correct(people, judge, level=0.95), kind=kind, **(usual | fields))


def lost(*kinds: str) -> pd.DataFrame:
    """Return a failure of each kind, two in a query."""
    rows = [(f"q{at // 2}", f"d{at}", kind) for at, kind in enumerate(kinds)]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "kind"])


def test_each_verdict_says_by_whom_and_how_surely(study, judged, texts):
    found = verdict(study)
    failed = lost("time_out", "unreadable", "time_out", "not_asked")
    cases = {
        **{kind: verdict(study, kind) for kind in ("better", "small", "worse", "unproven")},
        "grades are missing": verdict(study, documents=4220, missing=211),
        "too few labelled queries": verdict(study, "too_few", n=7),
        "labels of single documents": verdict(study, "too_few", n=0, sampled=True),
        "no metric of quality": verdict(study, "descriptive"),
        "the judge is of no use": replace(
            found, three=replace(found.three, weight=0.0, corrected=found.three.people)),
        "people labelled everything": verdict(study, others=0),
        "a tenth of the documents is labelled": verdict(study, labelled=0.114),
        "just not all are labelled": verdict(study, labelled=0.994),
        "as good as all are labelled": verdict(study, labelled=0.996),
        "labels of single documents, a tenth": verdict(study, labelled=0.114, sampled=True),
        "a mean of two queries": verdict(study, "too_few", n=2),
        "a mean of five": verdict(study, "too_few", n=5),
        "a mean of six": verdict(study, "too_few", n=6),
        "queries without a value": verdict(judged, people=23, queries=123, incomplete=3),
        "grades failed": verdict(judged, incomplete=5, queries=125, lost=failed),
        "grades not asked for yet": verdict(judged, lost=lost("not_asked")),
        "grades not in the file": verdict(judged, lost=lost("elsewhere")),
    }  # fmt: skip
    # The correlation of a cancelled run's changes with human labels is unknown.
    for graded, people in ((9, 20), (10, 20), (19, 40), (20, 40)):
        cases[f"of no use, {graded} of {people} graded"] = replace(
            cases["the judge is of no use"], graded=graded, people=people
        )
    usual = [*judge_caveats(judged, found), *judge_warnings(judged, found)]

    def said(each: JudgedVerdict) -> list[str]:
        """Return the sentences, with the warnings and caveats that other verdicts lack."""
        more = [*judge_warnings(judged, each), *judge_caveats(judged, each)]
        lines = [judged_sentence(study, each), worth_sentence(each)]
        lines += [line for line in more if line not in usual]
        return [line for line in lines if line]

    texts(
        "judged",
        {"every verdict": usual} | {name: said(each) for name, each in cases.items()},
    )


def test_a_study_without_a_judge_says_nothing_and_a_copy_of_the_labels_is_a_warning(study, judged):
    assert judged_lines(study) == []
    assert judge_caveats(study, verdict(study)) == judge_warnings(study, verdict(study)) == []
    copy = judgements(study, study.dataset.qrels["label"])
    said = judge_warnings(replace(judged, judge=copy), verdict(judged))[0]
    assert f"equal the human labels on all {len(copy):,} shared pairs." in said


def test_the_bias_is_the_first_line_below_the_verdict(study):
    """Three judges: grades one too high if the challenger ranks the document higher; even errors;
    too few labelled queries."""
    (challenger,) = study.challengers
    qrels = study.dataset.qrels
    pool = pool_of({each: study.ranking(each) for each in study.chosen}, 10)
    owner = lifted_by(pool, challenger, study.baseline).reindex(
        pd.MultiIndex.from_frame(qrels[["query_id", "doc_id"]])
    )
    label = qrels["label"].to_numpy()
    # An equal share of the documents that each system ranks higher, of those below the top grade.
    even = np.zeros(len(qrels), dtype=bool)
    for system in (challenger, study.baseline):
        lower = np.flatnonzero((owner == system).to_numpy() & (label < 3))
        even[lower[: round((owner == system).sum() / 20)]] = True
    for high, said in (
        ((owner == challenger).to_numpy(), "Bias: the judge errs in favour of by 1. Compared"),
        ((owner == study.baseline).to_numpy(), "Bias: the judge errs in favour of First stage. C"),
        (even, "Bias: not proven that the judge favours by 1 or First"),
    ):
        judge = judgements(study, np.minimum(label + high, 3.0))
        judged = replace(study, judge=judge)
        lines = judged_lines(judged)
        assert lines[0].startswith(("by 1 is ", "Not proven that by 1 differs"))
        assert lines[1].startswith(said)
        (found,) = verdicts(judged, judge).values()
        assert judged_facts(judged, found)[0] == bias_sentence(judged, found) == lines[1]
        assert sum("Bias: " in line for line in lines) == 1
    table = judge.table
    few = table[table["query_id"].isin(table["query_id"].unique()[:4])]
    judged = replace(study, judge=Judgements("Judge A", (0.0, 3.0), few))
    assert not [line for line in judged_lines(judged) if "Bias" in line or "nan" in line]


def test_a_shared_maker_is_said_where_that_system_is_compared(study):
    study = study_of(study.dataset, 2)
    first, second = study.challengers
    run = replace(study.systems[first].load(), reranker="llm", settings={"model": "gpt-4o"})
    systems = {**study.systems, first: replace(study.systems[first], load=lambda: run)}
    judge = judgements(study, 3 - study.dataset.qrels["label"], model="gpt-4.1")
    study = replace(study, systems=systems, judge=judge)
    [said] = judge_warnings(study, verdict(study))
    assert said.startswith("Judge A and by 1 are both made by OpenAI")
    assert judge_warnings(study, verdict(study, challenger=second)) == []
    turned = replace(study, baseline=first, challengers=(study.baseline, second))
    assert judge_warnings(turned, verdict(turned, challenger=second)) == [said]
