"""Who works on what is queued: a process that claims it, beats, and may be found dead."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
import uuid
from dataclasses import dataclass, field
from typing import cast

from rankdash.errors import RankdashError

# A worker beats once a second; this many missed beats mean that it is gone or hangs.
STALE_SECONDS = 10.0


@dataclass(frozen=True)
class Owner:
    """Who works on a job: a process, and a token that no other process ever has."""

    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)


def lost(row: sqlite3.Row) -> bool:
    """Whether the worker of something that runs is dead or silent. row: with host, pid and
    heartbeat."""
    if time.time() - row["heartbeat"] > STALE_SECONDS:
        return True
    # Only POSIX can ask about a process without touching it.
    if os.name != "posix" or row["host"] != socket.gethostname():
        return False
    try:
        os.kill(row["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def problem_to_json(error: RankdashError | None) -> str | None:
    """An error as a row keeps it, to be said in any language later."""
    if error is None:
        return None
    return json.dumps(
        {"template": error.template, "remedy": error.remedy, "params": error.params}, default=str
    )


def problem_from_json(problem: str | None) -> RankdashError | None:
    if problem is None:
        return None
    kept = cast(dict[str, object], json.loads(problem))
    params = cast(dict[str, object], kept["params"])
    return RankdashError(str(kept["template"]), remedy=str(kept["remedy"]), **params)
