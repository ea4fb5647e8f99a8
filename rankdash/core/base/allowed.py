"""Settings of a server administrator: the names under which the server is reached, and what
visitors may use of its machine (variables with API keys, and hosts of services).

A server that only its own machine can reach allows everything, whatever the lists contain.
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
# Set by the server for itself and its worker.
SHARED = "RANKDASH_SHARED"
# The name that allows the hub's token, even if the token comes from `hf auth login`.
_HUB_TOKEN = "HF_TOKEN"  # noqa: S105 - its name
ANY = "*"
# The public range of IPv6, and the range that maps to IPv4 addresses (RFC 6052).
_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
YES = "1"


def names(variable: str) -> frozenset[str]:
    """Return the names in an environment variable, separated by commas or blanks, in lower case."""
    return frozenset(re.split(r"[\s,]+", os.environ.get(variable, "").casefold())) - {""}


def bound(address: str) -> None:
    """Mark this process and its child processes as a shared server if other machines can reach
    it, because of the address it is bound to or because RANKDASH_HOSTS is set."""
    if names(HOSTS) or not is_loopback(address):
        os.environ[SHARED] = YES


def is_shared() -> bool:
    """Return whether other machines can reach the server of this process."""
    return os.environ.get(SHARED) == YES


def is_loopback(host: str) -> bool:
    """Return whether a host name or address means this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def may_read_key(variable: str) -> bool:
    """Return whether a run may use the key in an environment variable."""
    return not is_shared() or not names(KEYS).isdisjoint({variable.casefold(), ANY})


def hub_token() -> Literal[False] | None:
    """Return the argument `token` of the hub's client: None for the token of this machine, which
    the client sends only to the hub; False if visitors may not use it."""
    return None if may_read_key(_HUB_TOKEN) else False


def environment() -> dict[str, str]:
    """Return the environment variables that pass these settings to a process on another machine; {}
    if this server has no visitors."""
    return {SHARED: YES, KEYS: os.environ.get(KEYS, "")} if is_shared() else {}


def address_of(url: str, configured: str = "") -> str | None:
    """Return the IP address to connect to for a service at `url`, so that its host name cannot
    resolve to another address later; None if no check is needed.

    configured: a URL that is set by an environment variable.

    Raises SettingError if the server may not contact the service, UnavailableError if its host is
    not found.
    """
    host = (urlsplit(url).hostname or "").casefold()
    listed = names(SERVICES)
    if not is_shared() or not listed.isdisjoint({host, ANY}) or url == configured:
        return None
    if listed:
        raise SettingError(
            "This server is not allowed to contact {host}.",
            remedy="Ask the server administrator to list the allowed hosts: --allow-service "
            "HOST, or {variable}.",
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
            "This server is not allowed to contact {host}: its address is private.",
            remedy="Ask the server administrator to allow it: --allow-service HOST, or {variable}.",
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
        # An IPv4 address embedded in an IPv6 address is judged itself.
        if inner is not None:
            parsed = inner
        elif parsed not in _UNICAST:
            return False
    return parsed.is_global and not parsed.is_multicast
