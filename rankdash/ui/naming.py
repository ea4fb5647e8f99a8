"""Names that tell things apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def free(name: str, taken: Collection[str]) -> str:
    """The name itself, or with the first number that nobody has: "BM25 (2)"."""
    numbered = (name, *(f"{name} ({n})" for n in range(2, len(taken) + 3)))
    return next(each for each in numbered if each not in taken)


def distinct(labels: Mapping[str, str]) -> dict[str, str]:
    """option → label, numbered where two are alike: a widget finds the chosen option by its label,
    so one of two equal ones could never be chosen."""
    result: dict[str, str] = {}
    for option, label in labels.items():
        result[option] = free(label, result.values())
    return result
