"""`report`: a comparison from files as one HTML file."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

from rankdash.cli.assumptions import read_money
from rankdash.cli.rankings import Files, Rules, study_of
from rankdash.cli.target import spare_the_input, target_of
from rankdash.cli.timings import Timings
from rankdash.cli.writing import printable
from rankdash.errors import SpecError
from rankdash.i18n import speaking
from rankdash.metrics import parse_measure
from rankdash.reporting.report import ALL, SECTIONS, Front, html
from rankdash.study.study import Study
from rankdash.value.assumptions import ASSUMPTIONS


@dataclass(frozen=True)
class Asked:
    """What a report is asked for; paths as they were typed.

    data: of a data set, or else qrels: of its labels. timings: of the challengers, in their order.
    sections: ids; empty for all.
    """

    data: tuple[str, ...]
    qrels: str | None
    baseline: str | None
    challengers: tuple[str, ...]
    timings: tuple[str, ...] = ()
    first_stage: str | None = None
    metric: str = "ndcg@10"
    title: str = ""
    note: str = ""
    logo: str | None = None
    sections: tuple[str, ...] = ()
    language: str = "en"
    assumptions: str | None = None

    @property
    def files(self) -> list[str]:
        """Everything that is read."""
        given = (self.qrels, self.baseline, self.logo, self.assumptions)
        named = [file for file in given if file is not None]
        return [*self.data, *self.challengers, *self.timings, *named]


def write_report(asked: Asked, out: str, rules: Rules) -> None:
    """Read, compare and write. What the readers find odd goes to standard error.

    Raises DataError where a file cannot be used or would be replaced, and SpecError for a metric,
    a section or a language that does not exist.
    """
    target = target_of(out)
    spare_the_input(target, asked.files)
    front = Front(
        title=asked.title,
        note=asked.note,
        logo=None if asked.logo is None else Path(asked.logo).read_bytes(),
        sections=asked.sections or ALL,
        language=asked.language,
    )
    parse_measure(asked.metric)
    with speaking(front.language):
        study = _study(asked, rules)
    if asked.assumptions is not None:
        names = {system: study.name(system) for system in study.challengers}
        study = replace(study, money=read_money(Path(asked.assumptions), names))
    content = html(study, front)
    target.write_bytes(content)
    sys.stderr.write(
        f"Written: {printable(str(target))} ({len(content) / 1e6:.1f} MB, it opens in a browser "
        "without a network)\n"
    )


def describe() -> str:
    """The sections and the assumptions by their names, for the help text."""
    sections = [f"  {section.id}: {section.title}" for section in SECTIONS]
    assumptions = [
        f"  {each.name} = {each.default:g}: {each.title}"
        + ("" if each.unit.casefold() == each.title.casefold() else f" ({each.unit})")
        for each in ASSUMPTIONS
    ]
    return "\n".join(
        [
            "sections (--sections ID …):", *sections,
            "", "what --assumptions may say, and what is taken without it:", *assumptions,
        ]
    )  # fmt: skip


def _study(asked: Asked, rules: Rules) -> Study:
    if asked.qrels is not None and (asked.baseline is None or not asked.challengers):
        raise SpecError("With --qrels, --baseline and --challenger are needed too.")
    if asked.timings and len(asked.timings) != len(asked.challengers):
        raise SpecError(
            "There are {timings} --timings for {challengers} --challenger.",
            remedy="Give one for each, in the same order.",
            timings=len(asked.timings),
            challengers=len(asked.challengers),
        )
    files = Files(
        data=asked.data,
        qrels=asked.qrels,
        baseline=asked.baseline,
        challengers=asked.challengers,
        timings=[Timings.read(file) for file in asked.timings],
        first_stage=asked.first_stage,
    )
    return study_of(files, rules, asked.metric, None, check=True)
