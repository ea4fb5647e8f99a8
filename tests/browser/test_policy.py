"""A presenter chooses a policy of the sample and downloads it: what it brings and costs."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from rankdash.core.base.shipped import SAMPLES, runs_of
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import import_workspace

from .conftest import PATIENCE_MS, App, Visit, serving, visiting

MOST_CLICKS = 8


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A server with the English sample and its shipped runs."""
    home = tmp_path_factory.mktemp("sample")
    import_workspace.bring_in(Workspace(home), runs_of(SAMPLES["en"]), "the sample")
    with serving(home) as app:
        yield app


class Clicks:
    """The clicks of a visitor."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.made = visit, 0

    def on(self, part: Locator) -> None:
        part.click()
        self.made += 1
        self.visit.settle()

    def on_text(self, text: str) -> None:
        main = self.visit.page.get_by_test_id("stMain")
        self.on(main.get_by_text(text, exact=True).first)


def numbers(text: str, start: str) -> list[float]:
    """Return the numbers after a text, up to the next bracket."""
    [found] = re.findall(rf"{re.escape(start)}([^)]*)\)", text)
    return [float(each) for each in re.findall(r"-?\d+\.\d+", found)]


def test_the_policy_is_chosen_and_downloaded_in_eight_clicks(browser, app, tmp_path):
    with visiting(browser, app) as visit:
        visit.open()
        page, clicks = visit.page, Clicks(visit)
        clicks.on(page.get_by_test_id("stSidebar").get_by_role("link", name="Policy"))
        visit.sees("No step is chosen:")
        clicks.on(page.get_by_role("button", name="Depth: all documents"))
        clicks.on(page.get_by_test_id("stMain").get_by_role("radio", name="20", exact=True))
        clicks.on_text("Skip")
        clicks.on_text("Skip these queries in the policy")
        clicks.on_text("The policy")
        answer = visit.sees("with this policy:")
        button = page.get_by_role("button", name="Download policy.json")
        # Answer, drawing and button are above the fold.
        expect(button).to_be_in_viewport()
        expect(page.locator(".js-plotly-plot").first).to_be_in_viewport()
        said = str(answer.locator("xpath=ancestor-or-self::p").inner_text())
        with page.expect_download(timeout=PATIENCE_MS) as waiting:
            clicks.on(button)
        assert waiting.value.suggested_filename == "policy.json"
        waiting.value.save_as(tmp_path / "policy.json")
        assert clicks.made <= MOST_CLICKS
    content = json.loads((tmp_path / "policy.json").read_text())
    [skip, rerank] = content["steps"]
    assert rerank["rerank"]["depth"] == 20 and "skip_if" in skip
    expected = content["expected"]
    assert expected["ndcg@10"]["held_out"]
    for start, found in (
        ("with this policy:", expected["ndcg@10"]),
        ("The change is", expected["change_from_first_stage"]),
        ("first stage, and", expected["change_from_full_reranking"]),
    ):
        shown = [round(found[name], 3) for name in ("mean", "low", "high")]
        assert numbers(said, start) == pytest.approx(shown)
    latency = re.findall(r"takes ([\d.,]+) ms", said)[0].replace(",", "")
    assert float(latency) == pytest.approx(expected["p95_ms"], rel=0.01)
