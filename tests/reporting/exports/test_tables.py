"""A comparison as LaTeX and Markdown: with every number, and no name is read as markup."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, Evaluation, evaluate, judge
from rankdash.core.statistics.comparison import Comparison, StatisticsSettings, compare
from rankdash.kit.html import tables
from tests.approved import table

HOSTILE = "a|b & 50% _x_ #1 {\\input} ~^ <b>*!*\n[x](y) `c` $d$"
HOSTILES = {"base": "base", "id-1": HOSTILE, "id-2": "other"}
QUERIES = [f"q{i}" for i in range(40)]
QRELS = pd.DataFrame({"query_id": QUERIES, "doc_id": "good", "label": 1.0})
FEW = StatisticsSettings(resamples=500)


def evaluated(place: int, failed: int = 0, n: int = 40) -> Evaluation:
    """Return values of n labelled queries with the relevant document at a place."""
    rules = Conventions()
    documents = [*(f"bad{i}" for i in range(place - 1)), "good"]
    ranking = Ranking.from_lists(
        (query, documents, [float(-i) for i in range(place)]) for query in QUERIES
    )
    left_out = dict.fromkeys(QUERIES[:failed], "failed")
    return evaluate(judge(ranking, QRELS[:n], rules), ("mrr@10", "hit@1"), rules, left_out)


def compared(settings: StatisticsSettings = FEW, **places: int) -> Comparison:
    made = {name: evaluated(place) for name, place in places.items()}
    return compare({"base": evaluated(3)} | made, "base", settings)


def names(comparison: Comparison) -> dict[str, str]:
    """Return system → its id as the name."""
    return {each: each for each in (comparison.baseline, *comparison.challengers)}


def written(comparison: Comparison) -> Iterator[str]:
    return tables.markdown(comparison, names(comparison))


def titles(comparison: Comparison) -> list[str]:
    return tables.table_of(comparison, comparison.measures[0], names(comparison))[0]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    made = {"base": evaluated(3), "id-1": evaluated(1, failed=2), "id-2": evaluated(3)}
    return compare(made, "base", FEW)


def test_a_comparison_is_written_as_tables(comparison, approved):
    other = StatisticsSettings(
        resamples=500, seed=7, test="wilcoxon", level=0.99, correction="bh", worthwhile=0.15
    )
    rows = [["a", "b", "c"], ["x|y", "1", "2"]]
    best = compare(
        {name: evaluated(at) for name, at in {"base": 2, "up": 1, "down": 3, "same": 2}.items()},
        "base", FEW,
    )  # fmt: skip
    cases = {
        "Markdown": tables.markdown(comparison, names(comparison)),
        "Markdown, hostile names": tables.markdown(comparison, HOSTILES),
        "one comparison has one p": written(compared(new=1)),
        "two metrics are two comparisons if corrected together": [
            str(titles(compared(replace(FEW, family="all"), new=1)))],
        "not corrected": written(compared(replace(FEW, correction="none"), a=1, b=2)),
        "other settings": [tables.made_with(compared(other, a=1, b=2))],
        "the best, and what is proven better or worse": tables.compact_markdown(best, names(best)),
        "one query": tables.compact_markdown(
            compare({"base": evaluated(1, n=1), "new": evaluated(1, n=1)}, "base"),
            {"base": "base", "new": "new"}),
        "LaTeX, hostile names": tables.latex(comparison, HOSTILES),
        "LaTeX, compact, hostile names": tables.compact_latex(comparison, HOSTILES),
        "plain, the first two columns at the left": tables.plain_markdown(rows, left=(0, 1)),
    }  # fmt: skip
    approved("exports/tables", table({name: "".join(said) for name, said in cases.items()}))


@pytest.mark.parametrize(("level", "p"), [(0.95, 0.05), (0.9, 0.1), (0.99, 0.01)])
def test_a_p_of_exactly_what_the_level_leaves_is_significant(level, p):
    settings = StatisticsSettings(level=level)
    assert tables.significant(pd.Series({"p_corrected": p}), settings)
    assert not tables.significant(pd.Series({"p_corrected": p + 1e-9}), settings)


@pytest.mark.parametrize("write", [tables.latex, tables.compact_latex])
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
