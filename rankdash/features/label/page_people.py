"""Who labelled how much, which grades each gave, and how far two people agree."""

from __future__ import annotations

import math

import streamlit as st

from rankdash.core.base.i18n import duration, number, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.kit.widgets.label_plan import Labelling
from rankdash.kit.widgets.text import name_safe, table_html


def draw(labelling: Labelling) -> None:
    """A table of people, and a sentence for each two with a document in common."""
    found = labelling.status
    if not found.raters:
        st.caption(_("Nobody has labelled yet."))
        return
    rows = [
        [
            each.name or _("unknown"),
            number(each.answers, 0),
            *(number(each.grades.get(grade, 0), 0) for grade in labelling.grades),
            number(each.cannot_tell, 0),
        ]
        for each in found.raters
    ]
    grades = [f"{grade:g}" for grade in labelling.grades]
    st.html(table_html([_("Person"), _("Documents"), *grades, _("cannot tell")], rows))
    if math.isfinite(found.seconds):
        st.caption(_("{time} for a document, at the median.", time=duration(found.seconds)))
    for each in found.agreements:
        one, other = each.raters
        kappa = each.quadratic
        st.markdown(
            _(
                "{one} and {other}: the same grade for {share} of {n} documents, quadratic kappa "
                "{kappa} ({low} … {high}).",
                one=name_safe(one),
                other=name_safe(other),
                share=percent(kappa.agree),
                n=number(kappa.pairs, 0),
                kappa=number(kappa.kappa),
                low=number(kappa.low),
                high=number(kappa.high),
            )
        )
