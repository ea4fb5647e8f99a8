"""Hard negatives as JSON lines in the triplet form that sentence-transformers reads.

`load_dataset("json", data_files=…)` makes a training set of it: its losses take the columns query,
positive and negative in this order. Ids are left out, since every column would be an input.
"""

from __future__ import annotations

import json

from rankdash.core.base.errors import DataError
from rankdash.core.study.study import Study
from rankdash.features.rank_shifts.ranks import triplets

_INPUTS = ["query", "positive", "negative"]


def lacks_texts(study: Study) -> bool:
    """Whether the data set has no texts to train with."""
    data = study.dataset
    return not (data.document_text().ne("").any() and data.query_text().ne("").any())


def as_json_lines(study: Study, system: str) -> bytes:
    """A line for each triplet; empty where no document stands above a relevant one. Raises
    DataError where the data set has no texts."""
    if lacks_texts(study):
        raise DataError("The data set has no texts of queries and documents.")
    rows = triplets(study, system)[_INPUTS].to_dict("records")
    lines = (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return "".join(lines).encode("utf-8", "replace")
