"""Parts of keys that earlier versions stored are removed from the workspace, and nothing else."""

import json
import math
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

from rankdash.core.base.errors import StoreError, UnavailableError
from rankdash.core.workspace import Workspace, migrations
from rankdash.core.workspace.folders import DATABASE
from rankdash.core.workspace.jobs.leases import problem_to_json
from rankdash.core.workspace.jobs.queue import read_parts, write_part
from rankdash.core.workspace.migrations import clean
from rankdash.core.workspace.tables import read_frame, write_frame
from tests.store.builders import ask, version

BEFORE = migrations.MIGRATIONS.index(migrations.answers_without_credentials)
HEAD = "Zq7rack"
KEY = "Zq7rack-typed-by-hand-4711"


LOG = (b"\xff ERROR it refused the request (401): ", b". And so on.\nINFO all is well\n")


def cut(text, then=""):
    """Return the first 300 characters of an error, as the version before stored them."""
    return text[:300] + then


REASONS = [
    "The service answered 500: " + cut("x" * 270 + f' "Authorization": "Bearer {KEY}"', "."),
    "the service answered 400: " + cut("y" * 292 + " " + KEY, " (after 5 attempts)."),
    "The answer is not JSON: " + cut("z" * 280 + f' "x-api-key": "{KEY}"', "."),
    f"the service answered 401: no such key: Bearer {HEAD}",
]
HARMLESS = [
    "The service answered 500: out of memory (after 5 attempts).",
    *("no candidates", "第一个查询没有文本", ""),
]


def refusal(said):
    return problem_to_json(
        UnavailableError(
            "The service at {host} refused the request ({status}): {said}.",
            remedy="Check the key: {variable} in the environment, or the key you entered.",
            host="127.0.0.1:9",
            status=401,
            said=said,
            variable="COHERE_API_KEY",
        )
    )


@pytest.fixture
def old(tmp_path, monkeypatch, make_dataset, make_run):
    """The folder of a workspace of the version before, with parts of keys in many places."""
    root, dataset = tmp_path / "home", make_dataset()
    with monkeypatch.context() as older:
        older.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:BEFORE])
        workspace = Workspace.open(root)
    workspace.save_dataset(dataset)
    for run_id, reasons in (("one", REASONS), ("other", HARMLESS)):
        workspace.save_run(make_run(dataset, run_id))
        (folder,) = (root / "runs").glob(f"{run_id}-*")
        ids, pairs = [f"q{n}" for n in range(4)], [3.0, math.nan, 1.0, 2.0]
        queries = {"query_id": ids, "state": "failed", "reason": reasons, "pairs": pairs}
        write_frame(folder / "queries.parquet", pd.DataFrame(queries))
        calls = pd.DataFrame({"status": [500, 0], "error": reasons[:2]})
        write_frame(folder / "calls.parquet", calls)
    calls = json.dumps([{"error": REASONS[1], "server_ms": math.nan, "billed": {"tokens": 4.0}}])
    row = {
        "query_id": "q0", "state": "failed", "reason": REASONS[0], "scores": [], "latency_ms": 1.0,
        "index_ms": math.nan, "read": [], "full": [], "cached": 0, "calls": calls,
        "repeated_ms": [],
    }  # fmt: skip
    write_part(workspace, "job", [row])
    said = cut("w" * 289 + " " + KEY)
    for name in ("worker.log", "worker.log.1"):
        (root / name).write_bytes(LOG[0] + said.encode() + LOG[1])
    with workspace.database.writing() as db:
        for number, said in enumerate((cut("v" * 288 + " " + KEY), "no such model")):
            db.execute(
                "INSERT INTO jobs (id, dataset_id, name, reranker, settings, seed, state, problem,"
                " created, queued) VALUES (?, ?, 'n', 'endpoint', '{}', 7, 'failed', ?, '', '')",
                (f"job{number}", dataset.id, refusal(said)),
            )
        db.execute(
            "INSERT INTO explanations (id, run_id, query_id, doc_id, level, problem, queued)"
            " VALUES ('e', 'one', 'q0', 'd', 'term', ?, '')",
            (refusal(REASONS[3]),),
        )
    return root


def holding(root, text):
    """Return the files that contain the text; Parquet is compressed, so its columns are read. The
    reserve file consists of random bytes, which contain any short text now and then."""
    found = []
    for file in root.rglob("*"):
        if file.is_file() and not file.name.endswith("-reserve"):
            table = file.suffix == ".parquet"
            data = read_frame(file).to_csv().encode() if table else file.read_bytes()
            found += [file.name] if text.encode() in data else []
    return found


def files_of_run(root, run_id):
    (folder,) = (root / "runs").glob(f"{run_id}-*")
    return {file: (file.stat().st_ino, file.read_bytes()) for file in folder.iterdir()}


def test_what_is_left_of_keys_leaves_every_file_and_row_and_nothing_else_does(old):
    held = {"queries.parquet", "calls.parquet", "worker.log", DATABASE}
    assert held <= {*holding(old, HEAD)}
    harmless = files_of_run(old, "other")
    workspace = Workspace.open(old)
    assert holding(old, HEAD[:3]) == []
    # Files without a key are not written again.
    assert files_of_run(old, "other") == harmless
    reasons = workspace.run("one").queries["reason"]
    assert all("•••" in reason for reason in reasons)
    assert reasons[0].startswith("The service answered 500: xxxx")
    assert reasons[1].endswith(" (after 5 attempts).")
    assert workspace.run("one").queries["pairs"][0] == 3.0
    (part,) = read_parts(workspace, "job").to_dict("records")
    (call,) = json.loads(part["calls"])
    assert call["billed"] == {"tokens": 4.0}
    for name in ("worker.log", "worker.log.1"):
        hidden = cut("w" * 289 + " ").encode() + "•••".encode()
        assert (old / name).read_bytes() == LOG[0] + hidden + LOG[1]
    kept = ask(old / DATABASE, "SELECT problem FROM jobs ORDER BY id")
    assert json.loads(kept[0])["params"]["said"].endswith("v •••")
    assert kept[1] == refusal("no such model")


def test_what_is_clean_stays_and_what_follows_a_cut_tells_where_it_was():
    for reason in (*HARMLESS, *map(clean, REASONS)):
        assert clean(reason) == reason
    said = "The service answered 500: " + "v" * 292 + " "
    for end in (".", " (after 5 attempts).", ""):
        assert clean(f"{said}{HEAD}{end}") == f"{said}•••{end}"


def test_a_damaged_file_keeps_no_one_out(old):
    (file,) = old.glob("runs/one-*/queries.parquet")
    file.write_bytes(b"no table")
    workspace = Workspace.open(old)
    assert file.read_bytes() == b"no table"
    assert [row.id for row in workspace.runs()] == ["one", "other"]


def test_what_was_interrupted_is_done_again(old, monkeypatch):
    def full(file, table):
        raise StoreError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(migrations, "write_table", full)
        with pytest.raises(StoreError, match="no room"):
            Workspace.open(old)
    assert version(old) == BEFORE
    Workspace.open(old)
    assert holding(old, HEAD) == []


def test_a_head_is_hidden_if_a_text_was_cut_there_and_nowhere_else():
    with closing(sqlite3.connect(":memory:")) as db:
        for table in ("jobs", "explanations"):
            db.execute(f"CREATE TABLE {table} (id, problem)")
        for length in (299, 300, 301):
            said = refusal("v" * (length - 8) + " " + HEAD)
            db.execute("INSERT INTO jobs VALUES (?, ?)", (length, said))
        migrations.clean_rows(db)
        rows = db.execute("SELECT id, problem FROM jobs ORDER BY id")
        assert [json.loads(each)["params"]["said"] for _length, each in rows] == [
            "v" * (length - 8) + (" •••" if length == 300 else f" {HEAD}")
            for length in (299, 300, 301)
        ]
