"""Page Policy: one section for each choice, and the policy that they make up."""

from __future__ import annotations

import functools
from collections.abc import Callable

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study import costs
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.policy import (
    page_deadline,
    page_depth,
    page_floor,
    page_policy,
    page_skipping,
    page_weights,
)
from rankdash.features.policy.words import section_titles
from rankdash.kit.widgets import pickers
from rankdash.kit.widgets.text import markdown_safe, name_safe

Show = Callable[[Study, str], None]


def sections() -> dict[str, tuple[str, Show]]:
    """Return section → its title, and the function that draws it for a reranker."""
    shown: dict[str, Show] = {
        "policy": page_policy.show,
        "depth": page_depth.show,
        "skip": page_skipping.show,
        "deadline": page_deadline.show,
        "floor": page_floor.show,
        "weights": page_weights.show,
    }
    return {name: (title, shown[name]) for name, title in section_titles().items()}


def draw(study: Study, challenger: str) -> None:
    """Draw the choice of a section, and this section."""
    run = study.run(challenger)
    if challenger == FIRST_STAGE or run is None:
        st.info(_("A policy decides when to rerank. Choose a reranker."), icon=":material/info:")
        return
    try:
        costs.refuse_other_candidates(run)
        costs.refuse_weights(study)
    except RankdashError as error:
        st.info(markdown_safe(error_text(error), 300), icon=":material/info:")
        return
    if study.baseline != FIRST_STAGE:
        first = name_safe(study.name(FIRST_STAGE))
        st.caption(
            _("A policy always starts from {first}; the baseline has no effect here.", first=first)
        )
    parts = sections()
    section = pickers.pick_one(
        "section",
        list(parts),
        functools.partial(st.radio, horizontal=True),
        default="policy",
        label=_p("field", "Show"),
        label_visibility="collapsed",
        format_func=lambda name: parts[name][0],
    )
    parts[section or "policy"][1](study, challenger)
