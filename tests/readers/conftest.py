"""Small files of every format that all say the same thing."""

import gzip
import io
import json
from collections.abc import Callable, Mapping

import pandas as pd
import pytest

from rankdash.readers import Parsed, read
from tests.readers import reading

_COLUMNS = ("query_id", "query", "doc_id", "document", "label")
ROWS = [
    dict(zip(_COLUMNS, row, strict=True))
    for row in (
        ("007", "return a gift", "d1", "Bring it back", 2),
        ("007", "return a gift", "d2", "Open hours", 0),
        ("8", "退货", "d1", "Bring it back", 0.5),
    )
]


@pytest.fixture
def rows() -> list[dict[str, object]]:
    return [dict(row) for row in ROWS]


@pytest.fixture
def files(rows) -> dict[str, bytes]:
    """One file a format. Names say nothing of the format."""
    frame = pd.DataFrame(rows)
    parquet = io.BytesIO()
    frame.to_parquet(parquet)
    nested = [
        {
            "query_id": query_id,
            "query": of_query["query"].iloc[0],
            "docs": list(of_query["document"]),
            "doc_ids": list(of_query["doc_id"]),
            "true_scores": list(of_query["label"]),
        }
        for query_id, of_query in frame.groupby("query_id", sort=False)
    ]
    return {
        "csv": frame.to_csv(index=False).encode(),
        "tsv": frame.to_csv(index=False, sep="\t").encode(),
        "semicolon": frame.to_csv(index=False, sep=";").encode(),
        "jsonl": "\n".join(json.dumps(row) for row in rows).encode(),
        "json": json.dumps(rows, ensure_ascii=False, indent=2).encode(),
        "wrapped": json.dumps({"version": 1, "data": rows}).encode(),
        "nested": json.dumps(nested).encode(),
        "nested_lines": "\n".join(map(json.dumps, nested)).encode(),
        "parquet": parquet.getvalue(),
    }


@pytest.fixture
def parse() -> Callable[..., Parsed]:
    """`parse({"name": content}, **options)`; content is text or bytes."""

    def parse(contents: reading.Files, **options: object) -> Parsed:
        return read(reading.sources(contents), **options)

    return parse


@pytest.fixture
def gz() -> Callable[[bytes], bytes]:
    return gzip.compress


@pytest.fixture
def zipped() -> Callable[[Mapping[str, bytes]], bytes]:
    return reading.zipped


@pytest.fixture
def found() -> Callable[[Parsed, str], object]:
    """The one finding of a code."""

    def found(parsed: Parsed, code: str) -> object:
        (finding,) = [finding for finding in parsed.findings if finding.code == code]
        return finding

    return found


@pytest.fixture
def codes() -> Callable[[Parsed], set[str]]:
    return lambda parsed: {finding.code for finding in parsed.findings}
