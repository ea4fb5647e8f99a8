"""What it costs to find out why a document got its score, and why that may not be offered."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from rankdash.errors import SettingError
from rankdash.rerankers.remote.estimates import Estimate
from rankdash.ui.queries import query_occlusion


def cost(variants: int = 4, *, sure: bool = True, by_sentence: bool = False) -> SimpleNamespace:
    return SimpleNamespace(variants=variants, sure=sure, by_sentence=by_sentence)


def question(
    rate: float | None = None, load_ms: float = math.nan, *, measured: bool = True, **kind: object
) -> SimpleNamespace:
    usual = {"capabilities": SimpleNamespace(needs_network=False), "estimate": None, "key": None}
    run = SimpleNamespace(
        measured=SimpleNamespace(pairs_per_second=rate) if measured else None, load_ms=load_ms
    )
    asked = SimpleNamespace(id="e", query_id="q", doc_id="d")
    return SimpleNamespace(
        run=run, kind=SimpleNamespace(**(usual | kind)), settings={}, asked=asked, level="term",
        query="a gift", document="one text",
    )  # fmt: skip


UNKNOWN = "Cost: 4 pairs to score; the time is not known."


@pytest.mark.parametrize(
    ("asked", "of", "said"),
    [
        (question(), cost(), [UNKNOWN]),
        (question(measured=False), cost(), [UNKNOWN]),
        (question(0.0), cost(), [UNKNOWN]),
        (question(math.nan), cost(), [UNKNOWN]),
        (question(2.0), cost(), [
            "Cost: 4 pairs to score, about 2.0 s at the pace of the run."]),
        (question(2.0), cost(1, sure=False), [
            "Cost: at most 1 pair to score, about 0.5 s at the pace of the run."]),
        (question(2.0, 3000.0), cost(by_sentence=True), [
            "The document has too many different words to try each: its sentences are tried first, "
            "then the words of the strongest sentences.",
            "Cost: 4 pairs to score, about 2.0 s at the pace of the run.",
            "Loading the model took 3.0 s in this run; the model stays loaded for a few minutes."]),
    ],
)  # fmt: skip
def test_what_it_costs_here_is_told_by_the_pace_of_the_run(monkeypatch, asked, of, said):
    monkeypatch.setattr(query_occlusion, "workspace", lambda: None)
    monkeypatch.setattr(query_occlusion.jobs, "list", lambda _store: ())
    assert query_occlusion._price(asked, of) == said


@pytest.mark.parametrize(
    ("states", "waits"), [((), 0), (("done", "queued"), 0), (("done", "running"), 1)]
)
def test_a_run_in_progress_is_waited_for(monkeypatch, states, waits):
    rows = [SimpleNamespace(state=state) for state in states]
    monkeypatch.setattr(query_occlusion, "workspace", lambda: None)
    monkeypatch.setattr(query_occlusion.jobs, "list", lambda _store: rows)
    assert (
        query_occlusion._price(question(), cost())[1:]
        == ["A run is in progress: this starts after the current batch."] * waits
    )


@pytest.mark.parametrize(
    ("level", "calls", "texts"), [("query", 4, ["one text"] * 4), ("term", 1, ["one text"])]
)
def test_a_service_is_priced_by_its_calls(monkeypatch, level, calls, texts):
    seen = []

    def estimate(_settings, requests):
        seen.extend(requests)
        return Estimate(len(requests), 120.0, dollars=0.5)

    far = question(
        capabilities=SimpleNamespace(needs_network=True), estimate=estimate,
        key=lambda _settings: SimpleNamespace(base_url="https://api.example/v1"),
    )  # fmt: skip
    far.level = level
    [line] = query_occlusion._price(far, cost())
    n = "1 call" if calls == 1 else f"{calls} calls"
    assert line == (
        rf"Cost: 4 pairs to score in about {n} to api\.example, 120 tokens. About \$0.5000."
    )
    assert len(seen) == calls
    # Every pair is sent, in whatever calls.
    assert sum(len(request.documents) for request in seen) == 4
    far.kind.estimate = lambda _settings, _requests: Estimate(1, 120.0)
    assert query_occlusion._price(far, cost())[0].endswith("120 tokens.")


@pytest.mark.parametrize("lacking", ["estimate", "key", "place"])
def test_a_service_that_tells_no_price_or_no_place_has_none(lacking):
    far = question(
        estimate=None if lacking == "estimate" else lambda *_a: Estimate(1, 1.0),
        key=None if lacking == "key" else lambda _settings: None,
    )
    assert query_occlusion._calls(far, cost(), "4 pairs to score") == UNKNOWN


@pytest.mark.parametrize(
    ("score", "document", "query", "said"),
    [
        (None, "text", "query", "This document was not reranked: it is below the depth of the "
         "run."),
        (0.0, "", "query", "The data has no text for it."),
        (0.0, "text", "", "The query has no text."),
        (0.0, "text", "query", ""),
    ],
)  # fmt: skip
def test_a_pair_without_a_score_or_a_text_explains_nothing(
    monkeypatch, score, document, query, said
):
    monkeypatch.setattr(
        query_occlusion.queries, "listed", lambda *_a: [SimpleNamespace(score=score)]
    )
    assert query_occlusion._why_not_pair(None, "a", "q", "d", query, document) == said


@pytest.mark.parametrize(
    ("able", "group", "start"),
    [
        ({}, "local", ""),
        ({}, "service", ""),
        ({"needs_text": False}, "local", "This ranking was not computed from texts here"),
        ({"scope": "listwise"}, "local", "This reranker scores the documents of a query together"),
        ({}, "llm", "A language model would be called once for each part"),
        ({"scope": "listwise"}, "llm", "This reranker scores the documents of a query together"),
    ],
)
def test_why_a_system_explains_nothing(monkeypatch, able, group, start):
    usual = {"needs_text": True, "scope": "pointwise"}
    kind = SimpleNamespace(capabilities=SimpleNamespace(**(usual | able)), group=group)
    monkeypatch.setattr(query_occlusion, "get", lambda _name: kind)
    made = []
    monkeypatch.setattr(query_occlusion, "create", lambda *given: made.append(given))
    run = SimpleNamespace(reranker="bm25", settings={})
    study = SimpleNamespace(run={"a": run}.get)
    said = query_occlusion._why_not(study, "a")
    assert said.startswith(start) and bool(said) is bool(start)
    assert query_occlusion._why_not(study, "first").startswith("The scores of the first stage")
    # Settings that are no longer understood matter to what would score again.
    assert bool(made) is able.get("needs_text", True)

    def refuse(*_given):
        raise SettingError("k is *wrong*.")

    monkeypatch.setattr(query_occlusion, "create", refuse)
    if able.get("needs_text", True):
        assert query_occlusion._why_not(study, "a") == r"k is \*wrong\*\."


@pytest.mark.parametrize(
    ("row", "kind_of", "said"),
    [
        (None, None, None),
        ({"error": "No disk", "state": "failed"}, "error", "No disk"),
        ({"error": None, "state": "interrupted"}, "warning",
         "It was interrupted: the worker ended."),
        ({"error": None, "state": "cancelled"}, "caption", "It was cancelled."),
    ],
)  # fmt: skip
def test_how_an_earlier_attempt_ended_is_said_above_the_offer(
    paper, monkeypatch, row, kind_of, said
):
    monkeypatch.setattr(query_occlusion.failures, "problem", str)
    monkeypatch.setattr(query_occlusion, "_price", lambda *_a: ["It costs."])
    drawn = paper(query_occlusion)
    query_occlusion._offer(question(), SimpleNamespace(**row) if row else None, None)
    texts = [(kind, first) for kind, first, _s in drawn.drawn]
    assert texts == [
        *([(kind_of, said)] if said else []),
        ("caption", "It costs."),
        ("button", "Find out what the score depends on"),
    ]
    # Of one word nothing is left without it.
    one = question()
    one.document = "word"
    drawn.drawn.clear()
    query_occlusion._offer(one, None, None)
    assert drawn.of("caption", "button") == ["No text would be left to score without any one part."]


@pytest.mark.parametrize(
    ("network", "ticked", "missing", "keys", "done"),
    [
        (False, False, "", {}, ["ask", "ensure"]),
        (True, True, "", {"KEY": "x"}, ["key", "ask", "ensure"]),
        (True, True, "No key.", {}, []),
    ],
)
def test_it_is_asked_for_with_the_key_that_it_needs(
    paper, monkeypatch, network, ticked, missing, keys, done
):
    found, made = SimpleNamespace(missing=missing, keys=keys), []
    monkeypatch.setattr(query_occlusion, "_price", lambda *_a: [])
    monkeypatch.setattr(query_occlusion.key_field, "draw", lambda *_a, **_k: found)
    hand = SimpleNamespace(
        ensure=lambda: made.append("ensure"), hand_over=lambda *_a: made.append("key")
    )
    monkeypatch.setattr(query_occlusion, "worker", lambda: hand)
    drawn = paper(query_occlusion)
    drawn.answers |= {"button": True, "checkbox": ticked}
    far = question(capabilities=SimpleNamespace(needs_network=network))
    query_occlusion._offer(far, None, SimpleNamespace(ask=lambda _asked: made.append("ask")))
    assert made == done
    assert drawn.of("error") == ([missing] if missing else [])
    assert bool(drawn.of("checkbox")) is network
    if network:
        drawn.answers |= {"button": False, "checkbox": False}
        drawn.drawn.clear()
        query_occlusion._offer(far, None, None)
        [settings] = [each for kind, _label, each in drawn.drawn if kind == "button"]
        assert settings["disabled"] is True


def row(state: str, **changes: object) -> SimpleNamespace:
    usual = {"id": 1, "state": state, "live": state in ("queued", "running"), "done": 0,
             "total": 0, "cancelling": False, "result": None, "error": None}  # fmt: skip
    return SimpleNamespace(**(usual | changes))


@pytest.mark.parametrize(
    ("given", "said", "share"),
    [
        (row("queued"), "waiting for its turn", None),
        (row("running"), "loading model, warming up", None),
        (row("running", done=5, total=10), "5 of 10 pairs", 0.5),
        (row("running", done=12, total=10), "12 of 10 pairs", 1.0),
        (row("running", total=1, cancelling=True), "0 of 1 pair", 0.0),
    ],
)
def test_it_says_how_far_it_is_and_is_cancelled_once(paper, given, said, share):
    drawn, cancelled = paper(query_occlusion), []
    drawn.answers["button"] = True
    query_occlusion._progress(given, SimpleNamespace(cancel=cancelled.append))
    if share is None:
        assert drawn.of("caption") == [said]
    else:
        [(found, settings)] = [(s, each) for kind, s, each in drawn.drawn if kind == "progress"]
        assert (found, settings["text"]) == (share, said)
    [button] = [each for kind, _label, each in drawn.drawn if kind == "button"]
    assert button["disabled"] is given.cancelling
    assert cancelled == [1] and drawn.of("rerun")


@pytest.mark.parametrize(
    ("first", "now", "shown_only", "shows", "every"),
    [
        (None, None, False, "offer", None),
        (None, None, True, "nothing", None),
        (row("running"), row("running"), False, "progress", 1.0),
        (row("running"), row("done", result="{}"), False, "again", 1.0),
        (row("done", result="{}"), row("done", result="{}"), False, "result", None),
        (row("done", result="{}"), row("done", result="{}"), True, "result", None),
        (row("running"), row("running"), True, "nothing", 1.0),
        (row("failed"), row("failed"), False, "offer", None),
    ],
)
def test_it_is_offered_watched_or_shown(paper, monkeypatch, first, now, shown_only, shows, every):
    rows, shown = iter([first, now]), []
    monkeypatch.setattr(
        query_occlusion, "Explanations", lambda _w: SimpleNamespace(find=lambda _a: next(rows))
    )
    monkeypatch.setattr(query_occlusion, "workspace", lambda: None)
    monkeypatch.setattr(query_occlusion, "read_only", lambda: shown_only)
    monkeypatch.setattr(
        query_occlusion, "worker", lambda: SimpleNamespace(ensure=lambda: shown.append("worker"))
    )
    monkeypatch.setattr(query_occlusion, "_progress", lambda *_a: shown.append("progress"))
    monkeypatch.setattr(query_occlusion, "_offer", lambda *_a: shown.append("offer"))
    monkeypatch.setattr(query_occlusion.Explanation, "from_json", lambda text: text)
    monkeypatch.setattr(query_occlusion.occlusion_view, "draw", lambda *_a: shown.append("result"))

    def again(**_settings):
        shown.append("again")
        raise StopIteration

    drawn = paper(query_occlusion)
    drawn.rerun = again
    try:
        query_occlusion._panel(question())
    except StopIteration:
        assert shows == "again"
    assert shown == {"progress": ["worker", "progress"], "nothing": []}.get(shows, [shows])
    assert bool(drawn.of("caption")) is (shows == "nothing")
    [settings] = [each for kind, _first, each in drawn.drawn if kind == "fragment"]
    assert settings["run_every"] == every


@pytest.mark.parametrize(("count", "offered"), [(3, "acb"), (60, None)])
def test_ranked_documents_are_offered_by_rank_and_relevant_ones_however_deep(
    monkeypatch, count, offered
):
    """The fourth is not ranked; of many, fifty and the relevant ones below them."""
    docs = np.array([*"abcd"] if count == 3 else [f"d{n}" for n in range(count)], dtype=object)
    ranks = np.array([1.0, 3.0, 2.0, np.nan] if count == 3 else np.arange(1.0, count + 1))
    relevant = np.array([str(each) in ("d3", "d55") for each in docs])
    ladder = SimpleNamespace(
        column=lambda _system: ranks, relevant=relevant, doc_ids=docs,
        label=np.where(relevant, 1.0, 0.0),
    )  # fmt: skip
    study = SimpleNamespace(dataset=SimpleNamespace(
        names_of=lambda ids: {each: each.upper() for each in ids}, top_grade=1.0))  # fmt: skip
    asked = {}
    monkeypatch.setattr(
        query_occlusion.pickers, "pick_one",
        lambda name, options, *_a, **more: asked.update({name: list(options), **more}),
    )  # fmt: skip
    query_occlusion._pick_document(study, ladder, "a")
    if offered:
        assert asked["doc"] == [*offered]
        assert asked["format_func"]("c").startswith("2 · C (")
    else:
        assert asked["doc"] == [*(f"d{n}" for n in range(50)), "d55"]


@pytest.mark.parametrize(
    ("cards", "system"), [(None, "vs"), ("b", "b"), ("gone", "vs")]
)  # fmt: skip
def test_the_system_whose_cards_are_shown_is_explained(paper, session, monkeypatch, cards, system):
    asked = []

    def why_not(_study, named):
        asked.append(named)
        return "No."

    query_occlusion.address.settle("cards", cards)
    monkeypatch.setattr(query_occlusion, "_why_not", why_not)
    drawn = paper(query_occlusion)
    query_occlusion.draw(None, "vs", SimpleNamespace(systems=("vs", "b")), "q", "a gift")
    assert (asked, drawn.of("caption")) == ([system], ["No."])
