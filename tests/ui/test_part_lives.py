"""Lives of parts of the pages Data and Run, of notes, and of corrected and imported labels."""

import math
from dataclasses import replace
from functools import cache, partial, wraps

import numpy as np
import pytest
import streamlit as st

from rankdash.core.data.measured import Measured
from rankdash.core.runs import jobs
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.workspace.notes import (
    Correction,
    Corrections,
    LabelPlans,
    Notes,
    Pins,
    RunNotes,
)
from rankdash.core.workspace.score_cache import KeptScores
from rankdash.features.data import page_list
from rankdash.features.queries import page_why
from rankdash.features.run import page_combine, page_jobs, page_runs
from rankdash.kit.widgets import address, dialogs, language, view
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets.labels import corrections as labels_corrections
from rankdash.kit.widgets.labels import unjudged
from tests.approved import masked
from tests.results import shown
from tests.stored import keep_rows
from tests.ui.labels.test_drawn_list import made
from tests.ui.labels.test_label_parts import deep_shop, study
from tests.ui.lives import lives, play
from tests.ui.run.test_jobs import put
from tests.ui.sessions import page, part

MOMENT = r"\b[A-Z][a-z]{2} \d+, \d{4}, [\d:]+\s[AP]M"


def cells(text):
    """Return the columns and values of "a=1,b=two"."""
    pairs = (each.split("=") for each in text.split(",") if each)
    return {name: int(value) if value.isdigit() else value for name, value in pairs}


@pytest.mark.parametrize("life", lives("parts"))
def test_a_life_of_a_part(life, approved, workspace, stored, hand, only_shown, monkeypatch):
    now = {"data": stored, "app": None, "rows": [], "measured": None}
    files, questions, gone, went = {}, [], [], []
    better = workspace.run(workspace.runs(stored)[0].id)

    def named(row_id):
        names = {row.id: row.name for row in (*workspace.datasets(), *workspace.runs())}
        return names.get(row_id, row_id)

    def go(page):
        chosen = {name: address.several(name) for name in ("base", "system")}
        went.append(f"{page}: {shown(chosen)}")

    drawn = st.dataframe

    @wraps(drawn)
    def dataframe(*given, **how):
        answer = drawn(*given, **how)
        selectable = str(how.get("key")).startswith(("runs.list", "corrections"))
        return {"selection": {"rows": now["rows"]}} if selectable else answer

    # A running job is not marked as failed, however slow the machine is.
    monkeypatch.setattr("rankdash.core.workspace.jobs.leases.STALE_SECONDS", math.inf)
    monkeypatch.setattr(st, "dataframe", dataframe)
    monkeypatch.setattr(view, "go", go)
    monkeypatch.setattr(dialogs, "delete", lambda *given: questions.append(given))
    monkeypatch.setattr(dialogs, "rename", lambda *given: questions.append(given))
    monkeypatch.setattr(widgets_stored, "by_this_session", lambda ids: gone.extend(map(named, ids)))

    def remarks(query):
        own = view.study("queries")
        page_why.draw_notes(own, query)
        st.dataframe(page_why.marks(own))

    parts = {
        "jobs": lambda: page_jobs.draw(now["data"]),
        "runs": lambda: page_runs.draw(now["data"]),
        "fuse": lambda: page_combine.draw(now["data"]),
        "cache": page_jobs.draw_cache_panel,
        "remarks": remarks,
        "unjudged": lambda: unjudged.draw(study(now["data"])),
        "corrections": lambda *query: labels_corrections.draw(now["data"], *query),
        "new": lambda: labels_corrections.draw_new_labels(now["data"]),
        "sets": lambda: page_list.draw(workspace.datasets()),
    }

    def opened(name, *given):
        now["rows"], chosen = [], {"data": now["data"]}
        if name == "history":
            chosen |= {"base": FIRST_STAGE, "metric": "ndcg", "k": "10", "runs": [*given]}
            now["app"] = page("history", chosen=chosen)
        else:
            state = {"combine": True, "run.cache": True}
            now["app"] = part(parts[name], *given, state=state, chosen=chosen)
        return now["app"]

    def change(*words):
        """Change jobs, [grid:]name=state[,column=value…], and queue new ones."""
        for word in words:
            head, _comma, rest = word.partition(",")
            grid, _colon, job = head.rpartition(":")
            name, state = job.split("=")
            put(workspace, now["data"], name, state, grid=grid or None, **cells(rest))

    def clear():
        for row in jobs.list(workspace):
            jobs.delete(workspace, row.id)

    def keep(*words):
        """Store runs like the usual one, each newer than the last: id[:name]."""
        for place, word in enumerate(words):
            row_id, _colon, name = word.partition(":")
            created = f"2030-01-{place + 1:02}T10:00:00+00:00"
            own = {"created": created, "measured": now["measured"], "name": name or row_id}
            workspace.save_run(replace(better, id=row_id, **own))

    def forget():
        for row in workspace.runs():
            workspace.delete_run(row.id)

    def press(key):
        """Click a button that reruns only its part; the test reruns the page."""
        now["app"].button(key=key).click().run()

    def correct(query, doc, given):
        value = None if given in ("none", "uploaded") else float(given)
        labels_corrections.correct(now["data"], (query, doc), value, withdraw=given == "uploaded")

    def many(count):
        made = "2026-11-01T10:00:00+00:00"
        rows = [Correction(f"q{n}", "d0", 1.0, "", made) for n in range(int(count))]
        Corrections(workspace).restore(now["data"], rows)

    def cached(count):
        texts = [f"document {number}" for number in range(int(count))]
        scores = replace(KeptScores.nothing(len(texts)), scores=np.arange(float(count)))
        workspace.score_cache.write("model", [("query", texts, scores)])

    acts = {
        "open": opened,
        "again": lambda: None,
        "jobs": change,
        "clear": clear,
        "runs": keep,
        "forget": forget,
        "press": press,
        "select": lambda *rows: now.update(rows=[*map(int, rows)]),
        "confirm": lambda *given: questions[-1][2](*given),
        "note-run": lambda run: RunNotes(workspace).store(run, "why") and None,
        "note": lambda query: Notes(workspace).store(now["data"], query, ["odd"], "") and None,
        "pin": lambda run: Pins(workspace).pin(run),
        "pace": lambda rate: now.update(measured=Measured(pairs=10 * int(rate), seconds=10.0)),
        "read-only": only_shown,
        "deep": lambda: now.update(data=deep_shop(workspace)),
        "turned": lambda *prefix: now.update(data=made(workspace, *prefix)),
        "data": lambda name: keep_rows(workspace, "query,document,label\na,b,1\n", name) and None,
        "name": lambda name: monkeypatch.setattr(language, "person_name", lambda: name),
        "correct": correct,
        "many": many,
        "cached": cached,
        "file": files.__setitem__,
        "upload": lambda name: now["app"].get("file_uploader")[0].upload(
            name, files[name].encode(), "text/csv").run(),
    }  # fmt: skip

    def states():
        return " ".join(
            f"{row.id}={row.state}{'(cancelling)' * row.cancelling}" for row in jobs.list(workspace)
        )

    @cache
    def results(run_id):
        run = workspace.run(run_id)
        lost = run.queries.loc[run.queries["state"] == "failed", ["query_id", "reason"]]
        return {"first of q1": run.ranking.documents_of("q1")[0][:1], **dict(lost.to_numpy())}

    def run_of(row):
        return f"{row.name}: {row.reranker}, {shown(row.settings)}, {shown(results(row.id))}"

    def corrections():
        rows = Corrections(workspace).all(now["data"])
        told = (f"{each.query_id} {each.doc_id} {each.label} {each.who}" for each in rows)
        return "; ".join(told) if len(rows) < 9 else f"{len(rows)} corrections"

    def notes():
        rows = [*Notes(workspace).all(now["data"]), *RunNotes(workspace).all(now["data"]).values()]
        told = ((getattr(each, "tags", ()), each.text) for each in rows)
        return "; ".join(shown(each) for each in told)

    def plan():
        kept = LabelPlans(workspace).newest(now["data"])
        return kept and {name: kept.settings[name] for name in ("metric", "top")}

    facts = {
        "data sets": lambda: [row.name for row in workspace.datasets()],
        "runs": lambda: "\n".join(map(run_of, workspace.runs(now["data"]))),
        "jobs": states,
        "keys": lambda: [*hand.keys.items()],
        "asked": lambda: shown(questions[-1][:2]) if questions else "",
        "deleted by this session": lambda: gone,
        "went to": lambda: went,
        "corrections": corrections,
        "notes": notes,
        "plan": plan,
        "cache": lambda: (workspace.score_cache.pairs, workspace.score_cache.limit),
    }
    approved(life, play(life, acts, facts, partial(masked, moment=MOMENT)))
