"""Borderline comparisons and few queries: all parts and surfaces show the same certainty."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.statistics.verdict import TITLES
from rankdash.core.study import costs, history, labelling, leaderboard
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.payoff import Amount
from rankdash.core.value.prices import Price, shipped
from rankdash.core.words import costs as cost_words
from rankdash.features.gate.gate import Condition, decide
from rankdash.features.policy.skipping import skipping
from rankdash.features.report.decision import decision
from rankdash.kit.html.tables import qrels_bytes, run_bytes
from tests.study.best_or_worst import best_or_worst
from tests.study.builders import compared, moved, rows
from tests.surfaces.conftest import without_charts
from tests.surfaces.shown import command, files_of


def first(n: int, right: int, helped: int, hurt: int = 0) -> tuple[list[int], list[int]]:
    """Return ranks of n queries before and after; `right` of them have rank 1 before."""
    before = [1] * right + [2] * (n - right)
    after = [2] * hurt + [1] * (right + helped - hurt) + [2] * (n - right - helped)
    return before, after


def shifted(mean: float, seed: int) -> tuple[list[int], list[int]]:
    """Return ranks of 60 queries that fall by `mean` on average, at random."""
    rng = np.random.default_rng(seed)
    before = rng.integers(1, 11, 60)
    after = np.clip(np.round(before - rng.normal(mean, 3, 60)), 1, 10).astype(int)
    return before.tolist(), after.tolist()


PERCENTILES = {"interval": "percentile", "test": "t"}
# (verdict, ranks before, ranks after, settings, number of runs).
BORDERLINE = {
    "five of five helped: p 0.06": ("unproven", *first(40, 20, 5)),
    "six of six helped: p 0.03": ("better", *first(40, 20, 6)),
    "six, but two comparisons": ("unproven", *first(40, 20, 6), {}, 2),
    "six, uncorrected": ("better", *first(40, 20, 6), {"correction": "none"}, 2),
    "six of a hundred: small": ("small", *first(100, 60, 6), {"worthwhile": 0.15}),
    "one query hurt": ("unproven", *first(40, 20, 0, 1)),
    "as many helped as hurt": ("unproven", *first(40, 20, 4, 4)),
    "six of six hurt": ("worse", *first(40, 20, 0, 6)),
    "nothing changes": ("identical", *first(40, 20, 0)),
    "five queries": ("too_few", *first(5, 1, 4)),
    "nine queries": ("better", *first(9, 2, 6)),
    "six, percentiles and t": ("better", *first(40, 20, 6), PERCENTILES),
    "a rise of many sizes": ("better", *shifted(1.2, 1)),
    "a fall of many sizes": ("worse", *shifted(-2.5, 3)),
}
ANSWERS = {"better": "yes", "small": "yes", "worse": "no", "identical": "no", "too_few": "unknown"}
# Cases with an interval above 0 although p is too large.
UNCORRECTED = ("five of five helped: p 0.06", "six, but two comparisons")


@pytest.mark.parametrize("name", BORDERLINE)
def test_all_parts_agree_on_a_borderline_comparison(name):
    kind, before, after, *more = BORDERLINE[name]
    rules, runs = (*more, *({}, 1)[len(more) :])
    loaded = rows(before)
    made = [moved(loaded, after, f"run {place}") for place in range(runs)]
    price = replace(shipped()[0], price=Price(1e-6, "search"), source="a test")
    money = Money(Assumptions(value_per_search=1.0), dict.fromkeys((run.id for run in made), price))
    study = compared(
        loaded,
        *made,
        metric="hit" if max(before) == 2 else "ndcg",
        cutoff=1 if max(before) == 2 else 10,
        statistics=StatisticsSettings(**rules),
        money=replace(money, given=frozenset({"value_per_search"})),
    )
    system, proven = study.challengers[0], kind in ("better", "small")
    row = study.comparison.row(system, study.spec)
    assert row["verdict"] == kind
    ends = [row["delta_low"], row["delta_high"]]

    # The relative change uses the verdict's resamples: both intervals contain 0, or neither does.
    choice = next(each for each in costs.choices(study) if each.system == system)
    assert cost_words.answer(choice) == ANSWERS.get(kind, "unproven")
    if kind == "too_few":
        assert choice.option.gain is None
        assert choice.outcome.break_even_elasticity == Amount(reason="unknown_gain")
    else:
        change = choice.option.gain.relative
        assert np.sign([change.low, change.high]).tolist() == np.sign(ends).tolist()

    past = history.trend(study, study.chosen, every=True).frame.set_index("system").loc[system]
    assert past["verdict"] == kind
    assert past["p_corrected"] == pytest.approx(row["p_corrected"], nan_ok=True)

    # A gate on any gain is one comparison, without correction.
    (gate,) = decide([Condition("min-gain", study.spec, 1e-9)], study.comparison, system)
    missed = "too_few" if kind == "too_few" else "missed" if row["delta"] <= 0 else "unproven"
    assert gate.reason == ("met" if row["delta_low"] > 0 else missed)
    assert gate.passed == (proven or name in UNCORRECTED)

    # These lists are reranked completely or not at all.
    curve = costs.depths(study, system).curve
    full = curve.table.iloc[-1]
    assert full["gain_proven"] == proven
    assert [full["gain_low"], full["gain_high"]] == pytest.approx(ends, nan_ok=True)
    assert (curve.enough > 0) == bool(curve.table["gain_proven"].any())

    # Skipping every query reverses the sign of the change; 0 has none.
    found = skipping(study, system, "first", 1, 0.01)
    all_skipped = found.curve.iloc[-1][["high", "low"]].to_numpy(dtype=float)
    assert row["delta"] == 0 or (-all_skipped).tolist() == pytest.approx(ends, nan_ok=True)
    assert labelling.first_stage_kind(study, system) == kind
    assert found.rule is None or found.rule.share < 1 or not proven


# --- fewer than six queries: no verdict, interval, p, minimum detectable change or break-even ---

# Texts with an interval, a quantile that needs six queries, a break-even or a confidence level.
SURE_WORDS = re.compile(
    r"\d (?:…|\\ldots\{\}) |within [\d.]+ ms, half|the target is|break-even: value|"
    r"confidence the true|(?:met|missed|undecided|reached) \| (?:poor|fair|good|excellent)"
)
SURE_KEYS = re.compile(r"(^|_)(low|high|p|p_corrected|smallest_detectable|break_even\w*|p95_ms)$")
VERDICTS = {TITLES[kind] for kind in ("better", "small", "unproven", "worse")}


def sure_keys(value: object) -> set[str]:
    """Return the keys of a JSON document with a number that needs six queries. The change of a
    baseline is 0 without any."""
    if isinstance(value, list):
        return set().union(*map(sure_keys, value))
    if not isinstance(value, dict):
        return set()
    # In a certificate, a list is a number and its text, and a text is the source of a number.
    numbers = {key: each[0] if isinstance(each, list) and each else each
               for key, each in value.items() if not isinstance(each, str)}  # fmt: skip
    own = {key for key in numbers if SURE_KEYS.search(key) and numbers[key] not in (None, 0.0)}
    return own.union(*map(sure_keys, value.values()))


def surfaces(study: Study, folder: Path) -> dict[str, str]:
    """Return the output of every command and export for the study, with latencies and targets."""
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
    qrels, base, other, timed = (folder / name for name in written)
    pair = ("--qrels", qrels, "--baseline", base, "--challenger", other)
    gates = ("--min", "mrr=0.1", "--min-gain", "0.01", "--max", "p95_ms=99", "--timings", timed)
    said = {}
    for name, arguments, forms in (
        ("evaluate", (qrels, base, other, "-m", "mrr"), "text json csv markdown latex"),
        ("compare", (*pair, "-m", study.spec), "text json csv markdown latex"),
        ("gate", (*pair, *gates, "-m", study.spec), "text json markdown junit"),
    ):
        for form in forms.split():
            said[f"{name} {form}"] = command(name, *arguments, "--format", form, codes=(0, 1))
    for preset in ("full", "decision"):
        target = folder / f"{preset}.html"
        asked = (*pair, "--timings", timed, "--preset", preset, "--profile", "tiers")
        with without_charts():
            command("report", *asked, "-m", study.spec, "--out", target)
        page = re.sub(r"(?s)<(script|style).*?</\1>", " ", target.read_text())
        said[f"report {preset}"] = re.sub(r"\s+", " ", re.sub(r"(<[^>]+>\s*)+", " | ", page))
    files = files_of(study).items()
    kept = (".md", ".tex", "cost.csv")
    return said | {f"export {name}": own.decode() for name, own in files if name.endswith(kept)}


@pytest.mark.parametrize(("n", "few"), [(1, True), (4, True), (6, False)])
def test_no_surface_is_sure_of_fewer_than_six_queries(n, few, tmp_path):
    """The first stage has the relevant document first in every other query, the run in two of
    three."""
    money = Money(given=frozenset({"value_per_search"}))
    study = best_or_worst(
        n, "precision@3", lambda at: at % 2 == 0, lambda at: at % 3 != 0, money=money
    )
    (run,) = study.challengers
    assert (decision(study, run).step == "queries") == few
    best = leaderboard.standings(study)[0]
    assert np.isnan([best.low, best.high]).all() == few
    outcome = costs.choices(study)[1].outcome
    for figure in ("net_per_month", "roi", "break_even_elasticity", "break_even_searches"):
        assert (getattr(outcome, figure) == Amount(reason="unknown_gain")) == few

    said = surfaces(study, tmp_path)
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


@pytest.mark.parametrize(("best", "even"), [(lambda _at: True, True), (bool, False)])
def test_equal_gains_are_no_certainty_on_any_surface(best, even, tmp_path):
    """Eight equal gains: resampling them gives no other mean, but this is not an interval of width
    0."""
    study = best_or_worst(8, "precision@3", lambda _at: False, best, money=Money())
    said = surfaces(study, tmp_path)
    row = study.comparison.row(study.challengers[0], study.spec)
    assert (row["verdict"], row["delta_low"] == row["delta_high"]) == ("better", even)
    for name in ("compare text", "compare markdown", "compare latex", "gate text", "gate markdown"):
        assert ("no spread" in said[name]) is even, name
    for name in ("compare text", "compare json", "compare markdown", "report full"):
        text = " ".join(said[name].split())
        assert ("by the same amount for each of the 8 queries" in text) is even, name
        assert ("95% confidence the true gain" in text) is not even, name
    assert not re.search(r"\+0\.333 (?:to|…) \+0\.333", "".join(said.values()))
