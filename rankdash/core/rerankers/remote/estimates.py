"""What a run would ask of a service, before it does: calls, tokens, dollars."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

# Rules of thumb for byte-pair vocabularies: four characters of an alphabet to a token, and three
# tokens to four Chinese characters. Right within about a third, which is what an estimate is for.
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_IDEOGRAPH = 0.75
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


@dataclass(frozen=True)
class Estimate:
    """calls: requests to the service. tokens_in, tokens_out: read and written by its model, about.

    dollars: at the prices in the settings; NaN where there are none.
    """

    calls: int
    tokens_in: float
    tokens_out: float = 0.0
    dollars: float = math.nan

    def scaled(self, factor: float) -> Estimate:
        """The estimate for `factor` times the work."""
        return Estimate(
            math.ceil(self.calls * factor),
            self.tokens_in * factor,
            self.tokens_out * factor,
            self.dollars * factor,
        )

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.dollars + other.dollars,
        )


def text_tokens(text: str) -> float:
    """About how many tokens a text has."""
    ideographs = sum(1 for _ in _IDEOGRAPHS.finditer(text))
    return (len(text) - ideographs) / _CHARACTERS_PER_TOKEN + ideographs * _TOKENS_PER_IDEOGRAPH
