"""What keeps a query below a perfect ranking: the retriever, the labels or the reranker.

What is lost splits without a remainder:

    perfect - value = retriever + labels + reranker

- retriever: perfect - best possible, as in `rankdash.core.study.reasons.headroom`: relevant
  documents that the system could not order, because its list lacks them.
- labels: what documents without a label cost that stand above relevant ones: the value of the same
  list without them (at most the best possible) less the value. They may be relevant or not.
- reranker: the rest, which a better order of the same documents would bring.

The first condition that holds decides:

| fault | condition |
|---|---|
| labels | no label names a relevant document, or no document that is shown has a label |
| none | what is lost is within the tie band |
| retriever, labels, reranker | its part is more than `MOST` of what is lost |
| mixed | no part is |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rankdash.core.statistics.pairs import TIE_BAND

PARTS = ("retriever", "labels", "reranker")
FAULTS = (*PARTS, "mixed", "none")
MOST = 0.5
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Fault:
    """code: one of `FAULTS`. lost: perfect less value; NaN where labels say too little. parts: each
    of `PARTS` and what of the loss it makes, all ≥ 0; empty where lost is NaN."""

    code: str
    lost: float
    parts: dict[str, float]


LABELS_SAY_TOO_LITTLE = Fault("labels", math.nan, {})


def fault(
    value: float, condensed: float, best: float, perfect: float, tie_band: float = TIE_BAND
) -> Fault:
    """The fault of a query whose labels say enough.

    value: of the system. condensed: of its list without the documents that have no label. best: the
    best possible. perfect: of all labelled documents in the order of their labels.
    """
    lost = max(perfect - value, 0.0)
    retriever = min(max(perfect - best, 0.0), lost)
    labels = min(max(condensed - value, 0.0), lost - retriever)
    amounts = (retriever, labels, lost - retriever - labels)
    parts = dict(zip(PARTS, amounts, strict=True))
    if lost <= tie_band + _ROUNDING:
        return Fault("none", lost, parts)
    main = max(parts, key=parts.__getitem__)
    return Fault(main if parts[main] > MOST * lost + _ROUNDING else "mixed", lost, parts)
