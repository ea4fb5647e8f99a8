"""Which price belongs to which system, and a person's own price list."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.errors import RankdashError
from rankdash.i18n import error_text
from rankdash.i18n import gettext as _
from rankdash.study.study import Study
from rankdash.ui.state import address, pickers
from rankdash.ui.state.scenario import SAVED_PRICES, chosen_prices, price_keys
from rankdash.ui.state.server import read_only, workspace
from rankdash.ui.widgets.text import markdown_safe
from rankdash.value.billing import UNITS
from rankdash.value.price_list import ListedPrice, parse_prices, to_json
from rankdash.words.prices import words

_UPLOAD = "cost.prices.upload"
_LARGEST_FILE = 1_000_000


def choose(study: Study, prices: dict[str, ListedPrice]) -> None:
    """Draw the choice of a price for each challenger and of prices to show beside them."""
    typed, keys = chosen_prices(), price_keys(study, prices)
    unknown = [
        typed[system] for system in study.challengers if typed.get(system, "") not in {"", *prices}
    ]
    address.lose("price", ", ".join(unknown) if unknown else None)
    for system in study.challengers:
        key, options = f"cost.price.{system}", list(prices)

        def changed(system: str = system, key: str = key) -> None:
            address.choose(
                "price",
                [
                    f"{each}={value}"
                    for each, value in (chosen_prices() | {system: st.session_state[key]}).items()
                ],
            )

        price = keys[system]
        pickers.show(st.selectbox, key, price, changed, options)(
            _("Price of {name}", name=markdown_safe(study.name(system), 40)),
            options,
            format_func=lambda name: words(prices[name]),
        )
    pickers.pick_several(
        "also",
        list(prices),
        st.multiselect,
        label=_("Other prices beside them"),
        placeholder=_("none"),
        format_func=lambda name: words(prices[name]),
    )


def edit(prices: dict[str, ListedPrice]) -> None:
    """The list as a table that can be edited, exported, imported, and put back; of a workspace that
    is only shown, exported."""
    if read_only():
        st.dataframe(pd.DataFrame([_row(each) for each in prices.values()]), hide_index=True)
        _export(prices)
        return
    edited = st.data_editor(
        pd.DataFrame([_row(each) for each in prices.values()]),
        num_rows="dynamic",
        hide_index=True,
        placeholder="–",
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
    with export:
        _export(prices)
    if save.button(_("Save"), type="primary", key="cost.prices.save", width="stretch"):
        rows = [_entry(row) for row in edited.to_dict("records")]
        _keep(json.dumps({"prices": rows}).encode(), _("the table"))
    back.button(
        _("Back to the shipped ones"),
        key="cost.prices.reset",
        width="stretch",
        on_click=lambda: workspace().set_setting(SAVED_PRICES, ""),
    )
    given = st.file_uploader(
        _("Import a price list (TOML or JSON)"), type=["toml", "json"], key=_UPLOAD
    )
    if given is not None and st.button(_("Import"), key="cost.prices.import"):
        if given.size > _LARGEST_FILE:
            st.error(_("The file is larger than a price list can be."), icon=":material/error:")
            return
        _keep(given.getvalue(), given.name)


def _export(prices: dict[str, ListedPrice]) -> None:
    st.download_button(
        _("Export"),
        to_json(list(prices.values())),
        "prices.json",
        "application/json",
        icon=":material/download:",
        width="stretch",
    )


def _keep(content: bytes, file: str) -> None:
    try:
        workspace().set_setting(SAVED_PRICES, to_json(parse_prices(content, file)))
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
