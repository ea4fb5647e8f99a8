"""Which queries are listed, in which order: every choice is in the address."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from rankdash.core.base.i18n import enumerated, ngettext, number, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.words.queries import outcome_words, state_words
from rankdash.core.words.verdicts import reason_words
from rankdash.features.queries.study import (
    OK,
    OUTCOMES,
    Filters,
    Listing,
    key_of,
    orders,
    value_column,
)
from rankdash.kit.widgets import address, pickers
from rankdash.kit.widgets.text import markdown_safe, shortened

_SHARES = ("0", "0.25", "0.5", "0.75", "1")
_STEPS = 20
_LONGEST_TEXT = 200
# So many pixels show what is chosen.
_NARROWEST = 140

# The page itself, or a part of it.
Place = Any


def draw(
    listing: Listing,
    tags: Mapping[str, tuple[str, ...]],
    depth: str,
    titles: Mapping[str, str],
    others: Mapping[str, str],
) -> tuple[Filters, str, Place]:
    """Draw the filters; what they want, the chosen order, and the line below the filters that says
    of the queries that are left.

    tags: query id → its tags. depth: what judged@k is called. titles: column → what it is called.
    others: the challengers beside the one that is shown → their names.
    """
    row = st.grid(6, min_column_width=_NARROWEST, vertical_alignment="bottom")
    order = _order(listing, row.cell(column_span=2), titles)
    text = pickers.pick_free(
        "text",
        row.text_input,
        lambda typed: (typed or "")[:_LONGEST_TEXT],
        lambda value: value.strip() or None,
        label=_("Text or id"),
        max_chars=_LONGEST_TEXT,
        icon=":material/search:",
    )
    outcomes = _several(
        "outcome", _present(listing, "outcome", OUTCOMES), row, _("Outcome"), outcome_words()
    )
    reasons = _several("reason", _present(listing, "reason"), row, _("Why"), reason_words())
    # Only filters that could leave something out take part.
    options = _segment_options(listing.segments)
    segments = (
        _several("segment", list(options), row, _("Kind of query"), _segment_words(options))
        if options
        else _none("segment")
    )
    every = sorted({tag for assigned in tags.values() for tag in assigned})
    states = _present(listing, "state", (OK,))
    below = st.container(horizontal=True, vertical_alignment="center")
    with below.popover(_("More filters"), icon=":material/tune:", width="content"):
        chosen_states = (
            _several("state", states, st, _("State"), state_words())
            if len(states) > 1
            else _none("state")
        )
        chosen_tags = (
            _several("tag", every, st, _("Tag"), {tag: shortened(tag, 40) for tag in every})
            if every
            else _none("tag")
        )
        axis = Axis.to(listing.highest)
        sides = {
            side: _range(side, _("Value of {system}", system=markdown_safe(titles[side], 80)), axis)
            for side in ("before", "after")
        }
        values = _values(others, axis)
        delta = _range("delta", _("Change"), Axis.to(listing.reach, both_ways=True))
        share = _share(depth)
    filters = Filters(
        outcomes=tuple(outcomes),
        states=tuple(chosen_states),
        reasons=tuple(reasons),
        tags=tuple(chosen_tags),
        segments=_chosen_segments(segments, options),
        **sides,
        values=values,
        delta=delta,
        judged=share,
        text=text,
    )
    return filters, order, below


def _clear() -> None:
    """Forget every filter; the order stays."""
    for name in address.QUERY_FILTERS:
        address.choose(name, None)


def _in_force() -> bool:
    """Whether any filter is."""
    return any(address.several(name) for name in address.QUERY_FILTERS)


def _order(listing: Listing, place: Place, titles: Mapping[str, str]) -> str:
    words = {
        "hurt": _("most hurt first"),
        "helped": _("most helped first"),
        "changed": _("largest change first"),
        "headroom": _("largest potential gain left first"),
        "lowest": _("lowest baseline first"),
        "lowest_after": _("lowest after reranking first"),
        "disagreement": _("rerankers disagree most first"),
        "latency": _("slowest first"),
        "given": _("as in the data"),
    }
    options = orders(listing.valued, address.one("sort") or "")
    for order in options:
        if order not in words:
            column, highest_first = key_of(order)
            named = titles.get(column, titles["query"])
            words[order] = (
                _("{column}, descending", column=named)
                if highest_first
                else _("{column}, ascending", column=named)
            )
    chosen = pickers.pick_one(
        "sort",
        options,
        place.selectbox,
        default="hurt",
        # Another order begins with its first query.
        clears=["q"],
        label=_("Order"),
        help=_(
            "Click the heading of a column to order by it, and again to reverse it. The next and "
            "the previous query follow. Sorting in the menu of a column only changes what you see."
        ),
        format_func=words.__getitem__,
    )
    return chosen or "given"


def _several(
    name: str,
    options: Sequence[str],
    place: Place,
    label: str,
    words: Mapping[str, str],
) -> list[str]:
    return pickers.pick_several(
        name,
        options,
        place.multiselect,
        label=label,
        placeholder=_("all"),
        format_func=lambda value: words.get(value, value),
    )


def _none(name: str) -> list[str]:
    """A filter that has nothing to offer here leaves nothing out, and says what a link wanted."""
    requested = address.several(name)
    address.lose(name, enumerated(requested) if requested else None)
    address.settle(name, None)
    return []


def _present(listing: Listing, column: str, first: Sequence[str] = ()) -> list[str]:
    """The values of a column that occur, in their usual order."""
    occurring = listing.occurring[column]
    rest = [value for value in occurring if value not in first]
    return [*(value for value in first if value in occurring), *rest]


def _segment_options(segments: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, str]]:
    """What stands in the address → column and value."""
    return {
        f"{column}={value}": (column, value)
        for column, values in segments.items()
        for value in values
    }


def _segment_words(options: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    return {
        option: f"{shortened(column, 24)}: {shortened(value, 40)}"
        for option, (column, value) in options.items()
    }


def _chosen_segments(
    chosen: Sequence[str], options: Mapping[str, tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    selected: dict[str, tuple[str, ...]] = {}
    for option in chosen:
        column, value = options[option]
        selected[column] = (*selected.get(column, ()), value)
    return selected


@dataclass(frozen=True)
class Axis:
    """Where a range can be put, and how the address says it."""

    whole: tuple[float, float]
    step: float
    digits: int

    @classmethod
    def to(cls, reach: float, *, both_ways: bool = False) -> Axis:
        """From 0, or from -reach, to reach."""
        parts = 5 if both_ways else 50
        step = 10 ** math.floor(math.log10(reach / parts)) if reach > 0 else 0.1
        end = max(math.ceil(round(reach / step, 6)) * step, step)
        digits = max(0, -math.floor(math.log10(step)))
        return cls((-round(end, digits) if both_ways else 0.0, round(end, digits)), step, digits)

    def read(self, text: str | None) -> tuple[float, float]:
        try:
            low, high = (float(part) for part in (text or "").split(".."))
        except ValueError:
            return self.whole
        if not low <= high:
            return self.whole
        return max(low, self.whole[0]), min(high, self.whole[1])

    def write(self, value: tuple[float, float]) -> str | None:
        low, high = value
        return None if value == self.whole else f"{low:g}..{high:g}"

    @property
    def slider(self) -> dict[str, Any]:
        return {
            "min_value": self.whole[0],
            "max_value": self.whole[1],
            "step": self.step,
            "format": f"%.{self.digits}f",
            "help": _("Queries without a comparison are hidden as soon as a filter is set."),
        }


def _range(field: str, label: str, axis: Axis) -> tuple[float, float] | None:
    """The range of values that is wanted; None for all of them."""
    chosen = pickers.pick_free(field, st.slider, axis.read, axis.write, label=label, **axis.slider)
    return None if chosen == axis.whole else chosen


def _values(others: Mapping[str, str], axis: Axis) -> dict[str, tuple[float, float]]:
    """Column → the range that is wanted of it, of the systems beside those that are shown. The
    address holds "system=low..high" for each."""
    texts = dict(each.rpartition("=")[::2] for each in address.several("values"))
    ranges = {
        system: value for system in others if (value := axis.read(texts.get(system))) != axis.whole
    }
    lost = [each for each in address.several("values") if each.rpartition("=")[0] not in ranges]
    address.lose("values", enumerated(lost) if lost else None)

    def changed(system: str, key: str) -> None:
        chosen = {**ranges, system: st.session_state[key]}
        written = {each: axis.write(value) for each, value in chosen.items()}
        entries = [f"{each}={text}" for each, text in written.items() if text]
        address.choose("values", entries or None)

    for system, name in others.items():
        key = f"address.values.{system}"
        pickers.show(st.slider, key, ranges.get(system, axis.whole), partial(changed, system, key))(
            label=_("Value of {system}", system=markdown_safe(name, 80)), **axis.slider
        )
    address.settle("values", [f"{each}={axis.write(ranges[each])}" for each in ranges] or None)
    return {value_column(system): value for system, value in ranges.items()}


def _share(depth: str) -> float:
    chosen = pickers.pick_one(
        "share",
        _SHARES,
        st.segmented_control,
        default="0",
        label=_("{metric} on both sides at least", metric=depth),
        format_func=lambda value: _("any") if value == "0" else percent(float(value)),
        required=True,
    )
    if chosen == "0":
        address.settle("share", None)
    return float(chosen or 0)


def left_line(matching: int, total: int) -> None:
    """How many queries the filters leave, and the way back to all of them, side by side in a
    horizontal container."""
    st.caption(
        ngettext(
            "{kept} of {n} query listed",
            "{kept} of {n} queries listed",
            total,
            kept=number(matching, 0),
        ),
        width="content",
    )
    if _in_force():
        st.button(
            _("Clear filters"),
            icon=":material/filter_alt_off:",
            type="tertiary",
            on_click=_clear,
        )
