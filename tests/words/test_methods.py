"""How the numbers are made is said with the settings in force."""

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.i18n import speaking
from rankdash.words.methods import cost, methods


def test_the_settings_in_force_are_those_that_are_said():
    said = dict(
        methods(
            StatisticsSettings(interval="bca", level=0.9, resamples=500, worthwhile=0.02),
            corrected=True,
        )
    )
    assert said["Interval"] == (
        "The queries are drawn 500 times with replacement; the interval is read off the means "
        "of these resamples. From 1,000 queries on, each gets a random weight (Poisson, mean 1) "
        "instead, so that the number of queries in a resample varies. Resampled means equal to "
        "the observed mean count half as below it and half as above it. With fewer than 6 queries "
        "there is no interval, nor with fewer than 30 of which only 1 or 2 change."
    )
    assert said["Verdict"] == (
        "A change is proven if its interval excludes 0 and the corrected p is at most 0.1. A "
        "proven gain is small if it is below 2% of the baseline's mean (set by the user). With "
        "fewer than 6 queries there is no verdict."
    )
    unset = dict(methods(StatisticsSettings(), corrected=True))["Verdict"]
    assert (
        " No minimum practically relevant gain is set, so a proven gain of any size is “better”. "
        in unset
    )
    assert said["Minimum detectable change"] == (
        "The true change that this many queries prove in 80% of all cases (its power): (t₁ + t₂) "
        "· s / √n, where n is the number of queries, s the standard deviation of their changes, "
        "and t₁ and t₂ the quantiles of Student's t for 1 − α/2 and 80%. α is 0.1, divided by "
        "the number of comparisons where they are corrected. A smaller change can be proven too, "
        "but in fewer cases. There is none if the changes do not vary or no order of the ranked "
        "documents would rise so far."
    )


def test_reasons_come_in_the_order_in_which_they_are_tried():
    said = dict(methods(StatisticsSettings(), corrected=False))["Why queries changed"]
    order = ["no result", "no relevant label", "already ideal", "no effect", "near-tie", "text cut"]
    places = [said.index(each) for each in order]
    assert places == sorted(places)


def test_how_cost_depth_and_skipping_take_the_verdict_is_told_in_both_languages():
    said = dict(methods(StatisticsSettings(), corrected=False))
    assert said["Cost and return"].startswith(
        "Cost and return use the verdict's interval and answer. The interval of a relative change "
        "includes the uncertainty of the baseline's mean (delta method; with a bootstrap, the "
        "ratio in the same resamples): both intervals exclude 0, or neither does. "
    )
    assert said["Depth"] == (
        "A gain over not reranking is proven by the same rule, with p corrected for the number "
        "of depths. At full depth it is the verdict itself; the verdict also holds for depths "
        "with an equally small p. A depth is within noise of the best if it is not proven to be "
        "worse than the best."
    )
    assert said["When not to rerank"] == (
        "A rule is safe if the interval of its effect stays above the acceptable loss on "
        "held-out queries. The margin is proven to pick the right queries if the interval of its "
        "advantage over chance is above 0 and its p, for this one comparison, is significant."
    )
    with speaking("zh"):
        assert cost().startswith(
            "成本与回报采用结论的置信区间与判断。相对变化的区间包含基线均值的不确定性（delta 法；"
            "自助法则用同一批重采样中的比值）：两个区间要么都不含 0，要么都含 0。"
        )
