"""The cost of a search with each system: at the price that the user set, otherwise at the price
that its run recorded: of its tokens, or of its machine and throughput."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Literal

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import completed
from rankdash.core.data.measured import Level
from rankdash.core.data.ranking import RETRIEVAL, Run
from rankdash.core.rerankers import kinds
from rankdash.core.runs import combining
from rankdash.core.runs.concurrency import within_target
from rankdash.core.runs.results import MeasuredLoad, estimated_searches, load_of
from rankdash.core.study import latency
from rankdash.core.study.cache import Key, part
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money
from rankdash.core.value.assumptions import DAYS_PER_MONTH
from rankdash.core.value.prices import (
    ListedPrice,
    Machines,
    Place,
    Price,
    billed_tokens,
    cost_per_thousand,
    place_of,
    shipped,
    usual,
)

CASCADE = "cascade"
_CHARGED = "charged"

Way = Literal["concurrent", "listed", "batches", "alone"]
"""The source of the searches per second of an hourly price.

concurrent: measured at a concurrency, within the latency target. listed: from the price list.
batches: measured while the run scored many queries. alone: measured one query after the other.
"""
Lack = Literal["", "price", "throughput", "tokens", "rate", "parts"]
"""The reason why a cost is unknown.

price: not set, and the run recorded no machine. throughput: an hourly price without a known
throughput. tokens: the price depends on the lengths of missing texts. rate: a price in a currency
without an exchange rate. parts: a fused run with missing parts, or parts of unknown cost.
"""


@dataclass(frozen=True)
class Waiting:
    """Latency and throughput of a run. p50, p95: in ms; None if not measured, p95 also with too few
    timed queries. levels: the measured throughput. timed: the number of timed queries. busy:
    whether the machine was busy. whole: whether only latencies of whole searches were measured,
    which p50 and p95 exclude."""

    p50: float | None
    p95: float | None
    levels: tuple[Level, ...] = ()
    timed: int = 0
    busy: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Served:
    """Searches per second of one machine, with the source. in_flight: the concurrency of the
    measurement, 0 if unknown. cpu: the recorded CPU of the machine."""

    per_second: float
    way: Way
    in_flight: int = 0
    cpu: str = ""
    busy: bool = False


@dataclass(frozen=True)
class Bill:
    """The cost of a search with a system.

    listed: its price; None if it has none. load: the payload of a search. served: the throughput
    for hourly prices; None if unknown. rate: the exchange rate; None if not set. currency: of the
    study. parts: name → cost of each part of a fused run without its own price. chosen: whether the
    user set the price. traffic: searches per day for hourly prices of whole machines; None if a
    share of a machine is paid for.
    """

    listed: ListedPrice | None
    load: MeasuredLoad
    currency: str
    served: Served | None = None
    rate: float | None = 1.0
    parts: tuple[tuple[str, Bill], ...] = ()
    lack: Lack = ""
    chosen: bool = False
    traffic: float | None = None

    @property
    def per_thousand(self) -> float | None:
        """The cost of 1,000 searches in the currency of the study; None if unknown."""
        if self.lack:
            return None
        cost = self._at(None)
        return None if math.isnan(cost) else cost

    @property
    def machines(self) -> tuple[Machines, ...]:
        """The whole machines that are paid for; parts with the same price share machines."""
        return self._machines(None)

    @property
    def beside_machines(self) -> float:
        """The cost of 1,000 searches without whole machines, for a system with a price."""
        return self._variable(None)

    @property
    def per_million_tokens(self) -> float | None:
        """The cost of a million tokens of queries and documents; None if unknown, or without
        tokens."""
        tokens = float(billed_tokens(self.load.load)) * 1000
        cost = self.per_thousand
        return None if cost is None or not tokens > 0 else cost / tokens * 1e6

    @property
    def price(self) -> Price | None:
        """The price; an hourly one with the known searches per second."""
        if self.listed is None or self.served is None:
            return None if self.listed is None else self.listed.price
        return replace(self.listed.price, searches_per_second=self.served.per_second)

    @property
    def example(self) -> bool:
        """True if the price, or a price of a part, is an example that the user did not set."""
        example_price = self.listed is not None and self.listed.example and not self.chosen
        return example_price or any(bill.example for _name, bill in self.parts)

    @property
    def unset(self) -> bool:
        """True if the cost of a search is unknown or an example."""
        return bool(self.lack) or self.example

    def at(self, documents: float) -> float:
        """Return the cost of 1,000 searches with this many reranked documents; NaN if unknown."""
        return math.nan if self.lack else self._at(documents)

    def _at(self, documents: float | None) -> float:
        machines = self._machines(documents)
        if not machines:
            return self._variable(documents)
        if not self.traffic:
            return math.nan
        paid = sum(each.cost_per_month(self.traffic) for each in machines)
        return self._variable(documents) + paid / (self.traffic * DAYS_PER_MONTH) * 1000

    def _machines(self, documents: float | None) -> tuple[Machines, ...]:
        machines: dict[ListedPrice | None, Machines] = {}
        for bill in self._with_parts():
            price, load = bill.price, float(bill.load.load.documents)
            one = None if price is None or self.traffic is None else Machines.of(price)
            if one is not None:
                # A machine serves more searches if each has fewer documents.
                faster = load / documents if documents and load else 1.0
                one = Machines(one.per_month * (bill.rate or 0.0), one.searches_per_day * faster)
                machines[bill.listed] = one.beside(machines.get(bill.listed))
        return tuple(machines.values())

    def _with_parts(self) -> Iterator[Bill]:
        """Yield the bill itself, or the bills of its parts."""
        yield from () if self.parts else (self,)
        for _name, bill in self.parts:
            yield from bill._with_parts()

    def _variable(self, documents: float | None) -> float:
        """Return the cost of 1,000 searches without whole machines."""
        if self.parts:
            return sum(bill._variable(documents) for _name, bill in self.parts)
        load, price, share = self.load.load, self.price, 1.0
        if price is None or (price.unit == "hour" and self.traffic is not None):
            return 0.0
        if documents is not None:
            # Fewer documents have fewer tokens.
            if price.unit == "hour" or (self.listed is not None and self.listed.key == _CHARGED):
                share = documents / float(load.documents) if load.documents else 1.0
            load = replace(load, documents=documents)
        return float(cost_per_thousand(price, load)) * share * (self.rate or 0.0)


def bill(study: Study, system: str) -> Bill | None:
    """Return the bill of a system; None for the first stage, which costs nothing for reranking. A
    retrieval has only a price that the user chose: prices of rerankers do not apply to it."""
    run = study.run(system)
    if system == FIRST_STAGE or run is None:
        return None
    money, sent = study.money or Money(), load(study, system)
    if system not in money.prices and combining.part_ids(run):
        return _of_parts(study, run, sent, money)
    listed = money.prices.get(system)
    if run.reranker != RETRIEVAL:
        listed = (
            listed
            or _charged(run, float(sent.load.documents))
            or _recorded(run, money.listed)
            or (_example(run) if money.example else None)
        )
    system_bill = priced(listed, sent, waiting(study, system), money, run)
    return replace(system_bill, chosen=system in money.prices)


def priced(
    listed: ListedPrice | None,
    sent: MeasuredLoad,
    waited: Waiting,
    money: Money,
    run: Run | None = None,
) -> Bill:
    """Return the bill of a search at a price. run: the source of the throughput; None for a price
    without a system."""
    if listed is None:
        return Bill(None, sent, money.currency, lack="price")
    served, rate = None, money.rate(listed.price.currency)
    if run is not None and {_place(run), place_of(listed)} == {"cpu", "gpu"}:
        # The speed of a CPU does not predict the speed of a GPU.
        run, waited = None, replace(waited, levels=())
    if listed.price.unit == "hour":
        served = _served(listed.price, sent, waited, money.assumptions.latency_target_ms, run)
    lack: Lack = "rate" if rate is None else ""
    if listed.price.unit == "hour":
        lack = lack if served is not None else "throughput"
    elif math.isnan(float(cost_per_thousand(listed.price, sent.load))):
        lack = "tokens"
    return Bill(listed, sent, money.currency, served, rate, lack=lack, traffic=money.traffic)


def _of_parts(study: Study, run: Run, sent: MeasuredLoad, money: Money) -> Bill:
    """Return the sum of the bills of a fused run's parts; the first stage costs nothing."""
    parts = []
    for system in combining.part_ids(run):
        part_bill = bill(study, system) if system in study.systems else None
        if part_bill is None or part_bill.lack:
            return Bill(None, sent, money.currency, lack="parts")
        parts.append((study.name(system), part_bill))
    return Bill(None, sent, money.currency, parts=tuple(parts), traffic=money.traffic)


def _charged(run: Run, documents: float) -> ListedPrice | None:
    """Return the price of 1,000 searches with this many documents, from the dollars that a run
    recorded for its tokens; None if it recorded none.

    Cached scores were paid for by an earlier run: they count at the mean price of the others.
    """
    if run.calls is None or run.reranker == CASCADE:
        # The dollars of one stage of a cascade are not the cost of a search.
        return None
    done = run.queries[run.queries["state"] == "done"]
    paid = run.calls.loc[run.calls["query_id"].isin(done["query_id"]), "billed"]
    dollars = math.fsum(json.loads(each).get("dollars", 0.0) for each in paid)
    pairs = float(done["pairs"].sum())
    if run.measured is not None and run.measured.cached_pairs:
        pairs = float(run.measured.scored_pairs)
    if not (0 < dollars < math.inf and pairs > 0):
        return None
    today = datetime.now(UTC).date().isoformat()
    return ListedPrice(
        _CHARGED,
        _("Charged in this run"),
        "",
        Price(dollars / pairs * documents * 1000, "flat"),
        _("tokens as the service counted them, at the prices in the settings of the run"),
        date.fromisoformat(run.created[:10] or today),
    )


def _recorded(run: Run, prices: Sequence[ListedPrice]) -> ListedPrice | None:
    """Return the default price for the hardware or service that a run recorded."""
    place = _place(run)
    return None if place is None else usual(place, {each.key: each for each in prices})


def _example(run: Run) -> ListedPrice | None:
    """Return the shipped example price for a run."""
    return usual("cpu" if _on_loopback(run) else "service", {each.key: each for each in shipped()})


def _on_loopback(run: Run) -> bool:
    """Return whether a run called a service on the same machine."""
    kind = next((each for each in kinds() if each.name == run.reranker), None)
    if kind is None or kind.key is None:
        return False
    try:
        place = kind.key(completed(kind.settings, run.settings))
    except RankdashError:  # A run of an older version, such as of a discontinued service.
        return False
    return place is not None and place.on_loopback


def _place(run: Run) -> Place | None:
    """Return the place that a run is billed for; None without a record, as for a ranking from a
    file, for a cascade with a service in one stage, and for a service on the same machine."""
    if _on_loopback(run):
        return None
    services = {each.name for each in kinds() if each.capabilities.needs_network}
    if run.reranker == CASCADE and services & {
        str(run.settings.get(s)) for s in ("first", "second")
    }:
        return None
    if run.reranker in services or run.calls is not None:
        return "llm" if run.reranker.startswith("llm-") else "service"
    if "cpu" not in run.machine:
        return None
    devices = [str(value) for name, value in run.machine.items() if name.endswith("device")]
    return "gpu" if any(not each.startswith("cpu") for each in devices) else "cpu"


def _served(
    price: Price, sent: MeasuredLoad, waited: Waiting, target_ms: float, run: Run | None
) -> Served | None:
    """Return the throughput of a machine, from the best source available; None without any."""
    cpu = "" if run is None else str(run.machine.get("cpu", ""))
    level = within_target(waited.levels, target_ms)
    if level is not None:
        return Served(level.queries_per_second, "concurrent", level.in_flight, cpu, waited.busy)
    if price.searches_per_second is not None:
        return Served(price.searches_per_second, "listed")
    if run is None:
        return None
    documents, measured = float(sent.load.documents), run.measured
    if measured is not None and measured.pairs and documents:
        # A search system embeds its documents in advance.
        seconds = measured.seconds - measured.index_seconds
        if seconds > 0:
            way: Way = "batches" if measured.together > 1 else "alone"
            return Served(measured.pairs / seconds / documents, way, 0, cpu, waited.busy)
    total = float(run.queries["latency_ms"].sum())
    timed = int(run.queries["latency_ms"].notna().sum())
    return Served(timed / total * 1000, "alone", 0, cpu, waited.busy) if total > 0 else None


def load(study: Study, system: str) -> MeasuredLoad:
    """Return the payload of a search with this system; for the first stage, of reranking all of its
    documents."""
    return _load(study, latency.timed_by(study, system))


@part("texts")
def _load(study: Study, timed: Key) -> MeasuredLoad:
    ranking, run = study.ranking(str(timed[0])), study.run(str(timed[0]))
    counted = _document_tokens(study)
    return load_of(ranking, run, estimated_searches(study.dataset, ranking, run, counted))


@part("texts")
def _document_tokens(study: Study) -> dict[str, float]:
    """Return a mutable mapping: document id → number of tokens, of the documents counted before."""
    return {}


def waiting(study: Study, system: str) -> Waiting:
    """Return latency and throughput of a system; 0 ms for the first stage."""
    latencies = latency.times(study, system)
    if latencies is None:
        return Waiting(0.0, 0.0)
    levels = latencies.run.measured.throughput if latencies.run.measured is not None else ()
    busy, summary = latency.busy(study, system), latencies.summary
    if not summary.n:
        return Waiting(None, None, levels, busy=busy)
    if latency.of_whole_search(study, system):
        return Waiting(None, None, levels, summary.n, busy, whole=True)
    return Waiting(summary.p50, summary.p95, levels, summary.n, busy)
