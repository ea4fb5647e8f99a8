"""Every chart of a comparison, by name."""

from __future__ import annotations

from rankdash.core.study.study import Study
from rankdash.features.cost.charts import break_even
from rankdash.features.judge.charts import label_curve, three_ways
from rankdash.features.latency.charts import latency
from rankdash.features.overview.charts import cutoffs, headroom, segments, systems
from rankdash.features.queries.charts import changes
from rankdash.kit.drawing.drawing import Drawing


def drawings(study: Study) -> dict[str, Drawing]:
    """Name, such as "systems" or "changes-2" (the second challenger) → every chart there is."""
    found: dict[str, Drawing | None] = {
        "systems": systems(study),
        "cutoffs": cutoffs(study),
        "headroom": headroom(study),
        "latency": latency(study),
    }
    for place, challenger in enumerate(study.challengers, start=1):
        found[f"changes-{place}"] = changes(study, challenger)
        found[f"break-even-{place}"] = break_even(study, challenger)
        found[f"judge-{place}"] = three_ways(study, challenger)
        found[f"judge-curve-{place}"] = label_curve(study, challenger)
        for part, drawn in enumerate(segments(study, challenger), start=1):
            found[f"segments-{place}-{part}"] = drawn
    return {name: drawn for name, drawn in found.items() if drawn is not None}
