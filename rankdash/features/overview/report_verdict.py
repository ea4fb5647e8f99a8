"""Of every system: is it better, how surely, and at what price."""

from __future__ import annotations

import math

from rankdash.core.base.html import html_safe
from rankdash.core.base.i18n import (
    all_of,
    brief,
    enumerated,
    ngettext,
    number,
    paragraph,
    percent,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study import study_latency
from rankdash.core.words.queries import left_out_text
from rankdash.core.words.verdict_chips import (
    change_interval,
    chip,
    is_corrected,
    p_title,
    p_value,
    sentence,
)
from rankdash.features.cost import words_assumptions, words_costs, words_prices
from rankdash.features.cost.report_draft import MoneyDraft
from rankdash.features.judge import charts as judge_charts
from rankdash.features.judge.judging import headline, verdicts
from rankdash.features.judge.words_judged import (
    bias_sentence,
    judge_caveats,
    judge_warnings,
    judged_sentence,
    three_ways,
    without_judge,
    worth_sentence,
)
from rankdash.features.latency.words_latency import without_p95
from rankdash.kit.html.draft import DASH
from rankdash.kit.html.html_page import PageTable, listed, prose, table


def draw(draft: MoneyDraft) -> str:
    study = draft.study
    parts = [_one(draft, challenger) for challenger in study.challengers]
    if parts:
        parts.append(prose(_care(draft), "muted"))
    else:
        row = study.comparison.row(study.baseline, study.spec)
        text = _(
            "Only {system} is reported on, so nothing is compared: its mean {metric} is {mean}.",
            system=study.name(study.baseline),
            metric=study.measure.title,
            mean=number(row["mean"]),
        )
        parts.append(prose(text))
    return "".join(parts)


def _one(draft: MoneyDraft, challenger: str) -> str:
    study = draft.study
    above = headline(study, challenger)
    kind = study.comparison.row(challenger, study.spec)["verdict"] if above is None else above.kind
    verdict = study.comparison.verdict(challenger, study.spec, study.names)
    facts = "".join(
        f"<div><dt>{html_safe(title)}</dt><dd>{html_safe(value)}</dd>"
        f"<dd class=muted>{html_safe(beside)}</dd></div>"
        for title, value, beside in _facts(draft, challenger)
    )
    worth = words_costs.headline(draft.context, draft.choice(challenger), draft.money.assumptions)
    return (
        f'<div class="verdict {html_safe(str(kind))}">'
        f"<h3><span class=tag>{html_safe(chip(str(kind)))}</span> "
        f"{html_safe(draft.against(challenger))}</h3>"
        f"{_judged(draft, challenger)}{prose(sentence(verdict))}<dl class=facts>{facts}</dl>"
        f"{prose(worth)}{_left_out(draft, challenger)}</div>"
    )


def _judged(draft: MoneyDraft, challenger: str) -> str:
    """What the study's judge says of a challenger: the sentence, the three ways, what it is worth
    and what to keep in mind."""
    study = draft.study
    if study.judge is None:
        return ""
    found = verdicts(study, study.judge)[challenger]
    rows = [
        [title, signed(change.mean, 4), change_interval(change.low, change.high), f"{change.n:,}"]
        for title, change in three_ways(found.three)
    ]
    metric, level = study.measure.title, percent(study.statistics.level)
    head = (_("way"), _("change in {metric}", metric=metric), _("{level} interval", level=level))
    said = [bias_sentence(study, found), judged_sentence(study, found), worth_sentence(found)]
    return "".join(
        [
            prose(paragraph([each for each in said if each])),
            table(PageTable((*head, _("queries")), rows, numbers=frozenset((1, 2, 3)))),
            draft.chart(judge_charts.three_ways(study, challenger)),
            draft.chart(judge_charts.label_curve(study, challenger)),
            listed(
                [
                    *(_("Warning: {text}", text=each) for each in judge_warnings(study, found)),
                    *judge_caveats(study, found),
                ]
            ),
            prose(without_judge(), "muted"),
        ]
    )


def _facts(draft: MoneyDraft, challenger: str) -> list[tuple[str, str, str]]:
    """(title, value, what is beside it)."""
    study = draft.study
    row = study.comparison.row(challenger, study.spec)
    level = percent(study.statistics.level)
    ends = change_interval(row["delta_low"], row["delta_high"])
    found = [
        (
            _("change in {metric}", metric=study.measure.title),
            signed(row["delta"]),
            "" if ends == DASH else _("{level}: {interval}", level=level, interval=ends),
        ),
        (
            _("helped · same · hurt"),
            " · ".join(number(row[each], 0) for each in ("helped", "same", "hurt")),
            ngettext("{n} query", "{n} queries", int(row["paired"])),
        ),
    ]
    if math.isfinite(row["p_corrected"]):
        by_chance = (
            _("how often chance alone does as much")
            if row["p"] == row["p_corrected"]
            else _("p {p}: how often chance alone does as much", p=p_value(row["p"]))
        )
        found.append(
            (p_title(is_corrected(row, study.statistics)), p_value(row["p_corrected"]), by_chance)
        )
    split = study.headroom(challenger)
    share = None if split is None else split.share_won
    # Where reranking did harm, a share of what could be won says nothing.
    if share is not None and share >= 0:
        found.append(
            (
                _("potential gain realised"),
                percent(share),
                _("of the gain of a perfect order of the same documents"),
            )
        )
    summary = study_latency.summary(study, challenger)
    p95 = None if summary is None else summary.p95
    found.append(
        (
            _("p95 latency"),
            DASH if p95 is None else _("{ms} ms", ms=brief(p95)),
            without_p95(0 if summary is None else summary.n)
            if summary is None or p95 is None
            else ngettext(
                "95% of the {n} query timed took no longer",
                "95% of the {n} queries timed took no longer",
                summary.n,
            ),
        )
    )
    choice = draft.choice(challenger)
    cost, _interval = words_costs.cell(choice.came.cost_per_thousand, draft.money.currency)
    beside = ""
    if choice.bill is not None:
        beside = all_of(words_prices.marks(choice.bill))
    if choice.bill is not None and choice.bill.lack:
        cost, beside = _("not set"), words_prices.lack(choice.bill)
    elif choice.example:
        beside = _("{part}: {value}", part=beside, value=cost)
        cost = _("not set")
    found.append((_("cost of 1,000 searches"), cost, beside))
    return found


def _care(draft: MoneyDraft) -> str:
    """Which assumptions the sentence on money rests on that nobody set."""
    rests = _("Prices and assumptions are listed under “Cost and break-even”.")
    if draft.examples:
        examples = enumerated(draft.examples)
        rests = paragraph(
            [rests, _("Example prices that nobody set: {systems}.", systems=examples)]
        )
    return paragraph([each for each in (rests, words_assumptions.defaults(draft.money)) if each])


def _left_out(draft: MoneyDraft, challenger: str) -> str:
    text = left_out_text(draft.study.comparison.left_out(challenger, draft.study.spec))
    return prose(text) if text else ""
