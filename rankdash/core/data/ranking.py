"""`Ranking` and `Run`: ordered documents per query, with rules for ties and score precision."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rankdash.core.base.errors import DataError
from rankdash.core.base.rules import ScorePrecision, Ties
from rankdash.core.base.text import html_safe, notebook_html
from rankdash.core.data.arrays import (
    Coded,
    Flags,
    Floats,
    Integers,
    argsort_descending,
    arrow_integers,
    arrow_text,
    come_in_runs,
    descend,
    descending_ids,
    equal_runs,
    has_repeats,
    objects,
    offsets_from,
    places,
    run_starts,
    sort_codes,
    tied_groups,
)
from rankdash.core.data.measured import Measured, Stopped


def _tie_order(
    runs: Integers, ties: Ties, source_rows: Integers, by_id: Callable[[], Integers]
) -> Integers:
    """Return the (T,) order of tied rows: by group of equal scores, then by the tie rule.

    runs:  (T,) the group of equal scores that contains each row.
    source_rows: (T,) the row of each in the input of the ranking (the order of the rule "stable").
    by_id: returns their (T,) positions in descending order of document ids (the rule "trec", as in
        trec_eval).
    """
    key = source_rows if ties == "stable" else by_id()
    return np.argsort(runs * (int(key.max()) + 1) + key)


def stored_scores(scores: Floats, precision: ScorePrecision) -> npt.NDArray[np.floating[Any]]:
    """Return the scores rounded to `precision`: "float32" (as in trec_eval) or "float64"."""
    with np.errstate(over="ignore"):
        return scores.astype(precision, copy=False)


# From rows to ordered lists: group rows by id and sort by score.
#
# Ids are Arrow text, which groups a million of them in milliseconds and compares them byte by byte,
# as C programs such as trec_eval do.


def text_array(ids: Sequence[str] | pd.Series[Any] | npt.NDArray[Any]) -> Any:
    """Convert ids to one Arrow text array. Other values become text ("7" for 7)."""
    if isinstance(ids, pd.Series):
        series = ids
    else:
        series = pd.Series(np.asarray(ids, dtype=object), dtype=object)
    if not isinstance(series.dtype, pd.StringDtype):
        series = series.astype("str")
    array = pa.array(series)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array


@dataclass(frozen=True, eq=False)
class Groups:
    """A grouping of rows by id.

    ids:     (G,) Arrow text, in the order of first appearance.
    offsets: (G + 1,) the start of each group in the grouped order.
    rows:    (N,) the row at each grouped position; None if the rows were already grouped.
    """

    ids: Any
    offsets: Integers
    rows: Integers | None

    def arrange(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return (N,) values of rows, reordered so that the rows of each group are adjacent."""
        return values if self.rows is None else values[self.rows]


def coded(ids: Sequence[str] | pd.Series[Any] | npt.NDArray[Any] | Coded) -> Coded:
    """Convert ids to `Coded`, unless they already are."""
    return ids if isinstance(ids, Coded) else Coded.of(text_array(ids))


def group_rows(ids: Any) -> Groups:
    """Group rows by (N,) ids: Arrow text, or `Coded` without missing ids. The order of rows within
    a group is unchanged."""
    if not isinstance(ids, Coded):
        if come_in_runs(ids):
            starts = run_starts(ids)
            named = ids.take(arrow_integers(starts))
            if len(pc.unique(named)) == len(named):
                return Groups(named, np.append(starts, len(ids)), None)
        ids = Coded.of(ids)
    codes = ids.codes
    counts = np.bincount(codes, minlength=len(ids.texts))
    # Codes are numbered by first appearance, so they ascend if equal ids are adjacent.
    rows = None if (codes[1:] >= codes[:-1]).all() else sort_codes(codes, len(ids.texts))
    return Groups(ids.texts, offsets_from(counts), rows)


@dataclass(frozen=True, eq=False)
class _Ordered:
    """Rows sorted by group and score, ties resolved.

    rows:   (N,) the row at each position.
    scores: (N,) descending within a group, except for scores that are equal at the precision.
    tied:   (G,) True if two rows of the group share a score.
    """

    rows: Integers
    scores: Floats
    tied: Flags


def order_rows(
    groups: Groups,
    scores: Floats,
    ids_of: Any,
    ties: Ties,
    precision: ScorePrecision = "float64",
) -> _Ordered:
    """Order grouped rows by (N,) finite score, descending.

    ids_of: returns the document ids of (R,) rows as Arrow text; None if ties are "stable".
    precision: the precision at which scores are compared to find ties.
    """
    ranked = groups.arrange(scores)
    rows = groups.rows
    if not descend(ranked, groups.offsets):
        order = argsort_descending(ranked, groups.offsets)
        ranked = ranked[order]
        rows = order if rows is None else rows[order]
    rows = np.arange(len(scores)) if rows is None else rows.copy()
    positions, runs = equal_runs(stored_scores(ranked, precision), groups.offsets)
    if len(positions):
        tied_rows = rows[positions]

        def by_id() -> Integers:
            return descending_ids(ids_of(tied_rows))

        rows[positions] = tied_rows[_tie_order(runs, ties, tied_rows, by_id)]
    return _Ordered(rows, ranked, tied_groups(positions, groups.offsets))


# `Ranking` (called a run in IR) and `Run`, a ranking with its settings and measurements.
#
# A ranking is a sorted list of (query, document, score). It is stored as integer codes sorted by
# query and rank, with an offsets array (CSR): the documents of query `i` are
# `docs[offsets[i]:offsets[i+1]]`, best first. Ties are resolved when the ranking is created.

QueryState = Literal["done", "failed", "skipped"]

SHIPPED_WITH = "shipped_with"
"""The key in `Run.machine` that marks runs shipped with a sample."""

CHURN = "churn@10"
"""The key in `Run.machine` of the mean share of the top 10 that a repeated fetch changes."""


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make the array read-only and return it."""
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Ranking:
    """An ordered list of documents for each query.

    query_ids: (Q,) object array of str, in the order of first appearance.
    documents: (D,) Arrow text, the distinct documents; `doc_ids` has them as objects.
    offsets:   (Q + 1,) int64.
    docs:      (N,) int32 codes into `doc_ids`, by query, best first.
    scores:    (N,) float64, never ascending within a query; NaN only at the end of a list, for
               documents that were not scored, in their previous order.
    tied:      (Q,) bool, True if two documents of the query share a score.
    ties:      the rule that ordered equal scores: "trec" = document id descending, as in trec_eval;
               "stable" = the order of the input rows.
    given:     (N,) int32, the row of each document in the input of the ranking, so that ties can be
               resolved again by another rule.
    """

    query_ids: npt.NDArray[np.object_]
    documents: Any
    offsets: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]
    tied: npt.NDArray[np.bool_]
    ties: Ties
    given: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        for array in (
            self.query_ids,
            self.offsets,
            self.docs,
            self.scores,
            self.tied,
            self.given,
        ):
            frozen(array)

    @classmethod
    def from_columns(
        cls,
        query_ids: Sequence[str] | pd.Series[str] | npt.NDArray[Any] | Coded,
        doc_ids: Sequence[str] | pd.Series[str] | npt.NDArray[Any] | Coded,
        scores: Sequence[float] | pd.Series[float] | npt.NDArray[Any],
        *,
        ties: Ties = "stable",
    ) -> Ranking:
        """Rank by score, descending. All three have shape (N,), in any order of rows.

        Raises DataError if an id is missing, a score is not finite or a (query, document) pair is
        duplicated.
        """
        values = np.array(scores, dtype=np.float64)
        if not len(query_ids) == len(doc_ids) == len(values):
            raise DataError("A ranking needs one query, one document and one score in every row.")
        queries, documents = coded(query_ids), coded(doc_ids)
        if (queries.codes < 0).any() or (documents.codes < 0).any():
            raise DataError("A row of a ranking has no query id or no document id.")
        _refuse_missing_scores(queries, documents, values)
        groups = group_rows(queries)
        ordered = order_rows(groups, values, documents.texts_of, ties)
        if has_repeats(groups.arrange(documents.codes), groups.offsets):
            _refuse_repeats(queries, documents)
        return cls(
            query_ids=objects(groups.ids),
            documents=documents.texts,
            offsets=groups.offsets,
            docs=documents.codes[ordered.rows],
            scores=ordered.scores,
            tied=ordered.tied,
            ties=ties,
            given=ordered.rows.astype(np.int32),
        )

    @classmethod
    def from_lists(cls, lists: Iterable[tuple[str, Sequence[str], Sequence[float]]]) -> Ranking:
        """Create a ranking from sorted lists: (query id, document ids best first, scores).

        Scores must not rise; NaN (not scored) is allowed only at the end of a list. Raises
        DataError for duplicate queries, duplicate documents of a query and rising scores.
        """
        triples = list(lists)
        flat = [doc for _, docs, _ in triples for doc in docs]
        codes, vocabulary = pd.factorize(np.array(flat, dtype=object))
        offsets = offsets_from(np.array([len(docs) for _, docs, _ in triples], dtype=np.int64))
        scores = np.array([s for _, _, values in triples for s in values], dtype=np.float64)
        if len(scores) != len(codes):
            raise DataError("A ranking needs one score for each document.")
        queries = np.array([query for query, _, _ in triples], dtype=object)
        if len(set(queries)) != len(queries):
            raise DataError("A ranking lists the same query twice.")
        if not descend(scores, offsets):
            raise DataError("The scores of a ranking must not rise from one rank to the next.")
        if has_repeats(codes, offsets):
            raise DataError("A ranking lists the same document twice for one query.")
        return cls(
            query_ids=queries,
            documents=arrow_text(vocabulary),
            offsets=offsets,
            docs=codes.astype(np.int32),
            scores=scores,
            tied=tied_groups(equal_runs(scores, offsets)[0], offsets),
            ties="stable",
            given=np.arange(len(codes), dtype=np.int32),
        )

    def with_ties(self, ties: Ties, precision: ScorePrecision = "float64") -> Ranking:
        """Return the same ranking with equal scores ordered by `ties`.

        precision: "float32" rounds the scores to single precision, as trec_eval does, so that more
            of them are equal. Documents without a score do not move.
        """
        if ties == self.ties and precision == "float64":
            return self
        scores = stored_scores(self.scores, precision).astype(np.float64)
        docs, source_rows = self.docs.copy(), self.given.copy()
        positions, runs = equal_runs(scores, self.offsets)
        if len(positions):

            def by_id() -> npt.NDArray[np.int64]:
                named, codes = np.unique(self.docs[positions], return_inverse=True)
                return descending_ids(self.documents.take(arrow_integers(named)))[codes]

            rows = self.given[positions].astype(np.int64)
            source = positions[_tie_order(runs, ties, rows, by_id)]
            docs[positions], source_rows[positions] = self.docs[source], self.given[source]
        tied = tied_groups(positions, self.offsets)
        return replace(self, docs=docs, given=source_rows, scores=scores, tied=tied, ties=ties)

    def without(self, query_ids: Iterable[str]) -> Ranking:
        """Return the same ranking without some queries."""
        return self.only(set(self.query_ids).difference(query_ids))

    def only(self, query_ids: Collection[str]) -> Ranking:
        """Return the same ranking with some queries only."""
        selected = np.array([query in query_ids for query in self.query_ids], dtype=bool)
        counts = np.diff(self.offsets)
        rows = np.repeat(selected, counts)
        return replace(
            self,
            query_ids=self.query_ids[selected],
            offsets=offsets_from(counts[selected]),
            docs=self.docs[rows],
            scores=self.scores[rows],
            tied=self.tied[selected],
            given=self.given[rows],
        )

    def __len__(self) -> int:
        """Return the number of (query, document) rows."""
        return len(self.docs)

    def documents_of(self, query_id: str) -> tuple[list[str], npt.NDArray[np.float64]]:
        """Return the document ids of a query, best first, and their scores; empty if not ranked."""
        position = self.positions.get(query_id)
        if position is None:
            return [], np.zeros(0)
        start, stop = self.offsets[position], self.offsets[position + 1]
        return list(self.doc_ids[self.docs[start:stop]]), self.scores[start:stop]

    def frame(self) -> pd.DataFrame:
        """Return one row per document: query_id, doc_id, rank (from 1), score."""
        counts = np.diff(self.offsets)
        return pd.DataFrame(
            {
                "query_id": np.repeat(self.query_ids, counts),
                "doc_id": self.doc_ids[self.docs],
                "rank": places(self.offsets),
                "score": self.scores,
            }
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows of `frame` as an Arrow stream, for polars, DuckDB and others."""
        return self.frame().__arrow_c_stream__(requested_schema)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Query id → index in `query_ids`."""
        return {query: position for position, query in enumerate(self.query_ids)}

    @cached_property
    def doc_ids(self) -> npt.NDArray[np.object_]:
        """(D,) `documents` as a read-only object array of str."""
        return frozen(objects(self.documents))


def _refuse_missing_scores(queries: Coded, docs: Coded, scores: npt.NDArray[np.float64]) -> None:
    missing = np.flatnonzero(~np.isfinite(scores))
    if len(missing):
        row = int(missing[0])
        raise DataError(
            "Rows without a finite score: {count}; the first is document {doc!r} of query "
            "{query!r}.",
            remedy="Add a number to every row, or remove rows without one.",
            count=len(missing),
            doc=docs.texts[docs.codes[row]].as_py(),
            query=queries.texts[queries.codes[row]].as_py(),
        )


def _refuse_repeats(queries: Coded, docs: Coded) -> None:
    pairs = pd.DataFrame({"query": queries.objects(), "doc": docs.objects()})
    repeated = pairs[pairs.duplicated()]
    raise DataError(
        "Duplicate documents in a ranking: {count}; the first is {doc!r} of query {query!r}.",
        remedy="Keep one row per query and document.",
        count=len(repeated),
        doc=repeated["doc"].iloc[0],
        query=repeated["query"].iloc[0],
    )


@dataclass(frozen=True, eq=False)
class Reading:
    """Token counts per pair, one for each row of the ranking of a `Run`.

    read: (N,) int32, tokens of query and document that the model read; -1 if unknown, for example
        for documents that were not reranked.
    full: (N,) int32, tokens before truncation; -1 if unknown.

    If ties were resolved again, `ranking.given` maps rows of that ranking to rows here.
    """

    read: npt.NDArray[np.int32]
    full: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        frozen(self.read)
        frozen(self.full)


@dataclass(frozen=True, eq=False)
class Run:
    """A ranking with the settings, states and measurements of its run.

    queries: one row per query of the run, with
        query_id, state (QueryState), reason (why it failed, else ""),
        latency_ms (warm, of the query with its own documents, without waits before retries; NaN if
        not measured, for example because it was scored in a batch or from the cache),
        index_ms (work that a search system does beforehand, such as embedding documents; NaN if
        there was none),
        pairs, tokens and truncated (numbers of pairs, tokens read and truncated documents; NaN if
        unknown).
    A failed or skipped query has no rows in `ranking`; it is never an empty list of results.
    settings: the settings of the reranker, by the keys of its schema.
    machine: the machine of the run (cpu, threads, versions).
    depth: the number of candidates reranked per query; None for all. Candidates below it follow the
        reranked ones in first-stage order, with NaN scores.
    load_ms: the cold start (loading and warming up the model), not included in latencies.
    reading: None if the reranker reads no tokens, or the ranking is from a file.
    measured: None if the ranking is from a file, or from a run of an older version.
    calls: one row per request to another machine, also for failed queries: query_id,
        start_s (by a clock of the scoring process), ms, attempts, retry_wait_ms, status,
        server_ms, queue_ms (NaN if the server does not report it), billed (JSON: billed units by
        the service's names), error, note (corrections of the response); None without requests.
    documents: doc_id (unique str), title (str) and text (str or missing) of ranked documents that
        the data set lacks, or has without a text; None without any.
    """

    id: str
    name: str
    dataset_id: str
    ranking: Ranking
    reranker: str
    queries: pd.DataFrame
    settings: Mapping[str, object] = field(default_factory=dict)
    machine: Mapping[str, object] = field(default_factory=dict)
    depth: int | None = None
    load_ms: float = float("nan")
    created: str = ""
    reading: Reading | None = None
    measured: Measured | None = None
    calls: pd.DataFrame | None = None
    documents: pd.DataFrame | None = None

    def __repr__(self) -> str:
        done = int((self.queries["state"] == "done").sum())
        return f"Run({self.name!r}, {done} of {len(self.queries)} queries done, id={self.id})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows of the ranking as an Arrow stream."""
        return self.ranking.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """Show the name, the states of the queries and the latency in a notebook."""
        shown: dict[str, object] = {"reranker": self.reranker}
        states = self.queries["state"].value_counts()
        shown |= {f"queries {state}": count for state, count in states.items()}
        shown |= {"documents per query": "all" if self.depth is None else self.depth}
        latency = self.queries["latency_ms"].dropna()
        if len(latency):
            shown |= {f"p{q} (ms)": f"{latency.quantile(q / 100):.1f}" for q in (50, 95)}
        table = pd.DataFrame({"": shown}).to_html(header=False)
        return notebook_html(f"<p>{html_safe(self.name)}</p>{table}")

    @property
    def shipped(self) -> bool:
        """True if the run is part of a shipped sample: it was then measured on another machine."""
        return SHIPPED_WITH in self.machine

    @property
    def stopped(self) -> Stopped | None:
        """The record of an early stop, made because the result was conclusive; None without one."""
        return None if self.measured is None else self.measured.stopped

    @cached_property
    def excluded(self) -> dict[str, str]:
        """Query id → "failed" or "skipped", for the queries without a result."""
        rows = self.queries[self.queries["state"] != "done"]
        return dict(zip(rows["query_id"], rows["state"], strict=True))


RETRIEVAL = "retrieval"
"""The kind of a run that retrieved from all documents, in place of the name of a reranker."""

SOURCE, SOURCE_ID = "candidates", "candidates_id"
"""Settings of a run over the candidates of a retrieval: its name and its id."""


def source_id(settings: Mapping[str, object]) -> str | None:
    """Return the id of the retrieval with a run's candidates; None for the first stage."""
    source = settings.get(SOURCE_ID)
    return None if source is None else str(source)


def documents_of(runs: Iterable[Run]) -> pd.DataFrame | None:
    """Return the documents of several runs, each once; None without any."""
    frames = [run.documents for run in runs if run.documents is not None]
    return unique_documents(pd.concat(frames)) if frames else None


def unique_documents(documents: pd.DataFrame) -> pd.DataFrame:
    """Return each document once: its first row with a text, or its first row."""
    with_text_first = documents.sort_values("text", key=pd.isna, kind="stable")
    return with_text_first.drop_duplicates("doc_id", ignore_index=True)


def digest(parts: Iterable[bytes | memoryview]) -> str:
    """Return a stable hash of `parts`, in order, as 16 hexadecimal characters."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8, "little"))
        sha.update(part)
    return sha.hexdigest()[:16]
