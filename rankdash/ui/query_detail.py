"""One query: what it scored on both sides, where its documents went, and what they say."""

from __future__ import annotations

import math
from collections import Counter

import pandas as pd
import streamlit as st

from rankdash.analysis.compare import ladder
from rankdash.charts import ladder as ladder_chart
from rankdash.ui import naming, services
from rankdash.ui.appearance import ink, show
from rankdash.ui.frame import View
from rankdash.ui.i18n import gettext as _
from rankdash.ui.i18n import number, percent, signed
from rankdash.ui.query_list import outcome_words
from rankdash.ui.text import markdown_safe, shortened

_SNIPPET = 160
# Where a metric looks at the whole list, the picture still needs an end.
_WHOLE_LIST_SHOWN = 20


def draw(view: View, challenger: str, row: pd.Series) -> None:
    """row: the query's row of the list."""
    query_id = str(row["query_id"])
    text = row["text"] if isinstance(row["text"], str) and row["text"] else query_id
    st.subheader(markdown_safe(text, 300), anchor=False)
    _strip(view, challenger, row)
    k = view.cutoff or _WHOLE_LIST_SHOWN
    moves = ladder(
        services.ranking(view.dataset_id, view.baseline),
        services.ranking(view.dataset_id, challenger),
        services.dataset(view.dataset_id).qrels,
        query_id,
        k,
        view.conventions.threshold,
    )
    if moves.empty:
        st.info(_("Neither ranking has a document for this query."), icon=":material/info:")
        return
    before, after = view.name(view.baseline), view.name(challenger)
    _chart(view, moves, before, after, k)
    _rankings(view, moves, before, after)


def _strip(view: View, challenger: str, row: pd.Series) -> None:
    title = view.title(view.spec)
    words = outcome_words().get(row["outcome"], row["outcome"])
    if math.isnan(row["delta"]):
        parts = [
            _("{metric}: no comparison", metric=title),
            words,
            _reason(challenger, str(row["query_id"])),
        ]
    else:
        parts = [
            f"{title} {number(row['before'])} → {number(row['after'])}",
            f"{signed(row['delta'])} {words}",
        ]
    depth = f"judged@{view.cutoff or 10}"
    shares = [
        services.evaluation(view.dataset_id, system, (depth,), view.conventions)
        for system in (view.baseline, challenger)
    ]
    known = [
        percent(float(found.wide().loc[row["query_id"], depth]))
        if row["query_id"] in set(found.query_ids)
        else "–"
        for found in shares
    ]
    parts.append(f"{view.title(depth)} {known[0]} → {known[1]}")
    latency = _latency(challenger, str(row["query_id"]))
    if latency is not None:
        parts.append(_("{ms} ms", ms=number(latency, 0)))
    st.caption(" · ".join(part for part in parts if part))


def _reason(system_id: str, query_id: str) -> str:
    """Why a run has no result for the query, as it said; safe for Markdown."""
    if system_id == services.FIRST_STAGE:
        return ""
    rows = services.run(system_id).queries
    found = rows.loc[rows["query_id"] == query_id, "reason"]
    return markdown_safe(str(found.iloc[0]), 300) if len(found) else ""


def _latency(system_id: str, query_id: str) -> float | None:
    if system_id == services.FIRST_STAGE:
        return None
    rows = services.run(system_id).queries
    found = rows.loc[rows["query_id"] == query_id, "latency_ms"]
    return float(found.iloc[0]) if len(found) and not math.isnan(found.iloc[0]) else None


def _chart(view: View, moves: pd.DataFrame, before: str, after: str, k: int) -> None:
    titles, openings = services.titles(view.dataset_id)
    own = {doc_id: titles[doc_id] for doc_id in moves["doc_id"]}
    often = Counter(own.values())
    # Passages of one article share its title; then their own words tell them apart.
    names = naming.telling(
        {doc_id: title if often[title] == 1 else openings[doc_id] for doc_id, title in own.items()}
    )
    labels = ladder_chart.Labels.translated(_)
    show(
        ladder_chart.figure(moves, k, before, after, ink(), labels, names=names),
        alt=ladder_chart.alt(moves, k, before, after, labels),
        key="queries.ladder",
    )


def _rankings(view: View, moves: pd.DataFrame, before: str, after: str) -> None:
    """Both rankings side by side, and the whole text of the document that is chosen in either."""
    documents = services.dataset(view.dataset_id).documents.set_index("doc_id")
    best = services.dataset(view.dataset_id).qrels["label"].max()
    chosen: str | None = None
    for column, name, own, other in zip(
        st.columns(2),
        (before, after),
        ("rank_before", "rank_after"),
        ("rank_after", "rank_before"),
        strict=True,
    ):
        with column:
            st.markdown(f"**{markdown_safe(name, 60)}**")
            rows = moves[moves[own].notna()].sort_values(own)
            if rows.empty:
                st.caption(_("This ranking has no document for the query."))
                continue
            texts = documents.loc[rows["doc_id"]]
            picked = st.dataframe(
                pd.DataFrame(
                    {
                        "rank": rows[own].astype(int).to_numpy(),
                        "move": [
                            _move(a, b, own == "rank_after")
                            for a, b in zip(rows[own], rows[other], strict=True)
                        ],
                        "grade": [grade(label, best) for label in rows["label"]],
                        "document": [
                            shortened(f"{title} {body}".strip(), _SNIPPET) or doc_id
                            for title, body, doc_id in zip(
                                texts["title"],
                                texts["text"].fillna(""),
                                rows["doc_id"],
                                strict=True,
                            )
                        ],
                    }
                ),
                hide_index=True,
                height=390,
                key=f"queries.{own}",
                on_select="rerun",
                selection_mode="single-row",
                column_config={
                    "rank": st.column_config.NumberColumn(_("rank"), width=45),
                    "move": st.column_config.TextColumn(
                        _("went") if own == "rank_before" else _("came from"), width=60
                    ),
                    "grade": st.column_config.TextColumn(_("grade"), width=75),
                    "document": st.column_config.TextColumn(_("document"), width="large"),
                },
                alt=_("Documents of this query, best first"),
            )
            selected = picked["selection"]["rows"]
            if selected and selected[0] < len(rows):
                chosen = str(rows["doc_id"].iloc[selected[0]])
    if chosen is None:
        st.caption(_("Choose a row to read the whole document."))
        return
    document = documents.loc[chosen]
    with st.container(border=True):
        st.text(f"{chosen}\n{document['title']}".strip())
        body = document["text"]
        st.text(body if isinstance(body, str) and body else _("The data has no text for it."))


def grade(label: float, best: float) -> str:
    """A label in words: "2 of 3", "not judged"."""
    if math.isnan(label):
        return _("not judged")
    return _("{label} of {best}", label=f"{label:g}", best=f"{best:g}")


def _move(rank: float, other: float, challenger_side: bool) -> str:
    """Where the document is in the other ranking, with the direction it moved."""
    if math.isnan(other):
        return _("new") if challenger_side else _("gone")
    rise = other - rank if challenger_side else rank - other
    if rise == 0:
        return "="
    return f"{'▲' if rise > 0 else '▼'} {int(other)}"
