"""Charts of all systems and of groups of queries."""

from __future__ import annotations

import pandas as pd

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.study.groups import DERIVED_SEGMENTS
from rankdash.core.study.headroom import shares
from rankdash.core.study.study import Study
from rankdash.features.overview import charts_cutoffs as cutoffs_chart
from rankdash.features.overview import charts_headroom as headroom_chart
from rankdash.features.overview import charts_systems as systems_chart
from rankdash.kit.drawing import group_changes as segments_chart
from rankdash.kit.drawing import style
from rankdash.kit.drawing.draw import Drawing

DERIVED = {each.name: each for each in DERIVED_SEGMENTS}

_MOST_GROUPS = 12

# Of one chart of groups: more would be taller than a page of paper.
_MOST_ROWS = 18


def systems(study: Study) -> Drawing:
    """Every metric of every system against the baseline."""
    table = study.comparison.frame
    table = table[table["metric"] != study.spec_of("judged")]
    level, names, titles = study.statistics.level, study.names, study.titles
    return Drawing(
        lambda ink: systems_chart.figure(
            table,
            study.baseline,
            ink,
            level=level,
            names=names,
            titles=titles,
            corrected=study.comparison.corrected,
            marks=style.marks(study.places, study.baseline),
        ),
        systems_chart.alt(table, study.baseline, level=level, names=names, titles=titles),
    )


def cutoffs(study: Study) -> Drawing | None:
    """The metric against k; None where it has none."""
    curves = study.curves
    if curves.empty:
        return None
    title = study.measure.metric.title
    return Drawing(
        lambda ink: cutoffs_chart.figure(
            curves,
            title,
            study.baseline,
            ink,
            k=study.cutoff,
            level=study.statistics.level,
            names=study.names,
            marks=style.marks(study.places, study.baseline),
        ),
        cutoffs_chart.alt(curves, title, names=study.names),
    )


def headroom(study: Study) -> Drawing | None:
    """Where quality is lost; None where there is nothing to split."""
    table = shares({system: study.headroom(system) for system in study.challengers})
    if table.empty:
        return None
    title = study.measure.title
    return Drawing(
        lambda ink: headroom_chart.figure(table, title, ink, names=study.names),
        headroom_chart.alt(table, title, names=study.names),
    )


def group(study: Study, challenger: str, segment: str) -> pd.DataFrame:
    """The change in each group of one segment, as from `Study.segment`, in the words of the reader:
    name, segment (its title), value and small besides."""
    table = study.segment(challenger, segment)
    own = None if segment in study.dataset.segments else DERIVED.get(segment)
    values = table["segment"]
    return table.assign(
        name=segment,
        segment=_(own.title) if own is not None else segment,
        value=values if own is None else [_(value) for value in values],
        small=table["size"] != "enough",
    )


def groups(study: Study, challenger: str) -> pd.DataFrame:
    """The same for each segment that has two to twelve groups with a query to compare."""
    tables = (group(study, challenger, name) for name in study.segments)
    compared = [table[table["n"] > 0] for table in tables]
    parts = [table for table in compared if 2 <= len(table) <= _MOST_GROUPS]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def groups_corrected(study: Study, table: pd.DataFrame) -> bool:
    """Whether any p of these groups allows for the others of its segment."""
    tested = table.groupby("name")["p_corrected"].count()
    return any(study.statistics.corrects(n) for n in tested)


def drawn_groups(table: pd.DataFrame) -> pd.DataFrame:
    """The groups that a chart shows: one of few queries is an anecdote, and stands in a table."""
    return table[table["n"] >= FEWEST_QUERIES].head(_MOST_GROUPS)


def group_chart(study: Study, table: pd.DataFrame) -> Drawing | None:
    """The groups of one segment; None where none has enough queries."""
    drawn = drawn_groups(table)
    return _segments(study, drawn) if len(drawn) else None


def segments(study: Study, challenger: str) -> list[Drawing]:
    """The mean change in each group of queries that is large enough, a few segments a chart."""
    table = groups(study, challenger)
    if table.empty:
        return []
    table = table[table["n"] >= FEWEST_QUERIES]
    drawn: list[Drawing] = []
    kept: list[pd.DataFrame] = []
    for _name, own in table.groupby("segment", sort=False):
        if len(own) < 2:
            continue
        if kept and sum(map(len, kept)) + len(own) > _MOST_ROWS:
            drawn.append(_segments(study, pd.concat(kept)))
            kept = []
        kept.append(own)
    return [*drawn, _segments(study, pd.concat(kept))] if kept else drawn


def _segments(study: Study, table: pd.DataFrame) -> Drawing:
    title, level = study.measure.title, study.statistics.level
    return Drawing(
        lambda ink: segments_chart.figure(
            table, title, ink, level=level, corrected=groups_corrected(study, table)
        ),
        segments_chart.alt(table, title, level=level),
        # Rows of one segment stand under no name.
        title=str(table["segment"].iloc[0]) if table["segment"].nunique() == 1 else "",
    )
