"""Readers: files in, tables out. A format is detected from the content, never from the name.

    sources ──unpack──▶ bytes ──decode──▶ text ──reader──▶ Table ──interpret──▶ Part
    all Parts ──combine──▶ Parsed

Supported: delimited text (CSV, TSV and similar), JSON and JSON lines (rows, or entries that contain
lists), Parquet, Arrow, TREC runs and qrels, BEIR folders and exports of other tools (see `NAMES` in
`detect`); uncompressed, in `.gz` or in `.zip`; one data set may consist of several files.

Invalid files and rows:
- A file that cannot be trusted as a whole raises an error with file, line and remedy, and nothing
  is imported: a damaged archive, invalid JSON, an unclosed quotation mark, an unknown encoding or
  format, a file without rows, anything beyond `ReadLimits`, a file of which more than half of the
  rows are refused.
- An invalid row is refused, and the other rows are read: a wrong number of fields, an empty query
  or document, an empty or unknown label, a score that is not finite, a document that the query
  already lists. Refused rows are findings (warnings) by file and reason, with the count, the first
  lines and the first rows.
- A row with a score or a rank but no label is valid: an unjudged candidate. A row with a label but
  neither score nor rank is valid too: its document is not in the ranking.
- Every interpretation is reported as a finding: words read as numbers, ids generated from texts,
  conflicting labels resolved by a rule, the chosen split or first stage.
Line numbers count physical lines from 1, including line breaks in quoted fields; a row has the
number of its first line. In Parquet files they are row numbers.

The readers never unpickle, evaluate or write the content of a file.
"""

from __future__ import annotations

from rankdash.core.readers.by_name.start import sources_at, sources_by_name
from rankdash.core.readers.detect import NAMES as FORMATS
from rankdash.core.readers.detect import SHAPES, Guess, guesses
from rankdash.core.readers.files import BaselineNeeded, Choices, read, read_beside
from rankdash.core.readers.join.conflicts import Conflict, Match, put_right, reversed_note
from rankdash.core.readers.join.parsed_file import Parsed
from rankdash.core.readers.parse.annotators import Together, WordsNeeded
from rankdash.core.readers.parse.columns import MappingNeeded, NumbersNeeded
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.source import Source, name_of, sources_from_path, stem_of
from rankdash.core.readers.parse.table import FIELDS

__all__ = [
    "FIELDS",
    "FORMATS",
    "SHAPES",
    "BaselineNeeded",
    "Choices",
    "Conflict",
    "Guess",
    "MappingNeeded",
    "Match",
    "NumbersNeeded",
    "Parsed",
    "ReadLimits",
    "Source",
    "Together",
    "WordsNeeded",
    "guesses",
    "name_of",
    "put_right",
    "read",
    "read_beside",
    "reversed_note",
    "sources_at",
    "sources_by_name",
    "sources_from_path",
    "stem_of",
]
