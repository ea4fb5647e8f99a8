"""Data sets of the Hugging Face hub: the files of a repository that hold data, and no code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from rankdash.core.base.allowed import hub_token
from rankdash.core.base.errors import DataError, Finding
from rankdash.core.base.files import FULL
from rankdash.core.readers.by_name.start import Fetched
from rankdash.core.readers.formats.huggingface import other_splits
from rankdash.core.readers.parse.limits import MEGABYTE
from rankdash.core.readers.parse.source import Source

_NAME = re.compile(
    r"(?P<repository>[\w.\-]+/[\w.\-]+)(?:/(?P<inside>[^@]+?))?/?(?:@(?P<revision>.+))?"
)
_DATA = re.compile(
    r"\.(parquet|arrow|jsonl?|ndjson|csv|tsv|trec|qrels?|run|txt)(\.gz)?$|\.zip$", re.IGNORECASE
)
# More is not fetched: it would fill a laptop's disk. Corpora within it are thinned afterwards.
_MOST_BYTES = 5_000 * MEGABYTE
_ELSEWHERE = (
    "Check the connection, or download the data set on a machine that reaches it "
    "(hf download {name} --repo-type dataset) and load its files."
)
_ASK = (
    "Load its files, or ask the server administrator to allow the token of the hub: --allow-key "
    "HF_TOKEN."
)


@dataclass(frozen=True)
class _Asked:
    """repository: organization/name. inside: a folder or file in it, or "". revision: a branch, a
    tag or a commit; None: the newest."""

    repository: str
    inside: str
    revision: str | None

    def called(self, file: str) -> str:
        """The name of a source, which tells it from files of another repository."""
        return f"{self.repository.split('/')[1]}/{file}"


def fetch(name: str, folder: Path) -> list[Fetched]:
    """Download the data files of a repository into the hub's own cache; `folder` is not used.

    Raises DataError where the name is none, the hub cannot be reached or says no, or the repository
    holds no data or too much.
    """
    del folder
    asked = _asked(name)
    try:
        import huggingface_hub as hub
        import huggingface_hub.constants
        import huggingface_hub.errors
    except ModuleNotFoundError as error:
        raise DataError(
            "{name} needs the package huggingface_hub, which is not installed.",
            remedy="Install it with: pip install huggingface_hub. Then load the data set again.",
            name=f"hf:{name}",
        ) from error
    info = _info(hub, asked)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
    files, notes = _chosen(asked, list(sizes))
    _refuse_much(asked, {file: sizes[file] for file in files})
    try:
        home = hub.snapshot_download(
            asked.repository,
            repo_type="dataset",
            revision=info.sha,
            token=hub_token(),
            # The patterns of the hub know no other way to say "this very file".
            allow_patterns=[re.sub(r"([*?\[])", r"[\1]", file) for file in files],
        )
    except Exception as error:
        raise DataError(
            "The download of {name} stopped: {reason}.",
            remedy="Free space on the disk, or set HF_HOME to a folder on another disk. Then load "
            "it again: downloaded parts are kept."
            if getattr(error, "errno", None) in FULL
            else "Load it again: downloaded parts are kept.",
            name=f"hf:{name}",
            reason=_reason(error),
        ) from error
    opened = Finding(
        "note",
        "by_name",
        "Loaded by its name from the hub at {hub}: {name}, revision {revision}.",
        {"hub": hub.constants.ENDPOINT, "name": asked.repository, "revision": str(info.sha)[:12]},
        file=asked.called(files[0]),
    )
    return [
        Fetched(
            Path(home) / file,
            asked.called(file),
            asked.repository.split("/")[1],
            (*((opened,) if file == files[0] else ()), *((notes[file],) if file in notes else ())),
        )
        for file in files
    ]


def _asked(name: str) -> _Asked:
    found = _NAME.fullmatch(name)
    if not found or ".." in name:
        raise DataError(
            "{name!r} is not a name of a data set of the hub.",
            remedy="Write hf:ORGANIZATION/NAME, such as hf:BeIR/scifact, where needed with a "
            "folder (hf:ORGANIZATION/NAME/FOLDER) or a revision (hf:ORGANIZATION/NAME@REVISION).",
            name=f"hf:{name}",
        )
    return _Asked(found["repository"], found["inside"] or "", found["revision"])


def _info(hub: Any, asked: _Asked) -> Any:
    name, endpoint, token = asked.repository, hub.constants.ENDPOINT, hub_token()
    try:
        return hub.HfApi(token=token).dataset_info(
            name,
            revision=asked.revision,
            files_metadata=True,
            timeout=hub.constants.HF_HUB_ETAG_TIMEOUT,
        )
    except hub.errors.GatedRepoError as error:
        raise DataError(
            "The hub gives the data set {name!r} only to those who accepted its terms.",
            remedy="Accept them on its page and set HF_TOKEN, or load its files."
            if token is None
            else _ASK,
            name=name,
        ) from error
    except hub.errors.RevisionNotFoundError as error:
        raise DataError(
            "The data set {name!r} has no revision {revision!r}.",
            remedy="Remove what follows @ for the newest one.",
            name=name,
            revision=asked.revision,
        ) from error
    except hub.errors.RepositoryNotFoundError as error:
        raise DataError(
            "The hub at {hub} has no data set {name!r}, or it is private.",
            remedy="Check the name; for a private data set set HF_TOKEN."
            if token is None
            else _ASK,
            name=name,
            hub=endpoint,
        ) from error
    except Exception as error:
        # The hub's HTTP client, and with it the errors for "no answer", differs between releases.
        raise DataError(
            "The hub at {hub} cannot be reached ({reason}), so {name} cannot be opened.",
            remedy=_ELSEWHERE,
            name=name,
            hub=endpoint,
            reason=_reason(error),
        ) from error


def _chosen(asked: _Asked, names: Sequence[str]) -> tuple[list[str], dict[str, Finding]]:
    """The files to fetch, in order, and notes on some of them: one split of each folder."""
    inside = [
        name
        for name in names
        if not asked.inside or name == asked.inside or name.startswith(f"{asked.inside}/")
    ]
    if not inside:
        folders = sorted({str(PurePosixPath(name).parent) for name in names} - {"."})
        raise DataError(
            "{name} has no folder or file {inside!r}.",
            remedy="Its folders are: {folders}." if folders else "It has no folders.",
            name=asked.repository,
            inside=asked.inside,
            folders=", ".join(folders[:12]),
        )
    data = [name for name in inside if _DATA.search(name) and not Source(name, b"").is_readme]
    if not data:
        raise DataError(
            "{name} holds no supported data file. It has: {files}.",
            remedy="Where the hub has converted it, open hf:{name}@refs/convert/parquet.",
            name=asked.repository,
            files=", ".join(inside[:8]),
        )
    left_aside, notes = other_splits(data)
    kept = sorted(name for name in data if name not in left_aside)
    return kept, {
        name: replace(
            note,
            remedy="To use another split, name its folder or file: hf:ORGANIZATION/NAME/FOLDER.",
            file=asked.called(name),
        )
        for name, note in notes.items()
    }


def _refuse_much(asked: _Asked, sizes: dict[str, int]) -> None:
    if sum(sizes.values()) <= _MOST_BYTES:
        return
    folders = sorted({str(PurePosixPath(name).parent) for name in sizes} - {"."})
    raise DataError(
        "{name} has {size:,.0f} MB of data; at most {limit:,.0f} MB are downloaded.",
        remedy="Open a folder of it, as hf:{name}/FOLDER: {folders}."
        if folders
        else "Download what you need of it, and load the files.",
        name=asked.repository,
        size=sum(sizes.values()) / MEGABYTE,
        limit=_MOST_BYTES / MEGABYTE,
        folders=", ".join(folders[:12]),
    )


def _reason(error: Exception) -> str:
    return (str(error).split("\n")[0] or type(error).__name__)[:300].rstrip(".")
