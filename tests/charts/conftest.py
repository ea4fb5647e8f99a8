"""Figures of every chart from its examples."""

import plotly.graph_objects as go
import pytest

from rankdash.kit.drawing import style
from tests.charts.examples import figures_of


@pytest.fixture(params=["light", "dark"], scope="session")
def ink(request: pytest.FixtureRequest) -> style.Ink:
    return style.INKS[request.param]


@pytest.fixture(scope="session")
def figures() -> dict[str, go.Figure]:
    """Every chart by name, in the light ink; none may be changed."""
    return figures_of(style.INKS["light"])
