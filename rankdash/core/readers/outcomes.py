"""Tables of outcomes of an online experiment (CSV, TSV, JSON lines or Parquet), read in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankdash.core.base.errors import DataError, FormatError
from rankdash.core.data.arrays import Floats
from rankdash.core.data.outcomes import Outcomes
from rankdash.core.readers.formats.delimited import sniff
from rankdash.core.readers.logs import HEAD_BYTES, PIECE_BYTES, readable, start_of
from rankdash.core.readers.parse.columns import plain

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "unit": (
        *("user", "userid", "visitor", "visitorid", "clientid", "cookie", "customer", "customerid"),
        *(
            "session",
            "sessionid",
            "unit",
            "用户",
            "用户id",
            "用户编号",
            "会话",
            "会话id",
            "会话编号",
        ),
    ),
    "arm": (
        *("arm", "variant", "variation", "group", "bucket", "treatment", "experimentgroup"),
        *("system", "ranker", "分组", "实验组", "版本", "系统"),
    ),
    "team": ("team", "队", "队伍"),
    "query": ("queryid", "qid", "query", "userquery", "查询", "查询id", "查询编号"),
    "outcome": (
        *("outcome", "value", "clicks", "click", "clicked", "satisfied", "satisfaction"),
        *("score", "answerscore", "revenue", "amount", "money", "purchases", "conversions"),
        *("converted", "结果", "点击", "点击数", "点击次数", "满意", "满意度", "收入", "金额"),
    ),
    "time": ("time", "timestamp", "date", "datetime", "时间", "日期", "时间戳"),
}
"""Column of outcomes → names that are recognised, in the order of preference. Users come before
sessions: the sessions of a user depend on each other."""

_YES = ("true", "yes", "是", "1")
_NO = ("false", "no", "否", "0")
_LONGEST_PREVIEW = 20
# The square of a larger number is not finite.
_LARGEST = 1e100


def read_outcomes(path: Path, columns: Mapping[str, str]) -> Outcomes:
    """Read a table of outcomes.

    columns: column of `COLUMNS` → its name in the file, for names that are not recognised.

    Raises DataError if the file cannot be read, and FormatError if a column is missing or has
    another content.
    """
    with readable(path.name):
        names, pieces = _opened(path)
        chosen = _chosen(names, columns, path.name)
        parts = [_part(piece, chosen, path.name) for piece in pieces(list(chosen.values()))]
    rows = sum(len(part["value"]) for part in parts)
    if not rows:
        raise FormatError(
            "The table of outcomes has no rows.",
            remedy="Write one row per search.",
            file=path.name,
        )
    coded = {name: _codes([part.pop(name) for part in parts]) for name in ("arm", "unit", "query")}
    (arm, arms), (query, queries), (unit, units) = (
        coded["arm"],
        coded["query"],
        coded["unit"] if "unit" in chosen else _each_row(rows),
    )
    _refuse_blank(arm, chosen["team" if "team" in chosen else "arm"], path.name)
    if "unit" in chosen:
        _refuse_blank(unit, chosen["unit"], path.name)
    return Outcomes(
        chosen["outcome"], tuple(arms.to_pylist()), units, queries, arm, unit, query,
        np.concatenate([part["value"] for part in parts]),
        np.concatenate([part["time"] for part in parts]),
        chosen.get("unit", ""), "team" in chosen,
    )  # fmt: skip


def _opened(path: Path) -> tuple[list[str], Any]:
    """Return the names of the columns, and a function from chosen names to pieces."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as problem:
        raise DataError(
            "The file cannot be read: {problem}.",
            remedy="Check that the file exists and that you have permission to read it.",
            file=str(path),
            problem=problem.strerror or str(problem).partition("\n")[0].rstrip("."),
        ) from problem
    if head.startswith(b"PAR1"):
        return _parquet(path)
    start = start_of(head, path.name)
    content = start.content.lstrip()
    if content.startswith("["):
        raise FormatError(
            "The table of outcomes is one JSON list.",
            remedy="Write one JSON object per line, for example with: jq -c '.[]' FILE",
            file=path.name,
        )
    if content.startswith("{"):
        return _json_lines(path)
    return _csv(path, sniff(start.content) or ",", start.encoding, start.mark)


def _parquet(path: Path) -> tuple[list[str], Any]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)

    def pieces(columns: Sequence[str]) -> Iterator[Any]:
        yield from file.iter_batches(batch_size=1 << 18, columns=list(columns))

    return list(file.schema_arrow.names), pieces


def _json_lines(path: Path) -> tuple[list[str], Any]:
    import pyarrow.json as pa_json

    table = pa_json.read_json(
        pa.input_stream(str(path), compression="detect"),
        pa_json.ReadOptions(block_size=PIECE_BYTES),
    )

    def pieces(columns: Sequence[str]) -> Iterator[Any]:
        yield from table.select(list(columns)).to_batches()

    return list(table.column_names), pieces


def _csv(path: Path, delimiter: str, encoding: str, mark: int) -> tuple[list[str], Any]:
    import pyarrow.csv as pa_csv

    def reader(columns: Sequence[str] | None) -> Any:
        stream = pa.input_stream(str(path), compression="detect")
        stream.read(mark)
        return pa_csv.open_csv(
            stream,
            pa_csv.ReadOptions(block_size=PIECE_BYTES, encoding=encoding),
            pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            pa_csv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns or (), pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            ),
        )

    with reader(None) as opened:
        names = list(opened.schema.names)

    def pieces(columns: Sequence[str]) -> Iterator[Any]:
        with reader(columns) as opened:
            yield from opened

    return names, pieces


def _chosen(names: Sequence[str], columns: Mapping[str, str], file: str) -> dict[str, str]:
    """Return column of `COLUMNS` → its name in the file."""
    listed = ", ".join(names[:_LONGEST_PREVIEW])
    for field, name in columns.items():
        if field not in COLUMNS or name not in names:
            raise FormatError(
                "No column {name!r} for {field!r}. The columns are: {columns}.",
                remedy="Possible fields: {fields}.",
                file=file, name=name, field=field, columns=listed, fields=", ".join(COLUMNS),
            )  # fmt: skip
    assigned = set(columns.values())
    by_plain_name = {plain(name): name for name in reversed(names) if name not in assigned}
    chosen = dict(columns)
    for field, known in COLUMNS.items():
        found = [by_plain_name[each] for each in known if each in by_plain_name]
        if field == "outcome" and len(found) > 1 and field not in chosen:
            raise FormatError(
                "Several columns may be the outcome: {columns}.",
                remedy="Choose one, for example: --columns outcome={first}",
                file=file, columns=", ".join(found), first=found[0],
            )  # fmt: skip
        if found:
            chosen.setdefault(field, found[0])
    if "team" in chosen and "arm" in chosen and "team" not in columns:
        # A column of teams is interleaved unless the user chose arms.
        del chosen["team" if "arm" in columns else "arm"]
    required = ("outcome", "team" if "team" in chosen else "arm")
    for field in required:
        if field not in chosen:
            raise FormatError(
                "No column is recognised as {field!r}. The columns are: {columns}.",
                remedy="Name it, for example: --columns {field}={first}. An experiment needs the "
                "columns arm (or team) and outcome, and should have session or user, query and "
                "time.",
                file=file, field=field, columns=listed, first=names[0] if names else "…",
            )  # fmt: skip
    for name in chosen.values():
        if names.count(name) > 1:
            raise FormatError(
                "Several columns are named {name!r}.",
                remedy="Rename them or delete all but one.",
                file=file, name=name,
            )  # fmt: skip
    return chosen


def _part(piece: Any, chosen: Mapping[str, str], file: str) -> dict[str, Any]:
    """Return the columns of one piece: dictionaries of names, and numbers."""
    rows = len(piece)
    arm = chosen.get("team", chosen.get("arm", ""))
    part: dict[str, Any] = {
        field: _names(piece, name, rows)
        for field, name in (
            ("arm", arm),
            ("unit", chosen.get("unit")),
            ("query", chosen.get("query")),
        )
    }
    part["value"] = _numbers(_plain_cells(piece, chosen["outcome"]), chosen["outcome"], file)
    part["time"] = (
        _times(_plain_cells(piece, chosen["time"]), chosen["time"], file)
        if "time" in chosen
        else np.full(rows, np.nan)
    )
    return part


def _names(piece: Any, name: str | None, rows: int) -> Any:
    cells = pa.nulls(rows, pa.string()) if name is None else piece.column(name)
    if pa.types.is_nested(cells.type):
        raise FormatError(
            "The column {column!r} contains lists or objects.",
            remedy="Write a name or a number in each row.",
            column=name,
        )
    texts = pc.utf8_trim_whitespace(pc.cast(cells, pa.string()))
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    return pc.dictionary_encode(texts)


def _plain_cells(piece: Any, column: str) -> Any:
    """Return the cells of a column, without a dictionary or views."""
    cells = piece.column(column)
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    return pc.cast(cells, pa.string()) if pa.types.is_string_view(cells.type) else cells


def _codes(parts: Sequence[Any]) -> tuple[npt.NDArray[np.int64], Any]:
    """Return the codes of all pieces, -1 for a blank cell, and the names."""
    joined = pa.chunked_array(parts).unify_dictionaries()
    names = joined.chunk(0).dictionary
    codes = [np.asarray(pc.fill_null(chunk.indices, -1)) for chunk in joined.chunks]
    return np.concatenate(codes).astype(np.int64), names


def _each_row(rows: int) -> tuple[npt.NDArray[np.int64], Any]:
    return np.arange(rows), pa.nulls(rows, pa.string())


def _refuse_blank(codes: npt.NDArray[np.int64], column: str, file: str) -> None:
    blank = np.flatnonzero(codes < 0)
    if len(blank):
        raise FormatError(
            "The column {column!r} is blank in {count:,} rows, first in row {row:,}.",
            remedy="Write a name in each row, or delete these rows.",
            file=file, column=column, count=len(blank), row=int(blank[0]) + 1,
        )  # fmt: skip


def _numbers(cells: Any, column: str, file: str) -> Floats:
    """Return outcomes as numbers; yes and no are 1 and 0, and blank cells are NaN."""
    if pa.types.is_boolean(cells.type):
        cells = pc.cast(cells, pa.int8())
    if _is_text(cells):
        cells = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
        for words, digit in ((_YES, "1"), (_NO, "0")):
            cells = pc.if_else(pc.is_in(cells, pa.array(words)), pa.scalar(digit), cells)
        cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
    try:
        values = pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise _other_content(column, "numbers", file, problem) from problem
    if (large := values[np.abs(values) > _LARGEST]).size:
        raise _other_content(column, "numbers", file, f"{large[0]:g}")
    numbers: Floats = values
    return numbers


def _times(cells: Any, column: str, file: str) -> Floats:
    """Return seconds since 1970 in UTC, of dates in ISO 8601 or of numbers of seconds or
    milliseconds."""
    if _is_text(cells):
        with suppress(pa.ArrowInvalid):
            return _seconds(pc.cast(cells, pa.float64()))
    try:
        if pa.types.is_timestamp(cells.type) or pa.types.is_date(cells.type):
            stamps = pc.cast(cells, pa.timestamp("us", "UTC" if _zoned(cells.type) else None))
        elif _is_text(cells):
            stamps = _stamps(cells)
        else:
            return _seconds(pc.cast(cells, pa.float64()))
        micros = pc.cast(pc.cast(stamps, pa.int64()), pa.float64())
        return np.asarray(micros.to_numpy(zero_copy_only=False), dtype=np.float64) / 1e6
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise _other_content(column, "times", file, problem) from problem


def _stamps(cells: Any) -> Any:
    """Return the times of texts, in UTC if they have no offset."""
    cells = pc.replace_substring_regex(cells, r"^\s*(\d+-\d+-\d+)Z?\s*$", r"\1T00:00")
    cells = pc.replace_substring_regex(cells, r"^\s*(\S+[T ][\d:.]+)\s*$", r"\1Z")
    return pc.cast(cells, pa.timestamp("us", "UTC"))


def _is_text(cells: Any) -> bool:
    return bool(pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type))


def _zoned(kind: Any) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _seconds(cells: Any) -> Floats:
    values = cells.to_numpy(zero_copy_only=False).astype(np.float64)
    # Milliseconds since 1973 are larger than seconds before the year 5138.
    seconds: Floats = np.where(np.abs(values) > 1e11, values / 1e3, values)
    return seconds


def _other_content(column: str, content: str, file: str, problem: object) -> FormatError:
    return FormatError(
        "The column {column!r} does not contain only {content}: {problem}.",
        remedy="Correct the cells, or choose another column with --columns.",
        file=file, column=column, content=content,
        problem=str(problem).partition("\n")[0].rstrip("."),
    )  # fmt: skip
