"""Rows of the workspace with any broken JSON: each page draws, shows the sound rows, names the
broken rows and offers to delete them."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.kit.widgets.view import MOST_COMPARED
from tests.broken import NEVER, WRONG, Words, broken
from tests.marked import json_in, text_columns, worked, written
from tests.ui.conftest import opened_at
from tests.ui.test_markup import nodes, texts
from tests.ui.test_sharing import EVERY, go

NAMED = ("runs", "jobs", "judges")
"""Tables with rows that have a name, and that a page lists."""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "home"
    worked(written(Workspace(folder), Words()))
    return folder


@pytest.fixture
def workspace(home, tmp_path) -> Iterator[Workspace]:
    with opened_at(shutil.copytree(home, tmp_path / "home")) as copied:
        yield copied


def json_columns(db) -> dict[tuple[str, str], str]:
    """Return (table, column) → the longest JSON in it, of columns with objects or lists."""
    found = {}
    for table, names in text_columns(db).items():
        for name in names:
            key = table, name
            for (text,) in db.execute(f"SELECT DISTINCT {name} FROM {table}").fetchall():
                if text and json_in(text) is not None and len(text) > len(found.get(key, "")):
                    found[key] = text
    return found


def add_like(workspace: Workspace, db: Any, table: str, row: dict[str, Any]) -> None:
    """Add a row; a run with a copy of its folder, a judge with a pair."""
    if "folder" in row:
        place = workspace.root / row["folder"]
        row["folder"] = f"{table}/{row['id']}-{place.name.rpartition('-')[2]}"
        shutil.copytree(place, workspace.root / row["folder"])
    names = ", ".join(row)
    places = ", ".join(f":{name}" for name in row)
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", row)
    if table == "judges":
        db.execute(
            "INSERT INTO judged_pairs (judge_id, query_id, doc_id) "
            "SELECT ?, query_id, doc_id FROM judged_pairs LIMIT 1",
            (row["id"],),
        )


@dataclass
class Added:
    """The broken rows. names: table → id → name. never: table → ids of rows that no version of
    rankdash wrote."""

    names: dict[str, dict[str, str]]
    never: dict[str, set[str]]


def add_rows(workspace: Workspace) -> Added:
    """Add a row for each way in which JSON of a sound one can be broken."""
    added = Added({table: {} for table in NAMED}, {table: set() for table in NAMED})
    with workspace.database.writing() as db:
        for (table, column), text in json_columns(db).items():
            # A row is sound whatever its description of a failure contains.
            if table not in NAMED or column == "problem":
                continue
            sound = db.execute(f"SELECT * FROM {table} WHERE {column} = ?", (text,)).fetchone()
            for n, (wrong, bad) in enumerate(broken(text)):
                name = f"{table} {column} {wrong}"
                own = {"id": f"{column}{n}", "name": name, column: bad}
                add_like(workspace, db, table, {**dict(sound), **own})
                added.names[table][own["id"]] = name
                if wrong in NEVER:
                    added.never[table].add(name)
    return added


LISTED = {"runs": EVERY, "jobs": ["run"], "judges": ["judge"]}
"""Table → the pages that name its broken rows."""


def test_pages_show_the_sound_rows_and_name_the_broken_ones_until_these_are_deleted(
    unfolded, workspace, sure
):
    rows = add_rows(workspace)
    for page in EVERY:
        go(unfolded, page)
        assert not unfolded.exception, page
        said = "\n".join(str(each.value) for each in unfolded.error).replace("\\", "")
        for table, pages in LISTED.items():
            named = {name for name in rows.never[table] if f"- {name}: " in said}
            assert named == (rows.never[table] if page in pages else set()), page
        sent = [text for node in nodes(unfolded) for _field, text in texts(node.proto)]
        assert "service" in json.dumps(sent), page
    for key, page in (("delete", "run"), ("jobs", "run"), ("judges", "judge")):
        go(unfolded, page)
        unfolded.button(key=f"damaged.{key}").click().run()
        assert not unfolded.exception
    with workspace.database.reading() as db:
        kept = {
            table: {row["name"] for row in db.execute(f"SELECT name FROM {table}")}
            for table in NAMED
        }
    for table, never in rows.never.items():
        assert not kept[table] & never
        assert kept[table] > {f"{table} settings one more"}
    assert not any("cannot be read" in str(each.value) for each in unfolded.error)


@pytest.mark.thorough
def test_rows_of_another_version_are_shown(unfolded, workspace):
    """Readable rows with a field that this version does not write, or without one that it does."""
    names = add_rows(workspace).names["runs"]
    readable = [each for each in names if workspace.damage("runs", each) is None]
    odd = [each for each in readable if not any(kind in names[each] for kind in ("odd", "emptied"))]
    # One run without its first setting represents the other runs without a field.
    chosen = [each for each in odd if "without" not in names[each]][: MOST_COMPARED - 1] + odd[:1]
    for page in ("overview", "latency", "history", "report", "cost", "run"):
        unfolded.query_params["system"] = chosen
        go(unfolded, page)
        assert not unfolded.exception, page
    for row in StoredJudges(workspace).rows():
        if "odd" not in row.name:
            go(unfolded, "judge", judge_shown=row.id)
            assert not unfolded.exception, row.name


def test_scenarios_that_cannot_be_read_are_deleted_once_that_is_confirmed(app, workspace, sure):
    workspace.set_setting("scenarios", NEVER["not JSON"])
    app.session_state["address.choices"] = {}
    go(app, "cost", part="scenarios")
    app.button(key="cost.scenarios.unread").click().run()
    assert not app.exception
    assert workspace.setting("scenarios") == ""


USUAL = ("all null", "not JSON")


@pytest.mark.parametrize(
    "wrong",
    [each if each in USUAL else pytest.param(each, marks=pytest.mark.thorough) for each in WRONG],
)
def test_each_page_draws_without_what_cannot_be_read(unfolded, workspace, wrong):
    with workspace.database.writing() as db:
        for (table, column), text in json_columns(db).items():
            bad = dict(broken(text)).get(wrong)
            if (table not in NAMED or column == "problem") and bad is not None:
                db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} != ''", (bad,))
    for page in EVERY:
        go(unfolded, page)
        assert not unfolded.exception, page
