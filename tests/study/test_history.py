"""A run over time has the value that it has in a comparison, chosen or not."""

from dataclasses import replace

import numpy as np
import pytest

from rankdash.metrics import Conventions
from rankdash.study import history
from rankdash.study.systems import FIRST_STAGE
from tests.study.test_queries import keeping, small

FIRST = dict.fromkeys("pqrstu", "abc")
LABELS = {query: {"b": 1.0} for query in FIRST}


@pytest.mark.parametrize("rules", [{}, {"missing": "skip"}], ids=str)
def test_a_run_that_is_not_chosen_has_the_same_values_and_its_failures_are_no_zeros(rules):
    better = {query: "bac" for query in FIRST if query not in "pq"}
    worse = {query: "acb" for query in FIRST if query not in "pr"}
    of = small(FIRST, better, worse, labels=LABELS, failed=("p",), metric="mrr",
               conventions=Conventions(**rules))  # fmt: skip
    alone = replace(of, challengers=of.challengers[:1])
    for system in of.challengers:
        chosen, other = history.evaluation(of, system), history.evaluation(alone, system)
        np.testing.assert_array_equal(chosen.values, other.values)
        values = dict(zip(other.query_ids, other.column(of.spec), strict=True))
        assert np.isnan(values["p"])
        left_out = "q" if system == of.challengers[0] else "r"
        assert values[left_out] == 0.0 or ("missing" in rules and np.isnan(values[left_out]))


def test_a_line_follows_the_rules_of_the_study_also_where_parts_are_shared():
    better = dict.fromkeys(FIRST, "bac") | {"u": "abc"}
    of = small(FIRST, better, labels=LABELS, metric="mrr", cache=keeping())
    systems = (FIRST_STAGE, *of.challengers)
    rows = history.trend(of, systems, every=True).frame.set_index("system")
    assert rows.loc[of.challengers[0], "delta"] == pytest.approx(5 / 12)
    assert rows.loc[FIRST_STAGE, "mean"] == 0.5
    turned = replace(of, baseline=of.challengers[0], challengers=(FIRST_STAGE,))
    rows = history.trend(turned, systems, every=True).frame.set_index("system")
    assert rows.loc[FIRST_STAGE, "delta"] == pytest.approx(-5 / 12)
    wide = replace(of, statistics=replace(of.statistics, level=0.5))
    inner = history.trend(wide, systems, every=True).frame.set_index("system")
    outer = history.trend(of, systems, every=True).frame.set_index("system")
    width = [
        frame.loc[of.challengers[0], "delta_high"] - frame.loc[of.challengers[0], "delta_low"]
        for frame in (inner, outer)
    ]
    assert 0 < width[0] < width[1]
    at_one = replace(of, cutoff=1)
    rows = history.trend(at_one, systems, every=True).frame.set_index("system")
    assert rows.loc[FIRST_STAGE, "mean"] == 0.0
