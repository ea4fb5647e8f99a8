"""What a search of each system costs: at the price that somebody gave it, else at what its run
recorded: the dollars that its tokens came to, or the machine that it ran on and how much that
served."""

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
from rankdash.core.data.ranking import Run
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
"""How the searches per second of a price by the hour are known.

concurrent: measured at a concurrency, within the latency target. listed: the price says so.
batches: measured while the run scored many queries. alone: measured one query after the other.
"""
Lack = Literal["", "price", "throughput", "tokens", "rate", "parts"]
"""Why a cost is not known.

price: nobody gave one, and the run recorded no machine. throughput: a price by the hour, and
nothing says how many searches that serves. tokens: the price depends on the lengths of texts that
are not here. rate: a price in a currency without an exchange rate.
parts: made of runs that are not here, or whose cost is not known.
"""


@dataclass(frozen=True)
class Waiting:
    """Latency of a run in ms, None where it was not measured, its measured throughput, how many
    queries were timed (of few there is no p95), and whether the machine was busy."""

    p50: float | None
    p95: float | None
    levels: tuple[Level, ...] = ()
    timed: int = 0
    busy: bool = False


@dataclass(frozen=True)
class Served:
    """Searches per second of one machine, and how they are known. in_flight: how many were under
    way at once where that was measured, else 0. cpu: of the machine, as recorded."""

    per_second: float
    way: Way
    in_flight: int = 0
    cpu: str = ""
    busy: bool = False


@dataclass(frozen=True)
class Bill:
    """What a search of a system costs.

    listed: its price; None where it has none. load: what a search sends. served: of a price by the
    hour; None where nobody knows. rate: of exchange, None where nobody typed one. currency: of the
    study. parts: name → what the systems cost that it is made of, where it has no price itself.
    chosen: whether the user set the price. traffic: searches per day that whole machines of a price
    by the hour serve; None if a share of a machine is paid.
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
        """What 1,000 searches cost in the currency of the study; None where not known."""
        if self.lack:
            return None
        cost = self._at(None)
        return None if math.isnan(cost) else cost

    @property
    def machines(self) -> tuple[Machines, ...]:
        """The whole machines that are paid for; parts with one price share theirs."""
        return self._machines(None)

    @property
    def beside_machines(self) -> float:
        """What 1,000 searches cost beside whole machines, where it has a price."""
        return self._variable(None)

    @property
    def per_million_tokens(self) -> float | None:
        """What a million tokens of queries and documents cost; None where that is not known, or
        there are none."""
        tokens = float(billed_tokens(self.load.load)) * 1000
        cost = self.per_thousand
        return None if cost is None or not tokens > 0 else cost / tokens * 1e6

    @property
    def price(self) -> Price | None:
        """The price, by the hour with the searches per second that are known."""
        if self.listed is None or self.served is None:
            return None if self.listed is None else self.listed.price
        return replace(self.listed.price, searches_per_second=self.served.per_second)

    @property
    def example(self) -> bool:
        """Whether it, or that of a part, rests on a price that the user did not set."""
        example_price = self.listed is not None and self.listed.example and not self.chosen
        return example_price or any(bill.example for _name, bill in self.parts)

    @property
    def unset(self) -> bool:
        """Whether the user did not set what a search costs."""
        return bool(self.lack) or self.example

    def at(self, documents: float) -> float:
        """What 1,000 searches cost when so many documents are reranked; NaN where not known."""
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
                # A machine serves the more searches the fewer documents each of them has.
                faster = load / documents if documents and load else 1.0
                one = Machines(one.per_month * (bill.rate or 0.0), one.searches_per_day * faster)
                machines[bill.listed] = one.beside(machines.get(bill.listed))
        return tuple(machines.values())

    def _with_parts(self) -> Iterator[Bill]:
        """Yield itself, or what it is made of."""
        yield from () if self.parts else (self,)
        for _name, bill in self.parts:
            yield from bill._with_parts()

    def _variable(self, documents: float | None) -> float:
        """What 1,000 searches cost beside whole machines."""
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
    """None for the first stage, which nobody bills for reranking."""
    run = study.run(system)
    if system == FIRST_STAGE or run is None:
        return None
    money, sent = study.money or Money(), load(study, system)
    if system not in money.prices and combining.part_ids(run):
        return _of_parts(study, run, sent, money)
    listed = (
        money.prices.get(system)
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
    """What a search costs at a price. run: whose throughput counts; None for a price alone."""
    if listed is None:
        return Bill(None, sent, money.currency, lack="price")
    served, rate = None, money.rate(listed.price.currency)
    if run is not None and {_place(run), place_of(listed)} == {"cpu", "gpu"}:
        # How fast a processor is tells nothing of a graphics card.
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
    """The sum of what the systems cost that a run was made of; the first stage costs nothing."""
    parts = []
    for system in combining.part_ids(run):
        part_bill = bill(study, system) if system in study.systems else None
        if part_bill is None or part_bill.lack:
            return Bill(None, sent, money.currency, lack="parts")
        parts.append((study.name(system), part_bill))
    return Bill(None, sent, money.currency, parts=tuple(parts), traffic=money.traffic)


def _charged(run: Run, documents: float) -> ListedPrice | None:
    """The dollars that the tokens of a run came to, for 1,000 searches of so many documents, at the
    prices in its settings; None where it recorded none.

    Scores from the cache were paid for by an earlier run: what the others cost stands for them.
    """
    if run.calls is None or run.reranker == CASCADE:
        # The dollars of one stage of a cascade are not what a search costs.
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
    """The price of what a run recorded that it ran on."""
    place = _place(run)
    return None if place is None else usual(place, {each.key: each for each in prices})


def _example(run: Run) -> ListedPrice | None:
    """Return the shipped price that stands in for demonstration."""
    return usual("cpu" if _on_loopback(run) else "service", {each.key: each for each in shipped()})


def _on_loopback(run: Run) -> bool:
    """Return whether a run asked a service on the machine itself."""
    kind = next((each for each in kinds() if each.name == run.reranker), None)
    if kind is None or kind.key is None:
        return False
    try:
        place = kind.key(completed(kind.settings, run.settings))
    except RankdashError:  # Of an older version, such as a service that has ended.
        return False
    return place is not None and place.on_loopback


def _place(run: Run) -> Place | None:
    """None where nothing is recorded, as of a ranking from a file, where a cascade asks a service
    for one of its stages, and of a service on the machine itself, which nobody bills."""
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
    """What a machine serves: the best evidence that there is."""
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
        # Embedding documents is work that a search system does beforehand.
        seconds = measured.seconds - measured.index_seconds
        if seconds > 0:
            way: Way = "batches" if measured.together > 1 else "alone"
            return Served(measured.pairs / seconds / documents, way, 0, cpu, waited.busy)
    total = float(run.queries["latency_ms"].sum())
    timed = int(run.queries["latency_ms"].notna().sum())
    return Served(timed / total * 1000, "alone", 0, cpu, waited.busy) if total > 0 else None


def load(study: Study, system: str) -> MeasuredLoad:
    """What a search of this system sends; of the first stage, what reranking all of it would."""
    return _load(study, latency.timed_by(study, system))


@part("texts")
def _load(study: Study, timed: Key) -> MeasuredLoad:
    ranking, run = study.ranking(str(timed[0])), study.run(str(timed[0]))
    counted = _document_tokens(study)
    return load_of(ranking, run, estimated_searches(study.dataset, ranking, run, counted))


@part("texts")
def _document_tokens(study: Study) -> dict[str, float]:
    """Document id → its tokens, as far as they were counted."""
    return {}


def waiting(study: Study, system: str) -> Waiting:
    """Latency and throughput of a system; the first stage adds none."""
    latencies = latency.times(study, system)
    if latencies is None:
        return Waiting(0.0, 0.0)
    levels = latencies.run.measured.throughput if latencies.run.measured is not None else ()
    busy, summary = latency.busy(study, system), latencies.summary
    if not summary.n:
        return Waiting(None, None, levels, busy=busy)
    return Waiting(summary.p50, summary.p95, levels, summary.n, busy)
