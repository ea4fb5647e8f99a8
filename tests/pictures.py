"""Take the pictures of the docs in a dashboard with the sample: `python -m tests.pictures`."""

import io
import re
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from rankdash.app.command import main as rankdash
from rankdash.core.workspace import Workspace
from tests.browser.conftest import Visit, serving, visiting
from tests.conftest import FLAGS
from tests.stored import keep_sample

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
WINDOW = {"width": 1440, "height": 900}
# The size of the animation, which fits a page of the docs without scaling.
SMALL_WINDOW = {"width": 1280, "height": 800}
SECONDS = 2.0


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
        # Without the runs of the sample, the dropped run is the only one.
        home = Path(folder) / "recorded"
        keep_sample(Workspace(home))
        with (
            serving(home) as empty,
            visiting(chromium, empty, viewport=SMALL_WINDOW, color_scheme="light") as visit,
        ):
            record(visit, Path(folder) / "minilm.trec")
        chromium.close()


def take(visit: Visit, name: str) -> None:
    picture = photograph(visit)
    picture.quantize().save(FOLDER / f"{name}.png", optimize=True)


def photograph(visit: Visit) -> Image.Image:
    """Return the window once everything in it is drawn."""
    visit.settle()
    visit.page.mouse.move(WINDOW["width"] / 2, 1)
    # Charts are drawn after the app is idle.
    visit.page.wait_for_timeout(2_000)
    return Image.open(io.BytesIO(visit.page.screenshot())).convert("RGB")


def record(visit: Visit, run: Path) -> None:
    """Record the moving picture: drop files, read the verdict, the worst query and the price.

    run: the file for a ranking that is uploaded together with the sample.
    """
    rankdash(["rerank", "--data", str(SAMPLE), "--reranker", "bi-encoder", "--out", str(run)])
    names = ("queries.jsonl", "corpus.jsonl", "qrels.tsv", "initial.trec")
    files = [*(SAMPLE / name for name in names), run]
    frames = []
    visit.open("data")
    visit.page.locator("input[type=file]").set_input_files(files)
    frames.append(photograph(visit))
    visit.page.get_by_role("button", name=re.compile(r"^Read \d+ files")).click()
    visit.sees("Compare")
    frames.append(photograph(visit))
    visit.page.get_by_role("link", name="Compare").first.click()
    visit.page.get_by_role("table", name="Leaderboard").wait_for()
    frames.append(photograph(visit))
    visit.go("Queries")
    frames.append(photograph(visit))
    visit.page.keyboard.press("j")
    frames.append(photograph(visit))
    visit.go("Cost & ROI")
    frames.append(photograph(visit))
    visit.page.get_by_role("button", name="Use example values").click()
    frames.append(photograph(visit))
    first, *others = [frame.quantize(dither=Image.Dither.NONE) for frame in frames]
    first.save(
        FOLDER / "tour.png",
        save_all=True,
        append_images=others,
        duration=int(SECONDS * 1_000),
        loop=0,
        optimize=True,
    )


if __name__ == "__main__":
    main()
