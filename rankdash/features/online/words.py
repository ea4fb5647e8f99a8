"""Effects of an online experiment in sentences."""

from __future__ import annotations

import math

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import level_percent, number, percent, signed
from rankdash.core.statistics.clustered import FEWEST_UNITS
from rankdash.core.words.verdicts import p_value
from rankdash.features.online.experiment import MISMATCH, Effect, Experiment, Preference

ANYTIME = "anytime-valid: for any number of looks, also if you stop by the result"
ONE_LOOK = "for one look, at the planned end"
_FEW_DECIDE = (
    "An interval of the change between {arm} and {control} cannot be computed: a few units have "
    "most of the searches or outcomes."
)
_NO_SPREAD = (
    "An interval of the change between {arm} and {control} cannot be computed: the outcomes do not "
    "vary between units."
)


def digits_for(value: float) -> int:
    """Return the number of decimals for a mean: at least three significant digits."""
    if not value or math.isnan(value):
        return 3
    return max(0, min(6, 2 - math.floor(math.log10(abs(value)))))


def effect_sentence(experiment: Experiment, effect: Effect) -> str:
    """Return the effect of an arm in one sentence."""
    before = experiment.means()[experiment.control]
    change = effect.change
    places = digits_for(max(before.value, effect.mean.value))
    low, high = experiment.interval(change)
    texts = {
        "arm": effect.arm,
        "control": experiment.control,
        "outcome": experiment.outcomes.name,
        "before": number(before.value, places),
        "after": number(effect.mean.value, places),
        "change": percent(abs(change.relative), 1),
        "level": level_percent(experiment.settings.level),
        "low": signed(low, places),
        "high": signed(high, places),
    }
    if effect.verdict == "too_few":
        if min(before.units, effect.mean.units) >= FEWEST_UNITS:
            return _(_FEW_DECIDE, **texts)
        return _(
            "Too few units to compare {arm} with {control}: an interval needs at least {fewest} "
            "in each arm.",
            fewest=FEWEST_UNITS, **texts,
        )  # fmt: skip
    if effect.verdict == "identical":
        return _("{arm} and {control} have the same outcomes.", **texts)
    if effect.verdict == "descriptive":
        return _(_NO_SPREAD, **texts)
    if effect.verdict == "unproven" and (low > 0 or high < 0):
        return _(
            "Not proven that {arm} differs from {control}: {outcome} per search goes from {before} "
            "to {after}, with p {p} after correction for several arms.",
            p=p_value(effect.corrected), **texts,
        )  # fmt: skip
    if effect.verdict == "unproven":
        return _(
            "Not proven that {arm} differs from {control}: {outcome} per search goes from {before} "
            "to {after}, but with {level} confidence the true change may be anything between "
            "{low} and {high}.",
            **texts,
        )
    risen = effect.verdict == "better"
    if math.isnan(change.relative):
        return (
            _("{arm} is better than {control}: {outcome} per search rises from {before} to "
              "{after}; with {level} confidence the true change is between {low} and {high}.",
              **texts)
            if risen
            else _("{arm} is worse than {control}: {outcome} per search falls from {before} to "
                   "{after}; with {level} confidence the true change is between {low} and {high}.",
                   **texts)
        )  # fmt: skip
    return (
        _("{arm} is better than {control}: {outcome} per search rises by {change}, from {before} "
          "to {after}; with {level} confidence the true change is between {low} and {high}.",
          **texts)
        if risen
        else _("{arm} is worse than {control}: {outcome} per search falls by {change}, from "
               "{before} to {after}; with {level} confidence the true change is between {low} and "
               "{high}.", **texts)
    )  # fmt: skip


def preference_sentence(experiment: Experiment, preference: Preference) -> str:
    """Return the preference between two interleaved rankings in one sentence."""
    low, high = experiment.interval(preference.change)
    texts = {
        "first": preference.first,
        "second": preference.second,
        "level": level_percent(experiment.settings.level),
        "value": signed(preference.change.delta),
        "low": signed(low),
        "high": signed(high),
        "wins": number(preference.wins[1], 0),
        "other": number(preference.wins[0], 0),
    }
    if preference.verdict == "too_few":
        if preference.units >= FEWEST_UNITS:
            return _(_FEW_DECIDE, arm=preference.second, control=preference.first)
        return _(
            "Too few units with {outcome} to compare {second} with {first}: at least {fewest} are "
            "needed.",
            outcome=experiment.outcomes.name, fewest=FEWEST_UNITS, **texts,
        )  # fmt: skip
    if preference.verdict in ("identical", "descriptive"):
        arms = {"arm": preference.second, "control": preference.first}
        if preference.verdict == "descriptive":
            return _(_NO_SPREAD, **arms)
        return _("{arm} and {control} have the same outcomes.", **arms)
    if preference.verdict == "unproven":
        return _(
            "Not proven that users prefer {second} or {first}: the preference is {value}, but with "
            "{level} confidence the true one may be anything between {low} and {high}.",
            **texts,
        )
    if preference.verdict == "better":
        return _(
            "Users prefer {second} to {first}: it gets {wins} against {other}, a preference of "
            "{value}; with {level} confidence the true one is between {low} and {high}.",
            **texts,
        )
    return _(
        "Users prefer {first} to {second}: it gets {other} against {wins}, a preference of "
        "{value} for {second}; with {level} confidence the true one is between {low} and {high}.",
        **texts,
    )


def mismatch_sentence(experiment: Experiment) -> str:
    """Return why no effect is shown: the arms do not have their planned sizes."""
    sizes = ", ".join(
        f"{arm} {number(float(units), 0)} ({percent(float(share), 1)})"
        for arm, units, share in zip(
            experiment.outcomes.arms, experiment.units, experiment.shares, strict=True
        )
    )
    return _(
        "No effect is shown: the arms do not have their planned sizes (p {p}, below {limit}). "
        "Units and planned share of each arm: {sizes}. Find out why units are missing: they are "
        "hardly missing by chance.",
        p=p_value(experiment.mismatch), limit=MISMATCH, sizes=sizes,
    )  # fmt: skip
