"""The caveats of a verdict, the most serious first.

Pages, reports and commands read the values from `caveats` and the texts from `sentence`, so a class
that is added here appears in all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from rankdash.core.base.errors import Finding
from rankdash.core.base.i18n import (
    all_of,
    finding_text,
    level_percent,
    ngettext,
    number,
    paragraph,
    percent,
    plain,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.dataset import FirstStage
from rankdash.core.data.measured import TOO_MANY_UNKNOWN, Stopped
from rankdash.core.metrics import Judged, parse_measure
from rankdash.core.metrics.evaluation import mean_of_known
from rankdash.core.runs import combining
from rankdash.core.statistics.alignment import places_of
from rankdash.core.statistics.verdict import PROVEN
from rankdash.core.study import latency
from rankdash.core.study.groups import Group, turned
from rankdash.core.study.headroom import best_of_all
from rankdash.core.study.leaderboard import Axis, as_good_as_best, compared_with, standings
from rankdash.core.study.pricing import Bill, bill
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words import prices, queries, verdicts
from rankdash.features.overview.caveat import Caveat, Fit

# Lists count as equally long if the shorter has at least this share of the longer one's documents.
_AS_LONG = 0.9
LEAST_UNLABELLED = 0.01
"""Smallest share of documents without a label that is worth a caveat."""

NEAR_CEILING = 0.95
"""Smallest share of the best possible mean at which a test set counts as too easy."""

MANY_WITHOUT = 0.5
"""Smallest share of queries with only relevant candidates that is worth a caveat."""

GAINS = ("better", "small")


def kinds() -> list[type[Caveat]]:
    """Return every class of caveats, the most serious first."""
    return Caveat.__subclasses__()


def caveats(study: Study, challenger: str) -> tuple[Caveat, ...]:
    """Return the caveats that apply to the verdict on a challenger, the most serious first."""
    if not study.measures_quality:
        return ()
    return tuple(each for kind in kinds() for each in kind.of(study, challenger))


@dataclass(frozen=True)
class TunedHere(Caveat, code="tuned", section="risks", title="tuned on these queries"):
    """Caveat that the fusion weights of a system were tuned on these queries, so that its values
    are in-sample. record: the held-out gain."""

    system: str
    record: combining.Tuned

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        for system in (challenger, study.baseline):
            record = study.tuned(system)
            if record is not None:
                yield cls(system, record)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        record, name = self.record, fit(study.name(self.system))
        first = _(
            "The fusion weights of {system} were tuned on these queries, so its values are "
            "in-sample: expect lower ones on new queries.",
            system=name,
        )
        if not math.isfinite(record.gain + record.low + record.high + record.level):
            return first
        held_out = _(
            "On held-out queries, tuned weights change {metric} by {change} from equal RRF "
            "({level}: {low} … {high}).",
            metric=fit(record.metric),
            change=signed(record.gain),
            level=level_percent(record.level),
            low=signed(record.low),
            high=signed(record.high),
        )
        return paragraph([first, held_out])


@dataclass(frozen=True)
class StoppedRun(Caveat, code="stopped", section="risks", title="stopped by its result"):
    """Caveat that the run of a system was stopped by its result."""

    system: str
    record: Stopped

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        for system in (challenger, study.baseline):
            run = study.run(system)
            if run is not None and run.stopped is not None:
                yield cls(system, run.stopped)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        run = study.run(self.system)
        parts = () if run is None else combining.part_ids(run)
        part = next((each for each in parts if each in study.systems and study.stopped(each)), None)
        system, scored = fit(study.name(self.system)), number(self.record.scored, 0)
        if part is None:
            return ngettext(
                "{system} was scored on {scored} of {n} query, until its result was conclusive. "
                "Another metric may not be conclusive.",
                "{system} was scored on {scored} of {n} queries, until its result was conclusive. "
                "Another metric may not be conclusive.",
                self.record.planned,
                system=system,
                scored=scored,
            )
        return ngettext(
            "The part {part} of {system} was stopped by its result, so only {scored} of {n} "
            "query count. Another metric may not be conclusive.",
            "The part {part} of {system} was stopped by its result, so only {scored} of {n} "
            "queries count. Another metric may not be conclusive.",
            self.record.planned,
            part=fit(study.name(part)),
            system=system,
            scored=scored,
        )


@dataclass(frozen=True)
class Implausible(Caveat, code="implausible", section="risks", title="data may be wrong"):
    """Caveat that the check report doubts the labels, texts or rankings. finding: the reason."""

    finding: Finding

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        yield from () if study.check is None else map(cls, study.check.implausible)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return fit(finding_text(self.finding))


@dataclass(frozen=True)
class RefusedRows(Caveat, code="refused_rows", section="risks", title="rows excluded"):
    """Caveat that many rows of the files were excluded."""

    count: int
    rows: int

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        if study.check is not None and study.check.refused_rows is not None:
            yield cls(*study.check.refused_rows)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return _(
            "{count} of {rows} rows of the files were excluded: the verdict is about the others.",
            count=number(self.count, 0),
            rows=number(self.rows, 0),
        )


@dataclass(frozen=True)
class Churn(Caveat, code="churn", section="risks", title="engine with churn"):
    """Caveat that the search engine of a compared ranking answers one query in different ways.
    share: the mean share of the top 10 that a repeated request changes."""

    system: str
    share: float

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        for system in (study.baseline, challenger):
            share = study.churn(system)
            if share > 0:
                yield cls(system, share)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return _(
            "{system}: a repeated request of a query changes {share} of its top 10 on average. "
            "Fetch again before you rely on a small change.",
            system=fit(study.name(self.system)),
            share=percent(self.share),
        )


@dataclass(frozen=True)
class UnknownTokens(Caveat, code="unknown_tokens", section="risks", title="unknown tokens"):
    """Caveat that many of the tokens that a model reads are unknown to it. share: in [0, 1]."""

    system: str
    share: float

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        for system in (challenger, study.baseline):
            share = study.unknown_tokens(system)
            if share > TOO_MANY_UNKNOWN:
                yield cls(system, share)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return queries.unknown_tokens(fit(study.name(self.system)), self.share)


@dataclass(frozen=True)
class MadeBaseline(Caveat, code="baseline", section="missing", title="baseline is not your search"):
    """Caveat that the baseline is a first stage that rankdash created, not the user's own search.
    how: origin of its order. labelled_only: the first stage ranks labelled documents only."""

    how: FirstStage
    labelled_only: bool

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        how = study.dataset.first_stage
        noticed = () if study.check is None else study.check.findings
        if how == "given" and any(finding.code == "order_of_the_file" for finding in noticed):
            # Older versions used the order of the file by default and recorded it as "given".
            how = "rows"
        if study.baseline == FIRST_STAGE and how != "given":
            judged = study.judged(FIRST_STAGE)
            yield cls(how, bool((judged.judged_within(None) == judged.lengths).all()))

    def sentence(self, study: Study, fit: Fit = str) -> str:
        sentences = [
            _(
                "{baseline} is not your own search: {made}.",
                baseline=fit(study.name(study.baseline)),
                made=queries.first_stage(self.how),
            )
        ]
        if self.labelled_only:
            sentences.append(
                _(
                    "This ranking contains labelled documents only. A search has to find them "
                    "among all documents, so values are higher here."
                )
            )
        return paragraph(sentences)


@dataclass(frozen=True)
class Unlabelled(Caveat, code="unlabelled", section="risks"):
    """Caveat on evaluated documents without a label.

    baseline, challenger: their shares in [0, 1]. skipped: the conventions or the metric skip these
        documents; otherwise they count as not relevant.
    """

    baseline: float
    challenger: float
    skipped: bool

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        spec = study.spec_of("judged")
        shares = [
            1 - study.evaluate(system, study.specs if spec in study.specs else (spec,)).mean(spec)
            for system in (study.baseline, challenger)
        ]
        # NaN, for a system without a value, is not >= the limit and causes no caveat.
        if any(share >= LEAST_UNLABELLED for share in shares):
            skipped = study.conventions.judged_only or study.measure.metric.skips_unlabelled
            yield cls(shares[0], shares[1], skipped)

    def label(self, study: Study, fit: Fit = str) -> str:
        return _("{share} without a label", share=percent(max(self.baseline, self.challenger)))

    def sentence(self, study: Study, fit: Fit = str) -> str:
        shares = {
            "share": percent(self.challenger),
            "baseline": fit(study.name(study.baseline)),
            "other": percent(self.baseline),
        }
        without = (
            _("{share} of the ranked documents have no label ({baseline}: {other}).", **shares)
            if study.cutoff is None
            else _(
                "{share} of the top {k} have no label ({baseline}: {other}).",
                k=number(study.cutoff, 0),
                **shares,
            )
        )
        counted = (
            _("Unlabelled documents are skipped.")
            if self.skipped
            else _("Unlabelled documents count as not relevant.")
        )
        return paragraph([without, counted])


@dataclass(frozen=True)
class ShortLists(Caveat, code="short_lists", section="risks", title="lists of different length"):
    """Caveat that the lists of one system end well before the cutoff and the other system's lists
    do not.

    documents, others: lengths of the longest list of `system` and of the other system.
    """

    system: str
    documents: int
    others: int

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        def lengths(judged: Judged) -> Counter[int]:
            sizes, counts = np.unique(judged.lengths, return_counts=True)
            return Counter(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))

        longest = {
            side: max(study.of_judged(side, lengths), default=0)
            for side in (challenger, study.baseline)
        }
        short = min(longest, key=longest.__getitem__)
        others = max(longest.values())
        if longest[short] < _AS_LONG * min(study.measure.k or others, others):
            yield cls(short, longest[short], others)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return ngettext(
            "{name} lists at most {n} document per query, the other system {others}. {metric} "
            "therefore also measures the lengths of the lists.",
            "{name} lists at most {n} documents per query, the other system {others}. {metric} "
            "therefore also measures the lengths of the lists.",
            self.documents,
            name=fit(study.name(self.system)),
            others=number(self.others, 0),
            metric=study.title,
        )


@dataclass(frozen=True)
class UnprovenLead(Caveat, code="lead", section="risks"):
    """Caveat that the best system is not proven better than the second best, if this is not the
    baseline. delta: difference between the two."""

    other: str
    delta: float

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        order = [each.system for each in standings(study)]
        if order[:1] != [challenger] or len(order) < 2 or order[1] == study.baseline:
            return
        row = compared_with(study, order[1], (challenger,)).row(challenger, study.spec)
        if row["verdict"] not in GAINS:
            yield cls(order[1], float(row["delta"]))

    def label(self, study: Study, fit: Fit = str) -> str:
        return _("lead over {other} not proven", other=fit(study.name(self.other)))

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return _(
            "The lead over {other} ({delta}) is not proven.",
            other=fit(study.name(self.other)),
            delta=signed(self.delta),
        )


@dataclass(frozen=True)
class TurnedGroups(Caveat, code="segments", section="elsewhere"):
    """Caveat on kinds of queries, each with enough queries, with a change of the opposite sign
    beyond the tie band.

    groups: proven changes first, then larger ones. worse: these kinds lose while the mean over all
        queries rises.
    """

    worse: bool
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        change = float(study.comparison.row(challenger, study.spec)["delta"])
        if change > 0 or change < 0:
            groups = turned(study, challenger, change)
            groups.sort(key=lambda each: (not each.proven, -abs(each.delta)))
            yield from [cls(change > 0, tuple(groups))] if groups else []

    def label(self, study: Study, fit: Fit = str) -> str:
        kind, others = verdicts.kind(study, self.groups[0], fit), len(self.groups) - 1
        first = (
            _("worse on {column} “{value}”", **kind)
            if self.worse
            else _("better on {column} “{value}”", **kind)
        )
        if not self.groups[0].proven:
            first = _("{kind}, not proven", kind=first)
        return f"{first} +{others}" if others else first

    def sentence(self, study: Study, fit: Fit = str) -> str:
        named = verdicts.kinds(study, self.groups, fit)
        if self.worse:
            return _("Worse for some kinds of queries: {kinds}.", kinds=named)
        return _("Better for some kinds of queries: {kinds}.", kinds=named)


@dataclass(frozen=True)
class AsGood(Caveat, code="as_good", section="result", title="as good and cheaper or faster"):
    """Caveat that another system is as good as the best one, within the user's margin, and cheaper
    or faster. axes: cost, latency or both, if it is the first of such systems on them."""

    system: str
    best: str
    axes: tuple[Axis, ...]

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        best = standings(study)[0].system
        if best == challenger:
            marked = as_good_as_best(study)
            yield from (cls(system, best, axes) for system, axes in marked.items())

    def label(self, study: Study, fit: Fit = str) -> str:
        if len(self.axes) > 1:
            return _("faster and cheaper system is as good")
        if self.axes == ("p95",):
            return _("faster system is as good")
        return _("cheaper system is as good")

    def sentence(self, study: Study, fit: Fit = str) -> str:
        as_good = _(
            "{system} is as good as {best}, within the margin of {margin} (set by the user).",
            system=fit(study.name(self.system)),
            best=fit(study.name(self.best)),
            margin=plain(study.statistics.equal_margin or 0.0),
        )
        if len(self.axes) > 1:
            return paragraph([as_good, _("It has the lowest latency and price of these systems.")])
        if self.axes == ("p95",):
            return paragraph([as_good, _("It has the lowest latency of these systems.")])
        return paragraph([as_good, _("It has the lowest price of these systems.")])


@dataclass(frozen=True)
class OtherMetrics(Caveat, code="other_metrics", section="result"):
    """Caveat on other metrics with a proven change. better, worse: titles of the metrics."""

    better: tuple[str, ...]
    worse: tuple[str, ...]

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        better: list[str] = []
        worse: list[str] = []
        for spec in study.specs:
            kind = study.comparison.row(challenger, spec)["verdict"]
            if spec != study.spec and kind in PROVEN:
                (worse if kind == "worse" else better).append(parse_measure(spec).title)
        if better or worse:
            yield cls(tuple(better), tuple(worse))

    def label(self, study: Study, fit: Fit = str) -> str:
        n = len(self.worse or self.better)
        if self.worse:
            return ngettext("worse on {n} other metric", "worse on {n} other metrics", n)
        return ngettext("better on {n} other metric", "better on {n} other metrics", n)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        better, worse = all_of(self.better), all_of(self.worse)
        if not worse:
            return _("Proven better on {metrics}.", metrics=better)
        if not better:
            return _("Proven worse on {metrics}.", metrics=worse)
        return _("Proven better on {better}, proven worse on {worse}.", better=better, worse=worse)


@dataclass(frozen=True)
class NearCeiling(Caveat, code="ceiling", section="risks", title="test set too easy"):
    """Caveat that the baseline's mean is close to the best possible mean."""

    value: float
    best: float

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        split = study.headroom(challenger)
        if split is None or not split.n:
            return
        # The set is too easy only if no system ranks documents that allow a higher mean.
        paired = ~np.isnan(split.values["baseline"])
        best = best_of_all(study, tuple(sorted(study.specs)))
        at = places_of(best.query_ids, split.query_ids[paired])
        ids = split.query_ids[paired]
        weights = study.dataset.weights(ids) if study.conventions.weighted else None
        most = mean_of_known(best.column(study.measure)[at], weights)
        if most > 0 and split.baseline >= NEAR_CEILING * most - 1e-12:
            yield cls(split.baseline, most)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return _(
            "The test set is too easy to distinguish rerankers: {baseline} reaches {value}; the "
            "best possible {metric} is {best}.",
            baseline=fit(study.name(study.baseline)),
            value=number(self.value),
            metric=study.title,
            best=number(self.best),
        )


@dataclass(frozen=True)
class NoNegatives(Caveat, code="no_negatives", section="risks", title="all candidates relevant"):
    """Caveat that many queries have relevant candidates only, so every order of them is right.
    queries: number of these queries, of n."""

    queries: int
    n: int

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        def counts(judged: Judged) -> Counter[str]:
            relevant = np.bincount(
                judged.query[judged.label >= study.conventions.threshold],
                minlength=len(judged.query_ids),
            )
            some = relevant > 0
            return Counter(n=int(some.sum()), all=int((some & (relevant == judged.lengths)).sum()))

        total = study.of_judged(FIRST_STAGE, counts)
        if total["n"] and total["all"] >= MANY_WITHOUT * total["n"]:
            yield cls(total["all"], total["n"])

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return ngettext(
            "The test set is too easy: all candidates of {queries} of {n} query are relevant, "
            "so no order is wrong.",
            "The test set is too easy: all candidates of {queries} of {n} queries are "
            "relevant, so no order is wrong.",
            self.n,
            queries=number(self.queries, 0),
        )


@dataclass(frozen=True)
class ExamplePrice(Caveat, code="price", section="elsewhere", title="example price"):
    """Caveat that an example replaces the price of the challenger, which the user did not set."""

    bill: Bill

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        in_use = study.money is not None and study.money.example
        cost = bill(study, challenger) if in_use else None
        if cost is not None and cost.example and not cost.lack:
            yield cls(cost)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return _(
            "Assumed price: {amount} per 1,000 searches ({reasons}).",
            amount=prices.money(self.bill.per_thousand, self.bill.currency),
            reasons=all_of(prices.marks(self.bill)),
        )


@dataclass(frozen=True)
class ShippedTimings(Caveat, code="timings", section="missing", title="latency measured elsewhere"):
    """Caveat that the latencies were supplied with the sample data set."""

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        run = study.run(challenger)
        if run is not None and run.shipped and latency.summary(study, challenger) is not None:
            yield cls()

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return _("The latency comes with the sample; it was not measured on this machine.")
