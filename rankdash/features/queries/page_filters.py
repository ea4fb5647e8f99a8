"""Filters and order of the list of queries; every choice is in the address."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from rankdash.core.base.i18n import enumerated, ngettext, number, percent, plain
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study.reasons.reasons import FAULTS
from rankdash.core.study.study import Study
from rankdash.core.words.queries import outcome_words, state_words
from rankdash.core.words.verdicts import reason_words
from rankdash.features.queries.filters import OK, OUTCOMES, Filters, key_of, orders
from rankdash.features.queries.study import Listing, value_column
from rankdash.features.queries.words import fault_words
from rankdash.kit.drawing import style
from rankdash.kit.widgets import address, pickers
from rankdash.kit.widgets.component import component
from rankdash.kit.widgets.text import markdown_safe, shortened

_SHARES = ("0", "0.25", "0.5", "0.75", "1")
_STEPS = 20
_LONGEST_TEXT = 200
# Pixels.
_SEARCH, _SORT = 160, 200
_TALLY = component(Path(__file__).with_name("query_tally"))
_COLOURS = dict(zip(OUTCOMES, (style.BETTER, style.FIRST_STAGE, style.WORSE), strict=True))
# The fields of the address that are filters in the menu.
_FOLDED = tuple(name for name in address.QUERY_FILTERS if name != "text")


def tally(study: Study, listing: Listing) -> None:
    """Draw the number of queries as stacked bars: by direction of change, and by the cause of the
    loss against a perfect ranking.

    A click on a part of a bar filters the list by it; a second click removes that filter.
    """
    band = f" (±{plain(study.statistics.tie_band)})"
    words = {
        "outcome": {**outcome_words(), "same": outcome_words()["same"] + band},
        "fault": _fault_words(),
    }
    titles = {"outcome": _p("field", "Change"), "fault": _p("field", "Fault")}
    if {*listing.occurring.get("fault", ())} - {"none"}:
        # All of them, whether the reranker helped or hurt.
        imperfect = int(listing.table["fault"].isin(FAULTS[:-1]).sum())
        titles["fault"] = ngettext(
            "{n} query not perfect, due to", "{n} queries not perfect, due to", imperfect
        )
    orders: dict[str, Sequence[str]] = {"outcome": OUTCOMES, "fault": FAULTS}
    bars: list[dict[str, Any]] = [
        {
            "field": field,
            "title": titles[field],
            "parts": [
                {
                    "value": value,
                    "word": words[field][value],
                    "count": number(count, 0),
                    "size": count,
                    "colour": _COLOURS.get(value),
                    "chosen": value in address.several(field),
                }
                for value in _present(listing, field, order)
                if (count := int((listing.table[field] == value).sum()))
            ],
        }
        for field, order in orders.items()
        if field in listing.occurring
    ]
    parts = [(bar["field"], part["value"]) for bar in bars for part in bar["parts"]]

    def heard(event: Any) -> None:
        for field, value in parts:
            if event == {"field": field, "value": value}:
                address.choose(field, None if address.several(field) == [value] else [value])

    _TALLY("queries.tally", {"bars": bars}, heard)


def _fault_words() -> dict[str, str]:
    """Return code of a `Fault` → a word for queries with it."""
    return {**fault_words(), "none": _p("fault", "perfect")}


def draw(
    listing: Listing,
    tags: Mapping[str, tuple[str, ...]],
    depth: str,
    titles: Mapping[str, str],
    others: Mapping[str, str],
) -> tuple[Filters, str]:
    """Draw the filters into a horizontal container; return the filters and the chosen order.

    tags: query id → its tags. depth: the name of judged@k. titles: column → its title. others:
        challengers other than the system shown → their names.
    """
    text = pickers.pick_free(
        "text",
        st.text_input,
        lambda typed: (typed or "")[:_LONGEST_TEXT],
        lambda value: value.strip() or None,
        label=_("Text or id"),
        label_visibility="collapsed",
        placeholder=_("Text or id"),
        max_chars=_LONGEST_TEXT,
        icon=":material/search:",
        width=_SEARCH,
    )
    order = _order(listing, titles)
    active = sum(bool(address.several(name)) for name in _FOLDED)
    label = _("Filters ({n})", n=number(active, 0)) if active else _p("button", "Filters")
    with st.popover(label, icon=":material/tune:", width="content", key="queries.filters"):
        filters = _folded(listing, tags, depth, titles, others)
    if any(address.several(name) for name in address.QUERY_FILTERS):
        st.button(
            _("Clear filters"),
            icon=":material/filter_alt_off:",
            type="tertiary",
            on_click=_clear,
        )
    return replace(filters, text=text), order


def _folded(
    listing: Listing,
    tags: Mapping[str, tuple[str, ...]],
    depth: str,
    titles: Mapping[str, str],
    others: Mapping[str, str],
) -> Filters:
    """Draw the menu of filters and return its filters. Filters without options are omitted."""
    options = _segment_options(listing.segments)
    every = sorted(tags_in(tags))
    outcomes = _several(
        "outcome", _present(listing, "outcome", OUTCOMES), _p("field", "Outcome"), outcome_words()
    )
    reasons = _several("reason", _present(listing, "reason"), _p("field", "Reason"), reason_words())
    faults = _several(
        "fault", _present(listing, "fault", FAULTS), _p("field", "Fault"), _fault_words()
    )
    segments = _several("segment", list(options), _("Kind of query"), _segment_words(options))
    states = _several(
        "state", _present(listing, "state", (OK,)), _p("field", "State"), state_words(), least=2
    )
    chosen_tags = _several(
        "tag", every, _p("field", "Tag"), {tag: shortened(tag, 40) for tag in every}
    )
    axis = Axis.to(listing.highest)
    sides = {
        side: _range(
            side, _("Metric value of {system}", system=markdown_safe(titles[side], 80)), axis
        )
        for side in ("before", "after")
    }
    return Filters(
        outcomes=tuple(outcomes),
        states=tuple(states),
        reasons=tuple(reasons),
        faults=tuple(faults),
        tags=tuple(chosen_tags),
        segments=_chosen_segments(segments, options),
        before=sides["before"],
        after=sides["after"],
        values=_values(others, axis),
        delta=_range("delta", _p("field", "Change"), Axis.to(listing.reach, both_ways=True)),
        judged=_share(depth),
    )


def tags_in(tags: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the tags that a filter offers. tags: query id → its tags."""
    return {tag for assigned in tags.values() for tag in assigned}


def _clear() -> None:
    """Remove every filter; the order stays."""
    for name in address.QUERY_FILTERS:
        address.choose(name, None)


def _order(listing: Listing, titles: Mapping[str, str]) -> str:
    words = {
        "hurt": _("most hurt first"),
        "helped": _("most helped first"),
        "changed": _("largest change first"),
        "headroom": _("largest potential gain left first"),
        "lowest": _("lowest baseline value first"),
        "lowest_after": _("lowest value after reranking first"),
        "disagreement": _("largest disagreement of rerankers first"),
        "latency": _("slowest first"),
        "given": _("as in the data"),
    }
    options = orders(listing.valued, address.one("sort") or "")
    for order in options:
        if order not in words:
            column, highest_first = key_of(order)
            named = titles[column]
            words[order] = (
                _("{column}, descending", column=named)
                if highest_first
                else _("{column}, ascending", column=named)
            )
    chosen = pickers.pick_one(
        "sort",
        options,
        st.selectbox,
        default="hurt",
        # Another order opens its first query.
        clears=["q"],
        label=_p("field", "Order"),
        label_visibility="collapsed",
        width=_SORT,
        format_func=words.__getitem__,
    )
    return chosen or "given"


def _several(
    name: str, options: Sequence[str], label: str, words: Mapping[str, str], least: int = 1
) -> list[str]:
    """Draw a filter with several values and return the chosen ones.

    least: minimum number of options; with fewer, no filter is drawn, and values from a link are
    reported as lost.
    """
    if len(options) < least:
        requested = address.several(name)
        address.lose(name, enumerated(requested) if requested else None)
        address.set_default(name, None)
        return []
    return pickers.pick_several(
        name,
        options,
        st.multiselect,
        label=label,
        placeholder=_p("choice", "all"),
        format_func=lambda value: words.get(value, value),
    )


def _present(listing: Listing, column: str, first: Sequence[str] = ()) -> list[str]:
    """Return the values that occur in a column: those in `first` in this order, then the others."""
    occurring = listing.occurring.get(column, ())
    rest = [value for value in occurring if value not in first]
    return [*(value for value in first if value in occurring), *rest]


def _segment_options(segments: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, str]]:
    """Return the text in the address → column and value."""
    return {
        f"{column}={value}": (column, value)
        for column, values in segments.items()
        for value in values
    }


def _segment_words(options: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    return {
        option: _("{part}: {value}", part=shortened(column, 24), value=shortened(value, 40))
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
    """The ends of a range slider, and their format in the address."""

    whole: tuple[float, float]
    step: float
    digits: int

    @classmethod
    def to(cls, reach: float, *, both_ways: bool = False) -> Axis:
        """Return the axis from 0, or from -reach, to reach."""
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
            "help": _("If this filter is set, queries without a comparison are hidden."),
        }


def _range(field: str, label: str, axis: Axis) -> tuple[float, float] | None:
    """Return the chosen range of values; None for all of them."""
    chosen = pickers.pick_free(field, st.slider, axis.read, axis.write, label=label, **axis.slider)
    return None if chosen == axis.whole else chosen


def _values(others: Mapping[str, str], axis: Axis) -> dict[str, tuple[float, float]]:
    """Draw a slider of metric values for each system in `others`, and return column → chosen range.

    others: id → name of the systems that are compared but not shown. Ranges that include all values
    are omitted. In the address, each range is one "system=low..high".
    """
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
            label=_("Metric value of {system}", system=markdown_safe(name, 80)), **axis.slider
        )
    address.set_default("values", [f"{each}={axis.write(ranges[each])}" for each in ranges] or None)
    return {value_column(system): value for system, value in ranges.items()}


def _share(depth: str) -> float:
    chosen = pickers.pick_one(
        "share",
        _SHARES,
        st.segmented_control,
        default="0",
        label=_("Minimum {metric} in both systems", metric=depth),
        format_func=lambda value: _p("choice", "any") if value == "0" else percent(float(value)),
        required=True,
    )
    if chosen == "0":
        address.set_default("share", None)
    return float(chosen or 0)
