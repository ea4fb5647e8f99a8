"""Rank shifts: which documents moved, how far, and how far the systems agree."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, paragraph
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.ranking import SOURCE
from rankdash.core.study.study import Study
from rankdash.features.rank_shifts import charts
from rankdash.features.rank_shifts import study as rank_shifts_study
from rankdash.features.rank_shifts.agreement import PERSISTENCE
from rankdash.features.rank_shifts.shifts import UNRANKED, Flow, Moves, went
from rankdash.kit.widgets import address, pickers, view
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.charts import draw, drawn, show
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.text import markdown_safe, name_rows, rounded
from rankdash.kit.widgets.view import safe_name

DEFAULT_K = 10
"""The depth for a metric without a cutoff."""

_MOST_ROWS = 1000
_ROW_HEIGHT = 35


def depth(study: Study) -> int:
    return study.cutoff or DEFAULT_K


def moves(study: Study, challenger: str) -> Moves:
    return rank_shifts_study.moves(study, challenger)


def flow(study: Study, challenger: str) -> Flow:
    return rank_shifts_study.flow(study, challenger, depth(study))


def destinations(study: Study, challenger: str) -> None:
    """Draw the movements of relevant documents: in a sentence, from bin to bin, in and out of the
    top k. If no label names a relevant document, all documents are counted."""
    movements = moves(study, challenger)
    way = flow(study, challenger)
    st.header(
        _("Movements of relevant documents") if way.total else _("Document movements"),
        anchor=False,
    )
    st.markdown(
        _in_words(way)
        if study.dataset.labelled_queries
        else _("There are no complete labels, so all documents are counted, relevant or not.")
    )
    _left_out(movements)
    cells, bands = st.columns([6, 5], gap="medium")
    with cells:
        chosen = _documents_counted() if way.total else "all"
        table = rank_shifts_study.transitions(study, challenger, relevant_only=chosen != "all")
        key = f"shifts.transitions.{chosen}.{challenger}"
        figure, alt = shared(_transitions, study, challenger, relevant_only=chosen != "all")
        show(figure, alt=alt, key=key, on_select=lambda: _choose_cell(key))
        st.caption(_("Click a cell to list its documents."))
    with bands:
        shared(_flow, study, challenger)
    cell = _cell(table)
    if cell:
        _documents_of(study, challenger, movements, cell, relevant_only=chosen != "all")
    fold(
        _("Counts as tables"),
        "shifts.counts",
        ":material/table:",
        lambda: _count_tables(table, way),
    )


def _documents_counted() -> str | None:
    return pickers.pick_one(
        "documents",
        ["relevant", "all"],
        st.segmented_control,
        default="relevant",
        label=_("Documents counted"),
        label_visibility="collapsed",
        format_func={"relevant": _("Relevant only"), "all": _("All documents")}.__getitem__,
        required=True,
    )


def _transitions(study: Study, challenger: str, *, relevant_only: bool) -> tuple[Any, str]:
    table = rank_shifts_study.transitions(study, challenger, relevant_only=relevant_only)
    sides = (study.name(study.baseline), study.name(challenger))
    return drawn(charts.transitions_chart(table, *sides))


def _flow(study: Study, challenger: str) -> None:
    way = flow(study, challenger)
    sides = (study.name(study.baseline), study.name(challenger))
    st.markdown(_("**Into and out of the top {k}**", k=way.k))
    if not way.total:
        st.caption(_("This chart counts relevant documents, and no label names one."))
        return
    draw(charts.flows_chart(way, *sides), key="shifts.flow")


def _choose_cell(key: str) -> None:
    """Choose the cell that was clicked; a second click removes the choice."""
    clicked = [point["customdata"] for point in st.session_state[key]["selection"]["points"]]
    address.choose("cell", clicked[0][:2] if clicked else None)
    address.publish()


def _cell(table: pd.DataFrame) -> tuple[str, str] | None:
    """Return the cell that the address chooses, as (bin of ranks before, bin after); None without a
    valid one."""
    requested = address.several("cell")
    fits = len(requested) == 2 and requested[0] in table.index and requested[1] in table.columns
    address.lose("cell", " → ".join(requested) if requested and not fits else None)
    address.set_default("cell", requested if fits else None)
    return (requested[0], requested[1]) if fits else None


def _in_words(way: Flow) -> str:
    if not way.total:
        return _("The labels name no relevant document, so all documents are counted.")
    sentences = [
        ngettext(
            "Of {n} relevant document, **{before}** were in the top {k} before and **{after}** "
            "are after.",
            "Of {n} relevant documents, **{before}** were in the top {k} before and **{after}** "
            "are after.",
            way.total,
            before=number(way.before, 0),
            after=number(way.after, 0),
            k=way.k,
        ),
        _(
            "{came} came in, {left} dropped out, {stayed} stayed.",
            came=number(way.entered, 0),
            left=number(way.left, 0),
            stayed=number(way.stayed, 0),
        ),
    ]
    if way.unranked:
        sentences.append(
            ngettext(
                "{n} relevant document is in neither ranking, so no reranker can recover it.",
                "{n} relevant documents are in neither ranking, so no reranker can recover them.",
                way.unranked,
            )
        )
    return paragraph(sentences)


def _left_out(movements: Moves) -> None:
    alone = movements.only_before + movements.only_after
    if alone:
        st.caption(
            ngettext(
                "{n} query has only one of the two rankings and is excluded.",
                "{n} queries have only one of the two rankings and are excluded.",
                alone,
            )
        )


def _count_tables(table: pd.DataFrame, way: Flow) -> None:
    cells, bands = st.columns(2)
    unranked = {UNRANKED: _("not ranked")}
    shown = table.rename(index=unranked, columns=unranked)
    shown.index.name = _("rank before")
    cells.dataframe(shown, alt=_("Number of documents from each band of ranks to each"))
    if not way.total:
        return
    bands.dataframe(
        pd.DataFrame(
            {
                _p("column", "rank"): way.bands["band"].replace(unranked),
                _("came in from these ranks"): way.bands["entered"],
                _("dropped out to these ranks"): way.bands["left"],
            }
        ),
        hide_index=True,
        alt=_("Relevant documents into and out of the top ranks"),
    )


def draw_below(study: Study, challenger: str) -> None:
    """Draw the lower part of the page: how far documents moved, and how far systems agree."""
    left, right = st.columns(2, gap="medium")
    with left:
        shared(sizes, study, challenger)
    with right:
        shared(draw_agreement, study, challenger)


def sizes(study: Study, challenger: str) -> None:
    """Draw how many ranks documents moved, as a chart and as a table."""
    st.header(_("Distances of moves"), anchor=False)
    table = rank_shifts_study.move_sizes(study, challenger)
    before, after = study.name(study.baseline), study.name(challenger)
    draw(charts.move_sizes_chart(table, before, after), key="shifts.sizes")
    with st.expander(_("As a table")):
        share = st.column_config.NumberColumn(format="percent")
        columns = {
            _("ranks moved"): table["step"],
            _p("column", "relevant"): table["relevant"],
            _("share of relevant"): table["relevant_share"],
            _p("column", "others"): table["other"],
            _("share of others"): table["other_share"],
        }
        st.dataframe(
            pd.DataFrame(columns),
            hide_index=True,
            placeholder="–",
            column_config={_("share of relevant"): share, _("share of others"): share},
            alt=_("Distances of moves"),
        )


def by_query(study: Study, challenger: str) -> None:
    """Draw agreement and change of every query, the most reordered first; a row opens the query."""
    frame_of = rank_shifts_study.agreements(study, study.baseline, challenger)
    pairs = study.pairs(challenger).set_index("query_id")
    texts = study.dataset.query_names
    table = frame_of.sort_values("rbo", kind="stable", ignore_index=True)
    shown = pd.DataFrame(
        {
            "query": table["query_id"].map(texts),
            "tau": table["tau"],
            "rbo": table["rbo"],
            "common": table["common"],
            "delta": rounded(pairs["delta"], 3).reindex(table["query_id"]).to_numpy(),
        }
    )
    picked = _picked(
        shown,
        f"shifts.queries.{challenger}",
        {
            "query": st.column_config.TextColumn(_p("column", "query"), width="large"),
            "tau": st.column_config.NumberColumn("τ", format="%.3f"),
            "rbo": st.column_config.NumberColumn("RBO", format="%.3f"),
            "common": st.column_config.NumberColumn(_("documents in both")),
            "delta": st.column_config.NumberColumn(_p("column", "change"), format="%.3f"),
        },
        _("Agreement and change of every query"),
    )
    if picked is not None:
        view.open_query(str(table["query_id"].iloc[picked]))


def farthest(study: Study, challenger: str) -> None:
    """Draw the relevant documents that moved farthest, falls first; a row opens the query."""
    movements = moves(study, challenger)
    table = movements.frame(movements.relevant & movements.in_both & (movements.up != 0))
    table = table.sort_values("up", kind="stable", ignore_index=True)
    half = _MOST_ROWS // 2
    if len(table) > _MOST_ROWS:
        st.caption(_("Largest drops and rises ({n} each).", n=number(half, 0)))
        table = pd.concat([table.head(half), table.tail(half)], ignore_index=True)
    _document_table(
        study,
        table,
        f"shifts.documents.{challenger}",
        _("Relevant documents by how far they moved"),
    )


def _documents_of(
    study: Study, challenger: str, movements: Moves, cell: tuple[str, str], *, relevant_only: bool
) -> None:
    """Draw the documents that one cell counts; a row opens the query."""
    table = movements.frame(went(movements, *cell, relevant_only=relevant_only))
    start, end = (_("not ranked") if name == UNRANKED else name for name in cell)
    st.markdown(
        ngettext(
            "**From {start} to {end}**: {n} document. Tick a row to open its query.",
            "**From {start} to {end}**: {n} documents. Tick a row to open its query.",
            len(table),
            # A bin that begins with > is not a quotation.
            start=markdown_safe(start),
            end=markdown_safe(end),
        )
    )
    if len(table):
        _document_table(
            study,
            table.head(_MOST_ROWS),
            f"shifts.cell.{challenger}.{relevant_only}.{'.'.join(cell)}",
            _("Documents from one band of ranks to another"),
        )


def _document_table(study: Study, table: pd.DataFrame, key: str, alt: str) -> None:
    titles = study.dataset.document_names[0]
    shown = pd.DataFrame(
        {
            "query": table["query_id"].map(study.dataset.query_names),
            "document": table["doc_id"].map(titles),
            "before": table["before"],
            "after": table["after"],
            "up": table["up"],
        }
    )
    whole = "%.0f"
    picked = _picked(
        shown,
        key,
        {
            "query": st.column_config.TextColumn(_p("column", "query"), width="medium"),
            "document": st.column_config.TextColumn(_p("column", "document"), width="medium"),
            "before": st.column_config.NumberColumn(_("rank before"), format=whole),
            "after": st.column_config.NumberColumn(_("rank after"), format=whole),
            "up": st.column_config.NumberColumn(_("ranks up"), format=whole),
        },
        alt,
    )
    if picked is not None:
        view.open_query(str(table["query_id"].iloc[picked]))


def _picked(shown: pd.DataFrame, key: str, columns: dict[str, Any], alt: str) -> int | None:
    """Draw a table of queries; return the row that was clicked."""
    event = st.dataframe(
        shown,
        hide_index=True,
        height=min((len(shown) + 1) * _ROW_HEIGHT + 2, 360),
        placeholder="–",
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        column_config=columns,
        alt=alt,
    )
    rows = event["selection"]["rows"]
    return int(rows[0]) if rows else None


def pair_line(study: Study, challenger: str) -> str:
    """Return "baseline → challenger" for a place that renders Markdown."""
    names = (view.safe_name(study, each) for each in (study.baseline, challenger))
    return " → ".join(names)


# How far the systems agree on the order of documents.

_MOST_PAIRS = 10


def draw_agreement(study: Study, challenger: str) -> None:
    """Draw the agreement of each two systems; with many systems the chart shows only pairs with the
    challenger."""
    st.header(_("Agreement of the systems"), anchor=False)
    table = drawn = rank_shifts_study.agreement_table(study)
    names, level = study.names, study.statistics.level
    sentences = []
    if len(table) > _MOST_PAIRS:
        drawn = table[(table["one"] == challenger) | (table["other"] == challenger)]
        sentences.append(
            _(
                "The chart shows only pairs with {system}; the table lists all pairs.",
                system=safe_name(study, challenger),
            )
        )
    draw(
        charts.agreement_chart(drawn, p=PERSISTENCE, level=level, names=names),
        key="shifts.agreement",
    )
    sentences += [
        _(
            "Means over queries. τ (τ-b, equal scores tied) measures how many pairs of documents "
            "are in the same order: 0 is chance, -1 the reverse. RBO gives more weight to the "
            "top: the first ten ranks have 86% of the weight."
        )
    ]
    for system in study.chosen:
        run = study.run(system)
        if run is not None and run.depth is not None:
            source = str(run.settings.get(SOURCE, ""))
            name, depth = safe_name(study, system), number(run.depth, 0)
            sentences.append(
                _(
                    "{system} reranked only the first {depth} documents. The others stay in the "
                    "order of {source}.",
                    system=name,
                    depth=depth,
                    source=markdown_safe(source, 80),
                )
                if source
                else _(
                    "{system} reranked only the first {depth} documents. The others stay in the "
                    "first stage's order, so its τ is closer to 1.",
                    system=name,
                    depth=depth,
                )
            )
    st.caption(paragraph(sentences))
    with st.expander(_("As a table")):
        _table(study, table)


def _table(study: Study, table: pd.DataFrame) -> None:
    names = study.names
    columns = {
        _p("column", "system"): table["one"].map(names),
        _("other system"): table["other"].map(names),
        _p("column", "queries"): table["n"],
        "τ": table["tau"],
        _("τ, low"): table["tau_low"],
        _("τ, high"): table["tau_high"],
        "RBO": table["rbo"],
        _("RBO, lower bound"): table["rbo_low"],
        _("RBO, upper bound"): table["rbo_high"],
    }
    decimal = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        placeholder="–",
        row_height=name_rows(study.names.values()),
        column_config=dict.fromkeys(list(columns)[3:], decimal),
        alt=_("Agreement of each pair of systems"),
    )
