"""Generates the reference of all commands from their parsers:

python -m rankdash.app.reference > docs/commands.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator

from rankdash.kit.commands import settings_file
from rankdash.kit.commands.arguments import FORMATS, Parser
from rankdash.kit.commands.examples import EXAMPLES
from rankdash.kit.commands.registry import COMMANDS, put

_HEAD = """\
<!-- Written by: python -m rankdash.app.reference > docs/commands.md -->

# Commands

The output of `COMMAND --help` for all commands. Exit code 2 means that nothing could be done; one
line on standard error contains the problem, its location and a remedy.

`-` as a file name means standard input or standard output. Each command supports
some of the formats {formats}.
"""
_SETTINGS = """\
## rankdash.toml

{commands} read options from `rankdash.toml` in the current folder, or else from the table
`[tool.rankdash]` of `pyproject.toml` there. A key is the name of an option, without the dashes in
front. It applies to every command that has the option; in a table such as `[gate]` or
`[tool.rankdash.gate]` it applies to that command only and takes precedence. Typed options take
precedence over the file.

An option that may be repeated accepts one value or a list; a condition also a table, such as
`min = {{"ndcg@10" = 0.8}}`; a switch `true` or `false`. Paths are relative to the file.

| key | commands |
| --- | --- |
"""


def text() -> str:
    """Return the reference as Markdown. It depends only on the parsers, not on the terminal."""
    return "".join(_parts())


def _parts() -> Iterator[str]:
    yield _HEAD.format(formats=_listed(FORMATS))
    parsers = {name: Parser(add_help=False) for name in COMMANDS}
    for name, parser in parsers.items():
        put(name, parser)
        yield f"\n## {name}\n\n"
        yield from _command(name, parser)
    yield "\n" + _SETTINGS.format(commands=_listed(settings_file.COMMANDS))
    keys: dict[str, list[str]] = {}
    for name in settings_file.COMMANDS:
        for key in settings_file.options(parsers[name]):
            keys.setdefault(key, []).append(name)
    for key, names in keys.items():
        yield f"| `{key}` | {', '.join(names)} |\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"{parser.description}\n"
    actions = [each for each in parser._actions if not isinstance(each, argparse._HelpAction)]
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            for part, below in action.choices.items():
                yield f"\n### {name} {part}\n\n"
                yield from _command(f"{name} {part}", below)
            return
    if examples := "\n".join(EXAMPLES.get(name, ())):
        yield f"\n```text\n{examples}\n```\n"
    yield "\n" if actions else ""
    yield from (f"- {_spelled(action)}: {_explained(action)}\n" for action in actions)
    if isinstance(parser, Parser) and parser.closing is not None:
        yield f"\n```text\n{parser.closing()}\n```\n"


def _spelled(action: argparse.Action) -> str:
    """Return an option in Markdown: all its spellings, each with its value."""
    value = action.metavar or "|".join(map(str, action.choices or ()))
    if action.nargs in ("+", "*"):
        value = f"{value} …"
    if not action.option_strings:
        return f"`{value}`"
    return ", ".join(f"`{f'{option} {value}'.rstrip()}`" for option in action.option_strings)


def _explained(action: argparse.Action) -> str:
    help_text = (action.help or "") % vars(action)
    return f"{help_text} (required)" if action.required and action.option_strings else help_text


if __name__ == "__main__":
    sys.stdout.write(text())
