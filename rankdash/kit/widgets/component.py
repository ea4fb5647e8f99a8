"""Browser components of rankdash, and parts of a page that are drawn once they are in sight.

A component is a folder with `index.js`, an ES module, and `style.css`, without a build step. Python
sends it data as JSON; it shows texts only as text, and sends events back, which Python handles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.study import Study
from rankdash.kit.widgets import address, cache, pickers, sharing_link, view

_SEEN = "in_view.seen"
# True while the whole page runs, not only a fragment.
_WHOLE = "in_view.whole"


# Runs the script of a component once another component has brought it.
_LOADER = """export default function (args) {
let leave, left = false;
const run = () => { if (!left) leave = window["NAME"](args); };
if (window["NAME"]) run();
else addEventListener("NAME", run, { once: true });
return () => { left = true; leave?.(); };
}"""


def component(folder: Path, js: str = "") -> Callable[..., None]:
    """Return a function that shows the component in a folder.

    It takes a key, the data (JSON), and `heard`, a callback for the value of the trigger `event`,
    which runs before the page. The value comes from a browser: it can be anything.

    js: replaces `index.js`.
    """
    show = st.components.v2.component(
        f"rankdash.{folder.name}",
        html="<div class='root'></div>",
        css=_compact((folder / "style.css").read_text("utf-8")),
        js=js or _script(folder),
    )

    def shown(key: str, data: object, heard: Callable[[Any], None]) -> None:
        def changed() -> None:
            # A removed component may trigger once more.
            event = st.session_state.get(key, {}).get("event")
            if event is None:
                return
            heard(event)
            context = get_script_run_ctx()
            running = None if context is None else context.fragment_ids_this_run
            if running and ThreadState.get().fragment_id not in running:
                # The browser sent events of several fragments together, and named only one.
                st.rerun()

        show(key=key, data=data, on_event_change=changed)

    return shown


def with_script_apart(folder: Path) -> tuple[Callable[[], None], Callable[..., None]]:
    """Return two functions for the component in a folder: the first sends its script, the second is
    as from `component`.

    Streamlit sends the script of a component with every change of its data. A large script is sent
    apart, outside of the fragment that changes the data.
    """
    name = f"rankdash.{folder.name}"
    run = _script(folder).replace("export default", f'window["{name}"] =', 1)
    show = st.components.v2.component(
        f"{name}_script",
        js=f'{run};\nexport default () => {{ dispatchEvent(new Event("{name}")); }}',
    )

    def send() -> None:
        with st.container(key=f"{folder.name}.script"):
            show(key=f"{name}_script", data={})

    return send, component(folder, _LOADER.replace("NAME", name))


def _script(folder: Path) -> str:
    return _compact((folder / "index.js").read_text("utf-8"))


def _compact(source: str) -> str:
    """Return a script or a style without indents and comment lines, because it is sent with every
    change of the data."""
    lines = (line.strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


_IN_VIEW = component(Path(__file__).with_name("in_view"))


def when_seen(
    study: Study, key: str, title: str, height: int, draw: Callable[[Study], None], *of: object
) -> None:
    """Draw the title of a part of a page, and the part as soon as it is in sight.

    A chart takes the browser a tenth of a second. Charts below the window would delay visible
    changes after a click. The part is a fragment: choices in it redraw only the part.

    title: "" for none. height: the pixels that are reserved until then. of: further arguments of
        the part, such as a challenger. If `of` or the study changes, a part of the first screen is
        redrawn with the page; a part below it waits until it is in sight again.
    """
    if title:
        st.header(title, anchor=False)
    st.session_state[_WHOLE] = True
    try:
        _part(replace(study), key, f"{cache.content(study)} {of}", height, draw)
    finally:
        del st.session_state[_WHOLE]


@st.fragment
def _part(study: Study, key: str, of: str, height: int, draw: Callable[[Study], None]) -> None:
    fragment_only = _WHOLE not in st.session_state
    seen = _seen().get(key, {})
    if seen.get("of") == of or seen.get("first"):
        draw(view.again(study) if fragment_only else study)
    else:

        def heard(event: Any) -> None:
            if isinstance(event, dict) and isinstance(event.get("width"), int):
                _seen()[key] = event

        words = _("This part is drawn once it is in sight.")
        _IN_VIEW(f"{key}.in_view", {"height": height, "of": of, "words": words}, heard)
    if fragment_only:
        address.publish()
        sharing_link.follow()
        pickers.mark_sent()


def columns(key: str, least: int, most: int) -> int:
    """Return how many columns of at least `least` pixels fit into the part with this key; `most` if
    its width is unknown."""
    width = _seen().get(key, {}).get("width", least * most)
    return min(max(int(width) // least, 1), most)


def _seen() -> dict[str, dict[str, Any]]:
    """Return key of a part → the browser's event when it was in sight."""
    seen: dict[str, dict[str, Any]] = st.session_state.setdefault(_SEEN, {})
    return seen
