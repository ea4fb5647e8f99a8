"""Targets: shipped ones are complete, broken ones are refused, and a mean is compared with them."""

import math

from rankdash.core.value.targets import (
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
from tests.approved import masked
from tests.results import result, results, several

# The parser's message depends on the version of Python.
PARSER = r"(?<=cannot be read: )(Invalid|Expecting)[^.]*"
TIERS = Target("mrr", minimum=0.5, target=0.7, excellent=0.8)
MRR = Target("mrr", target=0.5)
BANDS = Band(("ndcg",), (Grade("poor", 0.0, ""), Grade("good", 0.5, "")))
MINE = Profile(
    "Größe",
    (Target("ndcg@10", minimum=0.2), MRR),
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
SAVED = '{"source": "s", "profiles": {"p": {"title": "t", "targets": [%s]}}, "bands": []}'


def judged(target: Target, *reached: float):
    found = judge(target, Reached(*reached), shipped())
    assert (found.band == "") == (not reached[1:]), "of too few queries nothing is said"
    return found.status, found.excellent, found.band, found.advice


def banded(spec: str, value: float):
    band = shipped().band(spec)
    return band and band.grade(value)


SHIPPED = {
    **{key: lambda key=key: shipped().profiles[key] for key in shipped().profiles},
    "source": lambda: shipped().source,
    **{f"{name} is a file": is_file(name) for name in ("a.TOML", "a.json", "json", "a.json.txt")},
}
CASES = {
    **{
        f"{spec} of {value}": lambda spec=spec, value=value: banded(spec, value)
        for spec, value in (
            ("ndcg@10", 0.49), ("ndcg@10", 0.5), ("precision@5", 0.7), ("ndcg", 0.86),
            ("recall@5", 0.59), ("recall@5", 0.75), ("mrr@10", 0.39), ("mrr", 0.4), ("mrr", 0.8),
            ("rbp@10", 0.5),
        )
    },
    **{
        f"a band from 0.5 of {value}": lambda value=value: BANDS.grade(value).name
        for value in (0.5, 0.5 - 5e-10, 0.5 - 2e-9, 0.0, 1.0)
    },
    **{
        f"tiers of {reached}": lambda reached=reached: judged(TIERS, *reached)
        for reached in (
            (0.6, 0.55, 0.65), (0.6, 0.5, 0.7), (0.75, 0.7, 0.8), (0.75, 0.1 * 7, 0.8),
            (0.75, 0.69, 0.8), (0.85, 0.8, 0.9), (0.85,), (0.6, 0.55, 0.65, 0.69),
            (0.6, 0.55, 0.65, 0.7), (math.nan,),
            # A value that is printed as the target meets it.
            (0.75, 0.7 - 5e-10, 0.8), (0.75, 0.7 - 5e-9, 0.8), (0.6, 0.5, 0.7 - 5e-10),
            (0.6, 0.5, 0.7 - 5e-9), (0.6, 0.5, 0.65, 0.7 - 5e-10), (0.6, 0.5, 0.65, 0.7 - 5e-9),
        )
    },
    **{
        f"only {name}, {reached}": lambda name=name, reached=reached: judged(
            Target("P@5", **{name: 0.5}), *reached
        )
        for name in ("minimum", "excellent") for reached in ((0.45, 0.4, 0.49), (0.6, 0.5, 0.7))
    },
    # Below its target every band but the highest has advice; at the target an undecided mean has
    # none.
    **several(
        "ndcg at least {} of {}",
        lambda target, value: judged(Target("ndcg@10", target=target), value, 0.1, 0.95, 1.0),
        ((0.6, 0.599), (0.6, 0.6), (0.6, 0.65), (0.9, 0.45), (0.9, 0.6), (0.9, 0.75), (0.9, 0.86)),
    ),
    "no bands": lambda: judge(
        Target("hit@3", target=0.9), Reached(0.95, 0.92, 0.98), shipped()
    ),
    **several(
        "{} with {}",
        lambda metric, levels: ((found := Target(metric, **levels)).metric, found.required),
        (
            ("mrr", {}), ("mrr", {"target": 1.2}), ("mrr", {"target": math.nan}),
            ("mrr", {"minimum": 0.8, "target": 0.7}), ("mrr", {"minimum": 0.8, "excellent": 0.7}),
            ("mrr", {"minimum": 0.0, "excellent": 1.0}), ("mrr", {"minimum": -0.01}),
            ("dcg@10", {"target": 1e9}), ("dcg@10", {"target": math.inf}),
            ("P@5", {"minimum": 0.5}), ("ndgc@10", {"target": 0.5}),
        ),
    ),
    **{
        f"limit {each}": lambda each=each: Limit(*each)
        for each in (("p50_ms", 5.0, None), ("p95_ms", 0.0, None), ("p95_ms", 300.0, 500.0),
                     ("p95_ms", 300.0, 300.0))
    },
    "no title": lambda: Profile(" ", (MRR,)),
    "two targets": lambda: Profile("p", (MRR, Target("RR", target=0.6))),
    "its measure": lambda: Profile("p", (MRR,), measure="ndcg@10"),
    "no measure": lambda: Profile("p", (MRR,), measure="ndgc@10"),
    **several(
        "bands from {}",
        lambda starts: Band(("mrr",), tuple(Grade("g", start, "") for start in starts)),
        ((), (0.1,), (0.0, 0.5, 0.5), (0.0, 0.7, 0.6), (0.0, 0.5)),
    ),
    **{
        f"saved: {text}": lambda text=text: Targets.from_json(text)
        for text in ("", "{", "[]", "{}", '{"source": "s", "profiles": [], "bands": []}',
                     SAVED % '{"spec": "mrr"}', SAVED % '{"metric": "mrr", "target": "high"}')
    },
    "broken TOML": lambda: Targets.from_toml("[profiles"),
    **several("the limit of {}", lambda what: MINE.limit(what), ("per_million_tokens", "p95_ms")),
    "no limit": lambda: Profile("x", MINE.targets).limit("p95_ms"),
    "no such profile": lambda: Goals.of("fax"),
}  # fmt: skip


def test_what_is_shipped_how_a_mean_is_judged_and_what_is_refused(approved):
    approved("value/shipped_targets", results(SHIPPED))
    approved("value/targets", results(CASES))


def test_edits_make_new_targets_and_travel_as_text():
    key, old = next(iter(shipped().profiles.items()))
    edited = shipped().with_profile("mine", MINE).with_profile(key, MINE)
    assert "mine" not in shipped().profiles and shipped().profiles[key] == old
    assert list(edited.profiles) == [*shipped().profiles, "mine"]
    assert edited.profiles[key] == edited.profiles["mine"] == MINE
    for each in (edited, shipped()):
        assert Targets.from_json(each.to_json()) == each
    assert MINE.specs() == ("ndcg@10", "mrr")


def test_a_profile_of_ones_own_is_read_from_its_file_or_named_by_it(tmp_path, approved):
    file = tmp_path / "mine.toml"
    broken = {"missing": result(lambda: Goals.of(str(file)))}
    for name, text in (
        ("mine.json", MINE.to_json()),
        ("MINE.JSON", "\ufeff\n  " + MINE.to_json()),
        ("mine.toml", AS_TOML),
        ("mine.toml", "\ufeff" + AS_TOML),
        # The format is detected by the content.
        ("mine.toml", MINE.to_json()),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        goals = Goals.of(str(tmp_path / name))
        assert (goals.profile, goals.own) == (MINE, True)
        assert goals.targets.bands == shipped().bands
    assert "Größe" in MINE.to_json()
    for text in (
        "targets = []",
        'title = "x"',
        "title = ",
        "[]",
        '{"title": "x", "targets": [{"colour": "red"}]}',
        '{"title": "x", "targets": [{"metric": "mrr", "target": 1.5}]}',
    ):
        file.write_text(text)
        broken[text] = result(lambda: Goals.of(str(file)))
    found = {name: text.replace(str(file), "mine.toml") for name, text in broken.items()}
    approved("value/broken_targets", masked(results(found), parser=PARSER))


def test_a_shipped_profile_goes_by_its_key_until_somebody_changes_it():
    goals = Goals.of("faq")
    assert (goals.profile, goals.own) == (shipped().profiles["faq"], False)
    assert Goals(shipped().with_profile("faq", MINE), "faq").own
