"""The next step after an estimate from sampled labels."""

from __future__ import annotations

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import paragraph
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.sampling.status import LabelStatus
from rankdash.core.study.costs import Choice
from rankdash.core.words.labelling import effort_sentence


def estimate_step(status: LabelStatus, found: Estimate, choice: Choice, priced: bool) -> str:
    """Return one thing to do. priced: whether somebody set price and assumptions."""
    names = {"name": found.challenger, "baseline": found.baseline}
    if not found.settled and found.state != "complete":
        return paragraph([_("Label on, then decide."), effort_sentence(status)])
    if found.difference < 0:
        return _("Stop: keep {baseline}. {name} is worse.", **names)
    if found.difference == 0:
        return _("Stop: keep {baseline}. {name} changes nothing that counts.", **names)
    if not priced:
        return _(
            "Set the price of {name} and the value of a search, then compare gain and cost.",
            **names,
        )
    net = choice.came.net_per_month.value
    if net is not None and net <= 0:
        return _(
            "Stop: keep {baseline}. {name} costs more than it brings under these assumptions.",
            **names,
        )
    return _(
        "Run a trial: serve {name} to part of the traffic and compare it with {baseline}.", **names
    )
