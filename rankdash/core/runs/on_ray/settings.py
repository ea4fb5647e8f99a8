"""Where a run on Ray goes, and with how many actors of which size."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rankdash import __version__
from rankdash.core.base.errors import RankdashError, SettingError, UnavailableError
from rankdash.core.base.settings import Setting, Settings, setting, settings_of
from rankdash.core.rerankers import Capabilities
from rankdash.core.rerankers.kinds.precomputed import Precomputed

LOCAL = "ray"
"""The address that stands for a cluster of this machine alone, started for the run."""

VARIABLE = "RANKDASH_RAY"
"""The address that a server may send runs to; without it, it sends none."""

_ADDRESS = re.compile(r"(ray://)?(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})")


@dataclass(frozen=True)
class Actors(Settings):
    """The processes that score at once, each with a model of its own. None: by the cluster."""

    number: int | None = setting(
        None,
        "Actors",
        "How many score at once, each with a model of its own. Empty: one for each GPU of the "
        "cluster, or without GPUs one for each machine.",
        least=1,
        most=10_000,
    )
    cpus: int | None = setting(
        None,
        "CPUs of an actor",
        "Empty: 1 beside a GPU, or else an equal share of its machine.",
        least=1,
        most=1024,
    )
    gpus: float | None = setting(
        None,
        "GPUs of an actor",
        "A part of one, such as 0.5, lets actors share it. Empty: 1 where the cluster has GPUs.",
        least=0,
        most=64,
    )


ACTOR_SETTINGS: tuple[Setting, ...] = settings_of(Actors)


def host_and_port(address: str) -> tuple[str, int]:
    """Where a cluster listens. Raises SettingError for what is no address of one."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) < 65536:
        raise SettingError(
            "{address!r} is no address of a Ray cluster.",
            remedy="Write {local} for this machine, ray://HOST:PORT for the Ray client of a "
            "cluster (usually port 10001), or HOST:PORT on one of its machines (6379).",
            address=address,
            local=LOCAL,
        )
    return found["host"].strip("[]"), int(found["port"])


def allowed_address() -> str:
    """The address that whoever started this server allowed.

    Raises SettingError where there is none.
    """
    found = os.environ.get(VARIABLE, "").strip()
    if not found:
        raise SettingError(
            "This server may use no Ray cluster.",
            remedy="Whoever starts it names one in {variable}.",
            variable=VARIABLE,
        )
    return found


def refuse_elsewhere(name: str, capabilities: Capabilities) -> None:
    """Raise SettingError for a kind of reranker that computes nothing for a cluster to do."""
    if capabilities.needs_network or name == Precomputed.name:
        raise SettingError(
            "The reranker {name!r} computes nothing here that a cluster could do.",
            remedy="Run it without Ray; a service is made larger where it is served.",
            name=name,
        )


# Why a run on Ray cannot go on, in words.


@contextmanager
def reaching(address: str) -> Iterator[None]:
    """Raises UnavailableError where the cluster at an address is lost inside."""
    try:
        yield
    except ConnectionError as error:
        raise gone(address) from error


def gone(address: str) -> UnavailableError:
    """For a cluster that was there."""
    return UnavailableError(
        "The Ray cluster at {address} is gone.",
        remedy="Start it again, and then the run. A run of the workspace goes on where it stopped, "
        "and so does a command with --resume.",
        address=address,
    )


def refuse_other(version: str, node: str) -> None:
    """Raise UnavailableError for another version of rankdash on a machine."""
    if version != __version__:
        raise UnavailableError(
            "On {node} is rankdash {version}; here is {own}.",
            remedy="Install the same version on all machines of the cluster.",
            node=node,
            version=version,
            own=__version__,
        )


def not_started(error: Exception, deaths: int) -> UnavailableError:
    """For actors that died while they loaded, so many of them."""
    text = " ".join(str(error).split())
    if "No module named" in text:
        return UnavailableError(
            "A package is missing on the machines of the Ray cluster: {reason}",
            remedy='Install rankdash there as here: pip install "rankdash[models,ray]"',
            reason=text[text.index("No module named") :][:100],
        )
    return UnavailableError(
        "Actors that died while they loaded the reranker: {count}. The last reason: {reason}",
        remedy="An actor may lack memory: ask for fewer on each machine, or a smaller model.",
        count=deaths,
        reason=text[:300],
    )


def not_there(error: RankdashError, node: str) -> UnavailableError:
    """For what an actor said that it cannot load."""
    return UnavailableError(
        "On {node}, a machine of the Ray cluster: {reason}", node=node, reason=str(error)
    )
