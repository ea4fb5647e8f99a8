"""From what traffic on a machine is cheaper than paying by the search, and where it never is."""

import pytest
from streamlit.testing.v1 import AppTest


def by_traffic(paid: float) -> None:
    """A machine at $0.5 a second that serves 8 searches in it, against so much for 1,000."""
    from datetime import date
    from types import SimpleNamespace

    from rankdash.runs.usage import MeasuredLoad
    from rankdash.study.costs import Choice
    from rankdash.study.pricing import Waiting
    from rankdash.ui.cost.cost_units import _by_traffic
    from rankdash.value.assumptions import Assumptions
    from rankdash.value.billing import Load, Price
    from rankdash.value.payoff import Option, outcome
    from rankdash.value.price_list import ListedPrice

    study = SimpleNamespace(money=None, challengers=())
    option = Option("system", 0.0, None)
    load, day = MeasuredLoad(Load(10, 40, 90), estimated=False), date(2026, 11, 1)
    came = outcome(option, Assumptions())
    choice = Choice(option, came, "system", None, load, Waiting(None, None))
    machine = Price(1800.0, "hour", searches_per_second=8.0)
    _by_traffic(
        study,
        choice,
        ListedPrice("own", "Machine", "", machine, "a test", day),
        [ListedPrice("flat", "Flat", "", Price(paid, "search"), "a test", day)],
    )


@pytest.mark.parametrize(
    ("paid", "said"),
    [
        (125.0, "cheaper than {flat} from **345,600 searches a day** on"),
        # All that it can serve costs as much.
        (62.5, "cheaper than {flat} from **691,200 searches a day** on"),
        (62.4, "never cheaper than {flat}: one machine cannot serve so many"),
    ],
)
def test_a_machine_is_cheaper_only_from_a_traffic_that_it_can_serve(workspace, paid, said):
    app = AppTest.from_function(by_traffic, args=(paid,)).run()
    assert not app.exception
    line = app.markdown[0].value.partition("\n- ")[2]
    flat = line.partition("cheaper than ")[2].partition(" from **")[0].partition(": one")[0]
    assert flat.startswith("Flat")
    assert line == said.format(flat=flat)
