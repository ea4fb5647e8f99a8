"""Cost and return: each system at its price, what a search of it sends, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from rankdash.analysis.ranks.depth import Cuts, DepthCurve, depth_curve, depths_for, latency_at
from rankdash.analysis.statistics.inference import intervals
from rankdash.i18n import gettext as _
from rankdash.ranking.measured import Level
from rankdash.ranking.ranking import Ranking, Run
from rankdash.rerankers import kinds
from rankdash.rerankers.neural.tokenizer import default_tokens
from rankdash.runs import combining
from rankdash.runs.concurrency import within_target
from rankdash.study import latency
from rankdash.study.gains import gain
from rankdash.study.ranks import first_stage_kind
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money
from rankdash.value.assumptions import Assumptions
from rankdash.value.benefit import equal_recall_depth
from rankdash.value.billing import (
    Load,
    Price,
    billed_tokens,
    cost_per_search,
    cost_per_thousand,
)
from rankdash.value.payoff import NO_CHANGE, Gain, Option, Outcome, outcome
from rankdash.value.price_list import ListedPrice, shipped, usual
from rankdash.value.price_list import title as price_title

BASELINE = "baseline"
# Enough texts for a mean within a few percent, and few enough to count while a page opens.
_COUNTED = 400


@dataclass(frozen=True)
class MeasuredLoad:
    """load: of the mean search. estimated: whether its tokens were counted by the packaged
    tokenizer, or by characters without one, because the run has no counts of its own."""

    load: Load
    estimated: bool


@dataclass(frozen=True)
class Waiting:
    """Latency of a run in ms, None where it was not measured, and its measured throughput."""

    p50: float | None
    p95: float | None
    levels: tuple[Level, ...] = ()


@dataclass(frozen=True)
class Choice:
    """One option as it is shown.

    system: id of the ranking; "" for a price alone. price: None for no reranker. foreign: whether
        the price is in another currency, so that it cannot be compared.
    rate_measured: whether the searches per second of a price by the hour were measured.
    passages: how many reranked passages hold as much recall as an LLM is given now; None where no
        number of them surely does, or no LLM is asked about.
    """

    option: Option
    came: Outcome
    system: str
    price: ListedPrice | None
    load: MeasuredLoad
    waiting: Waiting
    foreign: bool = False
    rate_measured: bool = False
    passages: int | None = None

    @property
    def name(self) -> str:
        return self.option.name

    @property
    def example(self) -> bool:
        """Whether nobody set its price: it is an example that comes with rankdash."""
        return self.price in shipped()


@dataclass(frozen=True)
class Terms:
    """What options are put together under."""

    scenario: Assumptions
    currency: str


def choices(study: Study) -> list[Choice]:
    """The baseline as it is; every challenger at its price, the one that was chosen, else the usual
    one of its kind; then the prices to be shown alone."""
    money = study.money or Money()
    terms = Terms(money.assumptions, money.currency)
    base = load(study, study.baseline)
    found = [_unranked(study.name(study.baseline), base, terms)]
    found += [_choice(study, system, money, terms) for system in study.challengers]
    deepest = found[-1].load
    return found + [
        _priced("", price_title(listed), listed, deepest, Waiting(None, None), None, None, terms)
        for listed in money.also
    ]


def _unranked(name: str, load: MeasuredLoad, terms: Terms) -> Choice:
    """The baseline as it is, which costs nothing and gains nothing."""
    free = Option(_("No reranker: {name}", name=name), 0.0, Gain(NO_CHANGE), free=True)
    came = outcome(free, terms.scenario)
    return Choice(free, came, BASELINE, None, load, Waiting(0.0, 0.0))


def _choice(study: Study, system: str, money: Money, terms: Terms) -> Choice:
    passages = int(terms.scenario.passages)
    return _priced(
        system,
        study.name(system),
        price_of(study, system),
        load(study, system),
        waiting(study, system),
        gain(study, system),
        equal_recall(study, system, passages) if passages >= 1 else None,
        terms,
    )


def _priced(
    system: str,
    name: str,
    listed: ListedPrice,
    load: MeasuredLoad,
    waiting: Waiting,
    gain: Gain | None,
    passages: int | None,
    terms: Terms,
) -> Choice:
    """A system at a price; without a system (""), the price alone."""
    foreign = listed.price.currency != terms.currency
    price, measured = with_measured_rate(listed.price, waiting, terms.scenario.latency_target_ms)
    option = Option(
        name=name,
        cost_per_search=None if foreign else float(cost_per_search(price, load.load)),
        gain=gain,
        extra_ms=waiting.p50,
        passages_after=passages,
    )
    return Choice(
        option=option,
        came=outcome(option, terms.scenario),
        system=system,
        price=listed,
        load=load,
        waiting=waiting,
        foreign=foreign,
        rate_measured=measured,
        passages=passages,
    )


@dataclass(frozen=True)
class Billed:
    """What a search costs. per_thousand: of 1,000 searches. per_million_tokens: of a million tokens
    of queries and documents; None where there are none. Both are in the currency of the price.
    estimated: whether the tokens are. rate_measured: as in `Choice`."""

    listed: ListedPrice
    per_thousand: float
    per_million_tokens: float | None
    estimated: bool
    rate_measured: bool


def billed(study: Study, system: str) -> Billed | None:
    """None for the first stage, which nobody bills for reranking."""
    if system == FIRST_STAGE:
        return None
    listed, scenario = price_of(study, system), (study.money or Money()).assumptions
    price, measured = with_measured_rate(
        listed.price, waiting(study, system), scenario.latency_target_ms
    )
    sent = load(study, system)
    per_thousand = float(cost_per_thousand(price, sent.load))
    tokens = float(billed_tokens(sent.load)) * 1000
    return Billed(
        listed,
        per_thousand,
        per_thousand / tokens * 1e6 if tokens > 0 else None,
        sent.estimated,
        measured,
    )


def price_of(study: Study, system: str) -> ListedPrice:
    """The price that was chosen for a system, else the usual one of its kind."""
    money, run = study.money or Money(), study.run(system)
    if system in money.prices:
        return money.prices[system]
    prices = {each.key: each for each in shipped()}
    return prices[usual("" if run is None else run.reranker, prices)]


def cost_at(choice: Choice, scenario: Assumptions, documents: float) -> float:
    """Cost of 1,000 searches of an option when so many documents are reranked; NaN where its price
    is unknown."""
    price = rated(choice, scenario)
    if choice.foreign or price is None:
        return float("nan")
    if price.unit == "hour":
        # A machine serves the more searches the fewer documents each of them has.
        now = float(choice.load.load.documents)
        share = documents / now if now else 1.0
        return float(cost_per_search(price, choice.load.load)) * 1000 * share
    return float(cost_per_search(price, replace(choice.load.load, documents=documents))) * 1000


def rated(choice: Choice, scenario: Assumptions) -> Price | None:
    """The price of an option, by the hour at the measured throughput where there is one."""
    if choice.price is None:
        return None
    price, _measured = with_measured_rate(
        choice.price.price, choice.waiting, scenario.latency_target_ms
    )
    return price


def system_of(study: Study, choice: Choice) -> str | None:
    """The ranking of an option; None for a price alone."""
    return study.baseline if choice.system == BASELINE else choice.system or None


def with_measured_rate(price: Price, waiting: Waiting, target_ms: float) -> tuple[Price, bool]:
    """A price by the hour with the throughput that the run measured within the latency target;
    and whether it measured one."""
    level = within_target(waiting.levels, target_ms) if price.unit == "hour" else None
    if level is None:
        return price, False
    return replace(price, searches_per_second=level.queries_per_second), True


def load(study: Study, system: str) -> MeasuredLoad:
    """What a search of this system sends; of the first stage, what reranking all of it would."""
    lengths = study.once(
        ("text lengths", study.stored_id),
        lambda: (
            _mean_tokens(study.dataset.query_text()),
            _mean_tokens(study.dataset.document_text()),
        ),
    )
    return study.once(
        ("load", study.stored_id, system),
        lambda: load_of(study.ranking(system), study.run(system), lengths),
    )


def _mean_tokens(texts: pd.Series) -> float:
    """Counted on a sample where there are many."""
    if len(texts) > _COUNTED:
        texts = texts.sample(_COUNTED, random_state=0)
    counts = default_tokens([str(text) for text in texts])
    return float(np.mean(counts)) if counts else 0.0


def load_of(ranking: Ranking, run: Run | None, lengths: tuple[float, float]) -> MeasuredLoad:
    """What a search of this run sends. lengths: mean tokens of a query and of a document."""
    query, document = lengths
    counts = np.diff(ranking.offsets)
    documents = float(counts.mean()) if len(counts) else 0.0
    if run is None:
        return MeasuredLoad(Load(query, documents, document), estimated=True)
    done = run.queries[run.queries["state"] == "done"]
    pairs = done["pairs"].mean()
    if pairs > 0:
        documents = float(pairs)
    # A query whose tokens nobody counted would bring its pairs alone.
    counted = done.loc[done["tokens"].notna(), ["pairs", "tokens"]].sum()
    if not (counted > 0).all():
        return MeasuredLoad(Load(query, documents, document), estimated=True)
    each = float(counted["tokens"] / counted["pairs"])
    return MeasuredLoad(Load(min(query, each), documents, max(each - query, 0.0)), estimated=False)


def waiting(study: Study, system: str) -> Waiting:
    """Latency and throughput of a system; the first stage adds none."""
    found = latency.times(study, system)
    if found is None:
        return Waiting(0.0, 0.0)
    levels = found.run.measured.throughput if found.run.measured is not None else ()
    if not found.summary.n:
        return Waiting(None, None, levels)
    return Waiting(found.summary.p50, found.summary.p95, levels)


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
    key = (study.dataset_id, study.chosen, system, study.spec, study.specs, study.conventions)
    return study.once(("depths", *key, rules), make)
