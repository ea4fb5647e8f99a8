"""The choices beside the uploader that say how labels are read."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.readers import Conflict, Match, Together


def conflict() -> Conflict:
    """Draw the choice for pairs that were labelled twice."""
    chosen: Conflict = st.selectbox(
        _("Duplicate judgments"),
        get_args(Conflict),
        format_func=lambda value: {
            "highest": _("keep the highest"),
            "lowest": _("keep the lowest"),
            "mean": _("take the mean"),
            "refuse": _("refuse the file"),
        }[value],
        help=_("The same query and document labelled twice with different grades."),
    )
    return chosen


def annotators() -> Together:
    """Draw the choice for a label column per annotator."""
    chosen: Together = st.selectbox(
        _("Several annotators"),
        get_args(Together),
        format_func=lambda value: {
            "majority": _("Majority vote"),
            "mean": _("use the mean of their grades"),
        }[value],
        help=_(
            "For files with a label column per annotator, named label_1, label_2 and so on. On a "
            "tie, the lower grade is used; the check report shows their agreement."
        ),
    )
    return chosen


def match() -> Match:
    """Draw the choice for how the queries of labels are found."""
    chosen: Match = st.selectbox(
        _("Query ids of the labels"),
        get_args(Match),
        format_func=lambda value: {"id": _("by id"), "order": _("by order")}[value],
        help=_(
            "By order: the labels count the queries 1, 2, 3 … as they follow each other in the "
            "file of queries, whatever ids that file gives."
        ),
    )
    return chosen
