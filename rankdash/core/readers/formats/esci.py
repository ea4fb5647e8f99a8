"""Amazon's shopping queries data set (ESCI): examples and products.

examples: example_id, query, query_id, product_id, product_locale, esci_label, small_version,
          large_version, split.
products: product_id, product_title, product_description, product_bullet_point, product_brand,
          product_color, product_locale.

A product is known by its id and its locale. The locale of the queries becomes a segment. The
labels are words (E, S, C, I); a person may give them the gains of the task in place of grades, see
`values.WORD_GAINS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.readers.join.parsed_file import joined_texts
from rankdash.core.readers.parse.columns import plain
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table

NAME = "ESCI"
_DROPPED = ("exampleid", "smallversion", "largeversion", "column1", "unnamed0")
# What a product says of itself, in this order.
_TEXTS = ("productdescription", "productbulletpoint", "productbrand", "productcolor")


def prepare(tables: Sequence[tuple[Table, Source]]) -> list[tuple[Table, Source]]:
    shopping = {
        table.file: names
        for table, _ in tables
        if {"productid", "productlocale"} <= (names := _names(table)).keys()
    }
    if not shopping:
        return list(tables)
    several = any(
        _in_several_locales(table.frame, shopping[table.file])
        for table, _ in tables
        if table.file in shopping
    )
    return [
        (_prepared(table, shopping[table.file], several), source)
        if table.file in shopping
        else (table, source)
        for table, source in tables
    ]


def _names(table: Table) -> dict[str, str]:
    if not table.names or table.fields is not None:
        return {}
    return {plain(column): column for column in reversed(table.columns)}


def _in_several_locales(frame: pd.DataFrame, names: dict[str, str]) -> bool:
    pairs = frame[[names["productid"], names["productlocale"]]].drop_duplicates()
    return bool(pairs.iloc[:, 0].duplicated().any())


def _prepared(table: Table, names: dict[str, str], several: bool) -> Table:
    frame, findings = table.frame, table.findings
    identity, locale = names["productid"], names["productlocale"]
    products = "producttitle" in names and "query" not in names
    if several:
        told = frame[identity].notna() & frame[locale].notna()
        frame = frame.assign(
            **{identity: frame[identity].where(~told, frame[identity] + "_" + frame[locale])}
        )
        findings = (*findings, _several(table.file))
    if products:
        texts = [names[name] for name in _TEXTS if name in names]
        document = joined_texts(frame[texts])
        frame = frame.drop(columns=texts)
        frame["document"] = document
        frame = frame.drop(columns=locale)
    dropped = [names[name] for name in _DROPPED if name in names]
    return replace(
        table,
        format=f"{NAME}, {table.format}",
        cells=frame.drop(columns=dropped),
        findings=findings,
    )


def _several(file: str) -> Finding:
    return Finding(
        "note",
        "ids_with_locale",
        "Products with one id are other products in other locales, so the locale is added to the "
        "id, as in B000MOO21W_us.",
        file=file,
    )
