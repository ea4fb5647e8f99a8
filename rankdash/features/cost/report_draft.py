"""A draft of a report with what several of its sections need of costs."""

from __future__ import annotations

from functools import cached_property

from rankdash.core.study.systems import Money
from rankdash.features.cost.costs import Choice, choices
from rankdash.features.cost.gains import hit_title
from rankdash.features.cost.words_costs import MoneyContext
from rankdash.features.cost.words_money import month
from rankdash.kit.html.draft import Draft


class MoneyDraft(Draft):
    """A report that is being written, with the costs of its systems."""

    @cached_property
    def choices(self) -> list[Choice]:
        """The baseline without a reranker, then every challenger at its price."""
        return choices(self.study)

    def choice(self, challenger: str) -> Choice:
        return next(each for each in self.choices if each.system == challenger)

    @property
    def money(self) -> Money:
        return self.study.money or Money()

    @property
    def examples(self) -> list[str]:
        """The systems whose price is an example that comes with rankdash."""
        return [each.name for each in self.choices if each.example]

    @cached_property
    def context(self) -> MoneyContext:
        study = self.study
        return MoneyContext(
            currency=self.money.currency,
            metric=study.measure.title,
            hit=hit_title(study),
            level=study.statistics.level,
            baseline=study.name(study.baseline),
            period=month(),
            safe=str,
        )
