"""The life of the server: preparation, start message, redirects, and shutdown."""

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
from typing import Any

import streamlit as st
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from rankdash.app.guard import bound_to
from rankdash.core.base import allowed, i18n
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.shipped import FIRST_VARIABLE, FRONT_VARIABLE, PAGES
from rankdash.core.intake import reading
from rankdash.features.data import page_samples
from rankdash.kit.widgets import redraw
from rankdash.kit.widgets.stored import read_only, work_on, worker, workspace
from rankdash.kit.widgets.text import markdown_safe

# The addresses that mean all network interfaces.
_EVERY = ("0.0.0.0", "::")  # noqa: S104

_PAGES = (
    "data.page",
    "overview.page_verdict",
    "overview.page_leaderboard",
    "overview.page",
    "cost.page_targets",
    "queries.page",
    "report.page",
    "run.page_form",
)
IMPORTED_BEFORE = (
    *(f"rankdash.features.{each}" for each in _PAGES),
    # Modules that these import on their first use, which takes longer than drawing a page.
    *("scipy.special", "streamlit.emojis", "pyarrow.dataset", "PIL.Image"),
)

_LONGEST_ERROR = 600

_log = logging.getLogger(__name__)


def prepare() -> None:
    """Do the work before the first visit that does not depend on data."""
    for module in IMPORTED_BEFORE:
        importlib.import_module(module)
    for code in i18n.LANGUAGES:
        with i18n.speaking(code):
            i18n.number(0.0)
    # Streamlit calls this once, which looks up the file of every module.
    inspect.stack()
    # Later garbage collections skip all present objects.
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any] | None]:
    """Resume waiting work, remove leftovers of killed servers, and end the worker with the
    server."""
    # The worker inherits the setting.
    allowed.bound(bound_to())
    try:
        if not read_only():
            page_samples.open_once(workspace())
            work_on()
        elif (trouble := workspace().trouble) is not None:
            _log.error("%s", trouble)
    except RankdashError as error:
        # The pages show the same error; a server that does not start could not show it.
        _log.error("%s", error)
    reading.sweep_uploads()
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
                # The next start marks its work as interrupted.
                _log.error("%s", error)


def announce() -> None:
    """Print the address, and open it in a browser unless the server is headless."""
    host, port = bound_to(), st.get_option("server.port")
    front = os.environ.get(FRONT_VARIABLE)
    if front is not None:
        # Only one of several servers prints the address.
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
    """Show the error as text; the traceback goes to the log."""
    if isinstance(error, RankdashError):
        st.error(markdown_safe(error_text(error), _LONGEST_ERROR), icon=":material/error:")
        return True
    _log.exception("A page failed", exc_info=error)
    st.error(
        _(
            "An internal error occurred in rankdash. Your data is unchanged. Reload the page; "
            "if it happens again, see the server's log for details."
        ),
        icon=":material/error:",
    )
    return True


class PageCase:
    """Middleware that redirects requests for a page in another case, such as /Data."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._names = {page.stem for page in PAGES.glob("*.py")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        target = self._target(scope) if scope["type"] == "http" else None
        if target is None:
            await self._app(scope, receive, send)
        else:
            await RedirectResponse(target)(scope, receive, send)

    def _target(self, scope: Scope) -> str | None:
        """Return the address of the page, relative to the requested one; None for any other
        request."""
        path: str = scope["path"]
        name = path.rstrip("/").rpartition("/")[2]
        if name == name.lower() or name.lower() not in self._names:
            return None
        query = scope.get("query_string", b"").decode("latin-1")
        up = "../" if path.endswith("/") else ""
        return f"{up}{name.lower()}" + (f"?{query}" if query else "")
