"""What a downloaded file is called, and its language.

One rule for every file: a document for people (the report, the page of one query, the charts) is in
the language of the interface; a table or a file for a program (CSV, JSON, Parquet, TREC, Markdown,
LaTeX) is in English, with the same names of columns for every data set.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace

from rankdash.core.base.i18n import speaking
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, first_stage_name, numbered

_LONGEST = 40


def file_name(data: str, what: str, suffix: str) -> str:
    """Such as "rankdash_help-centre_queries.csv". Only letters, digits and dashes of a name from
    outside are in it, so it is never a path.

    data: the name of the data set. what: what is in the file. suffix: without its dot.
    """
    return "_".join(part for part in ("rankdash", _safe(data), _safe(what)) if part) + f".{suffix}"


def english(study: Study) -> Study:
    """The study for files in English: with the English name of the first stage, unless a file gave
    it one of its own. Call it in the language that the study was made in."""
    if study.systems[FIRST_STAGE].name != first_stage_name(study.dataset):
        return study
    with speaking("en"):
        named = first_stage_name(study.dataset)
    systems = (
        replace(system, name=named) if system.id == FIRST_STAGE else system
        for system in study.systems.values()
    )
    return replace(study, systems=numbered(systems))


def _safe(text: str) -> str:
    flat = unicodedata.normalize("NFC", text)
    return re.sub(r"[\W_]+", "-", flat)[:_LONGEST].strip("-").lower()


@dataclass(frozen=True)
class ZipPart:
    """One file. make raises RankdashError where it cannot be made."""

    name: str
    what: str
    make: Callable[[], bytes]
