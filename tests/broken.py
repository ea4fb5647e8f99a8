"""JSON that rankdash did not write, and plain words that replace the markup of `tests.marked`."""

import json
from collections.abc import Iterator


class Words:
    """Plain texts that replace markup; no two are equal."""

    def __init__(self) -> None:
        self.made = 0

    def text(self, place: str) -> str:
        self.made += 1
        return f"{place} {self.made}"

    short = text


def broken(text: str) -> Iterator[tuple[str, str]]:
    """Yield (kind of error, JSON) of values that replace a stored one."""
    value = json.loads(text)
    keys = list(value) if isinstance(value, dict) else []
    for key in keys:
        yield f"without {key}", json.dumps({k: v for k, v in value.items() if k != key})
        yield f"emptied {key}", json.dumps(value | {key: type(value[key])()})
        yield f"odd {key}", json.dumps(value | {key: ODD.get(type(value[key]), "odd")})
    if keys:
        for name, other in OTHERS.items():
            yield f"all {name}", json.dumps(dict.fromkeys(keys, other))
        yield "one more", json.dumps(value | {"more": "more"})
        yield "deep inside", json.dumps(value)[:-1] + f', "deep": {DEEP}}}'
    else:
        yield "of null", "[null]"
        yield "of objects", '[{"a": 1}]'
    yield "empty object", "{}"
    yield "empty list", "[]"
    yield from NEVER.items()


DEEP = "[" * 100_000 + "]" * 100_000
ODD = {int: -7, float: -1e300, list: ["odd"], dict: {"odd": 1}}
OTHERS = {"null": None, "lists": [["x"]], "objects": {"a": {"b": 1}}, "texts": "x{y", "numbers": -7}
NEVER = {"null": "null", "a number": "1e999", "a text": '"x"', "not JSON": '{"a": ', "deep": DEEP}
"""Values that no column can contain."""
WRONG = (
    *(f"all {name}" for name in OTHERS),
    *("one more", "deep inside", "of null", "of objects", "empty object", "empty list"),
    *NEVER,
)
