"""Which kinds of queries gain, why queries changed, and where quality is lost."""

from __future__ import annotations

from rankdash.core.base.html import html_safe
from rankdash.core.base.i18n import enumerated, number, paragraph, percent, signed
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.checks.query_groups import DerivedSegment
from rankdash.core.words.headroom import documents, notes
from rankdash.core.words.queries import left_out_text
from rankdash.core.words.reasons import reason_meanings, reason_words
from rankdash.core.words.verdict_chips import change_interval, p_title, p_value
from rankdash.features.overview import charts
from rankdash.features.overview.charts import DERIVED
from rankdash.kit.html.draft import DASH, Draft, as_table
from rankdash.kit.html.html_page import PageTable, listed, prose, table, together


def segments(draft: Draft) -> str:
    parts = [_segments(draft, challenger) for challenger in draft.study.challengers]
    if not any(parts):
        return prose(_("The queries fall into no groups that could be compared."))
    text = {name for each in draft.study.challengers for name in _told(draft, each)}
    left = [name for name in draft.study.segments if name not in text]
    notes = [
        _(
            "This grouping was chosen after the results were known: a group that stands out is a "
            "reason to test, not a proof."
        ),
        *(
            draft.explained(_(each.title), _(each.meaning), _(each.note) if each.note else "")
            for name, each in _derived(draft).items()
            if name in text
        ),
    ]
    if left:
        titles = [_(_derived(draft)[n].title) if n in _derived(draft) else n for n in left]
        notes.append(
            _(
                "Not listed, because all queries have the same value or nearly each has its own: "
                "{columns}.",
                columns=enumerated(titles),
            )
        )
    return "".join(parts) + listed(notes)


def _derived(draft: Draft) -> dict[str, DerivedSegment]:
    """The segments that rankdash works out and no column of the data hides."""
    given = draft.study.dataset.segments
    return {name: each for name, each in DERIVED.items() if name not in given}


def _told(draft: Draft, challenger: str) -> set[str]:
    rows = charts.groups(draft.study, challenger)
    return set() if rows.empty else set(rows["name"])


def _segments(draft: Draft, challenger: str) -> str:
    study = draft.study
    rows = charts.groups(study, challenger)
    if rows.empty:
        return ""
    cells = [
        (
            str(row["segment"]),
            str(row["value"]),
            number(row["n"], 0),
            f"{number(row['before'])} → {number(row['after'])}",
            signed(row["delta"]),
            change_interval(row["low"], row["high"]),
            p_value(row["p_corrected"]),
            f"{row['helped']} · {row['same']} · {row['hurt']}",
        )
        for _at, row in rows.iterrows()
    ]
    head = (
        *(_("grouped by"), _("group"), _("queries"), study.measure.title, _("change")),
        _("{level} interval of the change", level=percent(study.statistics.level)),
        *(p_title(charts.groups_corrected(study, rows)), _("helped · same · hurt")),
    )
    first, *rest = [
        *(draft.titled(each) for each in charts.segments(study, challenger)),
        "",
    ]
    return "".join(
        [
            together(f"<h3>{html_safe(draft.against(challenger))}</h3>", first),
            *rest,
            as_table(PageTable(head, cells, frozenset(range(2, 8)))),
        ]
    )


def reasons(draft: Draft) -> str:
    study = draft.study
    parts = [_headroom(draft)]
    for challenger in study.challengers:
        counts = study.reason_counts(challenger)
        if counts is None:
            text = _(
                "{metric} cannot be split by document, so its changes have no reasons.",
                metric=study.measure.title,
            )
            parts.append(prose(text))
            break
        words, meanings = reason_words(), reason_meanings()
        rows = [
            (
                words[str(code)],
                number(row["queries"], 0),
                signed(row["mean"]),
                signed(row["adds"]),
                meanings[str(code)],
            )
            for code, row in counts.iterrows()
        ]
        out = left_out_text(study.comparison.left_out(challenger, study.spec))
        head = (_("why"), _("queries"), _("mean change"), _("adds to the mean"), _("meaning"))
        parts.append(
            f"<h3>{html_safe(draft.against(challenger))}</h3>"
            f"{table(PageTable(head, rows, frozenset((1, 2, 3))))}"
            f"{prose(out, 'muted') if out else ''}"
        )
    return "".join(parts)


def _headroom(draft: Draft) -> str:
    study = draft.study
    drawn = charts.headroom(study)
    if drawn is None:
        return ""
    rows = []
    for challenger in study.challengers:
        split = study.headroom(challenger)
        if split is None or not split.n:
            continue
        # Where reranking did harm, a share of what could be won says nothing.
        won = split.share_won if split.share_won is not None and split.share_won >= 0 else None
        rows.append(
            (
                study.name(challenger),
                *(number(each) for each in (split.baseline, split.won, split.to_win)),
                number(split.retriever),
                number(split.perfect),
                DASH if won is None else percent(won),
                documents(split.own),
            )
        )
    text = _(
        "The best possible mean splits exactly into four: the baseline, what reranking gained, "
        "what a perfect order of the same documents would still gain, and what no reranker can "
        "gain because the documents are not in the system's list."
    )
    text = paragraph([text, *notes(study)])
    head = (
        *(
            _("system"),
            _("baseline"),
            _("realised"),
            _("potential gain left"),
            _("not in its list"),
        ),
        *(_("perfect"), _("potential gain realised"), _("documents reordered")),
    )
    content = PageTable(head, rows, frozenset(range(1, 7)))
    return together(prose(text), draft.chart(drawn)) + as_table(content)
