"""Options of commands from `rankdash.toml`, or `[tool.rankdash]` in `pyproject.toml`, in the
current folder.

A key is the name of an option, such as `baseline` or `max_hurt`, and applies to every command that
has the option. A table `[gate]`, `[evaluate]`, `[compare]` or `[report]` applies to that command
only and takes precedence; typed options take precedence over both. The parsers define keys and
types. Paths are relative to the file, in whose folder the command runs.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rankdash.core.base.errors import DataError
from rankdash.core.base.files import from_toml, guarded, text_of
from rankdash.kit.commands import registry
from rankdash.kit.commands.arguments import Parser, described
from rankdash.kit.commands.output import STANDARD, printable

COMMANDS = [each for each in ("gate", "evaluate", "compare", "report") if each in registry.COMMANDS]

_FILE, _PROJECT = "rankdash.toml", "pyproject.toml"


def apply(command: str, parser: Parser, typed: Sequence[str]) -> None:
    """Use the settings of the file as defaults of a command's parser, and report them on standard
    error.

    typed: the arguments of the command; they take precedence over the file.

    Raises DataError, with file and key, for an unknown key, a wrong type and a missing file.
    """
    file, content = ("", {}) if {"-h", "--help"} & {*typed} else _content()
    if content:
        with _guarded(file):
            _apply(file, content, command, parser, typed)


def _guarded(file: str) -> AbstractContextManager[None]:
    return guarded(
        file,
        "The settings cannot be read: {reason}.",
        'Use TOML with lines such as: qrels = "qrels.tsv"',
    )


def _apply(
    file: str, content: Mapping[str, Any], command: str, parser: Parser, typed: Sequence[str]
) -> None:
    parsers = {name: parser if name == command else _parser_of(name) for name in COMMANDS}
    allowed = {name: options(each) for name, each in parsers.items()}
    tables = {name: _table(file, name, content.get(name, {})) for name in COMMANDS}
    shared = {key: value for key, value in content.items() if key not in COMMANDS}
    _refuse_unknown(file, shared, {key for options in allowed.values() for key in options})
    for name, table in tables.items():
        _refuse_unknown(file, table, allowed[name], f" in [{name}]")
    actions = allowed[command]
    in_file = {
        actions[key].dest for key in map(_plain, (*tables[command], *shared)) if key in actions
    }
    used = _typed(command, parser, typed, in_file)
    values: dict[str, Any] = {}
    for table in (tables[command], shared):
        keys: dict[str, str] = {}
        for key, value in table.items():
            action = actions.get(_plain(key))
            if action is None or _rivals(parser, action) & used:
                continue
            rival = next((keys[dest] for dest in _rivals(parser, action) if dest in keys), None)
            if rival is not None:
                raise _refused(
                    file,
                    key,
                    "{key!r} cannot be combined with {rival!r}",
                    remedy="Remove one, or move it into the table of a command, such as [gate].",
                    rival=rival,
                )
            keys[action.dest] = key
            values[action.dest] = _value(file, key, parser, action, value)
        used |= keys.keys()
    _make_defaults(parser, values)
    _report(file, command, [*tables[command], *shared], actions, values)


def _content() -> tuple[str, Mapping[str, Any]]:
    """Return the name of the file and its settings; "" and {} if there is none."""
    for file in (_FILE, _PROJECT):
        if not Path(file).is_file():
            continue
        with _guarded(file):
            text = text_of(Path(file).read_bytes())
            if file == _PROJECT and "rankdash" not in text:
                continue
            content: Any = from_toml(text)
        if file == _PROJECT:
            content = content.get("tool", {}).get("rankdash", {})
        return file, _table(file, "tool.rankdash", content)
    return "", {}


def _table(file: str, name: str, content: Any) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise _refused(file, name, "{key!r} must be a table, such as [{key}]")
    return content


def _parser_of(command: str, **settings: Any) -> Parser:
    parser = Parser(add_help=False, **settings)
    registry.put(command, parser)
    return parser


def options(parser: Parser) -> dict[str, argparse.Action]:
    """Return key → its option, for all spellings."""
    return {
        _plain(option.removeprefix("--")): action
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and action.dest != "help"
    }


def _plain(key: str) -> str:
    return key.replace("-", "_")


def _refuse_unknown(
    file: str, table: Mapping[str, Any], allowed: Collection[str], where: str = ""
) -> None:
    for key in table:
        if _plain(key) not in allowed:
            nearest = difflib.get_close_matches(_plain(key), sorted(allowed), n=1, cutoff=0.0)[0]
            raise _refused(
                file,
                key,
                "There is no key {key!r}{where}",
                remedy="Did you mean {nearest!r}?",
                where=where,
                nearest=nearest,
            )


def _typed(
    command: str, parser: Parser, arguments: Sequence[str], in_file: Collection[str]
) -> set[str]:
    """Return the options that are typed, by their dest. in_file: options in the file."""
    bare = _parser_of(command, prog=parser.prog)
    for action in bare._actions:
        action.default, action.required = argparse.SUPPRESS, False
    for group in bare._mutually_exclusive_groups:
        group.required = False
    typed, _ = bare.parse_known_args(arguments)
    explicit = set(vars(typed))
    return explicit | set(parser.stands_for(typed, in_file)) if parser.stands_for else explicit


def _rivals(parser: Parser, action: argparse.Action) -> set[str]:
    """Return the option and the options that exclude it, by their dest."""
    groups = (group._group_actions for group in parser._mutually_exclusive_groups)
    return {action.dest, *(each.dest for group in groups if action in group for each in group)}


def _value(file: str, key: str, parser: Parser, action: argparse.Action, value: Any) -> Any:
    """Return the value that the option would have if it were typed."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise _wrong_type(file, key, "true or false", value)
        return action.const if value else parser.get_default(action.dest)
    if isinstance(value, dict) and _takes_pairs(action):
        value = [
            f"{name}={_item(file, f'{key}.{name}', action, each)}" for name, each in value.items()
        ]
    items = value if isinstance(value, list) else [value]
    if isinstance(action.default, list):
        return [_item(file, key, action, each) for each in items]
    return _item(file, key, action, items[0] if len(items) == 1 else value)


def _takes_pairs(action: argparse.Action) -> bool:
    """Return whether the values are conditions such as ndcg@10=0.8, or plain numbers."""
    return "=" in str(action.metavar)


def _kind(action: argparse.Action) -> tuple[tuple[type, ...], Callable[[Any], Any], str]:
    """Return the types that a value may have, the function that converts it, and a description."""
    if _takes_pairs(action):
        return (int, float, str), str, f"a number, or a text or table such as {action.metavar}"
    spec = described(action)
    if action.type is int or type(spec and spec.default) is int:
        return (int,), int, "a whole number"
    if action.type is float or (spec and not spec.choices):
        return (int, float), float, "a number"
    return (str,), str, "a text"


def _item(file: str, key: str, action: argparse.Action, value: Any) -> Any:
    types, convert, expected = _kind(action)
    if isinstance(value, bool) or not isinstance(value, types):
        listed = ", or a list of them" if isinstance(action.default, list) else ""
        raise _wrong_type(file, key, expected + listed, value)
    converted = convert(value)
    spec = described(action)
    choices = list(spec.choices) if spec else [str(each) for each in action.choices or ()]
    if choices:
        read = action.type if callable(action.type) and not spec else str
        if read(converted) not in choices:
            raise _wrong_type(file, key, f"one of {', '.join(choices)}", value)
    if action.metavar in ("FILE", "PATH") and action.dest != "out":
        _refuse_missing(file, key, converted)
    return converted


def _refuse_missing(file: str, key: str, path: str) -> None:
    from rankdash.core.readers.by_name.start import is_name

    if path != STANDARD and not Path(path).exists() and not is_name(path):
        raise _refused(
            file,
            key,
            "{key!r} names {path!r}, which does not exist",
            remedy="Paths are relative to this file.",
            path=path,
        )


def _make_defaults(parser: Parser, values: Mapping[str, Any]) -> None:
    parser.set_defaults(**values)
    for action in parser._actions:
        if action.dest in values:
            action.required = False
    for group in parser._mutually_exclusive_groups:
        if any(action.dest in values for action in group._group_actions):
            group.required = False


def _report(
    file: str,
    command: str,
    keys: Sequence[str],
    actions: Mapping[str, argparse.Action],
    values: Mapping[str, Any],
) -> None:
    used = dict.fromkeys(
        key for key in keys if _plain(key) in actions and actions[_plain(key)].dest in values
    )
    others = [key for key in keys if _plain(key) not in actions]
    line = f"Settings from {file}: {', '.join(used) or 'none'}"
    if others:
        line += f"; not used by {command}: {', '.join(others)}"
    sys.stderr.write(f"{printable(line)}\n")


def _wrong_type(file: str, key: str, expected: str, value: Any) -> DataError:
    return _refused(
        file,
        key,
        "{key!r} must be {expected}, not {value}",
        expected=expected,
        value=json.dumps(value, default=str, ensure_ascii=False),
    )


def _refused(file: str, key: str, template: str, *, remedy: str = "", **params: Any) -> DataError:
    return DataError(f"{template}.", remedy=remedy, file=file, key=key, **params)
