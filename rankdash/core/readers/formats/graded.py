"""Entries that hold a list of grades beside lists of scores, with or without their documents.

    {"query": …, "ground_truth": [3, 1, 0], "initial_scores": [.9, .8, .7], "rerank_scores": […]}
    {"documents": ["…", "…"], "relevance": [0, 2], "before": [0.4, 0.3], "after": [0.1, 0.8]}

So do tutorials of evaluation write their examples. A list of numbers that is called what is
relevant, and is as long as the documents or the scores beside it, holds grades and no ids. Each
list of scores is a ranking. The documents of an entry that names none are numbered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeGuard

from rankdash.core.readers.formats import nested, retrieved
from rankdash.core.readers.parse.columns import MOST_GRADES, PLAIN_SCORE, SYSTEM, plain

Record = dict[str, Any]

_GRADES = re.compile(r"relevan|label|grade|truth|gold|judg|ytrue|gain|相关|标注|标签")
_FIRST_STAGE = re.compile(
    r"initial|first|baseline|^base|before|original|retriev|bm25|^without|初|召回|首轮|原始"
)
_RERANKED = re.compile(r"rerank|重排|精排")
_LATER_STAGE = re.compile(r"rerank|after|重排|精排")
_RANKS = ("rank", "ranks")


def joined(records: Sequence[Record]) -> list[Record]:
    """The entries with labels, scores and documents under names that `nested` reads; entries
    without a list of grades as they are."""
    keys = list(dict.fromkeys(chain.from_iterable(records)))
    # A table may have a million rows, and their cells need no look.
    named = [key for key in keys if _is_grades(key)]
    graded = [key for key in named if _holds_grades(key, records)]
    if not graded:
        return [_uneven(record, named) or record for record in records] if named else list(records)
    chosen = min(graded, key=lambda key: not _few_steps(key, records))
    first = _first_stage([key for key in keys if key != chosen], records, chosen)
    return [_entry(record, f"q{at}", chosen, first) for at, record in enumerate(records, 1)]


def is_entry(value: object) -> bool:
    """Whether the value is such an entry."""
    if not isinstance(value, dict):
        return False
    named = [key for key in value if _is_grades(key)]
    return any(_holds_grades(key, [value]) for key in named) or _uneven(value, named) is not None


def _is_grades(key: str) -> bool:
    name = plain(key)
    return name in retrieved.GRADES | retrieved.RELEVANT or bool(_GRADES.search(name))


def _holds_grades(key: str, records: Sequence[Record]) -> bool:
    """Whether most values are numbers, one for each document or score beside them."""
    given = [record for record in records if record.get(key) is not None]
    lists = [record for record in given if _numeric(record[key])]
    if not given or len(lists) < len(given):
        return False
    if any(_retrieves(record, key) for record in lists):
        return False
    paired = [record for record in lists if _paired(record, key)]
    if 2 * len(paired) <= len(lists):
        return False
    return not all(_are_ids(record, key) for record in paired)


def _retrieves(record: Record, graded: str) -> bool:
    """Whether the entry lists what was retrieved, which `retrieved` reads."""
    return any(
        plain(name) in retrieved.RETRIEVED
        and _lists(value)
        and not _is_scores(record, name, graded)
        for name, value in record.items()
    )


def _paired(record: Record, key: str) -> bool:
    documents = nested.documents_in(record)
    if documents is not None:
        return len(documents) == len(record[key])
    return any(_is_scores(record, name, key) for name in record)


def _are_ids(record: Record, key: str) -> bool:
    """Whether the numbers are those by which the entry calls its documents."""
    documents, grades = nested.documents_in(record), record[key]
    same = documents is not None and set(map(str, grades)) == set(map(str, documents))
    return same and plain(key) in retrieved.RELEVANT and len(set(grades)) == len(grades)


def _few_steps(key: str, records: Sequence[Record]) -> bool:
    return len({value for record in records for value in record.get(key) or ()}) <= MOST_GRADES


def _is_scores(record: Record, name: str, graded: str) -> bool:
    """Whether a list has a score or a rank for each of the grades."""
    values, called = record[name], plain(name)
    if name == graded or not _numeric(values) or len(values) != len(record[graded]):
        return False
    return (
        _has_fractions(values)
        or called.endswith((*PLAIN_SCORE, *_RANKS))
        or (called in retrieved.SCORES)
    )


def _names_scores(name: str, values: Any) -> bool:
    """Whether the name of a list of numbers says that they are scores or ranks, however many."""
    if not _numeric(values):
        return False
    called = plain(name)
    stage = _FIRST_STAGE.search(called) or _LATER_STAGE.search(called)
    return (
        nested.scores_in(name, values)
        or called.endswith(_RANKS)
        or called in retrieved.SCORES
        or (bool(stage) and _has_fractions(values))
    )


def _uneven(record: Record, named: Sequence[str]) -> nested.RefusedEntry | None:
    """The entry as a refused one if it has grades, and another number of documents or of scores;
    None for any other entry."""
    lists = [key for key in named if _numeric(record.get(key))]
    if not lists or any(_retrieves(record, key) for key in lists):
        return None
    # Beside documents, numbers that are called relevant can be their ids.
    listed = any(plain(key) in retrieved.DOCUMENTS | retrieved.RERANKED for key in record)
    grades = [key for key in lists if not listed or plain(key) not in retrieved.RELEVANT]
    return _unpaired(record, grades[0]) if grades else None


def _unpaired(record: Record, graded: str) -> nested.RefusedEntry | None:
    """The entry as a refused one if it has not a grade for each document and each score."""
    documents = [key for key, value in record.items() if nested.documents_in({key: value})]
    scores = [key for key in record if key != graded and _names_scores(key, record[key])]
    return nested.uneven(record, [*documents[:1], graded, *scores])


def _first_stage(keys: Sequence[str], records: Sequence[Record], graded: str) -> str | None:
    """The one list of scores whose name says that nothing was reranked yet."""
    scores = [
        key
        for key in keys
        if any(
            key in each and _numeric(each.get(graded)) and _is_scores(each, key, graded)
            for each in records
        )
    ]
    called = [
        key
        for key in scores
        if _FIRST_STAGE.search(plain(key)) and not _RERANKED.search(plain(key))
    ]
    return called[0] if len(called) == 1 else None


def _entry(record: Record, made: str, graded: str, first: str | None) -> Record:
    """made: the id of its query, where the entry says nothing of one."""
    grades = record.get(graded)
    if not isinstance(grades, list):
        return record
    refused = _unpaired(record, graded)
    if refused:
        return refused
    lists: Record = {"labels": grades}
    shared: Record = {}
    for key, value in record.items():
        if key == graded:
            continue
        if not _is_scores(record, key, graded):
            shared[key] = value
            continue
        of_ranks = plain(key).endswith(_RANKS) and not nested.names_scores(key)
        if of_ranks:
            value = [None if rank is None else -rank for rank in value]
        known = nested.names_scores(key)
        lists["initial_scores" if key == first else key if known else SYSTEM + key] = value
    if nested.documents_in(record) is None:
        lists["doc_ids"] = [f"{made}-{place}" for place in range(1, len(grades) + 1)]
    unnamed = not any(isinstance(value, str | dict) for value in shared.values())
    shared = retrieved.of_the_query(shared, made) if unnamed else shared
    # The lists come first, so that no other list of labels goes before them.
    return {**lists, **{f"{key} (2)" if key in lists else key: shared[key] for key in shared}}


def _lists(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and bool(value)


def _numeric(value: object) -> bool:
    return _lists(value) and all(each is None or isinstance(each, int | float) for each in value)


def _has_fractions(values: Sequence[object]) -> bool:
    return any(isinstance(value, float) for value in values)
