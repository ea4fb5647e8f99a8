"""Every limit has a separate message with the file, the limit and a remedy."""

import io

import pandas as pd
import pytest

from rankdash.core.base.errors import LimitError
from rankdash.core.readers import ReadLimits, Source, sources_from_path
from rankdash.core.readers.formats.json_layouts import read_collection
from rankdash.core.readers.formats.json_tools import read_cast
from tests.readers.reading import limits, parse, shown
from tests.readers.samples import SAME, arrow, csv, excel, parquet, shape

# Files with three rows of five columns; the longest field has thirteen characters.
ALIKE = {
    **SAME,
    "Excel": excel(pd.read_csv(io.BytesIO(SAME["CSV"]))),
    "CSV, quoted": SAME["CSV"].replace(b"Open hours", b'"Open hours"'),
    "CSV, a row refused": SAME["CSV"].replace(b",d2,Open hours", b""),
}
OTHERS = {
    "TREC qrels": (b"q1 0 d1 1\nq1 0 doc2 0\n", {"rows": 2, "field_chars": 4}),
    "TREC qrels, uneven": (b"q1 0 d1 1\n\nq1 0 doc2 0\nq1 0 d3\n", {"rows": 3, "field_chars": 4}),
    "TREC run": (b"q1 Q0 d1 1 2 x\nq1 Q0 doc2 2 1 x\n", {"rows": 2, "field_chars": 4}),
    "LETOR": (
        b"1 qid:abc 1:2 2:4 # d\n0 qid:abc 1:2 # e\n",
        {"rows": 2, "columns": 2, "field_chars": 3},
    ),
}
# The header of a sheet counts as a row.
LIMITED = [
    *((content, limit, most + (name == "Excel" and limit == "rows"))
      for name, content in ALIKE.items()
      for limit, most in (("rows", 3), ("columns", 5), ("field_chars", 13))),
    *((content, limit, most) for content, of in OTHERS.values() for limit, most in of.items()),
]  # fmt: skip


@pytest.mark.parametrize(("content", "limit", "most"), LIMITED)
def test_as_much_as_allowed_is_read_and_one_more_is_refused(content, limit, most):
    parse({"x": content}, limits=ReadLimits(**{limit: most}))
    with pytest.raises(LimitError, match=f"RANKDASH_MAX_{limit.upper()}") as refused:
        parse({"x": content}, limits=ReadLimits(**{limit: most - 1}))
    assert refused.value.file == "x"


TOPIC = {"number": 1, "turn": [{"number": 1, "utterance": "a"}]}
WHOLE = {"corpus": {"d1": "one", "d2": "two"}, "qrels": {"q1": ["d1", "d2"], "q2": {"d2": 2}}}


@pytest.mark.parametrize(
    ("read", "value", "most"), [(read_cast, [TOPIC, TOPIC], 2), (read_collection, WHOLE, 3)]
)
def test_turns_and_labels_of_whole_sets_are_rows(read, value, most):
    read(shape(value).decode(), "x", ReadLimits(rows=most))
    with pytest.raises(LimitError, match=f"more than {most - 1} row"):
        read(shape(value).decode(), "x", ReadLimits(rows=most - 1))


LONG = "long" * 30
REPEATED = [{"query": "a" * 1000, "document": "b", "label": 1}] * 5000


def test_what_is_beyond_a_limit_is_refused(approved):
    rows = [{"query": "a", "document": f"b{i}", "label": 1} for i in range(30)]
    long = [rows[0], {**rows[1], "query": LONG}]
    size = len(csv(rows))
    cases = {
        "more rows": ({"x": csv(rows)}, limits(rows=29)),
        "more columns": ({"x": csv(rows)}, limits(columns=2)),
        **{
            f"a field too long, {name}": ({name: content}, limits(field_chars=100))
            for name, content in (
                ("csv", f'query,document,label\na,b,1\n"x\ny",{LONG},1\n'),
                ("jsonl", f'{{"query": "a", "document": "b"}}\n\n{{"query": "{LONG}"}}'),
                ("json", f'[\n{{"query": "a"}},\n{{"query": "{LONG}"}}]'),
                ("trec", f"q1 0 d1 1\nq1 0 {LONG} 1\n"),
                ("parquet", parquet(long)),
                ("arrow", arrow(long)),
            )
        },
        "a file as large as allowed": ({"x.csv": csv(rows)}, limits(file_bytes=size)),
        "a document longer than the csv module allows": {
            "x": f"query,document,label\na,{'word ' * 100_000},1\n"
        },
        "a byte more": ({"x.csv": csv(rows)}, limits(file_bytes=size - 1)),
        "a file that unpacks to too much": (
            {"x": parquet(REPEATED)}, limits(unpacked_bytes=1_000_000)
        ),
    }  # fmt: skip
    approved("readers/limits.en", shown(cases))


def test_files_of_a_folder_are_counted_and_measured_before_they_are_read(tmp_path, monkeypatch):
    file = tmp_path / "large.csv"
    for each in (file, tmp_path / "other.csv"):
        each.write_bytes(SAME["CSV"])
    assert len(sources_from_path(tmp_path, limits=ReadLimits(files=2))) == 2
    with pytest.raises(LimitError, match="more than 1 file"):
        sources_from_path(tmp_path, limits=ReadLimits(files=1))
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail("it was read"))
    with pytest.raises(LimitError, match=r"large\.csv"):
        Source.from_path(file, limits=ReadLimits(file_bytes=100))


def test_a_parquet_file_that_says_itself_that_it_is_too_large_is_not_unpacked(monkeypatch):
    plain = io.BytesIO()
    pd.DataFrame(REPEATED).to_parquet(plain, compression="zstd", use_dictionary=False)
    monkeypatch.setattr(
        "pyarrow.parquet.ParquetFile.iter_batches", lambda *_a, **_k: pytest.fail("unpacked")
    )
    with pytest.raises(LimitError, match="larger than") as refused:
        parse({"x": plain.getvalue()}, limits=ReadLimits(unpacked_bytes=1_000_000))
    assert "RANKDASH_MAX_UNPACKED_BYTES" in str(refused.value)
