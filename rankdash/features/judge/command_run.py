"""Command `judge run`: grade a pool into a file that can be resumed."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rankdash.core.base import files
from rankdash.core.base.errors import (
    DataError,
    RankdashError,
    RerankerError,
    ScoringError,
    SettingError,
    SpecError,
)
from rankdash.core.base.files import from_json, guarded
from rankdash.core.base.i18n import duration
from rankdash.core.base.text import restored
from rankdash.core.data.dataset import Dataset
from rankdash.core.readers import read_beside, sources_at
from rankdash.core.readers.loading import load
from rankdash.core.rerankers.remote.prompts import JUDGE
from rankdash.core.runs.results import Usage
from rankdash.core.runs.worker import Pace
from rankdash.core.sampling.label_plan import LabelPool, pool_of
from rankdash.core.study.systems import first_stage_name
from rankdash.core.workspace.database import now
from rankdash.features.judge.asking import (
    JudgedPair,
    Question,
    ask,
    estimate,
    pairs_of,
    questions,
    seconds_of,
)
from rankdash.features.judge.judge import Judge
from rankdash.kit.commands.arguments import DONE, INCOMPLETE, columns_of, settings_of
from rankdash.kit.commands.output import (
    csv_line,
    place_name,
    printable,
    spare_the_input,
    target_of,
    used_lines,
    warn,
)
from rankdash.kit.commands.rankings import names_of

_REPORT_SECONDS = 5.0


def run(arguments: argparse.Namespace) -> int:
    """Show the cost, confirm, grade and write; progress, failures and cost go to standard error."""
    judge = _judge(arguments)
    target = target_of(arguments.out)
    spare_the_input(target, [*arguments.data, *arguments.run])
    dataset, pool = _pool(arguments)
    labelled = set(dataset.labels["query_id"].texts.to_pylist())
    pairs = pairs_of(pool, arguments.sample, arguments.seed, labelled)
    file = GradesFile.open(target, arguments.name.strip() or judge.model, judge)
    remaining = file.pending(pairs)
    requested = questions(dataset, remaining, file.unread)
    _say_cost(judge, pool, len(pairs), requested)
    if remaining:
        _agree(arguments.yes)
        progress = _Progress(file, len(remaining))
        try:
            ask(judge, requested, on_batch=progress.take, on_begin=file.begin)
        except RerankerError:
            # All requests have ended, so there are no further costs.
            with suppress(RankdashError, OSError):
                file.close(pairs)
            raise
    file.close(pairs)
    return _finish(file, pairs)


def _judge(arguments: argparse.Namespace) -> Judge:
    settings: dict[str, str | int] = dict(settings_of(arguments.settings))
    template = JUDGE.get(arguments.template)
    prompt_settings = {} if template is None else dict(template)
    if template is None:
        prompt_settings["prompt"] = _text_of(arguments.template, "--template")
    if arguments.guidelines is not None:
        prompt_settings["guidelines"] = _text_of(arguments.guidelines, "--guidelines")
    return Judge({**prompt_settings, "repeats": arguments.repeats, **settings})


def _text_of(file: str, option: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except FileNotFoundError as problem:
        raise SettingError(
            "There is no file {file} for {option}.",
            remedy="Pass the name of a built-in prompt ({names}) or a text file."
            if option == "--template"
            else "Pass a text file.",
            file=file,
            option=option,
            names=" and ".join(JUDGE),
        ) from problem
    except UnicodeDecodeError as problem:
        raise SettingError(
            "The file {file} is not UTF-8 text.", remedy="Save it as UTF-8.", file=file
        ) from problem


def _pool(arguments: argparse.Namespace) -> tuple[Dataset, LabelPool]:
    """Return the data set, and the pool of the first documents of the rankings."""
    if arguments.depth < 1:
        raise SettingError("The depth must be at least 1, not {depth}.", depth=arguments.depth)
    rules = {"conflict": arguments.conflict, "worst_label": arguments.worst_label}
    if arguments.run:
        joined = read_beside(
            sources_at(arguments.data),
            names_of(arguments.run),
            columns=columns_of(arguments.columns),
        )
        parsed = joined.parsed(**rules, first_stage=arguments.first_stage)
        warn(parsed.findings)
        rankings = {name: each.ranking for name, each in joined.rankings.items()}
        tables = (parsed.queries, parsed.documents, parsed.qrels)
        dataset = Dataset(parsed.name, *tables, next(iter(rankings.values())))
    else:
        loaded = load(
            sources_at(arguments.data),
            first_stage=arguments.first_stage,
            retrieval=arguments.retrieval,
            retrieved=arguments.retrieved,
            columns=columns_of(arguments.columns),
            **rules,
        )
        warn(loaded.report.warnings)
        dataset = loaded.dataset
        rankings = {first_stage_name(dataset): dataset.candidates}
        rankings |= {each.name: each.ranking for each in loaded.runs}
    return dataset, pool_of(rankings, arguments.depth, fewest=1)


def _say_cost(judge: Judge, pool: LabelPool, pairs: int, requested: list[Question]) -> None:
    before, _ = estimate(judge, requested)
    done = f", {pairs - len(requested):,} of them graded before" if len(requested) < pairs else ""
    sys.stderr.write(
        f"{pairs:,} pairs of query and document from {len(pool.systems)} "
        f"ranking{'s' if len(pool.systems) > 1 else ''}{done}.\n"
    )
    if pool.excluded:
        sys.stderr.write(
            f"warning: {len(pool.excluded):,} queries excluded: they are not in every ranking\n"
        )
    if not before.calls:
        return
    price = (
        "price unknown: use --set price_in=… and price_out=…, in $ per million tokens"
        if math.isnan(before.dollars)
        else f"about ${before.dollars:,.{2 if before.dollars >= 1 else 4}f}"
    )
    seconds = seconds_of(judge, before.calls)
    at_least = "" if math.isnan(seconds) else f", at least {duration(seconds)}"
    sys.stderr.write(
        f"About {before.calls:,} calls to {printable(urlsplit(judge.place.base_url).netloc)}, "
        f"{before.tokens_in:,.0f} input and {before.tokens_out:,.0f} output tokens, "
        f"{price}{at_least}.\n"
    )


def _agree(yes: bool) -> None:
    """Raise SpecError unless the user confirms."""
    if yes:
        return
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write("Start? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise SpecError("Nothing was sent.", remedy="Add --yes to start.")


class _Progress:
    """Writer of batches that reports progress every few seconds."""

    def __init__(self, file: GradesFile, total: int) -> None:
        self._file, self._total, self._done, self._failed = file, total, 0, 0
        self._reported = time.monotonic()
        self._pace = Pace()
        self._pace.mark(self._reported, 0)

    def take(self, batch: list[JudgedPair]) -> None:
        self._file.add(batch)
        self._done += len(batch)
        self._failed += sum(not pair.answer.graded for pair in batch)
        now = time.monotonic()
        self._pace.mark(now, self._done)
        if now - self._reported >= _REPORT_SECONDS:
            self._reported = now
            seconds = self._pace.seconds_left(self._total - self._done)
            rest = "" if seconds is None else f", {_left(seconds)}"
            sys.stderr.write(
                f"{self._done:,} of {self._total:,} pairs, {self._failed:,} without a grade{rest}\n"
            )


def _left(seconds: float) -> str:
    return "almost done" if seconds < 1 else f"about {duration(seconds)} left"


def _finish(file: GradesFile, pairs: list[Pair]) -> int:
    rows = [file.rows[pair] for pair in pairs]
    kinds = Counter(row["kind"] for row in rows if row["grade"] is None)
    failed = sum(kinds.values())
    sys.stderr.writelines(f"{line}\n" for line in used_lines(file.used))
    if failed == len(rows):
        raise ScoringError(
            "No pair was graded. The first reason: {reason}.",
            reason=str(rows[0]["error"]).rstrip("."),
        )
    reasons = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common())
    why = f" ({reasons}; run the command again to retry them)" if failed else ""
    sys.stderr.write(
        f"{len(rows) - failed:,} graded, {failed:,} without a grade{why}. "
        f"Written: {place_name(file.path)}\n"
    )
    fewer = sum(row["grade"] is not None and None in row["grades"] for row in rows)
    if fewer:
        sys.stderr.write(
            f"{fewer:,} of them use fewer repeats than requested: the others failed or could not "
            "be parsed.\n"
        )
    return INCOMPLETE if failed else DONE


# File of a judge's grades, written during the run and resumed by later runs.  Rows are appended
# batch by batch; a later row of a pair replaces an earlier one. At the end the file is rewritten
# with one row for each pair.

COLUMNS = (
    *("query_id", "doc_id", "grade", "error", "kind", "reason", "grades"),
    *("judge", "model", "template", "top", "time", "calls", "billed"),
)
# A started pair, and a pair whose answer was lost because the program ended.
_BEGUN, _LOST = "begun", "lost"
_IDENTITY = ("model", "template", "top")

Row = dict[str, Any]
Pair = tuple[str, str]


@dataclass
class GradesFile:
    """Grades of one judge, in memory and in the file.

    rows: pair → its row. used: all calls, including earlier attempts.
    """

    path: Path
    name: str
    judge: Judge
    rows: dict[Pair, Row] = field(default_factory=dict)
    _begun: dict[Pair, Row] = field(default_factory=dict, init=False)
    used: Usage = field(default_factory=Usage)

    @classmethod
    def open(cls, path: Path, name: str, judge: Judge) -> GradesFile:
        """Open the file with its rows.

        Raises DataError for an unknown file extension, for another kind of file, and for the grades
        of another judge (another model, prompt or scale).
        """
        if path.suffix not in (".csv", ".jsonl"):
            raise DataError(
                "The name of the file must end in .csv or .jsonl.",
                remedy="For example: --out grades.csv",
                file=str(path),
            )
        file = cls(path, name, judge)
        if not path.exists() or not path.stat().st_size:
            file._write([])
            return file
        identity = file._identity
        for line, row in _rows(path):
            with _guarded(path, line):
                if any(str(row[each]) != str(identity[each]) for each in _IDENTITY):
                    raise DataError(
                        "This file contains the grades of another judge: model {model}, "
                        "prompt {prompt}.",
                        remedy="Pass another name to --out, or use the same model, prompt, "
                        "guidelines and scale.",
                        line=line,
                        model=str(row["model"]),
                        prompt=str(row["template"]),
                    )
                file._take(row)
        # Calls of a program that died were paid for, too.
        for row in list(file._begun.values()):
            file._take(row | {"kind": _LOST})
        # Rewrite the file without the incomplete rows of a program that died.
        file._write(file.rows.values())
        return file

    def pending(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Return the pairs without an answer. If all have one, return the pairs without a grade:
        many failures in a row would otherwise look like an outage."""
        none = {"kind": _LOST, "grade": None}
        rows = [(pair, self.rows.get(pair, none)) for pair in pairs]
        failed = [pair for pair, row in rows if row["grade"] is None]
        return [pair for pair, row in rows if row["kind"] == _LOST] or failed

    @property
    def unread(self) -> set[Pair]:
        """Pairs with an answer that could not be parsed."""
        return {pair for pair, row in self.rows.items() if row["kind"] == "unreadable"}

    def begin(self, begun: Mapping[Pair, Usage]) -> None:
        """Append the started pairs with their minimum cost, in case no answer is stored. Raises
        what `outfile.append` raises."""
        self._append(
            {
                "query_id": pair[0],
                "doc_id": pair[1],
                "grade": None,
                "error": "The program ended before the answer was stored.",
                "kind": _BEGUN,
                "reason": "",
                "grades": [],
                "judge": self.name,
                **self._identity,
                "time": now(),
                "calls": usage.calls,
                "billed": asdict(usage),
            }
            for pair, usage in begun.items()
        )

    def add(self, batch: Sequence[JudgedPair]) -> None:
        """Append a batch. Raises what `outfile.append` raises."""
        rows = [self._row(pair) for pair in batch]
        self._append(rows)
        for row in rows:
            self._take(row)

    def close(self, order: Iterable[Pair]) -> None:
        """Write one row for each pair, first the pairs of `order`."""
        places = dict.fromkeys([pair for pair in order if pair in self.rows])
        self._write(self.rows[pair] for pair in places | dict.fromkeys(self.rows))

    @property
    def _identity(self) -> Row:
        return {
            "model": self.judge.model, "template": self.judge.template_hash, "top": self.judge.top
        }  # fmt: skip

    def _append(self, rows: Iterable[Row]) -> None:
        files.append(self.path, [self._line(row).encode("utf-8", "replace") for row in rows])

    def _take(self, row: Row) -> None:
        pair, usage = (row["query_id"], row["doc_id"]), Usage(**row["billed"])
        if row["kind"] == _BEGUN:
            self._begun[pair] = row
            return
        self._begun.pop(pair, None)
        self.used += usage
        before = self.rows.get(pair)
        if before is not None:
            # Add the cost of earlier attempts.
            total = Usage(**before["billed"]) + usage
            row = {**row, "billed": asdict(total), "calls": total.calls}
        self.rows[pair] = row

    def _row(self, pair: JudgedPair) -> Row:
        usage = Usage.of(pair.calls)
        answer = pair.answer
        return {
            "query_id": pair.query_id,
            "doc_id": pair.doc_id,
            "grade": answer.grade if answer.graded else None,
            "error": answer.error,
            "kind": answer.kind,
            "reason": answer.reason,
            "grades": [each.grade if each.graded else None for each in pair.answers],
            "judge": self.name,
            **self._identity,
            "time": now(),
            "calls": usage.calls,
            "billed": asdict(usage),
        }

    def _line(self, row: Mapping[str, Any]) -> str:
        if self.path.suffix == ".jsonl":
            return json.dumps({name: row[name] for name in COLUMNS}) + "\n"
        cells = dict(row) | {name: json.dumps(row[name]) for name in ("grades", "billed")}
        cells["grade"] = "" if row["grade"] is None else f"{row['grade']:g}"
        return csv_line(str(cells[name]) for name in COLUMNS)

    def _write(self, rows: Iterable[Row]) -> None:
        """Write the whole file; if the program dies, the previous file remains."""
        heading = [csv_line(COLUMNS)] if self.path.suffix == ".csv" else []
        text = "".join([*heading, *map(self._line, rows)])
        files.write(self.path, text.encode("utf-8", "replace"))


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield (line, row). Raises DataError for another kind of file."""
    text = path.read_bytes().decode("utf-8", "replace")
    whole = text[: text.rfind("\n") + 1]
    if path.suffix == ".jsonl":
        for number, line in enumerate(whole.split("\n")[:-1], 1):
            with _guarded(path, number):
                row = _checked(from_json(line))
            yield number, row
        return
    with _guarded(path, 1):
        table = list(enumerate(csv.reader(io.StringIO(whole)), 1))
        if not table or tuple(table[0][1]) != COLUMNS:
            raise ValueError
    for number, cells in table[1:]:
        # The last row is incomplete if the program died while writing it.
        if len(cells) == len(COLUMNS):
            with _guarded(path, number):
                row = _checked(_from_cells(cells))
            yield number, row


def _guarded(path: Path, line: int) -> AbstractContextManager[None]:
    return guarded(
        str(path),
        "This file was not written by `rankdash judge run`.",
        "Use another name for --out.",
        line=line,
    )


def _from_cells(cells: Sequence[str]) -> Row:
    row: Row = dict(zip(COLUMNS, map(restored, cells), strict=True))
    row["grade"] = float(row["grade"]) if row["grade"] else None
    return row | {name: from_json(row[name]) for name in ("grades", "billed")}


def _checked(row: Row) -> Row:
    Usage(**row["billed"])
    if row["grade"] is None and not row["error"]:
        raise ValueError
    return {name: row[name] for name in COLUMNS}
