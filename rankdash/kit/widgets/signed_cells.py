"""Changes in a table: with a sign, and none where they round to 0; latencies with three digits.

No format of a number column can do that: "%+.3f" writes +0.000, "%.3g" 12300 for 12,345. So the
words of a short table are written here, and the browser still sorts by the numbers. A long table,
which would take too long to write, goes without the plus.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from rankdash.core.base.i18n import brief, signed


def signed_cells(
    frame: pd.DataFrame, digits: Mapping[str, int], times: Collection[str] = ()
) -> Styler:
    """The table with its changes and latencies written out. digits: column of changes → decimals.
    times: columns of milliseconds.

    Those columns must have no format in their configuration, which would win; other columns of
    decimals must have one.
    """
    written: dict[Any, Any] = {
        **{column: partial(signed, digits=places) for column, places in digits.items()},
        **dict.fromkeys(times, brief),
    }
    return frame.reset_index(drop=True).style.format(written, na_rep="–")


def rounded(changes: pd.Series, digits: int) -> pd.Series:
    """Changes for a column of a long table, formatted as "%.3f": what rounds to 0 has no minus."""
    return changes.round(digits) + 0.0
