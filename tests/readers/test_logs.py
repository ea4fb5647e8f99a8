"""Logs of searches: their formats, and refusals."""

import gzip
import json

import numpy as np
import pytest

from rankdash.core.base.errors import DataError
from rankdash.core.readers.logs import Log

QUERIES = ["red shoes", "red shoes", "蓝色 衬衫", "café", "red shoes"]


def counted(path):
    totals: dict[str, float] = {}
    log = Log(path)
    for piece in log.pieces():
        for query, count in zip(piece.queries.to_pylist(), piece.counts.tolist(), strict=True):
            totals[query] = totals.get(query, 0.0) + count
    return log, totals


@pytest.fixture
def written(tmp_path):
    def write(content, name="log.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


EXPECTED = {"red shoes": 3.0, "蓝色 衬衫": 1.0, "café": 1.0}
LINES = "".join(f"{query}\n" for query in QUERIES)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        pytest.param(LINES, "text", id="lines"),
        pytest.param("query\n" + LINES + "\n \n", "text", id="heading and blank lines"),
        pytest.param(LINES.replace("\n", "\r\n").rstrip(), "text", id="Windows"),
        pytest.param(b"\xef\xbb\xbf" + LINES.encode(), "text", id="mark"),
        pytest.param(LINES.encode("utf-16"), "text", id="UTF-16"),
        pytest.param(LINES.encode("gb18030"), "text", id="GB18030"),
        pytest.param(gzip.compress(LINES.encode()), "text", id="gzip"),
        pytest.param(
            "query_id,user_query,client\n" + "".join(f'7,"{q}","a\nb"\n' for q in QUERIES),
            "table",
            id="UBI as CSV",
        ),
        pytest.param(
            "Searches\tQuery\n3\tred shoes\n1\t蓝色 衬衫\n1\tcafé\n", "table", id="counts"
        ),
        pytest.param(
            'id, "query", count \n1,red shoes, 3\n2,蓝色 衬衫,1\n3,café,1\n4,  ,0\n',
            "table",
            id="spaces after commas",
        ),
        pytest.param(
            "".join(json.dumps({"user_query": q, "query": {"match": 1}}) + "\n" for q in QUERIES),
            "JSON lines",
            id="UBI",
        ),
        pytest.param(
            '{"index": {}}\n'
            + "".join(json.dumps({"_source": {"user_query": q}}) + "\n" for q in QUERIES),
            "JSON lines",
            id="export of an index",
        ),
        pytest.param(
            "".join(json.dumps({"query": q, "count": n}) + "\n" for q, n in EXPECTED.items()),
            "JSON lines",
            id="JSON with counts",
        ),
    ],
)
def test_each_format_has_the_same_searches(written, content, kind):
    name = "log.gz" if content[:2] == b"\x1f\x8b" else "log"
    log, totals = counted(written(content, name))
    assert (log.kind, totals) == (kind, EXPECTED)


def test_a_text_with_commas_is_not_a_table(written):
    _log, totals = counted(written("shoes, red\nshirts, blue\n"))
    assert totals == {"shoes, red": 1.0, "shirts, blue": 1.0}


def test_lines_without_a_query_are_counted(written):
    log, totals = counted(written('{"user_query": "a"}\n{"user_query": null}\nnot JSON\n'))
    assert (totals, log.skipped) == ({"a": 1.0}, 2)


def test_rows_with_a_query_of_only_blanks_are_skipped(written):
    log, totals = counted(written("query,count\na,1\n  ,5\n,5\n"))
    assert (totals, log.skipped) == ({"a": 1.0}, 2)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[]", "one JSON list"),
        ('{"a": 1}\n', "user_query or query"),
        ("query,count\na,0\n", "'a' is not above 0"),
        ("query,count\na,many\n", "cannot be read"),
        (" \nquery,count\na,1\n", "cannot be read"),
        (b"%PDF-1.4", "a PDF document"),
        (b"x" * (1 << 24) + b"y", "more than 1,048,576 characters"),
    ],
)
def test_what_is_not_a_log_is_refused_in_words(written, content, reason):
    with pytest.raises(DataError, match=reason):
        counted(written(content))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        Log(tmp_path / "none")


def test_pieces_end_anywhere(written, monkeypatch):
    monkeypatch.setattr("rankdash.core.readers.logs.PIECE_BYTES", 5)
    _log, totals = counted(written(LINES))
    assert totals == EXPECTED
    assert np.isclose(sum(totals.values()), len(QUERIES))
