"""How the numbers are made is said with the settings in force."""

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.i18n import speaking
from rankdash.words.methods import cost, methods


def test_the_settings_in_force_are_those_that_are_said():
    said = dict(
        methods(StatisticsSettings(level=0.9, resamples=500, worthwhile=0.02), corrected=True)
    )
    assert "drawn 500 times" in said["Interval"]
    assert "the corrected p is at most 0.1." in said["Verdict"]
    assert "under 2.0% of the baseline" in said["Verdict"]
    assert "α is 0.1, divided" in said["Minimum detectable change"]


def test_reasons_come_in_the_order_in_which_they_are_tried():
    said = dict(methods(StatisticsSettings(), corrected=False))["Why queries changed"]
    order = ["no result", "no relevant label", "already ideal", "idle", "near-tie", "text cut"]
    places = [said.index(each) for each in order]
    assert places == sorted(places)


def test_how_cost_depth_and_skipping_take_the_verdict_is_told_in_both_languages():
    said = dict(methods(StatisticsSettings(), corrected=False))
    assert "the ratio of change and baseline in the same draws" in said["Cost and return"]
    assert "corrected for the number of depths" in said["Depth"]
    assert "above the acceptable loss" in said["When not to rerank"]
    with speaking("zh"):
        assert "同一批抽样中变化与基线之比" in cost()
