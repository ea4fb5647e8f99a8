"""Labels of several annotators, and sampled labels with their draws and probabilities."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError, Finding, FormatError
from rankdash.core.base.i18n import plain as number
from rankdash.core.data.arrays import objects
from rankdash.core.readers.join.parsed_file import texts
from rankdash.core.readers.parse.columns import MOST_GRADES, plain, recognise
from rankdash.core.readers.parse.limits import counted
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.values import (
    Floats,
    Texts,
    Word,
    blank,
    is_grade_word,
    labels,
    numbers,
    words_in,
)

Together = Literal["majority", "mean"]
"""The rule to combine several labels of one pair: majority vote or mean."""

_WORDS = (
    "label|relevance|rel|grade|rating|judgment|judgement|annotation|annotator|rater|judge|assessor|"
    "标签|标注|标注员|标注者|标注人|评审|评审员|评分"
)
_NAME = re.compile(rf"(?:{_WORDS})(?:[\s_.\-]*\d+|[\s_.\-]+[a-z])", re.IGNORECASE)
_FEW_AGREE = 0.4
# The tolerance for rounding errors, so that a kappa of 0.4 is not below the threshold.
_ROUNDING = 1e-12


def refuse_rule(together: str) -> None:
    """Raise DataError for an unknown rule to combine the labels of several annotators."""
    if together not in get_args(Together):
        raise DataError(
            "Unknown rule {together!r} for the labels of several annotators.",
            remedy="Allowed rules: majority, mean.",
            together=together,
        )


def raters_of(table: Table) -> tuple[str, ...]:
    """Return the columns with one annotator's labels each: at least two, or the columns that the
    format defines."""
    if table.raters or not table.names or table.fields is not None:
        return table.raters
    columns = [str(column) for column in table.frame.columns]
    raters = tuple(
        column
        for column in columns
        if _NAME.fullmatch(column.strip()) and _holds_grades(table.frame[column])
    )
    return raters if len(raters) > 1 else ()


def _holds_grades(cells: pd.Series[str]) -> bool:
    distinct = pd.unique(cells[~blank(cells.to_numpy(dtype=object))])
    if not len(distinct) or len(distinct) > MOST_GRADES:
        return False
    values = numbers(np.asarray(distinct, dtype=object))
    return all(
        value == value or is_grade_word(str(text).strip())
        for value, text in zip(values, distinct, strict=True)
    )


def joined(table: Table, together: Together, words: Mapping[str, float | None] | None) -> Table:
    """Replace the annotators' columns by one label column, with a finding about their agreement. A
    separate label column takes precedence over theirs.

    An invalid cell becomes the row's label, so that the row is refused with its line.
    """
    raters = raters_of(table)
    if not raters:
        return table
    frame = table.frame
    cells = np.stack([frame[column].to_numpy(dtype=object) for column in raters], axis=1)
    read = labels(cells.ravel(), words)
    values = read.values.reshape(cells.shape)
    decided = recognise([column for column in frame.columns if column not in raters]).get("label")
    findings = list(table.findings)
    if len(raters) > 1:
        findings.append(_agreement(table.file, raters, values))
        findings.append(_rule(table.file, together, decided))
    rest = frame.drop(columns=list(raters))
    if decided is None:
        rest["label"] = texts(_one_label(cells, values, together))
        if read.words:
            findings.append(word_finding(table.file, read.words, words))
    return replace(table, cells=rest, findings=tuple(findings), raters=())


class WordsNeeded(FormatError):  # noqa: N818 - a question that the user answers
    """Labels written as words, to which the user has to assign grades.

    words: the words of the file, with their grades by the scales.
    """

    def __init__(self, file: str, words: Sequence[Word]) -> None:
        self.words = tuple(words)
        super().__init__(
            "The labels are words: {words}.",
            remedy="Assign a grade to each word.",
            file=file,
            words=", ".join(word.text for word in words),
        )


def ask_for_words(table: Table, fields: Mapping[str, str]) -> None:
    """Raise WordsNeeded if the labels of the table, of all annotators, are words."""
    columns = raters_of(table) or ((fields["label"],) if "label" in fields else ())
    if columns:
        cells = table.frame[list(columns)].to_numpy(dtype=object).ravel()
        words = words_in(cells)
        if words:
            raise WordsNeeded(table.file, words)


def word_finding(
    file: str, words: Mapping[str, float], chosen: Mapping[str, float | None] | None = None
) -> Finding:
    """Return a finding that lists words and their labels. It is a warning only if a grade was
    guessed.

    chosen: word → label, set by the user.
    """
    guessed = {word.strip() for word in words} - {word.strip() for word in chosen or ()}
    shown = list(words.items())[:12]
    return Finding(
        "warning" if guessed else "note",
        "word_labels",
        "Labels written as words were read as numbers: {table}.",
        {"table": ", ".join(f"{word} = {number(value)}" for word, value in shown)},
        "If the numbers are not what the words mean, write numbers into the file."
        if guessed
        else "",
        file,
        count=len(words),
    )


def _one_label(cells: Texts, values: Floats, together: Together) -> Texts:
    """Return the (N,) combined label of each row as text, None without labels."""
    combined = np.full(len(cells), None, dtype=object)
    resolved = settle(values, together)
    labelled = np.isfinite(resolved)
    combined[labelled] = [repr(float(value)) for value in resolved[labelled]]
    bad = ~np.isfinite(values) & ~blank(cells.ravel()).reshape(cells.shape)
    for row in np.flatnonzero(bad.any(axis=1)):
        combined[row] = cells[row, int(np.argmax(bad[row]))]
    return combined


def settle(values: Floats, together: Together) -> Floats:
    """Combine (N, annotators) labels (NaN if missing) to (N,) one per row, NaN without labels.

    "majority": the most frequent label, the lowest one on a tie; "mean": the mean of the labels.
    """
    labelled = np.isfinite(values)
    count = labelled.sum(axis=1)
    total = np.where(labelled, values, 0.0).sum(axis=1)
    if together == "mean":
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)
    grades = np.unique(values[labelled])
    if not len(grades):
        return np.full(len(values), np.nan)
    # argmax returns the first of equal counts, and the grades ascend.
    chosen = grades[np.argmax(_counts(values, grades), axis=1)]
    return np.where(count > 0, chosen, np.nan)


def _counts(values: Floats, grades: Floats) -> npt.NDArray[np.int64]:
    """Return the (N, grades) number of annotators with each grade."""
    return np.stack([(values == grade).sum(axis=1) for grade in grades], axis=1).astype(np.int64)


def kappa(values: Floats) -> float:
    """Return the agreement of annotators beyond chance, over the rows with at least two labels; NaN
    if there are none, or if all their labels are equal.

    values: (N, annotators), NaN if a label is missing.
    Two annotators: Cohen 1960, with the label shares of each. More: Fleiss 1971, with equal weights
    for all rows even if their numbers of labels differ.
    """
    values = values[np.isfinite(values).sum(axis=1) >= 2]
    if not len(values):
        return float("nan")
    grades = np.unique(values[np.isfinite(values)])
    if values.shape[1] == 2:
        agree = float((values[:, 0] == values[:, 1]).mean())
        shares = [(values[:, [rater]] == grades).mean(axis=0) for rater in (0, 1)]
        chance = float((shares[0] * shares[1]).sum())
    else:
        counts = _counts(values, grades)
        totals = counts.sum(axis=1)
        agree = float(((counts * (counts - 1)).sum(axis=1) / (totals * (totals - 1))).mean())
        chance = float(((counts / totals[:, None]).mean(axis=0) ** 2).sum())
    return (agree - chance) / (1 - chance) if chance < 1 else float("nan")


def _rule(file: str, together: Together, decided: str | None) -> Finding:
    if decided is not None:
        template = "The labels are from the column {column}, not from the annotators' columns."
    elif together == "mean":
        template = "The label of a row is the mean of its annotators' labels."
    else:
        template = (
            "The label of a row is the majority vote of its annotators; on a tie, the lower label."
        )
    return Finding(
        "note", "annotators_rule", template, {"column": decided} if decided else {}, file=file
    )


def _agreement(file: str, raters: Sequence[str], values: Floats) -> Finding:
    several = values[np.isfinite(values).sum(axis=1) >= 2]
    same = np.nanmax(several, axis=1) == np.nanmin(several, axis=1) if len(several) else []
    measured = kappa(values)
    if not len(several):
        template = "{raters} annotators share no row, so their agreement cannot be measured."
    elif measured != measured:
        template = (
            "{raters} annotators gave the same label in every row they share ({rows}), so their "
            "agreement cannot be measured."
        )
    elif len(raters) == 2:
        template = (
            "Rows that {raters} annotators share: {rows}. They agree in {same}; Cohen's kappa is "
            "{kappa:.2f}."
        )
    else:
        template = (
            "Rows that {raters} annotators share: {rows}. They all agree in {same}; Fleiss' kappa "
            "is {kappa:.2f}."
        )
    few = measured < _FEW_AGREE - _ROUNDING
    return Finding(
        "warning" if few else "note",
        "annotators",
        template,
        {"raters": len(raters), "rows": len(several), "same": int(np.sum(same)), "kappa": measured},
        "Agree on what the grades mean, and resolve the rows that differ: with a kappa below 0.4, "
        "labels depend more on the annotator than on the document."
        if few
        else "",
        file,
        count=len(several),
        examples=tuple(raters[:5]),
    )


# Sampled labels with the additional columns draw and probability, as written by `rankdash label`
# and the page Label.

_COLUMNS = ("draw", "probability")
_CANNOT_TELL = ("cannottell", "无法判断")


def cannot_tell(texts: object) -> npt.NDArray[np.bool_]:
    """Return (N,) flags of "cannot tell" labels. texts: Arrow text."""
    codes, unique = pd.factorize(objects(texts))
    undecided = np.array([plain(text) in _CANNOT_TELL for text in unique], dtype=bool)
    return np.append(undecided, False)[codes]


def _plain_names(table: Table) -> dict[str, str]:
    return {plain(name): name for name in reversed(table.columns)}


def names_draws(table: Table) -> bool:
    """Return whether the table has the columns draw and probability."""
    return _plain_names(table).keys() >= set(_COLUMNS)


def draws_of(table: Table, labelled: pd.DataFrame) -> pd.DataFrame | None:
    """Return query_id, doc_id, cannot_tell, draw (from 1) and probability of labelled rows; NaN if
    a label was not sampled. Return None if no label was sampled.

    table: one with the columns of draws. labelled: query_id, doc_id and cannot_tell of rows of the
        table, indexed by their positions in it.
    """
    names = _plain_names(table)
    draws = labelled.assign(
        **{name: numbers(table.arrow(names[name]))[labelled.index.to_numpy()] for name in _COLUMNS}
    )
    return draws.reset_index(drop=True) if draws["draw"].notna().any() else None


def sampled_findings(file: str, draws: pd.DataFrame | None) -> list[Finding]:
    """Return a warning that means over sampled labels are biased."""
    if draws is None:
        return []
    return [
        counted(
            "warning",
            "labels_drawn",
            "Labels sampled with known probabilities: {count}. Means treat unlabelled documents as "
            "not relevant, so they are biased here.",
            int(draws["draw"].notna().sum()),
            "Use the estimated difference in an additive metric, such as dcg@10, until all "
            "documents are labelled.",
            file,
        )
    ]
