"""What people write beside a data set and its runs: notes, the pinned baseline, corrected labels,
plans of what to label. Each goes with its data set or run."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rankdash.core.base.errors import DataError, StoreError
from rankdash.core.workspace.database import delete, find, from_row, insert, now, read_json, select
from rankdash.core.workspace.workspace import Workspace

Pair = tuple[str, str]
LONGEST_NAME = 80


def tidy_name(who: str) -> str:
    """A person's name as it is stored."""
    return " ".join(who.split())[:LONGEST_NAME]


class _Store:
    """The rows of a table of a workspace. Every method raises StoreError if the workspace cannot be
    used.

    table: has the column dataset_id. key: the columns of which each combination has one row.
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


# Notes: of an analyst on a query and on a run, of annotators on a pair of query and document.

MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTE = 4_000
LONGEST_LABEL_NOTE = 500


@dataclass(frozen=True)
class Note:
    """The remarks on one query. `changed` is ISO 8601 in UTC, "" where nothing was remarked; `who`
    is "" where nobody was logged in. unread: why the tags are not here; None where they are."""

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
        """Every note of a data set, by query id."""
        rows = self._database.rows(self.table, "query_id", dataset_id=dataset_id)
        return [_note(row) for row in rows]

    def of(self, dataset_id: str, query_id: str) -> Note:
        """The note of one query; an empty one where there is none."""
        row = self._database.row(self.table, dataset_id=dataset_id, query_id=query_id)
        return Note(query_id) if row is None else _note(row)

    def keep(
        self, dataset_id: str, query_id: str, tags: Iterable[str], text: str, who: str = ""
    ) -> Note:
        """Replace the remarks on a query; without a tag and a word there are none. Returns the note
        as it is kept. who: the name it is signed with.

        Raises DataError where there are more than `MOST_TAGS` tags, a tag is longer than
        `LONGEST_TAG` or the note longer than `LONGEST_NOTE` characters.
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
    """The note on one run: what changed, and why it was made. `changed` is ISO 8601 in UTC, ""
    where there is none; `who` is "" where nobody was logged in."""

    run_id: str
    text: str = ""
    changed: str = ""
    who: str = ""


class RunNotes(_Store):
    """The notes on runs."""

    table, key = "run_notes", ("run_id",)

    def all(self, dataset_id: str) -> dict[str, RunNote]:
        """Run id → its note, for the runs of a data set that have one."""
        rows = self._database.rows(self.table, dataset_id=dataset_id)
        return {row["run_id"]: from_row(RunNote, row, text=row["note"]) for row in rows}

    def of(self, run_id: str) -> RunNote:
        """The note on one run; an empty one where there is none."""
        row = self._database.row(self.table, run_id=run_id)
        return RunNote(run_id) if row is None else from_row(RunNote, row, text=row["note"])

    def keep(self, run_id: str, text: str, who: str = "") -> RunNote:
        """Replace the note on a run; without a word there is none. Returns it as it is kept. who:
        the name it is signed with.

        Raises DataError where it is longer than `LONGEST_NOTE` characters, and StoreError where
        there is no such run.
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
        """What a person remarked on a pair; "" where that is nothing."""
        row = self._database.row(self.table, **self._key(dataset_id, pair, who))
        return "" if row is None else str(row["note"])

    def all(self, dataset_id: str) -> dict[Pair, dict[str, str]]:
        """Pair → name → what this person remarked; names in order."""
        notes: dict[Pair, dict[str, str]] = {}
        for row in self._database.rows(self.table, "who", dataset_id=dataset_id):
            notes.setdefault((row["query_id"], row["doc_id"]), {})[row["who"]] = row["note"]
        return notes

    def keep(self, dataset_id: str, pair: Pair, who: str, note: str) -> None:
        """Replace what a person remarked on a pair, up to `LONGEST_LABEL_NOTE` characters in one
        line; nothing takes it away."""
        text = " ".join(note.split())[:LONGEST_LABEL_NOTE]
        self._replace({**self._key(dataset_id, pair, who), "note": text}, empty=not text)

    def _key(self, dataset_id: str, pair: Pair, who: str) -> dict[str, str]:
        return dict(zip(self.key, (dataset_id, *pair, tidy_name(who)), strict=True))


class Pins(_Store):
    """The pinned baselines: of each data set the run that others are compared with by default."""

    table, key = "pins", ("dataset_id",)

    def of(self, dataset_id: str) -> str | None:
        """The id of the pinned run; None where the first stage is the baseline."""
        row = self._database.row(self.table, dataset_id=dataset_id)
        return None if row is None else str(row["run_id"])

    def pin(self, run_id: str) -> None:
        """Make a run the baseline of its data set, in place of the one that was.

        Raises StoreError where there is no such run.
        """
        self._replace({"run_id": run_id, "pinned": now()})

    def unpin(self, dataset_id: str) -> None:
        """Let the first stage be the baseline again; nothing happens where it is."""
        with self._database.writing() as db:
            delete(db, self.table, dataset_id=dataset_id)


def tidy(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags, each once whatever its case, blanks made single, empty ones left out."""
    unique: dict[str, str] = {}
    for tag in tags:
        clean = " ".join(tag.split())
        if clean:
            unique.setdefault(clean.casefold(), clean)
    return tuple(unique.values())


def tags_in_use(notes: Sequence[Note]) -> list[str]:
    """Every tag of the notes once, in alphabetical order."""
    return sorted(tidy(tag for note in notes for tag in note.tags), key=str.casefold)


def tags_of(row: Mapping[str, Any] | sqlite3.Row) -> tuple[tuple[str, ...], StoreError | None]:
    """The tags of a row; none, and why, where they cannot be read."""
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
# It is a log. What was said of a pair last is in force, unless it was withdrawn, and the number of
# the last entry is the revision of the layer: the labels of any revision can be had again.

_UNTIL = "dataset_id = :dataset AND (:until IS NULL OR revision <= :until)"
_LATEST = f"SELECT max(revision) FROM corrections WHERE {_UNTIL} GROUP BY query_id, doc_id"  # noqa: S608


@dataclass(frozen=True)
class Correction:
    """label: None where the pair is to count as not judged. who: "" if unknown. made: ISO 8601 in
    UTC. withdrawn: whether it takes back what was said of the pair before; never of one that is in
    force."""

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
    """How many labels are corrected, and the revision they are at."""

    count: int
    revision: int


class Corrections(_Store):
    """The corrected labels."""

    def layer(self, dataset_id: str) -> Layer:
        """How many corrections are in force, and the number of the last entry of the log."""
        counted = "coalesce(sum(withdrawn = 0), 0), coalesce(max(revision), 0)"
        (row,) = self._asked(counted, f"revision IN ({_LATEST})", dataset_id)
        return Layer(*row)

    def revision(self, dataset_id: str) -> int:
        """The number of the last entry of the log; 0 where there is none."""
        (row,) = self._asked("coalesce(max(revision), 0)", _UNTIL, dataset_id)
        return int(row[0])

    def all(self, dataset_id: str, revision: int | None = None) -> list[Correction]:
        """What is in force, the latest first; as of a revision where one is given."""
        test = f"withdrawn = 0 AND revision IN ({_LATEST}) ORDER BY revision DESC"
        return list(map(_correction, self._asked("*", test, dataset_id, until=revision)))

    def log(self, dataset_id: str, after: int = 0, until: int | None = None) -> list[Correction]:
        """Every entry after a revision, and up to another one, those that were replaced or
        withdrawn too, the first first."""
        test = f"{_UNTIL} AND revision > :after ORDER BY revision"
        return list(map(_correction, self._asked("*", test, dataset_id, until=until, after=after)))

    def correct(self, dataset_id: str, pair: Pair, label: float | None, who: str) -> None:
        """Give a pair another label, or take its label away (None)."""
        self.take_in(dataset_id, [Correction(*pair, label, who, "")])

    def restore(self, dataset_id: str, corrections: Iterable[Correction]) -> None:
        """Put corrections in force again that were replaced or withdrawn."""
        self.take_in(dataset_id, [replace(each, made="", withdrawn=False) for each in corrections])

    def withdraw(self, dataset_id: str, pairs: Iterable[Pair]) -> None:
        """Let the pairs have the label again that came with the data."""
        self.take_in(dataset_id, [Correction(*pair, None, "", "", True) for pair in pairs])

    def take_in(self, dataset_id: str, corrections: Iterable[Correction]) -> None:
        """Add what people said, in this order and with their names. made: "" for now."""
        moment = now()
        with self._database.writing() as db:
            find(db, "datasets", dataset_id, "id")
            for each in corrections:
                signed = {"who": tidy_name(each.who), "made": each.made or moment}
                insert(db, "corrections", {"dataset_id": dataset_id, **vars(each), **signed})

    def _asked(
        self, columns: str, test: str, dataset_id: str, **more: int | None
    ) -> list[sqlite3.Row]:
        question = f"SELECT {columns} FROM corrections WHERE {test}"  # noqa: S608
        with self._database.reading() as db:
            values = {"dataset": dataset_id, "until": None, **more}
            return db.execute(question, values).fetchall()


def _correction(row: sqlite3.Row) -> Correction:
    return from_row(Correction, row, withdrawn=bool(row["withdrawn"]))


# Plans of what to label, who looks at which pair of query and document just now, and when people
# went on after a pause.
#
# What people answer is kept as corrections, so that it is in force everywhere at once; a plan names
# the revision of the log that it began at.

CARD_SECONDS = 600.0
"""How long a pair is kept for who looks at it, from when it was last shown."""

LONGEST_GUIDELINES = 10_000


@dataclass(frozen=True)
class StoredPlan:
    """settings: what the plan is made from, as the caller gave it; empty if they cannot be read.
    revision: of the corrections, when it began. created: ISO 8601 in UTC."""

    id: str
    dataset_id: str
    settings: Mapping[str, object]
    revision: int
    guidelines: str
    created: str


class LabelPlans(_Store):
    """The plans of what to label."""

    table = "label_plans"

    def newest(self, dataset_id: str) -> StoredPlan | None:
        """The plan that was begun last; None where there is none."""
        row = self._database.row(self.table, "rowid DESC", dataset_id=dataset_id)
        if row is None:
            return None
        try:
            settings = read_json(row, "settings", dict[str, Any])
        except StoreError:
            settings = {}
        return from_row(StoredPlan, row, settings=settings)

    def begin(self, dataset_id: str, settings: Mapping[str, object], guidelines: str) -> str:
        """Begin a plan at the labels of now; returns its id.

        Raises DataError where the guidelines are longer than `LONGEST_GUIDELINES` characters.
        """
        if len(guidelines) > LONGEST_GUIDELINES:
            raise DataError(
                "The guidelines have {length} characters; {most} are kept.",
                remedy="Shorten them, or write where they are to be found.",
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
        """Keep the first of the pairs that nobody else looks at for `owner`, and let go of the one
        that they had before; None where others look at all of them.

        owner: whom no other window has the name of. gone: whether the window of another owner is
        closed; what it had is free again.
        """
        moment = time.time()
        with self._database.writing() as db:
            db.execute(
                # One that is kept for longer than any was kept before the clock was set back.
                "DELETE FROM label_cards WHERE plan_id = ? "
                "AND (owner = ? OR until NOT BETWEEN ? AND ?)",
                (plan_id, owner, moment, moment + CARD_SECONDS),
            )
            rows = select(db, "label_cards", plan_id=plan_id)
            closed = {row["owner"] for row in rows if gone(row["owner"])}
            for each in closed:
                delete(db, "label_cards", plan_id=plan_id, owner=each)
            taken = {(row["query_id"], row["doc_id"]) for row in rows if row["owner"] not in closed}
            pair = next((pair for pair in pairs if pair not in taken), None)
            if pair is not None:
                card = {"plan_id": plan_id, "query_id": pair[0], "doc_id": pair[1]}
                insert(db, "label_cards", {**card, "owner": owner, "until": moment + CARD_SECONDS})
        return pair

    def resume(self, plan_id: str, who: str) -> None:
        """A person goes on after a pause now."""
        with self._database.writing() as db:
            if select(db, self.table, id=plan_id):
                pause = {"plan_id": plan_id, "who": tidy_name(who), "ended": now()}
                insert(db, "label_pauses", pause)

    def resumed(self, plan_id: str) -> dict[str, list[str]]:
        """Name → when this person went on after each pause, ISO 8601 in UTC."""
        times: dict[str, list[str]] = {}
        for row in self._database.rows("label_pauses", plan_id=plan_id):
            times.setdefault(row["who"], []).append(row["ended"])
        return times
