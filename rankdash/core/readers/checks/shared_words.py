"""Labels against the words of the texts: a test of each query, and the likely shift of ids.

Null hypothesis of the test: the labelled documents of a query are random documents. The statistic
is the mean share of the query's words, by weight, that a document contains.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.base.text import language_of
from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.data.dataset import Dataset

LEVEL = 0.1
"""Queries with a higher chance are listed, so 9 of 10 queries with random labels are listed."""

FEWEST = 20
"""The fewest labels or queries from which rankdash estimates a share of wrong ones."""

_SEED = 45
_RANDOM = 300
_PER_QUERY = 3
_CHARS = 2000
# The limit of the work, in characters of a script with spaces. In a script without, a character
# takes the time of 40.
_MOST_CHARS = 20_000_000
_UNSPACED_COST = 40
# If the best sampled document contains a smaller share of a query's words on average, queries and
# documents have different languages.
_SHARED = 0.15

_SAMPLE = 200
_MOST_TEXTS = 20_000
# A text fits labels if it is among this share of the best texts for them.
_TOP = 0.05
_NUMBERED = re.compile(r"(\D*)(\d{1,9})")


@dataclass(frozen=True, eq=False)
class SharedWords:
    """The test of Q queries.

    table: query_id, doc_id (its first labelled document), label, documents (the number compared,
        the highest labels first), words and random_words (mean shares of its words in these and in
        random documents), chance (the share of as many random documents with at least `words`).
    of_others: (Q,) the chance of each query with the labels of another query.
    queries: the number of queries that could be tested; above Q if they were sampled.
    """

    table: pd.DataFrame
    of_others: Floats
    queries: int

    @property
    def like_others(self) -> bool:
        """True if queries are listed almost as often as with the labels of other queries."""
        listed = (self.table["chance"] > LEVEL).mean()
        return len(self.table) >= FEWEST and bool(2 * listed > (self.of_others > LEVEL).mean())


def shared_words(dataset: Dataset, documents: pd.Series[str]) -> SharedWords | None:
    """Test the relevant labels (above 0) of a data set. documents: its texts. None if there are too
    few texts, or queries and documents share too few words."""
    queries, random = dataset.query_text(), _random(documents)
    rows = _relevant(dataset)
    texts = [queries.reindex(rows["query_id"]), documents.reindex(rows["doc_id"])]
    rows = rows[np.logical_and(*((text != "").to_numpy() for text in texts))]
    tested = _affordable(rows, documents)
    ids, query = np.unique(tested["query_id"].to_numpy(dtype=object), return_inverse=True)
    if len(ids) < 2 or len(random) < FEWEST:
        return None
    named = pd.Index(tested["doc_id"].unique())
    used = [*random, *documents.loc[named]]
    weights, flags = _weighted(list(queries.loc[ids]), used, len(random))
    of_random: Floats = (weights @ flags[: len(random)].T).toarray()
    doc = len(random) + named.get_indexer(pd.Index(tested["doc_id"]))
    # A labelled document is not a random one.
    again = random.index.get_indexer(pd.Index(tested["doc_id"]))
    of_random[query[again >= 0], again[again >= 0]] = np.nan
    counts = np.bincount(query)
    words = np.bincount(query, _shares(weights, flags, query, doc)) / counts
    highest = np.fmax(np.nanmax(of_random, axis=1, initial=0.0), words)
    if highest.mean() < _SHARED:
        return None
    # Each query receives the labels of another one, in a random circle.
    circle = np.random.default_rng(_SEED).permutation(len(ids))
    receiver = np.empty(len(ids), dtype=np.int64)
    receiver[circle] = np.roll(circle, 1)
    foreign = np.bincount(receiver[query], _shares(weights, flags, receiver[query], doc))
    of_other = np.empty(len(ids), dtype=np.int64)
    of_other[receiver] = counts
    first = tested.iloc[np.unique(query, return_index=True)[1]]
    table = pd.DataFrame(
        {
            "query_id": ids,
            "doc_id": first["doc_id"].to_numpy(dtype=object),
            "label": first["label"].to_numpy(),
            "documents": counts,
            "words": words,
            "random_words": np.nanmean(of_random, axis=1),
            "chance": _chances(of_random, counts, words),
        }
    )
    others = _chances(of_random, of_other, foreign / of_other)
    known = table["chance"].notna() & np.isfinite(others)
    return SharedWords(table[known], others[known], rows["query_id"].nunique())


def _relevant(dataset: Dataset) -> pd.DataFrame:
    """Return query_id, doc_id and label of the highest labels above 0 of each query."""
    labels = dataset.labels
    rows = np.flatnonzero(labels["label"] > 0)
    query, values = labels["query_id"].codes[rows], labels["label"][rows]
    order = np.lexsort((-values, query))
    rows, query = rows[order], query[order]
    place = np.arange(len(rows)) - np.searchsorted(query, query)
    rows = rows[place < _PER_QUERY]
    ids = {name: labels[name].names[labels[name].codes[rows]] for name in ("query_id", "doc_id")}
    return pd.DataFrame({**ids, "label": labels["label"][rows]})


def _affordable(rows: pd.DataFrame, documents: pd.Series[str]) -> pd.DataFrame:
    """Return the rows of all queries, or of sampled ones if their texts are too long."""
    texts = documents.loc[rows["doc_id"]]
    cost = np.minimum(texts.str.len().to_numpy(dtype=np.int64), _CHARS)
    if language_of(texts) in ("zh", "ja"):
        cost *= _UNSPACED_COST
    if cost.sum() <= _MOST_CHARS:
        return rows
    query = pd.factorize(rows["query_id"])[0]
    per_query = np.bincount(query, cost)
    order = np.random.default_rng(_SEED).permutation(len(per_query))
    chosen = order[np.cumsum(per_query[order]) <= _MOST_CHARS]
    return rows[np.isin(query, chosen)]


def _random(documents: pd.Series[str]) -> pd.Series[str]:
    known = documents[documents != ""]
    return known.iloc[np.random.default_rng(_SEED).permutation(len(known))[:_RANDOM]]


def _weighted(queries: Sequence[str], documents: Sequence[str], random: int) -> tuple[Any, Any]:
    """Return sparse matrices: (Q, V) the weight of each word in its query, of sum 1, and (D, V) 1
    for each word in a document. The first documents are `random` ones, in which rare words weigh
    more."""
    from scipy.sparse import csr_array

    from rankdash.core.rerankers.kinds.bm25 import Tokenizer

    words = Tokenizer()([text[:_CHARS] for text in (*queries, *documents)])
    vocabulary = {word: at for at, word in enumerate(dict.fromkeys(chain(*words[: len(queries)])))}
    places = [[vocabulary[each] for each in set(text) if each in vocabulary] for text in words]
    ends = np.cumsum([0, *map(len, places)])
    columns = np.fromiter(chain(*places), dtype=np.int64, count=ends[-1])
    every = csr_array(
        (np.ones(ends[-1], dtype=np.float32), columns, ends), shape=(len(words), len(vocabulary))
    )
    flags = every[len(queries) :]
    often = np.asarray(flags[:random].sum(axis=0))
    weights = every[: len(queries)] * np.log((random + 1) / (often + 0.5))[None, :]
    total = np.asarray(weights.sum(axis=1))
    return csr_array(weights / np.where(total > 0, total, 1.0)[:, None]), flags


def _shares(weights: Any, flags: Any, query: Integers, doc: Integers) -> Floats:
    """Return the (P,) share of the query's words in the document, for P pairs of rows."""
    return np.asarray((weights[query] * flags[doc]).sum(axis=1), dtype=np.float64)


def _chances(of_random: Floats, counts: Integers, words: Floats) -> Floats:
    """Return the (Q,) share of random documents, or of sets of `counts` random documents, with at
    least this mean share of words; NaN if there are none. of_random: (Q, R), NaN if excluded."""
    drawn = np.random.default_rng(_SEED).integers(of_random.shape[1], size=(_RANDOM, _PER_QUERY))
    result = np.empty(len(counts))
    for size in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == size)
        null = of_random[rows]
        if size > 1:
            null = sum(null[:, drawn[:, at]] for at in range(size)) / size
        valid = np.isfinite(null).sum(axis=1)
        # Sums of the same weights may differ in their last digit.
        above = (null >= words[rows, None] - 1e-6).sum(axis=1)
        result[rows] = np.where(valid > 0, above / np.maximum(valid, 1), np.nan)
    return result


_SHIFTS = {
    "number": "The labels belong to other queries: the texts fit if {by} is added to each query "
    "number of the labels. Of {of} sampled queries, {fits} then fit the words of their labelled "
    "documents; by id, {now}.",
    "position": "The labels belong to other queries: the texts fit if the labels number the "
    "queries in the order of their file, from {by}. Of {of} sampled queries, {fits} then fit the "
    "words of their labelled documents; by id, {now}.",
    "row": "The labels belong to other queries: the texts fit if each label moves by {by} rows "
    "in the file of queries. Of {of} sampled queries, {fits} then fit the words of their labelled "
    "documents; by id, {now}.",
}
_BY_ORDER = (
    "Load the files again with Query ids of the labels: by order (--match order), and read some "
    "labelled pairs."
)
_CORRECT_IDS = (
    "Read some labelled pairs, correct the query ids of the labels, and load the files again."
)


@dataclass(frozen=True)
class Shift:
    """A rule that assigns labels to other queries, and fits the texts.

    kind: "number": `by` is added to the number in the query ids of the labels. "position": the
        labels number the queries in the order of the data set, and start at `by`. "row": each label
        belongs to the query `by` rows after its own.
    fits, now: the number of the `of` sampled queries whose labels fit by this rule, and by id.
    """

    kind: Literal["number", "position", "row"]
    by: int
    fits: int
    now: int
    of: int

    @property
    def finding(self) -> Finding:
        """The warning that names the shift."""
        ordered = self.kind == "position" and self.by == 1
        return Finding(
            "warning",
            "labels_shifted",
            _SHIFTS[self.kind],
            {
                "by": self.by if self.kind == "position" else f"{self.by:+d}",
                "fits": self.fits,
                "now": self.now,
                "of": self.of,
            },
            _BY_ORDER if ordered else _CORRECT_IDS,
            count=self.of,
        )


def likely_shift(dataset: Dataset, documents: pd.Series[str]) -> Shift | None:
    """Return the shift of query ids that fits the texts best, if half of the sampled labels fit by
    it, and at least twice as many as by id; else None. documents: the texts of the data set."""
    rows = _relevant(dataset)
    rows = rows[(documents.reindex(rows["doc_id"]) != "").to_numpy()]
    labelled = rows["query_id"].drop_duplicates()
    labelled = labelled.sample(min(len(labelled), _SAMPLE), random_state=_SEED)
    rows = rows[rows["query_id"].isin(labelled)].drop_duplicates("query_id")
    queries = dataset.query_text()
    named = np.flatnonzero((queries != "").to_numpy())[:_MOST_TEXTS]
    random = _random(documents)
    if len(rows) < FEWEST or len(named) < FEWEST:
        return None
    used = [*random, *documents.loc[rows["doc_id"]]]
    weights, flags = _weighted(list(queries.iloc[named]), used, len(random))
    fit = (flags[len(random) :] @ weights.T).toarray()
    # A query of common words fits every document.
    fit -= fit.mean(axis=0)
    label, text = np.nonzero(fit > np.maximum(np.quantile(fit, 1 - _TOP, axis=1), 0)[:, None])
    place = queries.index.get_indexer(pd.Index(rows["query_id"]))
    now = int((place[label] == named[text]).sum())
    number = _numbers(queries.index)
    rules: list[tuple[Literal["number", "position", "row"], Integers, Integers]] = []
    if number is not None:
        rules += [("number", number[place], number[named]), ("position", number[place], named)]
    rules += [("row", place, named)]
    found = []
    for kind, source, target in rules:
        steps, counts = np.unique(target[text] - source[label], return_counts=True)
        at = int(np.argmax(counts))
        of = int(np.isin(source + steps[at], target).sum())
        found.append(Shift(kind, int(steps[at]), int(counts[at]), now, of))
    best = max(found, key=lambda each: each.fits)
    if 2 * best.fits < best.of or best.fits < 2 * now or best.of < max(FEWEST, len(rows) / 2):
        return None
    return replace(best, by=-best.by) if best.kind == "position" else best


def _numbers(ids: pd.Index[Any]) -> Integers | None:
    """Return the numbers at the end of ids; None if the text before them differs."""
    parts = [_NUMBERED.fullmatch(each) for each in ids]
    if not all(parts) or len({part[1] for part in parts if part}) > 1:
        return None
    return np.array([int(part[2]) for part in parts if part])
