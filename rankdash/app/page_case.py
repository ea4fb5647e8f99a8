"""Addresses of pages in another case, such as /Data, lead to the page."""

from __future__ import annotations

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from rankdash.core.base.shipped import PAGES


class PageCase:
    """Redirects a request for a page whose name is written in another case; passes on the rest."""

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
        """The address of the page, relative to the one asked for; None for any other request."""
        path: str = scope["path"]
        name = path.rstrip("/").rpartition("/")[2]
        if name == name.lower() or name.lower() not in self._names:
            return None
        query = scope.get("query_string", b"").decode("latin-1")
        up = "../" if path.endswith("/") else ""
        return f"{up}{name.lower()}" + (f"?{query}" if query else "")
