"""Fusion weights: the held-out gain of tuned weights, and a button that stores a run with them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import (
    enumerated,
    error_text,
    level_percent,
    ngettext,
    number,
    paragraph,
    percent,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import free
from rankdash.core.runs.combining import KIND, CombinedRun, fuse
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.verdicts import p_value
from rankdash.features.policy.charts_weights import gains_chart
from rankdash.features.policy.weights import (
    FOLDS,
    REPEATS,
    SYSTEMS,
    Gain,
    Variant,
    Weights,
    weights,
)
from rankdash.kit.widgets import address, dialogs, pickers, redraw, stored
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.text import markdown_safe, name_safe, signed_cells

_STORED = "weights.stored"
_LONGEST_NAME = 80


def show(study: Study, challenger: str) -> None:
    """Draw the section. challenger: the system in focus."""
    systems = _systems(study, challenger)
    if len(systems) < SYSTEMS[0]:
        st.info(_("Choose two to four systems to fuse."), icon=":material/info:")
        return
    try:
        with st.spinner(_("Evaluating fusion weights…"), show_time=True):
            tuned = weights(study, tuple(systems))
    except RankdashError as error:
        st.info(markdown_safe(error_text(error), 300), icon=":material/info:")
        return
    st.markdown(conclusion(study, tuned))
    single = study.name(systems[tuned.single - 1])
    widgets_charts.draw(
        gains_chart(
            (tuned.in_sample, tuned.gain, tuned.over_single),
            tuned.spread,
            study.measure.title,
            single,
            level=study.statistics.level,
        ),
        key="policy.weights",
    )
    if tuned.chosen.fusion is not None:
        _in_policy(study, systems)
        _store(study, tuned)
    redraw.fold(
        _("All variants as a table"),
        "policy.weights.table",
        ":material/table:",
        lambda: _details(study, tuned),
    )


def _systems(study: Study, challenger: str) -> list[str]:
    """Draw the choice of systems and return them in the order of the data set."""
    rows = stored.rows(study.stored_id)
    options = [each for each in study.systems if each not in rows or rows[each].reranker != KIND]
    others = [each for each in options if each != FIRST_STAGE]
    usual = [FIRST_STAGE, challenger if challenger in others else next(iter(others), "")]
    if not address.by_hand("fused"):
        # The default follows the system in focus.
        address.set_default("fused", None)
    chosen = pickers.pick_several(
        "fused",
        options,
        st.multiselect,
        default=usual,
        format_func=study.name,
        label=_("Systems to fuse"),
        max_selections=SYSTEMS[1],
    )
    return [each for each in options if each in chosen]


def _in_policy(study: Study, systems: Sequence[str]) -> None:
    """Draw the switch that adds the fusion of these systems to the policy, as their ids."""
    key = "policy.weights.chosen"
    chosen = [each for each in address.several("weights") if each in study.systems]

    def changed() -> None:
        address.choose("weights", systems if st.session_state[key] else None)

    pickers.show(st.toggle, key, set(chosen) == set(systems), changed)(
        _("Use these weights in the policy")
    )


def variant_words(study: Study, systems: Sequence[str], variant: Variant) -> str:
    """Return the method and the weights of a variant in one line, not escaped."""
    named = [
        f"{study.name(systems[place])} {number(variant.weights[place], 2)}"
        for place in variant.fused
    ]
    if len(named) == 1:
        return study.name(systems[variant.fused[0]])
    return _("{method}: {weights}", method=_method(variant), weights=enumerated(named))


def _method(variant: Variant) -> str:
    if variant.method == "rrf":
        return _("RRF (k = {k})", k=number(variant.k, 0))
    return _("Scores 0–1") if variant.method == "minmax" else _p("choice", "z-scores")


def conclusion(study: Study, tuned: Weights) -> str:
    """Return the result in one or two sentences: held-out gains only, safe for Markdown."""
    metric, level = study.measure.title, study.statistics.level
    single = name_safe(study.name(tuned.systems[tuned.single - 1]))
    gain, over = _change(tuned.gain, level), _change(tuned.over_single, level)
    if tuned.chosen.fusion is None:
        return _(
            "**Do not fuse these systems:** {system} alone has the highest mean of {n} variants. "
            "On held-out queries, tuned weights change {metric} by {change} from it.",
            system=single,
            n=number(len(tuned.variants), 0),
            metric=metric,
            change=over,
        )
    if not tuned.gain.proven:
        first = _(
            "**Not proven that tuned weights differ from equal RRF:** on held-out queries, "
            "{metric} changes by {change}.",
            metric=metric,
            change=gain,
        )
    elif tuned.gain.change < 0:
        first = _(
            "**Do not tune weights on these queries:** on held-out queries, {metric} changes by "
            "{change} from equal RRF.",
            metric=metric,
            change=gain,
        )
    else:
        first = _(
            "**Tuned weights are better than equal RRF:** on held-out queries, {metric} changes "
            "by {change}.",
            metric=metric,
            change=gain,
        )
    if not tuned.over_single.proven:
        second = _(
            "Not proven that tuned weights differ from {system} alone: {change}.",
            system=single,
            change=over,
        )
    elif tuned.over_single.change < 0:
        second = _(
            "Tuned weights are worse than {system} alone: {change}.", system=single, change=over
        )
    else:
        second = _(
            "Tuned weights are better than {system} alone: {change}.", system=single, change=over
        )
    return paragraph([first, second])


def _change(gain: Gain, level: float) -> str:
    if not gain.proven and (gain.low > 0 or gain.high < 0):
        return _(
            "{change} ({level}: {low} … {high}; {p})",
            change=signed(gain.change),
            level=level_percent(level),
            low=signed(gain.low),
            high=signed(gain.high),
            p=_("corrected p {p}", p=p_value(gain.p)),
        )
    return _(
        "{change} ({level}: {low} … {high})",
        change=signed(gain.change),
        level=level_percent(level),
        low=signed(gain.low),
        high=signed(gain.high),
    )


def _store(study: Study, tuned: Weights) -> None:
    """Draw the weights chosen on all queries and the button that stores a run with them."""
    chosen = markdown_safe(variant_words(study, tuned.systems, tuned.chosen), 300)
    st.markdown(_("Highest mean on all of these queries: **{variant}**", variant=chosen))
    if stored.read_only():
        return
    name = st.session_state.pop(_STORED, "")
    if name:
        st.success(
            _("{name} is in the list of runs.", name=markdown_safe(name, _LONGEST_NAME)),
            icon=":material/check:",
        )
    if st.button(_("Store a run with these weights"), icon=":material/merge:", key=f"{_STORED}.go"):
        _save(study, tuned)
    st.caption(
        _(
            "The run is marked as tuned on these queries. Its gain is never reported as proven on "
            "them; the held-out gain is stored with it."
        )
    )


def _save(study: Study, tuned: Weights) -> None:
    how = tuned.chosen.fusion
    if how is None:
        return
    parts = [
        CombinedRun(study.name(system), study.ranking(system), study.run(system))
        for system in (tuned.systems[place] for place in tuned.chosen.fused)
    ]
    name = free(_("Tuned fusion"), {each.name for each in study.systems.values()})
    try:
        dataset = stored.dataset(study.stored_id)
        run = fuse(dataset, parts, how, name, tuned.record(study))
        stored.workspace().save_run(run)
    except RankdashError as error:
        dialogs.show_error(error_text(error))
        return
    st.session_state[_STORED] = name
    st.rerun()


def _details(study: Study, tuned: Weights) -> None:
    low, high = (signed(end) for end in tuned.spread)
    n = len(tuned.query_ids)
    sentences = [
        ngettext(
            "{n} query, {folds} folds, {repeats} splits (seed {seed}); near-duplicate queries are "
            "in the same fold.",
            "{n} queries, {folds} folds, {repeats} splits (seed {seed}); near-duplicate queries "
            "are in the same fold.",
            n,
            folds=FOLDS,
            repeats=REPEATS,
            seed=study.statistics.seed,
        ),
        _(
            "The held-out gain over equal RRF is between {low} and {high} in 90% of the splits.",
            low=low,
            high=high,
        ),
        _("The means in this table are in-sample: they are higher than on new queries."),
    ]
    if n < tuned.sampled:
        sentences.append(
            _("The queries are a random sample of {all}.", all=number(tuned.sampled, 0))
        )
    st.caption(paragraph(sentences))
    table = tuned.table.sort_values("mean", ascending=False, kind="stable")
    words = [variant_words(study, tuned.systems, tuned.variants[at]) for at in table.index]
    change = _("change from equal RRF")
    columns = {
        _p("column", "variant"): words,
        _p("column", "mean"): table["mean"],
        change: table["change"],
        _("share of folds"): [percent(share) for share in table["share"]],
    }
    st.dataframe(
        signed_cells(pd.DataFrame(columns).reset_index(drop=True), {change: 4}),
        hide_index=True,
        column_config={_p("column", "mean"): st.column_config.NumberColumn(format="%.4f")},
        alt=_("All variants as a table"),
    )
