"""Ray clusters: address, connection and capacity, and commands that run on one."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from types import FrameType
from typing import Any

from rankdash import __version__
from rankdash.core.base.errors import RankdashError, SettingError, UnavailableError
from rankdash.core.base.rules import Setting, Settings, setting, settings_of
from rankdash.core.base.shipped import python_path
from rankdash.core.rerankers import Capabilities
from rankdash.core.rerankers.kinds.precomputed import Precomputed
from rankdash.core.rerankers.neural.runtimes import threads

LOCAL = "ray"
"""Address of a temporary cluster on this machine, started for the run."""

VARIABLE = "RANKDASH_RAY"
"""Variable with the address of the cluster that a server may use; without it, none."""

_ADDRESS = re.compile(r"(ray://)?(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})")


@dataclass(frozen=True)
class Actors(Settings):
    """Number and resources of the processes that score concurrently, each with its copy of the
    model. None: chosen for the cluster."""

    number: int | None = setting(
        None,
        "Actors",
        "Number of processes that score concurrently, each with a separate copy of the model.",
        unset="one per GPU of the cluster, or without GPUs one per machine",
        within=(1, 10_000),
        number=int,
        option="actors",
    )
    cpus: int | None = setting(
        None,
        "CPUs per actor",
        "Number of CPUs per actor.",
        unset="1 with a GPU, otherwise an equal share of the machine",
        within=(1, 1024),
        number=int,
        option="actor-cpus",
    )
    gpus: float | None = setting(
        None,
        "GPUs per actor",
        "Number of GPUs per actor. A fraction such as 0.5 lets actors share a GPU.",
        unset="1 if the cluster has GPUs and the reranker uses one",
        within=(0, 64),
        option="actor-gpus",
    )


ACTOR_SETTINGS: tuple[Setting, ...] = settings_of(Actors)


def host_and_port(address: str) -> tuple[str, int]:
    """Return the host and port of a cluster. Raises SettingError for an invalid address."""
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise SettingError(
            "{address!r} is not a Ray cluster address.",
            remedy="Use {local} for this machine, ray://HOST:PORT for the Ray client of a cluster "
            "(usually port 10001), or HOST:PORT on one of its machines (6379).",
            address=address,
            local=LOCAL,
        )
    return match["host"].strip("[]"), int(match["port"])


def allowed_address() -> str:
    """Return the address that the server administrator allowed.

    Raises SettingError without one.
    """
    address = os.environ.get(VARIABLE, "").strip()
    if not address:
        raise SettingError(
            "This server is not allowed to use a Ray cluster.",
            remedy="Ask the server administrator to set {variable}.",
            variable=VARIABLE,
        )
    return address


def refuse_elsewhere(name: str, capabilities: Capabilities) -> None:
    """Raise SettingError for a kind of reranker that does not compute locally."""
    if capabilities.needs_network or name == Precomputed.name:
        raise SettingError(
            "{name!r} does not compute locally, so a cluster cannot help.",
            remedy="Run it without Ray; scale the service itself.",
            name=name,
        )


# Errors that end a run on Ray.


@contextmanager
def reaching(address: str) -> Iterator[None]:
    """Raise UnavailableError if the cluster at an address is lost inside the block."""
    try:
        yield
    except ConnectionError as error:
        raise gone(address) from error


def gone(address: str) -> UnavailableError:
    """Return the error for a lost connection to a cluster."""
    return UnavailableError(
        "Lost connection to the Ray cluster at {address}.",
        remedy="Restart the cluster, and then the run. A run of the workspace resumes where it "
        "stopped, and so does a command with --resume.",
        address=address,
    )


def refuse_other(version: str, node: str) -> None:
    """Raise UnavailableError if a machine has another version of rankdash."""
    if version != __version__:
        raise UnavailableError(
            "{node} has rankdash {version}; this machine has {own}.",
            remedy="Install the same version on all machines of the cluster.",
            node=node,
            version=version,
            own=__version__,
        )


def not_started(error: Exception, deaths: int) -> UnavailableError:
    """Return the error for actors that died while loading. deaths: their number."""
    text = " ".join(str(error).split())
    if "No module named" in text:
        return UnavailableError(
            "A package is missing on the machines of the Ray cluster: {reason}",
            remedy='Install the same rankdash there: pip install "rankdash[models,ray]"',
            reason=text[text.index("No module named") :][:100],
        )
    return UnavailableError(
        "Actors that died while loading the reranker: {count}. Last reason: {reason}",
        remedy="An actor may lack memory: request fewer actors per machine, or use a smaller "
        "model.",
        count=deaths,
        reason=text[:300],
    )


def not_there(error: RankdashError, node: str) -> UnavailableError:
    """Return the error of an actor that cannot load the reranker."""
    return UnavailableError(
        "Error on {node}, a machine of the Ray cluster: {reason}", node=node, reason=str(error)
    )


# Connection to a Ray cluster, and its capacity.

# Time limits for an answer from an address, for joining a cluster (the Ray client starts a process
# for it), and for leaving it.
ANSWER_SECONDS = 10.0
_JOIN_SECONDS = 60.0
_STOP_SECONDS = 20.0

# First bytes of an HTTP/2 client, the protocol of all parts of Ray: the preface and empty settings.
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])

# A few batches of texts wait in this store; more are written to disk.
_OBJECT_STORE_BYTES = 256 * 2**20

_ROUNDING = 1e-9

_CLIENT = "ray://"
_TRACEBACK = "Traceback (most recent call last)"
_VERSIONS = re.compile(r"Ray: (\S+)\s+Python: (\S+)")


@dataclass(frozen=True)
class Room:
    """Number and size of the actors that fit on a cluster."""

    number: int
    cpus: int
    gpus: float


def connect(address: str) -> None:
    """Join the cluster at an address, or start one on this machine.

    Raises SettingError for an invalid address, and UnavailableError if Ray is not installed, the
    address does not answer, or the cluster runs another version of Ray or Python.
    """
    try:
        import ray
    except ImportError as error:
        raise UnavailableError(
            "Ray is not installed.", remedy='Install it: pip install "rankdash[ray]"'
        ) from error
    # Ray's warnings about its own future changes.
    warnings.filterwarnings("ignore", module=r"ray\.")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet |= {
            "include_dashboard": False,
            "num_cpus": threads(),
            "object_store_memory": _OBJECT_STORE_BYTES,
        }
        _own(lambda: ray.init(address="local", **quiet))
        return
    where = host_and_port(address)
    late = f"no answer within {ANSWER_SECONDS:.0f} s"
    try:
        # One limit for everything: a name may have several addresses and a slow lookup.
        if not _in_time(lambda: _greet(where), ANSWER_SECONDS):
            raise _silent(address, late)
    except TimeoutError as error:
        raise _silent(address, late) from error
    except OSError as error:
        raise _silent(address, str(error)) from error
    try:
        if not _in_time(lambda: ray.init(address=address, **quiet), _JOIN_SECONDS):
            raise _silent(address, f"not joined within {_JOIN_SECONDS:.0f} s")
    except UnavailableError:
        raise
    except Exception as error:
        raise _refused(address, str(error) or type(error).__name__) from error


def disconnect() -> None:
    """Leave the cluster; its actors end, and so does a cluster on this machine."""
    import ray

    with suppress(ConnectionError):
        _in_time(ray.shutdown, _STOP_SECONDS)


def room(actors: Actors, device: str) -> Room:
    """Return the number and size of the actors. device: the reranker's setting; "" without one.

    Raises UnavailableError if the cluster does not have enough CPUs or GPUs.
    """
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    nodes = [node for node in nodes if node.get("CPU", 0) >= 1]
    on_cluster = sum(node.get("GPU", 0.0) for node in nodes)
    gpus = actors.gpus
    if gpus is None:
        gpus = 1.0 if on_cluster and device not in ("", "cpu") else 0.0
    if gpus and not on_cluster:
        raise UnavailableError(
            "The Ray cluster has no GPU.",
            remedy="Remove the GPUs per actor, or add machines with GPUs to the cluster.",
        )
    number = actors.number or (int(on_cluster / gpus + _ROUNDING) if gpus else len(nodes))
    cpus = actors.cpus
    if cpus is None:
        each = -(-number // max(1, len(nodes)))
        least = min((int(node["CPU"]) for node in nodes), default=1)
        cpus = 1 if gpus else max(1, least // max(1, each))
    fit = sum(
        min(
            int(node["CPU"] / cpus + _ROUNDING),
            int(node.get("GPU", 0.0) / gpus + _ROUNDING) if gpus else number,
        )
        for node in nodes
    )
    if not number or fit < number:
        raise UnavailableError(
            "The Ray cluster has resources for {fit} actors with {cpus} CPUs and {gpus} GPUs "
            "each, not for {number}.",
            remedy="Request fewer or smaller actors, or add machines to the cluster.",
            fit=fit,
            cpus=cpus,
            gpus=f"{gpus:g}",
            number=number,
        )
    return Room(number, cpus, gpus)


def alive() -> bool:
    """Return whether the cluster has a live machine."""
    import ray

    return any(node["Alive"] for node in ray.nodes())


def _greet(where: tuple[str, int]) -> None:
    """Raise OSError if no server answers."""
    with socket.create_connection(where, timeout=ANSWER_SECONDS) as link:
        link.sendall(_HELLO)
        if not link.recv(1):
            raise ConnectionError("the cluster closed the connection")


def _own(start: Callable[[], object]) -> None:
    """Start a cluster on this machine. Not in another thread, because its processes would end with
    that thread."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM), os.environ.get("PYTHONPATH")
    # Actors inherit it from the cluster's processes, and those from this process.
    os.environ["PYTHONPATH"] = python_path()
    try:
        start()
    except Exception as error:
        raise UnavailableError(
            "Ray cannot be started on this machine: {reason}",
            remedy="Free memory, or score without Ray.",
            reason=" ".join(str(error).split())[:300],
        ) from error
    finally:
        handler, path = before
        os.environ.pop("PYTHONPATH")
        if path is not None:
            os.environ["PYTHONPATH"] = path
        if main:
            # Ray replaces the handler of this process.
            signal.signal(signal.SIGTERM, handler)


def _in_time(work: Callable[[], object], seconds: float) -> bool:
    """Run work in a thread and return whether it ended in time; raise its error. In a thread, Ray
    does not replace this process's handler for SIGTERM."""
    raised: list[BaseException] = []

    def call() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised.append(error)

    thread = threading.Thread(target=call, name="ray", daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    return not thread.is_alive()


def _silent(address: str, reason: str) -> UnavailableError:
    return UnavailableError(
        "The Ray cluster at {address} does not answer: {reason}.",
        remedy="Check the address, that the cluster is running (ray status), and its token "
        "(RAY_AUTH_MODE, RAY_AUTH_TOKEN).",
        address=address,
        reason=reason,
    )


def _told_by_client(address: str) -> str:
    """Connect Ray's client without settings and return the error message; "" if it connects. With
    settings, another version of Ray may fail to parse them and not report its version."""
    from ray.util.client import RayAPIStub

    stub = RayAPIStub()
    try:
        _in_time(
            lambda: stub.connect(address.removeprefix(_CLIENT), connection_retries=1),
            _JOIN_SECONDS,
        )
    except Exception as error:  # noqa: BLE001 - any reason is one
        return str(error)
    stub.disconnect()
    return ""


def _refused(address: str, reason: str) -> UnavailableError:
    """Return the error for a cluster that refused the connection. reason: Ray's message."""
    versions = _VERSIONS.findall(reason)
    if not versions and address.startswith(_CLIENT):
        versions = _VERSIONS.findall(_told_by_client(address))
    if len(versions) == 2:
        (ray, python), (own_ray, own_python) = versions
        return UnavailableError(
            "The Ray cluster at {address} runs Ray {ray} and Python {python}; this machine has "
            "Ray {own_ray} and Python {own_python}.",
            remedy="Install the same versions on both.",
            address=address,
            ray=ray,
            python=python,
            own_ray=own_ray,
            own_python=own_python,
        )
    last = reason.strip().splitlines()[-1] if _TRACEBACK in reason else reason
    return UnavailableError(
        "The Ray cluster at {address} cannot be used: {reason}",
        remedy="Check the address, and that the cluster is running: ray status",
        address=address,
        reason=f"{' '.join(last.split())[:300].rstrip('.')}.",
    )


# Commands on a cluster run in a separate process, which Ray may kill; this process then reports the
# error.
# Ray kills the process that started a run without a message when the raylet on its machine dies.

_VARIABLE = "_RANKDASH_APART"
_DONE = b"."
_FORWARDED = (signal.SIGINT, signal.SIGTERM)


def needed(address: str) -> bool:
    """Return whether to start a command by `run_apart`. False for a Ray client, which already uses
    another process; without Ray, which the command reports; and in a process that `run_apart`
    started."""
    spec = find_spec("ray")
    installed = spec is not None and bool(spec.submodule_search_locations)
    return installed and not address.startswith("ray://") and _VARIABLE not in os.environ


def run_apart(arguments: Sequence[str], address: str) -> int:
    """Run a rankdash command on the cluster at an address in a separate process; return its exit
    code. Signals are forwarded to it.

    Raises UnavailableError if the process ended before the command did.
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
                # This process receives Ctrl+C and forwards it once.
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
            "The process that controls the Ray cluster was killed by signal {number}.",
            remedy="The machine may lack memory. Start the run again.",
            number=-code,
        )
    raise gone(address)


@contextmanager
def apart() -> Iterator[None]:
    """Report the end of the command to the parent process, and end when the parent ends. Only in a
    process started by `run_apart`."""
    number = os.environ.get(_VARIABLE)
    if number is None:
        yield
        return
    # Open until the process ends, for the thread that reads from it.
    link = socket.socket(fileno=int(number))
    link.set_inheritable(False)
    threading.Thread(target=_watch, args=(link,), daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            link.send(_DONE)


def _watch(link: socket.socket) -> None:
    with suppress(OSError):
        link.recv(1)
        os.kill(os.getpid(), signal.SIGTERM)
