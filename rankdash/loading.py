"""`load`: from files to a checked `Dataset`, the rankings that came with it, and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import pandas as pd

from rankdash.analysis.labels.check import CheckReport, check
from rankdash.dataset import Dataset, FirstStage
from rankdash.errors import DataError
from rankdash.findings import Finding
from rankdash.ranking.ranking import Ranking, Run
from rankdash.readers import Choices, Parsed, Source, read
from rankdash.rerankers.kinds.bm25 import order_candidates
from rankdash.rerankers.kinds.precomputed import run_from_ranking


@dataclass(frozen=True, eq=False)
class Loaded:
    """A data set, its precomputed systems as runs of kind "precomputed", and the check report."""

    dataset: Dataset
    runs: tuple[Run, ...]
    report: CheckReport


def load(
    sources: Sequence[Source], *, name: str | None = None, **choices: Unpack[Choices]
) -> Loaded:
    """Read the files of one data set and check them; choices as for `readers.read`.

    name: what the data set is called; else the folder, the archive or a file with a telling name
        gives it.

    Raises what `readers.read` raises, and DataError with the first error of the check report;
    then nothing is kept.
    """
    loaded = examine(sources, name=name, **choices)
    for error in loaded.report.errors:
        raise error.as_error()
    return loaded


def examine(
    sources: Sequence[Source], *, name: str | None = None, **choices: Unpack[Choices]
) -> Loaded:
    """As `load`, but errors of the check report stay in the report: for showing it whole."""
    return checked(read(sources, **choices), name=name)


def checked(parsed: Parsed, *, name: str | None = None) -> Loaded:
    """What was read as a data set with its check report, errors included.

    Raises DataError where the files give no query any document.
    """
    candidates, kind, notes = _first_stage(parsed)
    dataset = Dataset(
        name or parsed.name,
        parsed.queries,
        parsed.documents,
        parsed.qrels,
        candidates,
        first_stage=kind,
    )
    report = check(dataset, (*parsed.findings, *notes), parsed.rankings)
    runs = tuple(
        run_from_ranking(system, dataset.id, ranking, system)
        for system, ranking in parsed.rankings.items()
    )
    return Loaded(dataset, runs, report)


def _first_stage(parsed: Parsed) -> tuple[Ranking, FirstStage, list[Finding]]:
    """The ranking that rerankers start from, made where the files give no order."""
    if parsed.candidates is not None:
        return parsed.candidates, "given", []
    own = len(parsed.pairs) > 0
    pairs = parsed.pairs if own else parsed.qrels[["query_id", "doc_id"]]
    if not len(pairs):
        raise DataError(
            "The files give no query any document.",
            remedy="Add labels, a ranking, or rows of queries and documents.",
        )
    queries, documents = _texts(parsed.queries, "query_id"), _texts(parsed.documents, "doc_id")
    if (queries != "").any() and (documents != "").any():
        ranking = order_candidates(queries, documents, pairs)
        return ranking, "bm25", [_made(own)]
    return _as_given(pairs), "given", [_AS_GIVEN]


def _texts(table: pd.DataFrame, key: str) -> pd.Series[str]:
    """id → title and text; "" where there is none."""
    text = table["text"].astype("str").fillna("")
    if "title" in table.columns:
        text = (table["title"].astype("str").fillna("") + " " + text).str.strip()
    return pd.Series(text.to_numpy(dtype=object), index=table[key].to_numpy(dtype=object))


def _as_given(pairs: pd.DataFrame) -> Ranking:
    """The rows in their order; scores fall from 0 by 1."""
    position = pairs.groupby("query_id", sort=False).cumcount().to_numpy(dtype=np.float64)
    return Ranking.from_columns(pairs["query_id"], pairs["doc_id"], -position)


def _made(own: bool) -> Finding:
    template = (
        "The files give no first-stage order, so BM25 ordered each query's own documents."
        if own
        else "The files give no first-stage order, so BM25 ordered each query's labelled documents."
    )
    return Finding(
        "note",
        "made_first_stage",
        template,
        remedy="Add a ranking, or a column of scores or ranks, to start from your own search.",
    )


_AS_GIVEN = Finding(
    "warning",
    "order_of_the_file",
    "The files give neither a first-stage order nor texts to make one, so the order of the rows is "
    "taken.",
    remedy="Add a ranking, or the texts of queries and documents.",
)
