"""The cards of jobs and of grids: what they say, what they offer and what that does."""

from types import SimpleNamespace

import pytest

from rankdash.ui.run import job_list
from tests.ui.run.test_job_list import job


@pytest.fixture
def worked(monkeypatch):
    """What is done to jobs and asked of the worker, in order."""
    done = []
    for name in ("cancel", "resume", "delete"):
        monkeypatch.setattr(
            job_list.jobs, name, lambda _store, each, name=name: done.append((name, each))
        )
    made = SimpleNamespace(
        ensure=lambda: done.append("ensure"), hand_over=lambda each, _k: done.append(("key", each))
    )
    monkeypatch.setattr(job_list, "worker", lambda: made)
    monkeypatch.setattr(job_list, "workspace", lambda: None)
    monkeypatch.setattr(job_list, "problem", str)
    return done


def of(drawn, *kinds: str) -> list[tuple[str, object]]:
    """What was drawn of some kinds: each with its first words."""
    return [(kind, first) for kind, first, _settings in drawn.drawn if kind in kinds]


CARD = ("write", "progress", "error", "caption", "button")


@pytest.mark.parametrize(
    ("changes", "card"),
    [
        ({}, [("write", "**A** · waiting for its turn"), ("button", "Cancel")]),
        ({"state": "running", "stage": "scoring", "pairs_done": 5, "pairs_total": 10, "total": 1},
         [("write", "**A** · scoring"), ("progress", 0.5), ("button", "Cancel")]),
        ({"state": "failed", "error": "No disk"},
         [("write", "**A** · failed"), ("error", "No disk"), ("button", "Resume"),
          ("button", "Remove")]),
        ({"state": "cancelled", "done": 1},
         [("write", "**A** · cancelled"), ("caption", "1 query is done and saved."),
          ("button", "Resume"), ("button", "Remove")]),
        ({"state": "interrupted"},
         [("write", "**A** · interrupted"), ("button", "Resume"), ("button", "Remove")]),
    ],
)  # fmt: skip
def test_the_card_of_a_job_says_how_far_it_is_and_what_can_be_done(
    paper, monkeypatch, worked, changes, card
):
    monkeypatch.setattr(job_list.key_field, "draw", lambda *_a, **_k: None)
    drawn = paper(job_list)
    job_list._draw_job(job(**{"name": "A", "reranker": "bm25", "settings": {}, "error": None}
                           | changes))  # fmt: skip
    assert of(drawn, *CARD) == card


@pytest.mark.parametrize("cancelling", [False, True])
def test_a_job_is_cancelled_once(paper, worked, cancelling):
    drawn = paper(job_list)
    drawn.answers["button"] = True
    job_list._draw_job(job(name="A", cancelling=cancelling))
    [(_kind, _label, settings)] = [each for each in drawn.drawn if each[0] == "button"]
    assert settings["disabled"] is cancelling
    assert worked == [("cancel", "a")] and drawn.of("rerun")


def grid(*states: str, **changes: object) -> list[SimpleNamespace]:
    return [
        job(**{"id": f"{n}", "name": f"V{n}", "grid": "g", "state": state, "reranker": "bm25",
               "settings": {}, "error": None} | (changes if state == "running" else {}))
        for n, state in enumerate(states)
    ]  # fmt: skip


HEAD = ("write", "**BM25** · 2 variants")


@pytest.mark.parametrize(
    ("rows", "card"),
    [
        (grid("done", "running", stage="scoring", pairs_done=5, pairs_total=10),
         [HEAD, ("progress", 0.75), ("button", "Cancel")]),
        (grid("queued", "running", stage="scoring", pairs_done=5, pairs_total=10),
         [HEAD, ("progress", 0.25), ("button", "Cancel")]),
        # What stopped is told while the others go on, and resumed once none does.
        (grid("failed", "queued"),
         [HEAD, ("progress", 0.0), ("button", "Cancel"), ("write", "V0 · failed")]),
        (grid("done", "failed"),
         [HEAD, ("write", "V1 · failed"), ("button", "Resume"), ("button", "Remove")]),
        (grid("cancelled", "interrupted"),
         [HEAD, ("write", "V0 · cancelled"), ("write", "V1 · interrupted"), ("button", "Resume"),
          ("button", "Remove")]),
    ],
)  # fmt: skip
def test_the_variants_of_a_grid_have_one_card(paper, monkeypatch, worked, rows, card):
    monkeypatch.setattr(job_list.key_field, "draw", lambda *_a, **_k: None)
    drawn = paper(job_list)
    job_list._draw_grid(rows)
    assert of(drawn, *CARD) == card


@pytest.mark.parametrize(
    ("total", "said"),
    [(0, "1 of 3 variants · V2: scoring"),
     (2, "1 of 3 variants · V2: scoring · 5 of 10 pairs · 0 of 2 queries")],
)  # fmt: skip
def test_a_grid_says_what_the_variant_that_runs_does(paper, worked, total, said):
    drawn = paper(job_list)
    counts = {"pairs_done": 5, "pairs_total": 10, "total": total}
    job_list._draw_grid(grid("done", "queued", "running", stage="scoring", **counts))
    [settings] = [each for kind, _share, each in drawn.drawn if kind == "progress"]
    assert settings["text"] == said


@pytest.mark.parametrize(("cancelling", "disabled"), [("01", True), ("0", False), ("", False)])
def test_all_live_variants_are_cancelled_together(paper, worked, cancelling, disabled):
    rows = grid("queued", "queued", "done")
    for row in rows:
        row.cancelling = row.id in cancelling
    drawn = paper(job_list)
    drawn.answers["button"] = True
    job_list._draw_grid(rows)
    assert [each["disabled"] for kind, _l, each in drawn.drawn if kind == "button"] == [disabled]
    assert worked == [("cancel", "0"), ("cancel", "1")]


def test_variants_that_stopped_are_removed_and_those_that_are_done_stay(paper, monkeypatch, worked):
    monkeypatch.setattr(job_list, "_offer_resume", lambda rows, *_a: worked.extend(rows))
    drawn = paper(job_list)
    drawn.answers["button"] = True
    rows = grid("done", "failed", "cancelled")
    job_list._draw_grid(rows)
    assert worked == [*rows[1:], ("delete", "1"), ("delete", "2")]


@pytest.mark.parametrize(
    ("missing", "keys", "done"),
    [
        ("No key.", {"key": "x"}, []),
        ("", {}, [("resume", "0"), ("resume", "1"), "ensure"]),
        ("", {"key": "x"},
         [("key", "0"), ("resume", "0"), ("key", "1"), ("resume", "1"), "ensure"]),
    ],
)  # fmt: skip
def test_stopped_jobs_go_on_with_their_key_or_say_that_it_is_missing(
    paper, monkeypatch, worked, missing, keys, done
):
    found = SimpleNamespace(missing=missing, keys=keys)
    monkeypatch.setattr(job_list.key_field, "draw", lambda *_a, **_k: found)
    drawn = paper(job_list)
    drawn.answers["button"] = True
    job_list._offer_resume(grid("failed", "cancelled"), "g", drawn, drawn)
    assert worked == done
    assert drawn.of("error") == ([missing] if missing else [])
    assert bool(drawn.of("rerun")) is not missing


@pytest.mark.parametrize("scored", [0, 1])
def test_scored_queries_are_not_lost_without_a_question(paper, monkeypatch, worked, scored):
    asked = []
    monkeypatch.setattr(job_list.dialogs, "delete", lambda *given: asked.append(given))
    drawn = paper(job_list)
    job_list._remove([job(name="A", done=0), job(id="b", name="B", done=scored)])
    gone = [("delete", "a"), ("delete", "b")]
    if not scored:
        assert worked == gone and drawn.of("rerun") and not asked
        return
    [(title, lines, remove)] = asked
    assert (title, worked) == ("Remove this run?", [])
    assert lines == ["A", "B", "1 scored query is lost."]
    remove()
    assert worked == gone


@pytest.mark.parametrize(
    ("seen", "before", "now", "every", "again"),
    [
        ("", [], [], 10.0, False),
        ("", ["running"], ["running"], 1.0, False),
        ("0", ["running"], ["running"], 1.0, False),
        # One has ended, and one began elsewhere.
        ("0", ["running"], ["done"], 1.0, True),
        ("01", ["running"], ["running"], 1.0, True),
        ("", [], ["running"], 10.0, True),
        ("", ["failed"], ["failed"], 10.0, False),
    ],
)
def test_jobs_are_looked_at_often_while_one_is_live_and_the_page_learns_of_an_end(
    paper, session, monkeypatch, worked, seen, before, now, every, again
):
    listed = iter([grid(*before), grid(*now)])
    monkeypatch.setattr(job_list.jobs, "list", lambda _store: next(listed))
    for part in ("_offer_comparison", "_offer_overview", "_draw_job", "_draw_grid"):
        monkeypatch.setattr(job_list, part, lambda *_a: None)
    session[job_list._SEEN_LIVE] = set(seen)
    drawn = paper(job_list)
    drawn.session_state = session
    job_list.draw("shop")
    [settings] = [each for kind, _first, each in drawn.drawn if kind == "fragment"]
    assert settings["run_every"] == every
    assert bool(drawn.of("rerun")) is again
    assert worked == ["ensure"] * ("running" in now)


def test_the_jobs_of_a_data_set_are_its_own_each_in_a_card_of_its_kind(
    paper, session, monkeypatch, worked
):
    rows = [job(id="1", dataset_id="shop"), job(id="2", dataset_id="other"),
            job(id="3", dataset_id="shop", grid="g")]  # fmt: skip
    monkeypatch.setattr(job_list.jobs, "list", lambda _store: rows)
    for part in ("_offer_comparison", "_offer_overview"):
        monkeypatch.setattr(job_list, part, lambda *_a: None)
    cards = []
    monkeypatch.setattr(job_list, "_draw_job", lambda row: cards.append(row.id))
    monkeypatch.setattr(job_list, "_draw_grid", lambda rows: cards.append([r.id for r in rows]))
    drawn = paper(job_list)
    drawn.session_state = session
    job_list.draw("shop")
    assert cards == ["1", ["3"]]
    # One of another data set is worked on too.
    assert session[job_list._SEEN_LIVE] == {"1", "2", "3"}
