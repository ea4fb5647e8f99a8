"""The first page of a report on sampled labels: the estimates, what they cost, and what to do."""

from __future__ import annotations

from rankdash.core.base.html import html_safe
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.drawn import estimate_of
from rankdash.features.cost import words_costs
from rankdash.features.cost.report_draft import MoneyDraft
from rankdash.features.label.words_estimates import (
    estimate_chip,
    estimate_risks,
    estimate_sentence,
    relative_sentence,
)
from rankdash.features.overview.words import estimate_step
from rankdash.kit.html.html_page import listed, prose


def draw(draft: MoneyDraft) -> str:
    """Draw a box for each challenger that the labels were sampled for."""
    return "".join(_one(draft, challenger) for challenger in draft.study.challengers)


def _one(draft: MoneyDraft, challenger: str) -> str:
    study, choice = draft.study, draft.choice(challenger)
    found = estimate_of(study, challenger)
    if found is None or study.labelling is None:
        return ""
    step = estimate_step(
        study.labelling, found, choice, priced=draft.money.valued and not choice.unset
    )
    parts = [
        (
            _("What was found"),
            prose(relative_sentence(found), "lead") + prose(estimate_sentence(found)),
        ),
        (
            _("What it costs"),
            prose(words_costs.headline(draft.context, choice, draft.money.assumptions)),
        ),
        (_("Risk"), listed(estimate_risks(found))),
    ]
    return "".join(
        [
            f'<div class="verdict {found.kind}"><h3><span class=tag>'
            f"{html_safe(estimate_chip(found))}</span> {html_safe(draft.against(challenger))}</h3>",
            *(f"<h4>{html_safe(title)}</h4>{inside}" for title, inside in parts),
            f"<div class=step><h4>{html_safe(_('Next step'))}</h4>"
            f"<p><strong>{html_safe(step)}</strong></p></div></div>",
        ]
    )
