"""A ranking that names queries or documents by their text only, beside texts that have ids."""

from __future__ import annotations

import pandas as pd

from rankdash.readers.files import read
from rankdash.readers.join.parsed_file import Parsed
from rankdash.readers.join.text_ids import Key, no_texts
from rankdash.readers.parse.source import Source

# The note of a reader that made ids from texts → which ids.
_MADE: dict[str, Key] = {"made_query_id": "query_id", "made_doc_id": "doc_id"}


def read_ranking(source: Source, queries: pd.DataFrame, documents: pd.DataFrame) -> Parsed:
    """Read the file of a ranking. Where it names queries (query_id, text) or documents (doc_id,
    text) by their text only, they are the ones that have this text.

    Raises DataError where a name made for a text is the id of something else; and what `read`
    raises.
    """
    alone = read([source])
    if not _made(alone):
        return alone
    texts = [
        Source(f"{source.name}/queries.jsonl", _entries(queries, "query_id", "query")),
        Source(f"{source.name}/documents.jsonl", _entries(documents, "doc_id", "document")),
    ]
    together = read(
        [*(each for each in texts if each.data), source],
        first_stage=None if alone.candidates is None else source.name,
    )
    refuse_chance(together, queries, documents, source.name)
    return together


def _made(parsed: Parsed) -> set[Key]:
    """Which ids were made, since a file has texts only."""
    return {_MADE[each.code] for each in parsed.findings if each.code in _MADE}


def refuse_chance(
    parsed: Parsed, queries: pd.DataFrame, documents: pd.DataFrame, file: str
) -> None:
    """Raises DataError where an id that was made for a text of the ranking in `parsed` is that of
    a query or document whose text is not known: they would be taken for the same."""
    if parsed.candidates is None:
        return
    ranked = {"query_id": parsed.candidates.query_ids, "doc_id": parsed.candidates.doc_ids}
    tables: dict[Key, pd.DataFrame] = {"query_id": queries, "doc_id": documents}
    for key, table in tables.items():
        if key not in _made(parsed):
            continue
        untold = table.loc[~_told(table), key]
        same = set(untold) & set(ranked[key])
        if same:
            raise no_texts(key, min(same), file)


def _told(table: pd.DataFrame) -> pd.Series[bool]:
    return table["text"].notna() & (table["text"].astype("str") != "")


def _entries(table: pd.DataFrame, key: str, text: str) -> bytes:
    """Those that have a text, as JSON lines."""
    told = table.loc[_told(table), [key, "text"]].rename(columns={"text": text})
    return (
        told.to_json(orient="records", lines=True, force_ascii=False).encode() if len(told) else b""
    )
