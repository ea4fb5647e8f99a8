"""Files of every format, and copies with changed bytes; equal for equal seeds."""

import gzip
import json
import random
import zipfile
from collections.abc import Iterator

import pandas as pd
import pyarrow as pa

from rankdash.core.readers import Source
from tests.readers.reading import repacked, zipped
from tests.readers.samples import RANX_RUN, SHAPES, arrow, excel, parquet, shape

ROWS = [
    (f"q{query}", f"how to return {query}", f"d{at}", f'text, "{at}" 退货', at % 3, 9.5 - at)
    for query in range(4)
    for at in range(5)
]
NAMES = ["query_id", "query", "doc_id", "document", "label", "score"]
FRAME = pd.DataFrame(ROWS, columns=NAMES)
# The largest number of changed places in a file.
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


_RECORDS = FRAME.to_dict("records")
_NESTED = [
    {
        "query": query,
        "docs": list(rows["document"]),
        "true_scores": list(rows["label"]),
        "metadata": {"kind": "a"},
    }
    for query, rows in FRAME.groupby("query", sort=False)
]


def _table() -> pa.Table:
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    times = pa.array(range(len(ROWS)), type=pa.int64()).view(pa.timestamp("us", "UTC"))
    return table.append_column("time", times)


def _csv(**settings: object) -> str:
    return FRAME.to_csv(index=False, **settings)


def _each(template: str, count: int) -> bytes:
    return "".join(template.format(at=at) for at in range(count)).encode()


_RUN = "".join(f"{r[0]} Q0 {r[2]} {at} {r[5]} bm25\n" for at, r in enumerate(ROWS)).encode()
_QRELS = "".join(f"{r[0]} 0 {r[2]} {r[4]}\n" for r in ROWS).encode()
_SET = {"set/data.csv": _csv().encode(), "set/run.trec": _RUN}
FORMATS: dict[str, bytes] = {
    "csv": _csv().encode(),
    "csv, even": FRAME.drop(columns="document").to_csv(index=False).encode(),
    "tsv": _csv(sep="\t").encode(),
    "semicolon, gb18030": _csv(sep=";").encode("gb18030"),
    "csv, utf-16": _csv().encode("utf-16"),
    "json": json.dumps(_RECORDS, indent=1, ensure_ascii=False).encode(),
    "json lines": "\n".join(map(json.dumps, _RECORDS)).encode(),
    "wrapped json": json.dumps({"version": 1, "data": _RECORDS}).encode(),
    "nested json": json.dumps(_NESTED).encode(),
    "trec run": _RUN,
    "qrels": _QRELS,
    "letor": "".join(f"{r[4]} qid:{r[0]} 1:{r[5]} 2:0 # {r[2]}\n" for r in ROWS).encode(),
    "trec documents": _each("<DOC>\n<DOCNO>d{at}</DOCNO>\n<TEXT>\ntext {at}\n</TEXT>\n</DOC>\n", 5),
    "trec topics": _each(
        "<top>\n<num> Number: {at}\n<title> how to return {at}\n"
        "<desc> Description:\ntext {at}\n</top>\n",
        4,
    ),
    "xml topics": _each('<topic number="{at}">\n<query>how to return {at}</query>\n</topic>\n', 4),
    **dict(list(SHAPES.items())[::5]),
    "ranx": shape(RANX_RUN),
    "parquet": parquet(_table()),
    "parquet, plain": parquet(_table(), compression="none", use_dictionary=False),
    "parquet, zstd": parquet(_table(), compression="zstd", data_page_version="2.0"),
    "parquet, gzip": parquet(_table(), compression="gzip", write_page_index=True),
    "parquet of lists": parquet(pa.Table.from_pylist(_NESTED)),
    "arrow stream": arrow(_table(), stream=True, compression=None),
    "arrow file": arrow(_table(), stream=False, compression=None),
    "arrow, zstd": arrow(_table(), stream=True, compression="zstd"),
    "arrow, lz4": arrow(_table(), stream=False, compression="lz4"),
    "xlsx": excel(FRAME),
    "xlsx, its sheet": excel(FRAME),
    "gz": gzip.compress(_csv().encode(), mtime=0),
    "zip": zipped(_SET, zipfile.ZIP_DEFLATED),
    "zip, stored": zipped(_SET, zipfile.ZIP_STORED),
    "zip, lzma": zipped(_SET, zipfile.ZIP_LZMA),
}
# Formats of documents or queries without labels.
_LABELLED_ELSEWHERE = ("trec documents", "trec topics", "xml topics")


def sources(name: str, content: bytes) -> list[Source]:
    """Return the files of a data set; a format of documents also gets a file of labels."""
    labels = [Source("labels", _QRELS)] if name in _LABELLED_ELSEWHERE else []
    return [Source("changed", content), *labels]


def mutated(name: str, seed: int) -> bytes:
    """Return the file of a format with some bytes changed. Of JSON, every second time, some values
    change, so that it stays JSON; of "xlsx, its sheet", its first sheet."""
    chance = random.Random(f"{name} {seed}")
    if name == "xlsx, its sheet":
        return repacked(
            FORMATS[name], lambda part, own: changed(own, chance) if "sheet1" in part else own
        )
    if seed % 2 and FORMATS[name][:1] in (b"[", b"{"):
        return _rearranged(FORMATS[name], chance)
    return changed(FORMATS[name], chance)


def _rearranged(content: bytes, chance: random.Random) -> bytes:
    """Return JSON, or lines of it, with some values removed, repeated or replaced by others."""
    lines = b"\n{" in content and not content.startswith(b"[")
    whole = [json.loads(line) for line in content.splitlines()] if lines else json.loads(content)
    for _ in range(chance.randint(1, _MOST_CHANGES)):
        held = [each for each in _inside(whole) if isinstance(each, list | dict) and each]
        holder = chance.choice(held)
        place = chance.choice([*(range(len(holder)) if isinstance(holder, list) else holder)])
        piece = json.dumps(chance.choice(chance.choice((_VALUES, [*_inside(whole)]))))
        if chance.random() < 0.3:
            del holder[place]
        elif isinstance(holder, list) and chance.random() < 0.3:
            holder.insert(place, json.loads(piece))
        else:
            holder[place] = json.loads(piece)
        if not whole:
            break
    texts = map(json.dumps, whole) if lines and isinstance(whole, list) else [json.dumps(whole)]
    return "\n".join(texts).encode()


def _inside(value: object) -> Iterator[object]:
    """Yield the value and all values in it."""
    yield value
    if isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _inside(each)


def changed(given: bytes, chance: random.Random) -> bytes:
    """Return the bytes with some of them changed."""
    content = bytearray(given)
    for _ in range(chance.randint(1, _MOST_CHANGES)):
        _change(content, chance)
    return bytes(content)


def _change(content: bytearray, chance: random.Random) -> None:
    """Replace some bytes, or insert some."""
    at = chance.randrange(len(content) + 1)
    length = min(chance.choice((1, 2, 4, 8, 64, 1000)), len(content) - at)
    size, other = chance.choice((1, 2, 4, 8)), FORMATS[chance.choice(list(FORMATS))]
    start = chance.randrange(len(other))
    number = chance.choice(_NUMBERS) % 256**size
    piece = chance.choice(
        (
            *(b"", chance.randbytes(length), chance.choice(_TOKENS), other[start : start + 200]),
            bytes(content[at : at + length]) * chance.choice((1, 2, 50)),
            number.to_bytes(size, chance.choice(("little", "big"))),
        )
    )
    content[at : at + chance.choice((0, length, len(piece)))] = piece
    if chance.random() < 0.03:
        del content[at:]
