"""Large files: a process reads and stores them, reports its progress, and removes its files."""

import errno
import io
import itertools
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdash.core.base import errors
from rankdash.core.intake import __main__ as own
from rankdash.core.intake import reading as intake_reading
from rankdash.core.intake.reading import (
    ANSWER,
    LARGE_BYTES,
    PROGRESS,
    REQUEST,
    Progress,
    Reading,
    StoreOutcome,
    answer_of,
    claim,
    guessed,
    imported,
    is_large,
    outcome_of,
    store_loaded,
    tried,
)
from rankdash.core.readers import (
    BaselineNeeded,
    MappingNeeded,
    NumbersNeeded,
    Source,
    WordsNeeded,
    guesses,
)
from rankdash.core.readers.loading import load
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import archive, import_workspace
from rankdash.core.workspace.workspace_file.archive import Packer
from tests import marked

ROWS = "query,document,label\n" + "".join(
    f"query {q},text {q} {d},{(q + d) % 3}\n" for q in range(3) for d in range(3)
)


@pytest.fixture
def asked(tmp_path: Path, workspace: Workspace) -> Path:
    """The folder of a request, as `Reading` writes it, for a call without a process."""
    folder = tmp_path / "asked"
    folder.mkdir()
    (folder / "0").write_text(ROWS)
    request = {
        "task": "read",
        "limits": {},
        "workspace": str(workspace.root),
        "files": [{"name": "shop.csv", "origin": "", "notes": []}],
        "name": None,
        "retrieval": None,
        "choices": {},
    }
    (folder / REQUEST).write_text(json.dumps(request))
    return folder


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[intake_reading.Process]:
    """The processes that are started; no earlier one waits."""
    found = []

    def noted() -> intake_reading.Process:
        found.append(made())
        return found[-1]

    intake_reading.take().kill()
    made = intake_reading.Process
    monkeypatch.setattr(intake_reading, "Process", noted)
    return found


def requests() -> list[Path]:
    """Return the folders of the requests to processes."""
    return [each for each in intake_reading.uploads_folder().iterdir() if each.is_dir()]


def shop() -> list[Source]:
    return [Source("shop.csv", ROWS.encode())]


def many(rows: int) -> bytes:
    """Return a file that takes memory to read."""
    return b"query,document,label\n" + b"".join(b'"q%d",d%d,1\n' % (n, n) for n in range(rows))


def refused_of_memory(file: str, read: Callable[[], object]) -> None:
    with pytest.raises(errors.LimitError, match="memory") as refused:
        read()
    assert refused.value.file == file and "RANKDASH_MAX_MEMORY_BYTES" in str(refused.value)


def test_from_twenty_megabytes_on_files_are_large_and_packed_ones_ten_times_sooner():
    half = b"x" * (LARGE_BYTES // 2)
    assert not is_large([Source("a.csv", half)])
    assert is_large([Source("a.csv", half), Source("b.csv", half)])
    assert is_large([Source("a.csv.gz", b"\x1f\x8b" + bytes(LARGE_BYTES // 10))])


def test_what_is_stored_equals_what_is_read_here_and_each_step_is_said(
    workspace, asked, monkeypatch
):
    said = []

    def noted(step, rows, seconds_left):
        said.append((step, rows))
        return Progress(step, rows, seconds_left)

    monkeypatch.setattr(own, "Progress", noted)
    own.main(asked)

    expected = load(shop())
    assert outcome_of((asked / ANSWER).read_text()) == StoreOutcome(expected.dataset.id)
    [row] = workspace.datasets()
    assert (row.name, workspace.dataset(row.id)) == ("shop", expected.dataset)
    assert workspace.check_report(row.id) == expected.report.to_json()
    # The number of rows is known before they are joined.
    assert said == [("joining", 9), ("checking", 9), ("storing", 9)]
    last = {"step": "storing", "rows": 9, "seconds_left": None}
    assert json.loads((asked / PROGRESS).read_text()) == last


def test_what_was_cancelled_before_it_stores_stores_nothing(workspace, asked):
    assert claim(asked)
    own.main(asked)
    assert not (asked / ANSWER).exists()
    assert workspace.datasets() == []


def plain(value: object) -> object:
    """Return a value that can be compared; a tuple comes back as a list."""
    match value:
        case errors.RankdashError():
            return type(value), str(value), plain(vars(value))
        case errors.Phrase():
            return value.template, plain(value.params)
        case pd.DataFrame():
            return value.to_dict("list")
        case Mapping():
            return {name: plain(each) for name, each in value.items()}
        case list() | tuple():
            return [*map(plain, value)]
    return value


RUN = "q1 Q0 d1 1 2.0 x\nq1 Q0 d2 2 1.0 x\n"


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        (MappingNeeded, {"daten": ROWS.replace("query,document,label", "wer,was,gut", 1)}),
        (WordsNeeded, {"shop": ROWS.translate({48: "Exact", 49: "Meh", 50: "Partial"})}),
        (NumbersNeeded, {"x": '[{"retrieved": [3, 1], "relevant": [0, 1]}]'}),
        (BaselineNeeded, {"qrels": "q1 0 d1 1\n", "run_a": RUN, "run_b": RUN}),
        (errors.FormatError, {"broken": 'query,document,label\n"a gift,one,1\n'}),
    ],
)
def test_questions_and_errors_come_back_as_they_were(kind, files):
    with pytest.raises(kind) as raised:
        load([Source(f"{name}.csv", text.encode()) for name, text in files.items()], ask=True)
    other = errors.DataError("No {what}.", file="b.csv", what=errors.Phrase("rows of {n}", n=2))
    for each in (raised.value, errors.RefusedFilesError([raised.value, other])):
        assert plain(outcome_of(answer_of(each))) == plain(each)


def test_a_process_reads_stores_and_does_what_comes_next_until_a_file_is_large(
    workspace, monkeypatch, started
):
    reading = Reading(workspace, shop(), name="Shop")
    assert len(requests()) == 1
    assert reading.result() == StoreOutcome(workspace.datasets()[0].id)
    assert workspace.datasets()[0].name == "Shop"
    assert not reading.running and requests() == []
    assert Reading(workspace, shop()).result().was_here
    assert [row.name for row in workspace.datasets()] == ["Shop"]
    tried(shop())
    for source in (Source("a.gz", b"\x1f\x8b\x08"), Source("b.parquet", b"PAR1" + bytes(99))):
        with pytest.raises(errors.FormatError, match="damaged or truncated") as refused:
            tried([source])
        assert refused.value.file == source.name
    with monkeypatch.context() as limited:
        # The server's limits apply.
        limited.setenv("RANKDASH_MAX_ROWS", "3")
        for read in (lambda: Reading(workspace, shop()).result(), lambda: tried(shop())):
            with pytest.raises(errors.LimitError, match="more than 3 rows"):
                read()
        limited.setenv("RANKDASH_MAX_ROWS", "many")
        assert guessed(shop(), 1_000_000) == []
    sources = [*shop(), Source("broken.gz", b"\x1f\x8b\x08")]
    [guess], [here] = guessed(sources, 1_000_000), guesses(sources, 1_000_000)
    for name in ("file", "columns", "fields", "labels"):
        assert getattr(guess, name) == getattr(here, name)
    assert guess.rows.equals(here.rows)
    assert [each.running for each in started] == [True]
    monkeypatch.setattr("rankdash.core.intake.reading.LARGE_BYTES", 1)
    Reading(workspace, shop()).result()
    assert [each.running for each in started] == [False]
    # After a preview of large files a process waits for them.
    assert len(guessed(shop(), 1_000_000)) == 1
    assert [each.fresh for each in started] == [False, False, True]
    assert intake_reading.take() is started[2]
    started[2].kill()


def test_what_is_cancelled_left_or_dies_ends_the_process_and_stores_nothing(workspace, started):
    reading = Reading(workspace, shop())
    reading.cancel()
    assert reading.cancelled and not reading.running
    left = Reading(workspace, shop())
    assert [each.running for each in started] == [False, True]
    del left
    assert [each.running for each in started] == [False, False] and requests() == []
    reading = Reading(workspace, shop())
    started[2].stop()
    with pytest.raises(errors.DataError, match="possibly because it was out of memory"):
        reading.result()
    assert requests() == [] and workspace.datasets() == []
    assert list((workspace.root / "datasets").glob("*")) == []


def test_one_process_waits_until_it_is_old_or_dies_and_no_guess_waits_for_long(
    monkeypatch, started
):
    intake_reading.warm()
    intake_reading.warm()
    waiting, other = intake_reading.take(), intake_reading.take()
    assert started == [waiting, other] and waiting.running and other.running
    intake_reading.give_back(waiting)
    intake_reading.give_back(other)
    assert [each.running for each in started] == [True, False]
    now = time.monotonic
    with monkeypatch.context() as later:
        later.setattr(time, "monotonic", lambda: now() + intake_reading.IDLE_SECONDS)
        intake_reading.give_back(intake_reading.take())
        assert [each.running for each in started] == [False, False, True]
    started[2].stop()
    seconds = itertools.count(now(), 100)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    assert guessed(shop(), 1_000_000) == []
    assert not started[3].running


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
@pytest.mark.parametrize("megabytes", [100, 1])
def test_more_memory_than_is_allowed_is_an_error_that_says_how_to_allow_more(
    workspace, tmp_path, monkeypatch, megabytes
):
    """Also if the remaining memory is so small that the process dies."""
    monkeypatch.setenv("RANKDASH_MAX_MEMORY_BYTES", str(megabytes * 1_000_000))
    intake_reading.take().kill()
    sources = [Source("shop.csv", many(200_000))]
    refused_of_memory("shop.csv", lambda: Reading(workspace, sources).result())
    assert workspace.datasets() == []
    if megabytes == 100:
        store_loaded(workspace, load([Source("mine.csv", ROWS.encode())]))
        source, other = Source("w.zip", bomb(workspace)), Workspace.open(tmp_path / "other")
        assert source.size < 1_000_000
        monkeypatch.setenv("RANKDASH_MAX_MEMORY_BYTES", "400_000_000")
        intake_reading.take().kill()
        refused_of_memory("w.zip", lambda: imported(other, source, lambda *_of: None))
        assert other.datasets() == []
    # The server still reads the next file.
    monkeypatch.delenv("RANKDASH_MAX_MEMORY_BYTES")
    intake_reading.take().kill()
    assert Reading(workspace, shop()).result() is not None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_what_the_server_reads_itself_is_tried_with_a_part_of_the_memory(monkeypatch, started):
    monkeypatch.setenv("RANKDASH_MAX_MEMORY_BYTES", "800_000_000")
    sources = [Source("shop.csv", many(200_000))]
    refused_of_memory("shop.csv", lambda: tried(sources))
    # The next reading may use all of the memory.
    [guess] = guessed(sources, sources[0].size)
    assert len(started) == 1 and len(guess.rows)
    intake_reading.take().kill()


def test_where_there_is_no_room_for_the_files_it_is_said(workspace, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("rankdash.core.intake.reading.uploads_folder", lambda: temporary)

    def full(_path, _data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    source = Source("shop.csv", bytes(5_000_000))
    for ask in (lambda: Reading(workspace, [source]), lambda: tried([source])):
        with pytest.raises(
            errors.DataError, match=r"No space left on device.*Free 6 MB"
        ) as refused:
            ask()
        assert refused.value.file == "shop.csv"
    assert list(temporary.iterdir()) == []


def test_a_workspace_file_is_brought_in_by_the_process_as_here(workspace, tmp_path):
    stored = store_loaded(workspace, load([Source("mine.csv", ROWS.encode())])).dataset_id
    out = io.BytesIO()
    archive.export(workspace, out, "1")
    source = Source("w.zip", out.getvalue())
    here = import_workspace.bring_in(
        Workspace.open(tmp_path / "here"), io.BytesIO(source.data), "w.zip"
    )
    other = Workspace.open(tmp_path / "other")
    assert imported(other, source, lambda *_of: None) == here
    assert other.dataset(stored) == workspace.dataset(stored)

    other.rename_dataset(stored, "theirs")
    again = imported(other, source, lambda *_of: None)
    [finding] = again.findings
    assert finding.text == "The data set mine is called theirs here and keeps this name."
    assert again.added["datasets"] == 0

    with pytest.raises(errors.FormatError, match="not a workspace file") as refused:
        imported(other, Source("x.zip", b"no zip"), lambda *_of: None)
    assert refused.value.file == "x.zip"


def bomb(workspace: Workspace) -> bytes:
    """Return a workspace file with a table that repeats a text until it exceeds the memory."""
    parts, table, out = marked.exported(workspace), io.BytesIO(), io.BytesIO()
    texts = pa.DictionaryArray.from_arrays(np.zeros(300_000, dtype=np.int8), pa.array(["x" * 9999]))
    pq.write_table(pa.table({"doc_id": texts, "title": texts, "text": texts}), table)
    head, packer = json.loads(parts.pop("manifest.json")), Packer(out)
    for name, content in parts.items():
        packer.add(name, table.getvalue() if name.endswith("documents.parquet") else content)
    packer.close({name: value for name, value in head.items() if name != "parts"})
    return out.getvalue()
