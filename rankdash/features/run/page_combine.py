"""Fusion of stored runs: the new run is immediate because nothing is scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import distinct, free
from rankdash.core.rerankers.fusion import FUSION_SETTINGS, Fusion
from rankdash.core.runs.combining import CombinedRun, fuse
from rankdash.core.study.systems import FIRST_STAGE, System
from rankdash.kit.widgets import dialogs, pickers, stored
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.settings_form import choice_titles
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import markdown_safe

_MADE = "combine.made"
_A_ROW = 4
_LONGEST_NAME = 80
_LEAST_WEIGHT, _MOST_WEIGHT = 0.01, 1000.0
_MOST_K = 10_000.0


def draw(dataset_id: str) -> None:
    """Draw the form; nothing if there is no run, because the first stage cannot be fused by
    itself."""
    dataset_id = stored.stored(dataset_id)
    if not workspace().runs(dataset_id):
        return
    fold(_("Fuse runs"), "combine", ":material/merge:", lambda: _form(dataset_id))


def _form(dataset_id: str) -> None:
    systems = stored.systems(dataset_id)
    st.caption(
        _(
            "Fuses several rankings into one without running a model. A ranking contributes "
            "nothing to a document that it lacks. A query that failed in one ranking also fails "
            "in the fused run."
        )
    )
    fused_name = st.session_state.pop(_MADE, "")
    if fused_name:
        st.success(
            _("{name} is in the list of runs.", name=markdown_safe(fused_name, _LONGEST_NAME)),
            icon=":material/check:",
        )
    titles = distinct({each: systems[each].name for each in systems})
    chosen = st.multiselect(
        _p("field", "Rankings"),
        list(systems),
        placeholder=_("at least two"),
        format_func=titles.__getitem__,
        key=pickers.in_words(f"combine.systems.{dataset_id}"),
        persist_state="session",
        help=_("Documents with equal sums stay in the order of the ranking chosen first."),
    )
    left, middle, right = st.columns([2, 1, 2])
    of_method, of_k = FUSION_SETTINGS
    method = left.selectbox(
        _p("setting", of_method.title),
        list(of_method.choices),
        format_func=choice_titles(of_method).__getitem__,
        key=pickers.in_words("combine.method"),
        persist_state="session",
        help=_(of_method.help),
    )
    k = float(of_k.default)
    if method == "rrf":
        k = middle.number_input(
            of_k.title,
            float(of_k.least or 0),
            _MOST_K,
            k,
            step=10.0,
            format="%g",
            key="combine.k",
            persist_state="session",
            help=_(of_k.help),
        )
    used_names = {system.name for system in systems.values()}
    usual = free(_usual_name(method), used_names)
    name = right.text_input(
        _p("field", "Name"), max_chars=_LONGEST_NAME, placeholder=usual, key="combine.name"
    ).strip()
    weights = _weights(chosen, systems)
    if st.button(
        _p("button", "Fuse"), icon=":material/merge:", disabled=len(chosen) < 2, key="combine.start"
    ):
        parts = [_part(dataset_id, systems[system]) for system in chosen]
        _combine(dataset_id, parts, (method, weights, k), free(name or usual, used_names))


def _usual_name(method: str) -> str:
    names = {"rrf": "RRF", "minmax": _("Scores 0–1"), "z": _p("choice", "z-scores")}
    return _("Fused ({method})", method=names[method])


def _weights(chosen: Sequence[str], systems: Mapping[str, System]) -> tuple[float, ...]:
    weights = []
    for start in range(0, len(chosen), _A_ROW):
        # A name may need two lines: align the fields at the bottom.
        row = st.columns(_A_ROW, vertical_alignment="bottom")
        for column, system in zip(row, chosen[start : start + _A_ROW], strict=False):
            weights.append(
                column.number_input(
                    _("Weight of {name}", name=markdown_safe(systems[system].name, 40)),
                    _LEAST_WEIGHT,
                    _MOST_WEIGHT,
                    1.0,
                    step=0.5,
                    format="%g",
                    key=f"combine.weight.{system}",
                    persist_state="session",
                )
            )
    return tuple(weights)


def _part(dataset_id: str, system: System) -> CombinedRun:
    if system.id == FIRST_STAGE:
        return CombinedRun(system.name, stored.dataset(dataset_id).candidates, None)
    run = stored.run(system.id)
    return CombinedRun(system.name, run.ranking, run)


def _combine(
    dataset_id: str,
    parts: Sequence[CombinedRun],
    how: tuple[str, tuple[float, ...], float],
    name: str,
) -> None:
    try:
        run = fuse(stored.dataset(dataset_id), parts, Fusion(*how), name)
        workspace().save_run(run)
    except RankdashError as error:
        dialogs.show_error(error_text(error))
        return
    st.session_state[_MADE] = name
    st.rerun()
