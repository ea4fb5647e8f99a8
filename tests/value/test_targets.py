"""Targets: shipped ones are whole, broken ones are refused, and a mean is judged by them."""

import math

import pytest

from rankdash.errors import DataError, SpecError
from rankdash.value.targets import (
    Band,
    Goals,
    Grade,
    Limit,
    Profile,
    Reached,
    Target,
    Targets,
    is_file,
    judge,
    shipped,
)


def test_the_shipped_numbers_are_those_of_the_tutorials():
    profiles = shipped().profiles
    levels = {
        key: {t.metric: (t.minimum, t.target, t.excellent) for t in profile.targets}
        for key, profile in profiles.items()
    }
    assert levels["production"] == {
        "ndcg@10": (None, 0.85, 0.90),
        "mrr": (None, 0.80, 0.90),
        "recall@5": (None, 0.75, 0.85),
        "precision@5": (None, 0.80, 0.90),
    }
    assert levels["faq"] == {
        "mrr": (None, 0.85, None),
        "hit@3": (None, 0.90, None),
        "precision@3": (None, 0.80, None),
    }
    assert levels["documents"]["ndcg@5"] == (None, 0.78, None)
    assert levels["academic"]["recall@10"] == (None, 0.85, None)
    assert levels["enterprise"]["recall@5"] == (None, 0.85, None)
    assert levels["tiers"]["mrr"] == (0.50, 0.70, 0.80)


def test_limits_are_met_by_less_and_travel_with_their_profile():
    limits = shipped().profiles["production"].limits
    assert [(each.what, each.target, each.excellent) for each in limits] == [
        ("p95_ms", 500, 300),
        ("per_million_tokens", 0.05, 0.03),
    ]
    assert Targets.from_json(shipped().to_json()) == shipped()


@pytest.mark.parametrize(
    "wrong", [("p50_ms", 5.0, None), ("p95_ms", 0.0, None), ("p95_ms", 300.0, 500.0)]
)
def test_a_limit_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(DataError):
        Limit(*wrong)


def test_the_shipped_numbers_are_called_rules_of_thumb():
    assert shipped().source == "Rules of thumb from tutorials"


@pytest.mark.parametrize(
    ("spec", "value", "name"),
    [
        ("ndcg@10", 0.49, "poor"),
        ("ndcg@10", 0.5, "fair"),
        ("precision@5", 0.7, "good"),
        ("ndcg", 0.86, "excellent"),
        ("recall@5", 0.59, "poor"),
        ("recall@5", 0.75, "good"),
        ("mrr@10", 0.39, "poor"),
        ("mrr", 0.4, "fair"),
        ("mrr", 0.8, "excellent"),
    ],
)
def test_a_value_lies_in_the_band_of_its_metric_whatever_the_cutoff(spec, value, name):
    band = shipped().band(spec)
    assert band.grade(value).name == name
    assert band.grade(value).advice


def test_a_metric_without_bands_has_no_advice():
    assert shipped().band("rbp@10") is None
    row = judge(Target("hit@3", target=0.9), Reached(0.95, 0.92, 0.98), shipped())
    assert (row.status, row.band, row.advice) == ("met", "", "")


TIERS = Target("mrr", minimum=0.5, target=0.7, excellent=0.8)


@pytest.mark.parametrize(
    ("reached", "status", "excellent"),
    [
        (Reached(0.6, 0.55, 0.65), "missed", False),
        (Reached(0.6, 0.5, 0.7), "undecided", False),
        (Reached(0.75, 0.7, 0.8), "met", False),
        (Reached(0.75, 0.1 * 7, 0.8), "met", False),
        (Reached(0.75, 0.69, 0.8), "undecided", False),
        (Reached(0.85, 0.8, 0.9), "met", True),
        (Reached(0.85), "undecided", False),
        (Reached(0.6, 0.55, 0.65, most=0.69), "unreachable", False),
        (Reached(0.6, 0.55, 0.65, most=0.7), "missed", False),
        (Reached(float("nan")), None, False),
    ],
)
def test_an_interval_meets_misses_or_leaves_open(reached, status, excellent):
    row = judge(TIERS, reached, shipped())
    assert (row.status, row.excellent) == (status, excellent)
    assert (row.band == "") == math.isnan(reached.low), "of too few queries nothing is said"


def test_only_a_minimum_or_only_excellent_can_be_asked_for():
    for target in (Target("P@5", minimum=0.5), Target("P@5", excellent=0.5)):
        assert (target.metric, target.required) == ("precision@5", 0.5)
        assert judge(target, Reached(0.45, 0.4, 0.49), shipped()).status == "missed"
        assert judge(target, Reached(0.6, 0.5, 0.7), shipped()).status == "met"


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ({}, "has no value"),
        ({"target": 1.2}, "outside 0 to 1"),
        ({"target": float("nan")}, "outside 0 to 1"),
        ({"minimum": 0.8, "target": 0.7}, "must rise"),
        ({"minimum": 0.8, "excellent": 0.7}, "must rise"),
    ],
)
def test_levels_that_make_no_sense_are_refused(levels, message):
    with pytest.raises(DataError, match=message):
        Target("mrr", **levels)


def test_a_metric_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(SpecError, match="ndcg@10"):
        Target("ndgc@10", target=0.5)


def test_a_profile_has_a_title_and_each_metric_once():
    target = Target("mrr", target=0.5)
    with pytest.raises(DataError, match="title"):
        Profile(" ", (target,))
    with pytest.raises(DataError, match="two targets for mrr"):
        Profile("p", (target, Target("RR", target=0.6)))


def test_bands_start_at_the_bottom_and_rise():
    for starts in ((), (0.1,), (0.0, 0.5, 0.5), (0.0, 0.7, 0.6)):
        with pytest.raises(DataError, match="must start at 0 and rise"):
            Band(("mrr",), tuple(Grade("g", start, "") for start in starts))


def test_edits_make_new_targets_and_travel_as_text():
    mine = Profile("Mine", (Target("ndcg@3", target=0.4),))
    edited = shipped().with_profile("mine", mine)
    assert "mine" not in shipped().profiles
    again = Targets.from_json(edited.to_json())
    assert again == edited
    assert again.profiles["mine"].specs() == ("ndcg@3",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"source": "s", "profiles": [], "bands": []}',
        '{"source": "s", "profiles": {"p": {"title": "t", "targets": [{"spec": "mrr"}]}}, '
        '"bands": []}',
        '{"source": "s", "profiles": {"p": {"title": "t", "targets": [{"metric": "mrr", '
        '"target": "high"}]}}, "bands": []}',
    ],
)
def test_saved_targets_that_are_broken_are_refused_in_words(text):
    with pytest.raises(DataError, match="cannot be read"):
        Targets.from_json(text)


def test_a_broken_file_is_refused_in_words():
    with pytest.raises(DataError, match="cannot be read"):
        Targets.from_toml("[profiles")


@pytest.mark.parametrize(
    ("value", "name"),
    [(0.5, "good"), (0.5 - 5e-10, "good"), (0.5 - 2e-9, "poor"), (0.0, "poor"), (1.0, "good")],
)
def test_a_band_begins_at_its_lowest_value_to_rounding(value, name):
    band = Band(("ndcg",), (Grade("poor", 0.0, ""), Grade("good", 0.5, "")))
    assert band.grade(value).name == name


def test_a_profile_that_was_changed_takes_the_place_of_the_old_one():
    key, old = next(iter(shipped().profiles.items()))
    changed = Profile("Mine", (Target("mrr", minimum=0.1),))
    found = shipped().with_profile(key, changed)
    assert found.profiles[key] == changed and shipped().profiles[key] == old
    assert list(found.profiles) == list(shipped().profiles)


@pytest.mark.parametrize(("value", "advised"), [(0.599, True), (0.6, False), (0.65, False)])
def test_an_undecided_mean_at_its_target_needs_no_advice(value, advised):
    row = judge(Target("ndcg@10", target=0.6), Reached(value, 0.5, 0.75, 1.0), shipped())
    assert row.status == "undecided"
    assert bool(row.advice) == advised


@pytest.mark.parametrize(
    ("reached", "status"),
    [
        (Reached(0.75, 0.7 - 5e-10, 0.8), "met"),
        (Reached(0.75, 0.7 - 5e-9, 0.8), "undecided"),
        (Reached(0.6, 0.5, 0.7 - 5e-10), "undecided"),
        (Reached(0.6, 0.5, 0.7 - 5e-9), "missed"),
        (Reached(0.6, 0.5, 0.65, most=0.7 - 5e-10), "missed"),
        (Reached(0.6, 0.5, 0.65, most=0.7 - 5e-9), "unreachable"),
    ],
)
def test_what_prints_as_the_target_is_at_it(reached, status):
    assert judge(TIERS, reached, shipped()).status == status


@pytest.mark.parametrize(
    ("value", "band", "advised"),
    [(0.45, "poor", True), (0.6, "fair", True), (0.75, "good", True), (0.86, "excellent", False)],
)
def test_below_its_target_every_band_but_the_highest_has_advice(value, band, advised):
    row = judge(Target("ndcg@10", target=0.9), Reached(value, 0.1, 0.95, 1.0), shipped())
    assert (row.status, row.band, bool(row.advice)) == ("undecided", band, advised)


MINE = Profile(
    "Größe",
    (Target("ndcg@10", minimum=0.2), Target("mrr", target=0.5)),
    (Limit("p95_ms", 300.0), Limit("per_million_tokens", 2.0, 1.0)),
    "ndcg@10",
)
AS_TOML = """
title = "Größe"
measure = "ndcg@10"
targets = [{ metric = "ndcg@10", minimum = 0.2 }, { metric = "mrr", target = 0.5 }]
limits = [{ what = "p95_ms", target = 300.0 },
          { what = "per_million_tokens", target = 2.0, excellent = 1.0 }]
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mine.json", MINE.to_json()),
        ("MINE.JSON", "\ufeff\n  " + MINE.to_json()),
        ("mine.toml", AS_TOML),
        ("mine.toml", "\ufeff" + AS_TOML),
        # What it is is told by its content.
        ("mine.toml", MINE.to_json()),
    ],
)
def test_a_profile_of_ones_own_is_read_from_its_file(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    goals = Goals.of(str(tmp_path / name))
    assert (goals.profile, goals.own) == (MINE, True)
    assert goals.targets.bands == shipped().bands
    assert "Größe" in MINE.to_json()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("targets = []", "it has no title"),
        ('title = "x"', "it has no targets"),
        ("title = ", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"title": "x", "targets": [{"colour": "red"}]}', "cannot be read: .*colour"),
        ('{"title": "x", "targets": [{"metric": "mrr", "target": 1.5}]}', "outside 0 to 1"),
        (None, "cannot be read: .*No such file"),
    ],
)
def test_a_profile_that_cannot_be_used_is_named_by_its_file(tmp_path, text, said):
    file = tmp_path / "mine.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(DataError, match=said) as caught:
        Goals.of(str(file))
    assert caught.value.file == str(file)


def test_a_shipped_profile_goes_by_its_key_until_somebody_changes_it():
    goals = Goals.of("faq")
    assert (goals.profile, goals.own) == (shipped().profiles["faq"], False)
    assert Goals(shipped().with_profile("faq", MINE), "faq").own
    with pytest.raises(DataError, match=r"no profile 'fax'.*production, faq"):
        Goals.of("fax")
    assert {name: is_file(name) for name in ("a.TOML", "a.json", "json", "a.json.txt")} == {
        "a.TOML": True, "a.json": True, "json": False, "a.json.txt": False,
    }  # fmt: skip


def test_the_limit_of_a_profile_is_that_of_what_is_asked_for():
    assert MINE.limit("per_million_tokens") == Limit("per_million_tokens", 2.0, 1.0)
    assert MINE.limit("p95_ms") == Limit("p95_ms", 300.0)
    assert Profile("x", MINE.targets).limit("p95_ms") is None
    # Equal levels do not rise.
    assert Limit("p95_ms", 300.0, 300.0).excellent == 300.0


def test_a_target_may_be_either_end_of_the_range_of_its_metric_and_is_never_without_end():
    assert Target("mrr", minimum=0.0, excellent=1.0).required == 0.0
    assert Target("dcg@10", target=1e9).required == 1e9
    with pytest.raises(DataError, match="outside 0 to inf"):
        Target("dcg@10", target=math.inf)
    with pytest.raises(DataError, match="outside 0 to 1"):
        Target("mrr", minimum=-0.01)


def test_the_measure_of_a_profile_exists():
    target = Target("mrr", target=0.5)
    assert Profile("p", (target,), measure="ndcg@10").measure == "ndcg@10"
    with pytest.raises(SpecError, match="ndcg@10"):
        Profile("p", (target,), measure="ndgc@10")
