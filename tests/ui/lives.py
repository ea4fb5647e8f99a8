"""Lives of pages: steps on a page and the changes of its text after each, repeated by tests.

Each file `tests/approved/lives/*/*.txt` is a life. The start of a line gives its kind:

    # the reason for the next steps
    > rows.csv       a file of the lines with | below it; \\t is a tab
    * NAME …         an act of the test module, with arguments; it may open an app
    $ LABEL          clicks a button; a part of its key matches as well
    $ LABEL = VALUE  sets a field; JSON, or else text
    ? TEXT …         prints the lines of the page that contain one of these words, or "a b"

The changes of the page follow: removed lines (-), added lines (+), and (=) facts that the test
module reports, such as the stored values.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from streamlit.testing.v1 import AppTest

from tests.approved import FOLDER
from tests.results import shown
from tests.ui.page_text import page_text
from tests.ui.parts import unlike

Facts = Mapping[str, Callable[[], object]]


def lives(folder: str) -> list[str]:
    """Return the names of the approved texts in a folder of lives."""
    return sorted(f"lives/{folder}/{file.stem}" for file in (FOLDER / "lives" / folder).iterdir())


def play(
    name: str,
    acts: Mapping[str, Callable[..., AppTest | None]],
    facts: Facts,
    mask: Callable[[str], str] = str,
    *,
    sidebar: bool = False,
) -> str:
    """Run the steps of a life and return it with the present changes.

    acts: by name; "file" receives a name and the content of a file. If an act returns an app, the
    next steps use this app; otherwise the page is rerun. sidebar: include the sidebar's text.
    """
    steps = [line for line in (FOLDER / f"{name}.txt").read_text("utf-8").splitlines()
             if line[:1].strip()]  # fmt: skip
    written, app, page = [], None, ""
    known: dict[str, str] = {}
    for at, line in enumerate(steps):
        written += [""] * (line[0] == "#" and at > 0) + [line]
        kind, step, now, fresh = line[0], line[2:], page, False
        if kind == ">":
            rows = takewhile(lambda each: each.startswith("|"), steps[at + 1 :])
            acts["file"](step, "".join(f"{each[2:]}\n" for each in rows).replace("\\t", "\t"))
        elif kind == "*":
            act, *given = shlex.split(step)
            opened, was = acts[act](*given), app
            app = opened or (app and app.run())
            fresh = app is not was
        elif kind == "$":
            assert app is not None
            _use(app, step)
        elif kind == "?":
            words = shlex.split(step)
            found = [each for each in page.split("\n") if any(word in each for word in words)]
            written += [f"    {each.strip()}" for each in found or ["(nothing)"]]
        if app is not None and kind in "*$":
            assert not app.exception, (name, line, app.exception[0].message)
            toasts = [f"[toast] {each.value}" for each in app.toast]
            now = "\n".join([page_text(app, sidebar, charts=False), *toasts])
            now = re.sub(
                r"(?s)(\[file_uploader\] [^\n]*?): \[?U.*?\n *\)\]?(?=\n|\Z)", r"\1: …", now
            )
            now = mask(re.sub(r"(?m)^( *\[button\] .*): True", r"\1", now))
        if kind in "*$" and page and now != page and not fresh:
            written += _changes(page, now)
        page = now
        for fact, tell in facts.items() if kind in "*$" else ():
            told = mask(shown(tell()))
            if told != known.get(fact):
                written += [f"    = {fact}: {each}" for each in told.split("\n")]
            known[fact] = told
    return "\n".join(written) + "\n"


def _changes(before: str, now: str) -> list[str]:
    """Return the first lines of those removed and of those added."""
    lines = unlike(before, now).split("\n")
    gone = [each for each in lines if each.startswith("- ")]
    came = [f"+ {each}" for each in lines if not each.startswith("- ")]
    more = [f"- … {len(gone) - 3}"] * (len(gone) > 3)
    more += came[:12] + [f"+ … {len(came) - 12}"] * (len(came) > 12)
    return [f"    {each}" for each in (*gone[:3], *more) if each.strip("+ ")]


def _use(app: AppTest, step: str) -> None:
    label, equals, text = step.partition(" = ")
    field = _named(app, label, "set_value" if equals else "click")
    if not equals:
        field.click().run()
        return
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    field.set_value(value)
    # A form sends its fields only when its button is clicked.
    if not getattr(field.proto, "form_id", ""):
        field.run()


def _named(app: AppTest, label: str, method: str) -> Any:
    """Return the field with this label or key. If there is none, its label may start with `label`,
    or its key contain it."""
    found = [each for each in (*_nodes(app.main), *_nodes(app.sidebar)) if hasattr(each, method)]
    names = [tuple(str(getattr(each, name, None)) for name in ("key", "label")) for each in found]
    for fits in (str.__eq__, str.startswith, lambda name, part: f".{part}" in name):
        for field, own in zip(found, names, strict=True):
            if any(fits(name.replace("\\", ""), label) for name in own):
                return field
    raise AssertionError(f"{label!r} is none of {names}")


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.children.values():
        yield node
        if hasattr(node, "children"):
            yield from _nodes(node)
