"""Checks that rankings, labels and texts belong to the same queries and documents.

Ids are compared unchanged. If they would match after a small change, the finding suggests it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding, UnavailableError
from rankdash.core.data.arrays import (
    Coded,
    Floats,
    Integers,
    arrow_integers,
    is_plain,
    owners,
    places_in,
)
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, coded
from rankdash.core.metrics import Conventions, evaluate, judge, parse_measure
from rankdash.core.readers.checks.shared_words import LEVEL, likely_shift
from rankdash.core.readers.parse.limits import counted

# The number of labels compared first; if ranking and labels belong together, one usually matches.
_FEW = 1000
_ENOUGH = 0.5

_PREFIX = re.compile(r"^[^0-9]+")
# Smallest change first.
_CHANGES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("The ids differ only in white space around them: write them alike in all files.", str.strip),
    (
        "The ids differ only in how accents are encoded (composed or not): write them alike in all "
        "files.",
        lambda name: unicodedata.normalize("NFC", name.strip()),
    ),
    (
        "The ids differ only in upper and lower case: write them alike in all files.",
        lambda name: name.strip().casefold(),
    ),
    (
        "The ids differ only in leading zeros: write them alike in all files.",
        lambda name: name.strip().casefold().lstrip("0"),
    ),
    (
        "The ids differ only in the prefix before the number: write them alike in all files.",
        lambda name: _PREFIX.sub("", name.strip()).lstrip("0"),
    ),
)


_NOTHING = {
    "queries_match_nothing": "Queries of the ranking {name} that have a label: none of {ranked}. "
    "The ranking has {ranked_example!r}, the labels have {labelled_example!r}.",
    "documents_match_nothing": "Documents of the ranking {name} that have a label: none of "
    "{ranked}. The ranking has {ranked_example!r}, the labels have {labelled_example!r}.",
}


def match_labels(
    name: str,
    ranking: Ranking,
    qrels: pd.DataFrame | Mapping[str, Any],
    *,
    made_ids: bool,
    lost: Collection[str] = (),
) -> list[Finding]:
    """Compare a ranking with the labels (query_id, doc_id; also as `Coded`). Return findings.

    made_ids: some ids were generated from texts, because the rows have none. lost: queries without
    a result, which are excluded and not missing.

    An error if the ranking is empty, or if ranking and labels share no query or no document, so
    that no metric can be computed. A warning if labelled queries are missing, or if queries and
    documents match but no pair does, which is typical of wrong topic numbers. Empty without labels,
    which `check` reports once.
    """
    if not len(qrels["doc_id"]):
        return []
    if not len(ranking):
        return [
            Finding(
                "error",
                "empty_ranking",
                "The ranking {name} contains no documents.",
                {"name": name},
                "Check that the file is complete.",
            )
        ]
    queries = coded(qrels["query_id"])
    ranked = set(ranking.query_ids).difference(lost)
    labelled = set(queries.texts.to_pylist()).difference(lost)
    if not labelled:
        return []
    if not ranked & labelled:
        return [_nothing("queries_match_nothing", name, ranked, labelled, made_ids=made_ids)]
    findings = []
    missing = labelled - ranked
    if missing:
        findings.append(_missing(name, ranked, labelled))
    extra = sorted(ranked - labelled)
    if extra:
        template = "Queries of the ranking {name} without labels: {count}. They are not evaluated."
        note = counted(
            "note", "ranked_not_labelled", template, len(extra), examples=extra, name=name
        )
        findings.append(note)
    documents = coded(qrels["doc_id"])
    together = any(
        _labelled_rows(ranking, queries, documents, labels)
        for labels in (slice(_FEW), slice(_FEW, None))
    )
    if not together and not (places_in(ranking.documents, documents.texts) >= 0).any():
        ids = (set(each.to_pylist()) for each in (ranking.documents, documents.texts))
        return [_nothing("documents_match_nothing", name, *ids, made_ids=made_ids)]
    if not (is_plain(ranking.documents) and is_plain(documents.texts)):
        ids = (set(each.to_pylist()) for each in (ranking.documents, documents.texts))
        findings += _spelled_otherwise(name, *ids)
    if not together:
        findings.append(
            Finding(
                "warning",
                "pairs_match_nothing",
                "The ranking {name} shares no query–document pair with the labels, although it "
                "shares queries and documents with them.",
                {"name": name},
                "Check the query numbers: they may be shifted in one of the files.",
            )
        )
    return findings


def _spelled_otherwise(name: str, ranked: set[str], labelled: set[str]) -> list[Finding]:
    """Return a warning if labelled documents are ranked under an id that looks the same but has
    spaces around it or differently encoded accents: they count as not retrieved."""
    missing = {_look(identity): identity for identity in labelled - ranked}
    # Ranked ids with a label are excluded, because they are other documents.
    pairs = sorted(
        (missing[look], identity)
        for identity in ranked - labelled
        if (look := _look(identity)) in missing
    )
    if not pairs:
        return []
    labelled_example, ranked_example = pairs[0]
    return [
        counted(
            "warning",
            "documents_spelled_otherwise",
            "Labelled documents with a different spelling in the ranking {name}: {count}. The "
            "labels have {labelled_example!a}, the ranking has {ranked_example!a}.",
            len(pairs),
            "These documents count as not retrieved: write the ids alike in all files.",
            examples=[identity for _, identity in pairs],
            name=name,
            labelled_example=labelled_example,
            ranked_example=ranked_example,
        )
    ]


def _look(identity: str) -> str:
    return unicodedata.normalize("NFC", identity.strip())


def _nothing(
    code: str, name: str, ranked: set[str], labelled: set[str], *, made_ids: bool
) -> Finding:
    change, pair = nearly(ranked, labelled)
    if made_ids:
        change = (
            "The rows have no ids, so rankdash generated ids, which the ranking does not contain: "
            "add columns query_id and doc_id to the rows."
        )
    ranked_example, labelled_example = pair or (min(ranked), min(labelled))
    return Finding(
        "error",
        code,
        _NOTHING[code],
        {
            "name": name,
            "ranked": len(ranked),
            "ranked_example": ranked_example,
            "labelled_example": labelled_example,
        },
        change or "Check that the files belong to the same data set.",
        count=len(ranked),
        examples=(ranked_example, labelled_example),
    )


def _missing(name: str, ranked: set[str], labelled: set[str]) -> Finding:
    missing = labelled - ranked
    change, pair = nearly(ranked - labelled, missing)
    examples = list(dict.fromkeys([*(pair or ())[1:], *sorted(missing)]))
    return counted(
        "warning",
        "labelled_not_ranked",
        "Labelled queries that the ranking {name} lacks: {count} of {labelled}, such as "
        "{labelled_example!r}.",
        len(missing),
        change
        or "These queries count as 0, like searches without results, unless you exclude them.",
        examples=examples,
        name=name,
        labelled=len(labelled),
        labelled_example=examples[0],
    )


def _labelled_rows(ranking: Ranking, queries: Coded, documents: Coded, labels: slice) -> bool:
    """Return whether the ranking contains any of the labelled pairs in the slice `labels`."""
    query_at = np.array([ranking.positions.get(each, -1) for each in queries.texts.to_pylist()])
    query = query_at[queries.codes[labels]]
    codes, document = np.unique(documents.codes[labels], return_inverse=True)
    document = places_in(ranking.documents, documents.texts.take(arrow_integers(codes)))[document]
    both = (query >= 0) & (document >= 0)
    size = max(len(ranking.documents), 1)
    ranked = owners(ranking.offsets) * size + ranking.docs
    labelled = query[both] * size + document[both]
    return bool((places_in(arrow_integers(ranked), arrow_integers(labelled)) >= 0).any())


def nearly(
    first: Collection[str], second: Collection[str]
) -> tuple[str | None, tuple[str, str] | None]:
    """Return (advice, a pair of ids) if half of the smaller collection would match the other after
    a small change of spelling; else (None, None)."""
    smaller = min(len(first), len(second))
    if not smaller:
        return None, None
    for advice, change in _CHANGES:
        changed = {change(name): name for name in sorted(first, reverse=True)}
        pairs = [
            (changed[change(name)], name) for name in sorted(second) if change(name) in changed
        ]
        if len(pairs) >= _ENOUGH * smaller and change(pairs[0][1]):
            return advice, pairs[0]
    return None, None


# A check for ids that match by accident.
#
# A labelled document shares more words with its query than a random one does. If it does not,
# although queries and documents of the set share words, the labels probably belong to other
# queries.

_SEED = 36
# Upper limits of queries and of characters per text, which limit the cost for large sets. With
# fewer queries than the lower limit, words shared by chance would decide.
_SAMPLE = 200
_LEAST = 20
_CHARS = 2000
# If the best sampled document contains at least this share of a query's words (by weight) on
# average, queries and documents have the same language and topics.
_SHARED = 0.15
# Standard errors by which labelled pairs must exceed random ones.
_ABOVE = 2.0
# The share of pairs like random ones from which ids may be shifted.
_UNLIKE = 0.4
_LEAST_RANKED = 5
_DEPTH = 10
_WORD = re.compile(r"[^\W_]+")
_HAN = re.compile("([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+)")


def overlap_findings(dataset: Dataset) -> list[Finding]:
    """Return a warning if labelled pairs share no more words than random pairs of the texts."""
    labels = dataset.labels
    queries, documents = _sampled_pairs(labels)
    if len(queries) < _LEAST:
        return []
    query_text, document_text = dataset.query_text(), dataset.document_text()
    labelled_queries = _texts(query_text, labels["query_id"].texts.take(queries).to_pylist())
    labelled_docs = _texts(document_text, labels["doc_id"].texts.take(documents).to_pylist())
    complete = [
        at for at, pair in enumerate(zip(labelled_queries, labelled_docs, strict=True)) if all(pair)
    ]
    if len(complete) < _LEAST:
        return []
    shared = _shared_words(
        [labelled_queries[at] for at in complete], [labelled_docs[at] for at in complete]
    )
    paired = np.diagonal(shared)
    other = documents[complete][:, None] != documents[complete][None, :]
    counts = other.sum(axis=1)
    if shared.max(axis=1).mean() < _SHARED or not counts.all():
        return []
    by_chance = np.where(other, shared, 0.0).sum(axis=1) / counts
    above = paired - by_chance
    accident = above.mean() <= _ABOVE * above.std(ddof=1) / np.sqrt(len(above))
    # After a small shift, labels may belong to a query of the same topic.
    like_others = ((shared >= paired[:, None]) & other).sum(axis=1) > LEVEL * counts
    if accident or like_others.mean() > _UNLIKE:
        with suppress(UnavailableError):
            shift = likely_shift(dataset, document_text)
            if shift is not None:
                return [shift.finding]
    if not accident:
        return []
    return [
        counted(
            "warning",
            "labels_by_accident",
            "Labelled documents share no more words with their query than documents of other "
            "queries do: {own:.0%} and {random:.0%} of the words, in {count} queries. The ids "
            "may match by accident.",
            len(complete),
            "Read some labelled pairs, and check that labels, queries and documents are from the "
            "same data set and numbered alike. If the labels number the queries in the order of "
            "their file, load the files again with Query ids of the labels: by order (--match "
            "order).",
            own=float(paired.mean()),
            random=float(by_chance.mean()),
        )
    ]


def _sampled_pairs(labels: Mapping[str, Any]) -> tuple[Integers, Integers]:
    """Return codes of sampled queries, and of one of the most relevant documents of each."""
    values: Floats = labels["label"]
    relevant = np.flatnonzero(values > max(0.0, float(values.min(initial=0.0))))
    rows = np.random.default_rng(_SEED).permutation(relevant)
    rows = rows[np.argsort(-values[rows], kind="stable")]
    _, first = np.unique(labels["query_id"].codes[rows], return_index=True)
    chosen = rows[np.sort(first)[:_SAMPLE]]
    return labels["query_id"].codes[chosen], labels["doc_id"].codes[chosen]


def _texts(table: Any, ids: Sequence[str]) -> list[str]:
    return [str(text)[:_CHARS] for text in table.reindex(ids).fillna("")]


def _words_of(text: str) -> set[str]:
    """Return the lower-case words of a text; character pairs in scripts without spaces."""
    words: set[str] = set()
    for piece in _HAN.split(text.casefold()):
        if _HAN.match(piece):
            words.update(piece[at : at + 2] for at in range(max(1, len(piece) - 1)))
        else:
            words.update(_WORD.findall(piece))
    return words


def _shared_words(queries: Sequence[str], documents: Sequence[str]) -> Floats:
    """Return the (Q, D) shares of each query's words that are in each document, with a higher
    weight for rare words."""
    query_words = [_words_of(text) for text in queries]
    document_words = [_words_of(text) for text in documents]
    places = {word: at for at, word in enumerate(sorted(set().union(*query_words)))}
    often = Counter(
        word for words in (*query_words, *document_words) for word in words if word in places
    )
    total = len(query_words) + len(document_words)
    weights = np.array([np.log(total / often[word]) for word in places])
    in_queries, in_documents = (_flags(texts, places) for texts in (query_words, document_words))
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
    """Return a warning if no labelled query has a relevant document in the first ten of a
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
            "Check that a higher score is better in the ranking, and that ranking and labels use "
            "the same ids.",
            count=len(hits),
        )
    ]
