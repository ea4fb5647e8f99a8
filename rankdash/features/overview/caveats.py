"""What to know beside a verdict. A caveat is one class: when it applies, its sentence, and its
section of the decision page.

Pages, reports and commands get the values from `caveats`, and their texts from `sentence`: a class
that is defined here is on all of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from rankdash.core.base.errors import Finding
from rankdash.core.base.i18n import (
    all_of,
    finding_text,
    ngettext,
    number,
    paragraph,
    percent,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.dataset import FirstStage
from rankdash.core.data.measured import TOO_MANY_UNKNOWN
from rankdash.core.metrics import Judged, parse_measure
from rankdash.core.runs import combining
from rankdash.core.statistics.alignment import places_of
from rankdash.core.statistics.comparison import Comparison, compare
from rankdash.core.statistics.verdict import PROVEN
from rankdash.core.study import latency
from rankdash.core.study.cache import part
from rankdash.core.study.groups import Group, turned
from rankdash.core.study.headroom import best_of_all
from rankdash.core.study.leaderboard import standings
from rankdash.core.study.pricing import Bill, bill
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words import prices, queries, verdicts

# Lists that differ less in length than this are as long.
_AS_LONG = 0.9
LEAST_UNLABELLED = 0.01
"""A smaller share of documents without a label is not worth a caveat."""

NEAR_CEILING = 0.95
"""From this share of the best possible value on, little is left to gain."""

MANY_WITHOUT = 0.5
"""From this share of the queries on, candidates without a single wrong one are worth a caveat."""

GAINS = ("better", "small")

Fit = Callable[[str], str]
"""What makes a name or a value from the data fit for a surface, such as by escaping it."""

Section = Literal["result", "risks", "missing", "elsewhere"]
"""Where the decision page shows a caveat; elsewhere: in more detail, beside the kinds of queries
and the prices."""


class Caveat(ABC):
    """What to know beside a verdict, with its numbers. The most serious class is the first.

    code: names it in JSON. section: of the decision page. title: in a few words.
    """

    code: ClassVar[str]
    section: ClassVar[Section]
    title: ClassVar[str]

    def __init_subclass__(cls, *, code: str, section: Section, title: str = "") -> None:
        cls.code, cls.section, cls.title = code, section, title

    @classmethod
    @abstractmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        """Yield the caveat if it applies to the verdict on a challenger."""

    def label(self, study: Study, fit: Fit = str) -> str:
        """Return the caveat in a few words."""
        return _p("caveat", self.title)

    @abstractmethod
    def sentence(self, study: Study, fit: Fit = str) -> str:
        """Return the caveat in words."""


def caveats(study: Study, challenger: str) -> tuple[Caveat, ...]:
    """Return the caveats that apply to the verdict on a challenger, the most serious first."""
    if not study.measures_quality:
        return ()
    return tuple(each for kind in Caveat.__subclasses__() for each in kind.of(study, challenger))


@dataclass(frozen=True)
class Implausible(Caveat, code="implausible", section="risks", title="data may be wrong"):
    """A finding of the check report by which labels, texts or rankings may be wrong."""

    finding: Finding

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        yield from () if study.check is None else map(cls, study.check.implausible)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return fit(finding_text(self.finding))


@dataclass(frozen=True)
class RefusedRows(Caveat, code="refused_rows", section="risks", title="rows excluded"):
    """Many rows of the files were refused."""

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
class UnknownTokens(Caveat, code="unknown_tokens", section="risks", title="unknown tokens"):
    """The model does not know many of the tokens that it reads. share: of them, in [0, 1]."""

    system: str
    share: float

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        for system in (challenger, study.baseline):
            share = unknown_tokens(study, system)
            if share > TOO_MANY_UNKNOWN:
                yield cls(system, share)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return queries.unknown_tokens(fit(study.name(self.system)), self.share)


def unknown_tokens(study: Study, system: str) -> float:
    """The share of tokens that the model of a system, or of a part of it, does not know; NaN where
    it is not known."""
    run = study.run(system)
    if run is None:
        return math.nan
    return combining.unknown_tokens(
        run, lambda part: study.run(part) if part in study.systems else None
    )


@dataclass(frozen=True)
class MadeBaseline(Caveat, code="baseline", section="missing", title="baseline is not your search"):
    """The first stage is not the user's own search. how: it was made. labelled_only: it ranks no
    other documents."""

    how: FirstStage
    labelled_only: bool

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        how = study.dataset.first_stage
        noticed = () if study.check is None else study.check.findings
        if how == "given" and any(finding.code == "order_of_the_file" for finding in noticed):
            # A data set of an older version, which took that order without being asked.
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
                    "It ranks labelled documents only: a search would have to find them among all "
                    "others, so its values are higher here."
                )
            )
        return paragraph(sentences)


@dataclass(frozen=True)
class Unlabelled(Caveat, code="unlabelled", section="risks"):
    """Shares of the documents looked at that have no label. skipped: whether the conventions or the
    metric leave them out; else they count as not relevant."""

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
        # Written so that NaN, of a system without a value, is no caveat.
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
        counted = _("They are skipped.") if self.skipped else _("They count as not relevant.")
        return paragraph([without, counted])


@dataclass(frozen=True)
class ShortLists(Caveat, code="short_lists", section="risks", title="lists of different length"):
    """The lists of a system end well before the cutoff, and the lists of the other do not.
    documents, others: how many documents the longest list of each side has."""

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
            "{name} lists at most {n} document per query and the other ranking {others}: "
            "{metric} also measures how many documents each lists.",
            "{name} lists at most {n} documents per query and the other ranking {others}: "
            "{metric} also measures how many documents each lists.",
            self.documents,
            name=fit(study.name(self.system)),
            others=number(self.others, 0),
            metric=study.measure.title,
        )


@dataclass(frozen=True)
class TurnedGroups(Caveat, code="segments", section="elsewhere"):
    """The kinds of queries, of enough of them, whose change has the other sign, beyond the tie
    band; proven ones and larger changes first. worse: whether they lose where the whole gains."""

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
class UnprovenLead(Caveat, code="lead", section="risks", title="lead not proven"):
    """The best system is not proven better than the next best, if that is a challenger too. delta:
    between them."""

    other: str
    delta: float

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        order = [each.system for each in standings(study)]
        if order[:1] != [challenger] or len(order) < 2 or order[1] == study.baseline:
            return
        row = _between(study, order[1], challenger).row(challenger, study.spec)
        if row["verdict"] not in GAINS:
            yield cls(order[1], float(row["delta"]))

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return _(
            "The lead over {other} ({delta}) is not proven.",
            other=fit(study.name(self.other)),
            delta=signed(self.delta),
        )


@part("labels", "metric", "conventions", "statistics")
def _between(study: Study, one: str, other: str) -> Comparison:
    """The challenger `other` against the challenger `one` on the chosen metric."""
    evaluations = {each: study.evaluations[each] for each in (one, other)}
    return compare(evaluations, one, study.statistics, measures=[study.measure])


@dataclass(frozen=True)
class OtherMetrics(Caveat, code="other_metrics", section="result"):
    """Titles of the other metrics on which the challenger is proven better, or worse."""

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
    """The baseline's mean is close to the best possible one."""

    value: float
    best: float

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        split = study.headroom(challenger)
        if split is None or not split.n:
            return
        # The set is too easy only if no system has documents that could do better.
        paired = ~np.isnan(split.values["baseline"])
        best = best_of_all(study, tuple(sorted(study.specs)))
        at = places_of(best.query_ids, split.query_ids[paired])
        most = float(best.column(study.measure)[at].mean())
        if most > 0 and split.baseline >= NEAR_CEILING * most - 1e-12:
            yield cls(split.baseline, most)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return _(
            "The test set is too easy to tell rerankers apart: {baseline} reaches {value}; the "
            "best possible {metric} is {best}.",
            baseline=fit(study.name(study.baseline)),
            value=number(self.value),
            metric=study.measure.title,
            best=number(self.best),
        )


@dataclass(frozen=True)
class NoNegatives(Caveat, code="no_negatives", section="risks", title="all candidates relevant"):
    """Of n queries, so many whose candidates are all relevant: no order of these is wrong."""

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
    """Nobody set the price of the challenger."""

    bill: Bill

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        cost = None if study.money is None else bill(study, challenger)
        if cost is not None and cost.example and not cost.lack:
            yield cls(cost)

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return _(
            "{amount} for 1,000 searches is assumed ({reasons}).",
            amount=prices.money(self.bill.per_thousand, self.bill.currency),
            reasons=all_of(prices.marks(self.bill)),
        )


@dataclass(frozen=True)
class ShippedTimings(Caveat, code="timings", section="missing", title="latency measured elsewhere"):
    """The latencies came with the sample."""

    @classmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        run = study.run(challenger)
        if run is not None and run.shipped and latency.summary(study, challenger) is not None:
            yield cls()

    def sentence(self, study: Study, fit: Fit = str) -> str:
        return _("The latency comes with the sample; it was not measured on this machine.")
