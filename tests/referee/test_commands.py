"""What `approved/cli` shows of the samples is what the definitions say of the same files, so that
no wrong number is approved."""

import json
from dataclasses import replace

import pytest

from tests.cli.sessions import SAMPLES, sample
from tests.referee import given
from tests.referee.conftest import Own, array
from tests.referee.inference import interval, p_value
from tests.referee.rules import RULES
from tests.surfaces.shown import command

RANKINGS = {"initial": "{}/initial.trec", "better": "better.trec"}
DEEP = 1000


@pytest.fixture(params=SAMPLES)
def name(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample(request.param)
    return request.param


@pytest.fixture
def own(name, tmp_path):
    lists = {system: given.ranking(tmp_path / file.format(name), single=False)
             for system, file in RANKINGS.items()}  # fmt: skip
    return Own(tmp_path / name / "qrels.tsv", lists, RULES[0])


def said(name, *arguments, codes=(0,)):
    return json.loads(command(*(each.format(name) for each in arguments), "--json", codes=codes))


def test_evaluate(name, own):
    found = said(name, "evaluate", "{}", *RANKINGS.values())["systems"]
    for system, each in found.items():
        for spec in each["mean"]:
            metric, _at, k = spec.partition("@")
            values = own.values(system, metric, int(k or DEEP))
            assert each["mean"][spec] == pytest.approx(array(values).mean(), abs=1e-12)
            shown = {query: row[spec] for query, row in each["per_query"].items()}
            assert shown == pytest.approx(values, abs=1e-12)


def sides(command, *options):
    return (command, "--qrels", "{}", "--baseline", RANKINGS["initial"], "--challenger",
            RANKINGS["better"], *options)  # fmt: skip


def assert_within(row, before, values, rules):
    """Beyond 1 there is no mean and no change."""
    for end, (low, high) in zip(("low", "high"), interval(values, rules), strict=True):
        assert min(low, 1) - 1e-9 <= row[f"{before}{end}"] <= min(high, 1) + 1e-9


def test_compare(name, own):
    (first, row) = said(name, *sides("compare"))["comparisons"]
    changes = array(own.changes("better"))
    assert first["mean"] == pytest.approx(array(own.values("initial", "ndcg")).mean(), abs=1e-12)
    assert row["delta"] == pytest.approx(changes.mean(), abs=1e-12)
    parts = {"mean": array(own.values("better", "ndcg")), "delta": changes}
    for part, values in parts.items():
        assert_within(row, f"{part}_", values, own.rules)
    p, error = p_value(changes, flips=True)
    assert row["p"] == pytest.approx(p, abs=error)
    assert (row["helped"], row["same"], row["hurt"]) == own.tally(own.changes("better"))


def test_gate(name, own):
    """Each end is one-sided: two of them leave out twice as much."""
    (condition,) = said(name, *sides("gate", "--min", "0.5"), codes=(0, 1))["conditions"]
    values = array(own.values("better", "ndcg"))
    assert condition["value"] == pytest.approx(values.mean(), abs=1e-12)
    assert_within(condition, "", values, replace(own.rules, level=0.9))
    assert condition["passed"] is (condition["low"] >= 0.5)
