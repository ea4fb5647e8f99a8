"""Estimates from sampled labels, which `compare` and `evaluate` write in place of means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from rankdash.core.study.drawn import estimate_of
from rankdash.core.study.study import Study
from rankdash.features.judge.words_judged import judged_lines
from rankdash.features.label.words_estimates import estimate_sentences, labelling_sentences
from rankdash.kit.commands.output import csv_line, exact, one_line
from rankdash.kit.html.tables import markdown_safe

_COLUMNS = (
    *("baseline", "challenger", "metric", "state", "difference", "low", "high"),
    *("relative", "relative_low", "relative_high", "level", "queries"),
    *("labels", "known", "pairs", "conclusive_at"),
)


def written(study: Study, form: str) -> Iterator[str]:
    """Write the estimates, and the verdict of a judge corrected by people.

    form: "text", "markdown", "latex" (comments) or "csv" (a row for each estimate; no value is an
    empty cell).
    """
    if form == "csv":
        yield csv_line(_COLUMNS)
        for found in () if study.labelling is None else study.labelling.estimates:
            values = asdict(found)
            yield csv_line([_cell(values[name]) for name in _COLUMNS])
        return
    for line in [*judged_lines(study), *sampled_lines(study)]:
        said = one_line(line)
        if form == "markdown":
            yield f"{markdown_safe(said)}\n\n"
        else:
            yield f"% {said}\n" if form == "latex" else f"{said}\n"


def sampled_lines(study: Study) -> list[str]:
    """Return what sampled labels say, a line each."""
    return [] if study.labelling is None else labelling_sentences(study.labelling)


def headline_of(study: Study, challenger: str) -> dict[str, str]:
    """Return the kind of verdict that the labels of a challenger allow, and its sentence."""
    found = estimate_of(study, challenger)
    if found is None:
        return {"by": "estimate", "kind": "too_few", "sentence": sampled_lines(study)[0]}
    sentence = " ".join(estimate_sentences(found))
    return {"by": "estimate", "kind": found.kind, "sentence": sentence}


def _cell(value: object) -> str:
    if value is None:
        return ""
    return exact(value) if isinstance(value, float) else str(value)
