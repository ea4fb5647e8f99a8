"""Changes in tables: zero, also after rounding, has no sign."""

import io

import pandas as pd
import pyarrow as pa
from streamlit.testing.v1 import AppTest

from rankdash.kit.widgets.text import rounded, signed_cells

VALUES = [0.0, -0.0, 0.0004, -0.0004, 0.0006, -0.0006, 0.12, float("nan")]
WORDS = ["0.000"] * 4 + ["+0.001", "-0.001", "+0.120", "–"]


def page() -> None:
    import pandas as pd
    import streamlit as st

    from rankdash.kit.widgets.text import signed_cells
    from tests.ui.test_signed_cells import VALUES

    # Equal row names, as in a filtered table.
    frame = pd.DataFrame({"change": VALUES, "name": None}, index=[7] * len(VALUES))
    st.dataframe(signed_cells(frame, {"change": 3}))


def test_a_table_shows_signs_and_still_holds_the_numbers():
    drawn = AppTest.from_function(page).run().dataframe[0]
    with pa.ipc.open_stream(io.BytesIO(drawn.proto.arrow_data.styler.display_values)) as stream:
        shown = stream.read_pandas()
    assert list(shown["change"]) == WORDS
    assert set(shown["name"]) == {"–"}
    pd.testing.assert_series_equal(
        drawn.value["change"], pd.Series(VALUES, name="change"), check_index=False
    )


def test_latencies_are_written_with_three_digits_and_stay_numbers():
    values = [0.00784, 0.841, 84.04, 12345.6, float("nan")]
    styled = signed_cells(pd.DataFrame({"p95": values}), {}, times=("p95",))
    written = styled._display_funcs
    assert [written[row, 0](value) for row, value in enumerate(values)] == [
        "0.0078", "0.84", "84", "12,346", "–"
    ]  # fmt: skip
    assert styled.data["p95"].tolist()[:4] == values[:4]


def test_a_change_in_a_long_table_that_rounds_to_nothing_has_no_minus():
    assert {f"{each:.3f}" for each in rounded(pd.Series(VALUES[:4]), 3)} == {"0.000"}
