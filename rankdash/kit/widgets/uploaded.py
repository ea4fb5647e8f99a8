"""Files that a visitor gives, on disk: Streamlit holds them in the server's memory for the whole
session, and copies them there at each redraw."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from rankdash.core.intake import place
from rankdash.core.readers import Source
from rankdash.kit.widgets import upload_limits

_HELD = "uploaded.held"
# Bytes: less is no burden.
_SMALL = 1_000_000


def uploader(label: str, key: str, **settings: Any) -> tuple[Source, ...]:
    """Draw a field for files; those that are in it now. They stay on disk as long as anything holds
    their sources.

    key: of the field; another behind its last dot empties it.
    settings: of `st.file_uploader`.
    """
    upload_limits.field()
    st.file_uploader(label, key=key, on_change=_take, args=(key,), **settings)
    # Streamlit leaves out of its answer what it no longer has.
    given = _listed(st.session_state.get(key))
    held = _held()
    own = held.pop(key, {})
    for other in [each for each in held if each.rpartition(".")[0] == key.rpartition(".")[0]]:
        del held[other]
    held[key] = {each.file_id: own[each.file_id] for each in given if each.file_id in own}
    return tuple(held[key].values())


def _held() -> dict[str, Mapping[str, Source]]:
    """Field → file → its source."""
    found: dict[str, Mapping[str, Source]] = st.session_state.setdefault(_HELD, {})
    return found


def _take(key: str) -> None:
    """Take what was given off Streamlit, before it makes the first copy."""
    before = _held().get(key, {})
    taken: dict[str, Source] = {}
    for file in _listed(st.session_state.get(key)):
        if file.file_id in before:
            taken[file.file_id] = before[file.file_id]
        elif isinstance(file, UploadedFile):
            taken[file.file_id] = _stored(file)
    _held()[key] = taken


def _stored(file: UploadedFile) -> Source:
    """On disk until nothing holds it; in memory where it is small, or the disk is full, which
    reading it says."""
    content = file.getvalue()
    if file.size <= _SMALL:
        return Source(file.name, content)
    try:
        with tempfile.NamedTemporaryFile(dir=place.folder(), delete=False) as written:
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


def _listed(given: Any) -> Sequence[Any]:
    if given is None:
        return ()
    return given if isinstance(given, list) else [given]
