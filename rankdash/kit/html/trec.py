"""TREC files: a ranking from which trec_eval reads the very same order, and labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.outfile import replacing
from rankdash.core.data.ranking import Ranking

# What trec_eval splits a line at; an ideographic space may stand in an id.
_BLANKS = frozenset(" \t\n\r\v\f")


def write_run(ranking: Ranking, path: Path, tag: str) -> None:
    """Write `query Q0 document rank score tag` lines, best first, replacing what is there.

    The scores are those of the ranking where they fall from one rank to the next; where they are
    equal, not there or too close for single precision, in which trec_eval holds them, they are
    moved down just enough. The file appears when it is complete.

    Raises DataError where an id cannot stand in the format, and what `replacing` raises.
    """
    _refuse_ids(ranking)
    with replacing(path) as file:
        file.writelines(line.encode("utf-8", "replace") for line in _lines(ranking, tag))


def run_bytes(ranking: Ranking, tag: str) -> bytes:
    """The same lines as `write_run` writes. Raises DataError as it does."""
    _refuse_ids(ranking)
    return "".join(_lines(ranking, tag)).encode("utf-8", "replace")


def qrels_bytes(qrels: pd.DataFrame) -> bytes:
    """Labels as TREC qrels, `query 0 document label` a line. qrels: query_id, doc_id, label.

    trec_eval reads whole numbers only; a label that is none is written as it is, for readers that
    take it.

    Raises DataError where an id cannot stand in the format.
    """
    refuse_blanks(qrels["query_id"].unique(), "query")
    refuse_blanks(qrels["doc_id"].unique(), "document")
    rows = zip(qrels["query_id"], qrels["doc_id"], qrels["label"], strict=True)
    return "".join(f"{query} 0 {doc} {label:.17g}\n" for query, doc, label in rows).encode(
        "utf-8", "replace"
    )


def falling(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(n,) scores of one query, best first, that fall also where they are read in single precision.

    NaN (not scored) is allowed at the end. Scores beyond single precision become n, n-1 … 1.
    """
    n = len(scores)
    fallen = np.array(scores, dtype=np.float64)
    with np.errstate(over="ignore"):
        singles = fallen.astype(np.float32)
        for place in range(1, n):
            if not singles[place] < singles[place - 1]:
                singles[place] = np.nextafter(singles[place - 1], np.float32(-np.inf))
                fallen[place] = singles[place]
    return fallen if np.isfinite(singles).all() else np.arange(n, 0.0, -1.0)


def _refuse_ids(ranking: Ranking) -> None:
    for ids, kind in ((ranking.query_ids, "query"), (ranking.doc_ids, "document")):
        refuse_blanks(ids, kind)


def _lines(ranking: Ranking, tag: str) -> Iterator[str]:
    tag = "-".join(tag.split()) or "rankdash"
    for query in ranking.query_ids:
        documents, scores = ranking.documents_of(query)
        ranked = zip(documents, falling(scores).tolist(), strict=True)
        for rank, (document, score) in enumerate(ranked, start=1):
            yield f"{query} Q0 {document} {rank} {score!r} {tag}\n"


def refuse_blanks(ids: Iterable[str], kind: str) -> None:
    """Raise DataError where one of the ids cannot stand in a TREC file. kind: what it is of."""
    for name in ids:
        if not name or not _BLANKS.isdisjoint(name):
            raise DataError(
                "The id of {kind} {name!r} cannot stand in a TREC file, which separates its fields "
                "by blanks.",
                remedy="Give it an id without blanks.",
                kind=kind,
                name=name,
            )
