"""Limits of uploads: only sessions whose page shows an upload field may upload, up to a limit per
session and one for all. Streamlit itself accepts every upload, stores it in memory, and frees it
minutes after the browser has left."""

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
"""The time for which the uploads of a closed browser stay: it may have lost its connection."""

IDLE_SECONDS = 60.0
"""The time after which a stalled upload is refused."""

_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+$")
_MEGABYTE = 1 << 20
# The overhead of a request around the file.
_FRAME_BYTES = _MEGABYTE
# A field for small files may be cleared and filled again.
_LEAST_BYTES = 10 * _MEGABYTE
# The limit of all sessions, as a multiple of the limit of one.
_SESSIONS = 2
_KEPT = "upload_limits.fields"
_LIMIT = '[data-testid="stFileUploaderDropzoneInstructions"] span'
_STOPPED = "The upload stopped. Add the file again.\n"
_NO_FIELD = "The page has no upload field. Reload the page, then add the file again.\n"
_TOO_LARGE = "The file is larger than the limit of {most:,.0f} MB.\n"
_FULL = (
    "Too many uploads are waiting on the server (limit: {most:,.0f} MB). Add fewer files at a "
    "time, or try again in a minute.\n"
)


class _Fields:
    """The upload fields of a session's page. most: the size limit of a file in bytes; 0 without a
    field."""

    def __init__(self) -> None:
        self.most = 0
        self.drawn = 0


# By session; each entry lives as long as the session's state.
_of_sessions: WeakValueDictionary[str, _Fields] = WeakValueDictionary()


class _RefusedError(Exception):
    """The refusal of an upload."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.answer = PlainTextResponse(text, status_code=status)


class UploadLimits:
    """Middleware that refuses uploads that no field requests or that are too large; other requests
    pass."""

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
        reserved = arrived = 0

        def reserve(size: int) -> None:
            """Reserve this number of bytes for the upload."""
            nonlocal reserved
            self._arriving[session] += size - reserved
            reserved = size
            self._check(session, size)

        async def counted() -> Message:
            nonlocal arrived
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    message = await receive()
            except TimeoutError as error:
                raise _RefusedError(408, _STOPPED) from error
            arrived += len(message.get("body", b""))
            if arrived > reserved:
                reserve(arrived)
            return message

        async def answered(message: Message) -> None:
            nonlocal reserved
            # Streamlit has stored or refused the file by now.
            self._arriving[session] -= reserved
            reserved = 0
            await send(message)

        answer = None
        try:
            reserve(_declared(scope))
            await self._app(scope, counted, answered)
        except _RefusedError as error:
            answer = error.answer
        finally:
            self._arriving[session] -= reserved
            if not self._arriving[session]:
                del self._arriving[session]
        if answer is not None:
            await answer(scope, receive, send)

    def _check(self, session: str, size: int) -> None:
        """Raise _RefusedError if an upload of this size is not accepted."""
        fields = _of_sessions.get(session)
        most = 0 if fields is None else fields.most
        if not most:
            raise _RefusedError(403, _NO_FIELD)
        if size > most + _FRAME_BYTES:
            raise _RefusedError(413, _TOO_LARGE.format(most=most / _MEGABYTE))
        used = _stored_bytes() + self._arriving
        frames = _FRAME_BYTES * len(self._arriving)
        for total, limit in (
            (used[session], max(most, _LEAST_BYTES)),
            (used.total(), _SESSIONS * _most_bytes()),
        ):
            if total > limit + frames:
                raise _RefusedError(413, _FULL.format(most=limit / _MEGABYTE))


def field(megabytes: int | None = None) -> None:
    """Accept uploads of this session, whose page draws a field. megabytes: the size limit of a
    file; None for the server's limit."""
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
    """Reset the fields before a page is drawn."""
    _fields().drawn = 0


def end_page() -> None:
    """Finish a page: without a field on it, no upload is accepted, and stored ones are freed."""
    fields = _fields()
    fields.most = fields.drawn
    context = get_script_run_ctx()
    if context is not None and not fields.most:
        context.uploaded_file_mgr.remove_session_files(context.session_id)


def _fields() -> _Fields:
    """Return the fields of the current session."""
    fields: _Fields = st.session_state.setdefault(_KEPT, _Fields())
    context = get_script_run_ctx()
    if context is not None:
        _of_sessions[context.session_id] = fields
    return fields


def _most_bytes() -> int:
    return int(st.get_option("server.maxUploadSize")) * _MEGABYTE


def _declared(scope: Scope) -> int:
    """Return the declared length of a request; 0 if there is none."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length) if length.isdigit() else 0


def _stored_bytes() -> Counter[str]:
    """Return session → the bytes of its uploads in memory."""
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
    """Return session → file → its record, as Streamlit stores them."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return manager.file_storage if isinstance(manager, MemoryUploadedFileManager) else {}


# Uploaded files on disk: Streamlit stores them in the server's memory for the whole session, and
# copies them there at each redraw.

_HELD = "uploaded.held"
# In bytes: smaller files stay in memory.
_SMALL = 1_000_000


def uploader(label: str, key: str, **settings: Any) -> tuple[Source, ...]:
    """Draw an upload field; return its current files. They stay on disk as long as their sources
    are referenced.

    key: of the field; a new part after its last dot clears it. settings: of `st.file_uploader`.
    """
    field()
    st.file_uploader(label, key=key, on_change=_move_to_disk, args=(key,), **settings)
    # Streamlit omits files that it no longer has.
    files = _listed(st.session_state.get(key))
    uploaded = _uploaded()
    sources = uploaded.pop(key, {})
    for other in [each for each in uploaded if each.rpartition(".")[0] == key.rpartition(".")[0]]:
        del uploaded[other]
    uploaded[key] = {
        each.file_id: sources[each.file_id] for each in files if each.file_id in sources
    }
    return tuple(uploaded[key].values())


def _uploaded() -> dict[str, Mapping[str, Source]]:
    """Return field → file → its source."""
    uploaded: dict[str, Mapping[str, Source]] = st.session_state.setdefault(_HELD, {})
    return uploaded


def _move_to_disk(key: str) -> None:
    """Move uploaded files out of Streamlit's memory, before it makes the first copy."""
    before = _uploaded().get(key, {})
    sources: dict[str, Source] = {}
    for file in _listed(st.session_state.get(key)):
        if file.file_id in before:
            sources[file.file_id] = before[file.file_id]
        elif isinstance(file, UploadedFile):
            sources[file.file_id] = _stored(file)
    _uploaded()[key] = sources


def _stored(file: UploadedFile) -> Source:
    """Store a file on disk as long as it is referenced; in memory if it is small, or if the disk is
    full, which reading it reports."""
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
    # The session's state references this one until the next redraw.
    file.truncate(0)
    return source


def _listed(files: Any) -> Sequence[Any]:
    if files is None:
        return ()
    return files if isinstance(files, list) else [files]
