"""The reference of the Python interface, from its docstrings: a page of the site.

    python -m tests.api

prints it: functions first, then classes with their public methods and properties.
"""

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property

import rankdash as rd

_HEAD = """\
# Python reference

All names of `import rankdash as rd`, from their docstrings. [Python](python.md) has examples.
"""


def text() -> str:
    """Return the reference as Markdown."""
    values = [(name, getattr(rd, name)) for name in sorted(rd.__all__, key=str.lower)]
    functions = [each for each in values if inspect.isfunction(each[1])]
    classes = [each for each in values if inspect.isclass(each[1])]
    parts = [_HEAD, "\n## Functions\n"]
    parts += [_entry(f"rd.{name}", value, 3) for name, value in functions]
    parts.append("\n## Classes\n")
    for name, value in classes:
        parts.append(_entry(f"rd.{name}", value, 3))
        parts += [_entry(f"{name}.{own}", member, 4) for own, member in _members(value)]
    return "".join(parts)


def _members(value: type) -> Iterator[tuple[str, object]]:
    """Yield the public methods and properties that a class itself defines, if documented."""
    for name, member in vars(value).items():
        if isinstance(member, property | cached_property):
            function = member.fget if isinstance(member, property) else member.func
        elif isinstance(member, classmethod | staticmethod):
            function = member.__func__
        else:
            function = member
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            yield name, member if isinstance(member, property | cached_property) else function


def _entry(title: str, value: object, level: int) -> str:
    lines = inspect.cleandoc(getattr(value, "__doc__", None) or "").replace("\n    ", "\n")
    heading = f"\n{'#' * level} {title.partition('.')[2] if level == 3 else title}\n"
    return f"{heading}{_signature(title, value)}\n{_escaped(lines)}\n"


def _signature(title: str, value: object) -> str:
    """Return the call as code; "" for a property."""
    if isinstance(value, property | cached_property):
        return ""
    if inspect.isclass(value) and not dataclasses.is_dataclass(value):
        return ""
    signature = inspect.signature(value)
    arguments = [
        _shown(each) for each in signature.parameters.values() if each.name not in ("self", "cls")
    ]
    stars = [each.kind for each in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in stars and inspect.Parameter.VAR_POSITIONAL not in stars:
        arguments.insert(stars.index(inspect.Parameter.KEYWORD_ONLY), "*")
    joined = ", ".join(arguments)
    if len(joined) + len(title) > 88:
        joined = "\n" + "".join(f"    {each},\n" for each in arguments)
    return f"\n```python\n{title}({joined})\n```\n"


def _shown(parameter: inspect.Parameter) -> str:
    """Return a parameter with its type and default."""
    name = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    kind = re.sub(r"^'|'$", "", str(parameter.annotation))
    shown = f"{name}{parameter.name}: {kind}" if kind and "class" not in kind else parameter.name
    if parameter.default is not parameter.empty:
        default = repr(parameter.default)
        shown += f" = {default}" if len(default) < 40 and "<" not in default else " = …"
    return shown


def _escaped(text: str) -> str:
    """Return the text for Markdown: no asterisks of emphasis."""
    return text.replace("*", r"\*")


if __name__ == "__main__":
    sys.stdout.write(text())
