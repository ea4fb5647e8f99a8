"""Targets of a profile: met or missed by the interval, and limited by labels and candidates."""

import math
from dataclasses import replace

from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money, systems_of
from rankdash.core.value import prices
from rankdash.core.value.prices import Price
from rankdash.core.value.targets import Goals, Limit, Profile, Target, shipped
from rankdash.core.words import targets
from rankdash.features.report.report import Front, html
from tests.approved import table
from tests.study.best_or_worst import best_or_worst
from tests.study.builders import timed

TIMES = [100.0 + n / 4 for n in range(400)]


def study_of(n: int = 40, relevant: int = 1) -> Study:
    """Return relevant documents last in the first stage, and for every tenth query of the run."""
    return best_or_worst(n, "mrr@3", lambda _at: False, lambda at: at % 10 != 0, relevant=relevant)


def goals(*asked: Target | Limit) -> Goals:
    limits = tuple(each for each in asked if isinstance(each, Limit))
    wanted = tuple(each for each in asked if isinstance(each, Target))
    return Goals(shipped().with_profile("own", Profile("Own", wanted, limits)), "own")


def with_times(ms: list[float]) -> Study:
    study = study_of(len(ms))
    run = timed(study.run(study.challengers[0]), ms)
    return replace(study, systems=systems_of(study.dataset, [run]))


def with_price(currency: str = "USD", shown_in: str = "USD") -> Study:
    """Return a study with a price of 0.05 per million tokens."""
    study = study_of()
    price = Price(0.05, "tokens", currency)
    own = replace(prices.shipped()[0], source="our contract", key="mine", price=price)
    return replace(study, money=Money(prices={study.challengers[0]: own}, currency=shown_in))


def tokens(*limits: float | None) -> Goals:
    return goals(Limit("per_million_tokens", *limits))


def cases() -> dict[str, tuple[Study, Goals]]:
    usual, faq, example = study_of(), Goals(shipped(), "faq"), Money(example=True)
    quick = with_times(TIMES)
    return {
        "precision@3 with one answer a query is at most a third": (usual, faq),
        "with three answers it is at most 1": (study_of(relevant=3), faq),
        **{f"the interval decides: at least {asked}": (usual, goals(Target("hit@3", target=asked)))
           for asked in (0.6, 0.9, 0.999)},
        "four queries decide nothing": (study_of(4), goals(Target("hit@3", target=0.5))),
        "advice is for what may be below and could be above": (
            usual, goals(Target("mrr", target=0.8)),
        ),
        **{f"an example of a price decides nothing: at most {limits}": (
            replace(usual, money=example), tokens(*limits)
        ) for limits in ((1e-6, None), (1e6, 1e5))},
        **{f"times of 100 to 200 ms: at most {limits}": (quick, goals(Limit("p95_ms", *limits)))
           for limits in ((500.0, 300.0), (500.0, 150.0), (500.0, None), (50.0, 20.0),
                          (195.0, 20.0))},
        **{f"369 of 400 within 192 ms, at level {level}": (
            replace(quick, statistics=replace(quick.statistics, level=level)),
            goals(Limit("p95_ms", 192.0, 150.0)),
        ) for level in (0.95, 0.999)},
        "what was not timed has no latency": (
            with_times([math.nan] * 40), goals(Limit("p95_ms", 500.0, 300.0)),
        ),
        **{f"a price of one's own of 0.05: at most {limits}": (with_price(), tokens(*limits))
           for limits in ((0.05, 0.05), (0.05, 0.04), (0.05, None), (0.049, 0.04))},
        "a price in euros": (with_price("EUR"), tokens(1.0, 0.5)),
        "a price in euros, if these are used": (with_price("EUR", "EUR"), tokens(1.0, 0.5)),
        "no price": (replace(usual, money=Money()), tokens(1.0, 0.5)),
    }  # fmt: skip


def told(study: Study, wanted: Goals) -> str:
    return "\n".join(" | ".join(map(str, cells)) for cells in targets.target_rows(study, wanted))


def test_targets_are_as_approved(approved):
    approved("study/targets", table((name, told(*case)) for name, case in cases().items()))


def test_the_report_has_the_rows_of_the_page_if_a_profile_was_chosen():
    study, chosen = study_of(), Goals(shipped(), "faq")
    assert "reachable at most" not in html(study, Front(sections=("systems",))).decode()
    study = replace(study, goals=chosen)
    page = html(study, Front(sections=("systems",))).decode()
    assert "Targets: FAQ" in page
    for each in targets.target_rows(study, chosen):
        assert all(f">{cell}<" in page for cell in each[1:8] if cell)
