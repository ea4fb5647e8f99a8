"""What calls to a service would come to, as the parts of a line."""

from __future__ import annotations

import math

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number
from rankdash.core.rerankers.remote.estimates import Estimate
from rankdash.kit.widgets.text import markdown_safe


def parts(found: Estimate, host: str) -> list[str]:
    """Calls, tokens and dollars, safe for Markdown. host: of the service, as it is."""
    said = [
        ngettext(
            "about {n} call to {host}",
            "about {n} calls to {host}",
            round(found.calls),
            host=markdown_safe(host, 60),
        ),
        _("{n} tokens read", n=rounded(found.tokens_in)),
    ]
    if found.tokens_out:
        said.append(_("{n} written", n=rounded(found.tokens_out)))
    if math.isnan(found.dollars):
        said.append(_("price not known: type it under More settings"))
    else:
        said.append(_("about {amount}", amount=dollars(found.dollars)))
    return said


def dollars(amount: float) -> str:
    # A bare dollar sign opens a formula in Markdown.
    return "\\$" + number(amount, 2 if amount >= 1 else 4)


def rounded(tokens: float) -> str:
    """Two figures: more would claim to know."""
    if tokens <= 0:
        return number(0, 0)
    digits = 1 - math.floor(math.log10(tokens))
    return number(round(tokens, digits), 0)
