"""Run: the choice of rerankers, their variants and measurements."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Literal, get_args
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import streamlit as st

from rankdash.core.base import text as base_text
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import duration, error_text, ngettext, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.measured import WithoutText
from rankdash.core.rerankers import RerankerKind, SettingSpec, defaults, kinds, problems
from rankdash.core.rerankers.catalogue import ended
from rankdash.core.rerankers.kinds.cascade import NAME as CASCADE
from rankdash.core.rerankers.kinds.cascade import STAGES
from rankdash.core.rerankers.kinds.endpoint import DIALECTS
from rankdash.core.rerankers.kinds.late_interaction import LateInteraction
from rankdash.core.rerankers.neural.model_files import lacking_packages
from rankdash.core.rerankers.neural.tokenizer import unknown_share
from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import JobRequest, Timing
from rankdash.core.runs.on_ray.cluster import Actors
from rankdash.core.runs.plan import DEPTH, Variant
from rankdash.features.run import page_estimate, page_jobs, page_retrieve, page_stop, page_which
from rankdash.features.run.page_estimate import FormPlan, Wish
from rankdash.features.run.page_stop import Stopping
from rankdash.features.run.page_variants import draw_variants, variant_words
from rankdash.kit.widgets import dialogs, pickers, redraw, settings_form, stored
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.stored import worker, workspace
from rankdash.kit.widgets.text import markdown_safe

_SEED = 7

Settings = Mapping[str, str | int | float | bool]


def draw(dataset_id: str) -> None:
    for problem in problems():
        st.warning(markdown_safe(error_text(problem), 500), icon=":material/extension_off:")
    settings_form.clear({row.id for row in jobs.list(workspace()) if row.state in jobs.LIVE})
    offered, lacking = _offered(), lacking_packages()
    share, preselected = partial(_unknown_share, dataset_id), _preselection(dataset_id)
    # A choice for one language does not apply to another.
    key = "run.rerankers.other_letters" if preselected.fused else "run.rerankers"
    page_which.draw(dataset_id, offered, preselected, share, key)
    chosen = st.multiselect(
        _p("field", "Rerankers"),
        list(offered),
        default=["bm25"] if lacking else list(preselected.rerankers),
        placeholder=_p("choice", "none"),
        # "Select all" would start paid services too.
        select_all=False,
        format_func=lambda name: _p("reranker", offered[name].title),
        key=pickers.in_words(key),
        persist_state="session",
    )
    if lacking and any(offered[name].models for name in chosen):
        st.warning(markdown_safe(error_text(lacking), 500), icon=":material/extension_off:")
    source = page_retrieve.choose_source(dataset_id)
    plan = _plan(dataset_id, preselected, chosen, source)
    settings, key_fields, requested = {}, {}, {}
    for name in chosen:
        with st.expander(_p("reranker", offered[name].title), expanded=len(chosen) == 1):
            st.caption(_(offered[name].meaning))
            settings[name] = _draw_settings(
                offered[name], offered, stored.dataset(dataset_id).language, share
            )
            key_fields[name] = settings_form.draw_key_field(offered[name], settings[name], name)
            settings[name] |= key_fields[name].settings
            variants = draw_variants(offered[name], settings[name], plan.depth)
            requested[name] = tuple(_with_model(offered[name], each) for each in variants)
        if len(chosen) > 1 and (line := _model_and_host(offered[name], settings[name])):
            st.caption(markdown_safe(line, 200))
    if not chosen:
        st.info(_("Choose at least one reranker."), icon=":material/info:")
        return
    if not stored.dataset(dataset_id).has_texts:
        st.warning(
            _(
                "This data set has no texts, which rerankers need. Upload it again with the texts "
                "of its documents and queries."
            ),
            icon=":material/block:",
        )
        return
    timing = draw_timing(
        lambda latency: max(
            _timed(offered[name], settings[name], plan, latency) for name in chosen
        ),
        page_estimate.latency_seconds(chosen, settings),
    )
    actors = page_jobs.draw_cluster()
    without_text = _without_text(dataset_id, source)
    wishes = [
        Wish(offered[name], variant, key_fields[name].keys, _plan_of(dataset_id, plan, variant))
        for name in chosen
        for variant in requested[name]
    ]
    stopping = page_stop.choose(dataset_id, wishes)
    fused = source is None and st.checkbox(
        _("Also fuse each run with the first stage (RRF)"),
        preselected.fused,
        key=f"run.fused.{preselected.fused}",
        persist_state="session",
        help=_(
            "Adds a second run for each reranker immediately, without running a model: reciprocal "
            "rank fusion of its ranking and the first stage."
        ),
    )
    page_estimate.say_total(dataset_id, wishes)
    for name in chosen:
        runs = [(variant.settings, variant.depth) for variant in requested[name]]
        page_estimate.say(dataset_id, offered[name], runs, plan)
    label = ngettext("Start {n} run", "Start {n} runs", len(wishes) * (2 if fused else 1))
    if st.button(
        label,
        type="primary",
        icon=":material/play_arrow:",
        # Enabled if a key is missing: a disabled button is out of the keyboard's reach and shows no
        # error.
        disabled=not all(requested.values()),
    ):
        no_key = {name: each.missing for name, each in key_fields.items() if each.missing}
        for name, missing in no_key.items():
            text = _("{where}: {what}", where=_p("reranker", offered[name].title), what=missing)
            redraw.pause()
            st.error(text, icon=":material/key_off:")
        if not no_key:
            _start(dataset_id, wishes, timing, without_text, actors, stopping, fused=fused)


def _draw_settings(
    kind: RerankerKind,
    offered: Mapping[str, RerankerKind],
    language: str,
    share: Callable[[str], float],
) -> dict[str, str | int | float | bool]:
    """Draw the form of a reranker; the form of a cascade contains the forms of both stages. Return
    the settings."""
    stages = {f"{stage}_settings": stage for stage in STAGES} if kind.name == CASCADE else {}
    direct = replace(
        kind, settings=tuple(_existing(each) for each in kind.settings if each.name not in stages)
    )
    share_of = share if kind.models else (lambda model: math.nan)
    values = settings_form.draw(direct, language, share_of, _implied)
    titles = {spec.name: _p("setting", spec.title) for spec in kind.settings}
    for name, stage in stages.items():
        member = offered[str(values[stage])]
        with st.container(border=True):
            heading = _("{part}: {value}", part=titles[stage], value=_p("reranker", member.title))
            st.markdown(f"**{heading}**")
            # A separate key: the same reranker may also be outside the cascade.
            nested = replace(member, name=f"{kind.name}.{stage}.{member.name}")
            chosen = _draw_settings(nested, offered, language, share)
        usual = {spec.name: spec.default for spec in member.settings}
        changed = {each: value for each, value in chosen.items() if value != usual[each]}
        values[name] = json.dumps(changed, ensure_ascii=False) if changed else ""
    return {spec.name: values[spec.name] for spec in kind.settings}


def _existing(spec: SettingSpec) -> SettingSpec:
    """Return a setting without the models and services that no longer exist."""
    gone = ended(datetime.now(UTC).date())
    if spec.name not in ("model", "dialect") or gone.isdisjoint({*spec.suggestions, *spec.choices}):
        return spec
    choices = {value: title for value, title in spec.words.items() if value not in gone}
    usual = spec.default if spec.default not in gone else next(iter(choices), spec.default)
    suggestions = tuple(each for each in spec.suggestions if each not in gone)
    return replace(spec, default=usual, choices=choices, suggestions=suggestions)


def _implied(settings: Settings) -> Mapping[str, str]:
    """Return the default values of a service's empty fields."""
    service = DIALECTS.get(str(settings.get("dialect", "")))
    return {} if service is None else {"base_url": service.base_url, "model": service.model}


def _with_model(kind: RerankerKind, variant: Variant) -> Variant:
    """Return a variant with the provider's default model, if the field is empty: a run records its
    model, and a resumed run uses the same one."""
    service = DIALECTS.get(str(variant.settings.get("dialect", "")))
    model = "" if service is None else service.model
    with suppress(RankdashError):
        if service is None or _service_name(kind, variant.settings) != service.title:
            model = ""
    if variant.settings.get("model") or not model:
        return variant
    return replace(variant, settings={**variant.settings, "model": model})


def _model_and_host(kind: RerankerKind, settings: Settings) -> str:
    """Return model and host, which the title of a folded form does not show."""
    host = ""
    if kind.key is not None:
        with suppress(RankdashError):
            place = kind.key(settings)
            host = "" if place is None else place.host
    model = str(settings.get("model") or _implied(settings).get("model", ""))
    return " · ".join(each for each in (model, host) if each)


def _offered() -> dict[str, RerankerKind]:
    """Return name → kind, for all kinds that can be run: local ones, then services, then LLMs."""
    groups = ("local", "service", "llm")
    able = [kind for kind in kinds() if kind.name != "precomputed"]
    return {kind.name: kind for kind in sorted(able, key=lambda kind: groups.index(kind.group))}


def _unknown_share(dataset_id: str, model: str) -> float:
    """Return the share of the texts' tokens that a model does not know."""
    base = stored.stored(dataset_id)
    return cache(
        ("unknown share", base, model),
        lambda: unknown_share(model, defaults.sample_texts(stored.dataset(base))),
    )


def _preselection(dataset_id: str) -> defaults.Preselection:
    base = stored.stored(dataset_id)
    share = partial(_unknown_share, base)
    return cache(("preselection", base), lambda: defaults.preselection(stored.dataset(base), share))


def _plan(
    dataset_id: str, preselected: defaults.Preselection, chosen: Sequence[str], source: str | None
) -> FormPlan:
    counts = _counts(dataset_id, source)
    deepest, queries = int(counts.max(initial=1)), len(counts)
    # A sample is for the preselected models only: BM25 reads all queries immediately.
    sampled = preselected.queries < queries and not {*preselected.rerankers}.isdisjoint(chosen)
    left, right = st.columns(2)
    depth = left.slider(
        _("Depth: candidates reranked per query"),
        1,
        max(deepest, 2),
        deepest,
        key=f"run.depth.{source or dataset_id}",
        persist_state="session",
        help=_("The other candidates follow below the reranked ones in first-stage order."),
    )
    key = f"run.sample.{dataset_id}.{sampled}"
    sample = right.slider(
        _p("field", "Queries"),
        1,
        max(queries, 2),
        preselected.queries if sampled else queries,
        key=key,
        persist_state="session",
        help=_(
            "Fewer queries are faster. They are a random sample, the same for every run (seed "
            "{seed}). The results then apply to the sampled queries only.",
            seed=_SEED,
        ),
    )
    if sample < queries:

        def take_all() -> None:
            st.session_state[key] = queries

        right.button(
            ngettext("All {n} query", "All {n} queries", queries),
            icon=":material/select_all:",
            type="tertiary",
            on_click=take_all,
            key="run.sample.all",
        )
    share = sample / queries if queries else 0.0
    return FormPlan(
        depth=depth if depth < deepest else None,
        sample=sample if sample < queries else None,
        queries=min(sample, queries),
        pairs=round(float(np.minimum(counts, depth).sum()) * min(share, 1.0)),
        source=source,
    )


def _plan_of(dataset_id: str, plan: FormPlan, variant: Variant) -> FormPlan:
    """Return the plan of a variant, which may have a different depth."""
    if variant.depth == plan.depth:
        return plan
    counts = _counts(dataset_id, plan.source)
    share = plan.queries / max(len(counts), 1)
    pairs = round(float(np.minimum(counts, variant.depth or counts).sum()) * share)
    return replace(plan, depth=variant.depth, pairs=pairs)


def _counts(dataset_id: str, source: str | None) -> npt.NDArray[np.int64]:
    """Return the number of candidates of each query of the first stage, (queries,)."""
    first = stored.dataset(dataset_id).candidates
    ranking = first if source is None else stored.run(source).ranking
    counts = np.append(np.diff(ranking.offsets), 0)
    return counts[[ranking.positions.get(query, -1) for query in first.query_ids]]


def _timed(kind: RerankerKind, settings: Settings, plan: FormPlan, latency: str) -> int:
    """Return how many queries are timed individually: all if the reranker has no batches, else a
    sample."""
    try:
        together = kind.able(settings).across_queries
    except RankdashError:
        together = True
    if not together:
        return plan.queries
    return 0 if latency == "never" else min(Timing().sample, max(1, plan.queries // 2))


def _without_text(dataset_id: str, source: str | None) -> WithoutText:
    """Return what to do with candidates without a text; draw the choice only if there are any."""
    data = stored.dataset(dataset_id)
    candidates = data.candidates if source is None else stored.run(source).ranking
    if data.textless.isdisjoint(candidates.doc_ids):
        return "exclude"
    rule: WithoutText = st.selectbox(
        _("Candidates without a text"),
        get_args(WithoutText),
        format_func={
            "exclude": _("excluded: below the reranked ones"),
            "empty": _("scored as empty texts"),
        }.__getitem__,
        help=_(
            "Excluded candidates follow below the reranked ones in first-stage order. Some "
            "services reject empty texts."
        ),
        key=pickers.in_words("run.without_text"),
        persist_state="session",
    )
    return rule


def _start(
    dataset_id: str,
    wishes: Sequence[Wish],
    timing: Timing,
    without_text: WithoutText,
    actors: Actors | None = None,
    stopping: Stopping = "never",
    *,
    fused: bool = False,
) -> None:
    kinds_of = Counter(wish.kind.name for wish in wishes)
    grids = {name: jobs.new_id() for name, count in kinds_of.items() if count > 1}
    try:
        # Check all before the first is queued: after a correction, no run starts twice.
        for wish in wishes:
            _check(wish)
        for wish in wishes:
            job_id, name = jobs.new_id(), run_name(dataset_id, wish)
            if wish.keys:
                worker().hand_over(job_id, wish.keys)
                settings_form.lend(wish.kind.name, job_id)
            jobs.submit(
                workspace(),
                JobRequest(
                    dataset_id=dataset_id,
                    reranker=wish.kind.name,
                    settings=wish.variant.settings,
                    name=name,
                    depth=wish.plan.depth,
                    sample=wish.plan.sample,
                    seed=_SEED,
                    timing=_timing_of(wish, timing) if wish.kind.name in grids else timing,
                    without_text=without_text,
                    grid=grids.get(wish.kind.name),
                    actors=None
                    if page_estimate.calls_out(wish.kind, wish.variant.settings)
                    else actors,
                    fused=_("{name} + first stage (RRF)", name=name) if fused else None,
                    stop=page_stop.rule(dataset_id, wish, stopping),
                    candidates=wish.plan.source,
                ),
                job_id,
            )
            page_jobs.watch(job_id)
    except RankdashError as error:
        dialogs.show_error(error_text(error))
        return
    except _RefusedError as refused:
        text = _(
            "{where}: {what}",
            where=_p("reranker", refused.kind.title),
            what=error_text(refused.error),
        )
        dialogs.show_error(text)
        return
    worker().ensure()
    st.rerun()


def _timing_of(wish: Wish, timing: Timing) -> Timing:
    """Return the timing of one variant. Variants that differ only in speed share cached scores, so
    all but the first would have no latency: score again, except at a service."""
    if timing.latency != "auto" or page_estimate.calls_out(wish.kind, wish.variant.settings):
        return timing
    return replace(timing, latency="always")


class _RefusedError(Exception):
    """Error that prevents a reranker from starting. kind: the kind of the reranker."""

    def __init__(self, kind: RerankerKind, error: RankdashError) -> None:
        self.kind, self.error = kind, error
        super().__init__()


def _check(wish: Wish) -> None:
    try:
        jobs.check(wish.kind.name, wish.variant.settings)
    except RankdashError as error:
        raise _RefusedError(wish.kind, error) from error


def _service_name(kind: RerankerKind, settings: Settings) -> str:
    """Return the provider, or the host if another service has the same API; "" for no service."""
    service = DIALECTS.get(str(settings.get("dialect", "")))
    if service is None or kind.key is None:
        return ""
    place = kind.key(settings)
    is_default = place is None or place.host == urlsplit(service.base_url).netloc
    return service.title if is_default or place is None else place.host


def run_name(dataset_id: str, wish: Wish) -> str:
    """Return the model or the kind, the special settings of this run, and a number if the name
    exists."""
    kind, settings, plan = wish.kind, wish.variant.settings, wish.plan
    model = str(settings.get("model", "")).rstrip("/").split("/")[-1]
    stages = [str(settings[stage]) for stage in ("first", "second") if stage in settings]
    parts = [
        model or " → ".join(stages) or _service_name(kind, settings) or _p("reranker", kind.title)
    ]
    if kind.group == "llm" or kind.name == LateInteraction.name:
        # The same model may be used in several ways.
        parts.append(_p("reranker", kind.title))
    if plan.depth is not None and all(name != DEPTH for name, _value in wish.variant.differs):
        parts.append(_("top {n}", n=plan.depth))
    parts += variant_words(kind, wish.variant)
    if plan.source is not None:
        parts.append(_("candidates of {name}", name=stored.run(plan.source).name))
    if plan.sample is not None:
        parts.append(ngettext("{n} query", "{n} queries", plan.sample))
    name = " · ".join(parts)
    names = {row.name for row in workspace().runs(dataset_id)}
    names |= {row.name for row in jobs.list(workspace(), dataset_id)}
    return base_text.free(name, names)


# Measurements of a run: latency, and throughput on request.

_CLIENTS = (1, 2, 4, 8, 16, 32)
_LATENCY: tuple[Literal["auto", "always", "never"], ...] = ("auto", "always", "never")
_MOST_REPEATS = 20


def draw_timing(timed: Callable[[str], int], latency_s: float | None) -> Timing:
    """Draw the choice of measurements, and the time that they add.

    timed: returns for a choice of latency how many queries of a run are timed at most.
    latency_s: latency of a query; None if nothing similar was timed here.
    """
    usual = Timing()
    with st.expander(_p("heading", "Measurements"), icon=":material/timer:", key="run.timing"):
        left, middle, right = st.columns(3)
        latency = left.selectbox(
            _("Latency of single queries"),
            _LATENCY,
            format_func={
                "auto": _("only for queries without cached scores"),
                "always": _("always: score again"),
                "never": _("not measured"),
            }.__getitem__,
            help=_(
                "A sample of queries is timed one at a time on a warm model. Cached scores are "
                "not included in latency."
            ),
            key=pickers.in_words("run.latency"),
            persist_state="session",
        )
        repeats = middle.number_input(
            _("Repeats per query"),
            1,
            _MOST_REPEATS,
            usual.repeats,
            help=_("The latency of a query is the median. Paid services bill each of these calls."),
            key="run.repeats",
            persist_state="session",
        )
        seconds = right.number_input(
            _("Seconds per concurrency level"),
            1.0,
            120.0,
            usual.seconds,
            step=1.0,
            key="run.seconds",
            persist_state="session",
        )
        clients = st.pills(
            _("Concurrent queries for throughput"),
            _CLIENTS,
            selection_mode="multi",
            help=_(
                "Throughput is measured, never derived from latency: this number of concurrent "
                "queries runs for the chosen seconds. Paid services bill each of these calls."
            ),
            key="run.clients",
            persist_state="session",
        )
        if clients:
            st.caption(
                _(
                    "The throughput adds about {time} to each run.",
                    time=duration(len(clients) * float(seconds)),
                )
            )
        again = (int(repeats) - 1) * timed(latency)
        if again:
            st.caption(_again(again, latency_s))
    return Timing(
        latency=latency,
        repeats=int(repeats),
        concurrency=tuple(sorted(clients)),
        seconds=float(seconds),
    )


def _again(queries: int, latency_s: float | None) -> str:
    text = ngettext(
        "Repeats add up to {n} query run per reranker.",
        "Repeats add up to {n} query runs per reranker.",
        queries,
    )
    if latency_s is None:
        return text
    return paragraph(
        [
            text,
            _(
                "At the latency measured here, this takes about {time}.",
                time=duration(queries * latency_s),
            ),
        ]
    )
