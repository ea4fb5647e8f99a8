"""The traces and texts of each chart, for its examples."""

import pytest

from rankdash.core.base.i18n import speaking
from rankdash.kit.drawing import style
from tests.approved import table
from tests.charts.described import described, worded
from tests.charts.examples import CHARTS, drawn, examples


def test_every_chart_has_examples():
    assert examples().keys() == CHARTS.keys()


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_draws_and_says_what_is_approved(chart, approved):
    ink = style.INKS["light"]
    cases, said = examples()[chart], {"en": {}, "zh": {}}
    for language in said:
        with speaking(language):
            for name, case in cases.items():
                # The traces of hostile names are compared for every chart.
                briefly = language == "zh" or ("hostile" in name and len(cases) > 1)
                describe = worded if briefly else described
                figure, words = drawn(chart, name, case, ink)
                said[language][name] = "\n".join([words, *describe(figure)])
    for language, cases in said.items():
        approved(f"charts/{chart}.{language}", table(cases))
