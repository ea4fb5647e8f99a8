"""The reason of a query's change, as docs/statistics.md has it: document by document, in plain
Python, for every metric that is a sum over documents. Nothing here uses the code that it checks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

BAND = 0.005
NEAR = 0.01
ROUNDING = 1e-9
PAGE = 10
FIRST_ALONE = ("mrr", "hit")
"""In these the first relevant document has the whole value."""

Rows = Sequence[tuple[str, float]]
"""Document and score, best first."""


@dataclass(frozen=True)
class Rule:
    """A metric under the default conventions. top: the highest label of the set."""

    metric: str
    k: int | None
    binary: bool
    top: float
    threshold: float = 1.0
    persistence: float = 0.8

    def counts(self, label: float | None) -> bool:
        least = self.threshold if self.binary else math.nextafter(0.0, 1.0)
        return label is not None and label >= least


def credits(listed: Sequence[str], known: Mapping[str, float], rule: Rule) -> dict[str, float]:
    """What each document of a list adds to the value, by the definition of the metric."""
    k = len(listed) if rule.k is None else rule.k
    name = rule.metric
    labels = sorted((max(label, 0.0) for label in known.values()), reverse=True)
    relevant = sum(label >= rule.threshold for label in known.values())
    ideal = math.fsum(_weight(name, label, rank) for rank, label in enumerate(labels[: rule.k], 1))
    found: dict[str, float] = {}
    hits, wrong = 0, 0
    reached = 1.0
    for rank, doc in enumerate(listed, start=1):
        label = known.get(doc)
        grade = max(label or 0.0, 0.0)
        hit = label is not None and label >= rule.threshold
        hits += hit
        inside = rank <= (relevant if name == "r_precision" else k)
        precision = hits / rank
        if name.startswith(("ndcg", "dcg")):
            worth = _weight(name, grade, rank)
            worth = worth / ideal if name.startswith("ndcg") else worth
        elif name == "mrr":
            worth = 1 / rank if hit and hits == 1 else 0.0
        elif name == "hit":
            worth = 1.0 if hit and hits == 1 else 0.0
        elif name == "map":
            worth = precision / relevant if hit else 0.0
        elif name == "map_graded":
            worth = precision * grade / rule.top / relevant if hit else 0.0
        elif name == "map_graded_norm":
            best = sum(label for label in labels if label >= rule.threshold)
            worth = precision * grade / best if hit else 0.0
        elif name == "precision":
            worth = hit / k
        elif name == "recall":
            worth = hit / relevant
        elif name == "f1":
            worth = 2 * hit / (k + relevant)
        elif name == "r_precision":
            worth = hit / relevant
        elif name == "rbp":
            worth = (1 - rule.persistence) * rule.persistence ** (rank - 1) if hit else 0.0
        elif name == "err":
            stops = (2**grade - 1) / 2**rule.top
            worth = reached * stops / rank
            reached *= 1 - stops
        else:
            assert name == "bpref"
            others = min(len(known) - relevant, relevant)
            worth = (1 - min(wrong, relevant) / others if others else 1.0) / relevant * hit
        wrong += label is not None and not hit
        if inside and worth:
            found[doc] = worth
    return found


def _weight(name: str, grade: float, rank: int) -> float:
    gain = 2**grade - 1 if name.endswith("_exp") else grade
    if name == "ndcg_jk":
        return gain if rank == 1 else gain / math.log2(rank)
    return gain / math.log2(rank + 1)


@dataclass(frozen=True)
class Side:
    """One list. rank: document → rank."""

    rows: Rows
    known: Mapping[str, float]
    rule: Rule
    rank: Mapping[str, int] = field(init=False)
    credit: Mapping[str, float] = field(init=False)

    def __post_init__(self) -> None:
        docs = [doc for doc, _score in self.rows]
        object.__setattr__(self, "rank", {doc: rank for rank, doc in enumerate(docs, start=1)})
        object.__setattr__(self, "credit", credits(docs, self.known, self.rule))

    @property
    def value(self) -> float:
        return math.fsum(self.credit.values())

    def best(self, within: int | None) -> float:
        """The value of the best order of the first documents alone."""
        docs = [doc for doc, _score in self.rows][:within]
        docs.sort(key=lambda doc: -max(self.known.get(doc, 0.0), 0.0))
        return math.fsum(credits(docs, self.known, self.rule).values())

    def first_relevant(self) -> str | None:
        return next(
            (doc for doc, _score in self.rows if self.known.get(doc, -1.0) >= self.rule.threshold),
            None,
        )

    def has_margins(self) -> bool:
        """Whether the scores are more than ranks."""
        scores = [score for _doc, score in self.rows]
        steps = [one - other for one, other in pairwise(scores)]
        if len(steps) < 2:
            return False
        return max(steps) - min(steps) > ROUNDING * max(scores[0] - scores[-1], 1e-300)


def reason(before: Rows | None, after: Rows | None, known: Mapping[str, float], rule: Rule) -> str:
    """The first of the documented conditions that is met. before, after: the lists; None for a
    ranking that lacks the query. No model is known to have truncated a text."""
    if not any(rule.counts(label) for label in known.values()):
        return "no_relevant_label"
    if before is None or after is None:
        return "missing"
    sides = [Side(rows, known, rule) for rows in (before, after)]
    was, now = sides
    below = rule.k is not None and any(
        side.best(None) - side.best(rule.k) > BAND + ROUNDING for side in sides
    )
    shown = [doc for side in sides for doc, rank in side.rank.items() if rank <= (rule.k or rank)]
    labelled = any(doc in known for doc in shown)
    change = now.value - was.value
    moved = {
        doc: now.credit.get(doc, 0.0) - was.credit.get(doc, 0.0)
        for doc in (*was.rank, *(each for each in now.rank if each not in was.rank))
    }
    if rule.metric in FIRST_ALONE:
        gains, losses = max(change, 0.0), max(-change, 0.0)
    else:
        gains = math.fsum(each for each in moved.values() if each > 0)
        losses = -math.fsum(each for each in moved.values() if each < 0)
    same = abs(change) <= BAND + ROUNDING
    helped, hurt = change > 0 and not same, change < 0 and not same
    still = same and max(gains, losses) <= BAND + ROUNDING
    if not labelled and not below:
        return "nothing_judged"
    if not any(rule.counts(known.get(doc)) for side in sides for doc in side.rank):
        return "no_relevant_candidate"
    if same and was.value > ROUNDING and was.value >= was.best(None) - ROUNDING:
        return "already_ideal"
    if still and below:
        return "below_cutoff"
    if still:
        return "idle"
    one_sided = min(gains, losses) <= 0.5 * max(gains, losses) + ROUNDING
    main = _main(moved, known, helped=helped, hurt=hurt)
    place = _places(main, was, now)
    most = abs(moved[main]) >= 0.5 * abs(change) - ROUNDING
    if one_sided and most and _near(*place, was, now):
        return "near_tie"
    page = rule.k or PAGE
    if hurt and one_sided:
        rank_before, rank_after = place
        if rank_before is not None and rank_before <= page and (rank_after or math.inf) > page:
            return "buried"
        worse, unjudged = _overtook(main, *place, was, now)
        if worse and worse >= unjudged:
            return "distractor_lifted"
        if unjudged:
            return "unjudged_lifted"
    if helped and (one_sided or now.value >= now.best(None) - ROUNDING):
        return "rescued"
    return "mixed"


def _main(
    moved: Mapping[str, float], known: Mapping[str, float], *, helped: bool, hurt: bool
) -> str:
    """The relevant document that lost most, gained most, or moved the value most."""
    sign = 1 if helped else -1
    weight = {
        doc: round(sign * part if helped or hurt else abs(part), 12)
        for doc, part in moved.items()
        if known.get(doc, 0.0) > 0
    }
    return max(weight, key=weight.__getitem__)


def _places(main: str, was: Side, now: Side) -> tuple[int | None, int | None]:
    """The rank of the main document before and after; in MRR and hit the rank of the first relevant
    document of either list."""
    if was.rule.metric in FIRST_ALONE:
        firsts = was.first_relevant(), now.first_relevant()
        return tuple(
            None if doc is None else side.rank[doc]
            for side, doc in zip((was, now), firsts, strict=True)
        )  # type: ignore[return-value]
    return was.rank.get(main), now.rank.get(main)


def _near(before: int | None, after: int | None, was: Side, now: Side) -> bool:
    """Whether the score at the rank of before is within 1 % of the range of the score at the rank
    of now."""
    if before is None or after is None or before == after or before > len(now.rows):
        return False
    scores = [score for _doc, score in now.rows]
    span = scores[0] - scores[-1]
    if not span > 0 or not now.has_margins():
        return False
    return abs(scores[before - 1] - scores[after - 1]) / span <= NEAR


def _overtook(
    main: str, before: int | None, after: int | None, was: Side, now: Side
) -> tuple[int, int]:
    """How many documents within k that are above the main one now and were not before are judged
    worse, and are not judged."""
    if before is None:
        return 0, 0
    rule, known = was.rule, was.known
    passed = [
        doc
        for doc, rank in now.rank.items()
        if rank < (after or math.inf)
        and rank <= (rule.k or rank)
        and was.rank.get(doc, math.inf) > before
    ]
    limit = rule.threshold if rule.binary else known[main]
    worse = sum(doc in known and max(known[doc], 0.0) < limit for doc in passed)
    return worse, sum(doc not in known for doc in passed)
