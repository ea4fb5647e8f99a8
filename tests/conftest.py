"""One Chromium for every test that looks at something: two in a process get in each other's way."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session", autouse=True)
def _one_cache_of_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Exported models in a folder of the session, also for the processes that tests start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKDASH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("CI must have Debian's chromium")
        pytest.skip("no chromium here: apt-get install chromium fonts-noto-cjk")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield running
        running.close()
