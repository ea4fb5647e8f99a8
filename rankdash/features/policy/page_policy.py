"""The policy: the choices of all sections, with their expected quality, latency and price."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.prices import money
from rankdash.features.policy import charts, page_deadline, page_depth, page_floor, page_skipping
from rankdash.features.policy.policy import Choices, Expected, expected, prices
from rankdash.features.policy.policy_file import code, document, written
from rankdash.features.policy.words import basis, effect, section_titles, steps
from rankdash.kit.drawing.draw import Drawing
from rankdash.kit.widgets import address, redraw
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.scenario import currency
from rankdash.kit.widgets.text import markdown_safe, name_safe


def choices(study: Study, challenger: str) -> Choices:
    """Return the user's choices of all sections."""
    skip = page_skipping.chosen()
    margin, loss = ("first", None) if skip is None else skip
    return Choices(
        challenger,
        depth=page_depth.chosen(),
        skip_loss=loss,
        margin="edge" if margin == "edge" else "first",
        deadline_ms=page_deadline.chosen(),
        weights=tuple(each for each in study.systems if each in address.several("weights")),
        floor_alpha=page_floor.chosen(),
    )


def show(study: Study, challenger: str) -> None:
    """Draw the steps of the policy, its expected effect, and its file."""
    made = choices(study, challenger)
    try:
        found = expected(study, made)
    except RankdashError as error:
        st.info(markdown_safe(error_text(error), 300), icon=":material/info:")
        _steps(study, made, None)
        return
    if found is None:
        st.info(_("No query has a metric value with this policy."), icon=":material/info:")
        _steps(study, made, None)
        return
    price = prices(study, found)
    st.markdown(paragraph(effect(study, made, found, price, name_safe)))
    _steps(study, made, found)
    widgets_charts.draw(_drawing(study, made, found, price), key="policy.outcome")
    st.caption(paragraph(basis(study, made, found, name_safe)))
    content = document(study, made, found, None if price is None else price[0])
    st.download_button(
        _("Download policy.json"),
        written(content),
        "policy.json",
        "application/json",
        icon=":material/download:",
        type="primary" if made.any else "secondary",
        on_click="ignore",
    )
    redraw.fold(
        _("Python that applies policy.json"),
        "policy.python",
        ":material/code:",
        lambda: _code(found),
    )


def _code(found: Expected) -> None:
    st.code(code(found.policy), "python")


def _steps(study: Study, made: Choices, found: Expected | None) -> None:
    """Draw a button for each step, which opens its section."""
    titles, words = section_titles(), {} if found is None else steps(study, made, found.policy)
    with st.container(horizontal=True, gap="small"):
        for section in [each for each in titles if each != "policy"]:
            label = titles[section]
            if section in words:
                label = _("{step}: {choice}", step=label, choice=words[section])
            st.button(
                label, key=f"policy.to.{section}", on_click=address.choose,
                args=("section", section),
            )  # fmt: skip


def _drawing(
    study: Study, made: Choices, found: Expected, price: tuple[float, float] | None
) -> Drawing:
    nothing, full = (0.0, price[1]) if price is not None else (None, None)
    rows = [
        charts.Outcome(study.name(FIRST_STAGE), vars(found.first_stage), 0.0, nothing),
        charts.Outcome(study.name(made.system), vars(found.full), found.full_p95_ms, full),
    ]
    if made.any:
        own = None if price is None else price[0]
        rows.append(charts.Outcome(_("This policy"), vars(found.quality), found.p95_ms, own))
    return charts.outcomes(
        rows, study.measure.title, money=lambda amount: money(amount, currency())
    )
