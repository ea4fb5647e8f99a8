"""Cost and return: each system at its price, what a search of it sends, and what it comes to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.measured import meets
from rankdash.core.metrics import parse_measure
from rankdash.core.rerankers import kinds
from rankdash.core.runs import combining
from rankdash.core.runs.results import MeasuredLoad
from rankdash.core.statistics.comparison import Comparison, compare
from rankdash.core.statistics.inference import intervals, relative_interval
from rankdash.core.statistics.verdict import Kind, Verdict, relative_change
from rankdash.core.study import headroom, latency
from rankdash.core.study.cache import Key, part
from rankdash.core.study.judged import JudgedVerdict, headline
from rankdash.core.study.labelling import estimate_of, first_stage_kind, only_estimates
from rankdash.core.study.latency import OnTarget, on_target, timed_by
from rankdash.core.study.pricing import Bill, Waiting, bill, load, priced, waiting
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import DOLLARS, Assumptions
from rankdash.core.value.depth import Cuts, DepthCurve, depth_curve, depths_for, latency_at
from rankdash.core.value.payoff import (
    NO_CHANGE,
    Gain,
    MeasuredChange,
    Option,
    Outcome,
    Proof,
    equal_recall_depth,
    only_from_set,
    outcome,
)
from rankdash.core.value.prices import title as price_title
from rankdash.core.value.targets import Goals, Limit, Reached, Status, TargetRow, judge

BASELINE = "baseline"


@dataclass(frozen=True)
class Choice:
    """One option as it is shown.

    system: id of the ranking; "" for a price alone. bill: None for no reranker. verdict: on the
        change of the metric, under the names of the systems; None where nothing was compared, or
        the labels were sampled.
    valued: whether the user set what a search is worth. example_values: whether examples stand in
        for what the user did not set.
    passages: how many reranked passages hold as much recall as an LLM is given now; None where no
        number of them surely does, or no LLM is asked about.
    """

    option: Option
    came: Outcome
    system: str
    bill: Bill | None
    load: MeasuredLoad
    waiting: Waiting
    passages: int | None = None
    verdict: Verdict | None = None
    valued: bool = False
    example_values: bool = False

    @property
    def name(self) -> str:
        return self.option.name

    @property
    def example(self) -> bool:
        """Whether nobody set its price: it is an example that comes with rankdash."""
        return self.bill is not None and self.bill.example

    @property
    def unset(self) -> bool:
        """Whether the user did not set what it costs."""
        return self.bill is not None and self.bill.unset

    @property
    def lacks_value(self) -> bool:
        """Whether price or value of a search is not set, so that no value, net or return is
        shown."""
        return not (self.valued and not self.unset) and not self.demonstrated

    @property
    def demonstrated(self) -> bool:
        """Whether its value, net and return rest on example values."""
        known = self.bill is None or not self.bill.lack
        return self.example_values and known and (self.unset or not self.valued)

    def under(self, assumptions: Assumptions, gain: Gain | None, *, valued: bool) -> Outcome:
        """Return what it comes to in another scenario. valued: whether the user set what a search
        is worth there."""
        came = outcome(replace(self.option, gain=gain), assumptions)
        known = self.bill is None or not self.bill.lack
        example = self.example_values and known
        return only_from_set(came, price=example or not self.unset, value=example or valued)


def choices(study: Study) -> list[Choice]:
    """The baseline as it is; every challenger at its price; then the prices to be shown alone."""
    money = study.money or Money()
    base = load(study, study.baseline)
    choices = [_unranked(study.name(study.baseline), base, money)]
    choices += [_of(study, system, money) for system in study.challengers]
    deepest, waited = choices[-1].load, Waiting(None, None)
    return choices + [
        _choice("", price_title(each), priced(each, deepest, waited, money), waited, None, money)
        for each in money.also
    ]


def _unranked(name: str, load: MeasuredLoad, money: Money) -> Choice:
    """The baseline as it is, which costs nothing and gains nothing."""
    free = Option(_("No reranker: {name}", name=name), 0.0, Gain(NO_CHANGE), free=True)
    came = outcome(free, money.assumptions)
    return Choice(free, came, BASELINE, None, load, Waiting(0.0, 0.0), valued=True)


def _of(study: Study, system: str, money: Money) -> Choice:
    system_bill, waited = bill(study, system), waiting(study, system)
    if system_bill is None:
        system_bill = Bill(None, load(study, system), money.currency)
    passages = int(money.assumptions.passages)
    estimated = only_estimates(study)
    measured = passages >= 1 and not estimated
    enough = equal_recall(study, system, passages) if measured else None
    made = _choice(
        system, study.name(system), system_bill, waited, gain(study, system), money, enough
    )
    if estimated:
        return made
    return replace(made, verdict=study.comparison.verdict(system, study.spec, study.names))


def _choice(
    system: str,
    name: str,
    bill: Bill,
    waited: Waiting,
    gained: Gain | None,
    money: Money,
    passages: int | None = None,
) -> Choice:
    """A system at what it costs; without a system (""), a price alone."""
    cost = None if bill.lack else bill.beside_machines
    option = Option(
        name=name,
        cost_per_search=None if cost is None else cost / 1000,
        machines=bill.machines if cost is not None else (),
        gain=gained,
        extra_ms=waited.p50,
        passages_after=passages,
    )
    made = Choice(
        option,
        outcome(option, money.assumptions),
        system,
        bill,
        bill.load,
        waited,
        passages,
        valued=money.valued,
        example_values=money.example,
    )
    return replace(made, came=made.under(money.assumptions, gained, valued=money.valued))


def system_of(study: Study, choice: Choice) -> str | None:
    """The ranking of an option; None for a price alone."""
    return study.baseline if choice.system == BASELINE else choice.system or None


@part("labels", "baseline", "conventions", "statistics")
def equal_recall(study: Study, system: str, passages: int) -> int | None:
    """The fewest reranked passages whose recall is, to the lower confidence limit, at least that of
    the first `passages` of the baseline; None where none is."""
    specs = tuple(f"recall@{k}" for k in range(1, passages + 1))
    before, after = (study.evaluate(each, specs) for each in (study.baseline, system))
    values = after.values
    if not len(values) or np.isnan(values).all():
        return None
    low, _high = intervals(values, study.statistics)
    limits = {measure.k or 0: float(low[at]) for at, measure in enumerate(after.measures)}
    return equal_recall_depth(limits, before.mean(before.measures[-1]))


def listwise(study: Study, system: str) -> bool:
    """Whether the scores of a run depend on which documents were scored together."""
    run = study.run(system)
    if run is None:
        return False
    if run.reranker == combining.KIND:
        return True
    return any(
        each.name == run.reranker and each.capabilities.scope == "listwise" for each in kinds()
    )


@dataclass(frozen=True, eq=False)
class Depths:
    """A depth curve with the p95 latency in ms at each of its depths (NaN where unknown)."""

    curve: DepthCurve
    p95: tuple[float, ...]


def depths(study: Study, system: str) -> Depths | None:
    """None for the first stage. Raises DataError where the run does not rank the candidates of the
    data set."""
    return None if study.run(system) is None else _depths(study, timed_by(study, system))


# The other systems and metrics count for the correction of the verdict.
@part("labels", "chosen", "metric", "metrics", "conventions", "statistics")
def _depths(study: Study, timed: Key) -> Depths | None:
    system, data = str(timed[0]), study.dataset
    run = study.run(system)
    if run is None:
        return None
    cuts = Cuts(run.ranking, data.candidates)
    curve = depth_curve(
        cuts,
        data.candidates,
        data.qrels,
        study.spec,
        study.conventions,
        depths_for(cuts.deepest, run.depth),
        study.excluded(system),
        study.statistics,
        full_gain_proven=first_stage_kind(study, system) in ("better", "small"),
    )
    at = (latency_at(run.queries, int(each)) if each else 0.0 for each in curve.table["depth"])
    return Depths(curve, tuple(at))


# What a system gains, as the verdict has it: what its value is worked out from.

_PROOFS: Mapping[str, Proof] = {
    "better": "proven",
    "small": "proven",
    "worse": "proven",
    "identical": "same",
    "unproven": "unproven",
}
"""Kind of verdict → what it proves. Any other kind, such as too few queries, leaves no change that
money could be worked out from."""


def verdict_kind(study: Study, challenger: str) -> Kind:
    """The kind of the verdict that counts: the corrected one if there is one, else the kind by
    people's labels."""
    verdict = headline(study, challenger)
    by_people: Kind = study.comparison.row(challenger, study.spec)["verdict"]
    return by_people if verdict is None else verdict.kind


def is_known(study: Study, system: str) -> bool:
    """Whether the measured change can be put to a value, as `gain` has it."""
    if only_estimates(study):
        return _estimated(study, system) is not None
    verdict = headline(study, system)
    if verdict is not None:
        return _corrected(verdict) is not None
    row = study.comparison.row(system, study.spec)
    return row["verdict"] in _PROOFS and not np.isnan(row["relative_delta"])


def gain(study: Study, system: str) -> Gain | None:
    """The change of the study's metric as a share of the baseline's mean, and the change of hit@k.

    Interval and proof are those of the verdict. That of the relative change is of the same draws
    (`inference.relative_interval`), so that both have one sign, and both exclude 0 or neither does.

    If the labels were sampled, the change is the estimate, and that of hit@k is not known. If the
    study has a judge that labels correct, both changes are the corrected ones.

    None where the baseline's mean is 0 or next to nothing, too few queries can be compared or the
    metric is not one of quality.
    """
    if only_estimates(study):
        return _estimated(study, system)
    verdict = headline(study, system)
    if verdict is not None:
        return _judged(study, verdict)
    if not is_known(study, system):
        return None
    row = study.comparison.row(system, study.spec)
    hit = hits(study, system)
    relative = _measured(row, row["relative_delta"], _relative_interval(study, system))
    return Gain(
        relative,
        _measured(hit, hit["delta"], (hit["delta_low"], hit["delta_high"])),
        int(row["paired"]),
    )


def _estimated(study: Study, system: str) -> Gain | None:
    estimate = estimate_of(study, system)
    if estimate is None or not np.isfinite(estimate.relative):
        return None
    proof: Proof = "proven" if estimate.settled else "unproven"
    change = MeasuredChange(estimate.relative, estimate.relative_low, estimate.relative_high, proof)
    labels = estimate.labels + estimate.known
    return Gain(change, MeasuredChange(0.0), estimate.queries, labels=labels)


def _judged(study: Study, verdict: JudgedVerdict) -> Gain | None:
    relative = _corrected(verdict)
    if relative is None:
        return None
    measure = parse_measure(hit_spec(study.cutoff))
    hit = headline(replace(study, metric=measure.metric.name, cutoff=measure.k), verdict.challenger)
    change = MeasuredChange(0.0) if hit is None else _changed(hit, 1.0)
    return Gain(relative, change, verdict.three.corrected.n, verdict.judge)


def _corrected(verdict: JudgedVerdict) -> MeasuredChange | None:
    """The change of a corrected verdict as a share of the baseline's mean; None without one."""
    known = np.isfinite(relative_change(verdict.three.corrected.mean, verdict.before))
    return _changed(verdict, verdict.before) if known else None


def _changed(verdict: JudgedVerdict, unit: float) -> MeasuredChange:
    change = verdict.three.corrected
    ends = change.low / unit, change.high / unit
    return MeasuredChange(change.mean / unit, *ends, _PROOFS[verdict.kind])


@part("labels", "baseline", "metric", "conventions", "statistics")
def _relative_interval(study: Study, system: str) -> tuple[float, float]:
    pairs = study.pairs(system)
    before, change = (pairs[each].to_numpy(dtype=np.float64) for each in ("before", "delta"))
    both = ~np.isnan(before) & ~np.isnan(change)
    return relative_interval(before[both], change[both], study.statistics)


def _measured(row: pd.Series, value: float, interval: tuple[float, float]) -> MeasuredChange:
    """A change with the proof that a row of a comparison has."""
    if row["verdict"] not in _PROOFS:
        return MeasuredChange(0.0)
    low, high = map(float, interval)
    proof = _PROOFS[row["verdict"]]
    known = np.isfinite(low) and np.isfinite(high)
    return (
        MeasuredChange(float(value), low, high, proof)
        if known
        else MeasuredChange(float(value), proof=proof)
    )


def hits(study: Study, system: str) -> pd.Series:
    """The row of a comparison that has the change of the hit rate."""
    return _hits(study).row(system, hit_spec(study.cutoff))


def _hits(study: Study) -> Comparison:
    """The comparison that has the hit rate: the study's own, else one of it alone."""
    spec = hit_spec(study.cutoff)
    return study.comparison if spec in study.specs else _compared_by(study, spec)


@part("labels", "chosen", "conventions", "statistics")
def _compared_by(study: Study, spec: str) -> Comparison:
    evaluations = {system: study.evaluate(system, (spec,)) for system in study.chosen}
    return compare(evaluations, study.baseline, study.statistics)


def hit_spec(cutoff: int | None) -> str:
    """The hit rate that tickets and working time hang on."""
    return f"hit@{cutoff or 10}"


def hit_title(study: Study) -> str:
    """What that hit rate is called."""
    return parse_measure(hit_spec(study.cutoff)).title


# The systems of a study beside the targets of a profile: what is met, by the interval, and what
# these labels and candidates allow at most.


def target_rows(study: Study, system: str, goals: Goals) -> tuple[TargetRow, ...]:
    """A row for each target and each limit of the profile."""
    reached = figures(study, system, goals.profile.specs())
    quality = [
        judge(target, reached[target.metric], goals.targets) for target in goals.profile.targets
    ]
    return (*quality, *(_LIMITED[each.what](study, system, each) for each in goals.profile.limits))


@part("labels", "chosen", "conventions", "statistics")
def figures(study: Study, system: str, specs: tuple[str, ...]) -> dict[str, Reached]:
    """Spec → the mean of a system with its interval, and that of the best order of the documents
    over the same queries."""
    if not specs:
        return {}
    evaluation, best = study.evaluate(system, specs), headroom.best_of_all(study, specs)
    low, high = intervals(
        evaluation.values,
        study.statistics,
        possible=tuple(np.array([each.metric.range for each in evaluation.measures]).T),
    )
    places = {query: place for place, query in enumerate(best.query_ids)}
    at = [places[query] for query in evaluation.query_ids]
    most = np.where(
        np.isnan(evaluation.values), np.nan, np.fmax(best.values[at], evaluation.values)
    )
    known = ~np.isnan(most)
    with np.errstate(invalid="ignore"):
        mosts = np.where(known, most, 0.0).sum(axis=0) / known.sum(axis=0)
    return {
        measure.spec: Reached(
            evaluation.mean(measure), float(low[column]), float(high[column]), float(mosts[column])
        )
        for column, measure in enumerate(evaluation.measures)
    }


_ON_TARGET: dict[str, Status] = {
    "meets": "met",
    "misses": "missed",
    "likely": "undecided",
    "unlikely": "undecided",
}


def _timed(study: Study, system: str, limit: Limit) -> TargetRow:
    times = latency.times(study, system)
    p95 = None if times is None else times.summary.p95
    if times is None or p95 is None:
        return TargetRow(limit.what, Reached(math.nan), limit, None)

    def within(target_ms: float) -> OnTarget | None:
        return on_target(
            times.ordered,
            target_ms,
            timed_out=times.apart.timed_out,
            level=study.statistics.level,
        )

    met = within(limit.target)
    best = None if limit.excellent is None else within(limit.excellent)
    return TargetRow(
        limit.what,
        Reached(p95, *times.summary.p95_interval),
        limit,
        None if met is None else _ON_TARGET[met.kind],
        excellent=best is not None and best.kind == "meets",
    )


def _billed(study: Study, system: str, limit: Limit) -> TargetRow:
    """A limit in dollars; a price in another currency says nothing of it, and one that nobody set
    decides nothing."""
    cost = bill(study, system)
    value = None if cost is None else cost.per_million_tokens
    if cost is None or cost.currency != DOLLARS or value is None:
        return TargetRow(limit.what, Reached(math.nan), limit, None)
    example = cost.example
    status: Status = "met" if meets(value, limit.target) else "missed"
    return TargetRow(
        limit.what,
        Reached(value),
        limit,
        "undecided" if example else status,
        excellent=not example and limit.excellent is not None and meets(value, limit.excellent),
        example=example,
    )


_LIMITED = {"p95_ms": _timed, "per_million_tokens": _billed}
