"""The settings of a judge: a language model that grades documents."""

from __future__ import annotations

from typing import Literal, get_args

from rankdash.core.rerankers.remote import call_settings, prompts
from rankdash.core.rerankers.remote.chat import CONNECTION, SAYING
from rankdash.core.rerankers.settings import SettingSpec

Combine = Literal["median", "majority"]

COMBINE: tuple[Combine, ...] = get_args(Combine)
GRADED, BINARY = prompts.JUDGE["graded"], prompts.JUDGE["binary"]

MOST_REPEATS = 15

SETTINGS: tuple[SettingSpec, ...] = (
    *CONNECTION,
    SettingSpec(
        "prompt",
        str(GRADED["prompt"]),
        "Prompt",
        "Must contain {query} and {document}, and may contain {guidelines}; each is put between "
        "marks that it cannot contain. It must ask for the reason first and then for a last line "
        "such as Grade: 2.",
        lines=12,
    ),
    SettingSpec(
        "top",
        int(GRADED["top"]),
        "Highest grade",
        "The top of the scale that the prompt describes; the lowest grade is 0.",
        within=(1, 100),
    ),
    SettingSpec(
        "guidelines",
        "",
        "Guidelines",
        "What people who label go by; the judge is told the same.",
        lines=3,
    ),
    SettingSpec(
        "repeats",
        1,
        "Repeats",
        "How often each pair is asked. More than once shows how far the judge agrees with itself.",
        within=(1, MOST_REPEATS),
    ),
    SettingSpec(
        "combine",
        "median",
        "Grade of several repeats",
        "median: the lower median. majority: the most frequent grade, the lowest of equally "
        "frequent ones.",
        choices=COMBINE,
        advanced=True,
    ),
    *SAYING,
    *call_settings.SENDING,
)
