"""What one query says of itself: its value, why it changed, where its documents went, its cards."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.errors import RankdashError
from rankdash.core.data.explanation import Explanation, Stage, TextPart
from rankdash.core.data.ranking import Reading
from rankdash.core.study.study import Study
from rankdash.core.workspace.notes import Note
from rankdash.features.queries import page as queries_page
from rankdash.features.queries import page_occlusion, page_why
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.occlusion import LONGEST_LOOKED_AT, explain
from tests.approved import table
from tests.ui.parts import LANGUAGES, dataset_of, drawn, run_of, said, study_of, unlike

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
    """The id of a query, which has its text but for the last."""
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
    """The study of a run. without: a document that its lists lack."""
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
    cards = "[button_group] " + {"en": "Documents in the order", "zh": "文档顺序"}[language]
    cases = {
        query or "no text": said(
            detail(asked(query)), language, ["queries.contributions", "queries.ladder.table"]
        ).partition(cards)[0]
        for query in QUERIES
    }
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
        text = said(detail(query, **changes), language).partition(cards)[0]
        cases[name] = unlike(cases[query], text)
    cases["documents by their titles, openings or ids"] = said(ladder, language, docs="every")
    approved(f"ui/query.{language}", table(cases))


TITLED = [("Returns", "Send it back."), ("Returns", "Ask first."), ("Fees", "None."),
          ("", "Untitled words."), ("Only a title", ""), ("", ""), ("Twice", ""),
          ("Twice", "Its words.")]  # fmt: skip


def ladder() -> None:
    head = "query_id,query,doc_id,title,document,label,score\n"
    rows = (f"q,a,d{n},{title},{text},1,{9 - n}" for n, (title, text) in enumerate(TITLED))
    study = study_of(dataset_of(head + "\n".join(rows)), challengers=())
    page_why.draw_ladder(study, queries_study.ladder_of(study, study.baseline, "q"), 2)


# The cards of documents.

TEXTS = {
    "as long as a snippet": "w" * 320,
    "longer": "w" * 321,
    "as long as may be sent": "w" * 20_000,
    "longer than may be sent": "w" * 20_001,
    "none": None,
    "from within": "a " * 400 + "gift " + "b " * 400,
    "hostile": "<img src=x onerror=alert(1)> ![p](http://evil.invalid/a.png) <mark>gift</mark>",
    "labelled 0": "gift",
    "unlabelled": "gift",
}


def cards() -> Study:
    """One query with a document for each text, the last first in "run"; "third" lacks the first."""
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


CARDS = cards()


def card_list(study: Study = CARDS, most: str = "a gift") -> None:
    found = queries_study.ladder_of(study, study.challengers[0], "q")
    queries_page.draw_cards(study, study.challengers[0], found, "q", most)


@pytest.mark.parametrize("language", LANGUAGES)
def test_cards_say_rank_move_label_text_score_and_what_the_model_saw(approved, language):
    cases = {
        "run": said(card_list, language),
        "third": said(card_list, language, cards="third"),
    }
    short = re.sub(r"w{9,}", lambda found: f"w×{len(found[0])}", table(cases))
    approved(f"ui/cards.{language}", re.sub(r"(?:[ab] ){9,}", "… ", short))


def test_labels_and_the_baseline_stand_out_in_more_than_colour():
    (element,) = drawn(card_list).get("html")
    chips = re.findall(r"<span class='rd-chip([^']*)'[^>]*>([^<]*)</span>", element.proto.body)
    kinds = {text: kind for kind, text in chips if "of 3" in text or "judged" in text}
    assert kinds == {"not judged": " rd-dashed", "0 of 3": "", "● 1 of 3": " rd-strong",
                     "● 2 of 3": " rd-strong", "● 3 of 3": " rd-strong"}  # fmt: skip
    assert {kind for kind, text in chips if "First stage" in text} == {" rd-strong"}
    assert {kind for kind, text in chips if "third" in text} == {""}
    assert "<img" not in element.proto.body
    cards = element.proto.body.split("<div class='rd-card")[1:]
    assert [each.startswith(" rd-relevant") for each in cards] == [False, False, *[True] * 7]


def test_more_cards_are_those_of_one_query_and_one_system():
    few = replace(CARDS, cutoff=2)
    app = drawn(partial(card_list, few))

    def shown() -> tuple[int, bool]:
        text = "".join(each.proto.body for each in app.get("html"))
        return text.count("<div class='rd-card"), "further down" in text

    # Two within the cutoff, and the relevant ones below them.
    assert shown() == (9, True)
    app.button(key="queries.cards.more").click().run()
    assert shown() == (9, False) and not app.button
    app.button_group(key="address.cards").set_value("third").run()
    assert [each.key for each in app.button] == ["queries.cards.more"]


# Why a score.


def part(start: int, end: int) -> TextPart:
    return TextPart(((start, end),))


def found(
    *effects: float, level: str = "term", text: str = "", **more: object
) -> Callable[[], None]:
    """An effect for each letter, or for the first ones of a text."""
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
    # Three sentences are looked into.
    assert ">w50</mark>" in shown and {*re.findall(r"w\d+", pale)} == {*words[120:]}


# Notes of a workspace that is only shown.


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
        cases[name] = said(partial(page_why.draw_notes, CARDS, "q"), language)
    approved(f"ui/notes_shown.{language}", table(cases))
