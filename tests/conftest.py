"""One Chromium for every test that looks at something: two in a process get in each other's way."""

import os
import shutil
from collections.abc import Iterator

import pytest
from hypothesis import Phase, settings
from playwright.sync_api import Browser, sync_playwright

# What passes once passes always, however busy the machine is. Hypothesis shrinks a failure for five
# minutes at the most, which is within the time limit of a test; looking for an explanation of it
# knows no limit.
PHASES = (Phase.explicit, Phase.generate, Phase.target, Phase.shrink)
settings.register_profile("same", derandomize=True, database=None, deadline=None, phases=PHASES)
settings.register_profile(
    "random", derandomize=False, database=None, deadline=None, phases=PHASES, print_blob=True
)
settings.load_profile("same")

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
