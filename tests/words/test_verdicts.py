"""Texts of verdicts, methods and estimates: certainty, number of queries, and missing data."""

import math
from dataclasses import replace

import pandas as pd

from rankdash.core.base.rules import Setting, StatisticsSettings
from rankdash.core.metrics import Conventions
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.sampling.status import LabelStatus
from rankdash.core.statistics.verdict import TITLES
from rankdash.core.study.costs import choices
from rankdash.core.words import labelling, methods, verdicts
from tests.study.best_or_worst import best_or_worst

nan, inf = math.nan, math.inf


def facts(column: str, **changes: float) -> list[str]:
    usual = {"delta": 0.1, "delta_low": 0.05, "delta_high": 0.2, "p": 0.012, "p_corrected": 0.036}
    usual |= {"helped": 3, "same": 1, "hurt": 2, "planned_level": 0.975}
    return verdicts.change_facts(pd.Series(usual | changes), StatisticsSettings(), column)


def test_a_change_has_its_interval_and_both_its_p(texts):
    ends = [(-0.5, 0.25), (0.5, 0.5), (0.5, 0.5 + 1e-13), (0.5, 0.5 + 1e-9)]
    ends += [(nan, 0.1), (0.1, nan), (0.1, inf)]
    ps = [0.000_049_9, 0.000_05, 0.000_099, 0.0123, 1.0, nan]
    texts(
        "verdict_facts",
        {
            "both p": facts("p_corrected"),
            "both alike": facts("p_corrected", p=0.036),
            "one comparison is not corrected": facts("p_corrected", p=0.036, planned_level=0.95),
            "the p itself": facts("p"),
            "neither interval nor p": facts("p", delta_low=nan, delta_high=nan, p=nan),
            "a p is less only if its four decimals are zeros": [
                (p, verdicts.p_value(p)) for p in ps
            ],
            "intervals": [
                (*each, verdicts.interval(*each), verdicts.change_interval(*each)) for each in ends
            ],
            "chips": [(kind, verdicts.chip(kind)) for kind in ("baseline", *TITLES)],
        },
    )


def test_the_methods_are_those_of_the_settings_in_force(texts):
    usual, chosen = (
        dict(methods.methods(StatisticsSettings(**each), corrected=corrected))
        for each, corrected in (
            ({}, False),
            ({"interval": "bca", "level": 0.9, "resamples": 500, "worthwhile": 0.02}, True),
        )
    )
    changed = {f"{title}, chosen": said for title, said in chosen.items() if said != usual[title]}
    intervals = {
        each: methods.methods(StatisticsSettings(interval=each), corrected=False)[0][1]
        for each in ("t", "skew-t", "percentile")
    }
    texts("methods", usual | changed | intervals)
    said = list(usual.values())[5]
    order = ["failed", "no_relevant_label", "already_ideal", "idle", "near_tie", "truncated"]
    places = [said.index(verdicts.reason_words()[each]) for each in order]
    assert places == sorted(places)


def setting(default: object, **more: object) -> Setting:
    return Setting("x", default, "X", "", **({"unset": "taken from the labels"} | more))


def test_the_options_of_a_setting_begin_with_what_goes_without_saying(texts):
    cases = {"a switch": (True, ()), "a number": (1.0, (3.0, 0.5)), "none": (None, (2.0,))}
    cases |= {"a count": (5, (10, 5)), "in force though not offered": (1.0, (0.25,))}
    chosen = StatisticsSettings(worthwhile=0.25, resamples=500)
    texts(
        "settings",
        {
            name: list(methods.options_of(setting(default), numbers).items())
            for name, (default, numbers) in cases.items()
        }
        | {
            "choices": list(methods.options_of(setting(None, choices={"a": "A"}), ()).items()),
            "in force": [
                (*rule, meaning)
                for rule, meaning in zip(
                    methods.rules_in_words(Conventions(), chosen),
                    methods.rule_meanings(Conventions()),
                    strict=True,
                )
            ],
        },
    )  # fmt: skip


FOUND = Estimate(
    baseline="BM25", challenger="MiniLM", metric="dcg@10", state="open", difference=0.25,
    low=-0.1, high=0.6, like_these_low=nan, like_these_high=nan, level=0.95, queries=60,
    labels=200, waiting=0, known=30, pairs=961, needed=180, saved=None,
)  # fmt: skip


def test_an_estimate_says_from_how_many_labels_it_is(texts):
    shares = {"relative": 0.273, "relative_low": 0.0016, "relative_high": 0.84}
    settled = {"state": "settled", "low": 0.1}
    losing = {"state": "settled", "difference": -0.25, "low": -0.6, "high": -0.1}
    cases = {
        "open": {},
        "open, as a share of the baseline": shares,
        "open, of queries like these": {"like_these_low": -0.2, "like_these_high": 0.7},
        "better": settled,
        "better since an earlier label": settled | {"conclusive_at": 57},
        "worse": losing,
        "complete": {"state": "complete", "labels": 931} | shares,
        "complete, worse": {"state": "complete", "difference": -0.25},
        "complete, the same": {"state": "complete", "difference": 0.0},
        "too early": {"state": "too_early", "difference": nan},
    }
    free, dear = choices(best_or_worst(6, "precision@3", bool, lambda _at: True))
    loss = replace(dear, outcome=replace(dear.outcome, net_per_month=replace(
        dear.outcome.net_per_month, value=0.0)))  # fmt: skip

    def said(changes: dict[str, object]) -> list[object]:
        found = replace(FOUND, **changes)
        status = LabelStatus("weight", (found,), 0, (), (), nan)
        steps = [
            labelling.estimate_step(status, found, choice, priced)
            for choice, priced in ((free, False), (free, True), (loss, True), (dear, True))
        ]
        return [
            labelling.estimate_chip(found),
            *labelling.estimate_sentences(found),
            *labelling.estimate_risks(found),
            *dict.fromkeys(steps),
        ]

    texts("estimates", {name: said(changes) for name, changes in cases.items()})


def test_the_effort_is_that_of_the_comparison_that_needs_most(texts):
    def effort(*needed: int | None, seconds: float = nan, mode: str = "weight", **more) -> str:
        found = tuple(replace(FOUND, needed=each, **more) for each in needed)
        return labelling.effort_sentence(LabelStatus(mode, found, 0, (), (), seconds))

    bounded = tuple(
        replace(FOUND, needed=n, needed_most=most) for n, most in ((180, 500), (20, 90))
    )
    status = LabelStatus("weight", (), 0, (), (), nan)
    saved = [(n, labelling.saved_sentence(n)) for n in (1, 1200, -1, -3)]
    texts(
        "effort",
        {
            "many labels, and how long": effort(180, seconds=10.0),
            "one label": effort(1),
            "all that are left": effort(731),
            "one label is left": effort(1, labels=930),
            "none": effort(0, 0, seconds=10.0),
            "one is not known": effort(20, None, seconds=10.0),
            "one is not known, of whole queries": effort(None, mode="query"),
            "so few documents that it is all of them": effort(None, None, pairs=50),
            "one document more": effort(None, pairs=51),
            "a bound below all that are left": labelling.effort_sentence(
                replace(status, estimates=bounded)),
            "a bound of all that are left": effort(180, needed_most=731),
            "what a judge saves as the guess": saved,
            "sampled for other rankings": labelling.labelling_sentences(status),
            "sampled": labelling.labelling_sentences(
                replace(status, estimates=(replace(FOUND, saved=9),))),
        },
    )  # fmt: skip
