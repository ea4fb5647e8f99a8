"""Whether labels, texts and rankings can belong together: what matches by id may do so by accident.

A labelled document shares more words with its query than a random one does. Where it does not, in
a set whose queries and documents share words at all, the labels are likely those of other queries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankdash.core.base.errors import Finding
from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, evaluate, judge, parse_measure

_SEED = 36
# So many queries are looked at, and of each text so many characters: the cost is the same for any
# set. With fewer queries than the least, words that are shared by chance decide.
_SAMPLE = 200
_LEAST = 20
_CHARS = 2000
# At this share of the query's words (by weight) in the best of the sampled documents, queries and
# documents are in one language and about the same things.
_SHARED = 0.15
# Standard errors by which labelled pairs must exceed random ones.
_ABOVE = 2.0
_LEAST_RANKED = 5
_DEPTH = 10
_WORD = re.compile(r"[^\W_]+")
_HAN = re.compile("([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+)")


def overlap_findings(dataset: Dataset) -> list[Finding]:
    """A warning where labelled pairs share no more words than random pairs of the same texts."""
    labels = dataset.labels
    queries, documents = _sampled_pairs(labels)
    if len(queries) < _LEAST:
        return []
    query_text, document_text = dataset.query_text(), dataset.document_text()
    asked = _texts(query_text, labels["query_id"].texts.take(queries).to_pylist())
    found = _texts(document_text, labels["doc_id"].texts.take(documents).to_pylist())
    given = [at for at, pair in enumerate(zip(asked, found, strict=True)) if all(pair)]
    if len(given) < _LEAST:
        return []
    shared = shared_words([asked[at] for at in given], [found[at] for at in given])
    own = np.diagonal(shared)
    other = documents[given][:, None] != documents[given][None, :]
    counts = other.sum(axis=1)
    if shared.max(axis=1).mean() < _SHARED or not counts.all():
        return []
    by_chance = np.where(other, shared, 0.0).sum(axis=1) / counts
    above = own - by_chance
    if above.mean() > _ABOVE * above.std(ddof=1) / np.sqrt(len(above)):
        return []
    return [
        Finding(
            "warning",
            "labels_by_accident",
            "Labelled documents share no more words with their query than documents of other "
            "queries do: {own:.0%} and {random:.0%} of the words, in {count} queries. The ids "
            "may match by accident.",
            {
                "own": float(own.mean()),
                "random": float(by_chance.mean()),
                "count": len(given),
            },
            "Read some labelled pairs, and check that labels, queries and documents are from the "
            "same data set and numbered alike. If the labels count the queries in the order of "
            "their file, load the files again with Query ids of the labels: by order (--match "
            "order).",
            count=len(given),
        )
    ]


def _sampled_pairs(labels: Mapping[str, Any]) -> tuple[Integers, Integers]:
    """Codes of a query and of one of its most relevant documents, for a sample of the queries."""
    values: Floats = labels["label"]
    relevant = np.flatnonzero(values > max(0.0, float(values.min(initial=0.0))))
    rows = np.random.default_rng(_SEED).permutation(relevant)
    rows = rows[np.argsort(-values[rows], kind="stable")]
    _, first = np.unique(labels["query_id"].codes[rows], return_index=True)
    chosen = rows[np.sort(first)[:_SAMPLE]]
    return labels["query_id"].codes[chosen], labels["doc_id"].codes[chosen]


def _texts(table: Any, ids: Sequence[str]) -> list[str]:
    return [str(text)[:_CHARS] for text in table.reindex(ids).fillna("")]


def words_of(text: str) -> set[str]:
    """The words of a text, in lower case; pairs of characters where a script has no blanks."""
    found: set[str] = set()
    for piece in _HAN.split(text.casefold()):
        if _HAN.match(piece):
            found.update(piece[at : at + 2] for at in range(max(1, len(piece) - 1)))
        else:
            found.update(_WORD.findall(piece))
    return found


def shared_words(queries: Sequence[str], documents: Sequence[str]) -> Floats:
    """(Q, D) the share of each query's words that are in each document, rare words counting
    more."""
    asked = [words_of(text) for text in queries]
    found = [words_of(text) for text in documents]
    places = {word: at for at, word in enumerate(sorted(set().union(*asked)))}
    often = Counter(word for words in (*asked, *found) for word in words if word in places)
    total = len(asked) + len(found)
    weights = np.array([np.log(total / often[word]) for word in places])
    in_queries, in_documents = (_flags(texts, places) for texts in (asked, found))
    in_queries *= weights
    all_words = in_queries.sum(axis=1, keepdims=True)
    shares: Floats = in_queries @ in_documents.T / np.where(all_words > 0, all_words, 1.0)
    return shares


def _flags(texts: Sequence[set[str]], places: Mapping[str, int]) -> Floats:
    flags = np.zeros((len(texts), len(places)))
    for at, words in enumerate(texts):
        flags[at, [places[word] for word in words if word in places]] = 1.0
    return flags


def top_findings(name: str, ranking: Ranking, labels: Mapping[str, Any]) -> list[Finding]:
    """A warning where no labelled query has a relevant document among the first ten of a
    ranking."""
    if not len(labels["label"]) or not len(ranking):
        return []
    conventions = Conventions(missing="skip")
    measure = parse_measure(f"hit@{_DEPTH}")
    hits = evaluate(judge(ranking, labels, conventions), [measure], conventions).values[:, 0]
    hits = hits[np.isfinite(hits)]
    if len(hits) < _LEAST_RANKED or hits.any():
        return []
    return [
        Finding(
            "warning",
            "none_in_top",
            "The ranking {name} has no relevant document among the first ten of any query, in "
            "{queries} queries with relevant documents.",
            {"name": name, "queries": len(hits)},
            "Check that a higher score is better in the ranking, and that its ids are those of the "
            "labels.",
            count=len(hits),
        )
    ]
