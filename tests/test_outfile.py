"""A file is replaced only after the new one is complete."""

import errno
import os
import threading
import zipfile

import pytest

from rankdash.core.base import files
from rankdash.core.base.errors import DataError
from tests.full_disk import room_for


def test_an_error_leaves_no_file_and_the_rights_of_one_and_the_link_to_it_stay(tmp_path):
    with pytest.raises(KeyError), files.replacing(tmp_path / "a.csv") as stream:
        stream.write(b"half")
        raise KeyError
    assert [*tmp_path.iterdir()] == []
    file, link = tmp_path / "a.csv", tmp_path / "link"
    file.write_bytes(b"before")
    file.chmod(0o640)
    link.symlink_to(file)
    files.write(link, b"after")
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"after", 0o640)


def test_a_pipe_stays_a_pipe(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    files.write(pipe, b"through")
    reader.join()
    assert read == [b"through"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("code", sorted(files.FULL))
def test_a_full_disk_is_told_with_the_file(tmp_path, code):
    file = tmp_path / "a.csv"
    with pytest.raises(DataError) as caught, files.replacing(file):
        raise OSError(code, "full")
    assert str(caught.value).startswith(f"{file}: Not enough disk space")


def at_once(stream):
    stream.write(bytes(3_200_000))


def line_by_line(stream):
    stream.writelines(b"x" * 31 + b"\n" for _ in range(100_000))
    assert stream.tell() == 3_200_000


def a_zip(stream):
    """Write a zip, which seeks back to write the size of each part."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("a", "b"):
            with archive.open(name, "w") as part:
                part.write(bytes(1_599_000))


@pytest.mark.parametrize("make", [at_once, line_by_line, a_zip])
@pytest.mark.parametrize("room", [0, 20_000, 2_000_000])
def test_the_room_that_a_file_needs_is_told_however_it_is_written(tmp_path, make, room):
    file = tmp_path / "a.csv"
    file.write_bytes(b"before")
    with room_for(room), pytest.raises(DataError) as caught, files.replacing(file) as stream:
        make(stream)
    assert "3.2 MB are needed" in str(caught.value)
    assert str(caught.value).startswith(f"{file}: Not enough disk space")
    assert file.read_bytes() == b"before" and len([*tmp_path.iterdir()]) == 1
    with files.replacing(file) as stream:
        make(stream)
    assert 3_100_000 < file.stat().st_size <= 3_200_000


@pytest.mark.parametrize(("room", "entries"), [(1_000, 0), (1_099, 0), (1_350, 3), (1_999, 9)])
def test_entries_that_fit_are_appended_whole_and_the_first_that_does_not_is_an_error(
    tmp_path, room, entries
):
    file = tmp_path / "a.jsonl"
    before, each = b"b" * 999 + b"\n", b"e" * 99 + b"\n"
    file.write_bytes(before)
    with room_for(room), pytest.raises(DataError) as caught:
        files.append(file, [each] * 10)
    assert file.read_bytes() == before + each * entries
    assert str(caught.value).startswith(f"{file}: Not enough disk space")
    assert caught.value.remedy.startswith("Free some space")
    files.append(file, [each] * 10)
    assert file.read_bytes() == before + each * (entries + 10)


@pytest.mark.parametrize("line", [b"half", b"h" * 200_000])
def test_a_line_without_its_end_is_removed_before_more_is_appended(tmp_path, line):
    file = tmp_path / "a.jsonl"
    for before in (b"one\n", b""):
        file.write_bytes(before + line)
        files.append(file, [b"two\n"])
        assert file.read_bytes() == before + b"two\n"


def test_what_is_appended_or_written_is_on_the_disk(tmp_path, monkeypatch):
    """An error that occurs when the data is written to the disk is raised, and the file is the old
    one."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"one\n")

    def fail(_descriptor):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    for write in (lambda: files.append(file, [b"two\n"]), lambda: files.write(file, b"two\n")):
        with pytest.raises(OSError, match="Input/output error") as caught:
            write()
        assert caught.value.filename == str(file)
        assert file.read_bytes() == b"one\n"
    assert len([*tmp_path.iterdir()]) == 1


def test_a_new_file_is_whole_or_not_there_and_replaces_none(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        files.write(tmp_path / "gone" / "a.csv", b"")
    # Of the requested file, not of the temporary one.
    assert caught.value.filename == str(tmp_path / "gone" / "a.csv")
    file = tmp_path / "a.jsonl"
    with room_for(1_000), pytest.raises(DataError, match="Not enough disk space"):
        files.create(file, bytes(2_000))
    assert not file.exists()
    files.create(file, b"one\n")
    with pytest.raises(FileExistsError):
        files.create(file, b"two\n")
    assert file.read_bytes() == b"one\n"
