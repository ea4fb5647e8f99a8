"""Takes the pictures of the docs from a dashboard on the sample: `python -m tests.pictures`."""

import io
import re
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser.conftest import Visit, serving, visiting
from tests.conftest import FLAGS

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
WINDOW = {"width": 1440, "height": 900}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "home") as app,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        with visiting(chromium, app, viewport=WINDOW, color_scheme="light") as visit:
            visit.open("data")
            take(visit, "data")
            visit.go("Run")
            visit.sees("Compare on Overview")
            take(visit, "run")
            visit.go("Overview")
            take(visit, "overview")
            visit.go("Queries")
            visit.sees(re.compile(r"^1 of \d+$"))
            take(visit, "queries")
            visit.go("Cost & ROI")
            take(visit, "cost")
        chromium.close()


def take(visit: Visit, name: str) -> None:
    visit.settle()
    visit.page.mouse.move(WINDOW["width"] / 2, 1)
    # Charts are drawn after the app is idle.
    visit.page.wait_for_timeout(2_000)
    picture = Image.open(io.BytesIO(visit.page.screenshot()))
    picture.convert("RGB").quantize().save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
