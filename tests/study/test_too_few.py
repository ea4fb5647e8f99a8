"""Fewer than six queries: no verdict, interval, p, minimum detectable change or break-even, on any
surface; from six on there are."""

import io
import json
import re
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.statistics.gate import Condition, decide
from rankdash.analysis.statistics.planning import smallest_detectable
from rankdash.analysis.statistics.verdict import TITLES
from rankdash.cli import compare as compare_command
from rankdash.cli import main
from rankdash.i18n import speaking
from rankdash.reporting.exports import tables
from rankdash.reporting.exports.trec import qrels_bytes, run_bytes
from rankdash.reporting.exports.zip_file import bundle
from rankdash.reporting.report import Front, html
from rankdash.study import costs, leaderboard
from rankdash.study.decision import decision
from rankdash.study.study import Study
from rankdash.study.systems import Money
from rankdash.ui.report import report_preview
from rankdash.value.payoff import Amount
from rankdash.words import costs as words
from tests.study.best_or_worst import best_or_worst
from tests.surfaces.conftest import without_charts

SURE = ("mean_low", "mean_high", "delta_low", "delta_high", "p", "p_corrected")
SECTIONS = ("decision", "verdict", "systems", "cutoffs", "cost")


def study_of(n: int, relevant: int = 1, runs: int = 1) -> Study:
    """The relevant documents first for every other query in the first stage, and for two of three
    in the run; last for the rest. More runs have all of them first, then all of them last."""
    orders = (lambda at: at % 3 != 0, lambda _at: True, lambda _at: False)
    money = Money(given=frozenset({"value_per_search"}))
    return best_or_worst(
        n, "precision@3", lambda at: at % 2 == 0, *orders[:runs], relevant=relevant, money=money
    )


@pytest.mark.parametrize(("n", "few"), [(2, True), (5, True), (6, False)])
def test_less_than_six_queries_give_a_mean_and_nothing_that_sounds_sure(n, few):
    study = study_of(n)
    (run,) = study.challengers
    frame = study.comparison.frame
    assert frame["mean"].notna().all()
    changes = frame[frame["system"] == run]
    assert frame[["mean_low", "mean_high"]].isna().all(axis=None) == few
    assert changes[[*SURE, "smallest_detectable"]].isna().all(axis=None) == few
    assert (study.comparison.row(run, study.spec)["verdict"] == "too_few") == few

    choice = costs.choices(study)[1]
    assert (choice.option.gain is None) == few
    for figure in ("net_per_month", "roi", "break_even_elasticity", "break_even_searches"):
        assert (getattr(choice.came, figure) == Amount(reason="unknown_gain")) == few
    assert (words.answer(choice) == "unknown") == few
    for money, known in (
        (None, "Break-even only: price and value are not set."),
        (study.money, "With the assumptions that you set on Cost & ROI."),
    ):
        preview = report_preview.of(replace(study, money=money))["cost"]
        assert preview.summary == ("Costs alone: the gain is not known." if few else known)
    assert (decision(study, run).step == "queries") == few
    best = leaderboard.standings(study)[0]
    assert np.isnan([best.low, best.high]).all() == few

    gates = decide([Condition("min", study.spec, 0.1), Condition("max-hurt", study.spec, 0.9)],
                   study.comparison, run)  # fmt: skip
    assert [gate.reason == "too_few" for gate in gates] == [few, few]
    assert [np.isnan([gate.low, gate.high]).all() for gate in gates] == [few, few]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("n", "few"), [(2, True), (6, False)])
def test_no_surface_writes_an_interval_or_a_break_even_of_two_queries(n, few, language):
    study = study_of(n)
    front = Front(sections=SECTIONS, language=language)
    page = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]+>", " ", html(study, front).decode())
    # One stands in what the latency target means.
    assert (page.count("95%") == 1) == few
    assert ("break-even price of" in page or "盈亏平衡价格" in page) != few

    compared = compare_command.Compared("qrels", "highest", None, study)
    written = "".join(compare_command.text(compared))
    assert ("confidence the true" in written) != few
    rows = pd.read_csv(StringIO("".join(compare_command.as_csv(compared))))
    assert rows.loc[rows["system"] == "run", list(SURE)].isna().all(axis=None) == few
    with speaking("en"):
        table = "".join(tables.markdown(study.comparison, study.names))
    assert bool(re.search(r"\d to [+-]?\d", table)) != few


# An interval, a quantile that needs six queries, a break-even and a sentence with a level.
SURE_WORDS = re.compile(
    r"[-+−]?\d\.\d+ to [-+−]?\d|\d … |within [\d.]+ ms, half|the target is|break-even: value|"
    r"confidence the true|(?:met|missed|undecided|reached) \| (?:poor|fair|good|excellent)"
)
SURE_KEYS = re.compile(r"(^|_)(low|high|p|p_corrected|smallest_detectable|break_even\w*|p95_ms)$")
VERDICTS = {TITLES[kind] for kind in ("better", "small", "unproven", "worse")}


def sure_keys(value: object) -> set[str]:
    """The keys of a JSON document that hold a number that needs six queries. A baseline's change
    is 0 without any."""
    if isinstance(value, list):
        return set().union(*map(sure_keys, value))
    if not isinstance(value, dict):
        return set()
    own = {key for key in value if SURE_KEYS.search(key) and value[key] not in (None, 0.0)}
    return own.union(*map(sure_keys, value.values()))


def surfaces(study: Study, folder: Path, capsys) -> dict[str, str]:
    """What every command and export says of the study, with latencies and targets."""
    (run,) = study.challengers
    times = "".join(f"{query},done,{at + 10}\n" for at, query in
                    enumerate(study.dataset.queries["query_id"]))  # fmt: skip
    written = {
        "qrels.txt": qrels_bytes(study.dataset.qrels),
        "first.trec": run_bytes(study.ranking(study.baseline), "first"),
        "run.trec": run_bytes(study.ranking(run), "run"),
        "times.csv": f"query_id,state,latency_ms\n{times}".encode(),
    }
    for name, content in written.items():
        (folder / name).write_bytes(content)
    qrels, first, other, timed = (str(folder / name) for name in written)
    pair = ["--qrels", qrels, "--baseline", first, "--challenger", other]
    timings = ["--timings", timed]
    asked = ["--min", "mrr=0.1", "--min-gain", "0.01", "--max", "p95_ms=99", *timings]
    said = {}
    for name, arguments, forms in (
        ("evaluate", [qrels, first, other, "-m", "mrr"], "text json csv markdown latex"),
        ("compare", [*pair, "-m", study.spec], "text json markdown latex"),
        ("gate", [*pair, *asked, "-m", study.spec], "text json markdown junit"),
    ):
        for form in forms.split():
            assert main([name, *arguments, "--format", form]) in (0, 1)
            said[f"{name} {form}"] = capsys.readouterr().out
    for preset in ("full", "decision"):
        target = folder / f"{preset}.html"
        report = ["report", *pair, *timings, "--preset", preset, "--profile", "tiers"]
        with without_charts():
            assert main([*report, "-m", study.spec, "--out", str(target)]) == 0
        capsys.readouterr()
        page = re.sub(r"(?s)<(script|style).*?</\1>", " ", target.read_text())
        said[f"report {preset}"] = re.sub(r"\s+", " ", re.sub(r"(<[^>]+>\s*)+", " | ", page))
    packed = bundle(study, datetime(2026, 1, 2, tzinfo=UTC), pictures=False)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        names = [name for name in archive.namelist() if name.endswith((".md", ".tex", "cost.csv"))]
        said |= {f"export {name}": archive.read(name).decode() for name in names}
    return said


@pytest.mark.parametrize(("n", "few"), [(1, True), (2, True), (4, True), (6, False)])
def test_no_command_report_or_export_is_sure_of_fewer_than_five_queries(n, few, tmp_path, capsys):
    said = surfaces(study_of(n), tmp_path, capsys)
    sure = {name for name, text in said.items() if SURE_WORDS.search(text)}
    pages = {name: text.split("|") for name, text in said.items() if name.startswith("report")}
    verdicts = {name for name, cells in pages.items() if VERDICTS & {*map(str.strip, cells)}}
    keys = {name for name in said if name.endswith("json") and sure_keys(json.loads(said[name]))}
    if few:
        assert (sure, verdicts, keys) == (set(), set(), set())
        return
    assert sure >= {
        *(f"compare {form}" for form in ("text", "markdown", "latex")),
        *(f"gate {form}" for form in ("text", "markdown", "junit")),
        *("report full", "export summary.md", "export comparison.tex"),
    }
    assert verdicts == {"report full", "report decision"}
    assert keys == {"compare json", "gate json"}


def test_the_minimum_detectable_change_is_within_what_labels_and_candidates_allow():
    """Precision@3 of queries with one relevant document is at most 0.333. Where half of them have
    it, the rest can bring 0.167; with three each, 0.5."""
    for relevant, allowed in ((1, 1 / 6), (3, 1 / 2)):
        study = study_of(12, relevant)
        row = study.comparison.row(study.challengers[0], study.spec)
        found = smallest_detectable(study.pairs(study.challengers[0])["delta"].to_numpy())
        assert row["before"] == pytest.approx(allowed)
        assert found > allowed
        assert np.isnan(row["smallest_detectable"])
    many = study_of(120)
    row = many.comparison.row(many.challengers[0], many.spec)
    assert 0 < row["smallest_detectable"] < 1 / 6


@pytest.mark.parametrize(("best", "even"), [(lambda _at: True, True), (bool, False)])
def test_equal_gains_are_no_certainty_on_any_surface(best, even, tmp_path, capsys):
    """Eight equal gains: drawing among them gives no other, which is no interval of width 0."""
    study = best_or_worst(8, "precision@3", lambda _at: False, best, money=Money())
    said = surfaces(study, tmp_path, capsys)
    (run,) = study.challengers
    row = study.comparison.row(run, study.spec)
    assert (row["verdict"], row["delta_low"] == row["delta_high"]) == ("better", even)
    gains = ("compare text", "compare markdown", "compare latex", "gate text", "gate markdown")
    for name in gains:
        assert ("no spread" in said[name]) is even, name
    for name in ("compare text", "compare json", "compare markdown", "report full"):
        text = " ".join(said[name].split())
        assert ("by the same amount for each of the 8 queries" in text) is even, name
        assert ("95% confidence the true gain" in text) is not even, name
    assert bool(re.search(r"\+0\.333 (?:to|…) \+0\.333", "".join(said.values()))) is False
