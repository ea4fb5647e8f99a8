"""Importing a workspace file: all of it is checked, then added in one transaction, or nothing
is."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
from msgspec import convert
from msgspec.structs import asdict

from rankdash.core.base.errors import (
    DataError,
    Finding,
    FormatError,
    LimitError,
    RankdashError,
    StoreError,
)
from rankdash.core.base.rules import completed
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.explanation import Explanation
from rankdash.core.data.ranking import Run
from rankdash.core.readers.checks.check import check_report
from rankdash.core.rerankers.remote.chat import JUDGE_SETTINGS
from rankdash.core.sampling.label_plan import LabelSettings
from rankdash.core.value.assumptions import (
    LONGEST_SCENARIO_NAME,
    MOST_SCENARIOS,
    PRICES,
    SCENARIOS,
    TARGETS,
    read_scenarios,
    write_scenarios,
)
from rankdash.core.value.prices import parse_prices, to_json
from rankdash.core.value.targets import Targets
from rankdash.core.workspace import folders
from rankdash.core.workspace.database import dataset_values, insert, or_nan, run_values
from rankdash.core.workspace.jobs.leases import ExplanationRequest
from rankdash.core.workspace.notes import tidy
from rankdash.core.workspace.tables import (
    CANDIDATES,
    DATASET_PARTS,
    RANKING,
    TIMINGS,
    measured_of,
    ranking_parts,
    write_dataset,
    write_run,
)
from rankdash.core.workspace.workspace import Workspace
from rankdash.core.workspace.workspace_file import import_checks as checks
from rankdash.core.workspace.workspace_file.archive import (
    FORMAT,
    MANIFEST,
    MEASURED_PARTS,
    SETTINGS,
    VERSION,
    Bounds,
    Progress,
    Unpacker,
)
from rankdash.core.workspace.workspace_file.import_checks import (
    Contents,
    DatasetPart,
    JudgePart,
    RunPart,
    SettingsPart,
    fitted,
)


def bring_in(
    workspace: Workspace,
    source: Path | BinaryIO,
    file: str,
    progress: Progress = lambda _done, _total: None,
    bounds: Bounds | None = None,
) -> TakenIn:
    """Add everything in a file that this workspace lacks; existing items stay unchanged. file: its
    name, for messages.

    Raises FormatError for a file that is not a workspace file, was changed, or is of a newer
    version, LimitError if it is larger than `bounds`, StoreError if the workspace cannot store it:
    then nothing was added.
    """
    workspace.database.refuse_read_only()
    with Unpacker(source, file, bounds) as parts:
        importing = _Import(workspace, parts)
        for name in parts.head.excluded:
            importing.result.stays(
                "archive.excluded",
                "{name} was damaged at export and is not in this file.",
                name=name,
            )
        try:
            importing.read(_contents(parts, file), progress)
            with workspace.database.writing(durable=True) as db:
                importing.add(db)
        except BaseException:
            folders.remove(workspace.root, importing.folders)
            raise
        folders.remove(workspace.root, importing.unused)
        workspace.keep_records()
        return importing.result


def _contents(parts: Unpacker, file: str) -> Contents:
    """Return the data sets and runs of the file, by its manifest."""
    head = parts.head
    if head.format != FORMAT:
        raise parts.unknown()
    if head.version > VERSION:
        raise FormatError(
            "This workspace file was written by a newer rankdash ({version}). Nothing was "
            "imported.",
            remedy="Update rankdash, or export the file again with the version that runs here.",
            file=file,
            version=head.rankdash[:40],
        )
    try:
        contents = fitted(head.datasets, Contents)
        ids = [*contents, *(run for runs in contents.values() for run in runs)]
        if len(set(ids)) != len(ids):
            raise ValueError("an id is listed twice")
    except ValueError as error:
        raise parts.refused(MANIFEST, error) from error
    return contents


class _Import:
    """One import: the rows that were read, and the folders that were filled for it, as rows name
    them.

    unused: folders of items that another process stored first.
    """

    def __init__(self, workspace: Workspace, parts: Unpacker) -> None:
        self.result = TakenIn()
        self._workspace, self._parts = workspace, parts
        self.folders: list[str] = []
        self.unused: list[str] = []
        # (Table, new row), with the folder of the row if it has one.
        self._rows: list[tuple[str, dict[str, object]]] = []
        self._settings: dict[str, str] = {}

    def read(self, contents: Mapping[str, Sequence[str]], progress: Progress) -> None:
        """Check everything, and write the new tables into folders."""
        total = len(contents) + sum(map(len, contents.values()))
        done = 0
        existing = {row.id: row for row in self._workspace.datasets()}
        runs_here = {row.id: row for row in self._workspace.runs()}
        for dataset_id, runs in contents.items():
            self.result.datasets.append(dataset_id)
            with self._errors_in(f"datasets/{dataset_id}"):
                data = self._dataset(dataset_id, dataset_id in existing)
            progress(done := done + 1, total)
            for run_id in runs:
                with self._errors_in(f"runs/{run_id}"):
                    self._run(run_id, data, run_id in runs_here)
                progress(done := done + 1, total)
        if SETTINGS in self._parts:
            with self._errors_in(SETTINGS):
                self._settings = self._parts.read_json(SETTINGS, SettingsPart).settings
                # Once to check them; the final merge is in `add`.
                _merged_settings(self._settings, {}, TakenIn())

    def add(self, db: sqlite3.Connection) -> None:
        """Add everything that was read, in one transaction."""
        for table, values in self._rows:
            added = JOIN[table](db, values, self.result)
            if not added and "folder" in values:
                self.unused.append(str(values["folder"]))
        ours = {row["key"]: row["value"] for row in db.execute("SELECT key, value FROM settings")}
        merged = _merged_settings(self._settings, ours, self.result)
        for name, value in merged.items():
            insert(db, "settings", {"key": name, "value": value}, "OR REPLACE")
        self.result.added["settings"] += len(merged)

    @contextmanager
    def _errors_in(self, name: str) -> Iterator[None]:
        """Turn errors about a part inside the block into a FormatError that names it; errors of the
        disk pass."""
        try:
            yield
        except (StoreError, FormatError, LimitError, MemoryError):
            raise
        except (RankdashError, pa.ArrowException, LookupError, TypeError,
                ValueError, OverflowError, RecursionError) as error:  # fmt: skip
            raise self._parts.refused(name, error) from error

    def _dataset(self, dataset_id: str, exists: bool) -> Dataset:
        place = f"datasets/{dataset_id}"
        about = self._parts.read_json(f"{place}/about.json", DatasetPart)
        if exists:
            data = self._workspace.dataset(dataset_id)
            called = "The data set {theirs} is called {ours} here and keeps this name."
            self._name_stays(called, about.name, data.name)
        else:
            data = self._new_dataset(dataset_id, place, about)
        # A document of a label may be from a run that was deleted.
        checks.refuse_unknown(data, (*about.notes, *about.corrections, *about.label_notes), ())
        for note in about.notes:
            values = {**asdict(note), "tags": json.dumps(tidy(note.tags))}
            self._rows.append(("notes", {"dataset_id": dataset_id, **values}))
        log = {"log": list(map(asdict, about.corrections)), "plan": self._plan(about)}
        self._rows.append(("corrections", {"dataset_id": dataset_id, **log}))
        for judge in about.judges:
            checks.refuse_unknown(data, judge.pairs, ())
            judged = [
                {**asdict(pair), "answers": list(map(asdict, pair.answers))} for pair in judge.pairs
            ]
            values = {**asdict(judge), "pairs": judged, "settings": self._completed(judge)}
            self._rows.append(("judges", {"dataset_id": dataset_id, **values}))
        for remark in about.label_notes:
            self._rows.append(("label_notes", {"dataset_id": dataset_id, **asdict(remark)}))
        return data

    def _plan(self, about: DatasetPart) -> dict[str, Any] | None:
        """Return the labelling plan; None, with a finding, if this version cannot continue it. Its
        labels are corrections, and are imported."""
        if about.plan is None:
            return None
        try:
            convert(about.plan.settings, LabelSettings)
        except ValueError as error:
            self.result.stays(
                "archive.plan",
                "The labelling plan of {name} was not imported: its settings cannot be read "
                "({reason}). Its labels were imported.",
                name=about.name,
                reason=str(error),
            )
            return None
        return asdict(about.plan)

    def _completed(self, judge: JudgePart) -> Mapping[str, Any]:
        # A judge whose grades came from a file has no settings.
        if not judge.settings:
            return judge.settings
        settings = completed(JUDGE_SETTINGS, judge.settings)
        if other := sorted(settings.keys() ^ judge.settings.keys()):
            self.result.stays(
                "archive.judge_settings",
                "The judge {name} was written by another version. These settings were reset to "
                "their defaults or dropped: {settings}.",
                name=judge.name,
                settings=", ".join(other),
            )
        return settings

    def _new_dataset(self, dataset_id: str, place: str, about: DatasetPart) -> Dataset:
        read = {part: self._table(place, part) for part in DATASET_PARTS}
        data = Dataset(
            about.name,
            checks.texts(read["queries"], ("query_id", "text")),
            checks.frame(read["documents"], ("doc_id", "title", "text")),
            checks.frame(read["qrels"], ("query_id", "doc_id", "label"), numbers=("label",)),
            checks.ranking(*(self._table(place, part) for part in ranking_parts(CANDIDATES))),
            first_stage=about.first_stage,
            candidates_name=about.candidates_name,
        )
        if data.id != dataset_id:
            raise ValueError("its content does not match its ID")
        if f"{place}/{TIMINGS}" in self._parts:
            timings = self._parts.read_table(f"{place}/{TIMINGS}")
            data.timings = checks.run_queries(timings, data, data.candidates)
        check_report(about.report)
        named = self._folder("datasets", dataset_id)
        write_dataset(self._workspace.root / named, data)
        values = dataset_values(data, about.source, about.report)
        self._rows.append(("datasets", values | {"folder": named}))
        return data

    def _run(self, run_id: str, data: Dataset, exists: bool) -> None:
        about = self._parts.read_json(f"runs/{run_id}/about.json", RunPart)
        documents = None
        if f"runs/{run_id}/documents.parquet" in self._parts:
            documents = checks.documents(self._table(f"runs/{run_id}", "documents"))
            data = data.with_documents(documents)
        run = self._read_run(run_id, about, data, documents)
        if exists:
            ours = self._workspace.run(run_id)
            if ours.dataset_id != data.id or not checks.same(ours, run):
                self.result.stays(
                    "archive.run",
                    "The run {name} exists here with other results. They stay; the results in "
                    "the file were not imported.",
                    name=run.name,
                )
                return
            called = "The run {theirs} is called {ours} here and keeps this name."
            self._name_stays(called, run.name, ours.name)
        else:
            named = self._folder("runs", run_id)
            write_run(self._workspace.root / named, run)
            self._rows.append(("runs", run_values(run) | {"folder": named}))
        key = {"run_id": run_id, "dataset_id": data.id}
        if about.note is not None:
            self._rows.append(("run_notes", {**key, **asdict(about.note)}))
        if about.pinned is not None:
            self._rows.append(("pins", {**key, "pinned": about.pinned}))
        checks.refuse_unknown(data, about.explanations, about.explanations)
        for each in about.explanations:
            Explanation.from_json(each.result)
            request = ExplanationRequest(run_id, each.query_id, each.doc_id, each.level)
            values = {"id": request.id, "run_id": run_id, **asdict(each)}
            values |= {"state": "done", "queued": each.finished}
            self._rows.append(("explanations", values))

    def _read_run(
        self, run_id: str, about: RunPart, data: Dataset, documents: pd.DataFrame | None
    ) -> Run:
        place = f"runs/{run_id}"
        ranked = checks.ranking(
            *(self._table(place, part) for part in ranking_parts(RANKING)), data=data
        )
        tables = {
            name: self._table(place, name)
            for name in MEASURED_PARTS
            if f"{place}/{name}.parquet" in self._parts
        }
        attributes = ("name", "reranker", "settings", "machine", "depth", "created")
        return Run(
            id=run_id,
            dataset_id=data.id,
            ranking=ranked,
            queries=checks.run_queries(self._table(place, "queries"), data, ranked),
            load_ms=or_nan(about.load_ms),
            **{each: getattr(about, each) for each in attributes},
            reading=checks.reading(tables["reading"], len(ranked)) if "reading" in tables else None,
            measured=measured_of(tables["measured"]) if "measured" in tables else None,
            calls=checks.calls(tables["calls"]) if "calls" in tables else None,
            documents=documents,
        )

    def _name_stays(self, template: str, theirs: str, ours: str) -> None:
        if theirs != ours:
            self.result.stays("archive.name", template, theirs=theirs, ours=ours)

    def _table(self, place: str, name: str) -> Any:
        return self._parts.read_table(f"{place}/{name}.parquet")

    def _folder(self, kind: str, name: str) -> str:
        root = self._workspace.root
        self.folders.append(folders.relative(root, folders.new_folder(root, kind, name)))
        return self.folders[-1]


# Merging rows of a workspace file with existing rows: new ones are added, existing ones stay.

_Join = Callable[[sqlite3.Connection, dict[str, Any], "TakenIn"], bool]


@dataclass
class TakenIn:
    """The result of an import.

    datasets: ids of all data sets in the file. added: kind → how many were added.
    findings: existing items that differ from the file, and stay.
    """

    datasets: list[str] = field(default_factory=list)
    added: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def stays(self, code: str, template: str, **params: object) -> None:
        """Add a warning that something was not imported or differs. template: an English sentence
        with the fields `params`."""
        self.findings.append(Finding("warning", code, template, params))


def _joining(
    table: str,
    ours: str = "",
    differ: Sequence[str] = (),
    code: str = "",
    template: str = "",
    counted: str | None = None,
) -> _Join:
    """Return a function that merges a row of a table: it is added, or the existing one stays.

    ours: a query for the existing row; a difference in one of the columns `differ` is reported by
        code and template.
    counted: the kind under which an added row is counted, None for none.
    """

    def join(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
        if insert(db, table, values):
            result.added.update([counted] if counted else [])
            return True
        existing = db.execute(ours, values).fetchone() if ours else None
        if existing is not None and any(existing[name] != values[name] for name in differ):
            result.stays(code, template, **dict(existing))
        return False

    return join


def _corrections(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
    """Merge the log of corrections and the labelling plan.

    values: dataset_id, the log in its order, and the plan, which began at one of its entries, or
        None. The log of a pair is added completely or not at all, and a plan only with a complete
        log, since it samples from the pairs that had no label when it began.
    """
    dataset_id, log = values["dataset_id"], values["log"]
    existing = {
        (row["query_id"], row["doc_id"]): (row["withdrawn"], row["label"])
        for row in db.execute(
            "SELECT query_id, doc_id, withdrawn, label FROM corrections WHERE dataset_id = ? "
            "ORDER BY revision",
            (dataset_id,),
        )
    }
    last = {(entry["query_id"], entry["doc_id"]): entry for entry in log}
    for pair, entry in last.items():
        if pair not in existing:
            result.added["corrections"] += not entry["withdrawn"]
        elif existing[pair] != (entry["withdrawn"], entry["label"]):
            result.stays(
                "archive.correction",
                "The corrected label of document {document} for query {query} differs. The "
                "existing label stays.",
                query=pair[0],
                document=pair[1],
            )
    plan = values["plan"]
    latest = "SELECT coalesce(max(revision), 0) FROM corrections"
    (began,) = db.execute(latest).fetchone()
    for place, entry in enumerate(log, 1):
        if (entry["query_id"], entry["doc_id"]) not in existing:
            insert(db, "corrections", {"dataset_id": dataset_id, **entry})
        if plan is not None and place == plan["before"]:
            (began,) = db.execute(latest).fetchone()
    if plan is not None:
        _plan(db, dataset_id, plan, began, result, whole=not existing)
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
    duplicate = db.execute("SELECT 1 FROM label_plans WHERE id = ?", (plan["id"],)).fetchone()
    if ours is not None or duplicate is not None or not whole:
        result.stays(
            "archive.plan",
            "The labelling plan was not imported: this data set already has corrected labels or "
            "a plan. Labels from the file were imported for pairs without a corrected label.",
        )
        return
    columns = {name: plan[name] for name in ("id", "guidelines", "created")}
    settings = json.dumps(plan["settings"])
    row = {**columns, "dataset_id": dataset_id, "settings": settings, "revision": revision}
    insert(db, "label_plans", row)
    for pause in plan["pauses"]:
        insert(db, "label_pauses", {"plan_id": plan["id"], **asdict(pause)})


def _judges(db: sqlite3.Connection, values: dict[str, Any], result: TakenIn) -> bool:
    """Merge a judge with its pairs; an existing one stays with its grades."""
    in_json = {name: json.dumps(values[name]) for name in ("settings", "systems", "usage")}
    pairs = values["pairs"]
    row = {name: value for name, value in values.items() if name != "pairs"} | in_json
    if not insert(db, "judges", {**row, "total": len(pairs), "queued": values["created"]}):
        return False
    for pair in pairs:
        columns = {"judge_id": values["id"], "answers": json.dumps(pair["answers"])}
        insert(db, "judged_pairs", {**pair, **columns})
    result.added["judges"] += 1
    return True


JOIN: dict[str, _Join] = {
    "datasets": _joining("datasets", counted="datasets"),
    "runs": _joining("runs", counted="runs"),
    "explanations": _joining("explanations", counted="explanations"),
    "notes": _joining(
        "notes",
        "SELECT tags, note, query_id AS query FROM notes "
        "WHERE dataset_id = :dataset_id AND query_id = :query_id",
        ("tags", "note"),
        "archive.note",
        "The note on query {query} differs. The existing note stays.",
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
        "The note on the run {name} differs. The existing note stays.",
        "notes",
    ),
    "pins": _joining(
        "pins",
        "SELECT run_id, name FROM pins JOIN runs ON runs.id = run_id "
        "WHERE pins.dataset_id = :dataset_id",
        ("run_id",),
        "archive.pin",
        "The file pins another run as the baseline. {name} stays pinned here.",
    ),
}
"""Table → a function that merges a row of the file and returns whether it was added."""


# Scenarios, prices and targets of a workspace file: existing ones of the same name stay.


def _merged_settings(
    theirs: Mapping[str, str], ours: Mapping[str, str], result: TakenIn
) -> dict[str, str]:
    """Return the settings that change."""
    merged = {
        key: merge(theirs[key], ours.get(key) or "", result)
        for key, merge in _MERGED.items()
        if key in theirs
    }
    return {key: value for key, value in merged.items() if value and value != ours.get(key)}


def _scenarios(theirs: str, ours: str, result: TakenIn) -> str:
    scenarios = read_scenarios(theirs)
    if any(not name or len(name) > LONGEST_SCENARIO_NAME for name in scenarios):
        raise DataError("The name of a scenario is empty or too long.")
    try:
        existing = read_scenarios(ours) if ours else {}
    except DataError:
        unread = "The saved scenarios cannot be read, so none was added."
        result.stays("archive.scenarios", unread)
        return ""
    new = {name: each for name, each in scenarios.items() if name not in existing}
    for name, each in scenarios.items():
        if existing.get(name, each) != each:
            differs = "The scenario {name} differs. The existing scenario stays."
            result.stays("archive.scenario", differs, name=name)
    for name in list(new)[max(0, MOST_SCENARIOS - len(existing)) :]:
        result.stays(
            "archive.scenario",
            "The scenario {name} cannot be saved: the limit is {most}.",
            name=name,
            most=MOST_SCENARIOS,
        )
        del new[name]
    return write_scenarios(existing | new) if new else ""


def _prices(theirs: str, ours: str, result: TakenIn) -> str:
    prices = to_json(parse_prices(theirs.encode(), "prices"))
    if ours and ours != prices:
        result.stays("archive.prices", "The prices differ. The existing prices stay.")
    return ours or prices


def _targets(theirs: str, ours: str, result: TakenIn) -> str:
    targets = Targets.from_json(theirs).to_json()
    if ours and ours != targets:
        result.stays("archive.targets", "The targets differ. The existing targets stay.")
    return ours or targets


_MERGED = {SCENARIOS: _scenarios, PRICES: _prices, TARGETS: _targets}
