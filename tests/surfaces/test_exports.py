"""What is exported is what the study says: to the last digit in files for programs, rounded as
everywhere in files for people."""

import csv
import io
import json
import re
import zipfile
from datetime import UTC, datetime

import pandas as pd
import pytest

from rankdash.loading import load
from rankdash.readers import Source
from rankdash.reporting.exports import queries_csv
from rankdash.reporting.exports.tables import cells
from rankdash.reporting.exports.zip_file import bundle, run_file
from rankdash.study import costs
from rankdash.study.systems import Money
from tests.surfaces.conftest import Case
from tests.surfaces.reading import assert_same

_NUMBERS = ("mean", "mean_low", "mean_high", "delta", "delta_low", "delta_high", "p", "p_corrected")
_COUNTS = ("n", "missing", "paired", "left_out", "helped", "same", "hurt")


@pytest.fixture(scope="module")
def files(case: Case) -> dict[str, bytes]:
    """The zip with everything but pictures."""
    study = case.study_of(case.runs, money=Money())
    packed = bundle(study, datetime(2026, 1, 2, tzinfo=UTC), pictures=False)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read(content: bytes, *texts: str) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(content), dtype=dict.fromkeys(texts, str))


def test_nothing_is_left_out(files):
    assert json.loads(files["manifest.json"])["left_out"] == []


def test_the_comparison_as_csv_is_to_the_last_digit(case, files):
    shown, frame = read(files["comparison.csv"]), case.study.comparison.frame
    assert list(shown["verdict"]) == list(frame["verdict"])
    assert list(shown["name"]) == [case.study.name(each) for each in frame["system"]]
    for column in (*_NUMBERS, *_COUNTS, "effect_size", "smallest_detectable", "more_queries"):
        assert_same(shown[column], frame[column])


def queries_as(form: str, files: dict[str, bytes]) -> pd.DataFrame:
    content = files[f"queries.{form}"]
    if form == "csv":
        return read(content, "query_id", "system_id")
    if form == "parquet":
        return pd.read_parquet(io.BytesIO(content))
    return pd.DataFrame(json.loads(content)["rows"])


@pytest.mark.parametrize("form", ["csv", "parquet", "json"])
def test_every_query_is_to_the_last_digit(case, files, form):
    study, shown = case.study, queries_as(form, files)
    for system in study.chosen:
        own = shown[shown["system_id"] == system].set_index("query_id")
        found = study.evaluations[system]
        run = study.run(system)
        for spec in study.specs:
            values = pd.Series(found.column(spec), index=found.query_ids)
            assert_same(own[spec].astype(float), values.reindex(own.index))
            assert own[spec].astype(float).mean() == pytest.approx(found.mean(spec), rel=1e-12)
            if system == study.baseline:
                continue
            pairs = study.pairs(system, spec).set_index("query_id").reindex(own.index)
            assert_same(own[f"{spec}.delta"].astype(float), pairs["delta"])
            row = study.comparison.row(system, spec)
            if f"{spec}.outcome" in own:
                counts = own[f"{spec}.outcome"].value_counts()
                for outcome in ("helped", "same", "hurt"):
                    assert counts.get(outcome, 0) == row[outcome]
                for reason, n in study.comparison.left_out(system, spec).items():
                    assert counts[reason] == n
        if system != study.baseline:
            assert list(own["reason"]) == list(study.reasons(system)["reason"].reindex(own.index))
        if run is not None:
            timed = run.queries.set_index("query_id")["latency_ms"].reindex(own.index)
            assert_same(own["latency_ms"].astype(float), timed)


def test_the_columns_are_those_that_are_promised(case, files):
    promised = list(json.loads(files["manifest.json"])["query_columns"])
    assert sorted(promised) == sorted(queries_csv.frame(case.study).columns)


def test_the_table_for_a_text_has_every_row(case, files):
    study = case.study
    rows = [
        [cell.strip().replace("\\", "") for cell in line.strip("|\n ").split(" | ")]
        for line in files["summary.md"].decode().splitlines()
        if line.startswith("| ")
    ]
    for _at, row in study.comparison.frame.iterrows():
        assert [study.name(row["system"]), *cells(row, study.comparison)] in rows


def test_the_table_for_a_paper_has_every_mean(case, files):
    lines = files["summary.tex"].decode().replace("\\", "").splitlines()
    for system in case.study.names.values():
        (line,) = (each for each in lines if each.startswith(f"{system} &"))
        means = [float(each) for each in re.findall(r"(\d\.\d{4})", line)]
        own = case.study.comparison.frame
        own = own[own["system"].map(case.study.names) == system]
        assert_same(means, [float(f"{mean:.4f}") for mean in own["mean"]])


def test_the_calculation_has_every_figure(case, files):
    rows = list(csv.reader(io.StringIO(files["cost.csv"].decode("utf-8-sig"))))
    for choice in costs.choices(case.study):
        own = [row for row in rows if row and row[0] == choice.name and len(row) == 6]
        came = choice.came
        months = (came.cost_per_month, came.value_per_month, came.net_per_month)
        wanted = [came.cost_per_thousand, *months]
        for row, found in zip(own, wanted, strict=False):
            ends = (found.value, found.low, found.high)
            assert row[2:5] == ["" if each is None else f"{each:.10g}" for each in ends]


def test_the_manifest_counts_the_failed_and_the_skipped(case, files):
    systems = {each["id"]: each for each in json.loads(files["manifest.json"])["systems"]}
    assert systems[case.flaky.id]["queries"] == {
        "done": len(case.loaded.dataset.queries) - 2, "failed": 1, "skipped": 1
    }  # fmt: skip


def test_rankings_and_labels_read_again_give_the_same_numbers(case, files):
    """Also where scores are tied: the file has the order that the numbers were made with."""
    study = case.study
    for system in study.chosen:
        sources = [
            Source(name, files[of])
            for name, of in (
                ("qrels.txt", "trec/qrels.txt"),
                ("again.run", run_file(study, system)),
            )
        ]
        again = load(sources).dataset
        made = case.study_of(())
        read_again = type(made).on(
            study.spec,
            dataset=again,
            systems=made.systems,
            baseline=made.baseline,
            challengers=(),
        )
        found, values = study.evaluations[system], read_again.evaluations[made.baseline]
        left = study.excluded(system)
        for spec in study.specs:
            one = pd.Series(found.column(spec), index=found.query_ids).drop(list(left))
            other = pd.Series(values.column(spec), index=values.query_ids)
            assert_same(other.reindex(one.index), one)
