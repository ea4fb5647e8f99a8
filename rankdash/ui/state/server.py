"""What lives as long as the server: the workspace and the worker process."""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import logging
import os
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import streamlit as st

from rankdash import allowed, i18n
from rankdash.errors import RankdashError
from rankdash.i18n import error_text
from rankdash.i18n import gettext as _
from rankdash.intake import place
from rankdash.runs import jobs
from rankdash.runs.jobs import WorkerProcess
from rankdash.runs.relay import PIPE_VARIABLE, RelayedWorker
from rankdash.shipped import FIRST_VARIABLE, FRONT_VARIABLE
from rankdash.store import Workspace
from rankdash.ui.state import samples
from rankdash.ui.state.cache import forget_all
from rankdash.ui.state.guard import bound_to
from rankdash.ui.widgets import redraw
from rankdash.ui.widgets.text import markdown_safe

# The addresses that stand for all of a machine.
_EVERY = ("0.0.0.0", "::")  # noqa: S104
IMPORTED_BEFORE = (
    *("rankdash.ui.data.check_view", "rankdash.ui.labels.unjudged_view"),
    *("rankdash.ui.overview.leaderboard_view", "rankdash.ui.overview.overview_causes"),
    *("rankdash.ui.overview.overview_charts", "rankdash.ui.overview.targets_view"),
    *("rankdash.ui.overview.verdict_strip", "rankdash.ui.queries.query_detail"),
    *("rankdash.ui.report.report_view", "rankdash.ui.run.run_form"),
    # What these import on their first use, which takes longer than to draw a page.
    *("scipy.special", "streamlit.emojis", "pyarrow.dataset", "PIL.Image"),
)
_LONGEST_ERROR = 600
_log = logging.getLogger(__name__)


@cache
def workspace() -> Workspace:
    return Workspace.open()


def read_only() -> bool:
    """Whether the workspace is shown and nothing in it can be changed."""
    return workspace().read_only


@cache
def worker() -> WorkerProcess | RelayedWorker:
    """Raises StoreError where the workspace is read-only: no work is done then."""
    workspace().database.refuse_read_only()
    pipe = os.environ.get(PIPE_VARIABLE)
    return RelayedWorker(int(pipe)) if pipe else WorkerProcess(workspace())


def reopen() -> None:
    """Open the workspace again after it was repaired, and have its work done again."""
    workspace.cache_clear()
    # What was read from the stand-in of the database.
    forget_all()
    if not read_only():
        _work_on()


def _work_on() -> None:
    """Have done what waits. Whatever queues more asks for the worker itself: a server that only
    shows pages needs no second process."""
    # Made here, because two sessions that ask for it first would each make one.
    hand = worker()
    if jobs.any_waits(workspace()):
        hand.ensure()


def prepare() -> None:
    """Do beforehand what the first visitor would wait for and does not depend on data."""
    for module in IMPORTED_BEFORE:
        importlib.import_module(module)
    for code in i18n.LANGUAGES:
        with i18n.speaking(code):
            i18n.number(0.0)
    # Streamlit asks once where it was started from, which looks up the file of every module.
    inspect.stack()
    # No collection walks again what is there by now.
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any] | None]:
    """Go on with what waits, remove what killed servers left; end the worker with the server."""
    # The worker is told by it.
    allowed.bound(bound_to())
    try:
        if not read_only():
            samples.open_once(workspace())
            _work_on()
        elif (trouble := workspace().trouble) is not None:
            _log.error("%s", trouble)
    except RankdashError as error:
        # The pages meet the same error and say it; a server that will not start says nothing.
        _log.error("%s", error)
    place.sweep()
    prepare()
    announce()
    watching = asyncio.create_task(redraw.watch(workspace))
    try:
        yield None
    finally:
        watching.cancel()
        if worker.cache_info().currsize:
            try:
                worker().stop()
            except RankdashError as error:
                # Its work is marked as interrupted by the next start.
                _log.error("%s", error)


def announce() -> None:
    """Print the address, and open it in a browser where there is one and nobody declined it."""
    host, port = bound_to(), st.get_option("server.port")
    front = os.environ.get(FRONT_VARIABLE)
    if front is not None:
        # One of several servers, of which one says where they are.
        if FIRST_VARIABLE not in os.environ:
            return
        port = front.rpartition(":")[2]
    shown = "localhost" if host in _EVERY else f"[{host}]" if ":" in host else host
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    url = f"{scheme}://{shown}:{port}/{str(st.get_option('server.baseUrlPath')).strip('/')}"
    if not allowed.is_loopback(host):
        sys.stderr.write(
            f"warning: Every machine that reaches {host} can open the dashboard and change its "
            "workspace. Put a login in front of it, or start it with --read-only.\n"
        )
    sys.stdout.write(f"rankdash is at {url} (Ctrl+C ends it)\n")
    sys.stdout.flush()
    if not st.get_option("server.headless"):
        webbrowser.open(url)


def on_script_error(error: Exception) -> bool:
    """Say what went wrong in words; the traceback goes to the log."""
    if isinstance(error, RankdashError):
        st.error(markdown_safe(error_text(error), _LONGEST_ERROR), icon=":material/error:")
        return True
    _log.exception("A page failed", exc_info=error)
    st.error(
        _(
            "Something went wrong in rankdash itself. Your data is unchanged. Reload the page; "
            "if it happens again, the server's log has the details."
        ),
        icon=":material/error:",
    )
    return True
