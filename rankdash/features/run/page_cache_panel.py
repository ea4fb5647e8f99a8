"""The score cache of the workspace: how large it is, how large it may be, and emptying it."""

from __future__ import annotations

import math

import streamlit as st

from rankdash.core.base.i18n import duration, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.kit.widgets import dialogs
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.server import workspace

_MEGABYTE = 1024 * 1024
_MOST_MEGABYTES = 1_000_000


def draw() -> None:
    fold(_("Score cache"), "run.cache", ":material/inventory_2:", _panel)


def _panel() -> None:
    cache = workspace().score_cache
    pairs, limit = cache.pairs, cache.limit
    st.caption(
        _(
            "The scores of a model for a query and a document are cached, so that another run "
            "with the same model, settings and texts does not compute them again. Cached scores "
            "are not included in latency."
        )
    )
    st.write(
        _(
            "{pairs} · {size} MB of at most {limit} MB",
            pairs=ngettext("{n} pair", "{n} pairs", pairs),
            size=megabytes(cache.size_bytes),
            limit=megabytes(limit),
        )
    )
    left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
    wanted = left.number_input(
        _("Limit in MB"),
        0,
        _MOST_MEGABYTES,
        round(limit / _MEGABYTE),
        # Another window may have changed it.
        key=f"cache.limit.{limit}",
        help=_("The least recently used scores are deleted first. 0: no score is cached."),
    )
    if middle.button(
        _("Set the limit"),
        icon=":material/check:",
        width="stretch",
        disabled=wanted == round(limit / _MEGABYTE),
        help=_("Scores over the limit are deleted immediately."),
    ):
        cache.limit = wanted * _MEGABYTE
        st.rerun()
    if right.button(
        _("Clear"), icon=":material/delete:", width="stretch", disabled=not pairs, key="cache.clear"
    ):
        dialogs.delete(_("Clear the score cache?"), cost(pairs), cache.clear)


def cost(pairs: int) -> list[str]:
    """What clearing costs, in sentences."""
    sentences = [
        ngettext(
            "{n} pair has to be scored again by the next run that needs it.",
            "{n} pairs have to be scored again by the next runs that need them.",
            pairs,
        )
    ]
    rates = [row.pairs_per_second for row in workspace().runs() if row.pairs_per_second]
    if rates:
        sentences.append(
            _(
                "At the pace of the slowest run stored here that takes about {time}.",
                time=duration(pairs / min(rates)),
            )
        )
    sentences.append(
        _("A service charges for its part again. Stored runs stay as they are, times included.")
    )
    return sentences


def megabytes(size: int) -> str:
    """Rounded up: what takes room is not 0."""
    tenths = math.ceil(10 * size / _MEGABYTE) / 10
    return number(tenths, 0 if tenths >= 10 or not size else 1)
