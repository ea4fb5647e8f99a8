"""Resolution of duplicates: labels of one pair, splits of one set, documents of one list."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError, Finding
from rankdash.core.base.i18n import plain
from rankdash.core.data.arrays import Coded
from rankdash.core.data.ranking import Ranking, text_array
from rankdash.core.readers.join.parsed_file import Pairs, ParsedFile
from rankdash.core.readers.parse.limits import counted
from rankdash.core.readers.parse.source import stem_of

Conflict = Literal["highest", "lowest", "mean", "refuse"]
RULES: dict[str, Literal["max", "min", "mean"]] = {
    "highest": "max",
    "lowest": "min",
    "mean": "mean",
}
# In order of preference, as BEIR folders are usually evaluated.
SPLITS = ("test", "dev", "validation", "valid", "val", "eval", "train")
_EXAMPLES = 5


def choose_split(parts: Sequence[ParsedFile]) -> tuple[list[ParsedFile], list[Finding]]:
    """Choose one split of the labels if there are several: test, else dev, else train."""
    splits = {
        part.file: stem_of(part.file).lower()
        for part in parts
        if part.only_labels and stem_of(part.file).lower() in SPLITS
    }
    if len(splits) < 2:
        return list(parts), []
    used = min(splits, key=lambda file: SPLITS.index(splits[file]))
    others = [file for file in splits if file != used]
    finding = Finding(
        "warning",
        "one_split",
        "The labels are in {count} splits. rankdash uses {taken} and ignores {others}.",
        {"count": len(splits), "taken": used, "others": ", ".join(others)},
        "To use another split, load only its file with the queries and the documents.",
        used,
        count=len(others),
    )
    return [part for part in parts if part.file not in others], [finding]


def join_labels(
    parts: Sequence[ParsedFile], conflict: Conflict, worst: float | None = None
) -> tuple[Pairs, list[Finding]]:
    """Join the labels of parts, with one label per pair, and return findings.

    conflict: the rule for conflicting labels; "refuse" raises DataError with the first such pair
    and its lines. worst: the grade for "not relevant", if the lowest grade is the best; labels are
    reversed before conflicts are resolved.
    """
    labelled = [part.labels for part in parts if len(part.labels)]
    if not labelled:
        return Pairs.none(), []
    pairs = Pairs.joined(labelled)
    findings: list[Finding] = []
    if worst is not None:
        pairs = replace(pairs, values=put_right(pairs.values, worst))
        findings.append(reversed_note(worst))
    if not pairs.repeat():
        return pairs, findings
    sizes = [len(part.labels) for part in parts]
    rows = pairs.frame("label").assign(file=np.repeat(np.arange(len(parts)), sizes))
    keys = pd.Series(pairs.keys())
    repeated = keys.duplicated(keep=False).to_numpy()
    again = rows[repeated]
    by_pair = again.groupby(["query_id", "doc_id"], sort=False)["label"]
    disagree = (by_pair.transform("min") != by_pair.transform("max")).to_numpy()
    files = [part.file for part in parts]
    findings += _duplicates(again[~disagree], files)
    if disagree.any():
        findings.append(_conflict(again[disagree], files, conflict))
    rows.loc[repeated, "label"] = by_pair.transform(RULES.get(conflict, "max")).to_numpy()
    first = ~keys.duplicated().to_numpy()
    return replace(pairs, values=rows["label"].to_numpy(dtype=np.float64)).taken(first), findings


def _place(row: pd.Series[str], files: Sequence[str]) -> str:
    return f"{plain(float(row['label']))} ({files[int(row['file'])]}, line {row['line']})"


def _duplicates(rows: pd.DataFrame, files: Sequence[str]) -> list[Finding]:
    extra = rows[rows.duplicated(["query_id", "doc_id"])]
    if not len(extra):
        return []
    first = extra.iloc[0]
    return [
        Finding(
            "warning",
            "duplicate_labels",
            "Rows that repeat the label of a pair: {rows}. Each pair counts once.",
            {"rows": len(extra)},
            "No action needed; the rows are identical.",
            files[int(first["file"])],
            int(first["line"]),
            len(extra),
            tuple(
                f"{row['query_id']}, {row['doc_id']}: {_place(row, files)}"
                for _, row in extra.head(_EXAMPLES).iterrows()
            ),
        )
    ]


def _conflict(rows: pd.DataFrame, files: Sequence[str], conflict: Conflict) -> Finding:
    examples = [
        f"{query}, {doc}: {'; '.join(_place(row, files) for _, row in pair.iterrows())}"
        for (query, doc), pair in list(rows.groupby(["query_id", "doc_id"], sort=False))[:_EXAMPLES]
    ]
    first = rows.iloc[0]
    pairs = len(rows[["query_id", "doc_id"]].drop_duplicates())
    if conflict not in RULES:
        raise DataError(
            "Query–document pairs with conflicting labels: {count}. The first is {example}.",
            remedy="Keep one label per pair, or choose a rule: highest, lowest or mean.",
            file=files[int(first["file"])],
            line=int(first["line"]),
            count=pairs,
            example=examples[0],
        )
    return counted(
        "warning",
        "conflicting_labels",
        "Pairs with conflicting labels: {count}. Rule: {rule}.",
        pairs,
        "Choose another rule (highest, lowest, mean, refuse), or resolve the pairs in the file.",
        files[int(first["file"])],
        int(first["line"]),
        examples,
        rule=conflict,
    )


def ranking_of(part: ParsedFile, pairs: Pairs) -> Ranking:
    """Return the ranking of scored rows, with ties by document id descending, as in trec_eval.

    If a query lists a document again, that row is refused and the first one is used.
    """
    if pairs.repeat():
        again = pd.Series(pairs.keys()).duplicated().to_numpy()
        rows = pairs.taken(again).frame("score")
        examples = [
            f"{query} | {doc} | {plain(score)}"
            for query, doc, score, _line in rows.head(_EXAMPLES).to_numpy(dtype=object).tolist()
        ]
        part.refusals.add("ranked_twice", rows["line"].to_numpy(dtype=np.int64), examples)
        pairs = pairs.taken(~again)
    return Ranking.from_columns(pairs.queries, pairs.documents, pairs.values, ties="trec")


# Labels that number the queries 1, 2, 3 … in the order of their file, regardless of their ids.
#
# Cranfield is the best-known case: its queries have the ids 1, 2, 4, 8 … 365, its labels 1 to 225.
# Matched by id, most queries get another query's labels.

Match = Literal["id", "order"]


def matched(parts: Sequence[ParsedFile], match: Match) -> tuple[list[ParsedFile], list[Finding]]:
    """If `match` is "order", match the queries of labels by their position in the file of queries;
    else return the parts unchanged, with a warning if that is probably needed.

    Raises DataError if the labels do not number the queries of one file, or `match` is unknown.
    """
    if match not in ("id", "order"):
        raise DataError(
            "Unknown rule {match!r} for the query ids of labels.",
            remedy="Allowed rules: id, order.",
            match=match,
        )
    named = [part for part in parts if part.queries is not None and not len(part.labels)]
    labelled = [part for part in parts if len(part.labels) and part.queries is None]
    if match == "id" and (len(named) != 1 or not labelled):
        return list(parts), []
    if len(named) != 1 or not labelled or named[0].queries is None:
        raise DataError(
            "The labels cannot be matched by order, which needs one file of queries and the labels "
            "in another file.",
            remedy="Match the labels by id.",
        )
    ids: list[str] = list(named[0].queries["query_id"])
    placed = [_places(part, len(ids)) for part in labelled]
    if match == "id":
        distinct = {place for places in placed if places for place in places}
        stripped = {identity.lstrip("0") for identity in ids}
        missing = [place for place in distinct if str(place + 1) not in stripped]
        # Suspicious: labels of most queries, numbered up to their count, some with unknown ids.
        if not all(placed) or not missing or 2 * len(distinct) < len(ids):
            return list(parts), []
        return list(parts), [_numbered(labelled[0], named[0], ids)]
    changed: dict[str, ParsedFile] = {}
    for part, places in zip(labelled, placed, strict=True):
        if places is None:
            raise DataError(
                "The labels cannot be matched by order: their queries are not numbers from 1 to "
                "{count}, such as {example!r}.",
                remedy="Match the labels by id.",
                file=part.file,
                count=len(ids),
                example=part.labels.queries.texts[0].as_py(),
            )
        names = text_array([ids[place] for place in places])
        queries = Coded(part.labels.queries.codes, names)
        changed[part.file] = replace(part, labels=replace(part.labels, queries=queries))
    note = Finding(
        "note",
        "matched_by_order",
        "The labels are matched with the queries of {file_name} by order: 1 is its first query.",
        {"file_name": named[0].file},
        file=labelled[0].file,
    )
    return [changed.get(part.file, part) for part in parts], [note]


def _places(part: ParsedFile, count: int) -> list[int] | None:
    """Return the positions (from 0) given by the query ids of labels, or None if any is invalid."""
    texts: list[str] = part.labels.queries.texts.to_pylist()
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in texts):
        return None
    places = [int(text) - 1 for text in texts]
    return places if all(0 <= place < count for place in places) else None


def _numbered(labels: ParsedFile, queries: ParsedFile, ids: Sequence[str]) -> Finding:
    other = next(each for at, each in enumerate(ids, 1) if each.lstrip("0") != str(at))
    return Finding(
        "warning",
        "counted_queries",
        "The labels number the queries up to {count}, and {file_name} has {count} queries with "
        "other ids, such as {example!r}. Labels may belong to other queries than the ids indicate.",
        {"count": len(ids), "file_name": queries.file, "example": other},
        "If the labels number the queries in the order of their file, load the files again with "
        "Query ids of the labels: by order (--match order).",
        labels.file,
    )


# Reversal of labels with the lowest grade as the best.
#
# Cranfield's grades: 1 is a complete answer, 4 of minimum interest, 5 of none, -1 not relevant.


def put_right(labels: npt.NDArray[np.float64], worst: float) -> npt.NDArray[np.float64]:
    """Return `worst` - label, so that `worst` becomes 0 and 1 the highest. Labels below 0 mean not
    relevant in any scale and are unchanged. A second call restores the labels.

    worst: the grade for "not relevant". Raises DataError if it is below a label.
    """
    highest = float(labels.max(initial=0))
    if not math.isfinite(worst) or worst < highest:
        raise DataError(
            "The labels cannot be reversed at {worst}: the highest is {highest}.",
            remedy="Enter the grade that means not relevant; no label may exceed it.",
            worst=plain(worst),
            highest=plain(highest),
        )
    return np.where(labels < 0, labels, worst - labels)


def reversed_note(worst: float) -> Finding:
    """Return the finding that labels were reversed."""
    return Finding(
        "note",
        "labels_reversed",
        "The labels are reversed: each is {worst} minus the label in the files, where the lowest "
        "grade is the best. Labels below 0 are unchanged.",
        {"worst": plain(worst)},
    )
