"""`load`: from files to a checked `Dataset`, the rankings that came with it, and the report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Unpack

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, Finding, SettingError
from rankdash.core.data.dataset import Dataset, FirstStage, Judgements, Retriever, Tables
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.readers import Choices, Parsed, Source, read, sources_at, stem_of
from rankdash.core.readers.checks.check import CheckReport, check
from rankdash.core.readers.rated import read_judged

Retrieval = Retriever | Literal["listed", "rows"]

RETRIEVED = 100
"""How many documents a query gets of a whole corpus, unless another number is asked for."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A data set, the rankings of its precomputed systems by name, and the check report."""

    dataset: Dataset
    rankings: Mapping[str, Ranking]
    report: CheckReport

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The systems as runs of kind "precomputed"."""
        from rankdash.core.rerankers.kinds.precomputed import run_from_ranking

        return tuple(
            run_from_ranking(system, self.dataset.id, ranking, system)
            for system, ranking in self.rankings.items()
        )


def load(
    sources: Sequence[Source],
    *,
    name: str | None = None,
    retrieval: Retrieval | None = None,
    retrieved: int = RETRIEVED,
    **choices: Unpack[Choices],
) -> Loaded:
    """Read the files of one data set and check them; choices as for `readers.read`, else as for
    `checked`.

    Raises what `readers.read` raises, and DataError with the first error of the check report;
    then nothing is kept.
    """
    return usable(examine(sources, name=name, retrieval=retrieval, retrieved=retrieved, **choices))


def usable(loaded: Loaded) -> Loaded:
    """The same. Raises DataError with the first error of its check report."""
    for error in loaded.report.errors:
        raise error.as_error()
    return loaded


def examine(
    sources: Sequence[Source],
    *,
    name: str | None = None,
    retrieval: Retrieval | None = None,
    retrieved: int = RETRIEVED,
    **choices: Unpack[Choices],
) -> Loaded:
    """As `load`, but errors of the check report stay in the report: for showing it whole."""
    return checked(read(sources, **choices), name=name, retrieval=retrieval, retrieved=retrieved)


def checked(
    parsed: Parsed,
    *,
    name: str | None = None,
    retrieval: Retrieval | None = None,
    retrieved: int = RETRIEVED,
) -> Loaded:
    """What was read as a data set with its check report, errors included.

    name: what the data set is called; else the folder, the archive or a file with a telling name
        gives it.
    retrieval: how a first stage is made, which is only asked for where the files give none: from
        all documents by "bm25", "bi-encoder" or both ("fused"); by BM25 from those that the files
        list for a query ("listed"); or the order of the rows ("rows"). None: BM25, from all
        documents where the files tell of more than each query's own.
    retrieved: how many of all documents a query gets.

    Raises DataError where the files give no query any document, or give a first stage though one
    is to be made; SettingError for a number under 1; UnavailableError where what is to make it is
    not installed.
    """
    candidates, kind, notes = _first_stage(parsed, retrieval, retrieved)
    name, ranking = name or parsed.name, parsed.candidates_name
    if parsed.only_ids and kind == "given":
        dataset = Dataset.of_labels(
            name,
            parsed.labels.columns("label"),
            candidates,
            lambda: Tables(parsed.queries, parsed.documents, parsed.qrels),
            candidates_name=ranking,
            only_ids=True,
        )
    else:
        tables = parsed.queries, parsed.documents, parsed.qrels
        dataset = Dataset(name, *tables, candidates, first_stage=kind, candidates_name=ranking)
    report = check(dataset, (*parsed.findings, *notes), parsed.rankings)
    return Loaded(dataset, parsed.rankings, report)


def _first_stage(
    parsed: Parsed, requested: Retrieval | None, depth: int
) -> tuple[Ranking, FirstStage, list[Finding]]:
    """The ranking that rerankers start from, made where the files give no order."""
    if depth < 1:
        raise SettingError(
            "At least 1 document must be retrieved for each query, not {depth}.", depth=depth
        )
    if parsed.candidates is not None:
        if requested is not None:
            raise DataError(
                "The files give a first-stage ranking, so none is made.",
                remedy="Leave out --retrieval, or the file of the ranking.",
            )
        return parsed.candidates, "given", []
    pairs = parsed.pairs if len(parsed.pairs) else parsed.qrels[["query_id", "doc_id"]]
    if not len(pairs):
        raise DataError(
            "The files give no query any document.",
            remedy="Add labels, a ranking, or rows of queries and documents.",
        )
    queries, documents = _texts(parsed.queries, "query_id"), _texts(parsed.documents, "doc_id")
    queries, documents = queries[queries != ""], documents[documents != ""]
    how = requested or (_usual(parsed, documents) if len(queries) and len(documents) else None)
    if how is None or how == "rows":
        return _as_given(pairs), "rows", [_NO_FIRST_STAGE if how is None else _ROWS]
    if not len(queries) or not len(documents):
        raise _NO_FIRST_STAGE.as_error()
    from rankdash.core.rerankers.kinds.bm25 import order_candidates
    from rankdash.core.rerankers.retrieval import retrieve

    if how != "listed":
        ranking = retrieve(how, queries, documents, depth)
        # Queries in one language and documents in another share no word.
        if len(ranking) or requested is not None:
            kind, template = _MADE[how]
            # BM25 finds no document that shares no word with the query.
            most = int(np.diff(ranking.offsets).max(initial=0))
            params = {"depth": most, "documents": len(documents)}
            note = Finding("warning", "made_first_stage", template, params, _OWN_SEARCH)
            return ranking, kind, [note]
    return order_candidates(queries, documents, pairs), "bm25", [_LISTED]


def _usual(parsed: Parsed, documents: pd.Series[str]) -> Retrieval:
    """What the files ask for: rows that list documents for each query, good ones and bad, are its
    candidates; else there is a corpus, of which a search would have to find them."""
    listed = parsed.pairs
    if not len(listed) or not documents.index.isin(listed["doc_id"]).all():
        return "bm25"
    labelled = parsed.qrels.set_index(["query_id", "doc_id"])["label"]
    labels = labelled.reindex(pd.MultiIndex.from_frame(listed[["query_id", "doc_id"]]))
    return "bm25" if bool((labels > 0).all()) else "listed"


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


_OWN_SEARCH = "Add a ranking, or a column of scores or ranks, to start from your own search."
_LISTED = Finding(
    "warning",
    "made_first_stage",
    "The files give no first-stage order, so BM25 ordered the documents that they list for each "
    "query. A search would first have to find them among all others.",
    remedy=_OWN_SEARCH,
)
_ROWS = Finding(
    "warning",
    "order_of_the_file",
    "The order of the rows in the files is the first stage, which is that of a search only where "
    "the rows were written so.",
    remedy=_OWN_SEARCH,
)
_NO_FIRST_STAGE = Finding(
    "error",
    "no_first_stage",
    "The files give neither a first-stage ranking nor texts to make one.",
    remedy="Add the ranking of your search, or the texts of queries and documents. Where the rows "
    "stand in the order of your search, choose that order under First-stage ranking "
    "(--retrieval rows).",
)
_MADE: dict[Retriever, tuple[FirstStage, str]] = {
    "bm25": (
        "corpus-bm25",
        "The files give no first-stage ranking, so BM25 retrieved up to {depth} of all "
        "{documents} documents for each query.",
    ),
    "bi-encoder": (
        "corpus-bi-encoder",
        "The files give no first-stage ranking, so a bi-encoder (all-MiniLM-L6-v2) retrieved up "
        "to {depth} of all {documents} documents for each query.",
    ),
    "fused": (
        "corpus-fused",
        "The files give no first-stage ranking, so BM25 and a bi-encoder (all-MiniLM-L6-v2), "
        "fused, retrieved up to {depth} of all {documents} documents for each query.",
    ),
}


def judgements_at(path: str | os.PathLike[str]) -> tuple[Judgements, list[Finding]]:
    """A judge's grades from a file, and what was noticed in reading it.

    The scale goes from 0, or the lowest grade below it, to the top that the file says, or the
    highest grade. Raises what `readers.rated.read_judged` raises, and DataError for a file without
    a grade or one with a grade above its top.
    """
    sources = sources_at([path])
    if len(sources) != 1:
        raise DataError(
            "The grades of a judge are one file.", remedy="Give that file.", file=os.fspath(path)
        )
    return judgements_in(sources[0])


def judgements_in(source: Source) -> tuple[Judgements, list[Finding]]:
    """The same from one file that was read."""
    judged = read_judged(source)
    grades = judged.table["grade"].dropna()
    if grades.empty:
        raise DataError(
            "The file holds no grades.",
            remedy="Give rows of query, document and the judge's grade.",
            file=source.name,
        )
    top = judged.top if np.isfinite(judged.top) else max(float(grades.max()), 1.0)
    scale = min(float(grades.min()), 0.0), top
    return Judgements(
        judged.name or stem_of(source.name), scale, judged.table, judged.model
    ), judged.findings
