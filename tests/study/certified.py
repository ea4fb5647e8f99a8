"""Studies to certify, and both verifiers: the one of rankdash and the script of the docs."""

import contextlib
import copy
import importlib.util
import io
import itertools
import json
import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study import certificate
from rankdash.core.study.certificate import Json
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of
from tests.sets import ROOT, loaded
from tests.study.builders import without

_spec = importlib.util.spec_from_file_location("verify", ROOT / "docs" / "verify.py")
verify = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(verify)

SETTINGS = [
    StatisticsSettings(
        interval=interval, test=test, correction=correction, family=family, resamples=500, **more
    )
    for (interval, test, family), correction, more in zip(
        itertools.product(
            ("skew-t", "t", "bca", "percentile"),
            ("sign-flip", "t", "wilcoxon"),
            ("metric", "all"),
        ),
        itertools.cycle(("holm", "bh", "none")),
        itertools.cycle(
            ({}, {"worthwhile": 0.1}, {"equal_margin": 0.05}, {"level": 0.9, "tie_band": 0.0})
        ),
        strict=False,
    )
]
"""Every interval with every test and family, with corrections and other settings in turn."""


@cache
def runs_on(name: str, systems: int) -> tuple[Run, ...]:
    """Return runs with more and more swaps of neighbours; every third one failed on queries."""
    found = loaded(name)
    data, rng = found.dataset, np.random.default_rng(7)
    first = next(iter(found.rankings.values())) if found.rankings else found.runs[0].ranking
    runs = []
    for number in range(systems):
        lists = []
        for query in first.query_ids:
            docs, _scores = first.documents_of(query)
            keys = np.arange(len(docs)) + rng.normal(0, 2.0 * number, len(docs))
            order = np.argsort(keys)
            lists.append((query, [docs[at] for at in order], -np.arange(len(docs), dtype=float)))
        run = run_from_ranking(f"system {number} <b>", data.id, Ranking.from_lists(lists), "x")
        lost = sorted(first.query_ids)[number % 5 :: 5] if number % 3 == 2 else ()
        runs.append(without(without(run, lost[::2]), lost[1::2], "skipped") if lost else run)
    return tuple(runs)


def study_of(name: str, challengers: int, statistics: StatisticsSettings, **changes: Json) -> Study:
    """Return a study of the first stage and runs. changes: fields of the study."""
    runs = runs_on(name, challengers)
    data = loaded(name).dataset
    fields = {
        "dataset": data,
        "systems": systems_of(data, runs),
        "baseline": FIRST_STAGE,
        "challengers": tuple(run.id for run in runs),
        "statistics": statistics,
    }
    return Study(**(fields | changes))


PAGE = f"<main>{certificate.EMPTY}</main>"


def report_of(content: Json) -> bytes:
    """Return a report without a page, with the certificate."""
    return certificate.embedded(PAGE.encode(), content)


def with_text(text: str) -> bytes:
    """Return the same report with another text as its certificate."""
    start, end = certificate.EMPTY.split("><")
    escaped = text.replace("<", "\\u003c")
    return PAGE.replace(certificate.EMPTY, f"{start}>{escaped}<{end}").encode()


def by_rankdash(report: bytes, read: Study) -> list[str]:
    """Return the refused checks. read: a study with the labels and rankings."""
    try:
        content, document = certificate.opened(report)
        rules, statistics = certificate.settings_of(content)
    except Exception as error:  # noqa: BLE001 (`verify` makes each of them a DataError)
        return [repr(error)]
    checks = [*certificate.seal_checks(content, document)]
    if not any(each.reason for each in checks):
        read = replace(read, conventions=rules, statistics=statistics)
        study, of_inputs = certificate.same_study(content, read)
        checks += of_inputs
        checks += [] if study is None else certificate.number_checks(content, study)
    return [f"{each.subject}: {each.reason}" for each in checks if each.reason]


def by_docs(report: bytes, folder: Path, *values: Path) -> list[str]:
    """Return the refused lines of the script. values: the file of the values, if there is one."""
    file = folder / "report"
    file.write_bytes(report)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = verify.main([str(each) for each in (file, *values)])
    lines = re.findall("^refused .*", out.getvalue(), re.MULTILINE)
    assert bool(lines) == bool(code)
    return lines


NAN, DEEP, DOUBLE = "<nan>", "<deep>", "<double>"
_WRONG = (None, True, -1, 10**400, 1.5, "", "7", [], {}, [[]], "\ud800", NAN, DEEP)
_NUMBERS = ("families", "metrics", "numbers", "statistics", "conventions", "data", "inputs")


def mutant(content: Json, seed: int) -> tuple[str, str]:
    """Return the kind of a change, and the text of the certificate with it."""
    rng = random.Random(seed)
    changed = copy.deepcopy(content)
    # Each field is as likely as any other: most numbers are values of queries.
    parent, key = changed, rng.choice([*changed, *_NUMBERS])
    while isinstance(parent[key], dict | list) and parent[key] and rng.random() < 0.9:
        parent = parent[key]
        key = rng.choice([*parent] if isinstance(parent, dict) else range(len(parent)))
    value = parent[key]
    if isinstance(value, bool | None) or rng.random() < 0.2:
        kind, parent[key] = "type", rng.choice(_WRONG)
    elif isinstance(value, int | float):
        text = repr(value)
        at = rng.choice([place for place, each in enumerate(text) if each.isdigit()])
        kind, parent[key] = "digit", float(text[:at] + rng.choice("0123456789") + text[at + 1 :])
        if isinstance(value, int):
            parent[key] = int(parent[key])
    elif isinstance(value, str) and value:
        at = rng.randrange(len(value))
        other = rng.choice([each for each in "0123456789abcxyz-+.<é" if each != value[at]])
        kind, parent[key] = "text", value[:at] + other + value[at + 1 :]
    elif isinstance(value, list) and len(value) > 1 and rng.random() < 0.5:
        one, two = rng.sample(range(len(value)), 2)
        kind, (value[one], value[two]) = "swapped", (value[two], value[one])
    elif isinstance(value, list):
        kind = "length"
        value.append(value[0]) if value and rng.random() < 0.5 else value.clear()
    elif isinstance(parent, dict) and rng.random() < 0.5:
        kind, parent[DOUBLE + key] = "doubled", value
    elif isinstance(parent, dict):
        kind = "missing"
        del parent[key]
    else:
        kind, parent[key] = "type", rng.choice(_WRONG)
    text = json.dumps(changed).replace(f'"{DOUBLE}', '"')
    text = text.replace(f'"{DEEP}"', "[" * 100_000 + "]" * 100_000)
    return kind, text.replace(f'"{NAN}"', rng.choice(("NaN", "Infinity", "-Infinity", "1e999")))


def resealed(text: str) -> str:
    """Return the certificate with new hashes of itself, as a forger would write them."""
    content = json.loads(text)
    if isinstance(content.get("data"), dict):
        content["data_sha256"] = certificate.sha256(certificate.canonical(content["data"]))
    content.pop("sha256", None)
    content["sha256"] = certificate.sha256(certificate.canonical(content))
    return json.dumps(content)
