"""`gate`: conditions checked on files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rankdash.analysis.statistics.comparison import Comparison
from rankdash.analysis.statistics.gate import Condition, Outcome, decide, measures_of
from rankdash.cli.rankings import Files, Rules, names_of, study_of
from rankdash.cli.target import spare_the_input, target_of
from rankdash.cli.timings import Timings
from rankdash.study.study import Study


@dataclass(frozen=True, eq=False)
class Checked:
    """What became of every condition. untimed: queries that are done and have no latency."""

    outcomes: tuple[Outcome, ...]
    study: Study
    untimed: int

    @property
    def passed(self) -> bool:
        return all(outcome.passed for outcome in self.outcomes)

    @property
    def comparison(self) -> Comparison:
        return self.study.comparison

    @property
    def challenger(self) -> str:
        """Its id."""
        return self.study.challengers[0]

    @property
    def sides(self) -> str:
        """Both in words."""
        baseline, challenger = self.study.names.values()
        return f"{challenger} against {baseline}"


def check_files(
    qrels: str,
    baseline: str,
    challenger: str,
    conditions: Sequence[Condition],
    rules: Rules,
    *,
    timings: str | None,
    column: str,
    out: Sequence[str] = (),
) -> Checked:
    """Read, score, compare and decide. What the readers find odd goes to standard error.

    out: the files that will be written.

    Raises DataError where a file cannot be used, or one to write is among those to read, and
    SpecError where a condition needs timings and there are none.
    """
    read = [qrels, baseline, challenger, *([] if timings is None else [timings])]
    for file in out:
        spare_the_input(target_of(file), read)
    timed = None if timings is None else Timings.read(timings, column)
    first, *others = measures_of(conditions)
    files = Files(
        qrels=qrels,
        baseline=baseline,
        challengers=[challenger],
        # A bare list of latencies says nothing of queries.
        timings=[timed if timed is not None and timed.named else None],
    )
    study = study_of(files, rules, first, others)
    # A file may hold more rankings than its own.
    _, name = names_of([baseline, challenger])
    own = next(system for system, called in study.names.items() if called == name)
    study = replace(study, challengers=(own,))
    table = None if timed is None else timed.table
    outcomes = decide(conditions, study.comparison, own, table)
    untimed = 0
    if table is not None:
        untimed = int(((table["state"] == "done") & table["latency_ms"].isna()).sum())
    return Checked(outcomes, study, untimed)
