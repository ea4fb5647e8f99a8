"""A comparison as LaTeX and Markdown: every number there, nothing in a name taken for markup."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from rankdash.analysis.statistics.comparison import Comparison, StatisticsSettings, compare
from rankdash.metrics import Conventions, Evaluation, evaluate, judge
from rankdash.ranking.ranking import Ranking
from rankdash.reporting.exports.tables import (
    cells,
    compact_latex,
    compact_markdown,
    head,
    interval,
    latex,
    made_with,
    markdown,
    p_value,
    plain_markdown,
    signed,
    significant,
)

HOSTILE = "a|b & 50% _x_ #1 {\\input} ~^ <b>*!*\n[x](y) `c` $d$"
HOSTILES = {"base": "base", "id-1": HOSTILE, "id-2": "other"}
QUERIES = [f"q{i}" for i in range(40)]
QRELS = pd.DataFrame({"query_id": QUERIES, "doc_id": "good", "label": 1.0})


def evaluated(place: int, failed: int = 0) -> Evaluation:
    rules = Conventions()
    documents = [*(f"bad{i}" for i in range(place - 1)), "good"]
    ranking = Ranking.from_lists(
        (query, documents, [float(-i) for i in range(place)]) for query in QUERIES
    )
    left_out = dict.fromkeys(QUERIES[:failed], "failed")
    return evaluate(judge(ranking, QRELS, rules), ("mrr@10", "hit@1"), rules, left_out)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    made = {"base": evaluated(3), "id-1": evaluated(1, failed=2), "id-2": evaluated(3)}
    return compare(made, "base", StatisticsSettings(resamples=500))


def test_numbers_are_rounded_and_what_rounds_to_nothing_has_no_sign():
    assert [signed(each) for each in (0.000_05, 0.000_049, -0.000_05, -0.000_049)] == [
        *("+0.0001", "0.0000", "-0.0001", "0.0000")
    ]
    assert [p_value(each) for each in (0.000_05, 0.000_049, 0.0)] == [
        "0.0001",
        "<0.0001",
        "<0.0001",
    ]
    nan = float("nan")
    assert (signed(nan), p_value(nan), interval(nan, nan)) == ("–", "–", "–")
    assert interval(-0.1, 0.00001) == "-0.1000 to 0.0000"


@pytest.mark.parametrize(
    ("share", "shown"), [(0.00051, "+0.1%"), (0.00049, "0.0%"), (-0.00051, "-0.1%")]
)
def test_a_relative_change_that_rounds_to_nothing_has_no_sign(comparison, share, shown):
    row = comparison.row("id-1", "mrr@10").copy()
    row["relative_delta"] = share
    assert cells(row, comparison)[3] == shown


def test_every_row_has_a_cell_for_each_title_and_counts_the_paired_queries(comparison):
    for each in (comparison, alone(comparison)):
        for system in (each.baseline, *each.challengers):
            assert len(cells(each.row(system, "mrr@10"), each)) == len(head(each)) - 1
    row = comparison.row("id-1", "mrr@10").copy()
    row["n"], row["paired"] = 40, 38
    assert dict(zip(head(comparison)[1:], cells(row, comparison), strict=True))["queries"] == "38"


@pytest.mark.parametrize(("level", "p"), [(0.95, 0.05), (0.9, 0.1), (0.99, 0.01)])
def test_a_p_of_exactly_what_the_level_leaves_is_significant(level, p):
    settings = StatisticsSettings(level=level)
    assert significant(pd.Series({"p_corrected": p}), settings)
    assert not significant(pd.Series({"p_corrected": p + 1e-9}), settings)


def test_the_compact_table_marks_the_best_and_what_is_proven_better_or_worse():
    made = {"base": evaluated(2), "up": evaluated(1), "down": evaluated(3), "same": evaluated(2)}
    found = compare(made, "base", StatisticsSettings(resamples=500))
    rows = [line for line in compact_markdown(found) if line.startswith("|")]
    assert rows[2:] == [
        "| base | 0.5000 | 0.0000 |\n",
        "| up | **1.0000**† | **1.0000**† |\n",
        "| down | 0.3333‡ | 0.0000 |\n",
        "| same | 0.5000 | 0.0000 |\n",
    ]


def test_the_first_columns_of_a_plain_table_start_at_the_left():
    lines = list(plain_markdown([["a", "b", "c"], ["x|y", "1", "2"]], left=2))
    assert lines == ["| a | b | c |\n", "| --- | --- | ---: |\n", "| x\\|y | 1 | 2 |\n"]


def test_latex_has_a_row_for_each_system_and_metric_in_booktabs_rules(comparison):
    text = "".join(latex(comparison))
    for rule in ("\\toprule", "\\midrule", "\\bottomrule", "\\begin{tabular}", "\\end{tabular}"):
        assert rule in text
    rows = [line for line in text.splitlines() if line.count(" & ") == len(head(comparison)) - 1]
    assert len(rows) == 1 + 2 * 3
    assert all(row.endswith(" \\\\") for row in rows)
    assert rows[2].split(" & ")[:3] == ["id-1", "1.0000", "+0.6667"]
    assert rows[2].count("$^{*}$") == 1
    assert "better" in rows[2]


def test_latex_names_hold_no_command(comparison):
    row = next(line for line in latex(comparison, HOSTILES) if line.startswith("a\\textbar"))
    name = row.split(" & 1.0000")[0]
    assert name == (
        "a\\textbar{}b \\& 50\\% \\_x\\_ \\#1 \\{\\textbackslash{}input\\} \\textasciitilde{}"
        "\\textasciicircum{} $<$b$>$$^{*}$!$^{*}$ [x](y) `c` \\$d\\$"
    )


@pytest.mark.parametrize("write", [latex, compact_latex])
def test_latex_compiles(comparison, tmp_path: Path, write):
    engine = shutil.which("pdflatex")
    if engine is None:
        pytest.skip("pdflatex is not installed")
    body = "".join(write(comparison, HOSTILES))
    (tmp_path / "t.tex").write_text(
        f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\n{body}"
        "\\end{document}\n"
    )
    done = subprocess.run(
        [engine, "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]


def test_markdown_has_a_table_and_the_verdicts_for_each_metric(comparison):
    lines = "".join(markdown(comparison)).splitlines()
    assert sum(line.startswith("### ") for line in lines) == 2
    tables = [line for line in lines if line.startswith("|")]
    assert {line.count(" | ") for line in tables} == {len(head(comparison)) - 1}
    assert len(tables) == 2 * (2 + 3)
    assert sum(line.startswith("- ") for line in lines) == 4
    assert "0.0040\\*" in "".join(tables)


def test_markdown_names_stay_in_their_cell_and_are_no_markup(comparison):
    text = "".join(markdown(comparison, HOSTILES))
    row = next(line for line in text.splitlines() if line.startswith("| a"))
    cells = re.split(r"(?<!\\)\|", row)
    assert len(cells) == len(head(comparison)) + 2
    for markup in ("<b>", "[x]", "`c`", "*!*", "$d$", "_x_"):
        assert markup not in text


def alone(comparison: Comparison, **settings: str) -> Comparison:
    """The first challenger without the other."""
    made = {"base": evaluated(3), "id-1": evaluated(1)}
    return compare(made, "base", StatisticsSettings(resamples=500, **settings))


def test_one_comparison_has_one_p(comparison):
    """Nothing is corrected there, nor where it is not asked for."""
    plain = replace(comparison.settings, correction="none")
    uncorrected = compare(
        {"base": evaluated(3), "a": evaluated(1), "b": evaluated(2)}, "base", plain
    )
    for each in (alone(comparison), uncorrected):
        assert [title for title in head(each) if "p" in title.split()] == ["p"]
        row = next(line for line in markdown(each) if line.startswith(("| id-1", "| a")))
        assert [cell.strip() for cell in row.split("|")][6:8] == ["0.0020\\*", "40"]
        said = made_with(each)
        assert "sign-flip randomisation test, 500 resamples, seed 20261121; not corrected" in said
        assert "p_corrected" not in str(each)
    assert head(comparison)[5:7] == ["p", "p corrected"]
    assert "p_corrected" in str(comparison)
    # Two metrics of one challenger are two comparisons where all are corrected together.
    assert head(alone(comparison, family="all"))[5:7] == ["p", "p corrected"]


def test_what_was_left_out_is_counted(comparison):
    row = next(line for line in markdown(comparison) if line.startswith("| id-1"))
    assert [cell.strip() for cell in row.split("|")][11:13] == ["38", "2"]


def test_no_number_that_does_not_exist_is_shown_as_one(comparison):
    for text in ("".join(latex(comparison)), "".join(markdown(comparison))):
        assert "nan" not in text.lower().split()
        assert "inf" not in text.lower().split()


def test_how_it_was_made_names_the_seed_the_test_the_level_and_the_tie_rule():
    settings = StatisticsSettings(
        resamples=500, seed=7, test="wilcoxon", level=0.99, correction="bh"
    )
    made = {"base": evaluated(3), "a": evaluated(1), "b": evaluated(2)}
    found = compare(made, "base", settings)
    assert made_with(found) == (
        "Intervals: 99%, Student's t over queries, wider if skewed. p: two-sided Wilcoxon "
        "signed-rank test; Benjamini–Hochberg correction over the challengers of each metric; * "
        "significant at 1%. Same: changes up to 0.005. Minimum practically relevant gain: not "
        f"set. {found.conventions.summary}."
    )
    chosen = compare(made, "base", replace(settings, worthwhile=0.15))
    assert " Minimum practically relevant gain: 15% (set by the user). " in made_with(chosen)
    assert "Ties: by the ranking's own rule" in found.conventions.summary


@pytest.mark.parametrize(
    ("n", "said"), [(1, "Means over 1 query;"), (40, "Means over 40 queries;")]
)
def test_the_note_counts_one_query_as_one(n, said):
    rules = Conventions()
    qrels = QRELS[:n]
    ranking = Ranking.from_lists([(query, ["good"], [1.0]) for query in QUERIES])
    found = evaluate(judge(ranking, qrels, rules), ("mrr@10",), rules)
    assert said in "".join(compact_markdown(compare({"base": found, "new": found}, "base")))
