"""Results of `online` as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator

from rankdash.core.base.i18n import number, signed, signed_percent
from rankdash.core.statistics.verdict import TITLES
from rankdash.core.words.verdicts import p_value
from rankdash.features.online.experiment import Experiment
from rankdash.features.online.words import (
    ANYTIME,
    ONE_LOOK,
    digits_for,
    effect_sentence,
    mismatch_sentence,
    preference_sentence,
)
from rankdash.kit.commands.checks import as_json
from rankdash.kit.commands.output import aligned, finding_line, one_line, or_null


def as_text(experiment: Experiment) -> str:
    """Return the effects for a terminal."""
    outcomes = experiment.outcomes
    lines = [f"{sentence}\n" for sentence in _sentences(experiment)]
    if not outcomes.team:
        lines += ["\n", aligned([*_rows(experiment)])]
    if not experiment.refused:
        lines.append(f"\nInterval: {ONE_LOOK if experiment.planned else ANYTIME}.\n")
    return "".join(lines)


def _rows(experiment: Experiment) -> Iterator[list[str]]:
    outcomes, means = experiment.outcomes, experiment.means()
    effects = {each.arm: each for each in experiment.effects()}
    unit = one_line(outcomes.unit_name or "search")
    head = ["arm", f"units ({unit})", "searches", f"{one_line(outcomes.name)} per search"]
    changes = ["change", "low", "high", "relative", "verdict"]
    if experiment.planned:
        changes.insert(-1, "corrected p")
    yield head + changes if effects else head
    places = digits_for(means[experiment.control].value)
    for arm in sorted(outcomes.arms, key=lambda each: each != experiment.control):
        mean = means[arm]
        row = [one_line(arm), f"{mean.units:,}", f"{mean.searches:,}", number(mean.value, places)]
        if arm in effects:
            change = effects[arm].change
            ends = experiment.interval(change)
            row += [signed(each, places) for each in (change.delta, *ends)]
            row.append(signed_percent(change.relative, 1))
            if experiment.planned:
                row.append(p_value(effects[arm].corrected))
            row.append(TITLES[effects[arm].verdict])
        elif effects:
            row += ["–"] * len(changes)
        yield row


def _sentences(experiment: Experiment) -> list[str]:
    if experiment.refused:
        return [one_line(mismatch_sentence(experiment))]
    preference = experiment.preference()
    if preference is not None:
        return [one_line(preference_sentence(experiment, preference))]
    return [one_line(effect_sentence(experiment, each)) for each in experiment.effects()]


def json_of(experiment: Experiment) -> str:
    """Return the effects as JSON, with all digits."""
    outcomes = experiment.outcomes
    preference = experiment.preference()
    content = {
        "outcome": outcomes.name,
        "unit": outcomes.unit_name or "search",
        "control": experiment.control,
        "planned": experiment.planned,
        "level": experiment.settings.level,
        "sample_ratio_p": or_null(experiment.mismatch),
        "refused": experiment.refused,
        "sentences": _sentences(experiment),
        "arms": {
            arm: {name: or_null(value) for name, value in mean._asdict().items()}
            for arm, mean in experiment.means().items()
        },
        "effects": {
            each.arm: {
                **{name: or_null(value) for name, value in each.change._asdict().items()},
                "p_corrected": or_null(each.corrected),
                "verdict": each.verdict,
            }
            for each in experiment.effects()
        },
        "preference": None
        if preference is None
        else {
            **{name: or_null(value) for name, value in preference.change._asdict().items()},
            "first": preference.first,
            "second": preference.second,
            "wins": list(preference.wins),
            "units": preference.units,
            "verdict": preference.verdict,
        },
        "findings": [finding_line(each) for each in experiment.findings],
    }
    return as_json(content)
