"""Labels whose lowest grade is the best, put the right way up.

Cranfield's are: 1 is a complete answer, 4 of minimum interest, 5 of none, and -1 not relevant.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import DataError
from rankdash.core.base.findings import Finding
from rankdash.core.base.i18n import plain


def put_right(labels: npt.NDArray[np.float64], worst: float) -> npt.NDArray[np.float64]:
    """`worst` - label, so that `worst` becomes 0 and 1 the highest; labels below 0 stay, since they
    mean not relevant whatever the scale. To do it twice gives the labels back.

    worst: the grade that means not relevant. Raises DataError where it is below a label.
    """
    highest = float(labels.max(initial=0))
    if not math.isfinite(worst) or worst < highest:
        raise DataError(
            "The labels cannot be reversed at {worst}: the highest is {highest}.",
            remedy="Give the grade that means not relevant, which no label is above.",
            worst=plain(worst),
            highest=plain(highest),
        )
    return np.where(labels < 0, labels, worst - labels)


def reversed_note(worst: float) -> Finding:
    """What the check report says of labels that were reversed."""
    return Finding(
        "note",
        "labels_reversed",
        "The labels are reversed: each is {worst} minus the label in the files, where the lowest "
        "grade is the best. Labels below 0 are unchanged.",
        {"worst": plain(worst)},
    )
