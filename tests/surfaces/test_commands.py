"""The commands say what the study says, of the same rankings read from files."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rankdash.analysis.statistics.gate import settings_at
from rankdash.cli import main
from rankdash.i18n import brief
from rankdash.ranking.ranking import Run
from rankdash.study import latency
from tests.surfaces.conftest import SPEC, Case, without_charts
from tests.surfaces.reading import Page, assert_same, assert_says


def command(*arguments: object, codes: tuple[int, ...] = (0,)) -> str:
    """What it writes on standard output."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(each) for each in arguments])
    assert code in codes, err.getvalue()
    return out.getvalue()


def answered(case: Case) -> tuple[Run, ...]:
    """The runs that a file holds whole: without timings a failed query is one that its ranking
    lacks."""
    return case.runs[:-1]


@pytest.fixture(scope="module")
def names(case: Case) -> dict[str, str]:
    """System → what commands call it."""
    study = case.study
    return {study.baseline: case.initial.stem, **{run.id: run.name for run in case.runs}}


@pytest.fixture(scope="module")
def evaluated(case: Case) -> dict:
    files = [case.initial, *(case.files[run.id] for run in answered(case))]
    said = command(
        *("evaluate", "--qrels", case.qrels, "--run", *files),
        *("--metrics", ",".join(case.study.specs), "--format", "json"),
    )
    return json.loads(said)


@pytest.fixture(scope="module")
def compared(case: Case) -> dict:
    files = [case.files[run.id] for run in answered(case)]
    said = command(
        *("compare", "--qrels", case.qrels, "--baseline", case.initial, "--challenger", *files),
        *("--metric", *case.study.specs, "--format", "json"),
    )
    return json.loads(said)


def test_evaluate_has_every_mean_and_every_query(case, names, evaluated):
    study = case.study
    for system in (study.baseline, *(run.id for run in answered(case))):
        own, found = evaluated["systems"][names[system]], study.evaluations[system]
        assert own["mean"] == {spec: found.mean(spec) for spec in study.specs}
        # The file of a ranking that rankdash writes has no ties any more.
        assert {**own["counts"], "tied": found.counts["tied"]} == dict(found.counts)
        columns = {spec: found.column(spec) for spec in study.specs}
        for place, query in enumerate(found.query_ids):
            values = own["per_query"].get(query, {})
            assert_same(
                [values.get(spec, float("nan")) for spec in study.specs],
                [columns[spec][place] for spec in study.specs],
            )


def test_compare_has_every_number_and_verdict(case, names, compared):
    study = case.study_of(answered(case))
    shown = {(row["metric"], row["system"]): row for row in compared["comparisons"]}
    assert len(shown) == len(study.comparison.frame)
    for row in study.comparison.frame.to_dict("records"):
        own = shown[row["metric"], names[row["system"]]]
        for column in set(row) - {"metric", "system", "verdict", "left_out"}:
            value = float("nan") if own[column] is None else own[column]
            assert_same([value], [row[column]])
        out = study.comparison.left_out(row["system"], row["metric"])
        assert own["left_out"] == dict(out)
        if row["system"] != study.baseline:
            verdict = study.comparison.verdict(row["system"], row["metric"], names)
            assert own["verdict"] == {"kind": verdict.kind, "sentence": verdict.sentence}


def test_gate_sees_the_same_of_a_run_with_failures(case):
    rules = settings_at(0.95)
    study = case.study_of((case.flaky,), statistics=rules)
    row = study.comparison.row(case.flaky.id, SPEC)
    taken = latency.summary(study, case.flaky.id)
    said = command(
        *("gate", "--qrels", case.qrels, "--baseline", case.initial),
        *("--challenger", case.files[case.flaky.id], "--timings", case.timings),
        *("--min", f"{SPEC}=0", "--min-gain", f"{SPEC}=-1", "--max-hurt", f"{SPEC}=1"),
        *("--max", "p50_ms=9999", "p90_ms=9999", "p95_ms=9999", "failed=9"),
        *("--format", "junit"),
    )
    mean, gain, hurt, p50, p90, p95, failed = (
        each.text or "" for each in ElementTree.fromstring(said).iterfind("*/testcase/system-out")
    )
    ends = f"{row['mean_low']:.4f}", f"{row['mean_high']:.4f}"
    assert_says(mean, [f"{row['mean']:.4f}", *ends, f"{row['n']}"])
    ends = f"{row['delta_low']:+.4f}", f"{row['delta_high']:+.4f}"
    assert_says(gain, [f"{row['delta']:+.4f}", *ends, f"{row['paired']}"])
    assert_says(hurt, [f"{row['hurt'] / row['paired']:.1%}", f"{row['paired']}"])
    for shown, value in ((p50, taken.p50), (p90, taken.p90), (p95, taken.p95)):
        assert_says(shown, [brief(value), f"{taken.n}"])
    assert_says(failed, [str(len(study.failures(case.flaky.id)))])
    out = study.comparison.left_out(case.flaky.id, SPEC)
    note = next(line for line in said.splitlines() if "Excluded" in line)
    assert_says(note, [str(n) for n in out.values()])


@pytest.fixture(scope="module")
def written(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The report that the command writes."""
    folder = tmp_path_factory.mktemp("report")
    with without_charts():
        command(
            *("report", "--data", case.folder, "--out", folder / "report.html"),
            *("--challenger", *case.files.values(), "--timings"),
            *(*(untimed(run, folder) for run in answered(case)), case.timings),
        )
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_report_is_that_of_the_study(report, written):
    """Word for word, but for when it was made and where; for its rules see below."""
    for section in set(report.texts) - {"", "origin", "rules"}:
        assert written.tables[section] == report.tables[section]
        assert written.texts[section] == report.texts[section]


def _but_ties(table: list[list[str]]) -> list[list[str]]:
    tied = table[0].index("with tied scores")
    return [[cell for at, cell in enumerate(row) if at != tied] for row in table]


def test_commands_state_the_rules_of_the_study(case, report, written, evaluated, compared):
    rules = case.study.conventions.as_dict()
    assert {name: evaluated["settings"][name] for name in rules} == rules
    rules |= case.study.statistics.as_dict()
    assert {name: compared["settings"][name] for name in rules} == rules
    *shown, counts = report.tables["rules"]
    *others, read = written.tables["rules"]
    assert others == shown
    # A ranking from a file of ours has no ties left: its scores strictly decrease.
    assert _but_ties(read) == _but_ties(counts)


def untimed(run: Run, folder: Path) -> Path:
    """Timings that say nothing, for each --challenger needs its own."""
    file = folder / f"{run.name}.csv"
    queries = run.queries["query_id"]
    file.write_text("query_id,latency_ms\n" + "".join(f"{query},\n" for query in queries))
    return file
