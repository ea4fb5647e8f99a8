"""`rerankers`: every reranker with its settings."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from rankdash.core.base.errors import SettingError
from rankdash.core.rerankers import RerankerKind, add_plugins, get, kinds, problems, unknown_kind
from rankdash.core.rerankers.kinds.precomputed import Precomputed
from rankdash.kit.commands.arguments import DONE, Parser, add_plugin, settings_lines
from rankdash.kit.commands.output import one_line


def add(parser: Parser) -> None:
    parser.description = (
        "List every reranker that `rerank` takes, with its settings and their defaults."
    )
    add_plugin(parser)
    parser.formats(("text", "json"))
    parser.set_defaults(command=_rerankers)


def _rerankers(arguments: argparse.Namespace) -> int:
    use_plugins(arguments.plugin)
    if arguments.format == "json":
        sys.stdout.write(json.dumps(rerankers_by_name(), indent=2) + "\n")
    else:
        sys.stdout.write(describe_rerankers() + "\n")
    return DONE


def use_plugins(files: Sequence[str]) -> None:
    """Add plugins from files, and say on standard error which plugins are not loaded."""
    add_plugins(files)
    for problem in problems():
        sys.stderr.write(f"warning: {one_line(str(problem))}\n")


def reranker_kind(name: str) -> RerankerKind:
    """As `get`, but what an unknown name is answered with are those that can be made here."""
    try:
        return get(name)
    except SettingError as problem:
        raise unknown_kind(name, [kind.name for kind in _makeable()]) from problem


def _makeable() -> list[RerankerKind]:
    """All but rankings from files, which no setting can make."""
    return [kind for kind in kinds() if kind.name != Precomputed.name]


def describe_rerankers() -> str:
    """Every reranker with its settings, for the help text."""
    lines = ["rerankers and their settings (--set key=value):"]
    for kind in _makeable():
        lines.append(f"  {kind.name}: {kind.meaning}")
        lines += settings_lines(kind.settings, "    ")
    return "\n".join(lines)


def rerankers_by_name() -> dict[str, object]:
    """Reranker → what it is and its settings, fit for JSON."""
    return {
        kind.name: {
            "title": kind.title,
            "meaning": kind.meaning,
            "settings": {
                spec.name: {
                    "default": spec.default,
                    "help": spec.help,
                    "choices": list(spec.choices),
                    "range": spec.range,
                }
                for spec in kind.settings
            },
        }
        for kind in _makeable()
    }
