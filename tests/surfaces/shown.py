"""Numbers that each surface shows of a comparison under some rules: (system, metric, what) → a
number, or a text if it is rounded. what: a column of the comparison, or a query."""

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import rankdash as rd
from rankdash.app.command import main
from rankdash.core.base.i18n import number, signed
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.ranking import Run
from rankdash.core.metrics import Conventions
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.words.columns import columns, records
from rankdash.core.words.verdicts import change_interval, chip, interval, p_value
from rankdash.features.report.report import Front, html
from rankdash.features.report.report_zip import bundle
from tests.surfaces.case import SPEC, Case
from tests.surfaces.reading import Page

Numbers = dict[tuple[str, str, str], Any]


@dataclass(frozen=True)
class Rules:
    """Settings of evaluation. conventional, statistical: the same settings as command options."""

    name: str
    conventions: Conventions = field(default_factory=Conventions)
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    conventional: str = ""
    statistical: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def changed(self) -> dict[str, object]:
        """Return rule → value of the rules without their default value."""
        return {
            each.name: getattr(own, each.name)
            for own in (self.conventions, self.statistics)
            for each in fields(own)
            if getattr(own, each.name) != getattr(type(own)(), each.name)
        }


RULES = (
    Rules("defaults"),
    Rules(
        "trec_eval 9",
        Conventions.trec_eval(9),
        StatisticsSettings(interval="t", test="t", seed=5),
        "--conventions trec_eval9",
        "--interval t --test t --seed 5",
    ),
    Rules(
        "every rule that a command has",
        Conventions(
            ties="stable", threshold=2.0, judged_only=True, missing="skip", no_relevant="count",
            err_top_label=6.0,
        ),
        StatisticsSettings(
            level=0.8, interval="percentile", test="t", correction="bh", family="all",
            resamples=500, seed=3, tie_band=0.1, worthwhile=0.5,
        ),
        "--ties stable --threshold 2 --judged-only --missing skip --no-relevant count "
        "--highest-label 6",
        "--level 0.8 --interval percentile --test t --correction bh --family all --resamples 500 "
        "--seed 3 --tie-band 0.1 --worthwhile 0.5",
    ),
)  # fmt: skip


@cache
def study_of(case: Case, rules: Rules, runs: tuple[Run, ...]) -> Study:
    return case.study_of(
        runs, conventions=rules.conventions, statistics=rules.statistics, money=Money()
    )


def wanted(study: Study) -> Numbers:
    """Return the existing numbers of the study."""
    found: Numbers = {}
    for row in records(study.comparison):
        own = row.pop("system"), row.pop("metric")
        for column, value in row.items():
            found[study.name(own[0]), own[1], column] = value
    for system, evaluation in study.evaluations.items():
        for spec in study.specs:
            values = zip(evaluation.query_ids, evaluation.column(spec), strict=True)
            found |= {(study.name(system), spec, str(query)): value for query, value in values}
    return existing(found)


def existing(numbers: Numbers) -> Numbers:
    return {key: value for key, value in numbers.items() if value is not None and value == value}


def as_shown(what: str, row: Mapping[str, Any]) -> str:
    """Return a column of a row of the comparison as texts show it."""
    match what:
        case "interval":
            return interval(row["mean_low"], row["mean_high"])
        case "change_interval":
            return change_interval(row["delta_low"], row["delta_high"])
        case "verdict":
            return chip(row["verdict"])
        case "delta":
            return signed(row["delta"])
        case "mean":
            return number(row["mean"])
        case "p_corrected":
            return p_value(row["p_corrected"])
    return number(row[what], 0)


def command(*arguments: object, options: str = "", codes: tuple[int, ...] = (0,)) -> str:
    """Run a command and return its standard output."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*map(str, arguments), *options.split()])
    assert code in codes, err.getvalue()
    return out.getvalue()


def _called(case: Case) -> dict[str, str]:
    """Return name of a system in commands → its name in the study."""
    return {case.initial.stem: case.study.name(case.study.baseline)}


def _plain(name: str) -> str:
    """Return a name without the sign that prevents a spreadsheet from running it."""
    return name.removeprefix("'")


def evaluate(case: Case, rules: Rules, rewrite: Callable[[Path], Path] = Path) -> Numbers:
    files = [case.initial, *(case.files[run.id] for run in case.answered)]
    said = command(
        *("evaluate", "--qrels", rewrite(case.qrels), "--run", *map(rewrite, files), "--json"),
        options=f"--metrics {','.join(case.study.specs)} {rules.conventional}",
    )
    found: Numbers = {}
    for name, own in json.loads(said)["systems"].items():
        system = _called(case).get(name, name)
        found |= {(system, spec, "mean"): mean for spec, mean in own["mean"].items()}
        for query, values in own["per_query"].items():
            found |= {(system, spec, query): value for spec, value in values.items()}
    return found


def compare(case: Case, rules: Rules, form: str) -> str:
    """Return the output of `compare`."""
    files = [case.files[run.id] for run in case.answered]
    return command(
        *("compare", "--qrels", case.qrels, "--baseline", case.initial, "--challenger", *files),
        *("--metric", *case.study.specs, "--format", form),
        options=f"{rules.conventional} {rules.statistical}",
    )


def compare_json(case: Case, rules: Rules) -> Numbers:
    found: Numbers = {}
    for row in json.loads(compare(case, rules, "json"))["comparisons"]:
        row["left_out"] = sum(row["left_out"].values())
        row["verdict"] = row.get("verdict", {"kind": "baseline"})["kind"]
        system, metric = row.pop("system"), row.pop("metric")
        found |= {(_called(case).get(system, system), metric, each): row[each] for each in row}
    return found


def compare_csv(case: Case, rules: Rules) -> Numbers:
    frame = pd.read_csv(io.StringIO(compare(case, rules, "csv")))
    names = frame.pop("system").map(_plain).replace(_called(case))
    return _rows(frame.drop(columns=["confidence", "ties"]), names)


def _rows(frame: pd.DataFrame, names: Iterable[str]) -> Numbers:
    metrics = frame.pop("metric")
    return {
        (name, metric, column): value
        for name, metric, row in zip(names, metrics, frame.to_dict("records"), strict=True)
        for column, value in row.items()
    }


def files_of(study: Study) -> dict[str, bytes]:
    """Return the files of the zip except the pictures."""
    packed = bundle(study, datetime(2026, 1, 2, tzinfo=UTC), pictures=False)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def exports(case: Case, rules: Rules) -> Numbers:
    """Return the comparison as CSV, and every query in three forms, which must be equal."""
    study = study_of(case, rules, case.runs)
    files = files_of(study)
    frame = pd.read_csv(io.BytesIO(files["comparison.csv"]))
    found = _rows(frame.drop(columns=["system", "name"]), frame["name"].map(_plain))
    ids = {"query_id": str, "system_id": str}
    forms = [
        pd.read_csv(io.BytesIO(files["queries.csv"]), dtype=ids),
        pd.read_parquet(io.BytesIO(files["queries.parquet"])),
        pd.DataFrame(json.loads(files["queries.json"])["rows"]),
    ]
    for queries in forms:
        own = {
            (study.name(row["system_id"]), spec, row["query_id"]): row[spec]
            for row in queries.to_dict("records")
            for spec in study.specs
        }
        known = {key: found[key] for key in own if key in found}
        assert differences(known, existing(own) if known else {}) == {}
        found |= existing(own)
    return found


OF_THE_BASELINE = ("mean", "interval", "verdict")
_SYSTEMS = (
    *("mean", "interval", "delta", "change_interval", "p_corrected", "paired", "left_out"),
    "verdict",
)


def report(case: Case, rules: Rules) -> Numbers:
    study = study_of(case, rules, case.runs)
    page = Page(html(study, Front(sections=("systems",))).decode())
    (rows,) = page.tables["systems"]
    specs = {title: spec for spec, title in study.titles.items()}
    first = study.name(study.baseline)
    found: Numbers = {}
    declared = [each.name for each in columns("report", study.statistics.level, corrected=True)]
    for title, name, *cells in rows[1:]:
        own = dict(zip(declared, cells, strict=True))
        kept = OF_THE_BASELINE if name == first else _SYSTEMS
        found |= {(name, specs[title], column): own[column] for column in kept}
    return found


def timings(case: Case) -> list[Path]:
    """Write a file for each --challenger; only the last one contains latencies."""
    found = []
    for run in case.answered:
        found.append(case.timings.parent / f"{run.id}.csv")
        queries = "".join(f"{query},\n" for query in run.queries["query_id"])
        found[-1].write_text(f"query_id,latency_ms\n{queries}")
    return [*found, case.timings]


def python(case: Case, rules: Rules) -> Numbers:
    """Return the numbers of `import rankdash as rd`, from the same files."""
    data = rd.read(case.folder)
    runs = [rd.read_run(case.files[run.id], data) for run in case.answered]
    study = rd.study_of(
        data, runs, metric=SPEC, conventions=rules.conventions, settings=rules.statistics
    )
    names = {case.study.name(case.study.baseline): None, **{run.name: run for run in runs}}
    evaluations = {
        name: rd.evaluate(data, *([run] if run else []), metrics=study.specs,
                          conventions=rules.conventions)
        for name, run in names.items()
    }  # fmt: skip
    compared = rd.compare(evaluations, settings=rules.statistics).frame
    own = study.comparison.frame
    # The smallest detectable change needs the order of the documents, not only the values.
    assert (
        differences(
            _frame(compared.drop(columns="smallest_detectable"), str),
            _frame(own.drop(columns="smallest_detectable"), study.name),
        )
        == {}
    )
    return wanted(study)


def _frame(frame: pd.DataFrame, name: Callable[[str], str]) -> Numbers:
    return existing(_rows(frame.drop(columns="system"), frame["system"].map(name)))


def differences(shown: Numbers, expected: Numbers) -> Numbers:
    """Return key → (shown, expected) of unequal values. The last digit of a mean may depend on the
    order of the queries."""

    def same(key: tuple[str, str, str]) -> bool:
        one, other = shown.get(key), expected.get(key)
        if key[2] == "mean" and isinstance(one, float) and isinstance(other, float):
            return math.isclose(one, other, rel_tol=1e-14)
        return bool(one == other)

    both = shown.keys() | expected.keys()
    return {key: (shown.get(key), expected.get(key)) for key in both if not same(key)}


SURFACES: dict[str, Callable[[Case, Rules], Numbers]] = {
    "evaluate": evaluate,
    "compare, JSON": compare_json,
    "compare, CSV": compare_csv,
    "rd": python,
    "the exports": exports,
    "the report": report,
}
FLAKY = ("the exports", "the report", "overview")
"""The surfaces that show the queries a run failed on; a command without timings does not."""


def expected(case: Case, rules: Rules, surface: str, shown: Numbers) -> Numbers:
    """Return the expected numbers of a surface: its columns, for all systems and metrics."""
    study = study_of(case, rules, case.runs if surface in FLAKY else case.answered)
    said = {what for _system, _metric, what in shown}
    numbers = wanted(study)
    if not any(isinstance(value, str) and what != "verdict" for (*_, what), value in shown.items()):
        return {key: value for key, value in numbers.items() if key[2] in said}
    return {
        (study.name(row["system"]), row["metric"], what): as_shown(what, row)
        for row in study.comparison.frame.to_dict("records")
        for what in said
        if row["system"] != study.baseline or what in OF_THE_BASELINE
    }
