"""What `judge run` does."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from rankdash.core.base.errors import (
    RankdashError,
    RerankerError,
    ScoringError,
    SettingError,
    SpecError,
)
from rankdash.core.base.i18n import duration
from rankdash.core.data.dataset import Dataset
from rankdash.core.readers import read_beside, sources_at
from rankdash.core.readers.loading import load
from rankdash.core.rerankers.remote.prompts import JUDGE
from rankdash.core.runs.pace import Pace
from rankdash.core.sampling.label_pool import LabelPool, pool_of
from rankdash.core.study.systems import first_stage_name
from rankdash.features.judge.asking import JudgedPair, Question, ask, questions
from rankdash.features.judge.command_grades_file import GradesFile, Pair
from rankdash.features.judge.judge import Judge
from rankdash.features.judge.wish import estimate, pairs_of, seconds_of
from rankdash.kit.commands.arguments import DONE, INCOMPLETE, columns_of, settings_of
from rankdash.kit.commands.output import (
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
    """Say what it costs, ask, and write; progress, failures and the bill go to standard error."""
    judge = _judge(arguments)
    target = target_of(arguments.out)
    spare_the_input(target, [*arguments.data, *arguments.run])
    dataset, pool = _pool(arguments)
    labelled = set(dataset.labels["query_id"].texts.to_pylist())
    pairs = pairs_of(pool, arguments.sample, arguments.seed, labelled)
    file = GradesFile.open(target, arguments.name.strip() or judge.model, judge)
    left = file.pending(pairs)
    asked = questions(dataset, left, file.unread)
    _say_cost(judge, pool, len(pairs), asked)
    if left:
        _agree(arguments.yes)
        progress = _Progress(file, len(left))
        try:
            ask(judge, asked, on_batch=progress.take, on_begin=file.begin)
        except RerankerError:
            # Every request has ended, so that nothing more is paid for.
            with suppress(RankdashError, OSError):
                file.close(pairs)
            raise
    file.close(pairs)
    return _finish(file, pairs)


def _judge(arguments: argparse.Namespace) -> Judge:
    settings: dict[str, str | int] = dict(settings_of(arguments.settings))
    template = JUDGE.get(arguments.template)
    own = {} if template is None else dict(template)
    if template is None:
        own["prompt"] = _text_of(arguments.template, "--template")
    if arguments.guidelines is not None:
        own["guidelines"] = _text_of(arguments.guidelines, "--guidelines")
    return Judge({**own, "repeats": arguments.repeats, **settings})


def _text_of(file: str, option: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except FileNotFoundError as problem:
        raise SettingError(
            "There is no file {file} for {option}.",
            remedy="The prompts by name are {names}; give one of them, or a text file."
            if option == "--template"
            else "Give a text file.",
            file=file,
            option=option,
            names=" and ".join(JUDGE),
        ) from problem
    except UnicodeDecodeError as problem:
        raise SettingError(
            "The file {file} is no text in UTF-8.", remedy="Save it as UTF-8.", file=file
        ) from problem


def _pool(arguments: argparse.Namespace) -> tuple[Dataset, LabelPool]:
    """The texts, and the first documents of the rankings."""
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


def _say_cost(judge: Judge, pool: LabelPool, pairs: int, asked: list[Question]) -> None:
    before, _ = estimate(judge, asked)
    done = f", {pairs - len(asked):,} of them asked before" if len(asked) < pairs else ""
    sys.stderr.write(
        f"{pairs:,} pairs of query and document from {len(pool.systems)} "
        f"ranking{'s' if len(pool.systems) > 1 else ''}{done}.\n"
    )
    if pool.excluded:
        sys.stderr.write(
            f"warning: excluded, because not every ranking has them: {len(pool.excluded):,} "
            "queries\n"
        )
    if not before.calls:
        return
    price = (
        "price not known: --set price_in=… and price_out=…, in $ for a million tokens"
        if math.isnan(before.dollars)
        else f"about ${before.dollars:,.{2 if before.dollars >= 1 else 4}f}"
    )
    seconds = seconds_of(judge, before.calls)
    at_least = "" if math.isnan(seconds) else f", at least {duration(seconds)}"
    sys.stderr.write(
        f"About {before.calls:,} calls to {printable(urlsplit(judge.place.base_url).netloc)}, "
        f"{before.tokens_in:,.0f} tokens read and {before.tokens_out:,.0f} written, "
        f"{price}{at_least}.\n"
    )


def _agree(yes: bool) -> None:
    """Raises SpecError unless the person says yes."""
    if yes:
        return
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write("Start? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise SpecError("Nothing was asked.", remedy="Give --yes to start.")


class _Progress:
    """Keeps batches, and says every few seconds how far it is."""

    def __init__(self, file: GradesFile, total: int) -> None:
        self._file, self._total, self._done, self._failed = file, total, 0, 0
        self._told = time.monotonic()
        self._pace = Pace()
        self._pace.mark(self._told, 0)

    def take(self, batch: list[JudgedPair]) -> None:
        self._file.add(batch)
        self._done += len(batch)
        self._failed += sum(not pair.answer.graded for pair in batch)
        now = time.monotonic()
        self._pace.mark(now, self._done)
        if now - self._told >= _REPORT_SECONDS:
            self._told = now
            seconds = self._pace.seconds_left(self._total - self._done)
            left = "" if seconds is None else f", {_left(seconds)}"
            sys.stderr.write(
                f"{self._done:,} of {self._total:,} pairs, {self._failed:,} without a grade{left}\n"
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
    told = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common())
    why = f" ({told}; run the command again to ask for them once more)" if failed else ""
    sys.stderr.write(
        f"{len(rows) - failed:,} graded, {failed:,} without a grade{why}. "
        f"Written: {place_name(file.path)}\n"
    )
    fewer = sum(row["grade"] is not None and None in row["grades"] for row in rows)
    if fewer:
        sys.stderr.write(
            f"{fewer:,} of them graded from fewer answers than asked: others failed or could not "
            "be read.\n"
        )
    return INCOMPLETE if failed else DONE
