"""The decision that sampled labels allow: break-even, the next step, and the way on."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import paragraph
from rankdash.core.study import study_latency
from rankdash.core.study.drawn import estimate_of
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.features.cost import costs
from rankdash.features.cost.gains import hit_title
from rankdash.features.cost.words_costs import MoneyContext, headline
from rankdash.features.cost.words_money import month
from rankdash.features.label import page_estimate_strip
from rankdash.features.overview.words import estimate_step
from rankdash.kit.widgets import label_plan, scenario, stored, view
from rankdash.kit.widgets.label_plan import Labelling
from rankdash.kit.widgets.text import markdown_safe, name_safe


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


def above_means(study: Study, page: str) -> bool:
    """What is above the means of a page while labels are being given, or while there are none.

    page: the name of its file.

    Returns whether there are means to show: labels came with the data, or all that can move the
    difference are there. Of labels that were sampled there is the estimate only.
    """
    labelling = label_plan.current(study.stored_id)
    uploaded = stored.dataset(stored.stored(study.stored_id)).labelled_queries
    if labelling is None and uploaded:
        return True
    open_still = labelling is None or not labelling.complete
    sampled = label_plan.sampled(study.stored_id)
    with st.container(border=True):
        if labelling is None:
            st.subheader(_("No labels yet"), anchor=False)
            st.write(
                _(
                    "Without labels nothing tells which ranking is better. A few hundred usually "
                    "settle it: rankdash picks the documents to label, and says when there are "
                    "enough."
                )
            )
            st.page_link(view.page("label"), label=_("Label documents"), icon=":material/label:")
        else:
            page_estimate_strip.draw(labelling)
            draw(study, labelling, page)
    if uploaded and open_still and sampled is None:
        st.caption(_("The means below count documents without a label as not relevant."))
    if sampled is not None:
        why = _(
            "The result is by {metric}, a sum over documents, which a sample of the labels can "
            "estimate.",
            metric=sampled.metric,
        )
        missing = _(
            "The labels were sampled, so means, counts of queries and rank shifts computed "
            "from them would be wrong and are not shown."
        )
        st.caption(paragraph([why, missing]))
    if not uploaded and labelling is None:
        st.markdown(_("What can be said without labels:"))
        links = [("rank_shifts", _("how far the systems agree, and which documents moved"))]
        if study_latency.timed(study):
            links.append(("latency", _("how long each system takes")))
        for name, words in links:
            st.page_link(view.page(name), label=words, icon=":material/arrow_forward:")
    return sampled is None and (bool(uploaded) or not open_still)
