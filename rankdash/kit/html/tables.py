"""Exports of a comparison: tables for a paper (LaTeX, booktabs) or a text (Markdown), TREC files,
and names of files."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.files import replacing
from rankdash.core.base.i18n import level_percent, number, plain, quantity, speaking
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Measure
from rankdash.core.statistics.comparison import Comparison, StatisticsSettings
from rankdash.core.statistics.verdict import title_of
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, first_stage_name, numbered
from rankdash.core.words.columns import columns
from rankdash.core.words.queries import query_count

_DASH = "–"
_TESTS = {
    "sign-flip": "sign-flip randomisation test",
    "t": "paired t test",
    "wilcoxon": "Wilcoxon signed-rank test",
}
_CORRECTIONS = {"holm": "Holm", "bh": "Benjamini–Hochberg"}
_FAMILIES = {"metric": "the challengers of each metric", "all": "all challengers and metrics"}
_INTERVALS = {
    "skew-t": "Student's t over queries, wider if skewed",
    "t": "Student's t over queries",
    "bca": "BCa bootstrap over queries",
    "percentile": "percentile bootstrap over queries",
}


def table_of(comparison: Comparison, measure: Measure, names: Mapping[str, str]) -> list[list[str]]:
    """Return the titles of the columns, and a row for each system: rounded numbers, a dash for
    missing values, an asterisk after a significant corrected p. names: system → the name shown, in
    the order of the rows."""
    shown = columns("file", comparison.settings.level, comparison.corrected)
    rows = [["system", *(each.short or each.title for each in shown)]]
    for system, name in names.items():
        row = comparison.row(system, measure)
        marks = {"p_corrected": "*"} if significant(row, comparison.settings) else {}
        rows.append([name, *(each.text(row) + marks.get(each.name, "") for each in shown)])
    return rows


BETTER, WORSE = "†", "‡"
"""Marks of a mean that is significantly above or below the baseline's."""


def compact_markdown(comparison: Comparison, names: Mapping[str, str]) -> Iterator[str]:
    """Yield one row for each system and one column for each metric: means, the best in bold, marked
    if the change is significant; and a note below. names: as for `table_of`."""
    rows = [["system", *(markdown_safe(each) for each in _titles(comparison))]]
    for name, means in _compact(comparison, names):
        shown = [f"**{text}**{mark}" if best else f"{text}{mark}" for text, best, mark in means]
        rows.append([markdown_safe(name), *shown])
    yield from piped(rows)
    yield f"\n{markdown_safe(_compact_note(comparison, names))}\n"


def compact_latex(comparison: Comparison, names: Mapping[str, str]) -> Iterator[str]:
    """Yield the same table in booktabs rules, as papers print it."""
    marks = {BETTER: "$^{\\dagger}$", WORSE: "$^{\\ddagger}$", "": ""}
    rows = [
        [
            _latex_safe(name),
            *(
                (f"\\textbf{{{text}}}" if best else _latex_safe(text)) + marks[mark]
                for text, best, mark in means
            ),
        ]
        for name, means in _compact(comparison, names)
    ]
    head = ["system", *(_latex_safe(each) for each in _titles(comparison))]
    yield from _tabular(head, [rows])
    yield f"% {_one_line(_compact_note(comparison, names))}\n"


def _titles(comparison: Comparison) -> list[str]:
    return [title_of(each, comparison.conventions) for each in comparison.measures]


def _compact(
    comparison: Comparison, names: Mapping[str, str]
) -> Iterator[tuple[str, list[tuple[str, bool, str]]]]:
    """Yield (name, means), with the mean, whether it is the best, and `BETTER`, `WORSE` or "", for
    each metric."""
    best = {}
    for measure in comparison.measures:
        texts = [number(comparison.row(system, measure)["mean"], 4) for system in names]
        numbers = [text for text in texts if text != _DASH]
        # Equal printed values are all best; metrics of labels have no best.
        best[measure] = (
            max(numbers, key=float) if numbers and measure.metric.measures_quality else None
        )
    for system, name in names.items():
        means = []
        for measure in comparison.measures:
            row = comparison.row(system, measure)
            mark = ""
            if significant(row, comparison.settings):
                mark = BETTER if row["delta"] > 0 else WORSE
            text = number(row["mean"], 4)
            means.append((text, text == best[measure], mark))
        yield name, means


def _compact_note(comparison: Comparison, names: Mapping[str, str]) -> str:
    """Return the note of the compact table, in one line."""
    baseline = names[comparison.baseline]
    counts, mark = comparison.frame["n"], f"{BETTER} and {WORSE}"
    least, most = int(counts.min()), int(counts.max())
    over = query_count(most) if least == most else f"{number(least, 0)} to {query_count(most)}"
    return (
        f"Means over {over}; best in bold. {BETTER}: significantly above {baseline}; "
        f"{WORSE}: below. {made_with(comparison, mark)}"
    )


def made_with(comparison: Comparison, mark: str = "*") -> str:
    """Return how the numbers were computed, in one sentence each. mark: the mark of significant
    ones."""
    settings = comparison.settings
    resampled = f", {settings.resamples:,} resamples, seed {settings.seed}"
    correction = (
        f"{_CORRECTIONS[settings.correction]} correction over {_FAMILIES[settings.family]}"
        if comparison.corrected
        else "not corrected"
    )
    return (
        f"Intervals: {level_percent(settings.level)}, {_INTERVALS[settings.interval]}"
        f"{resampled if settings.interval in ('bca', 'percentile') else ''}. p: two-sided "
        f"{_TESTS[settings.test]}{resampled if settings.test == 'sign-flip' else ''}; "
        f"{correction}; {mark} significant at {(1 - settings.level) * 100:.4g}%. Same: changes up "
        f"to {plain(settings.tie_band)}. Minimum practically relevant gain: {_minimum(settings)}. "
        f"{comparison.conventions.summary}."
    )


def _minimum(settings: StatisticsSettings) -> str:
    if settings.worthwhile is None:
        return "not set"
    return f"{quantity(100 * settings.worthwhile, 6)}% (set by the user)"


def markdown(comparison: Comparison, names: Mapping[str, str]) -> Iterator[str]:
    """Yield a table for each metric with the verdicts below, then the methods. names: as for
    `table_of`. All markup in names is escaped."""
    for measure, title in zip(comparison.measures, _titles(comparison), strict=True):
        yield f"### {title}\n\n"
        yield from plain_markdown(table_of(comparison, measure, names), left=(0, -1))
        yield "\n"
        for system in names:
            if system != comparison.baseline:
                sentence = comparison.verdict(system, measure, names).sentence
                yield f"- {markdown_safe(sentence)}\n"
        yield "\n"
    yield f"{markdown_safe(made_with(comparison))}\n"


def latex(comparison: Comparison, names: Mapping[str, str]) -> Iterator[str]:
    """Yield one table with a block for each metric; it needs the package booktabs. names: as for
    `table_of`. All commands in names are escaped; Chinese names need an engine that supports
    Chinese."""
    head: list[str] = []
    blocks = []
    for measure, named in zip(comparison.measures, _titles(comparison), strict=True):
        head, *rows = _safe_rows(table_of(comparison, measure, names))
        title = f"\\textit{{{_latex_safe(named)}}}"
        blocks.append([[f"\\multicolumn{{{len(head)}}}{{l}}{{{title}}}"], *rows])
    yield from _tabular(head, blocks, left=(0, -1))
    yield f"% {made_with(comparison)}\n"


def plain_markdown(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> Iterator[str]:
    """Yield a table of any texts; the first row is the head, and all markup is escaped. left: the
    indexes of the left-aligned columns."""
    yield from piped([[markdown_safe(cell) for cell in row] for row in rows], left)


def piped(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> Iterator[str]:
    """Yield a table as `plain_markdown` does; the cells must be escaped."""
    rule = ["---" if at == "l" else "---:" for at in _ends(len(rows[0]), left)]
    for row in (rows[0], rule, *rows[1:]):
        yield f"| {' | '.join(row)} |\n"


def plain_latex(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> Iterator[str]:
    """Yield the same table in booktabs rules. All commands in the texts are escaped."""
    head, *body = _safe_rows(rows)
    yield from _tabular(head, [body], left)


def _tabular(
    head: Sequence[str], blocks: Sequence[Sequence[Sequence[str]]], left: Sequence[int] = (0,)
) -> Iterator[str]:
    """Yield a table in booktabs rules, one above each block; the cells must be escaped."""
    yield "% needs \\usepackage{booktabs}\n"
    yield f"\\begin{{tabular}}{{{_ends(len(head), left)}}}\n\\toprule\n"
    yield _line(head)
    for block in blocks:
        yield "\\midrule\n"
        yield from map(_line, block)
    yield "\\bottomrule\n\\end{tabular}\n"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\\n"


def _ends(width: int, left: Sequence[int]) -> str:
    """Return "l" for each left-aligned column and "r" for each right-aligned one."""
    return "".join("l" if at in left or at - width in left else "r" for at in range(width))


def _safe_rows(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[_latex_safe(cell) for cell in row] for row in rows]


def significant(row: pd.Series, settings: StatisticsSettings) -> bool:
    """Return whether a row's corrected p is at most 1 minus the confidence level."""
    return bool(row["p_corrected"] <= 1 - settings.level + 1e-12)


def _one_line(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)


_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#|~&$])")


def markdown_safe(text: str) -> str:
    """Return the text on one line with Markdown escaped."""
    return _MARKDOWN.sub(r"\\\1", _one_line(text))


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"$<$",
    ">": r"$>$",
    "*": r"$^{*}$",
    "Δ": r"$\Delta$",
    "–": "--",
    "…": r"\ldots{}",
    **{each: f"\\{each}" for each in "&%$#_{}"},
}


def _latex_safe(text: str) -> str:
    """Return the text with LaTeX escaped and typographic minus signs before numbers."""
    escaped = "".join(_LATEX.get(each, each) for each in _one_line(text))
    return re.sub(r"(?<![\w])-(?=\d)", r"$-$", escaped)


# TREC files: labels, and rankings from which trec_eval reads exactly the same order.

# The separators of trec_eval; an ideographic space may be part of an id.
_BLANKS = frozenset(" \t\n\r\v\f")


def write_run(ranking: Ranking, path: Path, tag: str) -> None:
    """Write `query Q0 document rank score tag` lines, best first, replacing the file.

    Scores that decrease from one rank to the next are written unchanged; scores that are equal,
    missing or too close for single precision, which trec_eval uses, are decreased just enough. The
    file appears when it is complete.

    Raises DataError if an id contains blanks, and the errors of `replacing`.
    """
    _refuse_ids(ranking)
    with replacing(path) as file:
        file.writelines(line.encode("utf-8", "replace") for line in _lines(ranking, tag))


def run_bytes(ranking: Ranking, tag: str) -> bytes:
    """Return the lines that `write_run` writes. Raises DataError as it does."""
    _refuse_ids(ranking)
    return "".join(_lines(ranking, tag)).encode("utf-8", "replace")


def qrels_bytes(qrels: pd.DataFrame) -> bytes:
    """Return labels as TREC qrels, `query 0 document label` on each line. qrels: query_id, doc_id,
    label.

    trec_eval reads only whole numbers; other labels are written unchanged, for readers that accept
    them.

    Raises DataError if an id contains blanks.
    """
    refuse_blanks(qrels["query_id"].unique(), "query")
    refuse_blanks(qrels["doc_id"].unique(), "document")
    rows = zip(qrels["query_id"], qrels["doc_id"], qrels["label"], strict=True)
    return "".join(f"{query} 0 {doc} {label:.17g}\n" for query, doc, label in rows).encode(
        "utf-8", "replace"
    )


def falling(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return (n,) scores of one query, best first, that also decrease in single precision.

    NaN (not scored) is allowed at the end. Scores beyond single precision become n, n-1 … 1.
    """
    n = len(scores)
    fallen = np.array(scores, dtype=np.float64)
    with np.errstate(over="ignore"):
        singles = fallen.astype(np.float32)
        for place in range(1, n):
            if not singles[place] < singles[place - 1]:
                singles[place] = np.nextafter(singles[place - 1], np.float32(-np.inf))
                fallen[place] = singles[place]
    return fallen if np.isfinite(singles).all() else np.arange(n, 0.0, -1.0)


def _refuse_ids(ranking: Ranking) -> None:
    for ids, kind in ((ranking.query_ids, "query"), (ranking.doc_ids, "document")):
        refuse_blanks(ids, kind)


def _lines(ranking: Ranking, tag: str) -> Iterator[str]:
    tag = "-".join(tag.split()) or "rankdash"
    for query in ranking.query_ids:
        documents, scores = ranking.documents_of(query)
        ranked = zip(documents, falling(scores).tolist(), strict=True)
        for rank, (document, score) in enumerate(ranked, start=1):
            yield f"{query} Q0 {document} {rank} {score!r} {tag}\n"


def refuse_blanks(ids: Iterable[str], kind: str) -> None:
    """Raise DataError if an id is empty or contains blanks, which a TREC file does not allow. kind:
    "query" or "document"."""
    for name in ids:
        if not name or not _BLANKS.isdisjoint(name):
            raise DataError(
                "The ID of {kind} {name!r} is empty or contains blanks, which TREC files do not "
                "allow.",
                remedy="Use an ID without spaces.",
                kind=kind,
                name=name,
            )


# The name and the language of a downloaded file.
#
# One rule for every file: a document to read (the report, the page of one query, the charts) is
# in the language of the interface; a table or a file for a program (CSV, JSON, Parquet, TREC,
# Markdown, LaTeX) is in English, with the same column names for every data set.

_LONGEST = 40


def file_name(data: str, what: str, suffix: str) -> str:
    """Return a name such as "rankdash_help-centre_queries.csv". Only letters, digits and dashes of
    a data set's name are used, so it is never a path.

    data: the name of the data set. what: the content of the file. suffix: without its dot.
    """
    return "_".join(part for part in ("rankdash", _safe(data), _safe(what)) if part) + f".{suffix}"


def english(study: Study) -> Study:
    """Return the study for files in English: with the English name of the first stage, unless a
    file named it. Call it in the language in which the study was made."""
    if study.systems[FIRST_STAGE].name != first_stage_name(study.dataset):
        return study
    with speaking("en"):
        named = first_stage_name(study.dataset)
    systems = (
        replace(system, name=named) if system.id == FIRST_STAGE else system
        for system in study.systems.values()
    )
    return replace(study, systems=numbered(systems))


def _safe(text: str) -> str:
    flat = unicodedata.normalize("NFC", text)
    return re.sub(r"[\W_]+", "-", flat)[:_LONGEST].strip("-").lower()


@dataclass(frozen=True)
class ZipPart:
    """One file in a zip. make raises RankdashError if it cannot be made."""

    name: str
    what: str
    make: Callable[[], bytes]
