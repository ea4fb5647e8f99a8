"""How much a file holds, counted on its bytes before a reader makes anything of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import LimitError
from rankdash.core.readers.parse.encoding import Decoded
from rankdash.core.readers.parse.limits import MEGABYTE, ReadLimits, variable
from rankdash.core.readers.parse.table import too_many_rows

# Arrays of larger pieces are new memory each time, which takes twice as long.
CHUNK = 1 << 17
_BINARY = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"PK\x03\x04", b"\x1f\x8b")
# Byte-order marks, the zeros of UTF-16 and white space.
_BEFORE = b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"
# Texts within quotation marks hold line breaks of their own.
_LINES_PER_ROW = 2
_OPEN, _CLOSE, _COMMA, _MARK = 1, 2, 3, 4
_KIND = dict(zip(b'[{]},"', (_OPEN, _OPEN, _CLOSE, _CLOSE, _COMMA, _MARK), strict=True))
_KINDS = bytes(_KIND.get(byte, 0) for byte in range(256))
_QUOTE, _BREAK = ord('"'), ord("\n")
# A character outside the first plane is twelve bytes where JSON spells it in ASCII.
_BYTES_PER_CHAR = 12


class LineGauge:
    """The lines of one file of text, chunk by chunk, as they are unpacked."""

    def __init__(self, file: str, limits: ReadLimits) -> None:
        self._file, self._limits = file, limits
        self._feeds = self._returns = self._unfinished = 0
        self._kind = b""
        self._quoted = False

    def add(self, chunk: bytes) -> None:
        """Raises LimitError, with the line, for one that is too long, and for more lines than rows
        are accepted. JSON may be one line; what is no text has none. A line shorter than a chunk is
        never too long."""
        if not self._kind:
            self._kind = b"binary" if chunk.startswith(_BINARY) else chunk.lstrip(_BEFORE)[:1]
        if self._kind in (b"binary", b"[", b"{"):
            return
        ends = [chunk.find(b"\n"), chunk.find(b"\r")]
        first = min((end for end in ends if end >= 0), default=len(chunk))
        self._refuse_long(self._unfinished + first)
        last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        self._feeds += chunk.count(b"\n")
        self._returns += chunk.count(b"\r")
        self._unfinished = len(chunk) - last - 1 if last >= 0 else self._unfinished + len(chunk)
        self._refuse_long(self._unfinished)
        self._quoted = self._quoted or b'"' in chunk
        # Markup takes as many lines as it likes.
        most = self._limits.rows * (_LINES_PER_ROW if self._quoted else 1)
        # The first line may be a header.
        if self._lines > most + 1 and self._is_table:
            raise too_many_rows(self._file, self._limits)

    def end(self, content: bytes) -> None:
        """Look at the file as a whole. Raises LimitError where it has more lines than rows are
        accepted without those within quotation marks, a mark in a text being doubled."""
        # Only the reader knows how marks behind a backslash are meant, and what UTF-16 holds.
        few = self._feeds <= self._limits.rows + 1 or not self._is_table
        if few or b"\0" in content[:4] or b'\\"' in content:
            return
        rows, within = 0, False
        for start in range(0, len(content), CHUNK):
            chunk = content[start : start + CHUNK]
            if b'"' in chunk:
                codes = np.frombuffer(chunk, dtype=np.uint8)
                inside = _within(codes == _QUOTE, within)
                within = bool(inside[-1])
                rows += int(np.count_nonzero((codes == _BREAK) & ~inside))
            elif not within:
                rows += chunk.count(b"\n")
            if rows > self._limits.rows + 1:
                raise too_many_rows(self._file, self._limits)

    @property
    def _is_table(self) -> bool:
        return self._kind not in (b"binary", b"[", b"{", b"<")

    @property
    def _lines(self) -> int:
        return max(self._feeds, self._returns)

    def _refuse_long(self, length: int) -> None:
        if length > self._limits.line_bytes:
            raise LimitError(
                "A line is longer than {limit:,.1f} MB.",
                remedy="Cut the documents into passages, a row each, or allow longer lines with "
                "{variable}.",
                file=self._file,
                line=self._lines + 1,
                limit=self._limits.line_bytes / MEGABYTE,
                variable=variable("line_bytes"),
            )


def _within(quotes: npt.NDArray[np.bool_], before: bool) -> npt.NDArray[np.bool_]:
    """Which bytes stand within quotation marks, from where these are; whether the first byte does
    but for a mark of its own."""
    return (np.cumsum(quotes, dtype=np.uint8) & 1).astype(bool) ^ before


def refuse_long_lines(data: bytes, file: str, limits: ReadLimits) -> None:
    """Raises what `LineGauge.add` raises for a file that is not packed."""
    gauge = LineGauge(file, limits)
    for start in range(0, len(data), CHUNK):
        gauge.add(data[start : start + CHUNK])
    gauge.end(data)


def refuse_vast_json(decoded: Decoded, file: str, limits: ReadLimits) -> None:
    """Raises LimitError for JSON of too many values, lists too deep inside each other, or with a
    text that is too long: before it is decoded, since all of it is held in memory then."""
    gauge = _JsonGauge(file, limits)
    content = decoded.content
    for start in range(0, len(content), CHUNK):
        chunk = content[start : start + CHUNK]
        gauge.add(chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogatepass"))


class _JsonGauge:
    def __init__(self, file: str, limits: ReadLimits) -> None:
        self._file, self._limits = file, limits
        self._rest = b""
        self._within = False
        self._values = self._depth = self._text = 0
        self._lines = 1

    def add(self, chunk: bytes) -> None:
        chunk = self._rest + chunk
        # What a mark at the end escapes is in the next chunk.
        escapes = len(chunk) - len(chunk.rstrip(b"\\"))
        self._rest = chunk[len(chunk) - escapes % 2 :] if escapes % 2 else b""
        chunk = chunk[: len(chunk) - escapes % 2]
        if b"\\" in chunk:
            chunk = chunk.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        kinds = np.frombuffer(chunk.translate(_KINDS), dtype=np.uint8)
        # All that follows is of these, which are few.
        places = np.flatnonzero(kinds != 0)
        kinds = kinds[places]
        quotes = kinds == _MARK
        within = _within(quotes, self._within)
        self._refuse_long_text(places[quotes], len(chunk), chunk)
        kinds = kinds[~within]
        self._refuse_deep(kinds, lambda: places[~within], chunk)
        self._values += int(np.count_nonzero(kinds == _OPEN) + np.count_nonzero(kinds == _COMMA))
        if self._values > self._limits.json_values:
            raise LimitError(
                "The JSON holds more than {limit:,} values.",
                remedy="Store the rows as Parquet or CSV, load a sample of the queries with all "
                "their rows, or allow more with {variable}.",
                file=self._file,
                limit=self._limits.json_values,
                variable=variable("json_values"),
            )
        self._lines += chunk.count(b"\n")
        self._within = bool(within[-1]) if len(within) else self._within

    def _refuse_deep(
        self,
        kinds: npt.NDArray[np.uint8],
        places: Callable[[], npt.NDArray[np.intp]],
        chunk: bytes,
    ) -> None:
        """kinds, places: of what stands in no text."""
        nests = kinds <= _CLOSE
        depths = self._depth + np.cumsum(np.where(kinds[nests] == _OPEN, 1, -1))
        too_deep = np.flatnonzero(depths > self._limits.json_depth)
        if len(too_deep):
            raise LimitError(
                "Lists and objects stand more than {limit:,} deep inside each other.",
                remedy="Write one object for each row, or allow more with {variable}.",
                file=self._file,
                line=self._lines + chunk.count(b"\n", 0, int(places()[nests][too_deep[0]])),
                limit=self._limits.json_depth,
                variable=variable("json_depth"),
            )
        self._depth = int(depths[-1]) if len(depths) else self._depth

    def _refuse_long_text(self, quotes: npt.NDArray[np.intp], size: int, chunk: bytes) -> None:
        """quotes: where texts begin and end in a chunk of `size` bytes."""
        marks = np.concatenate(([-self._text if self._within else 0], quotes, [size]))
        # Texts are every second stretch; the last may go on in the next chunk.
        texts = np.diff(marks)[0 if self._within else 1 :: 2]
        self._text = 0
        if len(texts) and (len(quotes) + self._within) % 2:
            self._text = int(texts[-1])
        if int(texts.max(initial=0)) > _BYTES_PER_CHAR * self._limits.field_chars + 1:
            start = int(marks[2 * int(texts.argmax()) + (not self._within)])
            raise LimitError(
                "A text in the JSON is longer than {limit:,} characters.",
                remedy="Cut the documents into passages, or allow longer ones with {variable}.",
                file=self._file,
                line=self._lines + chunk.count(b"\n", 0, max(start, 0)),
                limit=self._limits.field_chars,
                variable=variable("field_chars"),
            )
