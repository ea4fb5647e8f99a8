"""Effects of online experiments: referees, simulations without an effect, and doubts about data."""

import gzip
import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankdash.core.base.errors import DataError, FormatError, SpecError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.readers.outcomes import read_outcomes
from rankdash.core.statistics.clustered import change_of, mean_of, mismatch_p, preference_of
from rankdash.features.online.command_results import json_of
from rankdash.features.online.experiment import experiment_of
from tests.online.outcomes import table

SETTINGS = StatisticsSettings()


@pytest.fixture
def read(tmp_path):
    def reading(frame, name="outcomes.csv", columns=None, **options):
        path = tmp_path / name
        frame.to_csv(path, index=False, **options)
        return read_outcomes(path, columns or {})

    return reading


def by_unit(frame, arm):
    chosen = frame[frame["arm"] == arm].groupby("session")["clicks"]
    return chosen.size().to_numpy(), chosen.sum().to_numpy(dtype=float)


def test_with_one_search_a_unit_a_change_is_welchs_t_test():
    rng = np.random.default_rng(1)
    before, after = rng.random(80), rng.random(50) + 0.1
    change = change_of(
        *(mean_of(np.ones(len(each), dtype=int), each) for each in (before, after)), level=0.9
    )
    expected = stats.ttest_ind(after, before, equal_var=False)
    low, high = expected.confidence_interval(0.9)
    assert change.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert (change.low, change.high) == pytest.approx((low, high), rel=1e-9)
    assert change.always_low < change.low < change.high < change.always_high


def test_the_variance_is_the_cluster_robust_one_of_a_regression():
    frame = table(np.random.default_rng(2), 200)
    mean = mean_of(*by_unit(frame, "control"))
    rows = frame[frame["arm"] == "control"]
    residual = rows["clicks"] - rows["clicks"].mean()
    sums = residual.groupby(rows["session"]).sum()
    assert mean.value == pytest.approx(rows["clicks"].mean(), rel=1e-12)
    meat = float((sums**2).sum()) * len(sums) / (len(sums) - 1)
    assert mean.variance == pytest.approx(meat / len(rows) ** 2, rel=1e-9)


@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=5), st.data())
def test_the_sample_ratio_test_is_scipys(units, data):
    shares = np.array([data.draw(st.floats(0.05, 1)) for _ in units])
    shares /= shares.sum()
    expected = stats.chisquare(units, np.array(shares) * sum(units)).pvalue
    assert mismatch_p(np.array(units), shares) == pytest.approx(expected, rel=1e-6, abs=1e-300)


def test_without_an_effect_few_experiments_are_flagged():
    """Sessions of 1 to 50 searches, and a look at every tenth of the experiment."""
    rng = np.random.default_rng(3)
    planned = anytime = 0
    for _ in range(1000):
        units = 300
        sizes = rng.integers(1, 51, units)
        totals = rng.binomial(sizes, rng.beta(0.5, 4.5, units)).astype(float)
        arm = rng.random(units) < 0.5
        flagged = False
        for n in range(30, units + 1, 30):
            sides = (mean_of(sizes[:n][each[:n]], totals[:n][each[:n]]) for each in (~arm, arm))
            change = change_of(*sides, level=0.95)
            flagged |= change.always_low > 0 or change.always_high < 0
        planned += change.p <= 0.05
        anytime += flagged
    assert 35 <= planned <= 65
    assert anytime <= 50


def test_an_effect_is_found_and_its_interval_covers_it():
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(300):
        frame = table(rng, 400, effect=0.1)
        change = change_of(
            *(mean_of(*by_unit(frame, arm)) for arm in ("control", "new")), level=0.95
        )
        # By the first-order effect of clipping, the true change is a little below .1.
        covered += change.low <= 0.0995 <= change.high
    assert covered >= 276


def test_ten_clicks_of_a_session_do_not_shrink_the_interval(read):
    frame = table(np.random.default_rng(5), 200, most=1)
    copies = pd.concat([frame] * 10)
    one, ten = (experiment_of(read(each), SETTINGS).effects()[0] for each in (frame, copies))
    assert (ten.change.low, ten.change.high) == pytest.approx(
        (one.change.low, one.change.high), rel=1e-9
    )


def test_several_arms_are_corrected(read):
    rng = np.random.default_rng(6)
    frame = table(rng, 900, effect=0.08)
    third = np.isin(frame["session"], [f"s{each}" for each in range(300)])
    frame.loc[third, "arm"] = "third"
    planned = experiment_of(read(frame), SETTINGS, planned=True)
    new, other = sorted(planned.effects(), key=lambda each: each.arm)
    assert new.corrected == pytest.approx(
        max(2 * new.change.p, new.corrected if new.change.p > other.change.p else 0)
    )
    alone = experiment_of(read(frame[~third]), SETTINGS)
    assert new.change.always_high > alone.effects()[0].change.always_high


@pytest.mark.parametrize("name", ["o.csv", "o.tsv", "o.jsonl", "o.parquet", "o.csv.gz"])
def test_every_format_reads_the_same(tmp_path, name):
    frame = table(np.random.default_rng(7), 60)
    frame["clicks"] = frame["clicks"].map({1: "yes", 0: "No"})
    frame["time"] = pd.to_datetime(frame["time"], unit="s").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pandas(frame), path)
    elif name.endswith("jsonl"):
        frame.to_json(path, orient="records", lines=True)
    elif name.endswith("gz"):
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    else:
        frame.to_csv(path, index=False, sep="\t" if name.endswith("tsv") else ",")
    outcomes = read_outcomes(path, {})
    assert outcomes.name == "clicks" and outcomes.unit_name == "session"
    names = np.array(outcomes.units.to_pylist())[outcomes.unit]
    assert names.tolist() == frame["session"].tolist()
    assert outcomes.value.tolist() == (frame["clicks"] == "yes").astype(float).tolist()
    assert outcomes.time[:2].tolist() == [1.76e9, 1.76e9 + 60]


def test_chinese_columns_and_milliseconds(read):
    frame = table(np.random.default_rng(8), 60)
    frame["time"] = (frame["time"] * 1000).astype(int)
    frame["arm"] = frame["arm"].map({"control": "对照组", "new": "新模型"})
    frame.columns = ["会话", "分组", "查询编号", "点击数", "时间"]
    experiment = experiment_of(read(frame), SETTINGS)
    assert experiment.control == "对照组"
    assert experiment.outcomes.time[0] == 1.76e9


def test_times_with_offsets(read):
    frame = table(np.random.default_rng(8), 2).head(4)
    frame["time"] = ["2026-11-01T10:00+02:00", "2026-11-01 08:00", "2026-11-01", "2026-11-01T08Z"]
    assert read(frame).time.tolist() == [1793520000.0] * 2 + [1793491200.0, 1793520000.0]


def test_categories_of_pandas(tmp_path):
    frame = table(np.random.default_rng(8), 20)
    answers = frame["clicks"].map({1: "yes", 0: "no"})
    path = tmp_path / "outcomes.parquet"
    frame.assign(clicks=answers.astype("category")).astype({"arm": "category"}).to_parquet(path)
    assert read_outcomes(path, {}).value.tolist() == frame["clicks"].tolist()


def sentences(experiment):
    return json.loads(json_of(experiment))["sentences"]


def test_equal_outcomes_prove_nothing(read):
    """Ties, few units, and outcomes that do not vary between units."""
    rows = [(f"s{n}", team, n % 2 ^ (team == "B")) for n in range(10) for team in "AB"]
    frame = pd.DataFrame(rows, columns=["session", "team", "clicks"])
    few = experiment_of(read(frame), SETTINGS)
    assert few.preference().verdict == "too_few"
    assert sentences(few)[0].startswith("Too few units")
    equal = pd.concat([frame.assign(session=f"{n}" + frame["session"], clicks=n) for n in range(5)])
    assert sentences(experiment_of(read(equal), SETTINGS)) == ["B and A have the same outcomes."]
    only = equal.assign(clicks=(equal["team"] == "B").astype(int))
    assert "do not vary" in sentences(experiment_of(read(only), SETTINGS))[0]
    arms = pd.DataFrame({"arm": ["control", "new"] * 4, "clicks": [0, 0, 1, 1] * 2})
    assert experiment_of(read(arms), SETTINGS).effects()[0].verdict == "too_few"
    arms = pd.DataFrame({"arm": ["control", "new"] * 30, "clicks": [0, 1] * 30})
    apart = experiment_of(read(arms), SETTINGS)
    assert apart.effects()[0].verdict == "descriptive"
    assert "do not vary" in sentences(apart)[0]


def test_one_unit_with_most_searches_decides_nothing(read):
    """A program that makes 5,000 searches without a click, next to 60 users with one search."""
    users = [(f"u{n}", ("control", "new")[n % 2], int(n % 3 == 0)) for n in range(60)]
    frame = pd.DataFrame([*users, *[("bot", "new", 0)] * 5000], columns=["user", "arm", "clicks"])
    experiment = experiment_of(read(frame), SETTINGS)
    assert codes(experiment) == {"implausible-units"}
    assert experiment.effects()[0].verdict == "too_few"
    assert "a few units have most" in sentences(experiment)[0]
    teams = [(f"u{n}", team, int(team == "A")) for n in range(60) for team in "AB"]
    frame = pd.DataFrame([*teams, ("bot", "B", 5000)], columns=["user", "team", "clicks"])
    preferred = experiment_of(read(frame), SETTINGS)
    assert preferred.preference().verdict == "too_few"
    assert "a few units have most" in sentences(preferred)[0]


def test_a_change_that_the_correction_does_not_prove_shows_its_p(read):
    frame = pd.DataFrame({"arm": ["control", "x", "y"] * 200})
    usual = np.repeat(np.random.default_rng(3).random(200), 3)
    frame["clicks"] = usual + 0.06 * (frame["arm"] == "x")
    experiment = experiment_of(read(frame), SETTINGS, planned=True)
    effect = experiment.effects()[0]
    assert effect.verdict == "unproven" and effect.change.low > 0
    assert "after correction" in sentences(experiment)[0]


def test_users_come_before_sessions(read):
    frame = table(np.random.default_rng(9), 60)
    frame["user"] = [f"u{int(each[1:]) // 2}" for each in frame["session"]]
    assert read(frame).unit_name == "user"
    assert read(frame, columns={"unit": "session"}).unit_name == "session"


def test_interleaved_rankings(read):
    rng = np.random.default_rng(10)
    rows = [
        (f"s{unit}", team, int(rng.random() < rate))
        for unit in range(400)
        for team, rate in (("control", 0.2), ("new", 0.3))
    ]
    frame = pd.DataFrame(rows, columns=["session", "team", "clicks"])
    preference = experiment_of(read(frame), SETTINGS).preference()
    wins = frame.groupby("team")["clicks"].sum()
    assert preference.change.delta == pytest.approx((wins["new"] - wins["control"]) / wins.sum())
    assert preference.verdict == "better" and preference.change.always_low > 0
    frame["team"] = frame["team"].map({"control": "new", "new": "control"})
    turned = experiment_of(read(frame), SETTINGS).preference()
    assert turned.change.delta == -preference.change.delta and turned.verdict == "worse"


def test_the_preference_covers_the_truth():
    rng = np.random.default_rng(11)
    covered = flagged = 0
    for _ in range(500):
        first, second = rng.binomial(3, 0.2, 150), rng.binomial(3, 0.2, 150)
        change = preference_of(first.astype(float), second.astype(float), 0.95)
        covered += change.low <= 0 <= change.high
        flagged += change.always_low > 0 or change.always_high < 0
    assert 462 <= covered <= 488
    assert flagged <= 25


def codes(experiment):
    return {each.code for each in experiment.findings}


def test_doubtful_searches_do_not_count_or_are_named(read):
    frame = table(np.random.default_rng(12), 400)
    clean = experiment_of(read(frame), SETTINGS)
    assert codes(clean) == set()
    holes = frame.astype({"clicks": object}).copy()
    holes.loc[holes.index[:5], "clicks"] = ""
    missing = experiment_of(read(holes), SETTINGS)
    assert codes(missing) == {"missing-outcomes"} and len(missing.outcomes) == len(frame) - 5
    late = experiment_of(read(frame), SETTINGS, start=1.76e9 + 600)
    assert codes(late) == {"before-start"} and len(late.outcomes) == len(frame) - 10
    bot = pd.concat([frame, pd.concat([frame[frame["session"] == "s3"].head(1)] * 500)])
    assert codes(experiment_of(read(bot), SETTINGS)) == {"implausible-units"}
    alone = experiment_of(read(frame.drop(columns="session")), SETTINGS)
    assert codes(alone) == {"no-units"} and len(alone.units) == 2


def test_a_few_units_in_both_arms_do_not_count(read):
    frame = table(np.random.default_rng(13), 400)
    extra = frame[frame["session"] == "s7"].head(1).copy()
    extra["arm"] = "new" if extra["arm"].iloc[0] == "control" else "control"
    experiment = experiment_of(read(pd.concat([frame, extra])), SETTINGS)
    assert codes(experiment) == {"mixed-units"}
    assert len(experiment.outcomes) == (frame["session"] != "s7").sum()


def test_no_effect_is_computed_from_arms_of_other_sizes_than_planned(read):
    frame = table(np.random.default_rng(14), 400)
    experiment = experiment_of(read(frame), SETTINGS, shares={"control": 0.7, "new": 0.3})
    assert experiment.refused and experiment.effects() == ()


@pytest.mark.parametrize(
    ("change", "options", "problem", "message"),
    [
        (lambda f: f[f["arm"] == "new"], {}, DataError, "only one arm"),
        (lambda f: f.assign(clicks=1), {}, DataError, "outcome 1"),
        (lambda f: f.assign(arm=["new", "control"] * (len(f) // 2) + ["new"] * (len(f) % 2)),
         {}, DataError, "in several arms"),
        (lambda f: f.assign(arm=f["arm"].str.replace("control", "x")), {}, SpecError, "--control"),
        (lambda f: f, {"control": "y"}, SpecError, "No arm is named 'y'"),
        (lambda f: f, {"shares": {"new": 1.0}}, SpecError, "planned shares must name each arm"),
        (lambda f: f, {"start": 2e9}, DataError, "no search that counts"),
        (lambda f: f.drop(columns="time"), {"start": 1e9}, SpecError, "no times"),
        (lambda f: f.assign(clicks="many"), {}, FormatError, "only numbers"),
        (lambda f: f.assign(clicks="inf"), {}, FormatError, "only numbers"),
        (lambda f: f.assign(clicks=1e200), {}, FormatError, "1e+200"),
        (lambda f: f.assign(arm=f.index), {"control": "1"}, DataError, "arms; the limit is 100"),
        (lambda f: f.assign(time="soon"), {}, FormatError, "only times"),
        (lambda f: f.assign(arm=f["arm"].where(f.index != 3, "")), {}, FormatError, "row 4"),
        (lambda f: f.rename(columns={"arm": "x"}), {}, FormatError, "--columns arm="),
        (lambda f: f.assign(value=1.0), {}, FormatError, "Several columns may be the outcome"),
        (lambda f: f.head(0), {}, FormatError, "no rows"),
        (lambda f: f[["session", "arm", "clicks", "clicks"]], {}, FormatError, "named 'clicks'"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_words(read, change, options, problem, message):
    frame = table(np.random.default_rng(15), 100)
    with pytest.raises(problem) as refused:
        experiment_of(read(change(frame)), SETTINGS, **options)
    assert message in str(refused.value)


def test_a_change_without_spread_or_with_few_units_has_no_interval():
    few = change_of(*(mean_of(np.ones(5, dtype=int), np.arange(5.0) + at) for at in (0, 1)), 0.95)
    assert few.delta == 1 and math.isnan(few.low) and math.isnan(few.always_low)
    assert math.isnan(preference_of(np.zeros(50), np.zeros(50), 0.95).delta)


def test_a_column_can_be_another_field_than_its_name_means(read):
    frame = table(np.random.default_rng(17), 60).rename(columns={"arm": "query", "query_id": "arm"})
    outcomes = read(frame, columns={"arm": "query", "query": "arm"})
    assert set(outcomes.arms) == {"control", "new"} and len(outcomes.queries) == 30
    alone = read(frame.drop(columns="arm"), columns={"arm": "query"})
    assert set(alone.arms) == {"control", "new"} and (alone.query == -1).all()


def test_interleaved_rankings_may_list_clicks_only(read):
    rng = np.random.default_rng(18)
    teams = ["control", "new"] * 20 + ["new"] * 60
    frame = pd.DataFrame({"session": [f"s{int(rng.integers(70))}" for _ in teams], "team": teams})
    preference = experiment_of(read(frame.assign(clicks=1)), SETTINGS).preference()
    assert preference.change.delta == (80 - 20) / 100 and preference.verdict == "better"
