"""What is odd about the parts of a data set together: ids that match nothing, texts that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from rankdash.core.base.findings import Finding
from rankdash.core.readers.join.parsed_file import ParsedFile

_EXAMPLES = 5


def noticed(parts: Sequence[ParsedFile], beside: Sequence[ParsedFile]) -> list[Finding]:
    """What is odd about texts and ids, and what was noticed of each of the parts.

    beside: of rankings that were read with them; an id that has another text there is said.
    """
    everything = [*parts, *beside]
    findings = _texts_differ([part.queries for part in everything], "query_id")
    findings += _texts_differ([part.documents for part in everything], "doc_id")
    findings += [*_strangers(parts, "query_id"), *_strangers(parts, "doc_id")]
    for part in parts:
        findings += [*part.findings, *part.refusals.findings()]
    return findings


def _strangers(parts: Sequence[ParsedFile], key: Literal["query_id", "doc_id"]) -> list[Finding]:
    """A warning where no id of the files of queries (or of documents) is labelled, ranked or
    paired by another file."""
    tables = [(part, part.queries if key == "query_id" else part.documents) for part in parts]
    if all(table is None for _, table in tables):
        return []
    speaking = [(part, frame) for part in parts for frame in _frames(part)]
    told = [(part, table) for part, table in tables if table is not None and not _frames(part)]
    if not told or not speaking:
        return []
    ids = {identity for _, table in told for identity in table[key]}
    if any(ids.intersection(pd.unique(frame[key])) for _, frame in speaking):
        return []
    (part, table), (other, frame) = told[0], speaking[0]
    return [
        Finding(
            "warning",
            "ids_match_nothing",
            "Ids of {texts} that occur in the labels or rankings: none of {count}. It has "
            "{example!r}, {file_name} has {other!r}.",
            {
                "count": len(ids),
                "texts": part.file,
                "example": str(table[key].iloc[0]),
                "file_name": other.file,
                "other": str(frame[key].iloc[0]),
            },
            "Check that the files belong to the same data set and write the ids alike in all of "
            "them.",
            other.file,
            int(frame["line"].iloc[0]) if "line" in frame.columns else None,
            len(ids),
        )
    ]


def _frames(part: ParsedFile) -> list[pd.DataFrame]:
    pairs = (part.labels, *(scores.pairs for scores in part.scores))
    frames = [each.frame("value") for each in pairs if len(each)]
    return frames if part.pairs is None else [*frames, part.pairs]


def _texts_differ(frames: Sequence[pd.DataFrame | None], key: str) -> list[Finding]:
    """A warning where tables give an id different texts."""
    filled = [frame[[key, "text"]] for frame in frames if frame is not None]
    if len(filled) < 2:
        return []
    told = pd.concat(filled, ignore_index=True).dropna(subset=["text"])
    texts = told.groupby(key, sort=False)["text"].nunique()
    differing = list(texts.index[texts > 1])
    if not differing:
        return []
    return [
        Finding(
            "warning",
            "texts_differ",
            "Ids with a different text in another file: {count}. The first file's text is used.",
            {"count": len(differing)},
            "Check that the files belong to the same data set.",
            count=len(differing),
            examples=tuple(differing[:_EXAMPLES]),
        )
    ]
