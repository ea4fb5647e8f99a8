"""Rows of a workspace file beside those that are here: what is new is added, what is here stays."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rankdash.findings import Finding
from rankdash.store.rows import insert


@dataclass
class TakenIn:
    """What an import did. datasets: ids of all that are in the file. added: kind → how many are new
    here. findings: what is here already and differs, and stays."""

    datasets: list[str] = field(default_factory=list)
    added: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def stays(result: TakenIn, code: str, template: str, **params: object) -> None:
    """Report what differs here; template: an English sentence over the params."""
    result.findings.append(Finding("warning", code, template, params))


def _join(kind: str) -> Callable[[sqlite3.Connection, dict[str, Any], TakenIn], bool]:
    def join(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
        added = insert(db, kind, values)
        result.added[kind] += added
        return added

    return join


def _note(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
    if insert(db, "notes", values):
        result.added["notes"] += 1
        return True
    ours = db.execute(
        "SELECT tags, note FROM notes WHERE dataset_id = :dataset_id AND query_id = :query_id",
        values,
    ).fetchone()
    if (ours["tags"], ours["note"]) != (values["tags"], values["note"]):
        stays(
            result,
            "archive.note",
            "The note on query {query} differs. The one here stays.",
            query=values["query_id"],
        )
    return False


def _corrections(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
    """values: dataset_id, and the log in its order; the log of a pair is taken whole or not."""
    dataset_id, log = values["dataset_id"], values["log"]
    here = {
        (row["query_id"], row["doc_id"]): (row["withdrawn"], row["label"])
        for row in db.execute(
            "SELECT query_id, doc_id, withdrawn, label FROM corrections WHERE dataset_id = ? "
            "ORDER BY revision",
            (dataset_id,),
        )
    }
    last = {(entry["query_id"], entry["doc_id"]): entry for entry in log}
    for pair, entry in last.items():
        if pair not in here:
            result.added["corrections"] += not entry["withdrawn"]
        elif here[pair] != (entry["withdrawn"], entry["label"]):
            stays(
                result,
                "archive.correction",
                "The corrected label of document {document} for query {query} differs. The one "
                "here stays.",
                query=pair[0],
                document=pair[1],
            )
    for entry in log:
        if (entry["query_id"], entry["doc_id"]) not in here:
            insert(db, "corrections", {"dataset_id": dataset_id, **entry})
    return True


def _run_note(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
    if insert(db, "run_notes", values):
        result.added["notes"] += 1
        return True
    ours = db.execute(
        "SELECT note, name FROM run_notes JOIN runs ON runs.id = run_id WHERE run_id = ?",
        (values["run_id"],),
    ).fetchone()
    if ours["note"] != values["note"]:
        stays(
            result,
            "archive.note",
            "The note on the run {name} differs. The one here stays.",
            name=ours["name"],
        )
    return False


def _pin(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
    if insert(db, "pins", values):
        return True
    ours = db.execute(
        "SELECT run_id, name FROM pins JOIN runs ON runs.id = run_id WHERE pins.dataset_id = ?",
        (values["dataset_id"],),
    ).fetchone()
    if ours is not None and ours["run_id"] != values["run_id"]:
        stays(
            result,
            "archive.pin",
            "Another run is pinned as the baseline in the file. Here {name} stays pinned.",
            name=ours["name"],
        )
    return False


JOIN: dict[str, Callable[[sqlite3.Connection, dict[str, Any], TakenIn], bool]] = {
    "datasets": _join("datasets"),
    "runs": _join("runs"),
    "explanations": _join("explanations"),
    "notes": _note,
    "corrections": _corrections,
    "run_notes": _run_note,
    "pins": _pin,
}
"""Table → how a row of the file joins it; whether something was added."""
