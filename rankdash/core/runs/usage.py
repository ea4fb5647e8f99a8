"""What a search of a run sends, what services charged for their answers, and what was put right in
these, from their calls."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.rerankers import Call
from rankdash.core.rerankers.neural.tokenizer import default_tokens
from rankdash.core.value.billing import Load, Searches

# As many different documents as are counted while a page opens.
_COUNTED, _MOST_PAIRS = 3_000, 50_000


@dataclass(frozen=True)
class MeasuredLoad:
    """load: of the mean search; its tokens are NaN where neither texts nor the run have them.
    estimated: whether its tokens were counted by the packaged tokenizer, or by characters without
    one, because the run has no counts."""

    load: Load
    estimated: bool


@dataclass(frozen=True)
class Usage:
    """calls: requests, retried ones once. failed: those that never got an answer.

    billed: unit, by the service's own name, → how much of it; "dollars" at the prices in the
        settings. noted: answers in which something was put right or could not be read. estimated:
        calls whose tokens the service did not count, or whose answers were lost with the program
        that asked; with any, what is billed is at least so much.
    """

    calls: int = 0
    failed: int = 0
    billed: Mapping[str, float] = field(default_factory=dict)
    noted: int = 0
    estimated: int = 0

    @classmethod
    def of(cls, calls: Iterable[Call]) -> Usage:
        """The sum over calls."""
        every = list(calls)
        found = _summed(
            (call.billed for call in every),
            (call.error for call in every),
            (call.note for call in every),
        )
        return replace(found, estimated=sum(call.estimated for call in every))

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.failed + other.failed,
            _sum((self.billed, other.billed)),
            self.noted + other.noted,
            self.estimated + other.estimated,
        )


def usage(run: Run) -> Usage | None:
    """None where the run asked no other machine. Scores from the cache cost nothing and are not
    in it."""
    if run.calls is None:
        return None
    return _summed(map(json.loads, run.calls["billed"]), run.calls["error"], run.calls["note"])


def _summed(
    billed: Iterable[Mapping[str, float]], errors: Iterable[str], notes: Iterable[str]
) -> Usage:
    failed = [error != "" for error in errors]
    return Usage(len(failed), sum(failed), _sum(billed), sum(note != "" for note in notes))


def _sum(billed: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in billed:
        for unit, amount in each.items():
            if math.isfinite(amount):
                found[unit] = found.get(unit, 0.0) + amount
    return found


def load_of(ranking: Ranking, run: Run | None, searches: Searches | None) -> MeasuredLoad:
    """What a search of this run sends. searches: as estimated from the texts; None without."""
    counts = np.diff(ranking.offsets)
    documents = float(counts.mean()) if len(counts) else 0.0
    done = None if run is None else run.queries[run.queries["state"] == "done"]
    if done is not None and done["pairs"].mean() > 0:
        documents = float(done["pairs"].mean())
    estimated = (
        Load(math.nan, documents, math.nan) if searches is None else searches.load(documents)
    )
    if done is None:
        return MeasuredLoad(estimated, estimated=True)
    # A query whose tokens nobody counted would bring its pairs alone.
    counted = done.loc[done["tokens"].notna(), ["pairs", "tokens"]].sum()
    if not (counted > 0).all():
        return MeasuredLoad(estimated, estimated=True)
    each = float(counted["tokens"] / counted["pairs"])
    if searches is None:
        return MeasuredLoad(Load(0.0, documents, each), estimated=False)
    query, document = float(estimated.query_tokens), float(estimated.document_tokens)
    factors = min(each / query, 1.0), max(each - query, 0.0) / document
    return MeasuredLoad(searches.scaled(*factors).load(documents), estimated=False)


def estimated_searches(
    data: Dataset, ranking: Ranking, run: Run | None, counted: dict[str, float]
) -> Searches | None:
    """Return the tokens of the documents that each search of a ranking sends, by the packaged
    tokenizer; None if no text of them is known.

    Of a run the first documents of a list count, as many as it scored. Where there are many, a
    random sample of the queries stands for all. A text that is missing counts as long as the mean
    of the others. counted: document id → tokens, which this fills.
    """
    sizes, starts = np.diff(ranking.offsets), ranking.offsets[:-1]
    if run is not None:
        pairs = run.queries.set_index("query_id")["pairs"].reindex(ranking.query_ids)
        sizes = np.minimum(sizes, pairs.fillna(math.inf).to_numpy()).astype(np.int64)
    order = np.random.default_rng(0).permutation(np.flatnonzero(sizes > 0))
    order = order[: max(int((np.cumsum(sizes[order]) <= _MOST_PAIRS).sum()), 1)]
    if not len(order):
        return None
    docs = np.concatenate([ranking.docs[starts[q] : starts[q] + sizes[q]] for q in order.tolist()])
    new = np.sort(np.unique(docs, return_index=True)[1])
    if len(new) > _COUNTED:
        order = order[: max(int((np.cumsum(sizes[order]) <= new[_COUNTED]).sum()), 1)]
        docs = docs[: sizes[order].sum()]
    places, alike = np.unique(docs, return_inverse=True)
    ids = ranking.doc_ids[places]
    unknown = [doc for doc in ids if doc not in counted and doc in data.document_places]
    texts = data.document_text(np.array([data.document_places[doc] for doc in unknown], np.intp))
    counted.update(zip(unknown, default_tokens(list(texts)), strict=True))
    # A ranking may list documents and queries that the data set does not have.
    documents = np.array([counted.get(doc, 0.0) for doc in ids])[alike]
    asked = data.query_text().reindex(ranking.query_ids[order], fill_value="")
    queries = np.array(default_tokens(list(asked)))
    if not documents.any() or not queries.any():
        return None
    return Searches(_filled(queries), _filled(documents), sizes[order])


def _filled(tokens: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(tokens > 0, tokens, tokens[tokens > 0].mean())
