"""Texts that several sections of the policy share."""

from __future__ import annotations

import math
from collections.abc import Callable

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import level_percent


def with_interval(
    value: float, low: float, high: float, level: float, form: Callable[[float], str]
) -> str:
    """Return a value with its interval, if it has one. form: writes a number."""
    if math.isnan(low) or math.isnan(high):
        return form(value)
    return _(
        "{value} ({level}: {low} … {high})",
        value=form(value),
        level=level_percent(level),
        low=form(low),
        high=form(high),
    )
