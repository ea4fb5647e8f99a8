"""Charts of all queries, and of the documents of one."""

from __future__ import annotations

from collections.abc import Mapping

from rankdash.core.study.reasons.contributions import Split
from rankdash.core.study.study import Study
from rankdash.features.queries import charts_deltas as deltas_chart
from rankdash.features.queries import charts_ladder as ladder_chart
from rankdash.features.queries import charts_waterfall as waterfall_chart
from rankdash.features.queries.ladder import Ladder
from rankdash.kit.drawing.draw import Drawing


def waterfall(study: Study, challenger: str, split: Split, names: Mapping[str, str]) -> Drawing:
    """What each document adds to the change of a query. names: document id → name."""
    pair = (study.name(study.baseline), study.name(challenger))
    given = (split.documents, split.before, split.measure.title, pair)
    return Drawing(
        lambda ink: waterfall_chart.figure(
            *given, ink, names=names, threshold=study.conventions.threshold
        ),
        waterfall_chart.alt(*given, names=names),
    )


def ladder(
    found: Ladder,
    titles: Mapping[str, str],
    names: Mapping[str, str],
    *,
    focus: str | None = None,
    every: bool = False,
) -> Drawing:
    """Where the documents of a query went. titles: system → name. focus: the document to follow.
    every: all near the top, and not just those that tell something."""
    return Drawing(
        lambda ink: ladder_chart.figure(
            found, ink, titles=titles, names=names, focus=focus, every=every
        ),
        ladder_chart.alt(found, titles=titles, every=every),
    )


def changes(study: Study, challenger: str) -> Drawing:
    """Every query's change, worst first."""
    pairs, title = study.pairs(challenger), study.measure.title
    band = study.statistics.tie_band
    return Drawing(
        lambda ink: deltas_chart.figure(
            pairs, title, ink, tie_band=band, names=study.dataset.query_names
        ),
        deltas_chart.alt(pairs, title, tie_band=band),
    )
