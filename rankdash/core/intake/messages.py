"""What the reading process answers, as JSON and back: a question or an error stays what it was.

Not pickled: what a file made of the process must not run in the server.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base import errors
from rankdash.core.base.errors import Phrase, RankdashError
from rankdash.core.base.findings import Finding
from rankdash.core.intake.keeping import Kept
from rankdash.core.readers import BaselineNeeded, Guess, MappingNeeded, WordsNeeded
from rankdash.core.readers.parse.values import Word
from rankdash.core.workspace.workspace_file.merge_rows import TakenIn

Outcome = Kept | TakenIn | list[Guess] | RankdashError
"""What becomes of files: a data set, the content of a workspace file, guesses, or an error."""

_ERRORS: dict[str, type[RankdashError]] = {
    kind.__name__: kind
    for kind in (*vars(errors).values(), MappingNeeded, WordsNeeded, BaselineNeeded)
    if isinstance(kind, type) and issubclass(kind, RankdashError)
}


def answer_of(outcome: Outcome) -> str:
    """What became of the files, as JSON."""
    if isinstance(outcome, list):
        return json.dumps([_plain(vars(guess)) for guess in outcome])
    if isinstance(outcome, TakenIn):
        findings = [_plain(vars(finding)) for finding in outcome.findings]
        return json.dumps({**vars(outcome), "findings": findings})
    return json.dumps(asdict(outcome) if isinstance(outcome, Kept) else _plain(outcome))


def outcome_of(answer: str) -> Outcome:
    """What `answer_of` wrote."""
    content = json.loads(answer)
    if isinstance(content, list):
        return [Guess(**_fields(each)) for each in content]
    if "error" in content:
        error: RankdashError = _made(content)
        return error
    if "findings" in content:
        findings = [Finding(**_fields(each)) for each in content["findings"]]
        return TakenIn(content["datasets"], Counter(content["added"]), findings)
    return Kept(content["dataset_id"], content["was_here"], tuple(content["added"]))


def _plain(value: object) -> Any:
    """What JSON can say, each kind of value under its name."""
    match value:
        case Phrase():
            return {"phrase": value.template, "params": _plain(value.params)}
        case RankdashError():
            # One of a class that only a reader knows is the nearest that all know.
            kind = next(each.__name__ for each in type(value).__mro__ if each.__name__ in _ERRORS)
            return {"error": kind, "fields": _plain(vars(value))}
        case Word():
            return {"word": asdict(value)}
        case pd.DataFrame():
            return {"table": value.to_dict("split", index=False)}
        case Mapping():
            return {"fields": {str(name): _plain(each) for name, each in value.items()}}
        case list() | tuple():
            return [_plain(each) for each in value]
        case np.generic():
            return value.item()
        case str() | int() | float() | None:
            return value
    return str(value)


def _made(value: Any) -> Any:
    """What `_plain` was given; a tuple comes back as a list."""
    match value:
        case {"phrase": template, "params": params}:
            return Phrase(template, **_made(params))
        case {"error": kind, "fields": fields}:
            error = _ERRORS[kind].__new__(_ERRORS[kind])
            vars(error).update(_made(fields))
            return error
        case {"word": fields}:
            return Word(**fields)
        case {"table": table}:
            return pd.DataFrame(table["data"], columns=table["columns"], dtype="str")
        case {"fields": fields}:
            return {name: _made(each) for name, each in fields.items()}
        case list():
            return [_made(each) for each in value]
    return value


def _fields(plain: Any) -> dict[str, Any]:
    """The fields of a dataclass whose lists are tuples."""
    return {
        name: tuple(each) if isinstance(each, list) else each for name, each in _made(plain).items()
    }
