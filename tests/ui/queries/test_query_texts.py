"""The texts of one query: its value, the reason for its change, moved documents, and its lists."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from rankdash.core.base.errors import RankdashError
from rankdash.core.data.explanation import Explanation, Stage, TextPart
from rankdash.core.data.ranking import Reading
from rankdash.core.metrics import Conventions
from rankdash.core.study.study import Study
from rankdash.core.workspace.notes import Note
from rankdash.features.queries import page as queries_page
from rankdash.features.queries import page_occlusion, page_why
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.occlusion import LONGEST_LOOKED_AT, explain
from tests.approved import table
from tests.ui.page_text import page_text
from tests.ui.parts import (
    LANGUAGES,
    component,
    dataset_of,
    drawn,
    run_of,
    said,
    send,
    study_of,
    unlike,
)

DOCS = [f"d{n}" for n in range(5)]
# Query → its labels, and the first documents of the reranked list; the others follow as before.
QUERIES: dict[str, tuple[dict[str, int], list[str]]] = {
    "hurt": ({"d0": 2, "d2": 0}, ["d2", "d1"]),
    "helped": ({"d4": 1}, ["d4"]),
    "nothing was relevant": ({"d1": 0}, []),
    "not retrieved": ({"x": 1, "y": 2, "z": 1, "d1": 0}, []),
    "nothing shown is judged": ({"x": 1}, []),
    "below the cutoff": ({"d3": 2, "d1": 0}, []),
    "part of the way": ({"d0": 0, "d1": 0, "d2": 1}, ["d0", "d2", "d1"]),
    "none of the way": ({"d1": 1}, ["d0", "d2", "d1"]),
    "two are relevant": ({"d0": 2, "d1": 1, "d2": 0}, ["d1"]),
    "the best already": ({"d0": 1, "d1": 0, "d2": 0}, []),
    "failed": ({"d0": 1}, ["d1"]),
    "skipped": ({"d0": 1}, ["d1"]),
    "": ({"d0": 1}, ["d1"]),
}  # fmt: skip


def asked(query: str) -> str:
    """Return the id of a query; all but the last have a text."""
    return query or "without a text"


DATA = dataset_of(
    "query_id,query,doc_id,title,document,label,score\n"
    + "".join(
        f"{asked(query)},{query},{doc},{'About X' if doc == 'x' else ''},*text* of {doc},"
        f"{labels.get(doc, '')},{10 - place if doc in DOCS else ''}\n"
        for query, (labels, _first) in QUERIES.items()
        for place, doc in enumerate([*DOCS, *(doc for doc in labels if doc not in DOCS)])
    )
)


def reranked(name: str, without: str = "") -> Study:
    """Return the study of a run. without: a document that its lists lack."""
    lists = {
        asked(query): [doc for doc in dict.fromkeys([*first, *DOCS]) if doc != without]
        for query, (_labels, first) in QUERIES.items()
        if query not in ("failed", "skipped")
    }
    made = run_of(DATA, name, lists)
    done = made.queries.assign(latency_ms=12.0)
    lost = [
        {**done.iloc[0].to_dict(), "query_id": state, "state": state, "reason": reason}
        for state, reason in (("failed", "no *luck*"), ("skipped", "not in the sample"))
    ]
    run = replace(made, queries=pd.concat([done, pd.DataFrame(lost)], ignore_index=True))
    return study_of(DATA, run, cutoff=3)


STUDY, OWN = reranked("new"), reranked("own", without="d0")


def detail(query: str, study: Study = STUDY, **changes: object) -> Callable[[], None]:
    study = replace(study, **changes)
    challenger = (study.challengers or (study.baseline,))[0]

    def draw() -> None:
        queries_page.draw(study, challenger, queries_study.listing(study, challenger).row(query))

    return draw


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_query_says_what_became_of_it(approved, language):
    folds = ["queries.details", "queries.contributions", "queries.ladder.table"]

    def shown(query: str, **changes: object) -> str:
        app = drawn(detail(query, **changes), language, folds)
        lines = page_text(app, charts=False).split("\n")
        return "\n".join([heading(app), *(line for line in lines if "[rankdash." not in line)])

    cases = {query or "no text": shown(asked(query)) for query in QUERIES}
    base = {"baseline": "new", "challengers": (STUDY.baseline,)}
    other = {
        "MRR speaks of the first relevant document": ("hurt", {"metric": "mrr"}),
        "beyond the list": ("hurt", {"cutoff": None}),
        "a list of its own has a ceiling of its own": ("helped", {"study": OWN}),
        "none of its orders is worth anything": ("hurt", {"study": OWN}),
        "a baseline that is better than any of its orders": ("two are relevant", {"study": OWN}),
        "failed in the baseline": ("failed", base),
    }
    for name, (query, changes) in other.items():
        cases[name] = unlike(cases[query], shown(query, **changes))
    cases["documents by their titles, openings or ids"] = said(ladder, language, docs="every")
    approved(f"ui/query.{language}", table(cases))


def heading(app: AppTest) -> str:
    """Return title, values, chips with their sentences, and missed documents with ranks."""
    data = component(app, "reading")
    values = data["values"] or {"text": "", "hint": ""}
    facts = [[data["title"], ""], [values["text"], values["hint"]], *data["chips"]]
    missed = [[data["docs"][doc][0], places] for doc, places in data["missed"]]
    return "\n".join(f"{text}: {hint}" for text, hint in [*facts, *missed] if text)


TITLED = [("Returns", "Send it back."), ("Returns", "Ask first."), ("Fees", "None."),
          ("", "Untitled words."), ("Only a title", ""), ("", ""), ("Twice", ""),
          ("Twice", "Its words.")]  # fmt: skip


def ladder() -> None:
    head = "query_id,query,doc_id,title,document,label,score\n"
    rows = (f"q,a,d{n},{title},{text},1,{9 - n}" for n, (title, text) in enumerate(TITLED))
    study = study_of(dataset_of(head + "\n".join(rows)), challengers=())
    page_why.draw_ladder(study, queries_study.ladder_of(study, study.baseline, "q"))


# Lists of two systems.

TEXTS = {
    "as long as a snippet": "w" * 150,
    "as long as a part": "w" * 4_000,
    "longer than a part": "w" * 4_001,
    "Chinese": "字" * 76,
    "none": None,
    "from within": "a " * 400 + "gift " + "b " * 400,
    "hostile": "<img src=x onerror=alert(1)> ![p](http://evil.invalid/a.png) <mark>gift</mark>",
    "labelled 0": "gift",
    "unlabelled": "gift",
}


def lists() -> Study:
    """Return one query with a document per text, reversed in "run"; "third" lacks the first."""
    rows = [
        {"query_id": "q", "query": "a gift", "doc_id": f"d{n}", "title": "A gift" * (n == 4),
         "document": text, "score": 20 - n,
         "label": {"labelled 0": 0, "unlabelled": None}.get(name, 1 + n % 3)}
        for n, (name, text) in enumerate(TEXTS.items())
    ]  # fmt: skip
    data = dataset_of(pd.DataFrame(rows).to_csv(index=False))
    docs = [row["doc_id"] for row in rows]
    count = len(docs)
    run = run_of(data, "run", {"q": docs[::-1]})
    full = np.where(np.arange(count) % 3 == 1, -1, 1840).astype(np.int32)
    read = np.where(np.arange(count) % 3 == 2, -1, 512).astype(np.int32)
    scores = np.where(np.arange(count) == count - 1, np.nan, run.ranking.scores)
    run = replace(run, reading=Reading(read, full), ranking=replace(run.ranking, scores=scores))
    return study_of(data, run, run_of(data, "third", {"q": docs[1:]}))


LISTS = lists()


def reading(study: Study = LISTS) -> Callable[[], None]:
    return detail("q", study)


def rows(data: dict, side: int) -> list[str]:
    """Return rank, move, grade, title and snippet of each document; marked words in brackets."""
    texts = []
    for place, (doc, move, text) in enumerate(data["sides"][side], start=1):
        _id, *parts = data["docs"][doc]
        marked = ["".join(f"[{t}]" if n % 2 else t for n, t in enumerate(part)) for part in parts]
        name = data["names"][data["given"][doc]]
        texts.append(f"{place} {move:+} {text} {name} | {' | '.join(marked)}")
    return texts


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_lists_say_rank_move_label_and_text(approved, language):
    cases = {}
    for name, study, chosen in (
        ("run", LISTS, {}),
        ("third", LISTS, {"left": "run", "right": "third"}),
        ("one system twice is the usual pair", LISTS, {"left": "run", "right": "run"}),
        ("cutoff 2", replace(LISTS, cutoff=2), {"left": "third"}),
    ):
        data = component(drawn(reading(study), language, **chosen), "reading")
        cases[name] = "\n".join([str(data["shown"]), *rows(data, 0), "-", *rows(data, 1)])
    short = re.sub(r"(\w)\1{8,}", lambda found: f"{found[1]}×{len(found[0])}", table(cases))
    approved(f"ui/lists.{language}", re.sub(r"(?:[ab] ){9,}", "… ", short))


@pytest.mark.parametrize(("top", "last"), [(None, "4"), (3.0, "3")])
def test_no_grade_is_above_the_highest_label_in_the_conventions(top, last):
    study = replace(LISTS, conventions=Conventions(err_top_label=top))
    assert component(drawn(reading(study)), "reading")["grades"][-2:] == [last, "?"]


def test_a_whole_text_comes_in_parts_with_what_the_model_saw():
    app, parts = drawn(reading()), []
    for start in (0, 4_000):
        send(app, "reading", {"open": ["q", "d2", start]})
        parts.append(component(app, "reading")["whole"])
    assert [(part["start"], part["end"]) for part in parts] == [(0, 4_000), (4_000, 4_001)]
    assert "".join(text for part in parts for text in part["pieces"]) == "w" * 4_001
    assert parts[0]["more"] == "Show more (4,000 of 4,001 characters)" and not parts[1]["more"]
    facts = parts[0]["facts"].split(" · ")
    assert facts == ["document d2", "score of First stage 18", "score of run 3",
                     "the model saw 512 of 1,840 tokens"]  # fmt: skip
    send(app, "reading", {"open": ["q", "d4", 0]})
    assert component(app, "reading")["whole"]["pieces"] == [
        "The data contains no text for this document."
    ]


@pytest.mark.parametrize("event", [
    7, [], {}, {"show": ["run"]}, {"show": ["run", "nothing"]}, {"show": [[], {}]}, {"open": 3},
    {"open": ["q", "nothing", 0]}, {"open": ["q", "d0", -1]}, {"open": ["q", "d0", 9e99]},
    {"pending": 5}, {"pending": [[1, "q", "d0"], None, [2, "x", "d0", "1"], [3, "q", "d0", "9"]]},
])  # fmt: skip
def test_whatever_a_browser_says_is_checked(event, workspace):
    app = send(drawn(reading()), "reading", event)
    data = component(app, "reading")
    assert data["shown"] == ["first-stage", "run"]
    assert (data["whole"] or {"doc": ""})["doc"] == ""


# Explanations of a score.


def part(start: int, end: int) -> TextPart:
    return TextPart(((start, end),))


def found(
    *effects: float, level: str = "term", text: str = "", **more: object
) -> Callable[[], None]:
    """Return a function that draws effects: one per letter, or for the first letters of a text."""
    parts = tuple(part(place, place + 1) for place in range(len(effects)))
    made = Explanation(1.5, (Stage(level, parts, effects),), **more)
    return partial(page_occlusion.draw, made, "query *q*", text or "abcdefghij"[: len(effects) + 1])


EFFECTS = {
    "steps of strength up": found(1.0, 0.8, 0.79, 0.55, 0.54, 0.3, 0.29, 0.1, 0.09, 0.0),
    "down, the largest first, and one that is not known": found(-1.0, 0.2, -0.8, math.nan, 0.2),
    "two that are not known": found(math.nan, math.nan, 1.0),
    "no part has an effect": found(0.0, 0.0),
    "sentences have no count of places": found(-0.5, level="sentence"),
    "words of the query": found(-0.5, level="query"),
    "read to its end": found(1.0, read=8, full=8),
    "cut": found(1.0, read=8, full=9),
    "tokens of one kind only": found(1.0, full=9),
    "as long as is looked at": found(1.0, text="a" * LONGEST_LOOKED_AT),
    "longer": found(1.0, text="a" * (LONGEST_LOOKED_AT + 1)),
    "markup is text": found(1.0, 0.01, text="<&>"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_score_depends_on(approved, language):
    text = table({name: said(draw, language) for name, draw in EFFECTS.items()})
    approved(f"ui/occlusion.{language}", re.sub("a{9,}", lambda m: f"a×{len(m[0])}", text))


def test_direction_differs_in_more_than_colour():
    (html,) = drawn(EFFECTS["steps of strength up"]).get("html")
    assert "solid #0072B2" in html.proto.body and "wavy #D55E00" in html.proto.body


def test_sentences_that_were_not_looked_into_are_faint():
    """Words are tried in the sentences with the largest effects only."""
    words = [f"w{n}" for n in range(200)]
    text = "".join(" ".join(words[at : at + 40]) + ". " for at in range(0, 200, 40))
    made = explain(
        "w50", text, "term",
        lambda variants: np.array([float("w50" in each.document) for each in variants]),
    )  # fmt: skip
    assert len(made.stages) == 2
    (html,) = drawn(partial(page_occlusion.draw, made, "w50", text)).get("html")
    shown = html.proto.body.partition("<div class='rd-why'>")[2].removesuffix("</div>")
    assert re.sub(r"<[^>]+>", "", shown) == text
    pale = " ".join(re.findall(r"<span class='rd-faint'>(.*?)</span>", shown))
    # Words of three sentences were tried.
    assert ">w50</mark>" in shown and {*re.findall(r"w\d+", pale)} == {*words[120:]}


# Notes of a read-only workspace.


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_note_that_is_only_shown_says_who_wrote_it(approved, workspace, monkeypatch, language):
    monkeypatch.setattr(page_why, "read_only", lambda: True)
    made = "2026-11-01T10:00:00+00:00"
    notes = {
        "none": Note("q", (), "", ""),
        "tags without a name": Note("q", ("a", "*b*"), "text", made),
        "by somebody": Note("q", (), "*text*", made, who="Ann"),
        "that cannot be read": Note("q", (), "", "", unread=RankdashError("It is *damaged*.")),
    }
    cases = {}
    for name, note in notes.items():
        monkeypatch.setattr(page_why.Notes, "of", lambda *_a, note=note: note)
        cases[name] = said(partial(page_why.draw_notes, LISTS, "q"), language)
    approved(f"ui/notes_shown.{language}", table(cases))
