"""`load`: read files as a `Dataset` with the rankings of its systems and its check report."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Unpack

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, Finding, SettingError
from rankdash.core.data.dataset import Dataset, FirstStage, Retriever, Tables
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.readers import Choices, Parsed, Source, read, sources_at, stem_of
from rankdash.core.readers.checks.check import CheckReport, check
from rankdash.core.readers.rated import read_judged

Retrieval = Retriever | Literal["listed", "rows"]

RETRIEVED = 100
"""The default number of documents retrieved per query from a whole corpus."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A data set, the rankings of its precomputed systems by name, the check report, and the
    outcomes of `Parsed`."""

    dataset: Dataset
    rankings: Mapping[str, Ranking]
    report: CheckReport
    outcomes: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The systems as runs of kind "precomputed"."""
        from rankdash.core.rerankers.kinds.precomputed import run_from_ranking

        return tuple(
            run_from_ranking(
                *(system, self.dataset.id, ranking, system),
                _outcomes_in(self.dataset, self.outcomes.get(system)),
            )
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
    """Read the files of one data set and check them. choices: as for `readers.read`; other
    arguments as for `checked`.

    Raises what `readers.read` raises, and DataError with the first error of the check report.
    """
    return usable(examine(sources, name=name, retrieval=retrieval, retrieved=retrieved, **choices))


def usable(loaded: Loaded) -> Loaded:
    """Return `loaded`, or raise DataError with the first error of its check report."""
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
    """Read and check files like `load`, but return the errors in the check report."""
    return checked(read(sources, **choices), name=name, retrieval=retrieval, retrieved=retrieved)


def checked(
    parsed: Parsed,
    *,
    name: str | None = None,
    retrieval: Retrieval | None = None,
    retrieved: int = RETRIEVED,
    lost: Mapping[str, Collection[str]] | None = None,
) -> Loaded:
    """Create a data set with its check report (including errors) from parsed files.

    name: the name of the data set; by default the name of the folder, archive or file.
    retrieval: the method to make a first stage, only for files that contain none: retrieval from
        all documents by "bm25", "bi-encoder" or both ("fused"); BM25 over the documents that the
        files list for a query ("listed"); or the order of the rows ("rows"). None: BM25, over all
        documents if the files contain more than the listed ones.
    retrieved: the number of documents retrieved per query from all documents.
    lost: the queries without a result, as for `check`.

    Raises DataError if no query has a document, or if `retrieval` is set and the files contain a
    first stage; SettingError if `retrieved` is below 1; UnavailableError if a package is missing.
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
    if "" in parsed.outcomes and not dataset.only_ids:
        from rankdash.core.rerankers.kinds.precomputed import run_from_ranking

        timed = _outcomes_in(dataset, parsed.outcomes[""])
        dataset.timings = run_from_ranking("", dataset.id, candidates, "", timed).queries
    failed = {
        system: set(frame["query_id"][frame["state"] == "failed"])
        for system, frame in parsed.outcomes.items()
    }
    lost = {**failed, **(lost or {})}
    report = check(dataset, (*parsed.findings, *notes), parsed.rankings, lost)
    return Loaded(dataset, parsed.rankings, report, parsed.outcomes)


def _outcomes_in(dataset: Dataset, outcomes: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return the outcomes of queries that the data set has."""
    if outcomes is None:
        return None
    known = outcomes[outcomes["query_id"].isin(dataset.queries["query_id"])]
    return known.drop_duplicates("query_id", keep="last")


def _first_stage(
    parsed: Parsed, requested: Retrieval | None, depth: int
) -> tuple[Ranking, FirstStage, list[Finding]]:
    """Return the first-stage ranking, its kind and findings; make it if the files have none."""
    if depth < 1:
        raise SettingError(
            "At least 1 document must be retrieved for each query, not {depth}.", depth=depth
        )
    if parsed.candidates is not None:
        if requested is not None:
            raise DataError(
                "The files already contain a first-stage ranking.",
                remedy="Remove --retrieval, or the file of the ranking.",
            )
        return parsed.candidates, "given", []
    pairs = parsed.pairs if len(parsed.pairs) else parsed.qrels[["query_id", "doc_id"]]
    # A requested retrieval needs only texts.
    if not len(pairs) and requested not in _MADE:
        raise DataError(
            "No query in the files has a document.",
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
        # BM25 finds nothing if queries and documents are in different languages.
        if len(ranking) or requested is not None:
            kind, template = _MADE[how]
            # BM25 may find fewer than `depth`: only documents that share a word with the query.
            most = int(np.diff(ranking.offsets).max(initial=0))
            params = {"depth": most, "documents": len(documents)}
            note = Finding("warning", "made_first_stage", template, params, _OWN_SEARCH)
            return ranking, kind, [note]
    return order_candidates(queries, documents, pairs), "bm25", [_LISTED]


def _usual(parsed: Parsed, documents: pd.Series[str]) -> Retrieval:
    """Return the default retrieval: "listed" if rows list all documents per query, relevant and
    not relevant ones, so that they are its candidates; else "bm25" over all documents."""
    listed = parsed.pairs
    if not len(listed) or not documents.index.isin(listed["doc_id"]).all():
        return "bm25"
    labelled = parsed.qrels.set_index(["query_id", "doc_id"])["label"]
    labels = labelled.reindex(pd.MultiIndex.from_frame(listed[["query_id", "doc_id"]]))
    return "bm25" if bool((labels > 0).all()) else "listed"


def _texts(table: pd.DataFrame, key: str) -> pd.Series[str]:
    """Return id → title and text; "" if there is none."""
    text = table["text"].astype("str").fillna("")
    if "title" in table.columns:
        text = (table["title"].astype("str").fillna("") + " " + text).str.strip()
    return pd.Series(text.to_numpy(dtype=object), index=table[key].to_numpy(dtype=object))


def _as_given(pairs: pd.DataFrame) -> Ranking:
    """Return the ranking in the order of the rows, with scores 0, -1, -2, …"""
    position = pairs.groupby("query_id", sort=False).cumcount().to_numpy(dtype=np.float64)
    return Ranking.from_columns(pairs["query_id"], pairs["doc_id"], -position)


_OWN_SEARCH = "Add a ranking, or a column of scores or ranks, to start from your own search."
_LISTED = Finding(
    "warning",
    "made_first_stage",
    "The files contain no first-stage ranking, so BM25 ordered the documents that they list for "
    "each query. A real search would first have to find them among all documents.",
    remedy=_OWN_SEARCH,
)
_ROWS = Finding(
    "warning",
    "order_of_the_file",
    "The first stage is the order of the rows in the files. It matches your search only if the "
    "rows were written in that order.",
    remedy=_OWN_SEARCH,
)
_NO_FIRST_STAGE = Finding(
    "error",
    "no_first_stage",
    "The files contain neither a first-stage ranking nor texts to make one.",
    remedy="Add the ranking of your search, or the texts of queries and documents. If the rows are "
    "in the order of your search, choose that order under First-stage ranking (--retrieval rows).",
)
_MADE: dict[Retriever, tuple[FirstStage, str]] = {
    "bm25": (
        "corpus-bm25",
        "The files contain no first-stage ranking, so BM25 retrieved up to {depth} of all "
        "{documents} documents for each query.",
    ),
    "bi-encoder": (
        "corpus-bi-encoder",
        "The files contain no first-stage ranking, so a bi-encoder (all-MiniLM-L6-v2) retrieved up "
        "to {depth} of all {documents} documents for each query.",
    ),
    "fused": (
        "corpus-fused",
        "The files contain no first-stage ranking, so BM25 and a bi-encoder (all-MiniLM-L6-v2), "
        "fused, retrieved up to {depth} of all {documents} documents for each query.",
    ),
}


def judgements_at(path: str | os.PathLike[str]) -> tuple[Judgements, list[Finding]]:
    """Read a judge's grades and the findings from a file.

    The scale starts at 0, or at the lowest grade if it is negative, and ends at the top that the
    file states, or at the highest grade. Raises what `readers.rated.read_judged` raises, and
    DataError if the file has no grade or a grade above its top.
    """
    sources = sources_at([path])
    if len(sources) != 1:
        raise DataError(
            "A judge's grades must be one file.", remedy="Provide the file.", file=os.fspath(path)
        )
    return judgements_in(sources[0])


def judgements_in(source: Source) -> tuple[Judgements, list[Finding]]:
    """Read a judge's grades and the findings from a source; see `judgements_at`."""
    judged = read_judged(source)
    grades = judged.table["grade"].dropna()
    if grades.empty:
        raise DataError(
            "The file contains no grades.",
            remedy="Provide rows with the query, the document and the judge's grade.",
            file=source.name,
        )
    top = judged.top if np.isfinite(judged.top) else max(float(grades.max()), 1.0)
    scale = min(float(grades.min()), 0.0), top
    return Judgements(
        judged.name or stem_of(source.name), scale, judged.table, judged.model
    ), judged.findings
