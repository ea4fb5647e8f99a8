"""The reason of a query in NDCG, by the documented table. No text is known to be truncated here."""

import math
from collections.abc import Mapping, Sequence

from tests.referee.definitions import K, best, discounted
from tests.referee.given import Lists
from tests.referee.rules import Rules

BAND = 0.005
Rows = Sequence[tuple[str, float]]


def reason(
    before: Rows | None, after: Rows | None, known: Mapping[str, float], rules: Rules
) -> str:
    """Return the reason. before, after: the two lists; None if there is no result."""
    if before is None or after is None:
        return "failed"
    if not any(label > 0 for label in known.values()):
        return "no_relevant_label"
    sides = [_Side(rows, known, rules) for rows in (before, after)]
    below = any(side.below > BAND + 1e-9 for side in sides)
    if not below and not any(side.judged for side in sides):
        return "nothing_judged"
    if not any(side.rank for side in sides):
        return "no_relevant_candidate"
    return _of_change(*sides, known, below)


class _Side:
    """One of the two lists. rank: of each document with a label above 0, as the metric counts it.
    credit: its contribution. place: of every document, in the whole list. judged: whether any of
    the first K has a label. below: possible contribution, in the best order, of documents below
    K."""

    def __init__(self, rows: Rows, known: Mapping[str, float], rules: Rules) -> None:
        self.scores = [score for _document, score in rows]
        self.place = {document: place for place, (document, _score) in enumerate(rows)}
        counted = [each for each, _score in rows if not rules.judged_only or each in known]
        self.shown = {document: rank for rank, document in enumerate(counted, start=1)}
        self.rank = {each: rank for each, rank in self.shown.items() if known.get(each, 0) > 0}
        self.ideal = discounted(sorted(known.values(), reverse=True), K)
        self.credit = {
            each: known[each] / math.log2(rank + 1) / self.ideal if rank <= K else 0.0
            for each, rank in self.rank.items()
        }
        self.value = sum(self.credit.values())
        self.ceiling = discounted(best([known.get(each) for each in counted]), K) / self.ideal
        self.judged = any(each in known for each in counted[:K])
        first = discounted(best([known.get(each) for each in counted[:K]]), K) / self.ideal
        self.below = self.ceiling - first

    @property
    def perfect(self) -> bool:
        return self.value >= self.ceiling - 1e-9

    @property
    def tells_margins(self) -> bool:
        """True if the scores are more than ranks, with the same difference at each step."""
        steps = [one - other for one, other in zip(self.scores, self.scores[1:], strict=False)]
        return len(steps) > 1 and max(steps) - min(steps) > 1e-9 * (
            self.scores[0] - self.scores[-1]
        )


def _of_change(before: _Side, after: _Side, known: Mapping[str, float], below: bool) -> str:
    moved = {
        each: after.credit.get(each, 0.0) - before.credit.get(each, 0.0)
        for each in [*before.credit, *(each for each in after.credit if each not in before.credit)]
    }
    change = math.fsum(moved.values())
    gained, lost = (sum(max(sign * each, 0.0) for each in moved.values()) for sign in (1, -1))
    one_sided = min(gained, lost) <= max(gained, lost) / 2 + 1e-9
    helped, hurt = change > BAND + 1e-12, change < -BAND - 1e-12
    if not helped and not hurt:
        if before.perfect and before.value > 1e-9:
            return "already_ideal"
        if max(gained, lost) <= BAND + 1e-12:
            return "below_cutoff" if below else "idle"
    weight = {
        each: round(abs(part) if not helped and not hurt else part * (1 if helped else -1), 12)
        for each, part in moved.items()
    }
    main = max(weight, key=weight.__getitem__)
    if one_sided and abs(moved[main]) >= abs(change) / 2 - 1e-9 and _near(main, before, after):
        return "near_tie"
    if hurt and one_sided:
        fell_out = before.rank.get(main, math.inf) <= K < after.rank.get(main, math.inf)
        if fell_out:
            return "buried"
        worse, unjudged = _overtook(main, before, after, known)
        if worse and worse >= unjudged:
            return "distractor_lifted"
        if unjudged:
            return "unjudged_lifted"
    if helped and (one_sided or after.perfect):
        return "rescued"
    return "mixed"


def _near(main: str, before: _Side, after: _Side) -> bool:
    was, now = before.place.get(main), after.place.get(main)
    if was is None or now is None or was == now or was >= len(after.scores):
        return False
    span = after.scores[0] - after.scores[-1]
    apart = abs(after.scores[was] - after.scores[now])
    return after.tells_margins and span > 0 and apart / span <= 0.01


def _overtook(
    main: str, before: _Side, after: _Side, known: Mapping[str, float]
) -> tuple[int, int]:
    """Return how many documents within K that overtook the main one have a lower label, and how
    many are unlabelled."""
    bound = after.place.get(main, math.inf)
    passed = [
        each
        for each, place in after.place.items()
        if place < bound
        and after.shown.get(each, math.inf) <= K
        and not before.place.get(each, math.inf) < before.place[main]
    ]
    worse = sum(each in known and max(known[each], 0.0) < known[main] for each in passed)
    return worse, sum(each not in known for each in passed)


def reasons(
    before: Lists, after: Lists, labels: Mapping[str, Mapping[str, float]], rules: Rules
) -> dict[str, str]:
    return {
        query: reason(before.get(query), after.get(query), known, rules)
        for query, known in labels.items()
    }
