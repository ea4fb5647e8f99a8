"""Data sets of the Hugging Face hub as they lie on disk.

    corpus/corpus-00000-of-00002.parquet   queries/…   qrels/test-00000-of-00001.parquet
    data/train-00000-of-00003.parquet      data/test-00000-of-00001.parquet
    default/test/0000.parquet              (the hub's own conversion)
    corpus/data-00000-of-00001.arrow       test/data-00000-of-00001.arrow   (save_to_disk)

Shards of one table are read together by the usual rules. Of the splits in one folder only one is
taken, for a data set is evaluated on one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from rankdash.core.base.errors import Finding
from rankdash.core.readers.join.conflicts import SPLITS
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table

_SHARD = re.compile(r"(?P<split>.+)-\d{5}-of-(?P<all>\d{5})")
_CONVERTED = re.compile(r"\d{4}")


def prepare(tables: Sequence[tuple[Table, Source]]) -> list[tuple[Table, Source]]:
    """The tables without those of other splits; a finding says which split was taken."""
    files = [table.file for table, _ in tables]
    left_aside, notes = other_splits(files)
    missing = _missing_shards([file for file in files if file not in left_aside])
    return [
        (
            replace(
                table,
                findings=(*table.findings, *_of(notes, table.file), *_of(missing, table.file)),
            ),
            source,
        )
        for table, source in tables
        if table.file not in left_aside
    ]


def _missing_shards(files: Sequence[str]) -> dict[str, Finding]:
    """A warning on the first file of each table of which some files are not there."""
    tables: dict[tuple[str, str, str], list[str]] = {}
    for file in files:
        path = PurePosixPath(file)
        shard = _SHARD.fullmatch(path.stem)
        if shard:
            tables.setdefault((str(path.parent), shard["split"], shard["all"]), []).append(file)
    return {
        shards[0]: Finding(
            "warning",
            "missing_shards",
            "Files of this table that are not there: {count} of {all}.",
            {"count": int(count) - len(shards), "all": int(count)},
            "Load all files whose names differ only in the number before -of-.",
            shards[0],
            count=int(count) - len(shards),
        )
        for (_, _, count), shards in tables.items()
        if len(shards) < int(count)
    }


def other_splits(files: Sequence[str]) -> tuple[frozenset[str], dict[str, Finding]]:
    """The files of splits that are not taken, and what to say of the first file of those that
    are."""
    folders: dict[str, dict[str, list[str]]] = {}
    for file in files:
        place = _place(file)
        if place:
            folders.setdefault(place[0], {}).setdefault(place[1], []).append(file)
    left_aside: set[str] = set()
    notes: dict[str, Finding] = {}
    for splits in folders.values():
        if len(splits) < 2:
            continue
        taken = min(splits, key=SPLITS.index)
        others = [split for split in splits if split != taken]
        left_aside.update(file for split in others for file in splits[split])
        first = splits[taken][0]
        notes[first] = _one_split(first, taken, others)
    return frozenset(left_aside), notes


def _place(file: str) -> tuple[str, str] | None:
    """(folder, split) of a shard; None for any other file."""
    path = PurePosixPath(file)
    if _CONVERTED.fullmatch(path.stem) and path.parent.name.lower() in SPLITS:
        return str(path.parent.parent), path.parent.name.lower()
    shard = _SHARD.fullmatch(path.stem)
    if not shard:
        return None
    if shard["split"] == "data" and path.parent.name.lower() in SPLITS:
        return str(path.parent.parent), path.parent.name.lower()
    split = shard["split"].lower()
    return (str(path.parent), split) if split in SPLITS else None


def _of(notes: dict[str, Finding], file: str) -> tuple[Finding, ...]:
    return (notes[file],) if file in notes else ()


def _one_split(file: str, taken: str, others: Sequence[str]) -> Finding:
    return Finding(
        "warning",
        "one_split",
        "The rows come in {count} splits. {taken} is used, not {others}.",
        {"count": len(others) + 1, "taken": taken, "others": ", ".join(others)},
        "To use another split, load its files without those of the other splits.",
        file,
        count=len(others),
    )
