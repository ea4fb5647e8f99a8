"""Whether rankings, labels and texts speak of the same queries and documents.

Ids are compared as they are. Where they do not match but would with a small change, the finding
says which, and nothing is changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.data.arrays import Coded, arrow_integers, is_plain, owners, places_in
from rankdash.core.data.ranking import Ranking, coded

_EXAMPLES = 5
# Where a ranking and labels belong together, one of so many labels shows it.
_FEW = 1000
_ENOUGH = 0.5

_PREFIX = re.compile(r"^[^0-9]+")
# Smallest change first.
_CHANGES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("They differ only in white space around the ids: write them alike in all files.", str.strip),
    (
        "They differ only in how accents are encoded (composed or not): write the ids alike in all "
        "files.",
        lambda name: unicodedata.normalize("NFC", name.strip()),
    ),
    (
        "They differ only in upper and lower case: write the ids alike in all files.",
        lambda name: name.strip().casefold(),
    ),
    (
        "They differ only in leading zeros: write the ids alike in all files.",
        lambda name: name.strip().casefold().lstrip("0"),
    ),
    (
        "They differ only in what stands before the number: write the ids alike in all files.",
        lambda name: _PREFIX.sub("", name.strip()).lstrip("0"),
    ),
)
_MADE_IDS = (
    "The rows have no ids, so ids were generated that the ranking cannot know: add columns "
    "query_id and doc_id to the rows."
)
_OTHER_DATA = "Check that the files belong to the same data set."


@dataclass(frozen=True)
class _Side:
    """Ids of one kind in the labels, and how messages speak of them."""

    code: str
    nothing: str
    partly: str


_QUERIES = _Side(
    "queries_match_nothing",
    "Queries of the ranking {name} that have a label: none of {ranked}. The ranking has "
    "{ranked_example!r}, the labels have {labelled_example!r}.",
    "Labelled queries that the ranking {name} lacks: {count} of {labelled}, such as "
    "{labelled_example!r}.",
)
_DOCUMENTS = _Side(
    "documents_match_nothing",
    "Documents of the ranking {name} that have a label: none of {ranked}. The ranking has "
    "{ranked_example!r}, the labels have {labelled_example!r}.",
    "",
)


def match_labels(
    name: str, ranking: Ranking, qrels: pd.DataFrame | Mapping[str, Any], *, made_ids: bool
) -> list[Finding]:
    """Compare a ranking with the labels (query_id, doc_id; also as `Coded`).

    made_ids: some ids were made from texts, since the rows came without.

    An error where the ranking is empty, or no query, or no document, is in both: then no number
    could be computed. A warning where labelled queries are missing, or where queries and documents
    match but never together, which is what wrong topic numbers look like. Nothing where there are
    no labels: that is said once, and not of each ranking.
    """
    if not len(qrels["doc_id"]):
        return []
    if not len(ranking):
        return [
            Finding(
                "error",
                "empty_ranking",
                "The ranking {name} holds no documents.",
                {"name": name},
                "Check that the file was written to its end.",
            )
        ]
    queries = coded(qrels["query_id"])
    ranked, labelled = set(ranking.query_ids), set(queries.texts.to_pylist())
    if not ranked & labelled:
        return [_nothing(_QUERIES, name, ranked, labelled, made_ids=made_ids)]
    findings = []
    missing = labelled - ranked
    if missing:
        findings.append(_missing(name, ranked, labelled))
    extra = sorted(ranked - labelled)
    if extra:
        findings.append(
            Finding(
                "note",
                "ranked_not_labelled",
                "Queries of the ranking {name} without labels: {count}. They are not evaluated.",
                {"name": name, "count": len(extra)},
                count=len(extra),
                examples=tuple(extra[:_EXAMPLES]),
            )
        )
    documents = coded(qrels["doc_id"])
    together = any(
        _labelled_rows(ranking, queries, documents, labels)
        for labels in (slice(_FEW), slice(_FEW, None))
    )
    if not together and not (places_in(ranking.documents, documents.texts) >= 0).any():
        ids = (set(each.to_pylist()) for each in (ranking.documents, documents.texts))
        return [_nothing(_DOCUMENTS, name, *ids, made_ids=made_ids)]
    if not (is_plain(ranking.documents) and is_plain(documents.texts)):
        ids = (set(each.to_pylist()) for each in (ranking.documents, documents.texts))
        findings += _spelled_otherwise(name, *ids)
    if not together:
        findings.append(
            Finding(
                "warning",
                "pairs_match_nothing",
                "The ranking {name} holds no labelled document for the query it is labelled for, "
                "though queries and documents match one by one.",
                {"name": name},
                "Check the query numbers: they may be shifted in one of the files.",
            )
        )
    return findings


def _spelled_otherwise(name: str, ranked: set[str], labelled: set[str]) -> list[Finding]:
    """A warning where some labelled documents are ranked under an id that looks the same, with
    blanks around it or accents encoded otherwise: they count as not retrieved."""
    lacking = {_look(identity): identity for identity in labelled - ranked}
    # The ids that no label has: those that have one are other documents.
    pairs = sorted(
        (lacking[look], identity)
        for identity in ranked - labelled
        if (look := _look(identity)) in lacking
    )
    if not pairs:
        return []
    wanted, example = pairs[0]
    return [
        Finding(
            "warning",
            "documents_spelled_otherwise",
            "Labelled documents with a different spelling in the ranking {name}: {count}. The "
            "labels have {labelled_example!a}, the ranking has {ranked_example!a}.",
            {
                "name": name,
                "count": len(pairs),
                "labelled_example": wanted,
                "ranked_example": example,
            },
            "They count as not retrieved: write the ids alike in all files.",
            count=len(pairs),
            examples=tuple(identity for _, identity in pairs[:_EXAMPLES]),
        )
    ]


def _look(identity: str) -> str:
    return unicodedata.normalize("NFC", identity.strip())


def _nothing(
    side: _Side, name: str, ranked: set[str], labelled: set[str], *, made_ids: bool
) -> Finding:
    change, pair = nearly(ranked, labelled)
    if made_ids:
        change = _MADE_IDS
    ranked_example, labelled_example = pair or (min(ranked), min(labelled))
    return Finding(
        "error",
        side.code,
        side.nothing,
        {
            "name": name,
            "ranked": len(ranked),
            "ranked_example": ranked_example,
            "labelled_example": labelled_example,
        },
        change or _OTHER_DATA,
        count=len(ranked),
        examples=(ranked_example, labelled_example),
    )


def _missing(name: str, ranked: set[str], labelled: set[str]) -> Finding:
    missing = labelled - ranked
    change, pair = nearly(ranked - labelled, missing)
    examples: tuple[str, ...] = (pair[1],) if pair else ()
    examples = (
        *examples,
        *(query for query in sorted(missing)[:_EXAMPLES] if query not in examples),
    )
    return Finding(
        "warning",
        "labelled_not_ranked",
        _QUERIES.partly,
        {
            "name": name,
            "count": len(missing),
            "labelled": len(labelled),
            "labelled_example": examples[0],
        },
        change or "They count as 0, like a search that finds nothing, unless you exclude them.",
        count=len(missing),
        examples=examples[:_EXAMPLES],
    )


def _labelled_rows(ranking: Ranking, queries: Coded, documents: Coded, labels: slice) -> bool:
    """Whether any ranked row has one of some labels."""
    query_at = np.array([ranking.positions.get(each, -1) for each in queries.texts.to_pylist()])
    query = query_at[queries.codes[labels]]
    codes, document = np.unique(documents.codes[labels], return_inverse=True)
    document = places_in(ranking.documents, documents.texts.take(arrow_integers(codes)))[document]
    known = (query >= 0) & (document >= 0)
    size = max(len(ranking.documents), 1)
    ranked = owners(ranking.offsets) * size + ranking.docs
    labelled = query[known] * size + document[known]
    return bool((places_in(arrow_integers(ranked), arrow_integers(labelled)) >= 0).any())


def nearly(
    first: Collection[str], second: Collection[str]
) -> tuple[str | None, tuple[str, str] | None]:
    """(advice, an example of each) where half of the smaller side would match the other after a
    small change of spelling; (None, None) else."""
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
