"""Ways to rerank, as examples to reckon with before anything was run."""

from __future__ import annotations

from dataclasses import dataclass

from rankdash.core.value.billing import Load, Price, cost_per_thousand

EXAMPLE_BEFORE, EXAMPLE_AFTER, EXAMPLE_PRICE = 0.72, 0.87, 1.0
"""The published example: quality before and after, and US dollars for 1,000 searches."""

# What a search sends: fifty documents of 200 tokens each.
_QUERY, _DOCUMENTS, _TOKENS = 12, 50, 200
# The example of a price with the prompt around each document.
_LLM = Price(0.20, "template", template_tokens=70)


@dataclass(frozen=True)
class Archetype:
    """A way to rerank.

    per_thousand: US dollars for 1,000 searches, as an example. p95_ms: a rule of thumb, None where
    there is none. meaning: what the example rests on.
    """

    title: str
    meaning: str
    per_thousand: float
    p95_ms: float | None = None


ARCHETYPES = (
    Archetype("No reranker", "The ranking of the search as it is.", 0.0, 0.0),
    Archetype(
        "Cross-encoder",
        "The price of the published example; p95 by a rule of thumb for 50 documents.",
        EXAMPLE_PRICE,
        300.0,
    ),
    Archetype(
        "LLM pointwise",
        "Fifty documents of 200 tokens, each in a prompt of its own, at $0.20 for a million "
        "tokens.",
        float(cost_per_thousand(_LLM, Load(_QUERY, _DOCUMENTS, _TOKENS))),
    ),
    Archetype(
        "LLM listwise",
        "Fifty documents of 200 tokens in one prompt, at $0.20 for a million tokens.",
        float(cost_per_thousand(_LLM, Load(_QUERY, 1, _DOCUMENTS * _TOKENS))),
    ),
)
"""Side by side in this order, from none to the one that reads most at once."""
