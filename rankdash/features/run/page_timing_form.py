"""What a run measures beside the scores: latency, and throughput where it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import streamlit as st

from rankdash.core.base.i18n import duration, ngettext, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.runs.jobs import Timing
from rankdash.kit.widgets import pickers

_CLIENTS = (1, 2, 4, 8, 16, 32)
_LATENCY: tuple[Literal["auto", "always", "never"], ...] = ("auto", "always", "never")
_MOST_REPEATS = 20


def draw(timed: Callable[[str], int], latency_s: float | None) -> Timing:
    """What is to be measured, and what that adds.

    timed: from the choice of latency, how many queries of a run are timed at most.
    latency_s: how long one takes; None where nothing like it was timed here.
    """
    usual = Timing()
    with st.expander(_("What is measured"), icon=":material/timer:", key="run.timing"):
        left, middle, right = st.columns(3)
        latency = left.selectbox(
            _("Latency of single queries"),
            _LATENCY,
            format_func={
                "auto": _("where no score is cached"),
                "always": _("always: score again"),
                "never": _("not measured"),
            }.__getitem__,
            help=_(
                "Queries of a sample are timed one at a time, on a warm model. Cached scores are "
                "not included in latency."
            ),
            key=pickers.in_words("run.latency"),
            persist_state="session",
        )
        repeats = middle.number_input(
            _("Repeats per query"),
            1,
            _MOST_REPEATS,
            usual.repeats,
            help=_("Its latency is the median. Paid services bill each of these calls."),
            key="run.repeats",
            persist_state="session",
        )
        seconds = right.number_input(
            _("Seconds for each level of throughput"),
            1.0,
            120.0,
            usual.seconds,
            step=1.0,
            key="run.seconds",
            persist_state="session",
        )
        clients = st.pills(
            _("Throughput at this many concurrent queries"),
            _CLIENTS,
            selection_mode="multi",
            help=_(
                "Measured, never derived from latency: the number of concurrent queries is held "
                "for the seconds chosen. Paid services bill each of these calls."
            ),
            key="run.clients",
            persist_state="session",
        )
        if clients:
            st.caption(
                _(
                    "The throughput adds about {time} to each run.",
                    time=duration(len(clients) * float(seconds)),
                )
            )
        again = (int(repeats) - 1) * timed(latency)
        if again:
            st.caption(_again(again, latency_s))
    return Timing(
        latency=latency,
        repeats=int(repeats),
        concurrency=tuple(sorted(clients)),
        seconds=float(seconds),
    )


def _again(queries: int, latency_s: float | None) -> str:
    text = ngettext(
        "Repeats ask each reranker for up to {n} query more.",
        "Repeats ask each reranker for up to {n} queries more.",
        queries,
    )
    if latency_s is None:
        return text
    return paragraph([text, _("Here that took about {time}.", time=duration(queries * latency_s))])
