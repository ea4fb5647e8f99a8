"""A workspace file taken in: all of it is checked, then added in one transaction, or nothing is."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from rankdash.dataset import Dataset
from rankdash.errors import FormatError, LimitError, Phrase, RankdashError, StoreError
from rankdash.findings import Finding
from rankdash.ranking.ranking import Run
from rankdash.store.jobs.explanations import Asked
from rankdash.store.notes.corrections import LONGEST_NAME
from rankdash.store.notes.notes import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS, tidy
from rankdash.store.rows import dataset_values, run_values
from rankdash.store.tables import CANDIDATES, DATASET_PARTS, RANKING, write_dataset, write_run
from rankdash.store.workspace import Workspace
from rankdash.store.workspace_file import import_checks as sound
from rankdash.store.workspace_file.archive import (
    FORMAT,
    MEASURED_PARTS,
    SETTINGS,
    VERSION,
    Told,
    ranking_parts,
)
from rankdash.store.workspace_file.merge_rows import JOIN, TakenIn, stays
from rankdash.store.workspace_file.workspace_zip import Bounds, Unpacker

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")
_LONGEST_REPORT = 50_000_000
_LONGEST_RECORD = 1_000_000
_LONGEST_RESULT = 5_000_000


@dataclass(frozen=True)
class Judges:
    """What the store cannot judge, because it does not know what it means. Each raises ValueError,
    KeyError, TypeError or RankdashError for what is no good.

    report, explanation: of the JSON of a check report, and of an explanation.
    settle: what the settings of the file become beside those that are here: what to keep, and what
        to say of it. Both are texts by name; only `shared` ones are asked about.
    """

    report: Callable[[str], object]
    explanation: Callable[[str], object]
    settle: Callable[[Mapping[str, str], Mapping[str, str]], tuple[dict[str, str], list[Finding]]]
    shared: Sequence[str]


def take_in(
    workspace: Workspace,
    source: Path | BinaryIO,
    file: str,
    judges: Judges,
    told: Told = lambda _done, _total: None,
    bounds: Bounds | None = None,
) -> TakenIn:
    """Add what a file holds and this workspace does not. file: its name, for messages.

    Raises FormatError for a file that is none of ours, was changed, or is of a newer version,
    LimitError where it is larger than `bounds`, StoreError where the workspace cannot take it:
    then nothing was added.
    """
    workspace.database.refuse_read_only()
    with Unpacker(source, file, bounds) as parts:
        taking = _Taking(workspace, parts, judges)
        try:
            taking.read(_contents(parts, file), told)
            with workspace.database.writing(durable=True) as db:
                taking.add(db)
        except BaseException:
            taking.discard()
            raise
        taking.clear()
        workspace.keep_records()
        return taking.result


def _contents(parts: Unpacker, file: str) -> dict[str, list[str]]:
    """Data set → its runs, as the head says."""
    head = parts.head
    if head.get("format") != FORMAT or not isinstance(head.get("version"), int):
        raise FormatError(
            "This is no workspace file, or it is damaged or cut short. Nothing was imported.",
            remedy="Copy or export it again.",
            file=file,
        )
    if head["version"] > VERSION:
        raise FormatError(
            "This workspace file was written by a newer rankdash ({version}). Nothing was "
            "imported.",
            remedy="Update rankdash, or have it exported by the version that runs here.",
            file=file,
            version=str(head.get("rankdash"))[:40],
        )
    found = head.get("datasets")
    if not isinstance(found, dict) or not all(isinstance(each, list) for each in found.values()):
        raise parts.refused("manifest.json", Phrase("its list of data sets is broken"))
    every = [*found, *(run for runs in found.values() for run in runs)]
    if not all(isinstance(each, str) and _ID.fullmatch(each) for each in every):
        raise parts.refused("manifest.json", Phrase("an id is none"))
    if len(set(every)) != len(every):
        raise parts.refused("manifest.json", Phrase("an id is listed twice"))
    return found


class _Taking:
    """One import: what was read, and the folders that were filled for it."""

    def __init__(self, workspace: Workspace, parts: Unpacker, judges: Judges) -> None:
        self.result = TakenIn()
        self._workspace, self._parts, self._judges = workspace, parts, judges
        self._folders: dict[str, Path] = {}
        self._unused: list[Path] = []
        # Table → its new rows, with their folder where they have one.
        self._rows: list[tuple[str, dict[str, object]]] = []
        self._settings: dict[str, str] = {}

    def read(self, contents: Mapping[str, Sequence[str]], told: Told) -> None:
        """Check everything, and write the tables that are new into folders."""
        total = len(contents) + sum(map(len, contents.values()))
        done = 0
        here = {row.id: row for row in self._workspace.datasets()}
        runs_here = {row.id: row for row in self._workspace.runs()}
        for dataset_id, runs in contents.items():
            self.result.datasets.append(dataset_id)
            with self._judging(f"datasets/{dataset_id}"):
                data = self._dataset(dataset_id, dataset_id in here)
            told(done := done + 1, total)
            for run_id in runs:
                with self._judging(f"runs/{run_id}"):
                    self._run(run_id, data, run_id in runs_here)
                told(done := done + 1, total)
        if SETTINGS in self._parts:
            with self._judging(SETTINGS):
                given = self._parts.read_json(SETTINGS)["settings"]
                self._settings = {
                    name: sound.text(given[name], _LONGEST_RECORD)
                    for name in self._judges.shared
                    if name in given
                }
                # Once to see whether they are any good; what they become is settled at the end.
                self._judges.settle(self._settings, {})

    def add(self, db: sqlite3.Connection) -> None:
        """Everything that was read, in one transaction."""
        for table, values in self._rows:
            added = JOIN[table](db, values, self.result)
            if not added and "folder" in values:
                # Another process stored the same meanwhile.
                self._unused.append(self._folders[str(values["folder"])])
        ours = {row["key"]: row["value"] for row in db.execute("SELECT key, value FROM settings")}
        kept, findings = self._judges.settle(self._settings, ours)
        for name, value in kept.items():
            db.execute("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", (name, value))
        self.result.added["settings"] += len(kept)
        self.result.findings += findings

    def discard(self) -> None:
        self._unused += self._folders.values()
        self.clear()

    def clear(self) -> None:
        for folder in self._unused:
            self._workspace.remove(folder)

    @contextmanager
    def _judging(self, name: str) -> Iterator[None]:
        """What is wrong with a part, in words that name it; what the disk refuses stays so."""
        try:
            yield
        except (StoreError, FormatError, LimitError):
            raise
        except RankdashError as error:
            raise self._parts.refused(name, error.message.rstrip(".")) from error
        except pa.ArrowException as error:
            raise self._parts.refused(name, Phrase("a table is not what it should be")) from error
        except (LookupError, TypeError, AttributeError) as error:
            raise self._parts.refused(
                name, Phrase("something is missing in it, or no text or number")
            ) from error
        except (ValueError, OverflowError, RecursionError) as error:
            raise self._parts.refused(name, str(error).splitlines()[0][:200]) from error

    def _dataset(self, dataset_id: str, here: bool) -> Dataset:
        place = f"datasets/{dataset_id}"
        about = self._parts.read_json(f"{place}/about.json")
        name = sound.text(about["name"], least=1)
        if here:
            data = self._workspace.dataset(dataset_id)
            if name != data.name:
                stays(
                    self.result,
                    "archive.name",
                    "The data set {theirs} is called {ours} here, and stays so.",
                    theirs=name,
                    ours=data.name,
                )
        else:
            data = self._new_dataset(dataset_id, place, about, name)
        queries, documents = set(data.queries["query_id"]), set(data.documents["doc_id"])
        for row in sound.rows(about["notes"]):
            self._rows.append(("notes", {"dataset_id": dataset_id, **_note(row, queries)}))
        log = [_correction(row, queries, documents) for row in sound.rows(about["corrections"])]
        self._rows.append(("corrections", {"dataset_id": dataset_id, "log": log}))
        return data

    def _new_dataset(self, dataset_id: str, place: str, about: Any, name: str) -> Dataset:
        if about["first_stage"] not in ("given", "bm25"):
            raise sound.unsound("it does not say where its first stage comes from")
        read = {part: self._table(place, part) for part in DATASET_PARTS}
        data = Dataset(
            name,
            sound.texts(read["queries"], ("query_id", "text")),
            sound.frame(read["documents"], ("doc_id", "title", "text")),
            sound.frame(read["qrels"], ("query_id", "doc_id", "label"), numbers=("label",)),
            sound.ranking(*(self._table(place, part) for part in ranking_parts(CANDIDATES))),
            first_stage=about["first_stage"],
        )
        if data.id != dataset_id:
            raise sound.unsound("its content is not what its id says")
        report = sound.text(about["report"], _LONGEST_REPORT)
        self._judges.report(report)
        folder = self._folder("datasets", dataset_id)
        write_dataset(folder, data)
        values = dataset_values(data, sound.text(about["source"], 40), report)
        self._rows.append(("datasets", values | {"folder": self._workspace.named(folder)}))
        return data

    def _run(self, run_id: str, data: Dataset, here: bool) -> None:
        about = self._parts.read_json(f"runs/{run_id}/about.json")
        run = self._read_run(run_id, about, data)
        if here:
            ours = self._workspace.run(run_id)
            if ours.dataset_id != data.id or not sound.same(ours, run):
                stays(
                    self.result,
                    "archive.run",
                    "The run {name} is here with other results. Those here stay; those of the file "
                    "were left out.",
                    name=run.name,
                )
                return
            if ours.name != run.name:
                stays(
                    self.result,
                    "archive.name",
                    "The run {theirs} is called {ours} here, and stays so.",
                    theirs=run.name,
                    ours=ours.name,
                )
        else:
            folder = self._folder("runs", run_id)
            write_run(folder, run)
            self._rows.append(("runs", run_values(run) | {"folder": self._workspace.named(folder)}))
        own = {"run_id": run_id, "dataset_id": data.id}
        if about["note"] is not None:
            note = {name: about["note"][name] for name in ("note", "changed")}
            sound.text(note["note"], LONGEST_NOTE, least=1)
            sound.moment(note["changed"])
            self._rows.append(("run_notes", {**own, **note}))
        if about["pinned"] is not None:
            self._rows.append(("pins", {**own, "pinned": sound.moment(about["pinned"])}))
        queries, documents = set(data.queries["query_id"]), set(data.documents["doc_id"])
        for row in sound.rows(about["explanations"]):
            values = self._explanation(row, run_id)
            if values["query_id"] not in queries or values["doc_id"] not in documents:
                raise sound.unsound("it explains what its data set does not have")
            self._rows.append(("explanations", values))

    def _read_run(self, run_id: str, about: Mapping[str, Any], data: Dataset) -> Run:
        place = f"runs/{run_id}"
        ranked = sound.ranking(
            *(self._table(place, part) for part in ranking_parts(RANKING)), data=data
        )
        found = {
            name: self._table(place, name)
            for name in MEASURED_PARTS
            if f"{place}/{name}.parquet" in self._parts
        }
        depth, load = about["depth"], about["load_ms"]
        if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int)):
            raise sound.unsound("its depth is no number")
        return Run(
            id=run_id,
            name=sound.text(about["name"], least=1),
            dataset_id=data.id,
            ranking=ranked,
            reranker=sound.text(about["reranker"], 200),
            queries=sound.run_queries(self._table(place, "queries"), data, ranked),
            settings=sound.flat(about["settings"], _LONGEST_RECORD),
            machine=sound.flat(about["machine"], _LONGEST_RECORD),
            depth=depth,
            load_ms=math.nan if load is None else sound.number(load),
            created=sound.moment(about["created"]),
            reading=sound.reading(found["reading"], len(ranked)) if "reading" in found else None,
            measured=sound.measured(found["measured"]) if "measured" in found else None,
            calls=sound.calls(found["calls"]) if "calls" in found else None,
        )

    def _explanation(self, row: Mapping[str, Any], run_id: str) -> dict[str, object]:
        query_id, doc_id = (sound.text(row[name]) for name in ("query_id", "doc_id"))
        asked = Asked(run_id, query_id, doc_id, sound.text(row["level"], 40))
        self._judges.explanation(sound.text(row["result"], _LONGEST_RESULT))
        finished = sound.moment(row["finished"])
        return {
            "id": asked.id,
            **vars(asked),
            "state": "done",
            "result": row["result"],
            "queued": finished,
            "finished": finished,
        }

    def _table(self, place: str, name: str) -> Any:
        return self._parts.read_table(f"{place}/{name}.parquet")

    def _folder(self, kind: str, name: str) -> Path:
        folder = self._workspace.new_folder(kind, name)
        self._folders[self._workspace.named(folder)] = folder
        return folder


def _note(row: Mapping[str, Any], queries: Collection[str]) -> dict[str, object]:
    tags = [sound.text(tag, LONGEST_TAG, least=1) for tag in row["tags"]]
    note = sound.text(row["note"], LONGEST_NOTE)
    if row["query_id"] not in queries or len(tags) > MOST_TAGS or not (tags or note):
        raise sound.unsound("a note is empty or too long, or on a query that is not there")
    return {
        "query_id": row["query_id"],
        "tags": json.dumps(tidy(tags)),
        "note": note,
        "changed": sound.moment(row["changed"]),
    }


def _correction(
    row: Mapping[str, Any], queries: Collection[str], documents: Collection[str]
) -> dict[str, object]:
    if row["query_id"] not in queries or row["doc_id"] not in documents:
        raise sound.unsound("it corrects a label of what its data set does not have")
    if row["withdrawn"] not in (0, 1):
        raise sound.unsound("a correction is neither in force nor withdrawn")
    return {
        "query_id": row["query_id"],
        "doc_id": row["doc_id"],
        "withdrawn": int(row["withdrawn"]),
        "label": None if row["label"] is None else sound.number(row["label"]),
        "who": sound.text(row["who"], LONGEST_NAME),
        "made": sound.moment(row["made"]),
    }
