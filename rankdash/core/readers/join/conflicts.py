"""Where files say a thing twice: labels of one pair, splits of one set, lists of one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.findings import Finding
from rankdash.core.base.i18n import plain
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers.join.parsed_file import Pairs, ParsedFile, Scores
from rankdash.core.readers.join.reversed_labels import put_right, reversed_note
from rankdash.core.readers.parse.source import stem_of

Conflict = Literal["highest", "lowest", "mean", "refuse"]
RULES: dict[str, Literal["max", "min", "mean"]] = {
    "highest": "max",
    "lowest": "min",
    "mean": "mean",
}
# Better first: what a BEIR folder is usually evaluated on.
SPLITS = ("test", "dev", "validation", "valid", "val", "eval", "train")
_EXAMPLES = 5


def choose_split(parts: Sequence[ParsedFile]) -> tuple[list[ParsedFile], list[Finding]]:
    """One split of the labels, where a folder holds several: test, else dev, else train."""
    splits = {
        part.file: stem_of(part.file).lower()
        for part in parts
        if part.only_labels and stem_of(part.file).lower() in SPLITS
    }
    if len(splits) < 2:
        return list(parts), []
    taken = min(splits, key=lambda file: SPLITS.index(splits[file]))
    others = [file for file in splits if file != taken]
    finding = Finding(
        "warning",
        "one_split",
        "The labels come in {count} splits. {taken} is used, not {others}.",
        {"count": len(splits), "taken": taken, "others": ", ".join(others)},
        "To use another split, load its file alone with the queries and the documents.",
        taken,
        count=len(others),
    )
    return [part for part in parts if part.file not in others], [finding]


def join_labels(
    parts: Sequence[ParsedFile], conflict: Conflict, worst: float | None = None
) -> tuple[Pairs, list[Finding]]:
    """One label a pair.

    conflict: which of several labels that disagree is kept; "refuse" raises DataError with the
    first such pair and its lines. worst: the grade that means not relevant, where the lowest is the
    best; the labels are reversed first, so that the highest of several is the best.
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
    repeated = pd.Series(pairs.keys()).duplicated(keep=False).to_numpy()
    again = rows[repeated]
    by_pair = again.groupby(["query_id", "doc_id"], sort=False)["label"]
    disagree = (by_pair.transform("min") != by_pair.transform("max")).to_numpy()
    files = [part.file for part in parts]
    findings += _duplicates(again[~disagree], files)
    if disagree.any():
        findings.append(_conflict(again[disagree], files, conflict))
    settled = (
        by_pair.transform(RULES[conflict]).to_numpy()
        if conflict in RULES
        else again["label"].to_numpy()
    )
    rows.loc[repeated, "label"] = settled
    first = ~pd.Series(pairs.keys()).duplicated().to_numpy()
    settled_pairs = replace(pairs, values=rows["label"].to_numpy(dtype=np.float64))
    return settled_pairs.taken(first), findings


def _pair_codes(rows: pd.DataFrame) -> pd.Series[int]:
    queries, _ = pd.factorize(rows["query_id"])
    docs, unique = pd.factorize(rows["doc_id"])
    return pd.Series(queries.astype(np.int64) * max(len(unique), 1) + docs)


def _place(row: pd.Series[str], files: Sequence[str]) -> str:
    return f"{plain(float(row['label']))} ({files[int(row['file'])]}, line {row['line']})"


def _duplicates(rows: pd.DataFrame, files: Sequence[str]) -> list[Finding]:
    extra = rows[_pair_codes(rows).duplicated().to_numpy()]
    if not len(extra):
        return []
    first = extra.iloc[0]
    return [
        Finding(
            "warning",
            "duplicate_labels",
            "Rows that repeat the label of a pair: {rows}. Each pair counts once.",
            {"rows": len(extra)},
            "Nothing has to be done; the rows say the same.",
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
            "Pairs of query and document labelled more than once with different labels: {count}. "
            "The first is {example}.",
            remedy="Give one label for each pair, or choose a rule: highest, lowest or mean.",
            file=files[int(first["file"])],
            line=int(first["line"]),
            count=pairs,
            example=examples[0],
        )
    return Finding(
        "warning",
        "conflicting_labels",
        "Pairs labelled more than once with different labels: {count}. The rule is: {rule}.",
        {"count": pairs, "rule": conflict},
        "Choose another rule (highest, lowest, mean, refuse), or settle the pairs in the file.",
        files[int(first["file"])],
        int(first["line"]),
        pairs,
        tuple(examples),
    )


def ranking_of(part: ParsedFile, pairs: Pairs) -> Ranking:
    """A ranking of scored rows, ties by document id descending as trec_eval has them.

    A document that the list of a query already holds is refused, the first row stays.
    """
    if pairs.repeat():
        again = pd.Series(pairs.keys()).duplicated().to_numpy()
        rows = pairs.taken(again).frame("score")
        part.refusals.add(
            "ranked_twice",
            rows["line"].to_numpy(dtype=np.int64),
            [
                f"{query} | {doc} | {plain(float(score))}"
                for query, doc, score in rows[["query_id", "doc_id", "score"]]
                .head(_EXAMPLES)
                .itertuples(index=False, name=None)
            ],
        )
        pairs = pairs.taken(~again)
    return Ranking.from_columns(pairs.queries, pairs.documents, pairs.values, ties="trec")


def scores_by_role(parts: Sequence[ParsedFile], role: str) -> list[tuple[ParsedFile, Scores]]:
    return [(part, scores) for part in parts for scores in part.scores if scores.role == role]
