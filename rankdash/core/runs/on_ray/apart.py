"""A command in a process of its own, which Ray may end: then this one says so.

Ray ends the process that a run is started from, at once and without a word to it, when the raylet
on its machine dies.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from threading import Thread
from types import FrameType

from rankdash.core.base.errors import UnavailableError
from rankdash.core.base.shipped import python_path
from rankdash.core.runs.on_ray.settings import gone

_VARIABLE = "_RANKDASH_APART"
_DONE = b"."
_FORWARDED = (signal.SIGINT, signal.SIGTERM)


def needed(address: str) -> bool:
    """Whether a command on the cluster at an address has to be started by `run_apart`: over a
    client, Ray lives in another process anyway, and without Ray the command says so."""
    spec = find_spec("ray")
    installed = spec is not None and bool(spec.submodule_search_locations)
    return installed and not address.startswith("ray://") and _VARIABLE not in os.environ


def run_apart(arguments: Sequence[str], address: str) -> int:
    """The exit code of a rankdash command on the cluster at an address; signals go to it.

    Raises UnavailableError where the process ended before the command did.
    """
    ours, theirs = socket.socketpair()
    sent: list[int] = []
    with ours:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "rankdash", *arguments],
                env={
                    **os.environ,
                    "PYTHONPATH": python_path(),
                    _VARIABLE: str(theirs.fileno()),
                },
                pass_fds=(theirs.fileno(),),
                # Ctrl+C is for this process, which hands it on once.
                start_new_session=True,
            )

        def forward(number: int, frame: FrameType | None) -> None:
            sent.append(number)
            process.send_signal(number)

        before = {number: signal.signal(number, forward) for number in _FORWARDED}
        try:
            code = process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        ours.setblocking(False)
        with suppress(BlockingIOError):
            if ours.recv(1) == _DONE:
                return code
    if sent:
        return 128 + sent[0]
    if code < 0:
        raise UnavailableError(
            "The process that had the Ray cluster score was killed by signal {number}.",
            remedy="The machine may lack memory. Start the run again.",
            number=-code,
        )
    raise gone(address)


@contextmanager
def apart() -> Iterator[None]:
    """Where this process was started by `run_apart`: tell it that the command ended by itself, and
    end when it is gone."""
    number = os.environ.get(_VARIABLE)
    if number is None:
        yield
        return
    # Open as long as the process is, for the thread that waits at it.
    link = socket.socket(fileno=int(number))
    link.set_inheritable(False)
    Thread(target=_watch, args=(link,), daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            link.send(_DONE)


def _watch(link: socket.socket) -> None:
    with suppress(OSError):
        link.recv(1)
        os.kill(os.getpid(), signal.SIGTERM)
