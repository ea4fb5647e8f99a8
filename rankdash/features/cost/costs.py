"""Cost and return: each system at its price, what a search of it sends, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankdash.core.base.i18n import gettext as _
from rankdash.core.rerankers import kinds
from rankdash.core.runs import combining
from rankdash.core.runs.usage import MeasuredLoad
from rankdash.core.statistics.inference import intervals
from rankdash.core.statistics.verdict import Verdict
from rankdash.core.study.drawn import only_estimates
from rankdash.core.study.first_stage import first_stage_kind
from rankdash.core.study.pricing import Bill, Waiting, bill, load, priced, waiting
from rankdash.core.study.study import Study
from rankdash.core.study.study_latency import timed_by
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.price_list import title as price_title
from rankdash.features.cost.benefit import equal_recall_depth
from rankdash.features.cost.depth import Cuts, DepthCurve, depth_curve, depths_for, latency_at
from rankdash.features.cost.gains import gain
from rankdash.features.cost.payoff import NO_CHANGE, Gain, Option, Outcome, only_from_set, outcome

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
    found = [_unranked(study.name(study.baseline), base, money)]
    found += [_of(study, system, money) for system in study.challengers]
    deepest, waited = found[-1].load, Waiting(None, None)
    return found + [
        _choice("", price_title(each), priced(each, deepest, waited, money), waited, None, money)
        for each in money.also
    ]


def _unranked(name: str, load: MeasuredLoad, money: Money) -> Choice:
    """The baseline as it is, which costs nothing and gains nothing."""
    free = Option(_("No reranker: {name}", name=name), 0.0, Gain(NO_CHANGE), free=True)
    came = outcome(free, money.assumptions)
    return Choice(free, came, BASELINE, None, load, Waiting(0.0, 0.0), valued=True)


def _of(study: Study, system: str, money: Money) -> Choice:
    found, waited = bill(study, system), waiting(study, system)
    if found is None:
        found = Bill(None, load(study, system), money.currency)
    passages = int(money.assumptions.passages)
    estimated = only_estimates(study)
    measured = passages >= 1 and not estimated
    enough = equal_recall(study, system, passages) if measured else None
    made = _choice(system, study.name(system), found, waited, gain(study, system), money, enough)
    if estimated:
        return made
    return replace(made, verdict=study.comparison.verdict(system, study.spec, study.names))


def _choice(
    system: str,
    name: str,
    found: Bill,
    waited: Waiting,
    gained: Gain | None,
    money: Money,
    passages: int | None = None,
) -> Choice:
    """A system at what it costs; without a system (""), a price alone."""
    cost = None if found.lack else found.beside_machines
    option = Option(
        name=name,
        cost_per_search=None if cost is None else cost / 1000,
        machines=found.machines if cost is not None else (),
        gain=gained,
        extra_ms=waited.p50,
        passages_after=passages,
    )
    made = Choice(
        option,
        outcome(option, money.assumptions),
        system,
        found,
        found.load,
        waited,
        passages,
        valued=money.valued,
        example_values=money.example,
    )
    return replace(made, came=made.under(money.assumptions, gained, valued=money.valued))


def system_of(study: Study, choice: Choice) -> str | None:
    """The ranking of an option; None for a price alone."""
    return study.baseline if choice.system == BASELINE else choice.system or None


def equal_recall(study: Study, system: str, passages: int) -> int | None:
    """The fewest reranked passages whose recall is, to the lower confidence limit, at least that of
    the first `passages` of the baseline; None where none is."""
    specs, rules = tuple(f"recall@{k}" for k in range(1, passages + 1)), study.statistics

    def make() -> int | None:
        before, after = (study.evaluate(each, specs) for each in (study.baseline, system))
        values = after.values
        if not len(values) or np.isnan(values).all():
            return None
        low, _high = intervals(values, rules)
        limits = {measure.k or 0: float(low[at]) for at, measure in enumerate(after.measures)}
        return equal_recall_depth(limits, before.mean(before.measures[-1]))

    key = (study.dataset_id, study.baseline, system, passages, study.conventions, rules)
    return study.once(("equal recall", *key), make)


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
    run = study.run(system)
    if run is None:
        return None
    data, rules = study.dataset, study.statistics

    def make() -> Depths:
        cuts = Cuts(run.ranking, data.candidates)
        curve = depth_curve(
            cuts,
            data.candidates,
            data.qrels,
            study.spec,
            study.conventions,
            depths_for(cuts.deepest, run.depth),
            study.excluded(system),
            rules,
            full_gain_proven=first_stage_kind(study, system) in ("better", "small"),
        )
        at = (latency_at(run.queries, int(each)) if each else 0.0 for each in curve.table["depth"])
        return Depths(curve, tuple(at))

    # The other systems count for the correction of the verdict.
    systems = (study.chosen, timed_by(study, system))
    key = (study.dataset_id, *systems, study.spec, study.specs, study.conventions)
    return study.once(("depths", *key, rules), make)
