"""Whether rankings, labels and texts speak of the same queries and documents.

Ids are compared as they are. Where they do not match but would with a small change, the finding
says which, and nothing is changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.findings import Finding
from rankdash.ranking.ranking import Ranking

_EXAMPLES = 5
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
    name: str, ranking: Ranking, qrels: pd.DataFrame, *, made_ids: bool
) -> list[Finding]:
    """Compare a ranking with the labels (query_id, doc_id).

    made_ids: some ids were made from texts, since the rows came without.

    An error where the ranking is empty, or no query, or no document, is in both: then no number
    could be computed. A warning where labelled queries are missing, or where queries and documents
    match but never together, which is what wrong topic numbers look like. Nothing where there are
    no labels: that is said once, and not of each ranking.
    """
    if not len(qrels):
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
    ranked, labelled = set(ranking.query_ids), set(qrels["query_id"])
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
    documents, labelled_documents = set(ranking.doc_ids), set(qrels["doc_id"])
    if not documents & labelled_documents:
        return [_nothing(_DOCUMENTS, name, documents, labelled_documents, made_ids=made_ids)]
    findings += _spelled_otherwise(name, documents, labelled_documents)
    if not _labelled_rows(ranking, qrels):
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


def _labelled_rows(ranking: Ranking, qrels: pd.DataFrame) -> int:
    """How many ranked rows have a label."""
    size = max(len(ranking.doc_ids), 1)
    query = _places(ranking.query_ids, qrels["query_id"])
    document = _places(ranking.doc_ids, qrels["doc_id"])
    known = (query >= 0) & (document >= 0)
    owner = np.repeat(np.arange(len(ranking.query_ids)), np.diff(ranking.offsets))
    return int(np.isin(query[known] * size + document[known], owner * size + ranking.docs).sum())


def _places(ids: npt.NDArray[np.object_], wanted: pd.Series[str]) -> npt.NDArray[np.int64]:
    """(len(wanted),) the place of each among `ids`, -1 where it is not there."""
    place = {name: position for position, name in enumerate(ids)}
    return np.array([place.get(name, -1) for name in wanted], dtype=np.int64)


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
