"""`python -m rankdash.core.readers.by_name FOLDER NAME …`: started by `start`, not by people."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rankdash.core.base.errors import DataError
from rankdash.core.readers.by_name.hub import fetch as fetch_from_the_hub
from rankdash.core.readers.by_name.irds import fetch as fetch_from_ir_datasets
from rankdash.core.readers.by_name.start import DONE, FAILED, IR_DATASETS, Fetched
from rankdash.core.readers.by_name.thinning import thinned


def main(arguments: Sequence[str]) -> int:
    folder, names = Path(arguments[0]), arguments[1:]
    try:
        fetched: list[Fetched] = []
        for position, name in enumerate(names):
            collection, _, asked = name.partition(":")
            place = folder / str(position)
            place.mkdir()
            fetch = fetch_from_ir_datasets if collection == IR_DATASETS else fetch_from_the_hub
            fetched += fetch(asked, place)
        files = thinned(fetched, folder)
    except DataError as problem:
        _write(
            folder / FAILED,
            {
                "template": problem.template,
                "remedy": problem.remedy,
                "file": problem.file,
                "line": problem.line,
                **problem.params,
            },
        )
        return 0
    entries = [
        {
            "file": os.path.relpath(file.path, folder),
            "name": file.name,
            "origin": file.origin,
            "notes": [asdict(note) for note in file.notes],
        }
        for file in files
    ]
    _write(folder / DONE, {"sources": entries})
    return 0


def _write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, ensure_ascii=False, default=str), "utf-8")


def _end_with_parent(folder: Path) -> None:
    """End, without what was fetched, when the process that asked for it has ended."""
    os.read(0, 1)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, args=(Path(sys.argv[1]),), daemon=True).start()
    sys.exit(main(sys.argv[1:]))
