"""Stored judges: progress, failures, cost and actions."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base.i18n import (
    duration,
    kind_of_failure,
    moment,
    ngettext,
    number,
    problem_text,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.workspace.jobs.judges import JudgeRow, StoredJudges
from rankdash.features.judge.judge import KINDS, OWN
from rankdash.kit.widgets import address, dialogs, pickers, redraw, scenario, settings_form, stored
from rankdash.kit.widgets.stored import read_only, worker, workspace
from rankdash.kit.widgets.text import markdown_safe, name_safe, shortened

_LONGEST = 30
_SHOWN = "judge_shown"


def show(judge_id: str) -> None:
    """Make the page show the judge with this id."""
    address.choose(_SHOWN, judge_id)


def chosen(dataset_id: str) -> JudgeRow | None:
    """Return the judge that the page shows; None without judges. Draw a select box if there are
    several; the default is the newest."""
    rows = stored.judge_rows(dataset_id)
    if not rows:
        return None
    ids = list(reversed(rows))
    if len(ids) == 1:
        return rows[ids[0]]
    shown = pickers.pick_one(
        _SHOWN,
        ids,
        st.selectbox,
        label=_p("field", "Judge"),
        format_func=lambda each: (
            f"{shortened(rows[each].name, _LONGEST)} · {moment(rows[each].created)}"
        ),
    )
    return rows[shown or ids[0]]


def draw(row: JudgeRow) -> None:
    """Draw the card of a judge; it polls once per second while the judge is queued or running."""

    @st.fragment(run_every=redraw.seconds(row))
    def card() -> None:
        now = stored.judge_rows(row.dataset_id).get(row.id)
        if now is None or redraw.seconds(now) != redraw.seconds(row):
            st.rerun(scope="app")
        if now.live and not read_only():
            worker().ensure()
        with st.container(border=True):
            text, action = st.columns([5, 2], vertical_alignment="center")
            text.write(f"**{name_safe(now.name)}** · {_state(now)}")
            text.caption(" · ".join(_identity(now)))
            _progress(now, text)
            if not read_only():
                _actions(now, text, action)

    card()


def ask_again(row: JudgeRow, pairs: Sequence[tuple[str, str]]) -> None:
    """Draw a button that retries failed (query id, document id) pairs. It is shown once every other
    pair was sent to the judge."""
    if pairs and row.can_resume and not row.open and not read_only():
        label = ngettext("Retry {n} document", "Retry these {n} documents", len(pairs))
        _resume(row, label, "lost", st.container(), st.container(), pairs)


def _resume(
    row: JudgeRow,
    label: str,
    name: str,
    text: DeltaGenerator,
    action: DeltaGenerator,
    pairs: Sequence[tuple[str, str]] = (),
) -> None:
    """Draw a button that queues a judge again, and a field for its API key.

    name: part of the widgets' keys. text, action: containers of the field and of the button. pairs:
        the only (query id, document id) pairs to grade; empty for all that remain.
    """
    with text:
        entry = settings_form.draw_key_field(
            KINDS[OWN], row.settings, f"judge.{name}.{row.id}", fixed=True
        )
    if not action.button(label, key=f"judge.{name}.{row.id}", icon=":material/resume:"):
        return
    if entry.missing:
        text.error(entry.missing, icon=":material/key_off:")
        return
    if entry.keys:
        worker().hand_over(row.id, entry.keys)
    StoredJudges(workspace()).resume(row.id, pairs)
    worker().ensure()
    st.rerun(scope="app")


def _state(row: JudgeRow) -> str:
    if row.cancelling:
        return _("cancelling after the current batch")
    return {
        "queued": _p("state", "queued"),
        "running": _p("state", "grading"),
        "done": _p("state", "done"),
        "failed": _p("state", "failed"),
        "cancelled": _p("state", "cancelled"),
        "interrupted": _p("state", "interrupted"),
    }[row.state]


def _identity(row: JudgeRow) -> list[str]:
    """Return facts that identify a judge: model, hash of the prompt, scale and creation date."""
    parts = [_("grades 0 to {top}", top=row.top), moment(row.created)]
    if row.template:
        parts.insert(0, _("prompt {hash}", hash=markdown_safe(row.template, 12)))
    if row.model:
        parts.insert(0, _("model {model}", model=markdown_safe(row.model, 80)))
    return parts


def _progress(row: JudgeRow, text: DeltaGenerator) -> None:
    answered = row.graded + row.failed
    parts = [
        ngettext("{done} of {n} pair", "{done} of {n} pairs", row.total, done=number(answered, 0))
    ]
    if row.failed:
        parts.append(ngettext("{n} without a grade", "{n} without a grade", row.failed))
    if row.state == "running" and row.seconds_left is not None:
        remaining = _("{time} left", time=duration(row.seconds_left))
        parts.append(remaining if row.seconds_left >= 1 else _("almost done"))
    if row.live or row.open:
        text.progress(min(1.0, answered / row.total), text=" · ".join(parts))
    else:
        text.write(" · ".join(parts))
    if row.failed:
        kinds = StoredJudges(workspace()).failures(row.id)
        failures = [
            _(
                "{part}: {value}",
                part=markdown_safe(kind_of_failure(kind), 80),
                value=number(count, 0),
            )
            for kind, count in kinds.items()
        ]
        text.caption(" · ".join(failures))
    if row.settings:
        text.caption(" · ".join(_bill(row)))
    if row.error is not None:
        text.error(markdown_safe(problem_text(row.error), 500), icon=":material/error:")


def _bill(row: JudgeRow) -> list[str]:
    """Return the recorded usage of a judge, as short texts: calls, tokens, cost, lost answers."""
    billed = row.usage.get("billed", {})
    estimated = int(row.usage.get("estimated", 0))
    parts = [ngettext("{n} call", "{n} calls", int(row.usage.get("calls", 0)))]
    amounts = []
    if "prompt_tokens" in billed:
        amounts.append(_("{n} input tokens", n=number(billed["prompt_tokens"], 0)))
    if "completion_tokens" in billed:
        amounts.append(_("{n} output tokens", n=number(billed["completion_tokens"], 0)))
    if "dollars" in billed:
        amounts.append(scenario.dollars(billed["dollars"]))
    parts += [_("at least {amount}", amount=each) if estimated else each for each in amounts]
    if estimated:
        parts.append(
            ngettext("{n} call with estimated tokens", "{n} calls with estimated tokens", estimated)
        )
    if row.unsettled and not row.live:
        parts.append(
            ngettext(
                "{n} answer was lost because the worker stopped",
                "{n} answers were lost because the worker stopped",
                row.unsettled,
            )
        )
    return parts


def _actions(row: JudgeRow, text: DeltaGenerator, action: DeltaGenerator) -> None:
    judges = StoredJudges(workspace())
    if row.live:
        if action.button(
            _p("button", "Cancel"),
            key=f"judge.cancel.{row.id}",
            icon=":material/cancel:",
            disabled=row.cancelling,
        ):
            judges.cancel(row.id)
            st.rerun(scope="app")
        return
    if row.can_resume:
        _resume(
            row,
            _p("button", "Resume") if row.open else _p("button", "Retry"),
            "resume",
            text,
            action,
        )
    if action.button(
        _p("button", "Delete"), key=f"judge.delete.{row.id}", icon=":material/delete:"
    ):
        dialogs.delete(
            _("Delete this judge?"),
            [
                name_safe(row.name),
                ngettext("{n} grade will be deleted.", "{n} grades will be deleted.", row.graded),
                _("Human labels are kept."),
            ],
            lambda: judges.delete(row.id),
        )
