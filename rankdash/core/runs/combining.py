"""Runs made from other runs: stored runs fused without scoring, and the shards of a run merged."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, Phrase, SettingError
from rankdash.core.base.files import guarded
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import (
    CHURN,
    QueryState,
    Ranking,
    Run,
    digest,
    documents_of,
    source_id,
)
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.rerankers.fusion import fuse as fuse_rankings
from rankdash.core.runs.results import computed_by

KIND = "fusion"
FIRST_STAGE = "first stage"


@dataclass(frozen=True)
class CombinedRun:
    """Ranking that is fused with others. run: its run; None for the first stage."""

    name: str
    ranking: Ranking
    run: Run | None = None


_TUNED, _HELD_OUT = ("on", "by", "metric"), ("level", "gain", "low", "high")


@dataclass(frozen=True)
class Tuned:
    """Record in the settings of a run that its fusion weights were chosen on the labels of a data
    set.

    on: id of the data set. by: the method that estimated the gain. metric: its title. gain, low,
    high: held-out gain over equal RRF with its interval at `level`; NaN if it is unknown.
    """

    on: str
    by: str
    metric: str
    level: float
    gain: float
    low: float
    high: float

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Tuned | None:
        """Return the record in the settings of a run; None without one."""
        if "tuned_on" not in settings:
            return None
        fields: dict[str, Any] = {name: str(settings.get(f"tuned_{name}", "")) for name in _TUNED}
        for name in _HELD_OUT:
            value = settings.get(f"held_out_{name}")
            fields[name] = value if isinstance(value, float) else math.nan
        return cls(**fields)

    @property
    def settings(self) -> dict[str, object]:
        """The settings that `of` reads."""
        texts = {f"tuned_{name}": getattr(self, name) for name in _TUNED}
        numbers = {f"held_out_{name}": getattr(self, name) for name in _HELD_OUT}
        return texts | {name: value for name, value in numbers.items() if math.isfinite(value)}


def fuse(
    dataset: Dataset,
    parts: Sequence[CombinedRun],
    how: Fusion,
    name: str,
    tuned: Tuned | None = None,
) -> Run:
    """Return the fusion of `parts` as a run of the data set; equal sums are in the order of
    the first part. tuned: the record of weights that were chosen on labels.

    A query that failed in a part fails, with that part's reason; a query that is missing from a
    part is skipped, because an incomplete fusion would be misleading. If a part was stopped by its
    result, so was the fusion. No latency is stored, because
    none was measured: `with_times_of` derives it from the parts.

    Raises SettingError for fewer than two parts or wrong weights, and DataError if no query is in
    every part.
    """
    ranking = fuse_rankings([part.ranking for part in parts], how)
    if not len(ranking.query_ids):
        raise DataError(
            "The rankings have no query in common.",
            remedy="Fuse runs over the same queries.",
        )
    weights = how.weights or (1.0,) * len(parts)
    settings = {
        "method": how.method,
        **({"k": how.k} if how.method == "rrf" else {}),
        "parts": " + ".join(part.name for part in parts),
        "weights": ", ".join(f"{weight:g}" for weight in weights),
        "part_ids": ", ".join(part.run.id if part.run else FIRST_STAGE for part in parts),
        **({} if tuned is None else tuned.settings),
    }
    wish = (dataset.id, KIND, name, repr(sorted(settings.items())))
    stopped = [part.run.stopped for part in parts if part.run is not None and part.run.stopped]
    return Run(
        id=digest(text.encode("utf-8", "surrogatepass") for text in wish),
        name=name,
        dataset_id=dataset.id,
        ranking=ranking,
        reranker=KIND,
        queries=_queries(dataset, parts, set(ranking.query_ids)),
        settings=settings,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        measured=Measured(stopped=stopped[0]) if stopped else None,
        documents=documents_of(part.run for part in parts if part.run is not None),
    )


def part_ids(run: Run) -> tuple[str, ...]:
    """Return the ids of the runs that a run was fused from, without the first stage; empty for a
    run that is not a fusion."""
    if run.reranker != KIND:
        return ()
    ids = str(run.settings.get("part_ids", "")).split(", ")
    return tuple(each for each in ids if each and each != FIRST_STAGE)


def tuned(run: Run, part: Callable[[str], Run | None]) -> Tuned | None:
    """Return the record of a run, or of one of its parts, that its weights were tuned on its data
    set; None without one.

    part: id → the run, or None if it is not stored.
    """
    record = Tuned.of(run.settings)
    if record is not None and record.on == run.dataset_id:
        return record
    parts = (loaded for each in part_ids(run) if (loaded := part(each)) is not None)
    return next((record for each in parts if (record := tuned(each, part)) is not None), None)


def with_times_of(run: Run, parts: Sequence[Run]) -> Run:
    """Return the run with the summed latencies, pairs and tokens of its parts, as if they run one
    after the other. A query that was not timed in one of them has no latency."""
    queries = run.queries.set_index("query_id")
    tables = [part.queries.set_index("query_id") for part in parts]
    totals = {
        name: sum(
            each[name].astype(np.float64).reindex(queries.index).to_numpy() for each in tables
        )
        for name in ("latency_ms", "pairs", "tokens")
    }
    done = (run.queries["state"] == "done").to_numpy()
    columns = {name: np.where(done, total, np.nan) for name, total in totals.items()}
    return replace(run, queries=run.queries.assign(**columns))


def unknown_tokens(run: Run, part: Callable[[str], Run | None]) -> float:
    """Return the share of tokens in [0, 1] that the model of a run does not know; for a fusion, the
    largest share of its parts. NaN if no tokens were read.

    part: id → the run, or None if it is not stored.
    """
    parts = [loaded for each in part_ids(run) if (loaded := part(each)) is not None]
    share = math.nan if run.measured is None else run.measured.unknown_tokens
    shares = [share, *(unknown_tokens(each, part) for each in parts)]
    return max((each for each in shares if not math.isnan(each)), default=math.nan)


def churn(run: Run, part: Callable[[str], Run | None]) -> float:
    """Return the churn of the engine that a run was fetched from; for a fusion, and for a run over
    the candidates of another, the largest of their sources. NaN if it was not measured.

    part: as in `unknown_tokens`.
    """
    source = source_id(run.settings)
    sources = [*part_ids(run), *([] if source is None else [source])]
    shares = [churn(loaded, part) for each in sources if (loaded := part(each)) is not None]
    measured = run.machine.get(CHURN)
    shares += [measured] if isinstance(measured, float) else []
    return max((each for each in shares if not math.isnan(each)), default=math.nan)


def _queries(dataset: Dataset, parts: Sequence[CombinedRun], done: set[str]) -> pd.DataFrame:
    part_states = [_states(part) for part in parts]
    rows = [
        _state(query, query in done, parts, part_states) for query in dataset.queries["query_id"]
    ]
    table = pd.DataFrame(rows, columns=["query_id", "state", "reason"]).astype("str")
    for column in ("latency_ms", "index_ms", "tokens", "truncated"):
        table[column] = np.full(len(table), math.nan)
    # No pair was scored for it.
    table.insert(5, "pairs", np.where(table["state"] == "done", 0.0, math.nan))
    return table


def _states(part: CombinedRun) -> dict[str, tuple[str, str]]:
    """Return query id → state and reason, from the run of the part."""
    if part.run is None:
        return {}
    table = part.run.queries
    outcomes = zip(table["state"], table["reason"], strict=True)
    return dict(zip(table["query_id"], outcomes, strict=True))


def _state(
    query: str,
    done: bool,
    parts: Sequence[CombinedRun],
    part_states: Sequence[dict[str, tuple[str, str]]],
) -> tuple[str, QueryState, str]:
    if done:
        return query, "done", ""
    for problem in ("failed", "skipped"):
        for part, states in zip(parts, part_states, strict=True):
            state, reason = states.get(query, ("", ""))
            if state == problem:
                return query, problem, f"{part.name}: {reason}"
    lacking = [part.name for part in parts if query not in part.ranking.positions]
    return query, "skipped", f"not in {', '.join(lacking)}"


# Shards: a run split into parts, one per job of a cluster; the file of each part, and their merge.
# A part is one line of JSON that describes the part, followed by the lines of a TREC run. It is one
# file, so that the two cannot be separated, and it is not a valid run: a program that reads only
# runs stops at the first line.

MOST_SHARDS = 100_000
_MARK = b"# rankdash shard "
_LONGEST_HEAD = 1 << 30
_FORM = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_NAMED = 5
# Id, state, reason, latency, pairs, rows of the run, latency of each repeat.
_Query = tuple[
    str,
    str,
    str,
    float | None,
    float | None,
    Annotated[int, msgspec.Meta(ge=0, le=2**62)],
    list[float],
]
# Keys that must be equal in all parts → description of a difference.
_SAME = {
    "version": Phrase("different version of rankdash"),
    "data": Phrase("different data"),
    "first_stage": Phrase("different first stage"),
    "reranker": Phrase("different reranker"),
    "settings": Phrase("different settings ({names})", names=""),
    "plan": Phrase("different depth, or different rule for candidates without text"),
    "weights": Phrase("different model"),
    "computed": Phrase("different runtime or device"),
    "of": Phrase("different number of shards"),
}


@dataclass(frozen=True)
class Shard:
    """Number of a shard, from 1, and the total number of shards."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse "3/16". Raises SettingError for other text."""
        match = _FORM.fullmatch(text.strip())
        number, of = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= of <= MOST_SHARDS:
            raise SettingError(
                "A shard is written as number/total, such as 3/16, not {text!r}.",
                remedy="Numbers start at 1; the highest is {most}.",
                text=text,
                most=f"{MOST_SHARDS:,}",
            )
        return cls(number, of)

    def queries(self, dataset: Dataset) -> list[str]:
        """Return the query ids of the shard: every `of`-th query, so that shards are similar."""
        return list(dataset.queries["query_id"])[self.number - 1 :: self.of]


def part_bytes(
    shard: Shard, dataset: Dataset, run: Run, weights: str, version: str, lines: bytes
) -> bytes:
    """Return the file of a part. run: over the queries of the part. weights: the fingerprint of the
    reranker. lines: the ranking of the run as a TREC run."""
    shard_rows = run.queries.set_index("query_id").loc[shard.queries(dataset)]
    sizes = dict(zip(run.ranking.query_ids, np.diff(run.ranking.offsets).tolist(), strict=True))
    repeated = {} if run.measured is None else run.measured.repeated_ms
    head = {
        "version": version,
        "data": _data(dataset),
        "first_stage": _order(dataset.candidates),
        "reranker": run.reranker,
        "settings": dict(run.settings),
        "plan": [run.depth, "" if run.measured is None else run.measured.without_text],
        "weights": weights,
        "computed": computed_by(run.machine),
        "number": shard.number,
        "of": shard.of,
        "total": len(dataset.queries),
        "sha256": hashlib.sha256(lines).hexdigest(),
        "queries": [
            [
                query,
                row["state"],
                row["reason"],
                _or_null(row["latency_ms"]),
                _or_null(row["pairs"]),
                sizes.get(query, 0),
                list(repeated.get(query, ())),
            ]
            for query, row in zip(shard_rows.index, shard_rows.to_dict("records"), strict=True)
        ],
    }
    return _MARK + json.dumps(head, allow_nan=False).encode() + b"\n" + lines


def _or_null(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _data(dataset: Dataset) -> str:
    """Return a hash of all texts, and of the queries in order."""
    tables = dataset.query_text(), dataset.document_text().sort_index()
    return digest(
        str(each).encode("utf-8", "surrogatepass")
        for table in tables
        for row in table.items()
        for each in row
    )


def _order(ranking: Ranking) -> str:
    """Return a hash of the lists without scores, which no reranker reads."""
    lists = (ranking.documents_of(query)[0] for query in sorted(ranking.query_ids))
    return digest("\n".join(each).encode("utf-8", "surrogatepass") for each in lists)


@dataclass(frozen=True)
class Part:
    """File of a part with its parsed first line."""

    path: Path
    head: Mapping[str, Any]
    start: int

    @classmethod
    def read(cls, path: Path) -> Part:
        """Read the first line. Raises DataError for another kind of file, OSError if it cannot be
        read."""
        with path.open("rb") as file:
            line = file.readline(_LONGEST_HEAD)
        with guarded(
            str(path),
            "This is not a shard file.",
            "Pass the files written by rerank --shard.",
            line=1,
        ):
            if not line.startswith(_MARK):
                raise ValueError
            head = json.loads(line[len(_MARK) :])
            if not {*_SAME, "number", "total", "sha256", "queries"} <= head.keys():
                raise ValueError
            head["queries"] = msgspec.convert(head["queries"], list[_Query])
            part = cls(path, head, len(line))
            if len(head["queries"]) != len(range(part.shard.number - 1, head["total"], head["of"])):
                raise ValueError
        return part

    @cached_property
    def shard(self) -> Shard:
        return Shard.parse(f"{self.head['number']}/{self.head['of']}")

    def lists(self) -> Iterator[bytes]:
        """Yield the lines of each of its queries, in order; b"" for a query without a result.

        Raises DataError if the lines were changed after they were written.
        """
        seen = hashlib.sha256()
        with self.path.open("rb") as file:
            file.seek(self.start)
            for *_, rows, _repeated in self.head["queries"]:
                lines = b"".join(islice(file, rows))
                seen.update(lines)
                yield lines
            rest = file.read(1)
        if rest or seen.hexdigest() != self.head["sha256"]:
            raise DataError(
                "The shard file was changed or truncated after it was written.",
                remedy="Copy it again, or run the shard again.",
                file=str(self.path),
            )


def complete(paths: Sequence[Path]) -> list[Part]:
    """Return the parts of one run, in order.

    Raises DataError, with the file name, for a part that belongs to another run, is duplicated or
    missing.
    """
    parts = [Part.read(path) for path in paths]
    for key, difference in _SAME.items():
        # A part without a query to score has not loaded a model.
        first, *others = [part for part in parts if part.head[key]] or parts
        for part in others:
            if part.head[key] != first.head[key]:
                raise DataError(
                    "The shard does not match {other}: {difference}.",
                    remedy="Run the shards of one run with the same command on the same files.",
                    file=str(part.path),
                    difference=_said(key, difference, part, first),
                    other=str(first.path),
                )
    numbered: dict[int, Part] = {}
    for part in parts:
        other = numbered.setdefault(part.shard.number, part)
        if other is not part:
            raise DataError(
                "Shard {number} is duplicated: {other} contains it too.",
                remedy="Pass only one of the two files.",
                file=str(part.path),
                number=part.shard.number,
                other=str(other.path),
            )
    of = parts[0].shard.of
    missing = [number for number in range(1, of + 1) if number not in numbered]
    if missing:
        raise DataError(
            "Missing shards ({of} in total): {lost}.",
            remedy="Run them, for example with --shard {first}, and pass their files too.",
            of=of,
            lost=", ".join(map(str, missing[:_NAMED])) + ("" if len(missing) <= _NAMED else " …"),
            first=f"{missing[0]}/{of}",
        )
    return [numbered[number] for number in range(1, of + 1)]


def _said(key: str, difference: Phrase, part: Part, first: Part) -> Phrase:
    """Return how a shard differs from the first one; for settings, with the names that differ."""
    if key != "settings":
        return difference
    settings, others = part.head[key], first.head[key]
    names = sorted(name for name in {*settings, *others} if settings.get(name) != others.get(name))
    return Phrase(difference.template, names=", ".join(names))


def merge(parts: Sequence[Part], out: BinaryIO) -> pd.DataFrame:
    """Write the run that consists of the parts, query by query.

    Return a frame with a row per query: query_id, state, reason, latency_ms and pairs, and
    repeated_ms, as in a `Run`.

    Raises DataError if a file was changed after it was written; OSError.
    """
    lists = [part.lists() for part in parts]
    total = int(parts[0].head["total"])
    for place in range(total):
        out.write(next(lists[place % len(lists)]))
    for each in lists:
        # Each part verifies its hash after its last list.
        next(each, None)
    rows = [
        parts[place % len(parts)].head["queries"][place // len(parts)] for place in range(total)
    ]
    names = ["query_id", "state", "reason", "latency_ms", "pairs", "rows", "repeated_ms"]
    frame = pd.DataFrame(rows, columns=names).drop(columns="rows")
    return frame.astype({"latency_ms": "float64", "pairs": "float64"})
