"""Changed files of data and changed side files are read, or refused with the file, the reason and a
remedy: some of them here, ten times as many with `--all`."""

import json
import re
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rankdash.core.base.errors import DataError, RankdashError
from rankdash.core.base.i18n import error_text
from rankdash.core.readers.loading import Loaded, examine
from rankdash.features.report.command import read_money
from tests.fuzz import side_files
from tests.fuzz.independent import silently_wrong
from tests.fuzz.mutated import FORMATS, mutated, sources
from tests.fuzz.side_files import SIDE_FILES

thorough = pytest.mark.thorough
# The largest processor time and memory for a file.
SECONDS, KILOBYTES = 5.0, 1_000_000
# Values that replace a text or a number.
HOSTILE = {
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 50_000,
    "deep TOML": b"[" * 1_900 + b"]" * 1_900,
    "400 digits": b"9" * 400,
    "5000 digits": b"9" * 5_000,
    "half a character": b'"\\ud800"',
    "no UTF-8": b"\xff\xfe",
    "no number": b"NaN",
    "no float": b"1e400",
    "null": b"null",
    "another type": b'{"a": [1]}',
    "a zero": b'"a\\u0000b"',
}
PACKED = re.compile("parquet|arrow|xlsx|gz|zip|utf-16")
_VALUE = re.compile(rb'"[^"\n]{0,40}"|(?<![\w.])\d[\d.]{0,20}')


def examined(name: str, content: bytes) -> Loaded | None:
    """Return the loaded changed file; None if it is refused by its name, with a remedy."""
    try:
        return examine(sources(name, content))
    except DataError as error:
        assert error.file.startswith(("changed", "labels")) and error.remedy
        error_text(error).encode()
        return None


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 200), marks=thorough)])
@pytest.mark.parametrize("name", FORMATS)
def test_changed_files_of_a_format_are_read_rightly_or_refused(name, seeds):
    loaded = examine(sources(name, FORMATS[name]))
    assert loaded.dataset.documents is not None
    assert silently_wrong(name, FORMATS[name], loaded) == ""
    refused, before = 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        began, content = time.process_time(), mutated(name, seed)
        loaded = examined(name, content)
        refused += loaded is None
        assert loaded is None or silently_wrong(name, content, loaded) == "", seed
        assert time.process_time() - began < SECONDS, seed
    assert refused > 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < KILOBYTES


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 100), marks=thorough)])
@pytest.mark.parametrize("kind", SIDE_FILES)
def test_changed_files_beside_the_data_are_read_or_refused(kind, seeds):
    side_files.read(kind, side_files.whole(kind))
    assert sum(_refused(kind, side_files.mutated(kind, seed)) for seed in seeds) > 0


def hostile(content: bytes, most: int) -> Iterator[bytes]:
    """Yield the content with each hostile value in some of its places, `most` or a few more."""
    places = [found.span() for found in _VALUE.finditer(content)]
    for start, end in places[:: max(1, len(places) // most)]:
        for value in HOSTILE.values():
            yield content[:start] + value + content[end:]


@pytest.mark.parametrize("most", [1, pytest.param(8, marks=thorough)])
@pytest.mark.parametrize("kind", [kind for kind in SIDE_FILES if kind != "workspace"])
def test_whatever_stands_in_place_of_a_value_beside_the_data(kind, most):
    for content in hostile(side_files.whole(kind), most):
        _refused(kind, content)


@pytest.mark.parametrize("most", [1, pytest.param(8, marks=thorough)])
@pytest.mark.parametrize("name", [name for name in FORMATS if not PACKED.search(name)])
def test_whatever_stands_in_place_of_a_value_of_the_data(name, most):
    for content in hostile(FORMATS[name], most):
        examined(name, content)


def _refused(kind: str, content: bytes) -> bool:
    """Return whether rankdash refuses the file; other exceptions are raised."""
    try:
        side_files.read(kind, content)
    except RankdashError as error:
        error_text(error).encode()
        return True
    return False


@pytest.mark.parametrize(
    ("kind", "content", "line"),
    [
        ("prices", b"[[prices]]\nkey = \n", 2),
        ("prices as JSON", b'{"prices": [\n1,\n]}', 3),
        ("profile", b"title = 1\n\n[", 3),
    ],
)
def test_the_line_and_what_to_do_are_told(kind, content, line, tmp_path):
    refused_at(tmp_path / SIDE_FILES[kind].name, SIDE_FILES[kind].read, content, line)


def test_the_line_of_a_damaged_assumption_is_told(tmp_path):
    content = b"searches_per_day = 5\nx"
    refused_at(
        tmp_path / "money.toml", lambda file: read_money(file, {"run": "minilm"}), content, 2
    )


def test_the_line_of_a_grade_with_other_calls_is_told(tmp_path):
    rows = side_files.whole("grades as JSON").splitlines()
    rows[2] = json.dumps(json.loads(rows[2]) | {"billed": {"calls": None}}).encode()
    content = b"\n".join(rows) + b"\n"
    refused_at(tmp_path / "grades.jsonl", side_files.read_grades, content, 3)


def refused_at(file: Path, read: Callable[[Path], object], content: bytes, line: int) -> None:
    file.write_bytes(content)
    with pytest.raises(DataError) as refused:
        read(file)
    assert (refused.value.line, Path(refused.value.file).name) == (line, file.name)
    assert refused.value.remedy
