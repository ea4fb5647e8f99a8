"""Rows of a workspace file beside those that are here: what is new is added, what is here stays."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import asdict

from rankdash.core.base.findings import Finding
from rankdash.core.workspace.rows import insert

Join = Callable[[sqlite3.Connection, dict[str, Any], "TakenIn"], bool]


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


def _joining(
    table: str,
    ours: str = "",
    differ: Sequence[str] = (),
    code: str = "",
    template: str = "",
    counted: str | None = None,
) -> Join:
    """How a row of a table joins: it is added, or the one that is here stays.

    ours: asks for that one; where it differs in one of the columns `differ`, that is reported by
    code and template. counted: as what an added row counts, None for nothing.
    """

    def join(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
        if insert(db, table, values):
            result.added.update([counted] if counted else [])
            return True
        here = db.execute(ours, values).fetchone() if ours else None
        if here is not None and any(here[name] != values[name] for name in differ):
            stays(result, code, template, **dict(here))
        return False

    return join


def _corrections(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
    """values: dataset_id, the log in its order, and the plan of what to label, which began at one
    of its entries, or None; the log of a pair is taken whole or not, and a plan only with a whole
    log, since its draws are those that had no label when it began."""
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
    plan = values["plan"]
    latest = "SELECT coalesce(max(revision), 0) FROM corrections"
    (began,) = db.execute(latest).fetchone()
    for place, entry in enumerate(log, 1):
        if (entry["query_id"], entry["doc_id"]) not in here:
            insert(db, "corrections", {"dataset_id": dataset_id, **entry})
        if plan is not None and place == plan["before"]:
            (began,) = db.execute(latest).fetchone()
    if plan is not None:
        _plan(db, dataset_id, plan, began, result, whole=not here)
    return True


def _plan(
    db: sqlite3.Connection,
    dataset_id: str,
    plan: dict[str, Any],
    revision: int,
    result: TakenIn,
    *,
    whole: bool,
) -> None:
    ours = db.execute(
        "SELECT id FROM label_plans WHERE dataset_id = ? ORDER BY rowid DESC LIMIT 1", (dataset_id,)
    ).fetchone()
    if ours is not None and ours["id"] == plan["id"]:
        return
    known = db.execute("SELECT 1 FROM label_plans WHERE id = ?", (plan["id"],)).fetchone()
    if ours is not None or known is not None or not whole:
        stays(
            result,
            "archive.plan",
            "The labelling plan was not imported: this data set has labels or a plan of its own "
            "here. Its labels were imported where there were none.",
        )
        return
    own = {name: plan[name] for name in ("id", "guidelines", "created")}
    settings = json.dumps(plan["settings"])
    row = {**own, "dataset_id": dataset_id, "settings": settings, "revision": revision}
    insert(db, "label_plans", row)
    for pause in plan["pauses"]:
        insert(db, "label_pauses", {"plan_id": plan["id"], **asdict(pause)})


def _judges(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
    """values: a judge with its pairs; one that is here stays, with what it said."""
    in_json = {name: json.dumps(values[name]) for name in ("settings", "systems", "usage")}
    pairs = values["pairs"]
    row = {name: value for name, value in values.items() if name != "pairs"} | in_json
    if not insert(db, "judges", {**row, "total": len(pairs), "queued": values["created"]}):
        return False
    for pair in pairs:
        own = {"judge_id": values["id"], "answers": json.dumps(pair["answers"])}
        insert(db, "judged_pairs", {**pair, **own})
    result.added["judges"] += 1
    return True


JOIN: dict[str, Join] = {
    "datasets": _joining("datasets", counted="datasets"),
    "runs": _joining("runs", counted="runs"),
    "explanations": _joining("explanations", counted="explanations"),
    "notes": _joining(
        "notes",
        "SELECT tags, note, query_id AS query FROM notes "
        "WHERE dataset_id = :dataset_id AND query_id = :query_id",
        ("tags", "note"),
        "archive.note",
        "The note on query {query} differs. The one here stays.",
        "notes",
    ),
    "corrections": _corrections,
    "label_notes": _joining("label_notes"),
    "judges": _judges,
    "run_notes": _joining(
        "run_notes",
        "SELECT note, name FROM run_notes JOIN runs ON runs.id = run_id WHERE run_id = :run_id",
        ("note",),
        "archive.note",
        "The note on the run {name} differs. The one here stays.",
        "notes",
    ),
    "pins": _joining(
        "pins",
        "SELECT run_id, name FROM pins JOIN runs ON runs.id = run_id "
        "WHERE pins.dataset_id = :dataset_id",
        ("run_id",),
        "archive.pin",
        "Another run is pinned as the baseline in the file. Here {name} stays pinned.",
    ),
}
"""Table → how a row of the file joins it; whether something was added."""
