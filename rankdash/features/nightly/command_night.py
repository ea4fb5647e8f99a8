"""The parts of a night: its data set, its fetches, the pinned run, and its run in a workspace."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain

from rankdash.core.base.errors import DataError
from rankdash.core.base.files import text_of
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run, digest
from rankdash.core.readers import read, sources_at
from rankdash.core.readers.files import read_beside
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.search.endpoint import Endpoint
from rankdash.core.search.fetching import Answer, fetch, fetched
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.notes import Corrections, Pins, RunNotes
from rankdash.features.nightly.config import WORKSPACE, Config
from rankdash.features.nightly.nightly import Fetch, Values, churned, decided, p95
from rankdash.features.nightly.state import Fetched, Line, State
from rankdash.kit.commands.output import printable, warn
from rankdash.kit.commands.rankings import names_of
from rankdash.kit.commands.timings import Timings, timed, with_beside

_EACH = 50


@dataclass(frozen=True, eq=False)
class Tonight:
    """The outcome of a night. name: of the pinned run. pinned, values: the values of the pinned run
    and of tonight; pinned is None if no run was pinned before."""

    line: Line
    name: str
    pinned: Values | None
    values: Values


class Night:
    """A night of a configuration. The state must be locked."""

    def __init__(self, config: Config, date: str) -> None:
        self._config, self._date = config, date
        self._state = State(config.state)
        self._nights = self._state.read()

    @cached_property
    def _workspace(self) -> Workspace | None:
        folder = self._config.workspace
        if folder is not None and not folder.is_dir():
            raise DataError("The workspace does not exist.", file=str(folder))
        return None if folder is None else Workspace.open(folder)

    @cached_property
    def _dataset(self) -> Dataset:
        if self._workspace is not None:
            return self._workspace.dataset(self._dataset_id(self._workspace))
        parsed = read(sources_at([str(self._config.path(each)) for each in self._config.data]))
        warn(parsed.findings)
        candidates = parsed.candidates or Ranking.from_lists([])
        return Dataset(parsed.name, parsed.queries, parsed.documents, parsed.qrels, candidates)

    @cached_property
    def _labelled(self) -> Dataset:
        """The data set with corrected labels, if it is in a workspace."""
        if self._workspace is None:
            return self._dataset
        changes = Corrections(self._workspace).labels(self._dataset.id)
        known = changes["doc_id"].isin(self._dataset.documents["doc_id"])
        return self._dataset.relabelled(changes[known]) if known.any() else self._dataset

    def _dataset_id(self, workspace: Workspace) -> str:
        """Return the id of the data set in the workspace, by its name or id."""
        named = self._config.data[0]
        rows = [each for each in workspace.datasets() if named in (each.id, each.name)]
        if len(rows) != 1:
            raise DataError(
                "The workspace has {count} data sets with the name or id {name!r}.",
                remedy="Set data to the name or the id of one: {names}.",
                count=len(rows),
                name=named,
                names=", ".join(each.name for each in workspace.datasets()) or "there are none",
            )
        return rows[0].id

    def accept(self) -> Line:
        """Make the newest night the pinned run, also in the workspace if its pinned run is used.
        Return it. Raises DataError if no night is stored, or if too many of its queries failed."""
        line = self._nights.last
        if line is None:
            raise DataError("No night can be accepted yet.", remedy="Run the command once before.")
        if not self._is_usable(line.failed, line.queries):
            raise DataError(
                "{failed:,} of {queries:,} queries of night {night} failed, more than max_failed "
                "permits, so the night cannot be accepted.",
                remedy="Accept a later night, or set max_failed to a larger share.",
                file=str(self._config.state),
                failed=line.failed,
                queries=line.queries,
                night=line.night,
            )
        if self._config.pinned == (WORKSPACE,) and self._workspace is not None:
            Pins(self._workspace).pin(line.run_id)
        self._state.accept(line, _now())
        return line

    def run(self) -> Tonight:
        """Fetch, compare with the pinned run, and store the night. Raises DataError if the date is
        before the last night, or if the data set has no labels."""
        last_line = self._nights.last
        if last_line is not None and self._date < last_line.date:
            raise DataError(
                "The date {date} is before {last}, the date of night {night}, which is the last in "
                "the state file.",
                remedy="Set --date to {last} or later, or set state to another file.",
                file=str(self._config.state),
                date=self._date,
                last=last_line.date,
                night=last_line.night,
            )
        if not len(self._labelled.qrels):
            raise DataError("The data set has no labels.", remedy="Add labels, or another file.")
        runs = self._runs()
        night = 1 if last_line is None else last_line.night + 1
        configured, pinned_runs = self._configured()
        reference, name, before = self._reference(configured, pinned_runs)
        tonight = [Fetch(each.ranking, tuple(each.excluded)) for each in runs]
        specs = self._config.metrics
        values = Values.of(self._labelled, tonight, specs)
        pinned = None if before is None else Values.of(self._labelled, before, specs)
        failed = max(len(each.failed) for each in tonight)
        usable = self._is_usable(failed, len(runs[0].queries))
        if pinned is None and usable:
            reference = name = f"night {night}"
        metrics = {}
        if pinned is not None and usable:
            last = self._last()
            metrics = {
                spec: decided(
                    spec, self._config.rule, self._nights, reference, pinned, values, last
                )
                for spec in specs
            }
        line = Line(
            night,
            self._date,
            _now(),
            configured,
            reference,
            tuple(
                Fetched(f"{night:05d}-{number}", each.failed)
                for number, each in enumerate(tonight, 1)
            ),
            "" if self._workspace is None else runs[0].id,
            len(runs[0].queries),
            churned(tonight, chain.from_iterable(each.queries["query_id"] for each in runs[:2])),
            values.unlabelled,
            None if pinned is None else pinned.unlabelled,
            p95([each.queries["latency_ms"] for each in runs]),
            metrics,
        )
        if self._workspace is not None:
            self._workspace.save_run(runs[0])
        self._state.add(line, [each.ranking for each in tonight], self._nights)
        return Tonight(line, name, pinned, values)

    def _is_usable(self, failed: int, queries: int) -> bool:
        """Return whether a night with this many failed queries can be compared or pinned."""
        return failed <= self._config.max_failed * queries

    def note(self, line: Line, text: str) -> None:
        """Store a note on the night's run in the workspace, if there is one."""
        if self._workspace is not None:
            RunNotes(self._workspace).store(line.run_id, text)

    def _last(self) -> Values | None:
        """Return the values of the night before; None without one, or without its rankings."""
        line = self._nights.last
        if line is None or not self._state.stores(line):
            return None
        return Values.of(self._labelled, self._stored(line), self._config.metrics)

    def _stored(self, line: Line) -> list[Fetch]:
        rankings = self._state.rankings(line)
        pairs = zip(rankings, line.fetches, strict=True)
        return [Fetch(ranking, each.failed) for ranking, each in pairs]

    # Tonight.

    def _runs(self) -> list[Run]:
        """Return a run for each fetch of tonight."""
        name = f"nightly {self._date}"
        if not self._config.endpoint:
            files = [each.replace("{date}", self._date) for each in self._config.run]
            runs = self._read(files, self._config.timings)
        else:
            runs = [self._fetched(name, number) for number in range(1, self._config.repeat + 1)]
        # The id of a run in the workspace is unique, even if two nights have the same ranking.
        made = _now()
        return [
            replace(
                each,
                id=digest(text.encode() for text in (each.id, made, str(number))),
                name=name,
                created=made,
            )
            for number, each in enumerate(runs)
        ]

    def _read(self, files: Sequence[str], timings: Sequence[str] = ()) -> list[Run]:
        paths = names_of([str(self._config.path(each)) for each in files])
        joined = read_beside(self._dataset, paths)
        warn(joined.findings)
        runs = [
            run_from_ranking(name, self._dataset.id, joined.rankings[name].ranking, str(path))
            for name, path in paths.items()
        ]
        labelled = set(self._dataset.qrels["query_id"])
        measured = [
            Timings.read(str(self._config.path(each.replace("{date}", self._date))))
            for each in timings
        ]
        timings_of = with_beside(paths, dict(zip(paths, measured, strict=False)))
        return [
            timed(each, timings_of[name], labelled) if name in timings_of else each
            for name, each in zip(paths, runs, strict=True)
        ]

    def _fetched(self, name: str, number: int) -> Run:
        file = self._config.path(self._config.endpoint)
        endpoint = Endpoint.of(text_of(file.read_bytes()), str(file))
        queries = {str(query): text for query, text in self._dataset.query_text().items()}
        journal = self._state.journal(self._date, number)
        done = 0

        def show(answers: Sequence[Answer]) -> None:
            nonlocal done
            for each in answers:
                done += 1
                if each.state == "failed":
                    query, reason = printable(each.query_id), printable(each.reason)
                    sys.stderr.write(f"failed: query {query}: {reason}\n")
                if done % _EACH == 0:
                    sys.stderr.write(f"fetch {number}: {done:,} of {len(queries):,} queries\n")

        answers = fetch(
            endpoint,
            queries,
            self._config.depth,
            self._config.policy,
            journal=journal,
            on_answers=show,
        )
        return fetched(self._dataset, endpoint, answers, self._config.depth, name)

    # The pinned run.

    def _configured(self) -> tuple[str, list[Run]]:
        """Return what identifies the pinned run in the configuration, and its fetches; "" and none
        if the first night is pinned."""
        if not self._config.pinned:
            return "", []
        if self._config.pinned == (WORKSPACE,) and self._workspace is not None:
            run_id = Pins(self._workspace).of(self._dataset.id)
            if run_id is None:
                raise DataError(
                    "No run of this data set is pinned in the workspace.",
                    remedy="Pin a run on page History, or set pinned to a run file.",
                )
            return run_id, [self._workspace.run(run_id)]
        files = [self._config.path(each) for each in self._config.pinned]
        return digest(each.read_bytes() for each in files), self._read(self._config.pinned)

    def _reference(
        self, configured: str, pinned: Sequence[Run]
    ) -> tuple[str, str, list[Fetch] | None]:
        """Return what identifies the runs to compare with, their name, and their fetches; "", ""
        and None if no run is pinned yet.

        An accepted night applies until the configuration names another pinned run.
        """
        accepted = self._nights.accepted
        in_workspace = self._config.pinned == (WORKSPACE,)
        # In a workspace, the accepted night was pinned.
        if accepted is not None and configured == (
            accepted.run_id if in_workspace else accepted.configured
        ):
            return accepted.name, f"accepted {accepted.name}", self._stored(accepted)
        if configured:
            fetches = [Fetch(each.ranking, tuple(each.excluded)) for each in pinned]
            return configured, " and ".join(each.name for each in pinned), fetches
        first = self._nights.first
        return ("", "", None) if first is None else (first.name, first.name, self._stored(first))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
