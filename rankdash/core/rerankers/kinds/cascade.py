"""Cascade: stage 1 orders all candidates, stage 2 reorders the best of them.

It makes a slow reranker affordable. Both stages run for every query, so a measured latency includes
both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import SettingError
from rankdash.core.base.rules import SettingSpec, SettingValue, parse_settings
from rankdash.core.rerankers.base import (
    Capabilities,
    Corpus,
    Detailed,
    Literate,
    Request,
    Reranker,
    RerankerKind,
    Scored,
    Scores,
)
from rankdash.core.rerankers.remote.connection import Estimate, Place

NAME = "cascade"
STAGES = ("first", "second")


class Cascade:
    """Cascade of two rerankers: `first` on all documents, `second` on the top `top` of its order.

    Documents that stage 2 read have its raw scores. The others follow in stage-1 order, with scores
    at even steps below the lowest stage-2 score. Scores of the two stages are never compared.
    """

    name = NAME

    def __init__(
        self, settings: Mapping[str, SettingValue], first: Reranker, second: Reranker
    ) -> None:
        self.settings = settings
        self._first = first
        self._second = second
        self._top = int(settings["top"])

    def prepare(self, corpus: Corpus) -> None:
        """Prepare both stages. Raises UnavailableError if one is unavailable."""
        self._first.prepare(corpus)
        self._second.prepare(corpus)

    def fingerprint(self) -> str:
        """Return "": scores depend on the other candidates and cannot be cached."""
        return ""

    def details(self) -> dict[str, object]:
        """Return both stages' details, keys prefixed by stage."""
        return {
            f"{stage}_{name}": value
            for stage, reranker in zip(STAGES, (self._first, self._second), strict=True)
            if isinstance(reranker, Detailed)
            for name, value in reranker.details().items()
        }

    def unknown_share(self, texts: Sequence[str]) -> float:
        """Return the larger share of unknown tokens."""
        stages = [each for each in (self._first, self._second) if isinstance(each, Literate)]
        shares = [each.unknown_share(texts) for each in stages]
        return max((each for each in shares if not math.isnan(each)), default=math.nan)

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Score with both stages. A query that fails in a stage fails, with the reason."""
        initial = self._first.score(requests)
        chosen = [
            np.zeros(0, dtype=np.intp)
            if _why(answer, 1)
            else np.argsort(-answer.scores, kind="stable")
            for answer in initial
        ]
        again = [
            (place, request.part(order[: self._top]))
            for place, (request, order) in enumerate(zip(requests, chosen, strict=True))
            if len(order)
        ]
        second = self._second.score([request for _, request in again]) if again else []
        answers = dict(zip((place for place, _ in again), second, strict=True))
        return [
            _joined(answer, answers.get(place), order, self._top)
            for place, (answer, order) in enumerate(zip(initial, chosen, strict=True))
        ]


def _why(answer: Scored, stage: int) -> str:
    """Return why the answer of a stage cannot be used, or ""."""
    if answer.error:
        return f"stage {stage}: {answer.error}"
    if not np.isfinite(answer.scores).all():
        return f"stage {stage}: not every document was scored"
    return ""


def _joined(first: Scored, second: Scored | None, order: npt.NDArray[np.intp], top: int) -> Scored:
    calls = first.calls + (second.calls if second else ())
    reason = _why(first, 1) or (_why(second, 2) if second else "")
    if reason:
        return Scored.failed(len(first.scores), reason, calls)
    if second is None:
        return first
    read = order[:top]
    computed = [each.tokens_computed for each in (first, second)]
    counts = [tokens for tokens in computed if not math.isnan(tokens)]
    return Scored(
        _by_stage(first.scores, second.scores, read, order[top:]),
        _summed(first.tokens, second.tokens, read, len(order)),
        _summed(first.full, second.full, read, len(order)),
        first.index_seconds + second.index_seconds,
        calls=calls,
        computed_tokens=sum(counts) if counts else None,
    )


def _by_stage(
    first: Scores, second: Scores, read: npt.NDArray[np.intp], below: npt.NDArray[np.intp]
) -> Scores:
    """Merge scores: `second` for the documents at `read`; evenly spaced lower scores for `below`,
    which is in the order of `first`. Equal scores of `first` stay equal."""
    scores = np.empty(len(first))
    scores[read] = second
    lowest = float(second.min())
    # The step is larger than rounding, however large the scores are.
    step = max(1.0, 2 * float(np.spacing(abs(lowest))))
    falls = np.diff(first[below], prepend=np.inf) < 0
    scores[below] = lowest - step * np.cumsum(falls)
    return scores


def _summed(
    first: npt.NDArray[np.int64] | None,
    second: npt.NDArray[np.int64] | None,
    read: npt.NDArray[np.intp],
    size: int,
) -> npt.NDArray[np.int64] | None:
    """Return the tokens of both stages; None if neither reports tokens."""
    if first is None and second is None:
        return None
    total = np.zeros(size, dtype=np.int64) if first is None else first.copy()
    if second is not None:
        total[read] += second
    return total


def kind(members: Sequence[RerankerKind]) -> RerankerKind:
    """Return the entry of the reranker registry for the cascade, with any two of `members` as
    stages."""
    by_name = {member.name: member for member in members}

    def stages(settings: Mapping[str, Any]) -> list[tuple[RerankerKind, dict[str, SettingValue]]]:
        pairs = []
        for stage in STAGES:
            member = by_name[str(settings[stage])]
            nested = nested_settings(str(settings[f"{stage}_settings"]), f"{stage}_settings")
            pairs.append((member, parse_settings(member.settings, nested)))
        return pairs

    def build(settings: Mapping[str, Any]) -> Reranker:
        return Cascade(settings, *(member.build(options) for member, options in stages(settings)))

    def able(settings: Mapping[str, Any]) -> Capabilities:
        each = [member.able(options) for member, options in stages(settings)]
        return Capabilities(
            scope="listwise",
            needs_text=any(one.needs_text for one in each),
            needs_network=any(one.needs_network for one in each),
            deterministic=all(one.deterministic for one in each),
            # Which of two equal documents stage 2 reads depends on the input order.
            order_sensitive=True,
            across_queries=any(one.across_queries for one in each),
        )

    def check(settings: Mapping[str, Any]) -> None:
        for member, options in stages(settings):
            if member.check is not None:
                member.check(options)

    def key(settings: Mapping[str, Any]) -> Place | None:
        places = [member.key(options) for member, options in stages(settings) if member.key]
        needed = [place for place in places if place is not None and place.variable]
        # A form has room for one key: the missing one, if any.
        return min(needed, key=lambda place: place.in_environment, default=None)

    def estimate(settings: Mapping[str, Any], requests: Sequence[Request]) -> Estimate:
        top = np.arange(int(settings["top"]))
        stage_requests = (
            requests,
            [request.part(top[: len(request.doc_ids)]) for request in requests],
        )
        total = Estimate(0, 0.0, dollars=0.0)
        for (member, options), each in zip(stages(settings), stage_requests, strict=True):
            if member.estimate is not None:
                total += member.estimate(options, each)
        return total

    return RerankerKind(
        name=NAME,
        title="Cascade",
        meaning="Stage 1, a fast reranker, orders all candidates; stage 2, a better one, reorders "
        "the best of them. The others follow in stage-1 order.",
        settings=_specs(by_name),
        capabilities=Capabilities(scope="listwise", order_sensitive=True),
        build=build,
        varying=able,
        check=check,
        key=key,
        estimate=estimate,
    )


def _specs(known: Mapping[str, RerankerKind]) -> tuple[SettingSpec, ...]:
    titles = {name: member.title for name, member in known.items()}
    nested = "One per line, such as max_length=256, or a JSON object; empty for the defaults."
    return (
        SettingSpec(
            "first",
            "bm25",
            "Stage 1 reranker",
            "Orders all candidates down to the depth of the run.",
            choices=titles,
        ),
        SettingSpec(
            "second",
            "bi-encoder",
            "Stage 2 reranker",
            "Reorders the top documents of stage 1.",
            choices=titles,
        ),
        SettingSpec(
            "top",
            20,
            "Documents passed to stage 2",
            "Number of top documents of stage 1 that stage 2 reorders.",
            within=(1, 10_000),
        ),
        SettingSpec("first_settings", "", "Stage 1 settings", nested, lines=2, advanced=True),
        SettingSpec("second_settings", "", "Stage 2 settings", nested, lines=2, advanced=True),
    )


def nested_settings(text: str, name: str) -> dict[str, SettingValue]:
    """Parse settings from lines "key=value" or a JSON object. Raises SettingError for other
    text."""
    if text.lstrip().startswith("{"):
        try:
            parsed = json.loads(text)
        except ValueError:
            _refuse(name, text)
        settings = {str(key): value for key, value in parsed.items()}
    else:
        lines = [line.partition("=") for line in text.splitlines() if line.strip()]
        if not all(equals and key.strip() for key, equals, _ in lines):
            _refuse(name, text)
        settings = {key.strip(): value for key, _, value in lines}
    if not all(isinstance(value, (str, int, float, bool)) for value in settings.values()):
        _refuse(name, text)
    return settings


def _refuse(name: str, text: str) -> NoReturn:
    raise SettingError(
        "The setting {name!r} cannot be read: {text!r}.",
        remedy="Write one setting per line, such as max_length=256.",
        name=name,
        text=text[:80],
    )
