"""`policy.json`: a policy as a file, with its expected effect, and the Python that applies it."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from rankdash.core.base.errors import DataError
from rankdash.core.base.files import guarded
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.policy.floor import fingerprint, floor_refusal
from rankdash.features.policy.policy import (
    Choices,
    Estimate,
    Expected,
    Fuse,
    Policy,
    expected,
    longest,
    prices,
)

VERSION = 1
"""The version of the format, as the value of the key "policy"."""

_MARGIN = re.compile(r"margin_(\d+)_(\d+)_at_least")

Positive = Annotated[float, msgspec.Meta(gt=0)]


class _Rerank(msgspec.Struct, forbid_unknown_fields=True):
    system: str
    fingerprint: str | None = None
    depth: Annotated[int, msgspec.Meta(ge=1)] | None = None
    deadline_ms: Positive | None = None


class _Floor(msgspec.Struct, forbid_unknown_fields=True):
    score: float
    alpha: float | None = None


class _Fuse(msgspec.Struct, forbid_unknown_fields=True):
    method: Literal["rrf", "minmax", "z"]
    weights: Annotated[dict[str, Positive], msgspec.Meta(min_length=2)]
    k: Positive = 60.0
    tuned_on: str = ""


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    skip_if: dict[str, float] | None = None
    rerank: _Rerank | None = None
    fuse: _Fuse | None = None
    floor: _Floor | None = None


class _File(msgspec.Struct):
    policy: int
    steps: Annotated[list[_Step], msgspec.Meta(min_length=1)]


def document(
    study: Study, choices: Choices, found: Expected, price: float | None
) -> dict[str, Any]:
    """Return the content of the file; keys without a value are absent. price: of 1,000 searches."""
    policy, money, run = found.policy, study.money, study.run(found.policy.system)
    steps: list[dict[str, Any]] = []
    if policy.skip_at is not None:
        ranks = f"{policy.skip_rank}_{policy.skip_rank + 1}"
        margin = {f"margin_{ranks}_at_least": policy.skip_at, "of_first": policy.skip_of}
        steps.append({"skip_if": margin})
    rerank = {
        "system": study.name(policy.system),
        "fingerprint": None if run is None else fingerprint(run),
        "depth": policy.depth,
        "deadline_ms": policy.deadline_ms,
    }
    steps.append({"rerank": _known(rerank)})
    if policy.fuse is not None:
        how = policy.fuse.how
        named = zip(policy.fuse.systems, how.weights, strict=True)
        fuse = {
            "method": how.method,
            "k": how.k if how.method == "rrf" else None,
            "weights": {study.name(each): weight for each, weight in named},
            "tuned_on": "these queries, 5-fold",
        }
        steps.append({"fuse": _known(fuse)})
    if policy.floor is not None:
        steps.append({"floor": {"score": policy.floor, "alpha": choices.floor_alpha}})
    effect = {
        study.spec: _estimate(found.quality) | {"held_out": bool(found.tuned)},
        "change_from_first_stage": _estimate(found.over_first),
        "change_from_full_reranking": _estimate(found.over_full),
        "level": study.statistics.level,
        "queries": found.n,
        "p95_ms": found.p95_ms,
        "price_per_1000": price,
        "currency": money.currency if money is not None and price is not None else None,
    }
    # The file of such a policy contains a sentence for its reader.
    note = {"note": "Do not rerank: this policy skips every query."} if found.skips_all else {}
    return {
        "policy": VERSION,
        **note,
        "data": study.dataset.id,
        "metric": study.spec,
        "first_stage": {
            "name": study.name(FIRST_STAGE),
            "fingerprint": run_from_ranking("", "", study.ranking(FIRST_STAGE), "").id,
        },
        "steps": steps,
        "expected": _known(effect),
    }


def content_of(
    study: Study,
    system: str,
    depth: int | None,
    skip_loss: float | None,
    deadline_ms: float | None,
    floor_alpha: float | None,
    *,
    fuse: bool,
) -> dict[str, Any]:
    """Return the content of the file for choices as in `Choices`. fuse: with the first stage.

    Raises DataError if no query has a value with the policy, or if a floor has no meaning.
    """
    refusal = None if floor_alpha is None else floor_refusal(study, system)
    if refusal is not None:
        raise refusal
    choices = Choices(
        system,
        depth,
        skip_loss,
        deadline_ms=deadline_ms,
        weights=(FIRST_STAGE, system) if fuse else (),
        floor_alpha=floor_alpha,
    )
    found = expected(study, choices)
    if found is None:
        raise DataError(
            "No query has a metric value with this policy.",
            remedy="Provide latencies for a deadline, and labels of the ranked queries.",
        )
    price = prices(study, found)
    return document(study, choices, found, None if price is None else price[0])


def written(content: Mapping[str, Any]) -> bytes:
    """Return the file."""
    return f"{json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)}\n".encode()


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }


def _estimate(each: Estimate) -> dict[str, Any]:
    return _known(vars(each))


def read(path: str | os.PathLike[str], study: Study) -> Policy:
    """Return the policy in a file, for the systems of a study.

    Raises DataError if the file contains no policy, or a policy of a system that the study lacks.
    """
    file = os.fspath(path)
    with guarded(
        file,
        "The policy cannot be read: {reason}.",
        "Use a file from the page Policy or from `rankdash policy`.",
    ):
        try:
            content = msgspec.json.decode(Path(file).read_bytes(), type=_File)
        except OSError as problem:
            raise ValueError(str(problem)) from problem
        if content.policy != VERSION:
            raise ValueError(f"version {content.policy} instead of {VERSION} - at `$.policy`")
        steps = {
            name: each
            for step in content.steps
            for name in step.__struct_fields__
            if (each := getattr(step, name)) is not None
        }
        if "rerank" not in steps:
            raise ValueError("no step has the key `rerank` - at `$.steps`")
        skip = steps.get("skip_if", {})
        rank, at, of = _margin(skip) if skip else (1, None, None)
        if of is not None and of > (most := longest(study)):
            raise ValueError(
                f"the margin is computed over the first {of} documents, and the first stage has "
                f"at most {most} - at `$.steps[].skip_if`"
            )
    rerank: _Rerank = steps["rerank"]
    fused: _Fuse | None = steps.get("fuse")
    shown: _Floor | None = steps.get("floor")
    fuse = None
    if fused is not None:
        systems = tuple(_system(study, name, file) for name in fused.weights)
        fuse = Fuse(systems, Fusion(fused.method, tuple(fused.weights.values()), fused.k))
    return Policy(
        _system(study, rerank.system, file),
        rerank.depth,
        rerank.deadline_ms,
        rank,
        at,
        of,
        fuse,
        None if shown is None else shown.score,
    )


def _system(study: Study, name: str, file: str) -> str:
    """Return the id of the system that a file names."""
    system = next((each for each in study.systems if study.name(each) == name), None)
    if system is None:
        raise DataError(
            "The policy uses {system!r}, and these data have no system of this name.",
            remedy="Possible: {systems}.",
            file=file,
            system=name,
            systems=", ".join(each.name for each in study.systems.values()),
        )
    return system


def _margin(skip: Mapping[str, float]) -> tuple[int, float, int]:
    """Return the rank before the margin, the threshold, and the number of documents over which the
    margin is computed."""
    of = skip.get("of_first", 0.0)
    [name, *others] = [each for each in skip if each != "of_first"] or [""]
    ranks = _MARGIN.fullmatch(name)
    if others or ranks is None or int(ranks[2]) != int(ranks[1]) + 1 or not int(ranks[2]) <= of:
        raise ValueError(
            "expected one key such as `margin_1_2_at_least`, and `of_first` with the number of "
            "documents - at `$.steps[].skip_if`"
        )
    return int(ranks[1]), skip[name], int(of)


# The policy in Python, for a search without rankdash.


def code(policy: Policy) -> str:
    """Return Python that applies the file: only its steps, without other packages."""
    method = "" if policy.fuse is None else policy.fuse.how.method
    lines = [
        "import json",
        *(["import math"] if method in ("minmax", "z") or policy.floor is not None else []),
        *(["from statistics import pstdev"] if method == "z" else []),
        "",
        'with open("policy.json", encoding="utf-8") as file:',
        "    policy = json.load(file)",
        'steps = {name: step for each in policy["steps"] for name, step in each.items()}',
        "",
        "def search(query, first, rerank, others={}):"
        if policy.fuse
        else "def search(query, first, rerank):",
        "    # first: (document, score) of the first stage, best first. rerank: your reranker,",
        "    # which returns {document: score}, or None after deadline_ms.",
        "    documents = [document for document, score in first]",
    ]
    if policy.skip_at is not None:
        rank = policy.skip_rank
        name = f"margin_{rank}_{rank + 1}_at_least"
        lines += [
            '    of_first = first[: steps["skip_if"]["of_first"]]',
            "    scores = [score for document, score in of_first]",
            f"    if len(scores) > {rank}:",
            "        span = scores[0] - scores[-1] or 1",
            f"        margin = (scores[{rank - 1}] - scores[{rank}]) / span",
            f'        if margin >= steps["skip_if"]["{name}"]:',
            "            return documents",
        ]
    lines += [
        '    depth = steps["rerank"].get("depth", len(documents))',
        '    scored = rerank(query, documents[:depth], steps["rerank"].get("deadline_ms"))',
    ]
    if policy.deadline_ms is not None:
        lines += ["    if scored is None:", "        return documents"]
    lines += ["    order = sorted(scored, key=scored.get, reverse=True) + documents[depth:]"]
    if policy.fuse is not None:
        lines += _fusion_code(policy.fuse.how)
    if policy.floor is not None:
        lines += [
            '    lowest = steps["floor"]["score"]',
            "    order = [each for each in order if scored.get(each, -math.inf) >= lowest]",
        ]
    lines += ["    return order"]
    return "\n".join(lines)


def _fusion_code(how: Fusion) -> list[str]:
    """Return the lines that fuse `order` with the other systems."""
    lines = [
        "    # others: {system: (its documents, best first, {document: score})}",
        '    fuse, points, lists = steps["fuse"], {}, dict(others)',
        '    lists[policy["first_stage"]["name"]] = documents, dict(first)',
        '    lists[steps["rerank"]["system"]] = order, scored',
        '    for name, weight in fuse["weights"].items():',
        "        ranked, scores = lists[name]",
    ]
    if how.method == "rrf":
        value = '1 / (fuse["k"] + rank)'
    else:
        value = "(scores.get(document, low) - low) / unit"
        spread = "pstdev(scores.values())" if how.method == "z" else "max(scores.values()) - low"
        lines += ["        low = min(scores.values())", f"        unit = ({spread}) or math.inf"]
    return [
        *lines,
        "        for rank, document in enumerate(ranked, start=1):",
        f"            points[document] = points.get(document, 0) + weight * {value}",
        "    order = sorted(points, key=lambda each: round(points[each], 12), reverse=True)",
    ]
