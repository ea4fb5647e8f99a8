"""The TOML file of a nightly comparison. Paths in it are relative to its folder."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from rankdash.core.base.errors import DataError
from rankdash.core.base.files import from_toml, guarded, text_of
from rankdash.core.metrics import parse_measure
from rankdash.core.rerankers.remote.connection import Policy
from rankdash.core.statistics.nights import NightRule
from rankdash.core.value.targets import Goals
from rankdash.features.nightly.state import ENDING

WORKSPACE = "workspace"
"""The value of `pinned` for the run that is pinned in the workspace."""

_Texts = str | tuple[str, ...]
_Share = Annotated[float, Meta(ge=0, le=1)]


class _Values(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of the file."""

    data: _Texts
    endpoint: str = ""
    run: _Texts = ()
    timings: _Texts = ()
    pinned: _Texts = ()
    metrics: _Texts = ()
    profile: str = ""
    alpha: Annotated[float, Meta(gt=0, le=0.5)] = NightRule.alpha
    smallest: Annotated[float, Meta(gt=0, le=1)] = NightRule.smallest
    nights_per_year: Annotated[int, Meta(ge=1, le=100_000)] = NightRule.per_year
    depth: Annotated[int, Meta(ge=1, le=10_000)] = 50
    repeat: Annotated[int, Meta(ge=1, le=20)] = 2
    state: str = "nights.jsonl"
    workspace: str = ""
    max_failed: _Share = 0.05
    max_p95_ms: Annotated[float, Meta(gt=0)] | None = None
    requests: dict[str, Any] = {}


class Config:
    """The settings of a nightly comparison.

    data: the files or the folder of the data set; its name or id if there is a workspace.
    endpoint: the file of a search endpoint, or else run: the run files of a night, one for each
        fetch; {date} is the date. timings: the states and latencies of these runs.
    pinned: the run files to compare with, one for each fetch; "workspace": the pinned run; empty:
        the first night.
    metrics: specs; by default the metrics of the profile, or ndcg@10.
    rule: of each metric; the chance of a false alarm is divided among the metrics.
    depth, repeat: documents and fetches per query. state: the file with a line for each night.
    workspace: the folder of a workspace for the runs; None for none.
    max_failed: the largest share of failed queries. max_p95_ms: the largest latency; None for any.
    policy: of the requests, from the table [requests].
    """

    def __init__(self, file: str, values: _Values) -> None:
        self.file = file
        self.data = _several(values.data)
        self.endpoint = values.endpoint
        self.run, self.timings = _several(values.run), _several(values.timings)
        self.pinned = _several(values.pinned)
        self.profile = values.profile
        self.depth, self.repeat = values.depth, values.repeat
        self.state = self.path(values.state)
        self.workspace = self.path(values.workspace) if values.workspace else None
        self.max_failed, self.max_p95_ms = values.max_failed, values.max_p95_ms
        self.policy = Policy(**values.requests)
        if not self.data:
            raise _refused("The key data is empty.", "Set it to a data set with labels.")
        if bool(self.endpoint) == bool(self.run):
            raise _refused(
                "The configuration needs either endpoint or run.",
                "Set endpoint to the file of a search endpoint, or run to a run file.",
            )
        if self.state.suffix != ENDING:
            raise _refused(
                "The name of the state file does not end in .jsonl.",
                'Set state to a name such as "nights.jsonl".',
            )
        if self.timings and len(self.timings) != len(self.run):
            raise _refused(
                "The configuration has different numbers of run and timings.",
                "List one file of timings for each run, in the same order.",
            )
        if self.workspace is not None and len(self.data) > 1:
            raise _refused("With a workspace, data is one data set.", "Name it, or list its id.")
        if self.pinned == (WORKSPACE,) and self.workspace is None:
            raise _refused(
                "The pinned run is in a workspace, but the configuration names none.",
                "Set workspace to its folder.",
            )
        specs = [parse_measure(each).spec for each in _several(values.metrics)]
        if not specs and self.goals is not None:
            specs = [each.metric for each in self.goals.profile.targets]
        self.metrics = tuple(dict.fromkeys(specs)) or ("ndcg@10",)
        alpha = values.alpha / len(self.metrics)
        self.alpha = values.alpha
        self.rule = NightRule(alpha, values.smallest, values.nights_per_year)

    @classmethod
    def of(cls, file: str, repeat: int | None = None) -> Config:
        """Read a file. repeat: in place of the number in the file.

        Raises DataError, with the file, for a file that is not usable, SpecError for an unknown
        metric, and OSError.
        """
        with guarded(
            file,
            "The configuration cannot be read: {reason}.",
            'Use TOML with lines such as: data = "FOLDER"',
        ):
            content = from_toml(text_of(Path(file).read_bytes()))
            if repeat is not None:
                content["repeat"] = repeat
            return cls(file, msgspec.convert(content, _Values))

    @cached_property
    def goals(self) -> Goals | None:
        """The profile; a file is relative to the configuration. None without one. Raises DataError
        for an unknown one."""
        path = self.path(self.profile)
        if not self.profile:
            return None
        return Goals.of(str(path) if path.is_file() else self.profile)

    def path(self, named: str) -> Path:
        """Return the path of a file or folder in the configuration."""
        return Path(self.file).parent / named


def _several(texts: _Texts) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else texts


def _refused(template: str, remedy: str) -> DataError:
    return DataError(template, remedy=remedy)
