"""Notes, the pinned baseline, corrected labels and labelling plans of a data set and its runs. Each
is deleted with its data set or run."""

from __future__ import annotations

import json
import math
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd

from rankdash.core.base.errors import DataError, StoreError
from rankdash.core.workspace.database import delete, find, from_row, insert, now, read_json, select
from rankdash.core.workspace.workspace import Workspace

Pair = tuple[str, str]
LONGEST_NAME = 80


def tidy_name(who: str) -> str:
    """Return a person's name as it is stored."""
    return " ".join(who.split())[:LONGEST_NAME]


class _Store:
    """The rows of one table of a workspace. Every method raises StoreError if the workspace cannot
    be used.

    table: has the column dataset_id. key: the columns that identify a row.
    """

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]] = ()

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def _replace(self, values: Mapping[str, object], *, empty: bool = False) -> None:
        """Replace the row of a key, or delete it if its content is `empty`. Raises StoreError for a
        data set or, without dataset_id, a run that does not exist."""
        with self._database.writing() as db:
            if "dataset_id" in values:
                find(db, "datasets", str(values["dataset_id"]), "id")
            else:
                run = find(db, "runs", str(values["run_id"]), "dataset_id")
                values = {**values, "dataset_id": run["dataset_id"]}
            delete(db, self.table, **{name: values[name] for name in self.key})
            if not empty:
                insert(db, self.table, values)


# Notes of an analyst on queries and runs, and of annotators on query–document pairs.

MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTE = 4_000
LONGEST_LABEL_NOTE = 500


@dataclass(frozen=True)
class Note:
    """The remarks on one query. `changed` is ISO 8601 in UTC, "" without remarks; `who` is "" if
    the author was not logged in. unread: why the tags cannot be read; None if they can."""

    query_id: str
    tags: tuple[str, ...] = ()
    text: str = ""
    changed: str = ""
    who: str = ""
    unread: StoreError | None = None


class Notes(_Store):
    """The notes on queries."""

    table, key = "notes", ("dataset_id", "query_id")

    def all(self, dataset_id: str) -> list[Note]:
        """Return every note of a data set, by query id."""
        rows = self._database.rows(self.table, "query_id", dataset_id=dataset_id)
        return [_note(row) for row in rows]

    def of(self, dataset_id: str, query_id: str) -> Note:
        """Return the note of one query; an empty one if there is none."""
        row = self._database.row(self.table, dataset_id=dataset_id, query_id=query_id)
        return Note(query_id) if row is None else _note(row)

    def store(
        self, dataset_id: str, query_id: str, tags: Iterable[str], text: str, who: str = ""
    ) -> Note:
        """Replace the remarks on a query; without tags and text they are deleted. Return the note
        as it is stored. who: the name of its author.

        Raises DataError if there are more than `MOST_TAGS` tags, a tag is longer than `LONGEST_TAG`
        or the note longer than `LONGEST_NOTE` characters.
        """
        note = Note(query_id, tidy(tags), text.strip(), now(), tidy_name(who))
        _refuse_too_much(note)
        content = {"tags": json.dumps(note.tags), "note": note.text}
        signed = {"changed": note.changed, "who": note.who}
        key = {"dataset_id": dataset_id, "query_id": query_id}
        self._replace({**key, **content, **signed}, empty=not (note.tags or note.text))
        return note


@dataclass(frozen=True)
class RunNote:
    """The note on one run, such as its changes and its purpose. `changed` is ISO 8601 in UTC, ""
    without a note; `who` is "" if the author was not logged in."""

    run_id: str
    text: str = ""
    changed: str = ""
    who: str = ""


class RunNotes(_Store):
    """The notes on runs."""

    table, key = "run_notes", ("run_id",)

    def all(self, dataset_id: str) -> dict[str, RunNote]:
        """Return run id → its note, for the runs of a data set that have one."""
        rows = self._database.rows(self.table, dataset_id=dataset_id)
        return {row["run_id"]: from_row(RunNote, row, text=row["note"]) for row in rows}

    def of(self, run_id: str) -> RunNote:
        """Return the note on one run; an empty one if there is none."""
        row = self._database.row(self.table, run_id=run_id)
        return RunNote(run_id) if row is None else from_row(RunNote, row, text=row["note"])

    def store(self, run_id: str, text: str, who: str = "") -> RunNote:
        """Replace the note on a run; without text it is deleted. Return it as it is stored. who:
        the name of its author.

        Raises DataError if it is longer than `LONGEST_NOTE` characters, and StoreError if the run
        does not exist.
        """
        note = RunNote(run_id, text.strip(), now(), tidy_name(who))
        _refuse_long(note.text)
        values = {"run_id": run_id, "note": note.text, "changed": note.changed, "who": note.who}
        self._replace(values, empty=not note.text)
        return note if note.text else RunNote(run_id)


class LabelNotes(_Store):
    """The notes of annotators on pairs."""

    table, key = "label_notes", ("dataset_id", "query_id", "doc_id", "who")

    def of(self, dataset_id: str, pair: Pair, who: str) -> str:
        """Return a person's remark on a pair; "" if there is none."""
        row = self._database.row(self.table, **self._key(dataset_id, pair, who))
        return "" if row is None else str(row["note"])

    def all(self, dataset_id: str) -> dict[Pair, dict[str, str]]:
        """Return pair → name → this person's remark; names in order."""
        notes: dict[Pair, dict[str, str]] = {}
        for row in self._database.rows(self.table, "who", dataset_id=dataset_id):
            notes.setdefault((row["query_id"], row["doc_id"]), {})[row["who"]] = row["note"]
        return notes

    def store(self, dataset_id: str, pair: Pair, who: str, note: str) -> None:
        """Replace a person's remark on a pair, up to `LONGEST_LABEL_NOTE` characters in one line;
        an empty remark is deleted."""
        text = " ".join(note.split())[:LONGEST_LABEL_NOTE]
        self._replace({**self._key(dataset_id, pair, who), "note": text}, empty=not text)

    def _key(self, dataset_id: str, pair: Pair, who: str) -> dict[str, str]:
        return dict(zip(self.key, (dataset_id, *pair, tidy_name(who)), strict=True))


class Pins(_Store):
    """The pinned baseline of each data set: the run that others are compared with by default."""

    table, key = "pins", ("dataset_id",)

    def of(self, dataset_id: str) -> str | None:
        """Return the id of the pinned run; None if the first stage is the baseline."""
        row = self._database.row(self.table, dataset_id=dataset_id)
        return None if row is None else str(row["run_id"])

    def pin(self, run_id: str) -> None:
        """Make a run the baseline of its data set, in place of the previous one.

        Raises StoreError if the run does not exist.
        """
        self._replace({"run_id": run_id, "pinned": now()})

    def unpin(self, dataset_id: str) -> None:
        """Make the first stage the baseline again; do nothing if it is."""
        with self._database.writing() as db:
            delete(db, self.table, dataset_id=dataset_id)


def tidy(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags, each once regardless of case, with single blanks, without empty ones."""
    unique: dict[str, str] = {}
    for tag in tags:
        clean = " ".join(tag.split())
        if clean:
            unique.setdefault(clean.casefold(), clean)
    return tuple(unique.values())


def tags_in_use(notes: Sequence[Note]) -> list[str]:
    """Return every tag of the notes once, in alphabetical order."""
    return sorted(tidy(tag for note in notes for tag in note.tags), key=str.casefold)


def tags_of(row: Mapping[str, Any] | sqlite3.Row) -> tuple[tuple[str, ...], StoreError | None]:
    """Return the tags of a row; none, and the error, if they cannot be read."""
    try:
        return read_json(row, "tags", tuple[str, ...]), None
    except StoreError as error:
        return (), error


def _note(row: sqlite3.Row) -> Note:
    tags, unread = tags_of(row)
    return from_row(Note, row, tags=tags, text=row["note"], unread=unread)


def _refuse_too_much(note: Note) -> None:
    if len(note.tags) > MOST_TAGS:
        raise DataError(
            "A query can have at most {most} tags.",
            remedy="Remove one before adding another.",
            most=MOST_TAGS,
        )
    if any(len(tag) > LONGEST_TAG for tag in note.tags):
        raise DataError(
            "A tag can have at most {most} characters.",
            remedy="Put the rest into the note.",
            most=LONGEST_TAG,
        )
    _refuse_long(note.text)


def _refuse_long(text: str) -> None:
    if len(text) > LONGEST_NOTE:
        raise DataError(
            "A note can have at most {most} characters.", remedy="Shorten it.", most=LONGEST_NOTE
        )


# Labels that an analyst corrected: a layer over a data set, which itself is never changed.
#
# It is a log. The last entry of a pair is in force, unless it was withdrawn, and the number of the
# last entry is the revision of the layer: the labels of any revision can be restored.

_UNTIL = "dataset_id = :dataset AND (:until IS NULL OR revision <= :until)"
_LATEST = f"SELECT max(revision) FROM corrections WHERE {_UNTIL} GROUP BY query_id, doc_id"  # noqa: S608


@dataclass(frozen=True)
class Correction:
    """A correction of one label, as an entry of the log of corrections.

    label: None if the pair counts as not judged. who: "" if unknown. made: ISO 8601 in UTC.
    withdrawn: whether it withdraws the earlier entries of the pair; False for an entry in force.
    """

    query_id: str
    doc_id: str
    label: float | None
    who: str
    made: str
    withdrawn: bool = False

    @property
    def pair(self) -> Pair:
        return self.query_id, self.doc_id


@dataclass(frozen=True)
class Layer:
    """The number of corrected labels, and their revision."""

    count: int
    revision: int


class Corrections(_Store):
    """The log of corrected labels of each data set."""

    def layer(self, dataset_id: str) -> Layer:
        """Return how many corrections are in force, and the number of the last entry of the log."""
        counted = "coalesce(sum(withdrawn = 0), 0), coalesce(max(revision), 0)"
        (row,) = self._rows(counted, f"revision IN ({_LATEST})", dataset_id)
        return Layer(*row)

    def revision(self, dataset_id: str) -> int:
        """Return the number of the last entry of the log; 0 if it is empty."""
        (row,) = self._rows("coalesce(max(revision), 0)", _UNTIL, dataset_id)
        return int(row[0])

    def all(self, dataset_id: str, revision: int | None = None) -> list[Correction]:
        """Return the corrections in force, the latest first; as of a revision if one is passed."""
        test = f"withdrawn = 0 AND revision IN ({_LATEST}) ORDER BY revision DESC"
        return list(map(_correction, self._rows("*", test, dataset_id, until=revision)))

    def labels(self, dataset_id: str, revision: int | None = None) -> pd.DataFrame:
        """Return query_id, doc_id and label of the corrections of `all`; NaN for a pair that is not
        judged."""
        rows = [
            (*each.pair, math.nan if each.label is None else each.label)
            for each in self.all(dataset_id, revision)
        ]
        return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])

    def log(self, dataset_id: str, after: int = 0, until: int | None = None) -> list[Correction]:
        """Return the entries after a revision, and up to another one, in order, including entries
        that were replaced or withdrawn."""
        test = f"{_UNTIL} AND revision > :after ORDER BY revision"
        return list(map(_correction, self._rows("*", test, dataset_id, until=until, after=after)))

    def correct(self, dataset_id: str, pair: Pair, label: float | None, who: str) -> None:
        """Set another label for a pair, or remove its label (None)."""
        self.take_in(dataset_id, [Correction(*pair, label, who, "")])

    def restore(self, dataset_id: str, corrections: Iterable[Correction]) -> None:
        """Put corrections in force again that were replaced or withdrawn."""
        self.take_in(dataset_id, [replace(each, made="", withdrawn=False) for each in corrections])

    def withdraw(self, dataset_id: str, pairs: Iterable[Pair]) -> None:
        """Restore the labels of the pairs that came with the data."""
        self.take_in(dataset_id, [Correction(*pair, None, "", "", True) for pair in pairs])

    def take_in(self, dataset_id: str, corrections: Iterable[Correction]) -> None:
        """Append corrections from elsewhere to the log, in this order. made: "" for now."""
        moment = now()
        with self._database.writing() as db:
            find(db, "datasets", dataset_id, "id")
            for each in corrections:
                signed = {"who": tidy_name(each.who), "made": each.made or moment}
                insert(db, "corrections", {"dataset_id": dataset_id, **vars(each), **signed})

    def _rows(
        self, columns: str, test: str, dataset_id: str, **more: int | None
    ) -> list[sqlite3.Row]:
        query = f"SELECT {columns} FROM corrections WHERE {test}"  # noqa: S608
        with self._database.reading() as db:
            values = {"dataset": dataset_id, "until": None, **more}
            return db.execute(query, values).fetchall()


def _correction(row: sqlite3.Row) -> Correction:
    return from_row(Correction, row, withdrawn=bool(row["withdrawn"]))


# Labelling plans, the pair that each annotator looks at, and when they resumed after a pause.
#
# Labels are stored as corrections, so that they are in force everywhere immediately; a plan stores
# the revision of the log at its beginning.

CARD_SECONDS = 600.0
"""The time for which a pair is reserved for one window, from when it was last shown."""

LONGEST_GUIDELINES = 10_000


@dataclass(frozen=True)
class StoredPlan:
    """A labelling plan as it is stored.

    settings: the settings of the plan, as the caller passed them; empty if they cannot be read.
    revision: of the corrections, when it began. created: ISO 8601 in UTC.
    """

    id: str
    dataset_id: str
    settings: Mapping[str, object]
    revision: int
    guidelines: str
    created: str


class LabelPlans(_Store):
    """The labelling plans."""

    table = "label_plans"

    def newest(self, dataset_id: str) -> StoredPlan | None:
        """Return the plan that was begun last; None if there is none."""
        row = self._database.row(self.table, "rowid DESC", dataset_id=dataset_id)
        if row is None:
            return None
        try:
            settings = read_json(row, "settings", dict[str, Any])
        except StoreError:
            settings = {}
        return from_row(StoredPlan, row, settings=settings)

    def begin(self, dataset_id: str, settings: Mapping[str, object], guidelines: str) -> str:
        """Begin a plan at the current labels; return its id.

        Raises DataError if the guidelines are longer than `LONGEST_GUIDELINES` characters.
        """
        if len(guidelines) > LONGEST_GUIDELINES:
            raise DataError(
                "The guidelines have {length} characters; the limit is {most}.",
                remedy="Shorten them, or write where to find them.",
                length=len(guidelines),
                most=LONGEST_GUIDELINES,
            )
        plan_id = uuid.uuid4().hex[:16]
        with self._database.writing() as db:
            find(db, "datasets", dataset_id, "id")
            db.execute(
                "INSERT INTO label_plans (id, dataset_id, settings, revision, guidelines, created) "
                "SELECT ?, ?, ?, coalesce(max(revision), 0), ?, ? FROM corrections",
                (plan_id, dataset_id, json.dumps(settings), guidelines.strip(), now()),
            )
        return plan_id

    def take(
        self,
        plan_id: str,
        pairs: Iterable[Pair],
        owner: str,
        *,
        gone: Callable[[str], bool] = lambda _owner: False,
    ) -> Pair | None:
        """Reserve the first of the pairs that is free for `owner`, and release its previous one;
        return None if all of them are reserved.

        owner: a name that no other window has. gone: whether the window of another owner is closed,
            so that its pair is free again.
        """
        moment = time.time()
        with self._database.writing() as db:
            db.execute(
                # A time beyond the limit was set before the clock was set back.
                "DELETE FROM label_cards WHERE plan_id = ? "
                "AND (owner = ? OR until NOT BETWEEN ? AND ?)",
                (plan_id, owner, moment, moment + CARD_SECONDS),
            )
            rows = select(db, "label_cards", plan_id=plan_id)
            closed = {row["owner"] for row in rows if gone(row["owner"])}
            for each in closed:
                delete(db, "label_cards", plan_id=plan_id, owner=each)
            open_cards = (row for row in rows if row["owner"] not in closed)
            reserved = {(row["query_id"], row["doc_id"]) for row in open_cards}
            pair = next((pair for pair in pairs if pair not in reserved), None)
            if pair is not None:
                card = {"plan_id": plan_id, "query_id": pair[0], "doc_id": pair[1]}
                insert(db, "label_cards", {**card, "owner": owner, "until": moment + CARD_SECONDS})
        return pair

    def resume(self, plan_id: str, who: str) -> None:
        """Record that a person resumes now after a pause."""
        with self._database.writing() as db:
            if select(db, self.table, id=plan_id):
                pause = {"plan_id": plan_id, "who": tidy_name(who), "ended": now()}
                insert(db, "label_pauses", pause)

    def resumed(self, plan_id: str) -> dict[str, list[str]]:
        """Return name → when this person resumed after each pause, ISO 8601 in UTC."""
        times: dict[str, list[str]] = {}
        for row in self._database.rows("label_pauses", plan_id=plan_id):
            times.setdefault(row["who"], []).append(row["ended"])
        return times
