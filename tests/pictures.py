"""Takes the pictures of the docs from a dashboard on the sample: `python -m tests.pictures`."""

import re
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.browser.conftest import Visit, new_visit, serving
from tests.conftest import FLAGS

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
WINDOW = {"width": 1440, "height": 900}
RUN_MS = 900_000


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "home") as app,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        visit = new_visit(chromium, app, viewport=WINDOW, color_scheme="light")
        visit.open("data")
        take(visit, "data")
        visit.go("Run")
        visit.page.get_by_role("button", name="Start 1 run").click()
        visit.sees(re.compile("Compare on Overview"), timeout=RUN_MS)
        expect(visit.page.get_by_text("of 74 queries")).to_have_count(0, timeout=RUN_MS)
        take(visit, "run")
        visit.go("Overview")
        take(visit, "overview")
        visit.go("Queries")
        visit.sees(re.compile(r"^1 of \d\d$"))
        take(visit, "queries")
        visit.go("Cost & ROI")
        take(visit, "cost")
        chromium.close()


def take(visit: Visit, name: str) -> None:
    visit.settle()
    visit.page.mouse.move(WINDOW["width"] / 2, 1)
    # Charts are drawn after the app is idle.
    visit.page.wait_for_timeout(2_000)
    visit.page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
