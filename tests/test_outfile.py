"""A file that is written takes the place of the one before it when it is whole."""

import errno
import os
import threading
import zipfile
from contextlib import contextmanager

import pytest

from rankdash import outfile
from rankdash.errors import DataError


@pytest.mark.parametrize("there", [False, True])
def test_an_error_leaves_what_was_there_and_nothing_beside(tmp_path, there):
    file = tmp_path / "a.csv"
    if there:
        file.write_bytes(b"before")
    with pytest.raises(KeyError), outfile.replacing(file) as stream:
        stream.write(b"half")
        raise KeyError
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"] * there
    assert not there or file.read_bytes() == b"before"


def test_the_rights_of_a_file_and_the_link_to_it_stay(tmp_path):
    file, link = tmp_path / "a.csv", tmp_path / "link"
    file.write_bytes(b"before")
    file.chmod(0o640)
    link.symlink_to(file)
    outfile.write(link, b"after")
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"after", 0o640)


def test_a_pipe_stays_a_pipe(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    outfile.write(pipe, b"through")
    reader.join()
    assert read == [b"through"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("code", sorted(outfile.FULL))
def test_a_full_disk_is_told_with_the_file(tmp_path, code):
    file = tmp_path / "a.csv"
    with pytest.raises(DataError) as caught, outfile.replacing(file):
        raise OSError(code, "full")
    assert str(caught.value).startswith(f"{file}: There is no room left on the disk")


@contextmanager
def room_for(size):
    """No file may grow beyond so many bytes, as on a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def at_once(stream):
    stream.write(bytes(3_200_000))


def line_by_line(stream):
    stream.writelines(b"x" * 31 + b"\n" for _ in range(100_000))
    assert stream.tell() == 3_200_000


def a_zip(stream):
    """Which goes back to write how long each part has become."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("a", "b"):
            with archive.open(name, "w") as part:
                part.write(bytes(1_599_000))


@pytest.mark.parametrize("make", [at_once, line_by_line, a_zip])
@pytest.mark.parametrize("room", [0, 20_000, 2_000_000])
def test_the_room_that_a_file_needs_is_told_however_it_is_written(tmp_path, make, room):
    file = tmp_path / "a.csv"
    file.write_bytes(b"before")
    with room_for(room), pytest.raises(DataError) as caught, outfile.replacing(file) as stream:
        make(stream)
    assert "3.2 MB are needed" in str(caught.value)
    assert str(caught.value).startswith(f"{file}: There is no room left on the disk")
    assert file.read_bytes() == b"before" and len([*tmp_path.iterdir()]) == 1
    with outfile.replacing(file) as stream:
        make(stream)
    assert 3_100_000 < file.stat().st_size <= 3_200_000


def test_a_folder_that_is_not_there_is_named_by_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        outfile.write(tmp_path / "gone" / "a.csv", b"")
    assert caught.value.filename == str(tmp_path / "gone" / "a.csv")
    assert caught.value.errno == errno.ENOENT
