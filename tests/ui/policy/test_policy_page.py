"""The section The policy: the effect of each choice, in both languages."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.policy import page, page_policy
from tests.approved import table
from tests.ui.parts import LANGUAGES, said, study_of, unlike
from tests.ui.policy.test_depth_and_skip import (
    SURE,
    UNPROVEN,
    decided,
    failed,
    incomplete,
    moved,
    priced,
)
from tests.ui.test_pages import open_page

PRICED = replace(SURE, money=priced(SURE.run(SURE.challengers[0]), 2.0))
SAME = moved([(2, 2)] * 20)
SKIPPED = {"policy_skip": "yes", "loss": "0.01"}
CASES = {
    "a depth": (SURE, {"policy_depth": "5"}),
    "a depth in words": (SURE, {"policy_depth": "five"}),
    "skipped, with a price": (PRICED, SKIPPED),
    "a depth, with a price per search": (PRICED, {"policy_depth": "5"}),
    "a deadline, with a price": (PRICED, {"deadline": "9"}),
    "every query is skipped": (SAME, SKIPPED),
    "no rule is safe": (UNPROVEN, SKIPPED),
    "a depth of a run without all candidates": (incomplete(SURE), {"policy_depth": "5"}),
    "a deadline": (SURE, {"deadline": "9"}),
    "a deadline, and no latency": (UNPROVEN, {"deadline": "9"}),
    "tuned weights": (SURE, {"weights": [FIRST_STAGE, SURE.challengers[0]]}),
    "a floor that is refused": (decided(40), {"floor_alpha": "0.05"}),
    "every query failed": (failed(SURE), {}),
}


def section(study: Study) -> Callable[[], None]:
    return partial(page_policy.show, study, study.challengers[0])


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_policy_brings_and_costs(approved, language):
    usual = said(section(SURE), language, ["policy.python"])
    cases = {"nothing is chosen": usual} | {
        name: unlike(usual, said(section(study), language, ["policy.python"], **given))
        for name, (study, given) in CASES.items()
    }
    approved(f"ui/policy.{language}", table(cases))


def test_another_baseline_has_no_effect():
    [system] = SURE.challengers
    other = replace(SURE.run(system), id="other", name="other")
    study = study_of(SURE.dataset, SURE.run(system), other, cutoff=3)
    study = replace(study, challengers=(system,))
    first, second = (
        said(partial(page.draw, replace(study, baseline=each), system), "en")
        for each in (FIRST_STAGE, "other")
    )
    changed = unlike(first, second)
    assert changed.strip() == (
        "A policy always starts from First stage; the baseline has no effect here."
    )


def test_old_links_to_depth_and_skipping_open(app, stored):
    """Depth was a part of Cost & ROI, and skipping had a price on Rank shifts."""
    open_page(app, "cost", part="depth")
    assert [each.value for each in app.radio if each.key == "address.part"] == ["swings"]
    open_page(app, "rank_shifts", paid="2", margin="edge", loss="0.05")
