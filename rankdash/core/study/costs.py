"""Cost and return of each system: its price, the load of a search, and the outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.measured import meets
from rankdash.core.data.ranking import RETRIEVAL, SOURCE, Run
from rankdash.core.metrics import parse_measure
from rankdash.core.rerankers import kinds
from rankdash.core.runs import combining
from rankdash.core.runs.results import MeasuredLoad
from rankdash.core.statistics.alignment import weights_in
from rankdash.core.statistics.comparison import Comparison, compare
from rankdash.core.statistics.inference import intervals, relative_interval
from rankdash.core.statistics.verdict import Kind, Verdict, is_in_sample, relative_change
from rankdash.core.study import headroom, latency
from rankdash.core.study.cache import Key, part
from rankdash.core.study.judged import JudgedVerdict, headline
from rankdash.core.study.labelling import estimate_of, first_stage_kind, only_estimates
from rankdash.core.study.latency import OnTarget, on_target, timed_by
from rankdash.core.study.pricing import Bill, Waiting, bill, load, priced, waiting
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import DOLLARS, Assumptions
from rankdash.core.value.depth import Cuts, DepthCurve, curve_of, depths_for, latency_at
from rankdash.core.value.depth import depth_values as values_by_depth
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
    """One option of the cost comparison.

    system: id of the ranking; "" for a price without a system. bill: None for no reranker. verdict:
        on the change of the metric, with the names of the systems; None if nothing was compared, or
        the labels were sampled.
    valued: whether the user set the value of a search. example_values: whether examples replace
        values that the user did not set.
    passages: how many reranked passages reach the recall of the passages that an LLM receives now;
        None if no number of them is certain to reach it, or no LLM is configured.
    """

    option: Option
    outcome: Outcome
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
        """True if the price is an example that comes with rankdash."""
        return self.bill is not None and self.bill.example

    @property
    def unset(self) -> bool:
        """True if the user did not set the price."""
        return self.bill is not None and self.bill.unset

    @property
    def lacks_value(self) -> bool:
        """True if the price or the value of a search is not set, so that no value, net or return
        is shown."""
        return not (self.valued and not self.unset) and not self.demonstrated

    @property
    def demonstrated(self) -> bool:
        """True if value, net and return use example values."""
        has_price = self.bill is None or not self.bill.lack
        return self.example_values and has_price and (self.unset or not self.valued)

    def under(self, assumptions: Assumptions, gain: Gain | None, *, valued: bool) -> Outcome:
        """Return the outcome in another scenario. valued: whether the user set the value of a
        search there."""
        result = outcome(replace(self.option, gain=gain), assumptions)
        has_price = self.bill is None or not self.bill.lack
        example = self.example_values and has_price
        return only_from_set(result, price=example or not self.unset, value=example or valued)


def choices(study: Study) -> list[Choice]:
    """Return the options: the baseline, every challenger at its price, then the prices that are
    shown without a system."""
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
    """Return the option without a reranker, with cost 0 and gain 0."""
    free = Option(_("No reranker: {name}", name=name), 0.0, Gain(NO_CHANGE), free=True)
    result = outcome(free, money.assumptions)
    return Choice(free, result, BASELINE, None, load, Waiting(0.0, 0.0), valued=True)


def _of(study: Study, system: str, money: Money) -> Choice:
    system_bill, waited = bill(study, system), waiting(study, system)
    if system_bill is None:
        system_bill = Bill(None, load(study, system), money.currency)
    passages = int(money.assumptions.passages)
    estimated = only_estimates(study)
    measured = passages >= 1 and not estimated
    enough = equal_recall(study, system, passages) if measured else None
    choice = _choice(
        system, study.name(system), system_bill, waited, gain(study, system), money, enough
    )
    if estimated:
        return choice
    return replace(choice, verdict=study.comparison.verdict(system, study.spec, study.names))


def _choice(
    system: str,
    name: str,
    bill: Bill,
    waited: Waiting,
    gained: Gain | None,
    money: Money,
    passages: int | None = None,
) -> Choice:
    """Return an option to compare: a system at its price, or only a price (system "")."""
    cost = None if bill.lack else bill.beside_machines
    option = Option(
        name=name,
        cost_per_search=None if cost is None else cost / 1000,
        machines=bill.machines if cost is not None else (),
        gain=gained,
        extra_ms=waited.p50,
        passages_after=passages,
    )
    choice = Choice(
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
    return replace(choice, outcome=choice.under(money.assumptions, gained, valued=money.valued))


def system_of(study: Study, choice: Choice) -> str | None:
    """Return the id of the system of an option; None for a price that belongs to none."""
    return study.baseline if choice.system == BASELINE else choice.system or None


@part("labels", "baseline", "conventions", "statistics")
def equal_recall(study: Study, system: str, passages: int) -> int | None:
    """Return the smallest number of reranked passages whose recall (lower confidence limit) is at
    least the recall of the baseline's first `passages`; None if no number is enough."""
    specs = tuple(f"recall@{k}" for k in range(1, passages + 1))
    before, after = (study.evaluate(each, specs) for each in (study.baseline, system))
    values = after.values
    if not len(values) or np.isnan(values).all():
        return None
    low, _high = intervals(values, study.rules(system), weights=after.weights)
    limits = {measure.k or 0: float(low[at]) for at, measure in enumerate(after.measures)}
    return equal_recall_depth(limits, before.mean(before.measures[-1]))


def listwise(study: Study, system: str) -> bool:
    """Return whether the scores of a run depend on which documents were scored together."""
    run = study.run(system)
    if run is None:
        return False
    if run.reranker == combining.KIND:
        return True
    return any(
        each.name == run.reranker and each.capabilities.scope == "listwise" for each in kinds()
    )


def refuse_other_candidates(run: Run) -> None:
    """Raise DataError if a run does not rerank the first stage's candidates, although comparisons
    with depth, deadline or floor would need that."""
    source = run.settings.get(SOURCE)
    if source or run.reranker == RETRIEVAL:
        raise DataError(
            "This run reranks the candidates of {source}. A policy can be chosen only for the "
            "candidates of the first stage."
            if source
            else "This is a retrieval. A policy can be chosen only for a reranker.",
            remedy="Choose a run of a reranker over the first stage of this data set.",
            source=source,
        )


def refuse_weights(study: Study) -> None:
    """Raise DataError if means are per search, for policies and depth curves."""
    if study.conventions.weighted:
        raise DataError(
            "Depth curves and policies are computed per query, not per search.",
            remedy="Use the weights “per query” (--weights).",
        )


@dataclass(frozen=True, eq=False)
class Depths:
    """A depth curve with the p95 latency in ms at each of its depths (NaN if unknown)."""

    curve: DepthCurve
    p95: tuple[float, ...]


def depths(study: Study, system: str) -> Depths | None:
    """Return the depth curve of a run; None for the first stage.

    Raises DataError if the run does not rank the candidates of the data set, or ranks the
    candidates of a retrieval run.
    """
    return None if study.run(system) is None else _depths(study, timed_by(study, system))


# The correction of the verdict depends on the other systems and metrics.
@part("labels", "chosen", "metric", "metrics", "conventions", "statistics")
def _depths(study: Study, timed: Key) -> Depths | None:
    system = str(timed[0])
    run = study.run(system)
    if run is None:
        return None
    refuse_other_candidates(run)
    refuse_weights(study)
    curve = curve_of(
        depth_values(study, system),
        study.measure,
        study.rules(system),
        full_gain_proven=first_stage_kind(study, system) in ("better", "small"),
    )
    at = (latency_at(run.queries, int(each)) if each else 0.0 for each in curve.table["depth"])
    return Depths(curve, tuple(at))


@part("labels", "metric", "conventions")
def depth_values(study: Study, system: str) -> pd.DataFrame:
    """Return the metric of each query at each depth of a run, as from `depth.depth_values`. Raises
    DataError as `depths` does."""
    data, run = study.dataset, study.run(system)
    cuts = Cuts(study.ranking(system), data.candidates)
    return values_by_depth(
        cuts,
        data.candidates,
        data.qrels,
        study.spec,
        study.conventions,
        depths_for(cuts.deepest, None if run is None else run.depth),
        study.excluded(system),
    )


# The gain of a system, as in its verdict: the input of its value.

_PROOFS: Mapping[str, Proof] = {
    "better": "proven",
    "small": "proven",
    "worse": "proven",
    "identical": "same",
    "equal": "unproven",
    "unproven": "unproven",
}
"""Kind of verdict → what it proves. Other kinds, such as too few queries, have no change from which
money could be computed."""


def verdict_kind(study: Study, challenger: str) -> Kind:
    """Return the kind of the verdict that counts: the corrected one if it exists, otherwise the
    one from human labels."""
    verdict = headline(study, challenger)
    by_people: Kind = study.comparison.row(challenger, study.spec)["verdict"]
    return by_people if verdict is None else verdict.kind


def is_known(study: Study, system: str) -> bool:
    """Return whether `gain` has a measured change, without computing it."""
    if only_estimates(study):
        return _estimated(study, system) is not None
    verdict = headline(study, system)
    if verdict is not None:
        return _corrected(verdict) is not None
    row = study.comparison.row(system, study.spec)
    return row["verdict"] in _PROOFS and not np.isnan(row["relative_delta"])


def gain(study: Study, system: str) -> Gain | None:
    """Return the change of the metric relative to the baseline's mean, and the change of hit@k.

    Interval and proof are the verdict's. The interval of the relative change uses the same
    resamples (`inference.relative_interval`), so that both have the same sign, and both exclude 0
    or neither does.

    If the labels were sampled, the change is the estimate, and the change of hit@k is unknown. If
    the study has a judge that human labels correct, both changes are the corrected ones.

    None if the baseline's mean is 0 or close to it, too few queries can be compared, or the metric
    does not measure quality.
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
        in_sample=_in_sample(study, system, row["delta_low"], row["delta_high"]),
    )


def _in_sample(study: Study, system: str, low: float, high: float) -> bool:
    tuned = study.tuned(study.baseline) is not None, study.tuned(system) is not None
    return is_in_sample(tuned, low, high)


def _estimated(study: Study, system: str) -> Gain | None:
    estimate = estimate_of(study, system)
    if estimate is None or not np.isfinite(estimate.relative):
        return None
    proof: Proof = "proven" if estimate.conclusive else "unproven"
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
    three = verdict.three.corrected
    in_sample = _in_sample(study, verdict.challenger, three.low, three.high)
    return Gain(relative, change, three.n, verdict.judge, in_sample=in_sample)


def _corrected(verdict: JudgedVerdict) -> MeasuredChange | None:
    """Return the change of a corrected verdict relative to the baseline's mean; None if it is not
    finite."""
    finite = np.isfinite(relative_change(verdict.three.corrected.mean, verdict.before))
    return _changed(verdict, verdict.before) if finite else None


def _changed(verdict: JudgedVerdict, unit: float) -> MeasuredChange:
    change = verdict.three.corrected
    ends = change.low / unit, change.high / unit
    return MeasuredChange(change.mean / unit, *ends, _PROOFS[verdict.kind])


@part("labels", "baseline", "metric", "conventions", "statistics")
def _relative_interval(study: Study, system: str) -> tuple[float, float]:
    pairs = study.pairs(system)
    before, change = (pairs[each].to_numpy(dtype=np.float64) for each in ("before", "delta"))
    both = ~np.isnan(before) & ~np.isnan(change)
    weights, rules = weights_in(pairs[both]), study.rules(study.baseline, system)
    return relative_interval(before[both], change[both], rules, weights)


def _measured(row: pd.Series, value: float, interval: tuple[float, float]) -> MeasuredChange:
    """Return the measured change and how certain the verdict in `row` makes it; 0 without one."""
    if row["verdict"] not in _PROOFS:
        return MeasuredChange(0.0)
    low, high = map(float, interval)
    proof = _PROOFS[row["verdict"]]
    finite = np.isfinite(low) and np.isfinite(high)
    return (
        MeasuredChange(float(value), low, high, proof)
        if finite
        else MeasuredChange(float(value), proof=proof)
    )


def hits(study: Study, system: str) -> pd.Series:
    """Return the row of the comparison with the change of the hit rate."""
    return _hits(study).row(system, hit_spec(study.cutoff))


def _hits(study: Study) -> Comparison:
    """Return the study's comparison if it has the hit rate, otherwise one of the hit rate only."""
    spec = hit_spec(study.cutoff)
    return study.comparison if spec in study.specs else _compared_by(study, spec)


@part("labels", "chosen", "conventions", "statistics")
def _compared_by(study: Study, spec: str) -> Comparison:
    evaluations = {system: study.evaluate(system, (spec,)) for system in study.chosen}
    return compare(evaluations, study.baseline, study.statistics)


def hit_spec(cutoff: int | None) -> str:
    """Return the spec of the hit rate from which tickets and working time are computed."""
    return f"hit@{cutoff or 10}"


def hit_title(study: Study) -> str:
    """Return the title of this hit rate."""
    return study.titled(parse_measure(hit_spec(study.cutoff)))


# The systems of a study compared with the targets of a profile: which targets the intervals meet,
# and the highest values that these labels and candidates allow.


def target_rows(study: Study, system: str, goals: Goals) -> tuple[TargetRow, ...]:
    """Return a row for each target and each limit of the profile."""
    reached = figures(study, system, goals.profile.specs())
    quality = [
        judge(target, reached[target.metric], goals.targets) for target in goals.profile.targets
    ]
    return (*quality, *(_LIMITED[each.what](study, system, each) for each in goals.profile.limits))


@part("labels", "chosen", "conventions", "statistics")
def figures(study: Study, system: str, specs: tuple[str, ...]) -> dict[str, Reached]:
    """Return spec → the mean of a system with its interval, and the mean of the best order of the
    documents over the same queries."""
    if not specs:
        return {}
    evaluation, best = study.evaluate(system, specs), headroom.best_of_all(study, specs)
    low, high = intervals(
        evaluation.values,
        study.rules(system),
        possible=tuple(np.array([each.metric.range for each in evaluation.measures]).T),
        weights=evaluation.weights,
    )
    places = {query: place for place, query in enumerate(best.query_ids)}
    at = [places[query] for query in evaluation.query_ids]
    most = np.where(
        np.isnan(evaluation.values), np.nan, np.fmax(best.values[at], evaluation.values)
    )
    valid = ~np.isnan(most)
    with np.errstate(invalid="ignore"):
        mosts = np.where(valid, most, 0.0).sum(axis=0) / valid.sum(axis=0)
    if evaluation.weights is not None:
        mosts = np.array([evaluation.weights.mean(column) for column in most.T])
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
    """Return the row of a price limit in dollars. A price in another currency gives no value; an
    example price leaves the status undecided."""
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
