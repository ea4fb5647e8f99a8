"""Why a run on Ray cannot go on, in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rankdash import __version__
from rankdash.core.base.errors import RankdashError, UnavailableError


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
