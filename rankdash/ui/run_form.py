"""Choose one or several rerankers, how deep and for how many queries, and start them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import streamlit as st

from rankdash.errors import RankdashError
from rankdash.rerankers import RerankerKind, kinds
from rankdash.runs import jobs
from rankdash.runs.jobs import JobRequest
from rankdash.ui import naming, services, settings_form
from rankdash.ui.i18n import duration, error_text, ngettext, number
from rankdash.ui.i18n import gettext as _
from rankdash.ui.server import worker, workspace
from rankdash.ui.text import markdown_safe

_SEED = 7
_FEWEST_MEASURED = 30


@dataclass(frozen=True)
class Plan:
    """What a run would score. depth None: all candidates. sample None: all queries."""

    depth: int | None
    sample: int | None
    queries: int
    pairs: int


def draw(dataset_id: str) -> None:
    offered = {kind.name: kind for kind in kinds() if kind.name != "precomputed"}
    chosen = st.multiselect(
        _("Rerankers"),
        list(offered),
        default=["bi-encoder"],
        placeholder=_("none"),
        format_func=lambda name: _(offered[name].title),
        key="run.rerankers",
        persist_state="session",
    )
    plan = _plan(dataset_id)
    settings = {}
    for name in chosen:
        with st.expander(_(offered[name].title), expanded=len(chosen) == 1):
            st.caption(_(offered[name].meaning))
            settings[name] = settings_form.draw(offered[name])
    if not chosen:
        st.info(_("Choose at least one reranker."), icon=":material/info:")
        return
    if not services.has_texts(dataset_id):
        st.warning(
            _(
                "This data set has no texts, so there is nothing for a reranker to read. Upload it "
                "again with its documents and queries."
            ),
            icon=":material/block:",
        )
        return
    _say_estimate([offered[name] for name in chosen], plan)
    label = ngettext("Start {n} run", "Start {n} runs", len(chosen))
    if st.button(label, type="primary", icon=":material/play_arrow:"):
        _start(dataset_id, [offered[name] for name in chosen], settings, plan)


def _plan(dataset_id: str) -> Plan:
    counts = np.diff(services.dataset(dataset_id).candidates.offsets)
    deepest, queries = int(counts.max(initial=1)), len(counts)
    left, right = st.columns(2)
    depth = left.slider(
        _("Depth: candidates reranked per query"),
        1,
        max(deepest, 2),
        deepest,
        key=f"run.depth.{dataset_id}",
        persist_state="session",
        help=_("The rest keep their first-stage order below the reranked ones."),
    )
    sample = right.slider(
        _("Queries"),
        1,
        max(queries, 2),
        queries,
        key=f"run.sample.{dataset_id}",
        persist_state="session",
        help=_(
            "Fewer give a quick look: a random sample, always the same one (seed {seed}). "
            "Numbers then speak of the sampled queries only.",
            seed=_SEED,
        ),
    )
    share = sample / queries if queries else 0.0
    return Plan(
        depth=depth if depth < deepest else None,
        sample=sample if sample < queries else None,
        queries=min(sample, queries),
        pairs=round(float(np.minimum(counts, depth).sum()) * min(share, 1.0)),
    )


def _say_estimate(chosen: list[RerankerKind], plan: Plan) -> None:
    parts = [
        ngettext("{n} query", "{n} queries", plan.queries),
        _("about {n} pairs for each reranker", n=number(plan.pairs, 0)),
    ]
    seconds = [_measured_seconds(kind.name, plan) for kind in chosen]
    known = sum(value for value in seconds if value is not None)
    if all(value is not None for value in seconds):
        parts.append(_("about {time} on this machine", time=duration(known)))
    elif known:
        parts.append(
            _(
                "about {time} on this machine, and the ones not run here before",
                time=duration(known),
            )
        )
    else:
        parts.append(_("time not known yet: nothing of this kind has run here"))
    if not any(kind.capabilities.needs_network for kind in chosen):
        parts.append(_("$0: all of it runs on this machine"))
    st.caption(" · ".join(parts))


def _measured_seconds(kind: str, plan: Plan) -> float | None:
    """From the longest run of that kind in this workspace: its pairs a second, and its start."""
    measured = [row for row in workspace().runs() if row.reranker == kind and row.pairs_per_second]
    # A run of a dozen queries is mostly start: the longest tells the rate best.
    longest = max(measured, key=lambda row: row.queries_done, default=None)
    if longest is None or longest.queries_done < min(_FEWEST_MEASURED, plan.queries):
        return None
    start = longest.load_ms / 1000 if math.isfinite(longest.load_ms) else 0.0
    return start + plan.pairs / float(longest.pairs_per_second or 1.0)


def _start(
    dataset_id: str,
    chosen: list[RerankerKind],
    settings: dict[str, dict[str, str | int | float | bool]],
    plan: Plan,
) -> None:
    try:
        for kind in chosen:
            jobs.submit(
                workspace(),
                JobRequest(
                    dataset_id=dataset_id,
                    reranker=kind.name,
                    settings=settings[kind.name],
                    name=_run_name(dataset_id, kind, settings[kind.name], plan),
                    depth=plan.depth,
                    sample=plan.sample,
                    seed=_SEED,
                ),
            )
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 500), icon=":material/error:")
        return
    worker().ensure()
    st.rerun()


def _run_name(
    dataset_id: str,
    kind: RerankerKind,
    settings: dict[str, str | int | float | bool],
    plan: Plan,
) -> str:
    """The model or the kind, what makes this run special, and a number where the name is taken."""
    model = str(settings.get("model", "")).rstrip("/").split("/")[-1]
    parts = [model or _(kind.title)]
    if plan.depth is not None:
        parts.append(_("top {n}", n=plan.depth))
    if plan.sample is not None:
        parts.append(ngettext("{n} query", "{n} queries", plan.sample))
    name = " · ".join(parts)
    taken = {row.name for row in workspace().runs(dataset_id)}
    taken |= {row.name for row in jobs.list(workspace(), dataset_id)}
    return naming.free(name, taken)
