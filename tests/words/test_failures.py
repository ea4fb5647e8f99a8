import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rankdash import rerankers
from rankdash.i18n import speaking
from rankdash.rerankers.base import Request, Scored
from rankdash.runs.scoring import ask
from rankdash.words.failures import TEMPLATES, in_words

PACKAGE = Path(rerankers.__file__).parents[1]


def chinese(reason: str) -> str:
    with speaking("zh"):
        return in_words(reason)


@pytest.mark.parametrize(
    ("reason", "details"),
    [
        ("no candidates", []),
        ("document 'd 7' has no text", ["'d 7'"]),
        ("The ranking does not contain this query.", []),
        ("Documents without a finite score from the model: 2 of 5.", ["2", "5"]),
        ("The model gave no finite score for 2 of 5 documents.", ["2", "5"]),
        ("requests that failed: 1 of 1: time-out: no answer within 1 s.", ["1"]),
        ("second stage: 2 of 9 requests failed: time-out: no answer within 30 seconds.", ["30"]),
        ("there is no connection (refused) (after 3 attempts)", ["refused", "3"]),
        ("documents with a score: 3 of 5: index 7 comes twice.", ["3", "5", "7"]),
        ("3 of 5 documents have a score: index 7 comes twice.", ["3", "5", "7"]),
        ("answers that could not be read: 1 of 1: the model said 'maybe'.", ["1", "'maybe'"]),
        ("3 of 5 answers could not be read: the model said 'maybe'.", ["3", "5", "'maybe'"]),
        ("the service answered 503: over (and out)", ["503", "over (and out)"]),
    ],
)
def test_a_known_reason_is_said_in_chinese_with_its_details(reason, details):
    told = chinese(reason)
    assert all(detail in told for detail in details)
    for detail in details:
        told = told.replace(detail, "")
    assert not re.search("[A-Za-z]", told)


@pytest.mark.parametrize(
    "reason",
    [
        *("KeyError: 'x'", "It is broken.", "", "{n}", "the service is"),
        # What a service or a model says is no count.
        *("index one comes twice", "the service answered badly: no", "the service said nothing"),
    ],
)
def test_what_nobody_knows_stays_as_it_is(reason):
    assert chinese(reason) == reason


def test_in_english_a_reason_is_what_it_was():
    reason = "Fast: 2 of 9 requests failed: there is no connection (refused) (after 3 attempts)"
    assert in_words(reason) == reason


def test_a_reason_behind_the_name_of_a_run_is_known_too():
    assert chinese("MiniLM: not in the sample") == f"MiniLM: {chinese('not in the sample')}"


def test_what_the_runner_says_of_answers_it_cannot_use_is_known():
    request = Request("q", "ask", ["a", "b"], ["x", "y"])
    for given in (
        [Scored(np.zeros(1))],
        [Scored(np.full(2, np.nan))],
        [],
        [Scored(np.ones(2))] * 2,
    ):
        reranker = SimpleNamespace(score=lambda requests, given=given: given)
        (answer,) = ask(reranker, [request], int, int).answers
        assert answer.error and chinese(answer.error) != answer.error


def test_every_template_is_still_said_somewhere():
    """A sentence that is changed where it is said would stay English from then on."""
    files = [
        file
        for folder in ("rerankers", "runs", "readers", "store")
        for file in (PACKAGE / folder).rglob("*.py")
    ]
    source = "".join(file.read_text() for file in files)
    gone = [
        template
        for template in TEMPLATES
        if not all(
            piece.strip(" (),") in source
            for piece in re.split(r"\{\w+\}|first(?= stage)|second(?= stage)|1 query", template)
        )
    ]
    assert gone == []


def test_a_reason_within_reasons_without_end_stays_as_it_is():
    reason = "first stage: " * 100_000 + "no answer in time"
    assert in_words(reason) == reason
