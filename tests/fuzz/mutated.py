"""Files of every format, and what becomes of them where bytes are changed; the same for a seed."""

import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from functools import cache

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from rankdash.readers import Source

ROWS = [
    (f"q{query}", f"how to return {query}", f"d{at}", f'text, "{at}" 退货', at % 3, 9.5 - at)
    for query in range(4)
    for at in range(5)
]
NAMES = ["query_id", "query", "doc_id", "document", "label", "score"]
FRAME = pd.DataFrame(ROWS, columns=NAMES)
# Of one file, changed at so many places at most.
_MOST_CHANGES = 6
_TOKENS = (
    *(b'"', b"'", b",", b"\t", b"\n", b"\r", b"\0", b"[", b"]", b"{", b"}", b":", b"\\", b"#"),
    *(b"\\ud800", b"\\udc00", b"\\u0000", b"NaN", b"-Infinity", b"1e400", b"9" * 400, b"-1"),
    *(b"null", b"true", b"{}", b"[]", b"[" * 200, b'{"a":' * 200, b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"\xed\xa0\x80", b"\xc0\x80", b"\xe2\x80\xa8", b"query", b"document", b"label", b"qid:"),
    *(b"<DOC>", b"</DOC>", b"<top>", b"PAR1", b"ARROW1", b"PK\x03\x04", b"\x1f\x8b", b"Q0"),
)
_VALUES = (None, True, "", "d0", 1, -1.5, 10**400, [], {}, [[]], "\ud800")
_NUMBERS = (0, 1, 2**7 - 1, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1)


def _json_rows() -> list[dict[str, object]]:
    return [dict(zip(NAMES, row, strict=True)) for row in ROWS]


def _nested() -> list[dict[str, object]]:
    return [
        {
            "query": query,
            "docs": list(rows["document"]),
            "true_scores": list(rows["label"]),
            "metadata": {"kind": "a"},
        }
        for query, rows in FRAME.groupby("query", sort=False)
    ]


def _by_query(column: str) -> dict[str, dict[str, float]]:
    return {
        str(query): dict(zip(rows["doc_id"], rows[column].astype(float), strict=True))
        for query, rows in FRAME.groupby("query_id", sort=False)
    }


def _parquet(**settings: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(_table(), file, **settings)
    return file.getvalue()


def _table() -> pa.Table:
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    times = pa.array(range(len(ROWS)), type=pa.int64()).view(pa.timestamp("us", "UTC"))
    return table.append_column("time", times)


def _parquet_of_lists() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(_nested()), file)
    return file.getvalue()


def _arrow(*, stream: bool, compression: str | None) -> bytes:
    file = io.BytesIO()
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(file, _table().schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as to:
        to.write_table(_table())
    return file.getvalue()


def _workbook() -> bytes:
    file = io.BytesIO()
    FRAME.to_excel(file, index=False)
    return file.getvalue()


def _zip(method: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("set/data.csv", FRAME.to_csv(index=False))
        archive.writestr("set/run.trec", _trec())
    return file.getvalue()


def _trec() -> str:
    return "".join(f"{r[0]} Q0 {r[2]} {at} {r[5]} bm25\n" for at, r in enumerate(ROWS))


def _qrels() -> bytes:
    return "".join(f"{r[0]} 0 {r[2]} {r[4]}\n" for r in ROWS).encode()


def _markup() -> str:
    return "".join(
        f"<DOC>\n<DOCNO>d{at}</DOCNO>\n<TEXT>\ntext {at}\n</TEXT>\n</DOC>\n" for at in range(5)
    )


def _topics() -> bytes:
    return "".join(
        f"<top>\n<num> Number: {at}\n<title> how to return {at}\n"
        f"<desc> Description:\ntext {at}\n</top>\n"
        for at in range(4)
    ).encode()


def _xml_topics() -> bytes:
    return "".join(
        f'<topic number="{at}">\n<query>how to return {at}</query>\n</topic>\n' for at in range(4)
    ).encode()


def _lists(*columns: str) -> list[list[object]]:
    return [[list(rows[column]) for column in columns] for _, rows in FRAME.groupby("query_id")]


def _tutorial() -> dict[str, object]:
    """The layouts in which tutorials write small examples."""
    ranked = [[docs, docs[:2]] for (docs,) in _lists("doc_id")]
    parallel = {
        "query": list(dict.fromkeys(FRAME["query"])),
        "documents": [docs for (docs,) in _lists("document")],
        "labels": [labels for (labels,) in _lists("label")],
        "scores": [scores for (scores,) in _lists("score")],
    }
    return {
        "parallel lists": parallel,
        "retrieved and relevant": [
            {"query": f"how to return {at}", "retrieved": docs, "relevant": relevant}
            for at, (docs, relevant) in enumerate(ranked)
        ],
        "by query": {
            f"q{at}": {"retrieved": r, "relevant": {r[0]: 2}} for at, (r, _) in enumerate(ranked)
        },
        "pairs by query": {f"q{at}": pair for at, pair in enumerate(ranked)},
        "labels by rank": [labels for (labels,) in _lists("label")],
        "grades beside scores": [
            {"ground_truth": labels, "initial_scores": scores, "rerank_scores": scores[::-1]}
            for labels, scores in _lists("label", "score")
        ],
        "a whole data set": {
            "queries": {f"q{at}": f"how to return {at}" for at in range(4)},
            "corpus": {doc: f"text {doc}" for doc in dict.fromkeys(FRAME["doc_id"])},
            "relevant_docs": {f"q{at}": relevant for at, (_, relevant) in enumerate(ranked)},
        },
    }


FORMATS: dict[str, Callable[[], bytes]] = {
    "csv": lambda: FRAME.to_csv(index=False).encode(),
    "csv, even": lambda: FRAME.drop(columns="document").to_csv(index=False).encode(),
    "tsv": lambda: FRAME.to_csv(index=False, sep="\t").encode(),
    "semicolon, gb18030": lambda: FRAME.to_csv(index=False, sep=";").encode("gb18030"),
    "csv, utf-16": lambda: FRAME.to_csv(index=False).encode("utf-16"),
    "json": lambda: json.dumps(_json_rows(), indent=1, ensure_ascii=False).encode(),
    "json lines": lambda: "\n".join(map(json.dumps, _json_rows())).encode(),
    "wrapped json": lambda: json.dumps({"version": 1, "data": _json_rows()}).encode(),
    "nested json": lambda: json.dumps(_nested()).encode(),
    "ranx": lambda: json.dumps(_by_query("label")).encode(),
    "trec run": lambda: _trec().encode(),
    "qrels": lambda: _qrels(),
    "letor": lambda: "".join(f"{r[4]} qid:{r[0]} 1:{r[5]} 2:0 # {r[2]}\n" for r in ROWS).encode(),
    "trec documents": lambda: _markup().encode(),
    "trec topics": _topics,
    "xml topics": _xml_topics,
    **{
        name: lambda content=content: json.dumps(content, indent=1).encode()
        for name, content in _tutorial().items()
    },
    "parquet": lambda: _parquet(),
    "parquet, plain": lambda: _parquet(compression="none", use_dictionary=False),
    "parquet, zstd": lambda: _parquet(compression="zstd", data_page_version="2.0"),
    "parquet, gzip": lambda: _parquet(compression="gzip", write_page_index=True),
    "parquet of lists": _parquet_of_lists,
    "arrow stream": lambda: _arrow(stream=True, compression=None),
    "arrow file": lambda: _arrow(stream=False, compression=None),
    "arrow, zstd": lambda: _arrow(stream=True, compression="zstd"),
    "arrow, lz4": lambda: _arrow(stream=False, compression="lz4"),
    "xlsx": _workbook,
    "xlsx, its sheet": _workbook,
    "gz": lambda: gzip.compress(FRAME.to_csv(index=False).encode(), mtime=0),
    "zip": lambda: _zip(zipfile.ZIP_DEFLATED),
    "zip, stored": lambda: _zip(zipfile.ZIP_STORED),
    "zip, lzma": lambda: _zip(zipfile.ZIP_LZMA),
}


# Formats of documents or queries alone.
_LABELLED_ELSEWHERE = ("trec documents", "trec topics", "xml topics")


@cache
def whole(name: str) -> bytes:
    """The file of a format, before anything is changed."""
    return FORMATS[name]()


def sources(name: str, content: bytes) -> list[Source]:
    """A file of a format as a data set, with the labels that one of documents needs."""
    labels = [Source("labels", _qrels())] if name in _LABELLED_ELSEWHERE else []
    return [Source("changed", content), *labels]


def mutated(name: str, seed: int) -> bytes:
    """The file of a format with some of its bytes changed; of JSON, every second time, some of its
    values, so that it stays JSON; of a workbook that is told so, its first sheet."""
    chance = random.Random(f"{name} {seed}")
    if name == "xlsx, its sheet":
        return _with_part(whole(name), "xl/worksheets/sheet1.xml", chance)
    if seed % 2 and whole(name)[:1] in (b"[", b"{"):
        return _rearranged(whole(name), chance)
    return changed(whole(name), chance)


def _with_part(packed: bytes, part: str, chance: random.Random) -> bytes:
    """The archive with one of its files changed."""
    source, written = zipfile.ZipFile(io.BytesIO(packed)), io.BytesIO()
    with zipfile.ZipFile(written, "w") as copy:
        for name in source.namelist():
            content = source.read(name)
            copy.writestr(name, changed(content, chance) if name == part else content)
    return written.getvalue()


def _rearranged(content: bytes, chance: random.Random) -> bytes:
    """JSON, or lines of it, with some values left out, repeated or put in place of others."""
    lines = b"\n{" in content and not content.startswith(b"[")
    whole = [json.loads(line) for line in content.splitlines()] if lines else json.loads(content)
    for _ in range(chance.randint(1, _MOST_CHANGES)):
        held = [each for each in _inside(whole) if isinstance(each, list | dict) and each]
        holder = chance.choice(held)
        places = list(range(len(holder)) if isinstance(holder, list) else holder)
        place = chance.choice(places)
        kind = chance.randrange(4)
        if kind == 0:
            del holder[place]
        elif kind == 1:
            holder[place] = json.loads(json.dumps(chance.choice(list(_inside(whole)))))
        elif kind == 2:
            holder[place] = json.loads(json.dumps(chance.choice(_VALUES)))
        elif isinstance(holder, list):
            holder.insert(place, json.loads(json.dumps(holder[place])))
        if not whole:
            break
    texts = map(json.dumps, whole) if lines and isinstance(whole, list) else [json.dumps(whole)]
    return "\n".join(texts).encode()


def _inside(value: object) -> Iterator[object]:
    """The value and all that it holds."""
    yield value
    if isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _inside(each)


def changed(given: bytes, chance: random.Random) -> bytes:
    """The bytes with some of them changed."""
    content = bytearray(given)
    for _ in range(chance.randint(1, _MOST_CHANGES)):
        _change(content, chance)
    return bytes(content)


def _change(content: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(content) + 1)
    length = min(chance.choice((1, 2, 4, 8, 64, 1000)), len(content) - at)
    kind = chance.randrange(9)
    if kind == 0 and length:
        content[at] ^= 1 << chance.randrange(8)
    elif kind == 1 and length:
        content[at : at + length] = chance.randbytes(length)
    elif kind == 2:
        del content[at : at + length]
    elif kind == 3:
        content[at:at] = chance.choice(_TOKENS)
    elif kind == 4:
        token = chance.choice(_TOKENS)
        content[at : at + len(token)] = token
    elif kind == 5:
        content[at:at] = content[at : at + length] * chance.choice((1, 2, 50))
    elif kind == 6:
        size = chance.choice((1, 2, 4, 8))
        number = chance.choice(_NUMBERS) % 256**size
        content[at : at + size] = number.to_bytes(size, chance.choice(("little", "big")))
    elif kind == 7:
        other = whole(chance.choice(list(FORMATS)))
        start = chance.randrange(len(other))
        content[at : at + length] = other[start : start + 200]
    elif chance.random() < 0.3:
        del content[at:]
