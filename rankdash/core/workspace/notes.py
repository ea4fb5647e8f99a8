"""What people write beside a data set and its runs: corrected labels, notes, the pinned baseline,
plans of what to label. Each goes with its data set or run."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankdash.core.base.errors import DataError, StoreError
from rankdash.core.workspace.database import now, read_json
from rankdash.core.workspace.failures import dataset_of_run, refuse_unknown
from rankdash.core.workspace.workspace import Workspace

# Labels that an analyst corrected: a layer over a data set, which itself is never changed.
#
# It is a log. What was said of a pair last is in force, unless it was withdrawn, and the number of
# the last entry is the revision of the layer: the labels of any revision can be had again.

Pair = tuple[str, str]
LONGEST_NAME = 80


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


class Corrections:
    """The corrections of a workspace; they go with their data set. Every method raises StoreError
    where the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def layer(self, dataset_id: str) -> Layer:
        """How many corrections are in force, and the number of the last entry of the log."""
        with self._database.reading() as db:
            found = db.execute(
                """
                SELECT coalesce(sum(withdrawn = 0), 0) AS count,
                       coalesce(max(revision), 0) AS revision
                FROM corrections WHERE revision IN (
                    SELECT max(revision) FROM corrections WHERE dataset_id = ?
                    GROUP BY query_id, doc_id
                )
                """,
                (dataset_id,),
            ).fetchone()
        return Layer(int(found["count"]), int(found["revision"]))

    def revision(self, dataset_id: str) -> int:
        """The number of the last entry of the log; 0 where there is none."""
        with self._database.reading() as db:
            found = db.execute(
                "SELECT coalesce(max(revision), 0) FROM corrections WHERE dataset_id = ?",
                (dataset_id,),
            ).fetchone()
        return int(found[0])

    def all(self, dataset_id: str, revision: int | None = None) -> list[Correction]:
        """What is in force, the latest first; as of a revision where one is given."""
        with self._database.reading() as db:
            rows = db.execute(
                """
                SELECT * FROM corrections WHERE withdrawn = 0 AND revision IN (
                    SELECT max(revision) FROM corrections
                    WHERE dataset_id = :dataset AND (:last IS NULL OR revision <= :last)
                    GROUP BY query_id, doc_id
                ) ORDER BY revision DESC
                """,
                {"dataset": dataset_id, "last": revision},
            )
            return [_correction(row) for row in rows]

    def log(self, dataset_id: str, after: int = 0, until: int | None = None) -> list[Correction]:
        """Every entry after a revision, and up to another one, those that were replaced or
        withdrawn too, the first first."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT * FROM corrections WHERE dataset_id = :dataset AND revision > :after "
                "AND (:until IS NULL OR revision <= :until) ORDER BY revision",
                {"dataset": dataset_id, "after": after, "until": until},
            )
            return [_correction(row) for row in rows]

    def correct(self, dataset_id: str, pair: Pair, label: float | None, who: str) -> None:
        """Give a pair another label, or take its label away (None)."""
        self._add(dataset_id, [(pair, False, label)], who)

    def restore(self, dataset_id: str, corrections: Iterable[Correction]) -> None:
        """Put corrections in force again that were replaced or withdrawn."""
        for who, entries in _by_name(corrections).items():
            self._add(dataset_id, entries, who)

    def take_in(self, dataset_id: str, corrections: Iterable[Correction]) -> None:
        """Add what people said elsewhere, in this order and with their names. made: "" for now."""
        moment = now()
        with self._database.writing() as db:
            refuse_unknown(db, dataset_id)
            db.executemany(
                "INSERT INTO corrections (dataset_id, query_id, doc_id, withdrawn, label, who, "
                "made) VALUES (?, ?, ?, 0, ?, ?, ?)",
                [
                    (dataset_id, *each.pair, each.label, tidy_name(each.who), each.made or moment)
                    for each in corrections
                ],
            )

    def withdraw(self, dataset_id: str, pairs: Iterable[Pair]) -> None:
        """Let the pairs have the label again that came with the data."""
        self._add(dataset_id, [(pair, True, None) for pair in pairs], "")

    def _add(
        self, dataset_id: str, entries: list[tuple[Pair, bool, float | None]], who: str
    ) -> None:
        made, name = now(), tidy_name(who)
        with self._database.writing() as db:
            refuse_unknown(db, dataset_id)
            db.executemany(
                "INSERT INTO corrections (dataset_id, query_id, doc_id, withdrawn, label, who, "
                "made) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (dataset_id, *pair, int(withdrawn), label, name, made)
                    for pair, withdrawn, label in entries
                ],
            )


def _correction(row: sqlite3.Row) -> Correction:
    pair = row["query_id"], row["doc_id"]
    return Correction(*pair, row["label"], row["who"], row["made"], bool(row["withdrawn"]))


def tidy_name(who: str) -> str:
    """A person's name as it is kept."""
    return " ".join(who.split())[:LONGEST_NAME]


def _by_name(
    corrections: Iterable[Correction],
) -> dict[str, list[tuple[Pair, bool, float | None]]]:
    found: dict[str, list[tuple[Pair, bool, float | None]]] = {}
    for each in corrections:
        found.setdefault(each.who, []).append((each.pair, False, each.label))
    return found


# What an analyst remarks on a query: tags and a note, by data set and query.

MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTE = 4_000


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


class Notes:
    """The notes of a workspace; they go with their data set. Every method raises StoreError where
    the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def all(self, dataset_id: str) -> list[Note]:
        """Every note of a data set, by query id."""
        with self._database.reading() as db:
            return [
                _note(row)
                for row in db.execute(
                    "SELECT * FROM notes WHERE dataset_id = ? ORDER BY query_id", (dataset_id,)
                )
            ]

    def of(self, dataset_id: str, query_id: str) -> Note:
        """The note of one query; an empty one where there is none."""
        with self._database.reading() as db:
            row = db.execute(
                "SELECT * FROM notes WHERE dataset_id = ? AND query_id = ?", (dataset_id, query_id)
            ).fetchone()
        return _note(row) if row is not None else Note(query_id)

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
        with self._database.writing() as db:
            refuse_unknown(db, dataset_id)
            if note.tags or note.text:
                db.execute(
                    "INSERT OR REPLACE INTO notes "
                    "(dataset_id, query_id, tags, note, changed, who) VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        *(dataset_id, query_id, json.dumps(note.tags)),
                        *(note.text, note.changed, note.who),
                    ),
                )
            else:
                db.execute(
                    "DELETE FROM notes WHERE dataset_id = ? AND query_id = ?",
                    (dataset_id, query_id),
                )
        return note


def tidy(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags, each once whatever its case, blanks made single, empty ones left out."""
    found: dict[str, str] = {}
    for tag in tags:
        clean = " ".join(tag.split())
        if clean:
            found.setdefault(clean.casefold(), clean)
    return tuple(found.values())


def tags_in_use(notes: Sequence[Note]) -> list[str]:
    """Every tag of the notes once, in alphabetical order."""
    return sorted(tidy(tag for note in notes for tag in note.tags), key=str.casefold)


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
    refuse_long(note.text)


def refuse_long(text: str) -> None:
    """Raises DataError for a note of more than `LONGEST_NOTE` characters."""
    if len(text) > LONGEST_NOTE:
        raise DataError(
            "A note can have at most {most} characters.", remedy="Shorten it.", most=LONGEST_NOTE
        )


def _note(row: sqlite3.Row) -> Note:
    tags, unread = tags_of(row)
    return Note(row["query_id"], tags, row["note"], row["changed"], row["who"], unread)


def tags_of(row: Mapping[str, Any] | sqlite3.Row) -> tuple[tuple[str, ...], StoreError | None]:
    """The tags of a row; none, and why, where they cannot be read."""
    try:
        return read_json(row, "tags", tuple[str, ...]), None
    except StoreError as error:
        return (), error


# What an analyst writes about a run: what changed, and why it was made.


@dataclass(frozen=True)
class RunNote:
    """The note on one run. `changed` is ISO 8601 in UTC, "" where there is none; `who` is "" where
    nobody was logged in."""

    run_id: str
    text: str = ""
    changed: str = ""
    who: str = ""


class RunNotes:
    """The notes on the runs of a workspace; each goes with its run. Every method raises StoreError
    where the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def all(self, dataset_id: str) -> dict[str, RunNote]:
        """Run id → its note, for the runs of a data set that have one."""
        with self._database.reading() as db:
            return {
                row["run_id"]: _run_note(row)
                for row in db.execute("SELECT * FROM run_notes WHERE dataset_id = ?", (dataset_id,))
            }

    def of(self, run_id: str) -> RunNote:
        """The note on one run; an empty one where there is none."""
        with self._database.reading() as db:
            row = db.execute("SELECT * FROM run_notes WHERE run_id = ?", (run_id,)).fetchone()
        return _run_note(row) if row is not None else RunNote(run_id)

    def keep(self, run_id: str, text: str, who: str = "") -> RunNote:
        """Replace the note on a run; without a word there is none. Returns it as it is kept. who:
        the name it is signed with.

        Raises DataError where it is longer than `notes.LONGEST_NOTE` characters, and StoreError
        where there is no such run.
        """
        note = RunNote(run_id, text.strip(), now(), tidy_name(who))
        refuse_long(note.text)
        with self._database.writing() as db:
            dataset_id = dataset_of_run(db, run_id)
            if not note.text:
                db.execute("DELETE FROM run_notes WHERE run_id = ?", (run_id,))
                return RunNote(run_id)
            db.execute(
                "INSERT OR REPLACE INTO run_notes (run_id, dataset_id, note, changed, who) "
                "VALUES (?, ?, ?, ?, ?)",
                (run_id, dataset_id, note.text, note.changed, note.who),
            )
        return note


def _run_note(row: sqlite3.Row) -> RunNote:
    return RunNote(row["run_id"], row["note"], row["changed"], row["who"])


# What people remark on a pair of query and document while they label.

LONGEST_LABEL_NOTE = 500


class LabelNotes:
    """The remarks of a workspace; they go with their data set. Every method raises StoreError where
    the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def of(self, dataset_id: str, pair: Pair, who: str) -> str:
        """What a person remarked on a pair; "" where that is nothing."""
        with self._database.reading() as db:
            row = db.execute(
                "SELECT * FROM label_notes WHERE dataset_id = ? AND query_id = ? AND doc_id = ? "
                "AND who = ?",
                (dataset_id, *pair, tidy_name(who)),
            ).fetchone()
        return "" if row is None else str(row["note"])

    def all(self, dataset_id: str) -> dict[Pair, dict[str, str]]:
        """Pair → name → what this person remarked; names in order."""
        found: dict[Pair, dict[str, str]] = {}
        with self._database.reading() as db:
            for row in db.execute(
                "SELECT * FROM label_notes WHERE dataset_id = ? ORDER BY who", (dataset_id,)
            ):
                found.setdefault((row["query_id"], row["doc_id"]), {})[row["who"]] = row["note"]
        return found

    def keep(self, dataset_id: str, pair: Pair, who: str, note: str) -> None:
        """Replace what a person remarked on a pair, up to `LONGEST_LABEL_NOTE` characters in one
        line; nothing takes it away."""
        text = " ".join(note.split())[:LONGEST_LABEL_NOTE]
        with self._database.writing() as db:
            refuse_unknown(db, dataset_id)
            db.execute(
                "DELETE FROM label_notes WHERE dataset_id = ? AND query_id = ? AND doc_id = ? "
                "AND who = ?",
                (dataset_id, *pair, tidy_name(who)),
            )
            if text:
                db.execute(
                    "INSERT INTO label_notes (dataset_id, query_id, doc_id, who, note) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (dataset_id, *pair, tidy_name(who), text),
                )


# The run of a data set that others are compared with by default: its pinned baseline.


class Pins:
    """The pinned baselines of a workspace, one a data set; a pin goes with its run. Every method
    raises StoreError where the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def of(self, dataset_id: str) -> str | None:
        """The id of the pinned run; None where the first stage is the baseline."""
        with self._database.reading() as db:
            row = db.execute(
                "SELECT run_id FROM pins WHERE dataset_id = ?", (dataset_id,)
            ).fetchone()
        return None if row is None else str(row["run_id"])

    def pin(self, run_id: str) -> None:
        """Make a run the baseline of its data set, in place of the one that was.

        Raises StoreError where there is no such run.
        """
        with self._database.writing() as db:
            dataset_id = dataset_of_run(db, run_id)
            db.execute(
                "INSERT OR REPLACE INTO pins (dataset_id, run_id, pinned) VALUES (?, ?, ?)",
                (dataset_id, run_id, now()),
            )

    def unpin(self, dataset_id: str) -> None:
        """Let the first stage be the baseline again; nothing happens where it is."""
        with self._database.writing() as db:
            db.execute("DELETE FROM pins WHERE dataset_id = ?", (dataset_id,))


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


class LabelPlans:
    """The plans of a workspace; each goes with its data set. Every method raises StoreError where
    the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def newest(self, dataset_id: str) -> StoredPlan | None:
        """The plan that was begun last; None where there is none."""
        with self._database.reading() as db:
            row = db.execute(
                "SELECT * FROM label_plans WHERE dataset_id = ? ORDER BY rowid DESC LIMIT 1",
                (dataset_id,),
            ).fetchone()
        if row is None:
            return None
        kept = {name: row[name] for name in StoredPlan.__dataclass_fields__}
        try:
            settings = read_json(row, "settings", dict[str, Any])
        except StoreError:
            settings = {}
        return StoredPlan(**{**kept, "settings": settings})

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
            refuse_unknown(db, dataset_id)
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
            rows = db.execute(
                "SELECT query_id, doc_id, owner FROM label_cards WHERE plan_id = ?", (plan_id,)
            ).fetchall()
            closed = {row["owner"] for row in rows if gone(row["owner"])}
            db.executemany(
                "DELETE FROM label_cards WHERE plan_id = ? AND owner = ?",
                [(plan_id, each) for each in closed],
            )
            taken = {(row["query_id"], row["doc_id"]) for row in rows if row["owner"] not in closed}
            pair = next((pair for pair in pairs if pair not in taken), None)
            if pair is not None:
                db.execute(
                    "INSERT INTO label_cards (plan_id, query_id, doc_id, owner, until) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (plan_id, *pair, owner, moment + CARD_SECONDS),
                )
        return pair

    def resume(self, plan_id: str, who: str) -> None:
        """A person goes on after a pause now."""
        with self._database.writing() as db:
            db.execute(
                "INSERT INTO label_pauses (plan_id, who, ended) SELECT id, ?, ? FROM label_plans "
                "WHERE id = ?",
                (tidy_name(who), now(), plan_id),
            )

    def resumed(self, plan_id: str) -> dict[str, list[str]]:
        """Name → when this person went on after each pause, ISO 8601 in UTC."""
        found: dict[str, list[str]] = {}
        with self._database.reading() as db:
            for row in db.execute(
                "SELECT who, ended FROM label_pauses WHERE plan_id = ? ORDER BY rowid", (plan_id,)
            ):
                found.setdefault(row["who"], []).append(row["ended"])
        return found
