"""Which uploads the server takes: those of a session whose page shows a field for files, up to a
limit for each session and one for all. Streamlit takes every upload, holds it in memory, and frees
it minutes after the browser has left."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import streamlit as st
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import language
from rankdash.core.intake import reading
from rankdash.core.readers import Source

GRACE_SECONDS = 10.0
"""So long the uploads of a browser that has left are held: it may have lost its connection."""

IDLE_SECONDS = 60.0
"""So long an upload may stand still."""

_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+$")
_MEGABYTE = 1 << 20
# Around the file in a request.
_FRAME_BYTES = _MEGABYTE
# A field for small files is emptied and filled again.
_LEAST_BYTES = 10 * _MEGABYTE
# Of all sessions, as many times as much as of one.
_SESSIONS = 2
_KEPT = "upload_limits.fields"
_LIMIT = '[data-testid="stFileUploaderDropzoneInstructions"] span'
_STOPPED = "The upload stopped. Add the file again.\n"
_NO_FIELD = "The page shows no field for files. Open the page again, then add the file again.\n"
_TOO_LARGE = "The file is larger than the field takes: {most:,.0f} MB.\n"
_FULL = (
    "The server holds too many uploads that are not read yet: {most:,.0f} MB. Add fewer files at "
    "once, or try again in a minute.\n"
)


class _Fields:
    """The fields of a session's page. most: the bytes that one file may have; 0 without a field."""

    def __init__(self) -> None:
        self.most = 0
        self.drawn = 0


# By session; each lives as long as the session's state.
_of_sessions: WeakValueDictionary[str, _Fields] = WeakValueDictionary()


class _RefusedError(Exception):
    """An upload is not taken."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.answer = PlainTextResponse(text, status_code=status)


class UploadLimits:
    """Passes all requests on, but for uploads that no field asks for or that are too much."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._arriving: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = _UPLOAD.search(scope["path"]) if scope["type"] == "http" else None
        try:
            if match and scope["method"] == "PUT":
                await self._upload(match[1], scope, receive, send)
            else:
                await self._app(scope, receive, send)
        finally:
            if match or scope["type"] == "websocket":
                asyncio.get_running_loop().call_later(GRACE_SECONDS, _free_closed)

    async def _upload(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        taken = arrived = 0

        def take(size: int) -> None:
            """Count so many bytes of this upload."""
            nonlocal taken
            self._arriving[session] += size - taken
            taken = size
            self._check(session, size)

        async def counted() -> Message:
            nonlocal arrived
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    message = await receive()
            except TimeoutError as error:
                raise _RefusedError(408, _STOPPED) from error
            arrived += len(message.get("body", b""))
            if arrived > taken:
                take(arrived)
            return message

        async def answered(message: Message) -> None:
            nonlocal taken
            # By now Streamlit holds the file, or has refused it.
            self._arriving[session] -= taken
            taken = 0
            await send(message)

        answer = None
        try:
            take(_declared(scope))
            await self._app(scope, counted, answered)
        except _RefusedError as error:
            answer = error.answer
        finally:
            self._arriving[session] -= taken
            if not self._arriving[session]:
                del self._arriving[session]
        if answer is not None:
            await answer(scope, receive, send)

    def _check(self, session: str, size: int) -> None:
        """Raise _RefusedError if an upload of so many bytes is not taken."""
        fields = _of_sessions.get(session)
        most = 0 if fields is None else fields.most
        if not most:
            raise _RefusedError(403, _NO_FIELD)
        if size > most + _FRAME_BYTES:
            raise _RefusedError(413, _TOO_LARGE.format(most=most / _MEGABYTE))
        taken = _held() + self._arriving
        frames = _FRAME_BYTES * len(self._arriving)
        for here, limit in (
            (taken[session], max(most, _LEAST_BYTES)),
            (taken.total(), _SESSIONS * _most_bytes()),
        ):
            if here > limit + frames:
                raise _RefusedError(413, _FULL.format(most=limit / _MEGABYTE))


def field(megabytes: int | None = None) -> None:
    """Take uploads of this session: its page draws a field. megabytes: the most that one file has;
    None for what the server takes."""
    fields = _fields()
    most = _most_bytes() if megabytes is None else megabytes * _MEGABYTE
    fields.drawn = max(fields.drawn, most)
    fields.most = max(fields.most, fields.drawn)
    if language() != "en":
        # Streamlit writes the limit in English only.
        limit = json.dumps(_("At most {n} MB per file", n=most // _MEGABYTE), ensure_ascii=False)
        st.html(
            f"<style>{_LIMIT} {{ font-size: 0; }} "
            f"{_LIMIT}::after {{ content: {limit}; font-size: 0.875rem; }}</style>"
        )


def begin_page() -> None:
    """Called before a page is drawn."""
    _fields().drawn = 0


def end_page() -> None:
    """Called when a page is drawn: without a field on it, no upload is taken, and none is held."""
    fields = _fields()
    fields.most = fields.drawn
    context = get_script_run_ctx()
    if context is not None and not fields.most:
        context.uploaded_file_mgr.remove_session_files(context.session_id)


def _fields() -> _Fields:
    """Those of the session that is drawn."""
    fields: _Fields = st.session_state.setdefault(_KEPT, _Fields())
    context = get_script_run_ctx()
    if context is not None:
        _of_sessions[context.session_id] = fields
    return fields


def _most_bytes() -> int:
    return int(st.get_option("server.maxUploadSize")) * _MEGABYTE


def _declared(scope: Scope) -> int:
    """The length that a request states; 0 if it states none."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length) if length.isdigit() else 0


def _held() -> Counter[str]:
    """Session → the bytes of its uploads in memory."""
    return Counter(
        {
            session: sum(len(file.data) for file in list(files.values()))
            for session, files in list(_storage().items())
        }
    )


def _free_closed() -> None:
    """Free the uploads of sessions whose browser has left."""
    for session in list(_storage()):
        if not runtime.get_instance().is_active_session(session):
            runtime.get_instance().uploaded_file_mgr.remove_session_files(session)


def _storage() -> dict[str, dict[str, UploadedFileRec]]:
    """Session → file → its record, as Streamlit holds them."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return manager.file_storage if isinstance(manager, MemoryUploadedFileManager) else {}


# Files that a visitor gives, on disk: Streamlit holds them in the server's memory for the whole
# session, and copies them there at each redraw.

_HELD = "uploaded.held"
# Bytes: less is no burden.
_SMALL = 1_000_000


def uploader(label: str, key: str, **settings: Any) -> tuple[Source, ...]:
    """Draw a field for files; those that are in it now. They stay on disk as long as anything holds
    their sources.

    key: of the field; another behind its last dot empties it.
    settings: of `st.file_uploader`.
    """
    field()
    st.file_uploader(label, key=key, on_change=_take, args=(key,), **settings)
    # Streamlit leaves out of its answer what it no longer has.
    files = _listed(st.session_state.get(key))
    held = _uploaded()
    sources = held.pop(key, {})
    for other in [each for each in held if each.rpartition(".")[0] == key.rpartition(".")[0]]:
        del held[other]
    held[key] = {each.file_id: sources[each.file_id] for each in files if each.file_id in sources}
    return tuple(held[key].values())


def _uploaded() -> dict[str, Mapping[str, Source]]:
    """Field → file → its source."""
    uploaded: dict[str, Mapping[str, Source]] = st.session_state.setdefault(_HELD, {})
    return uploaded


def _take(key: str) -> None:
    """Take what was given off Streamlit, before it makes the first copy."""
    before = _uploaded().get(key, {})
    taken: dict[str, Source] = {}
    for file in _listed(st.session_state.get(key)):
        if file.file_id in before:
            taken[file.file_id] = before[file.file_id]
        elif isinstance(file, UploadedFile):
            taken[file.file_id] = _stored(file)
    _uploaded()[key] = taken


def _stored(file: UploadedFile) -> Source:
    """On disk until nothing holds it; in memory where it is small, or the disk is full, which
    reading it says."""
    content = file.getvalue()
    if file.size <= _SMALL:
        return Source(file.name, content)
    try:
        with tempfile.NamedTemporaryFile(dir=reading.uploads_folder(), delete=False) as written:
            path = Path(written.name)
            source = Source(file.name, path)
            weakref.finalize(source, path.unlink, missing_ok=True)
            written.write(content)
    except OSError:
        return Source(file.name, content)
    context = get_script_run_ctx()
    if context is not None and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)
    # The session's state keeps this one until the next redraw.
    file.truncate(0)
    return source


def _listed(files: Any) -> Sequence[Any]:
    if files is None:
        return ()
    return files if isinstance(files, list) else [files]
