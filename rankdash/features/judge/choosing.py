"""Several judges on the same people's queries: which of them saves most."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from rankdash.features.judge.agreement import JudgeAgreement
from rankdash.features.judge.bias_corrected import Corrected

_COLUMNS = (
    *("judge", "pairs", "kappa", "kappa_low", "kappa_high"),
    *("quadratic", "quadratic_low", "quadratic_high", "over", "under"),
    *("people_queries", "others", "alone", "corrected", "low", "high"),
    *("people_error", "error", "worth", "saved"),
)


def ranked_judges(judges: Mapping[str, tuple[Corrected, JudgeAgreement]]) -> pd.DataFrame:
    """One row for each judge, that which makes the change most certain first.

    judges: name → its correction of one comparison and its agreement with people.

    Columns: judge; pairs that people graded too; kappa and quadratic with their 95 % intervals;
    over, under: the shares of pairs graded higher, or lower, than people do; people_queries: those
    with a value; others: queries that only the judge has; alone: the change by the judge alone;
    corrected, low, high; people_error and error: the standard errors without the judge and with it;
    worth, saved: as `Corrected` has them. NaN where there is no number.

    A judge with a higher kappa may save less: what counts is how well its changes follow people's.
    """
    rows = []
    for name, (found, agreed) in judges.items():
        plain, squared, overall = agreed.unweighted, agreed.quadratic, agreed.overall
        rows.append(
            {
                "judge": name,
                "pairs": plain.pairs,
                "kappa": plain.kappa,
                "kappa_low": plain.low,
                "kappa_high": plain.high,
                "quadratic": squared.kappa,
                "quadratic_low": squared.low,
                "quadratic_high": squared.high,
                "over": overall["over"],
                "under": overall["under"],
                "people_queries": found.people.n,
                "others": found.others,
                "alone": found.judge.mean,
                "corrected": found.corrected.mean,
                "low": found.corrected.low,
                "high": found.corrected.high,
                "people_error": found.people.error,
                "error": found.corrected.error,
                "worth": found.worth,
                "saved": found.saved,
            }
        )
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    return table.sort_values("error", kind="stable", ignore_index=True)
