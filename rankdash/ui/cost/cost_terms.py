"""The words about money under what the address says: currency, period, metric."""

from __future__ import annotations

from typing import Literal

from rankdash.i18n import gettext as _
from rankdash.study.study import Study
from rankdash.ui.cost.cost_period import period
from rankdash.ui.state.scenario import currency
from rankdash.ui.widgets.text import markdown_safe
from rankdash.value.outcome import Estimate, Gain
from rankdash.words import costs
from rankdash.words.costs import Answer, Telling
from rankdash.words.money import money

_LONGEST_NAME = 60


def telling(study: Study) -> Telling:
    return Telling(
        currency=currency(),
        metric=study.measure.title,
        level=study.statistics.level,
        baseline=study.name(study.baseline),
        span=period(),
        safe=lambda name: markdown_safe(name, _LONGEST_NAME),
    )


def amount(value: float | None) -> str:
    return money(value, currency())


def cell(found: Estimate, written: str = "money") -> tuple[str, str]:
    """(value, its interval) of an estimate; (the reason why there is none, "")."""
    return costs.cell(found, currency(), written)


def worth(found: Estimate, gain: Gain | None, level: float) -> tuple[str, str]:
    """As `cell`, of a value; "0 to X" where the gain may be nothing."""
    return costs.worth(found, gain, level, currency())


def badge(kind: Answer) -> tuple[str, str, Literal["blue", "orange", "gray"]]:
    """(word, icon, colour); word and icon say it without the colour."""
    words: dict[Answer, tuple[str, str, Literal["blue", "orange", "gray"]]] = {
        "yes": (_("pays"), ":material/check_circle:", "blue"),
        "maybe": (_("probably pays"), ":material/trending_up:", "blue"),
        "unproven": (_("not proven"), ":material/help:", "gray"),
        "no": (_("does not pay"), ":material/cancel:", "orange"),
        "unknown": (_("no answer"), ":material/block:", "gray"),
    }
    return words[kind]
