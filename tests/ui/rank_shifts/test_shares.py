"""What is typed and written on rank shifts, at the ends of what it may be."""

from types import SimpleNamespace

import pytest

from rankdash.ui.rank_shifts import shifts_view, skipping_view


@pytest.mark.parametrize(
    ("typed", "amount"),
    [("0", 0.0), ("1.5", 1.5), ("1e9", 1e9), ("1000000001", None), ("-0.01", None),
     ("nan", None), ("inf", None), ("words", None), ("", None), (None, None)],
)  # fmt: skip
def test_a_price_is_from_nothing_to_a_thousand_million(typed, amount):
    assert skipping_view._amount(typed) == amount


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0%"), (0.004, "0.4%"), (0.094, "9.4%"), (0.095, "10%"), (0.5, "50%"),
     (0.905, "91%"), (0.906, "90.6%"), (0.999, "99.9%"), (1.0, "100%")],
)  # fmt: skip
def test_a_share_that_is_not_all_or_nothing_is_not_written_as_such(share, said):
    written = shifts_view.share(share)
    assert written == said or (share in (0.095, 0.905) and "." not in written)


@pytest.mark.parametrize(("cutoff", "depth"), [(3, 3), (None, 10)])
def test_margins_and_flows_are_at_the_cutoff_or_at_ten(cutoff, depth):
    assert shifts_view.depth(SimpleNamespace(cutoff=cutoff)) == depth
    assert skipping_view.margin_words(depth)["edge"] == f"gap between ranks {depth} and {depth + 1}"
    assert skipping_view.margin_words(depth)["first"] == "gap between ranks 1 and 2"


def way(**changes: int) -> SimpleNamespace:
    usual = {"total": 9, "before": 4, "after": 5, "k": 3, "entered": 2, "left": 1, "stayed": 3}
    return SimpleNamespace(**(usual | {"unranked": 0} | changes))


def test_where_relevant_documents_went_is_said_in_numbers_of_their_own():
    said = shifts_view._in_words(way())
    assert said == (
        "Of 9 relevant documents, **4** were in the top 3 before and **5** are after. 2 came in, "
        "1 dropped out, 3 stayed."
    )
    assert shifts_view._in_words(way(total=0)) == (
        "The labels name no relevant document, so all documents are counted."
    )
    lost = shifts_view._in_words(way(unranked=1))
    assert lost.endswith("1 was retrieved by neither ranking, so no reranker can bring it back.")
