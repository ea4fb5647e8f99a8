"""The form of the targets."""

import math
from pathlib import Path

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from rankdash.core.value.targets import Goals, Limit, Profile, Target, shipped
from rankdash.features.cost import page_targets
from rankdash.kit.widgets import address
from tests.ui.parts import drawn

OVERVIEW = Path(__file__).parents[3] / "pages" / "overview.py"


def profile() -> None:
    """Draw the form of the first shipped profile with a limit."""
    from rankdash.features.cost import page_targets
    from rankdash.kit.widgets import scenario

    targets = scenario.saved_targets()
    key = next(name for name, each in targets.profiles.items() if each.limits)
    page_targets.edit(targets, key, targets.profiles[key])


@pytest.mark.parametrize("empty", [None, math.nan])
def test_a_row_without_a_level_is_a_target_without_it(empty):
    row = {"metric": "ndcg@10", "minimum": 0.5, "target": 0.7, "excellent": empty}
    assert page_targets.target_of(row) == Target("ndcg@10", 0.5, 0.7, None)


@pytest.mark.parametrize(
    ("measure", "limit", "offered"),
    [("mrr@3", 500.0, {"metric": "mrr", "k": "3", "target": "500", "latency_target_ms": "500"}),
     ("map", 500.4, {"metric": "map", "k": None, "target": "500", "latency_target_ms": "500"}),
     ("", 500.0, None), ("mrr@3", None, None)],
)  # fmt: skip
def test_a_profile_offers_its_metric_and_its_latency(measure, limit, offered):
    limits = () if limit is None else (Limit("p95_ms", limit),)
    profile = Profile("FAQ", (Target("mrr@3", target=0.7),), limits, measure)
    chosen = []

    def draw() -> None:
        page_targets.offer(profile, streamlit.container())
        chosen.append({name: address.one(name) for name in offered or ()})

    app = drawn(draw, k="5", target="500")
    assert bool(app.button) is bool(offered)
    if offered:
        assert not app.button[0].disabled
        assert app.button[0].label.endswith(", latency target 500 ms")
        app.button[0].click().run()
        assert chosen[-1] == offered and app.button[0].disabled


def test_a_limit_is_saved_put_back_and_takes_along_what_is_excellent(workspace):
    app = AppTest.from_function(profile).run()
    usual = app.number_input[0].value
    app.number_input[0].set_value(usual + 1).run()
    app.button(key="targets.save").click().run()
    assert app.number_input[0].value == usual + 1
    app.button(key="targets.reset").click().run()
    assert app.number_input[0].value == usual
    app.button(key="targets.save").click().run()
    assert app.number_input[0].value == usual
    limit = next(each.limits[0] for each in shipped().profiles.values() if each.limits)
    app.number_input[0].set_value(limit.excellent / 2).run()
    app.button(key="targets.save").click().run()
    assert not app.error
    assert limit.excellent / 2 in [each.value for each in app.number_input]


def test_a_profile_is_exported_as_the_file_that_commands_read(app, stored, tmp_path, monkeypatch):
    files: dict[str, str] = {}

    def offered(_label: str, data: object, *_rest: object, key: str = "", **_more: object) -> None:
        files[key] = str(data)

    app.query_params["data"] = stored
    app.query_params["profile"] = "production"
    app.run()
    monkeypatch.setattr(streamlit, "download_button", offered)
    app.switch_page(str(OVERVIEW))
    app.session_state["overview.targets"] = True
    app.run()
    file = tmp_path / "own.json"
    file.write_text(files["targets.export"])
    assert Goals.of(str(file)).profile == shipped().profiles["production"]
    assert not Goals.of("production").own
