"""Amazon's shopping queries: which tables are such, and what becomes of ids and texts."""

import pytest

from rankdash.readers import ReadLimits, Source
from rankdash.readers.formats import delimited, esci


def prepared(**files: str):
    """name → CSV text in; name → (columns, rows, codes of findings) out."""
    tables = [
        (delimited.read(text, ",", name, ReadLimits()), Source(name, b""))
        for name, text in files.items()
    ]
    return {
        source.name: (table.columns, table.frame.to_numpy().tolist(), table.format)
        for table, source in esci.prepare(tables)
    }


EXAMPLES = "example_id,query,product_id,product_locale,esci_label\n1,fan,B1,us,E\n"
PRODUCTS = "product_id,product_title,product_brand,product_description,product_locale\n"


def test_a_product_of_one_locale_keeps_its_id_and_loses_the_locale():
    found = prepared(examples=EXAMPLES, products=PRODUCTS + "B1,Fan,Dyson,strong,us\n")
    columns, rows, kind = found["examples"]
    assert columns == ["query", "product_id", "product_locale", "esci_label"]
    assert (rows, kind) == ([["fan", "B1", "us", "E"]], "ESCI, CSV")
    columns, rows, _ = found["products"]
    assert columns == ["product_id", "product_title", "document"]
    assert rows == [["B1", "Fan", "strong\nDyson"]]


@pytest.mark.parametrize("other", ["B2,Fan,Dyson,strong,es\n", "B1,Fan,Dyson,strong,us\n"])
def test_other_ids_in_another_locale_or_a_row_twice_change_no_id(other):
    found = prepared(examples=EXAMPLES, products=PRODUCTS + "B1,Fan,Dyson,strong,us\n" + other)
    assert found["examples"][1][0][1] == "B1"


def test_one_id_in_two_locales_of_one_file_changes_the_ids_of_all_files():
    products = PRODUCTS + "B1,Fan,,,us\nB1,Ventilador,,,es\nB2,Neither,,,\n"
    found = prepared(examples=EXAMPLES, products=products, others="query,words\na,b\n")
    assert found["examples"][1] == [["fan", "B1_us", "us", "E"]]
    assert [row[0] for row in found["products"][1]] == ["B1_us", "B1_es", "B2_"]
    assert found["others"] == (["query", "words"], [["a", "b"]], "CSV")


@pytest.mark.parametrize("header", ["product_id,query", "query,product_locale"])
def test_without_an_id_and_a_locale_it_is_no_such_table(header):
    assert prepared(x=f"{header}\na,b\n")["x"] == (header.split(","), [["a", "b"]], "CSV")
