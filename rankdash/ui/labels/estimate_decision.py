"""The decision that sampled labels allow: break-even, the next step, and the way on."""

from __future__ import annotations

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.study import costs
from rankdash.study.drawn import estimate_of
from rankdash.study.gains import hit_title
from rankdash.study.study import Study
from rankdash.study.systems import Money
from rankdash.ui.sidebar import view
from rankdash.ui.state import label_plan, scenario
from rankdash.ui.state.label_plan import Labelling
from rankdash.ui.widgets.text import markdown_safe, name_safe
from rankdash.words.costs import MoneyContext, headline
from rankdash.words.estimates import estimate_step
from rankdash.words.money import month


def draw(study: Study, labelling: Labelling, page: str) -> None:
    """Below the estimates of a plan, for each challenger: whether it pays off, and what to do.

    page: the name of its file; Cost says itself whether it pays off.
    """
    found = scenario.with_money(label_plan.estimated(study, labelling))
    money = found.money or Money()
    by_system = {each.system: each for each in costs.choices(found)}
    for challenger in found.challengers:
        estimate, choice = estimate_of(found, challenger), by_system[challenger]
        if estimate is None or found.labelling is None:
            continue
        if choice.option.gain is not None and page != "cost":
            st.markdown(headline(_context(found, money), choice, money.assumptions))
        priced = money.valued and not choice.unset
        step = estimate_step(found.labelling, estimate, choice, priced=priced)
        st.markdown(_("**Next step:** {step}", step=markdown_safe(step, 600)))
    _ways(labelling, page)


def _context(study: Study, money: Money) -> MoneyContext:
    return MoneyContext(
        currency=money.currency,
        metric=study.measure.title,
        hit=hit_title(study),
        level=study.statistics.level,
        baseline=study.name(study.baseline),
        period=month(),
        safe=name_safe,
    )


def _ways(labelling: Labelling, page: str) -> None:
    """Links to what follows from a result, on other pages."""
    settled = labelling.status.settled
    ways = {
        **({"overview": (_("See the verdict"), ":material/gavel:")} if settled else {}),
        "cost": (_("Cost & ROI"), ":material/payments:"),
        "report": (_("Make the report"), ":material/description:"),
        "label": (_("Label on") if settled else _("Label documents"), ":material/label:"),
    }
    with st.container(horizontal=True):
        for name, (label, icon) in ways.items():
            if name != page:
                st.page_link(view.page(name), label=label, icon=icon)
