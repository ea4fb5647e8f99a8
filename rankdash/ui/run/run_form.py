"""Choose one or several rerankers, how deep and for how many queries, and start them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import streamlit as st

from rankdash.errors import RankdashError
from rankdash.i18n import duration, error_text, ngettext
from rankdash.i18n import gettext as _
from rankdash.ranking.measured import WithoutText
from rankdash.ranking.ranking import SHIPPED_WITH
from rankdash.rerankers import RerankerKind, kinds, problems
from rankdash.rerankers.kinds.late_interaction import LateInteraction
from rankdash.rerankers.neural.model_files import lacking_packages
from rankdash.rerankers.remote.apis import DIALECTS
from rankdash.runs import jobs
from rankdash.runs.jobs import JobRequest, Timing
from rankdash.runs.on_ray.settings import Actors
from rankdash.runs.variants import DEPTH, Variant
from rankdash.store import RunRow
from rankdash.ui.run import cluster_form, job_list, run_estimate, timing_form, variants_form
from rankdash.ui.runs import key_field, run_records, settings_form
from rankdash.ui.state import pickers, stored
from rankdash.ui.state.server import worker, workspace
from rankdash.ui.widgets import action_errors, redraw
from rankdash.ui.widgets.text import markdown_safe
from rankdash.words import names

_SEED = 7
_FEWEST_MEASURED = 30
# Runs that differ in one of these say nothing of each other's speed.
_SAME_SPEED = ("model", "dialect", "base_url")

Settings = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class FormPlan:
    """What a run would score. depth None: all candidates. sample None: all queries."""

    depth: int | None
    sample: int | None
    queries: int
    pairs: int


def draw(dataset_id: str) -> None:
    for problem in problems():
        st.warning(markdown_safe(error_text(problem), 500), icon=":material/extension_off:")
    key_field.clear({row.id for row in jobs.list(workspace()) if row.state in jobs.LIVE})
    offered, lacking = _offered(), lacking_packages()
    language = stored.dataset(dataset_id).language
    readable = language == "latin"
    chosen = st.multiselect(
        _("Rerankers"),
        list(offered),
        # A model for each language comes with rankdash.
        default=["bm25" if lacking else "bi-encoder"],
        placeholder=_("none"),
        # All would start paid services too.
        select_all=False,
        format_func=lambda name: _(offered[name].title),
        # What is chosen for one language is no choice for another.
        key=pickers.in_words("run.rerankers" if readable else "run.rerankers.other_letters"),
        persist_state="session",
    )
    if lacking and any(offered[name].models for name in chosen):
        st.warning(markdown_safe(error_text(lacking), 500), icon=":material/extension_off:")
    plan = _plan(dataset_id)
    settings, found, asked = {}, {}, {}
    for name in chosen:
        with st.expander(_(offered[name].title), expanded=len(chosen) == 1):
            st.caption(_(offered[name].meaning))
            settings[name] = settings_form.draw(offered[name], language)
            found[name] = key_field.draw(offered[name], settings[name], name)
            settings[name] |= found[name].settings
            asked[name] = variants_form.draw(offered[name], settings[name], plan.depth)
    if not chosen:
        st.info(_("Choose at least one reranker."), icon=":material/info:")
        return
    if not stored.dataset(dataset_id).has_texts:
        st.warning(
            _(
                "This data set has no texts, so there is nothing for a reranker to read. Upload it "
                "again with its documents and queries."
            ),
            icon=":material/block:",
        )
        return
    timing = timing_form.draw(
        lambda latency: max(
            _timed(offered[name], settings[name], plan, latency) for name in chosen
        ),
        _latency_seconds(chosen, settings),
    )
    actors = cluster_form.draw()
    without_text = _without_text(dataset_id)
    wishes = [
        _Wish(offered[name], variant, found[name].keys, _plan_of(dataset_id, plan, variant))
        for name in chosen
        for variant in asked[name]
    ]
    _say_estimate(wishes)
    for name in chosen:
        runs = [(variant.settings, variant.depth) for variant in asked[name]]
        run_estimate.say(dataset_id, offered[name], runs, plan.queries)
    label = ngettext("Start {n} run", "Start {n} runs", len(wishes))
    if st.button(
        label,
        type="primary",
        icon=":material/play_arrow:",
        # Not where a key is missing: a disabled button is out of the keyboard's reach and silent.
        disabled=not all(asked.values()),
    ):
        no_key = {name: each.missing for name, each in found.items() if each.missing}
        for name, missing in no_key.items():
            text = _("{where}: {what}", where=_(offered[name].title), what=missing)
            redraw.hold()
            st.error(text, icon=":material/key_off:")
        if not no_key:
            _start(dataset_id, wishes, timing, without_text, actors)


@dataclass(frozen=True)
class _Wish:
    kind: RerankerKind
    variant: Variant
    keys: Mapping[str, str]
    plan: FormPlan


def _offered() -> dict[str, RerankerKind]:
    """What can be run, by name: first what runs here, then services, then language models."""
    groups = ("local", "service", "llm")
    able = [kind for kind in kinds() if kind.name != "precomputed"]
    return {kind.name: kind for kind in sorted(able, key=lambda kind: groups.index(kind.group))}


def _plan(dataset_id: str) -> FormPlan:
    counts = _counts(dataset_id)
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
            "Fewer queries are faster: a random sample, always the same one (seed {seed}). The "
            "numbers then hold for the sampled queries only.",
            seed=_SEED,
        ),
    )
    share = sample / queries if queries else 0.0
    return FormPlan(
        depth=depth if depth < deepest else None,
        sample=sample if sample < queries else None,
        queries=min(sample, queries),
        pairs=round(float(np.minimum(counts, depth).sum()) * min(share, 1.0)),
    )


def _plan_of(dataset_id: str, plan: FormPlan, variant: Variant) -> FormPlan:
    """The plan of a variant, which may have a depth of its own."""
    if variant.depth == plan.depth:
        return plan
    counts = _counts(dataset_id)
    share = plan.queries / max(len(counts), 1)
    pairs = round(float(np.minimum(counts, variant.depth or counts).sum()) * share)
    return replace(plan, depth=variant.depth, pairs=pairs)


def _counts(dataset_id: str) -> npt.NDArray[np.int64]:
    """(queries,) how many candidates each query has."""
    return np.diff(stored.dataset(dataset_id).candidates.offsets)


def _say_estimate(wishes: Sequence[_Wish]) -> None:
    if not wishes:
        return
    pairs = [wish.plan.pairs for wish in wishes]
    parts = [
        ngettext("{n} query", "{n} queries", wishes[0].plan.queries),
        ngettext("about {n} pair for each reranker", "about {n} pairs for each reranker", pairs[0])
        if len(set(pairs)) == 1
        else ngettext("about {n} pair in all", "about {n} pairs in all", sum(pairs)),
    ]
    seconds = [
        _measured_seconds(wish.kind.name, wish.variant.settings, wish.plan) for wish in wishes
    ]
    known = sum(value for value in seconds if value is not None)
    if all(value is not None for value in seconds):
        parts.append(_("about {time} on this machine", time=duration(known)))
    elif known:
        parts.append(
            _(
                "about {time} on this machine, plus the rerankers that have not run here",
                time=duration(known),
            )
        )
    elif any(_like(wish.kind.name, wish.variant.settings) for wish in wishes):
        parts.append(_("time not known yet: too little has run here to estimate it"))
    else:
        parts.append(_("time not known yet: no reranker of this kind has run here"))
    if not any(_calls_out(wish.kind, wish.variant.settings) for wish in wishes):
        parts.append(_("$0: all of it runs on this machine"))
    st.caption(" · ".join(parts))


def _calls_out(kind: RerankerKind, settings: Settings) -> bool:
    """Whether another machine is asked; with settings that cannot be read, maybe."""
    try:
        return kind.able(settings).needs_network
    except RankdashError:
        return True


def _timed(kind: RerankerKind, settings: Settings, plan: FormPlan, latency: str) -> int:
    """How many queries are timed alone: all where they come one by one anyway, else a sample."""
    try:
        together = kind.able(settings).across_queries
    except RankdashError:
        together = True
    if not together:
        return plan.queries
    return 0 if latency == "never" else min(Timing().sample, max(1, plan.queries // 2))


def _like(kind: str, settings: Settings) -> list[RunRow]:
    """The stored runs of that kind and model that were made here."""
    return [
        row
        for row in workspace().runs()
        if row.reranker == kind
        and SHIPPED_WITH not in run_records.record(row.id).machine
        and all(row.settings.get(name) == settings.get(name) for name in _SAME_SPEED)
    ]


def _latency_seconds(chosen: list[str], settings: Mapping[str, Settings]) -> float | None:
    """Of the slowest of the chosen; None where one of them was never timed here."""
    found = [
        max((row.p50_ms for row in _like(name, settings[name]) if row.p50_ms > 0), default=None)
        for name in chosen
    ]
    known = [latency / 1000 for latency in found if latency is not None]
    return max(known) if len(known) == len(chosen) else None


def _measured_seconds(kind: str, settings: Settings, plan: FormPlan) -> float | None:
    """From the longest run of that kind and model in this workspace: its pairs a second, and its
    start."""
    measured = [row for row in _like(kind, settings) if row.pairs_per_second]
    # A run of a dozen queries is mostly start: the longest tells the rate best.
    longest = max(measured, key=lambda row: row.queries_done, default=None)
    if longest is None or longest.queries_done < min(_FEWEST_MEASURED, plan.queries):
        return None
    start = longest.load_ms / 1000 if math.isfinite(longest.load_ms) else 0.0
    return start + plan.pairs / float(longest.pairs_per_second or 1.0)


def _without_text(dataset_id: str) -> WithoutText:
    """What becomes of candidates without a text; asked for only where there are any."""
    data = stored.dataset(dataset_id)
    if data.textless.isdisjoint(data.candidates.doc_ids):
        return "exclude"
    rule: WithoutText = st.selectbox(
        _("Candidates without a text"),
        get_args(WithoutText),
        format_func={
            "exclude": _("excluded: below the reranked ones"),
            "empty": _("scored as empty texts"),
        }.__getitem__,
        help=_(
            "Excluded candidates keep their first-stage order below the reranked ones. Some "
            "services refuse empty texts."
        ),
        key=pickers.in_words("run.without_text"),
        persist_state="session",
    )
    return rule


def _start(
    dataset_id: str,
    wishes: Sequence[_Wish],
    timing: Timing,
    without_text: WithoutText,
    actors: Actors | None = None,
) -> None:
    kinds_of = Counter(wish.kind.name for wish in wishes)
    grids = {name: jobs.new_id() for name, count in kinds_of.items() if count > 1}
    try:
        # All before the first is queued: who mends one setting and starts again wants none twice.
        for wish in wishes:
            _check(wish)
        for wish in wishes:
            job_id = jobs.new_id()
            if wish.keys:
                worker().hand_over(job_id, wish.keys)
                key_field.lend(wish.kind.name, job_id)
            jobs.submit(
                workspace(),
                JobRequest(
                    dataset_id=dataset_id,
                    reranker=wish.kind.name,
                    settings=wish.variant.settings,
                    name=_run_name(dataset_id, wish),
                    depth=wish.plan.depth,
                    sample=wish.plan.sample,
                    seed=_SEED,
                    timing=_timing_of(wish, timing) if wish.kind.name in grids else timing,
                    without_text=without_text,
                    grid=grids.get(wish.kind.name),
                    actors=None if _calls_out(wish.kind, wish.variant.settings) else actors,
                ),
                job_id,
            )
            job_list.watch(job_id)
    except RankdashError as error:
        action_errors.say(error_text(error))
        return
    except _RefusedError as refused:
        text = _("{where}: {what}", where=_(refused.kind.title), what=error_text(refused.error))
        action_errors.say(text)
        return
    worker().ensure()
    st.rerun()


def _timing_of(wish: _Wish, timing: Timing) -> Timing:
    """Of one variant: those that differ in speed alone share their scores, and all but the first
    would be without a latency. What another machine scores is not asked for twice."""
    if timing.latency != "auto" or _calls_out(wish.kind, wish.variant.settings):
        return timing
    return replace(timing, latency="always")


class _RefusedError(Exception):
    """`error` is why a reranker of this `kind` cannot be started."""

    def __init__(self, kind: RerankerKind, error: RankdashError) -> None:
        self.kind, self.error = kind, error
        super().__init__()


def _check(wish: _Wish) -> None:
    try:
        jobs.check(wish.kind.name, wish.variant.settings)
    except RankdashError as error:
        raise _RefusedError(wish.kind, error) from error


def _service_name(kind: RerankerKind, settings: Settings) -> str:
    """The provider, or the host where another one speaks its wire format; "" for no service."""
    service = DIALECTS.get(str(settings.get("dialect", "")))
    if service is None or kind.key is None:
        return ""
    place = kind.key(settings)
    own = place is None or place.host == urlsplit(service.base_url).netloc
    return service.title if own or place is None else place.host


def _run_name(dataset_id: str, wish: _Wish) -> str:
    """The model or the kind, what makes this run special, and a number where the name is taken."""
    kind, settings, plan = wish.kind, wish.variant.settings, wish.plan
    model = str(settings.get("model", "")).rstrip("/").split("/")[-1]
    stages = [str(settings[stage]) for stage in ("first", "second") if stage in settings]
    parts = [model or " → ".join(stages) or _service_name(kind, settings) or _(kind.title)]
    if kind.group == "llm" or kind.name == LateInteraction.name:
        # One model may well be asked in several ways.
        parts.append(_(kind.title))
    if plan.depth is not None and all(name != DEPTH for name, _value in wish.variant.differs):
        parts.append(_("top {n}", n=plan.depth))
    parts += variants_form.words(kind, wish.variant)
    if plan.sample is not None:
        parts.append(ngettext("{n} query", "{n} queries", plan.sample))
    name = " · ".join(parts)
    taken = {row.name for row in workspace().runs(dataset_id)}
    taken |= {row.name for row in jobs.list(workspace(), dataset_id)}
    return names.free(name, taken)
