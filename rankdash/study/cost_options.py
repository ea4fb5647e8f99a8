"""Ways to rank with their price, what a search of each sends, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from rankdash.analysis.statistics.bootstrap import bootstrap_means, percentile_interval
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.dataset import Dataset
from rankdash.i18n import gettext as _
from rankdash.metrics import Evaluation
from rankdash.ranking.measured import Level
from rankdash.ranking.ranking import Ranking, Run
from rankdash.rerankers.neural.default_tokens import default_tokens
from rankdash.runs.concurrency import within_target
from rankdash.runs.timing import summarize
from rankdash.study.study import Subject
from rankdash.study.systems import Money
from rankdash.value.assumptions import Assumptions
from rankdash.value.benefit import equal_recall_depth
from rankdash.value.billing import Load, Price, cost_per_search
from rankdash.value.outcome import Gain, Option, Outcome, outcome
from rankdash.value.price_list import ListedPrice, shipped
from rankdash.words.prices import title, usual

BASELINE = "baseline"
# Enough texts for a mean within a few percent, and few enough to count while a page opens.
_COUNTED = 400


@dataclass(frozen=True)
class MeasuredLoad:
    """load: of the mean search. estimated: whether its tokens were counted by the packaged
    tokenizer, because the run has no counts of its own."""

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


@dataclass(frozen=True)
class Terms:
    """What options are put together under. level: of the intervals."""

    scenario: Assumptions
    currency: str
    level: float


def unranked(name: str, load: MeasuredLoad, terms: Terms) -> Choice:
    """The baseline as it is, which costs nothing and gains nothing."""
    free = Option(_("No reranker: {name}", name=name), 0.0, Gain(0.0), free=True)
    came = outcome(free, terms.scenario, terms.level)
    return Choice(free, came, BASELINE, None, load, Waiting(0.0, 0.0))


def priced(
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
        name=name if system else title(listed),
        cost_per_search=None if foreign else float(cost_per_search(price, load.load)),
        gain=gain,
        extra_ms=waiting.p50,
        passages_after=passages,
    )
    return Choice(
        option=option,
        came=outcome(option, terms.scenario, terms.level),
        system=system,
        price=listed,
        load=load,
        waiting=waiting,
        foreign=foreign,
        rate_measured=measured,
        passages=passages,
    )


def choices(subject: Subject) -> list[Choice]:
    """The baseline as it is, then every challenger at its price: the one that was chosen, else the
    one that goes without saying for its kind."""
    return subject.once(("choices",), lambda: _choices(subject))


def _choices(subject: Subject) -> list[Choice]:
    money = subject.money or Money()
    terms = Terms(money.assumptions, money.currency, subject.statistics.level)
    lengths = text_lengths(subject.dataset)
    base = load_of(subject.ranking(subject.baseline), subject.run(subject.baseline), lengths)
    return [
        unranked(subject.name(subject.baseline), base, terms),
        *(_choice(subject, system, money, terms, lengths) for system in subject.challengers),
    ]


def _choice(
    subject: Subject, system: str, money: Money, terms: Terms, lengths: tuple[float, float]
) -> Choice:
    run = subject.run(system)
    prices = {each.key: each for each in shipped()}
    usually = prices[usual("" if run is None else run.reranker, prices)]
    hit = hit_spec(subject.cutoff)
    quality, hits = subject.pairs(system), subject.pairs(system, hit)
    passages = int(terms.scenario.passages)
    enough = None
    if passages >= 1:
        specs = recall_specs(passages)
        before, after = (subject.evaluate(each, specs) for each in (subject.baseline, system))
        enough = equal_recall(before, after, subject.statistics)
    return priced(
        system,
        subject.name(system),
        money.prices.get(system, usually),
        load_of(subject.ranking(system), run, lengths),
        waiting_of(run),
        gain_of(quality, hits, subject.statistics),
        enough,
        terms,
    )


def hit_spec(cutoff: int | None) -> str:
    """The hit rate that tickets and working time hang on."""
    return f"hit@{cutoff or 10}"


def with_measured_rate(price: Price, waiting: Waiting, target_ms: float) -> tuple[Price, bool]:
    """A price by the hour with the throughput that the run measured within the latency target;
    and whether it measured one."""
    level = within_target(waiting.levels, target_ms) if price.unit == "hour" else None
    if level is None:
        return price, False
    return replace(price, searches_per_second=level.queries_per_second), True


def gain_of(quality: pd.DataFrame, hits: pd.DataFrame, settings: StatisticsSettings) -> Gain | None:
    """The relative change of a metric and the change of hit@k, drawn together; None where the
    baseline's mean is 0 or no query can be compared.

    quality, hits: as from `compare.paired`, of the metric and of the hit rate.
    """
    before, after = (quality[side].to_numpy(dtype=np.float64) for side in ("before", "after"))
    found = np.nan_to_num(hits["delta"].to_numpy(dtype=np.float64))
    known = ~np.isnan(before) & ~np.isnan(after)
    # The change is a column of its own: as a difference of two means, a draw of nothing is not 0.
    columns = np.column_stack([before, after - before, found])[known]
    means = columns.mean(axis=0) if len(columns) else np.zeros(3)
    if means[0] <= 0:
        return None
    draws = bootstrap_means(columns, resamples=settings.resamples, seed=settings.seed)
    # A resample in which the baseline finds nothing has no relative change.
    usable = draws[draws[:, 0] > 0]
    return Gain(
        relative=float(means[1] / means[0]),
        draws=usable[:, 1] / usable[:, 0],
        hit=float(means[2]),
        hit_draws=usable[:, 2],
        queries=len(columns),
    )


def text_lengths(dataset: Dataset) -> tuple[float, float]:
    """Mean tokens of a query and of a document, counted on a sample where there are many."""
    return _mean_tokens(dataset.query_text()), _mean_tokens(dataset.document_text())


def _mean_tokens(texts: pd.Series) -> float:
    if len(texts) > _COUNTED:
        texts = texts.sample(_COUNTED, random_state=0)
    counts = default_tokens([str(text) for text in texts])
    return float(np.mean(counts)) if counts else 0.0


def load_of(ranking: Ranking, run: Run | None, lengths: tuple[float, float]) -> MeasuredLoad:
    """What a search of this run sends; of the first stage (None), what reranking all of it would.

    lengths: as from `text_lengths`.
    """
    query, document = lengths
    counts = np.diff(ranking.offsets)
    documents = float(counts.mean()) if len(counts) else 0.0
    if run is None:
        return MeasuredLoad(Load(query, documents, document), estimated=True)
    done = run.queries[run.queries["state"] == "done"]
    pairs, tokens = done["pairs"].mean(), done["tokens"].mean()
    if pairs > 0:
        documents = float(pairs)
    if not (tokens > 0 and pairs > 0):
        return MeasuredLoad(Load(query, documents, document), estimated=True)
    each = float(tokens / pairs)
    return MeasuredLoad(Load(min(query, each), documents, max(each - query, 0.0)), estimated=False)


def waiting_of(run: Run | None) -> Waiting:
    """Latency and throughput of a system; the first stage (None) adds none."""
    if run is None:
        return Waiting(0.0, 0.0)
    found = summarize(run.queries)
    levels = run.measured.throughput if run.measured is not None else ()
    if not found.n:
        return Waiting(None, None, levels)
    return Waiting(found.p50, found.p95, levels)


def recall_specs(passages: int) -> tuple[str, ...]:
    """What `equal_recall` wants evaluated."""
    return tuple(f"recall@{k}" for k in range(1, passages + 1))


def equal_recall(before: Evaluation, after: Evaluation, settings: StatisticsSettings) -> int | None:
    """The fewest reranked passages whose recall is, to the lower confidence limit, at least that of
    the first of the baseline; None where none is. Both evaluated on the same `recall_specs`."""
    values = after.values
    if not len(values) or np.isnan(values).all():
        return None
    draws = bootstrap_means(values, resamples=settings.resamples, seed=settings.seed)
    low, _high = percentile_interval(draws, settings.level)
    limits = {measure.k or 0: float(low[at]) for at, measure in enumerate(after.measures)}
    return equal_recall_depth(limits, before.mean(before.measures[-1]))
