"""The published formula step by step, with the numbers that are set now."""

from __future__ import annotations

import streamlit as st

from rankdash.errors import RankdashError
from rankdash.i18n import error_text, number, percent
from rankdash.i18n import gettext as _
from rankdash.study.costs import Choice
from rankdash.study.study import Study
from rankdash.ui.cost.cost_terms import amount
from rankdash.ui.widgets.text import markdown_safe, table_html
from rankdash.value.assumptions import Assumptions
from rankdash.value.benefit import simple_roi


def draw(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """Four steps, four results; without uncertainty, upkeep or share, as it is published."""
    cost = choice.option.cost_per_search
    if cost is None:
        st.info(_("This needs a price in the currency of the page."), icon=":material/info:")
        return
    before = study.mean(study.baseline)[0]
    after = study.mean(choice.system)[0]
    try:
        found = simple_roi(
            before,
            after,
            searches_per_day=scenario.searches_per_day,
            value_per_search=scenario.value_per_search,
            cost_per_search=cost,
            elasticity=scenario.elasticity,
        )
    except RankdashError as error:
        st.info(markdown_safe(error_text(error), 300), icon=":material/info:")
        return
    metric = study.measure.title
    searches = number(scenario.searches_per_day, 0)
    rows = [
        (
            _("improvement"),
            _("({after} − {before}) / {before} of {metric}", after=number(after, 4),
              before=number(before, 4), metric=metric),
            percent(found.improvement, 4),
        ),
        (
            _("gain a day"),
            _("{searches} searches × {value} × improvement × {elasticity}", searches=searches,
              value=amount(scenario.value_per_search), elasticity=number(scenario.elasticity, 2)),
            amount(found.gain_per_day),
        ),
        (
            _("cost a day"),
            _("{searches} searches × {cost}", searches=searches, cost=amount(cost)),
            amount(found.cost_per_day),
        ),
        (_("return on the cost"), _("(gain − cost) / cost"), percent(found.roi, 2)),
    ]  # fmt: skip
    st.html(table_html((_("step"), _("formula"), _("result")), rows))
    st.caption(
        _(
            "This is the formula that calculators publish. It leaves out how sure the gain is, the "
            "share of the traffic, upkeep, tickets and waiting: the answer above has them."
        )
    )
