"""Files in, tables out: every format is found from the content, never from the name.

    sources ──unpack──▶ bytes ──decode──▶ text ──reader──▶ Table ──interpret──▶ Part
    all Parts ──combine──▶ Parsed

Read are: delimited text (CSV, TSV and relatives), JSON and JSON lines (rows, or entries that hold
lists), Parquet, Arrow, TREC runs and qrels, BEIR folders, and what other tools write (see
`formats`, where a format is a line); plain, in `.gz` or in `.zip`; several files of one data set
together.

What happens to a bad file or row, in one place:
- A file that cannot be trusted as a whole stops everything, with file, line and remedy, and
  nothing of the call is kept: a damaged archive, JSON that breaks, an unclosed quotation mark,
  an unknown encoding or format, a file without rows, anything beyond `ReadLimits`, a file of which
  more than half of the rows are refused.
- A row that is bad by itself is refused and the others are kept: another number of fields, an
  empty query or document, an empty or unknown label, a score that is not finite, a document that
  the query's list already holds. Refused rows are findings (warnings) by file and reason, with
  the count, the first lines and the first rows.
- A row without a label is no bad row where it has a score or a rank: it is a candidate that nobody
  judged. A row with a label and neither is none either: its document is not in the ranking.
- Nothing is changed in silence: words read as numbers, ids made from texts, labels settled by a
  rule, a split or a first stage that was chosen are findings.
Lines are physical lines, from 1, also where a quoted field holds line breaks; the line of a row is
the one on which it begins. In Parquet files they are row numbers.

Nothing here unpickles, evaluates or writes anything: the text of a file is data.
"""

from __future__ import annotations

from rankdash.core.readers.by_name.start import sources_at, sources_by_name
from rankdash.core.readers.detect import NAMES as FORMATS
from rankdash.core.readers.detect import SHAPES, Guess, guesses
from rankdash.core.readers.files import BaselineNeeded, Choices, read, read_beside
from rankdash.core.readers.join.conflicts import Conflict, Match, put_right, reversed_note
from rankdash.core.readers.join.parsed_file import Parsed
from rankdash.core.readers.parse.annotators import Together, WordsNeeded
from rankdash.core.readers.parse.columns import MappingNeeded
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
