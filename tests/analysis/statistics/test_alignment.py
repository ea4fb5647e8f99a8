"""Systems aligned by query: the place of each value, and the highest value of a system."""

import numpy as np

from rankdash.core.metrics import STATES, parse_measure
from rankdash.core.statistics import alignment
from tests.lists import evaluation
from tests.results import results, shown

SPECS = ("mrr", "judged@10", "dcg@5")


ONE = evaluation({"q2": (0.5, 0.1, 2.0), "q1": ("missing", 0.2, 0.0), "q3": ("failed",) * 3}, SPECS)
OTHER = evaluation(
    {"q4": (1.0, 0.3, 9.0), "q1": (0.25, 0.4, 1.0), "q2": ("no_relevant", 0.5, 3.0)}, SPECS
)


BEST = evaluation(
    {"q1": (0.75, 0.01, 4.0), "q4": (0.5, 0.01, 8.0), "q2": ("no_relevant", 0.0, 2.5)}, SPECS
)
BOTH = {"one": ONE, "other": OTHER}
NAMES = (*alignment.REASONS, "both")


def told(aligned: alignment.Aligned) -> str:
    """Return a line per query and system: values, states, known and answered, reasons."""
    lines = [shown([aligned.systems, [measure.spec for measure in aligned.measures]])]
    reasons = aligned.reasons()
    for s, system in enumerate(aligned.systems):
        for q, query in enumerate(aligned.query_ids):
            states = [(*STATES, alignment.ABSENT)[code] for code in aligned.states[s, q]]
            lines.append(
                f"  {system} {query}: {shown(aligned.values[s, q])} {' '.join(states)}; "
                f"known {shown(aligned.known[s, q])}, answered {shown(aligned.answered[s, q])}; "
                + " ".join(NAMES[code] for code in reasons[s, q])
            )
    counts = [alignment.reason_counts(each[:, 0]) for each in reasons] if aligned.measures else []
    return "\n".join([*lines, f"  counts: {shown(counts)}"])


CASES = {
    # A different value counts for each query: with "baseline" its values first, then the others'.
    "two systems, one twice": lambda: alignment.align(
        {"other": OTHER, "one": ONE, "again": OTHER}, "one"
    ),
    "some measures, in another order": lambda: alignment.align(
        BOTH, "one", [parse_measure(spec) for spec in ("dcg@5", "mrr")]
    ),
    "no measures": lambda: alignment.align({"one": ONE}, "one", []),
    "no such baseline": lambda: alignment.align(BOTH, "two"),
    "no baseline": lambda: alignment.align(BOTH, ""),
    "a system without a measure": lambda: alignment.align(
        {"one": ONE, "other": evaluation({"q1": (0.5,)}, ("mrr",))}, "one"
    ),
}


def test_systems_are_laid_beside_each_other(approved):
    # The best order, a system's value, or the highest value of the metric: q2 has a higher value
    # than the best order of the candidates, q3 has none there, q4 a higher one.
    aligned = alignment.align(BOTH, "one")
    highest = {"the highest by the best order": aligned.highest(BEST),
               "the highest of the metrics": aligned.highest(None)}  # fmt: skip
    approved("analysis/alignment", results(CASES, told) + "\n" + results(highest))
    assert alignment.reason_counts(np.full(4, alignment.HAS_VALUE, dtype=np.int8)) == {}
