"""The columns of a comparison: their titles and cells on each surface."""

import math
from typing import get_args

import pytest

from rankdash.core.statistics.comparison import compare
from rankdash.core.words.columns import Surface, columns, records
from tests.documented import DOCS, rows, section
from tests.reporting.exports.test_tables import evaluated

CHANGE = {
    "mean": 0.62345, "mean_low": 0.5, "mean_high": 0.75, "delta": -0.00004, "delta_low": -0.1,
    "delta_high": 0.1, "relative_delta": -0.00049, "p": 0.00004, "p_corrected": 0.04,
    "effect_size": 0.456, "helped": 5, "same": 12_000, "hurt": 2, "n": 12_008, "paired": 12_007,
    "left_out": 1, "smallest_detectable": 0.01234, "more_queries": math.nan, "verdict": "unproven",
}  # fmt: skip
BASELINE = {**CHANGE, "verdict": "baseline"}
COMPUTED: dict[str, float] = {}


def test_a_column_has_surfaces_a_title_and_cells(texts):
    found: dict[tuple[str, ...], list[str]] = {}
    for surface in get_args(Surface):
        for each in columns(surface, 0.95, corrected=True):
            said = (each.name, each.title, each.small, each.text(CHANGE), each.small_text(CHANGE),
                    each.text(BASELINE), each.help)  # fmt: skip
            found.setdefault(said, []).append(surface)
    cases: dict[str, list[tuple[str, ...]]] = {}
    for said, surfaces in found.items():
        cases.setdefault(", ".join(surfaces), []).append(said)
    texts("columns", cases)


def test_a_p_that_is_not_corrected_is_there_once():
    shown = columns("file", 0.95, corrected=False)
    assert [each.short for each in shown if each.kind == "p"] == ["p"]


def test_the_columns_computed_from_the_others():
    found = {each.name: each.value(CHANGE) for each in columns("data", 0.95, corrected=True)}
    assert found == pytest.approx(COMPUTED)


def test_the_docs_name_every_column_of_csv_and_json():
    made = compare({"base": evaluated(3), "new": evaluated(1)}, "base")
    named = [
        row[0]
        for row in rows(section(DOCS / "statistics" / "comparing.md", "## Columns of a comparison"))
    ]
    assert [each.strip("`") for cell in named for each in cell.split(", ")] == list(
        records(made)[0]
    )


def test_a_level_is_not_rounded():
    assert columns("report", 0.999, corrected=True)[1].title == "99.9% interval of the mean"
