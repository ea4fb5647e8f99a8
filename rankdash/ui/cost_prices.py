"""Which price belongs to which system, and a person's own price list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pandas as pd
import streamlit as st
from babel.lists import format_list

from rankdash.errors import RankdashError
from rankdash.i18n import error_text, language, number, percent
from rankdash.i18n import gettext as _
from rankdash.reporting.money import money
from rankdash.runs.concurrency import within_target
from rankdash.ui import address
from rankdash.ui.cost_services import Waiting
from rankdash.ui.frame import View
from rankdash.ui.server import workspace
from rankdash.ui.text import markdown_safe
from rankdash.value.billing import UNITS, Price
from rankdash.value.price_list import STALE_DAYS, ListedPrice, parse_prices, shipped, to_json

_SAVED = "prices"
_UPLOAD = "cost.prices.upload"
_LARGEST_FILE = 1_000_000
_OWN = "own"
_MACHINE = "own-gpu"
# Kinds that run on a machine of one's own; all others are paid by the call.
_LOCAL = ("bm25", "bi-encoder", "cross-encoder", "late-interaction", "fusion", "cascade")

address.FIELDS.setdefault("price", None)
address.FIELDS.setdefault("also", None)


def listed() -> dict[str, ListedPrice]:
    """key → price: one's own list where one was saved, else the shipped examples."""
    text = workspace().setting(_SAVED)
    if not text:
        return {each.key: each for each in shipped()}
    try:
        return {each.key: each for each in parse_prices(text.encode(), _("saved prices"))}
    except RankdashError as error:
        st.warning(markdown_safe(error_text(error), 300), icon=":material/warning:")
        return {each.key: each for each in shipped()}


def choose(view: View, prices: dict[str, ListedPrice]) -> tuple[dict[str, str], list[str]]:
    """Draw the choice of a price for each challenger and of prices to show beside them.

    Returns challenger → key of its price, and the keys of the others.
    """
    found = {}
    for system in view.challengers:
        key = f"cost.price.{system}"
        st.session_state[key] = chosen(view, system, prices)

        def changed(system: str = system, key: str = key) -> None:
            address.choose(
                "price",
                [
                    f"{each}={value}"
                    for each, value in (_typed() | {system: st.session_state[key]}).items()
                ],
            )
            address.publish()

        found[system] = st.selectbox(
            _("Price of {name}", name=markdown_safe(view.name(system), 40)),
            list(prices),
            format_func=lambda name: words(prices[name]),
            key=key,
            on_change=changed,
        )
    others = address.pick_several(
        "also",
        list(prices),
        st.multiselect,
        label=_("Other prices beside them"),
        placeholder=_("none"),
        format_func=lambda name: words(prices[name]),
    )
    return found, others


def chosen(view: View, system: str, prices: dict[str, ListedPrice]) -> str:
    """Key of the price that belongs to a system: as the address says, else by its kind."""
    key = _typed().get(system, "")
    return key if key in prices else _default(view, system, prices)


def _typed() -> dict[str, str]:
    return dict(part.split("=", 1) for part in address.several("price") if "=" in part)


def title(each: ListedPrice) -> str:
    """Whose price for which model; as it was typed, not safe for Markdown."""
    return " ".join(
        part for part in (_(each.provider), _(each.model) if each.model else "") if part
    )


def rate(price: Price) -> str:
    """How much for what, as short as it goes."""
    amount = money(price.amount, price.currency)
    return {
        "search": _("{amount}/1,000 units", amount=amount),
        "tokens": _("{amount}/M tokens", amount=amount),
        "template": _("{amount}/M tokens with prompt", amount=amount),
        "hour": _("{amount}/hour", amount=amount),
    }[price.unit]


def words(each: ListedPrice) -> str:
    """The price in a line: who, which, how much for what."""
    return f"{title(each)}: {rate(each.price)}"


def marks(each: ListedPrice, estimated: bool, measured: bool) -> list[str]:
    """In a word or two each, what makes the price, or what is paid for, less than sure."""
    said = []
    if each in shipped():
        said.append(_("example price"))
    if each.stale(datetime.now(UTC).date()):
        said.append(_("old price"))
    if estimated and each.price.unit != "hour":
        said.append(_("tokens estimated"))
    if each.price.unit == "hour" and not measured:
        said.append(_("speed not measured"))
    return said


def joined(parts: Sequence[str]) -> str:
    """ "a, b and c" in the reader's language."""
    return str(format_list(list(parts), locale=language()))


def with_measured_rate(price: Price, waiting: Waiting, target_ms: float) -> tuple[Price, bool]:
    """A price by the hour with the throughput that the run measured within the latency target;
    and whether it measured one."""
    level = within_target(waiting.levels, target_ms) if price.unit == "hour" else None
    if level is None:
        return price, False
    return replace(price, searches_per_second=level.queries_per_second), True


def notes(each: ListedPrice, measured: bool) -> list[str]:
    """What one has to know of a price: where it is from, how old, what an hour serves."""
    said = [_("{source}, {day}", source=_(each.source), day=each.as_of.isoformat())]
    if each.stale(datetime.now(UTC).date()):
        said.append(_("⚠ read more than {n} days ago: check it", n=number(STALE_DAYS, 0)))
    if each.price.unit == "hour":
        said.append(
            _("at the searches per second measured with this run")
            if measured
            else _(
                "at {n} searches per second and {share} use, as the price list says; not measured "
                "with this run",
                n=number(each.price.searches_per_second, 1),
                share=percent(each.price.utilisation),
            )
        )
    return said


def _default(view: View, system: str, prices: dict[str, ListedPrice]) -> str:
    run = view.systems[system].run
    kind = run.reranker if run is not None else ""
    wanted = _MACHINE if kind in _LOCAL else _OWN
    return wanted if wanted in prices else next(iter(prices))


def edit(prices: dict[str, ListedPrice]) -> None:
    """The list as a table that can be edited, exported, imported, and put back."""
    edited = st.data_editor(
        pd.DataFrame([_row(each) for each in prices.values()]),
        num_rows="dynamic",
        hide_index=True,
        key="cost.prices.table",
        # What a person came to change stands first.
        column_order=(
            "provider", "model", "amount", "currency", "unit", "source", "as_of",
            "template_tokens", "chunk_tokens", "searches_per_second", "utilisation", "key",
        ),
        column_config={
            "key": st.column_config.TextColumn(_("key"), required=True),
            "provider": st.column_config.TextColumn(_("provider"), required=True),
            "model": st.column_config.TextColumn(_("model")),
            "unit": st.column_config.SelectboxColumn(
                _("unit"), options=list(UNITS), required=True, help="; ".join(
                    f"{name}: {_(meaning)}" for name, meaning in UNITS.items()
                ),
            ),
            "amount": st.column_config.NumberColumn(_("amount"), min_value=0.0, required=True),
            "currency": st.column_config.TextColumn(_("currency"), max_chars=3),
            "template_tokens": st.column_config.NumberColumn(_("template tokens"), min_value=0.0),
            "chunk_tokens": st.column_config.NumberColumn(_("longest chunk, tokens"), min_value=0),
            "searches_per_second": st.column_config.NumberColumn(_("searches per second")),
            "utilisation": st.column_config.NumberColumn(
                _("use"), min_value=0.0, max_value=1.0, format="percent"
            ),
            "source": st.column_config.TextColumn(_("read where"), required=True),
            "as_of": st.column_config.DateColumn(_("read when"), required=True),
        },
    )  # fmt: skip
    save, export, back = st.columns(3)
    if save.button(_("Save"), type="primary", key="cost.prices.save", width="stretch"):
        rows = [_entry(row) for row in edited.to_dict("records")]
        _keep(json.dumps({"prices": rows}).encode(), _("the table"))
    export.download_button(
        _("Export"),
        to_json(list(prices.values())),
        "prices.json",
        "application/json",
        icon=":material/download:",
        width="stretch",
    )
    back.button(
        _("Back to the shipped ones"),
        key="cost.prices.reset",
        width="stretch",
        on_click=lambda: workspace().set_setting(_SAVED, ""),
    )
    given = st.file_uploader(
        _("Import a price list (TOML or JSON)"), type=["toml", "json"], key=_UPLOAD
    )
    if given is not None and st.button(_("Import"), key="cost.prices.import"):
        if given.size > _LARGEST_FILE:
            st.error(_("The file is larger than a price list can be."), icon=":material/error:")
            return
        _keep(given.getvalue(), given.name)


def _keep(content: bytes, file: str) -> None:
    try:
        workspace().set_setting(_SAVED, to_json(parse_prices(content, file)))
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 400), icon=":material/error:")
    else:
        st.rerun()


def _row(each: ListedPrice) -> dict[str, Any]:
    price = each.price
    return {
        "key": each.key,
        "provider": each.provider,
        "model": each.model,
        "unit": price.unit,
        "amount": price.amount,
        "currency": price.currency,
        "template_tokens": price.template_tokens,
        "chunk_tokens": price.chunk_tokens,
        "searches_per_second": price.searches_per_second,
        "utilisation": price.utilisation,
        "source": each.source,
        "as_of": each.as_of,
    }


def _entry(row: dict[Any, Any]) -> dict[str, object]:
    """A row of the table as an entry of a list; empty cells are left out."""
    entry: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, date):
            entry[str(name)] = value.isoformat()[:10]
        elif value is not None and value == value:
            entry[str(name)] = value
    return entry
