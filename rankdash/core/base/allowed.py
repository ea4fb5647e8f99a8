"""What whoever starts a server allows: the names under which it is reached, and what others who
reach it may use of its machine: variables with keys, and hosts of services.

On a server that only its own machine reaches, everybody has all of it anyway, and no list holds.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from typing import Literal
from urllib.parse import urlsplit

from rankdash.core.base.errors import SettingError, UnavailableError

HOSTS, KEYS, SERVICES = "RANKDASH_HOSTS", "RANKDASH_KEYS", "RANKDASH_SERVICES"
METRICS = "RANKDASH_METRICS"
# Said by the server to itself and to its worker.
SHARED = "RANKDASH_SHARED"
# The name by which the hub's token is allowed, also if the token comes from `hf auth login`.
_HUB_TOKEN = "HF_TOKEN"  # noqa: S105 - its name
ANY = "*"
# The addresses of IPv6 that are in public use, and those that lead to addresses of IPv4 (RFC 6052).
_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
YES = "1"


def names(variable: str) -> frozenset[str]:
    """The names in an environment variable, separated by commas or blanks, in small letters."""
    return frozenset(re.split(r"[\s,]+", os.environ.get(variable, "").casefold())) - {""}


def bound(address: str) -> None:
    """Have this process, and those that it starts, know whether others than this machine reach the
    server: by the address that it is bound to, or by a name that it has."""
    if names(HOSTS) or not is_loopback(address):
        os.environ[SHARED] = YES


def is_shared() -> bool:
    """Whether others than this machine reach the server that this process belongs to."""
    return os.environ.get(SHARED) == YES


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def may_read_key(variable: str) -> bool:
    """Whether a run may use the key in a variable of the environment."""
    return not is_shared() or not names(KEYS).isdisjoint({variable.casefold(), ANY})


def hub_token() -> Literal[False] | None:
    """Return the argument `token` of the hub's client: None for the token of this machine, which
    the client sends to the hub only; False if visitors may not use it."""
    return None if may_read_key(_HUB_TOKEN) else False


def environment() -> dict[str, str]:
    """Return the variables from which a process on another machine knows what visitors may use; {}
    if this server has no visitors."""
    return {SHARED: YES, KEYS: os.environ.get(KEYS, "")} if is_shared() else {}


def address_of(url: str, configured: str = "") -> str | None:
    """Where a service at `url` may be asked: the address that its host has now, to be connected to,
    so that the name cannot lead elsewhere later; None where it may be reached as it is.

    configured: a URL that the environment itself names.

    Raises SettingError where it may not be asked, UnavailableError where its host is not found.
    """
    host = (urlsplit(url).hostname or "").casefold()
    listed = names(SERVICES)
    if not is_shared() or not listed.isdisjoint({host, ANY}) or url == configured:
        return None
    if listed:
        raise SettingError(
            "This server may not ask the host {host}.",
            remedy="Whoever starts it lists the hosts of services: --allow-service HOST, or "
            "{variable}.",
            host=host,
            variable=SERVICES,
        )
    try:
        addresses = [str(each[4][0]) for each in socket.getaddrinfo(host, None)]
    except (OSError, UnicodeError) as problem:
        raise UnavailableError(
            "The host {host} was not found.",
            remedy="Check the address of the service.",
            host=host,
        ) from problem
    if not all(_is_public(each) for each in addresses):
        raise SettingError(
            "This server may not ask the host {host}: its address is private.",
            remedy="Whoever starts the server can allow it: --allow-service HOST, or {variable}.",
            host=host,
            variable=SERVICES,
        )
    return addresses[0]


def _is_public(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if parsed in _NAT64:
            inner = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        # An IPv4 address in one of IPv6 is judged as what it leads to.
        if inner is not None:
            parsed = inner
        elif parsed not in _UNICAST:
            return False
    return parsed.is_global and not parsed.is_multicast
