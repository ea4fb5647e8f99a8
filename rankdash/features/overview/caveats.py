"""What to keep in mind beside a verdict: each caveat is a value, and only those that hold are made.

`rankdash.features.overview.words` has their sentences; pages, reports and commands show the
same ones.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankdash.core.base.errors import Finding
from rankdash.core.data.dataset import FirstStage
from rankdash.core.data.measured import TOO_MANY_UNKNOWN
from rankdash.core.metrics import Judged, parse_measure
from rankdash.core.runs import combining
from rankdash.core.statistics.alignment import places_of
from rankdash.core.statistics.comparison import Comparison, compare
from rankdash.core.study import timings
from rankdash.core.study.cache import part
from rankdash.core.study.headroom import best_of_all
from rankdash.core.study.leaderboard import standings
from rankdash.core.study.pricing import Bill, bill
from rankdash.core.study.query_groups import Group, turned
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE

# Lists that differ less in length than this are as long.
_AS_LONG = 0.9
LEAST_UNLABELLED = 0.01
"""A smaller share of documents without a label is not worth a caveat."""

NEAR_CEILING = 0.95
"""From this share of the best possible value on, little is left to gain."""

MANY_WITHOUT = 0.5
"""From this share of the queries on, candidates without a single wrong one are worth a caveat."""

GAINS = ("better", "small")


@dataclass(frozen=True)
class Unlabelled:
    """Shares of the documents looked at that have no label. skipped: whether the conventions or the
    metric leave them out; else they count as not relevant."""

    code: ClassVar[str] = "unlabelled"
    baseline: float
    challenger: float
    skipped: bool


@dataclass(frozen=True)
class MadeBaseline:
    """The first stage is not the user's own search. how: it was made. labelled_only: it ranks no
    other documents."""

    code: ClassVar[str] = "baseline"
    how: FirstStage
    labelled_only: bool


@dataclass(frozen=True)
class RefusedRows:
    """Many rows of the files were refused."""

    code: ClassVar[str] = "refused_rows"
    count: int
    rows: int


@dataclass(frozen=True)
class Implausible:
    """A finding of the check report by which labels, texts or rankings may be wrong."""

    code: ClassVar[str] = "implausible"
    finding: Finding


@dataclass(frozen=True)
class UnknownTokens:
    """The model does not know many of the tokens that it reads. share: of them, in [0, 1]."""

    code: ClassVar[str] = "unknown_tokens"
    system: str
    share: float


@dataclass(frozen=True)
class ShortLists:
    """The lists of a system end well before the cutoff, and the lists of the other do not.
    documents, others: how many documents the longest list of each side has."""

    code: ClassVar[str] = "short_lists"
    system: str
    documents: int
    others: int


@dataclass(frozen=True)
class NearCeiling:
    """The baseline's mean is close to the best possible one."""

    code: ClassVar[str] = "ceiling"
    value: float
    best: float


@dataclass(frozen=True)
class NoNegatives:
    """Of n queries, so many whose candidates are all relevant: no order of these is wrong."""

    code: ClassVar[str] = "no_negatives"
    queries: int
    n: int


@dataclass(frozen=True)
class ExamplePrice:
    """Nobody set the price of the challenger."""

    code: ClassVar[str] = "price"
    bill: Bill


@dataclass(frozen=True)
class OtherMetrics:
    """Titles of the other metrics on which the challenger is proven better, or worse."""

    code: ClassVar[str] = "other_metrics"
    better: tuple[str, ...]
    worse: tuple[str, ...]


@dataclass(frozen=True)
class TurnedGroups:
    """The kinds of queries whose change has the other sign, proven ones and larger changes first.
    worse: whether they lose where the whole gains."""

    code: ClassVar[str] = "segments"
    worse: bool
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class ShippedTimings:
    """The latencies came with the sample."""

    code: ClassVar[str] = "timings"


@dataclass(frozen=True)
class UnprovenLead:
    """The best system is not proven better than the next best challenger. delta: between them."""

    code: ClassVar[str] = "lead"
    other: str
    delta: float


Caveat = (
    Implausible
    | RefusedRows
    | Unlabelled
    | MadeBaseline
    | UnknownTokens
    | ShortLists
    | NearCeiling
    | NoNegatives
    | ExamplePrice
    | OtherMetrics
    | TurnedGroups
    | ShippedTimings
    | UnprovenLead
)


def caveats(study: Study, challenger: str) -> tuple[Caveat, ...]:
    """The caveats that hold of the verdict on a challenger, the most serious kinds first."""
    if not study.measures_quality:
        return ()
    found = (
        *_implausible(study),
        _refused_rows(study),
        _unknown_tokens(study, challenger),
        _unknown_tokens(study, study.baseline),
        _made_baseline(study),
        _unlabelled(study, challenger),
        _short_lists(study, challenger),
        _turned_groups(study, challenger),
        _unproven_lead(study, challenger),
        _other_metrics(study, challenger),
        _near_ceiling(study, challenger),
        _no_negatives(study),
        _example_price(study, challenger),
        _shipped_timings(study, challenger),
    )
    return tuple(each for each in found if each is not None)


def _implausible(study: Study) -> tuple[Implausible, ...]:
    return () if study.check is None else tuple(map(Implausible, study.check.implausible))


def _refused_rows(study: Study) -> RefusedRows | None:
    found = None if study.check is None else study.check.refused_rows
    return None if found is None else RefusedRows(*found)


def _unlabelled(study: Study, challenger: str) -> Unlabelled | None:
    spec = study.spec_of("judged")
    shares = [
        1 - study.evaluate(system, study.specs if spec in study.specs else (spec,)).mean(spec)
        for system in (study.baseline, challenger)
    ]
    # Written so that NaN, of a system without a value, is no caveat.
    if not any(share >= LEAST_UNLABELLED for share in shares):
        return None
    skipped = study.conventions.judged_only or study.measure.metric.skips_unlabelled
    return Unlabelled(shares[0], shares[1], skipped)


def _short_lists(study: Study, challenger: str) -> ShortLists | None:
    def lengths(judged: Judged) -> Counter[int]:
        sizes, counts = np.unique(judged.lengths, return_counts=True)
        return Counter(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))

    longest = {
        side: max(study.of_judged(side, lengths), default=0)
        for side in (challenger, study.baseline)
    }
    short = min(longest, key=longest.__getitem__)
    others = max(longest.values())
    if longest[short] >= _AS_LONG * min(study.measure.k or others, others):
        return None
    return ShortLists(short, longest[short], others)


def _made_baseline(study: Study) -> MadeBaseline | None:
    how = study.dataset.first_stage
    noticed = () if study.check is None else study.check.findings
    if how == "given" and any(finding.code == "order_of_the_file" for finding in noticed):
        # A data set of an older version, which took that order without being asked.
        how = "rows"
    if study.baseline != FIRST_STAGE or how == "given":
        return None
    judged = study.judged(FIRST_STAGE)
    return MadeBaseline(how, bool((judged.judged_within(None) == judged.lengths).all()))


def _unknown_tokens(study: Study, system: str) -> UnknownTokens | None:
    share = unknown_tokens(study, system)
    return UnknownTokens(system, share) if share > TOO_MANY_UNKNOWN else None


def unknown_tokens(study: Study, system: str) -> float:
    """The share of tokens that the model of a system, or of a part of it, does not know; NaN where
    it is not known."""
    run = study.run(system)
    if run is None:
        return math.nan
    return combining.unknown_tokens(
        run, lambda part: study.run(part) if part in study.systems else None
    )


def _near_ceiling(study: Study, challenger: str) -> NearCeiling | None:
    split = study.headroom(challenger)
    if split is None or not split.n:
        return None
    # The set is too easy only if no system has documents that could do better.
    paired = ~np.isnan(split.values["baseline"])
    best = best_of_all(study, tuple(sorted(study.specs)))
    at = places_of(best.query_ids, split.query_ids[paired])
    most = float(best.column(study.measure)[at].mean())
    near = most > 0 and split.baseline >= NEAR_CEILING * most - 1e-12
    return NearCeiling(split.baseline, most) if near else None


def _no_negatives(study: Study) -> NoNegatives | None:
    def counts(judged: Judged) -> Counter[str]:
        relevant = np.bincount(
            judged.query[judged.label >= study.conventions.threshold],
            minlength=len(judged.query_ids),
        )
        asked = relevant > 0
        return Counter(n=int(asked.sum()), all=int((asked & (relevant == judged.lengths)).sum()))

    found = study.of_judged(FIRST_STAGE, counts)
    queries, n = found["all"], found["n"]
    return NoNegatives(queries, n) if n and queries >= MANY_WITHOUT * n else None


def _example_price(study: Study, challenger: str) -> ExamplePrice | None:
    found = None if study.money is None else bill(study, challenger)
    example = found is not None and found.example and not found.lack
    return ExamplePrice(found) if found is not None and example else None


def _other_metrics(study: Study, challenger: str) -> OtherMetrics | None:
    better: list[str] = []
    worse: list[str] = []
    for spec in study.specs:
        kind = study.comparison.row(challenger, spec)["verdict"]
        if spec != study.spec and kind in (*GAINS, "worse"):
            (worse if kind == "worse" else better).append(parse_measure(spec).title)
    return OtherMetrics(tuple(better), tuple(worse)) if better or worse else None


def _turned_groups(study: Study, challenger: str) -> TurnedGroups | None:
    """Of enough queries, and beyond the tie band on the other side."""
    change = float(study.comparison.row(challenger, study.spec)["delta"])
    if math.isnan(change) or change == 0:
        return None
    found = turned(study, challenger, change)
    found.sort(key=lambda each: (not each.proven, -abs(each.delta)))
    return TurnedGroups(change > 0, tuple(found)) if found else None


def _shipped_timings(study: Study, challenger: str) -> ShippedTimings | None:
    run = study.run(challenger)
    if run is None or not run.shipped:
        return None
    return ShippedTimings() if timings.summary(study, challenger) is not None else None


def _unproven_lead(study: Study, challenger: str) -> UnprovenLead | None:
    """Where the challenger is the best system and another challenger comes next."""
    order = [each.system for each in standings(study)]
    if order[:1] != [challenger] or len(order) < 2 or order[1] == study.baseline:
        return None
    row = _between(study, order[1], challenger).row(challenger, study.spec)
    return None if row["verdict"] in GAINS else UnprovenLead(order[1], float(row["delta"]))


@part("labels", "metric", "conventions", "statistics")
def _between(study: Study, one: str, other: str) -> Comparison:
    """The challenger `other` against the challenger `one` on the chosen metric."""
    found = {each: study.evaluations[each] for each in (one, other)}
    return compare(found, one, study.statistics, measures=[study.measure])
