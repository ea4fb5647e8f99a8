"""Charts as SVG and PNG files, drawn by an installed Chrome, Chromium or Edge.

rankdash never downloads a browser: without one, an error names the browsers to install. One start
    of the browser (about two seconds) draws all charts, from a single page that loads nothing and
    runs only the two scripts with the hashes in its policy.
"""

from __future__ import annotations

import base64
import html
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote_to_bytes

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from rankdash.core.base.errors import UnavailableError
from rankdash.kit.drawing.style import INKS
from rankdash.kit.html.html_page import script_hash

WIDTH = 960
"""Width of every chart in pixels; a PNG has twice as many."""

_NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "msedge"),
)
_PLACES = {
    "darwin": (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    ),
    "win32": (
        r"C:\Program Files\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    ),
}
_FLAGS = (
    *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-extensions"),
    "--hide-scrollbars",
)
_BUDGET_MS = 60_000
_SECONDS = 90

NO_BROWSER = "Drawing charts as files needs Chrome, Chromium or Edge on this machine."
INSTALL = "Install one of them, or save each chart with the camera button above it."


def browser() -> str | None:
    """Return the path of an installed browser; None without one."""
    installed = (shutil.which(name) for name in _NAMES)
    places = (place for place in _PLACES.get(sys.platform, ()) if Path(place).is_file())
    return next((each for each in (*installed, *places) if each), None)


def drawn(figures: Mapping[str, go.Figure]) -> dict[str, bytes]:
    """Return file name → content of the figures, as SVG and PNG files on white.

    figures: name → figure in light ink. Two files for each: "<name>.svg", "<name>.png".

    Raises UnavailableError if no browser is installed, or if the browser draws nothing.
    """
    program = browser()
    if program is None:
        raise UnavailableError(NO_BROWSER, remedy=INSTALL)
    if not figures:
        return {}
    images = _images(program, list(figures.values()))
    files = {}
    for name, (svg, png) in zip(figures, images, strict=True):
        files[f"{name}.svg"] = unquote_to_bytes(svg.partition(",")[2])
        files[f"{name}.png"] = base64.b64decode(png.partition(",")[2])
    return files


def _images(program: str, figures: list[go.Figure]) -> list[tuple[str, str]]:
    """Return (SVG, PNG) of each figure, as data URIs."""
    with tempfile.TemporaryDirectory(prefix="rankdash-", ignore_cleanup_errors=True) as folder:
        page = Path(folder, "charts.html")
        page.write_text(_page(figures), encoding="utf-8", errors="replace")
        # Chromium's sandbox does not start as root, for example in a container.
        root = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
        # The virtual clock of the page runs until no task is left, so drawing ends.
        command = [
            *(program, *_FLAGS, *root, f"--user-data-dir={Path(folder, 'profile')}"),
            *(f"--virtual-time-budget={_BUDGET_MS}", "--dump-dom", page.as_uri()),
        ]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _nothing(program) from error
    _, _, answer = done.stdout.decode("utf-8", "replace").partition('<pre id="drawn">')
    answer, end, _ = answer.partition("</pre>")
    if not end:
        raise _nothing(program)
    return [(svg, png) for svg, png in json.loads(html.unescape(answer))]


def _page(figures: list[go.Figure]) -> str:
    """Return the page for the browser. After drawing, its body contains the images only."""
    engine = get_plotlyjs()
    policy = (
        f"default-src 'none'; script-src '{script_hash(engine)}' '{script_hash(_DRAW)}'; "
        "style-src 'unsafe-inline'; img-src data: blob:"
    )
    plain = json.dumps([json.loads(each.to_json()) for each in figures], ensure_ascii=False)
    # No text in a chart can close the script element.
    data = plain.replace("<", "\\u003c")
    return (
        '<!DOCTYPE html><html><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"></head><body>'
        f'<script type="application/json" id="figures">{data}</script>'
        f"<script>{engine}</script><script>{_DRAW}</script></body></html>"
    )


def _nothing(program: str) -> UnavailableError:
    return UnavailableError(
        "The browser {program} did not draw the charts.",
        remedy="Instead, save each chart with the camera button above it.",
        program=Path(program).name,
    )


_DRAW = """
(async () => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const made = [];
  for (const {data, layout} of figures) {
    const size = {width: WIDE, height: layout.height || 450};
    const figure = {data, layout: {...layout, ...size, paper_bgcolor: "PAPER"}};
    const images = [];
    for (const [format, scale] of [["svg", 1], ["png", 2]])
      images.push(await Plotly.toImage(figure, {...size, format, scale}));
    made.push(images);
  }
  const place = document.createElement("pre");
  place.id = "drawn";
  place.textContent = JSON.stringify(made);
  document.body.replaceChildren(place);
})();
""".replace("WIDE", str(WIDTH)).replace("PAPER", INKS["light"].background)
