"""`serve`: starts the dashboard, from any folder."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import re
import runpy
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from typing import NoReturn

from rankdash.core.base import allowed
from rankdash.core.base.shipped import APP, FRONT_VARIABLE
from rankdash.core.workspace.workspace import HOME_VARIABLE, READ_ONLY_VARIABLE
from rankdash.kit.commands.arguments import DONE, INTERRUPTED, Parser, UsageError

_LOOPBACK = "127.0.0.1"
_ADDRESS_VARIABLE = "STREAMLIT_SERVER_ADDRESS"
_CERTIFICATE_VARIABLE = "STREAMLIT_SERVER_SSL_CERT_FILE"
_MOST_PROCESSES, _MOST_BY_DEFAULT = 64, 4
_BASE_PATH = re.compile(r"[\w.~-]+(/[\w.~-]+)*", re.ASCII)


def add(parser: Parser) -> None:
    parser.description = (
        "Open the dashboard in the browser; Ctrl+C ends it. `rankdash` without a command does "
        "the same. All Streamlit settings also work as environment variables, such as "
        "STREAMLIT_SERVER_PORT."
    )
    parser.option(
        "--host",
        "ADDRESS",
        "the address to listen on; 0.0.0.0 lets other machines open the dashboard and change the "
        "workspace (default: 127.0.0.1, this machine only)",
    )
    parser.number("--port", "the port (default: 8501, or the next free one; 0: any)", kind=int)
    parser.option(
        "--base-path", "PATH", "the path before every page, such as behind a proxy at /PATH"
    )
    parser.several(
        "--allow-host",
        "NAME",
        "a host name of the dashboard, such as a proxy's name; requests under other names are "
        "refused (also: RANKDASH_HOSTS)",
    )
    parser.several(
        "--allow-key",
        "VARIABLE",
        "if other machines can open the dashboard: a variable with an API key that visitors may "
        "use, such as COHERE_API_KEY (also: RANKDASH_KEYS; default: none)",
    )
    parser.several(
        "--allow-service",
        "HOST",
        "if other machines can open the dashboard: the only hosts that runs may contact (also: "
        "RANKDASH_SERVICES; default: every host with a public address)",
    )
    parser.flag("--read-only", "show the workspace without changing it; rerankers cannot run")
    parser.option(
        "--home", "FOLDER", "the workspace (default: RANKDASH_HOME, or your user data directory)"
    )
    parser.number(
        "--processes",
        "the number of server processes behind the address, each with its own visitors and "
        "memory. More than one per processor does not help. Default: 1; if other machines can open "
        "the dashboard, one per processor, at most 4",
        kind=int,
    )
    parser.flag("--no-browser", "only print the address")
    parser.set_defaults(command=serve)


def serve(arguments: argparse.Namespace) -> int:
    """Run the server until it is stopped. Raises UsageError if it cannot listen at the address."""
    settings: dict[str, object] = {}
    if arguments.host is not None:
        settings["server.address"] = arguments.host
    if arguments.port is not None:
        settings["server.port"] = arguments.port
    if arguments.base_path is not None:
        settings["server.baseUrlPath"] = _base_path(arguments.base_path)
    if arguments.no_browser:
        settings["server.headless"] = "true"
    if settings.keys() & {"server.address", "server.port"}:
        _refuse_what_cannot_listen(arguments.host or _LOOPBACK, arguments.port or 0)
    if arguments.home is not None:
        os.environ[HOME_VARIABLE] = arguments.home
    for variable, added in (
        (allowed.HOSTS, arguments.allow_host),
        (allowed.KEYS, arguments.allow_key),
        (allowed.SERVICES, arguments.allow_service),
    ):
        if added:
            os.environ[variable] = ",".join([os.environ.get(variable, ""), *added])
    if arguments.read_only:
        os.environ[READ_ONLY_VARIABLE] = "1"
    count = arguments.processes
    if count is None:
        count = _usual_processes(arguments.host)
        if count > 1:
            sys.stdout.write(f"{count} server processes; set another number with --processes.\n")
    if count != 1:
        return _several(arguments, count, settings)
    if FRONT_VARIABLE in os.environ:
        threading.Thread(target=_end_with_front, daemon=True).start()
    from uvicorn.config import HTTP_PROTOCOLS

    # As `streamlit run` in a shell, which reads the settings next to the app; in this process, so
    # that a signal to this process stops the server.
    options = [f"--{name}={value}" for name, value in settings.items()]
    sys.argv = ["streamlit", "run", str(APP), *options]
    signal.signal(signal.SIGINT, _stopped)
    # Streamlit starts uvicorn with the protocol of this name.
    HTTP_PROTOCOLS["auto"] = "rankdash.app.guard:Connection"
    runpy.run_module("streamlit", run_name="__main__")
    return DONE


def _usual_processes(host: str | None) -> int:
    """Return the default number of server processes. It is 1 if only this machine can connect, or
    if several processes are not supported."""
    local = allowed.is_loopback(host or os.environ.get(_ADDRESS_VARIABLE) or _LOOPBACK)
    unsupported = os.name == "nt" or _CERTIFICATE_VARIABLE in os.environ
    if local or unsupported or FRONT_VARIABLE in os.environ:
        return 1
    from rankdash.core.rerankers.neural.runtimes import threads

    return min(threads(), _MOST_BY_DEFAULT)


def _several(arguments: argparse.Namespace, count: int, settings: Mapping[str, object]) -> int:
    """Run several servers. Raises UsageError if that is not possible."""
    if not 1 <= count <= _MOST_PROCESSES:
        raise UsageError(f"--processes is a number from 1 to {_MOST_PROCESSES}, not {count}.")
    if os.name == "nt":
        raise UsageError("--processes does not work on Windows; remove it.")
    if os.environ.get(_CERTIFICATE_VARIABLE):
        raise UsageError(
            "Several processes support plain HTTP only; put a proxy with the certificate in "
            "front of them, or remove --processes."
        )
    from rankdash.app.processes import Front, listening, until_stopped

    host = arguments.host or os.environ.get(_ADDRESS_VARIABLE) or _LOOPBACK
    try:
        listener = listening(host, arguments.port)
    except OSError as problem:
        raise UsageError(_why(problem, host, arguments.port or 0)) from problem
    # The worker, which the front starts, inherits the setting.
    allowed.bound(host)
    path = str(settings.get("server.baseUrlPath", ""))
    options = [
        *("--host", _LOOPBACK),
        *(("--base-path", path) if path else ()),
        *(("--no-browser",) if arguments.no_browser else ()),
    ]
    front = Front(
        [sys.executable, "-m", "rankdash", "serve", *options],
        count,
        address=f"{host}:{listener.getsockname()[1]}",
        base_path=path,
    )
    code = asyncio.run(until_stopped(front, listener))
    if code == INTERRUPTED:
        sys.stderr.write("Stopped.\n")
    return code


def _end_with_front() -> None:
    """End this server when the process that started it has ended for any reason."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _stopped(_number: int, _frame: object) -> NoReturn:
    """Exit on Ctrl+C, without the KeyboardInterrupt, which Streamlit would handle."""
    sys.stderr.write("Stopped.\n")
    raise SystemExit(INTERRUPTED)


def _base_path(text: str) -> str:
    path = text.strip("/")
    if path and not _BASE_PATH.fullmatch(path):
        raise UsageError(f"{text!r} is not a URL path; use one such as /rankdash.")
    return path


def _refuse_what_cannot_listen(host: str, port: int) -> None:
    """Raise UsageError if no server can listen at the address. port: 0 for any."""
    if not 0 <= port <= 65535:
        raise UsageError(f"A port is a number from 1 to 65535, not {port}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        if os.name != "nt":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as problem:
            raise UsageError(_why(problem, host, port)) from problem


def _why(problem: OSError, host: str, port: int) -> str:
    if isinstance(problem, socket.gaierror) or problem.errno == errno.EADDRNOTAVAIL:
        return (
            f"This machine has no address {host!r}; remove --host to listen on this machine only."
        )
    if problem.errno == errno.EADDRINUSE:
        return (
            f"Port {port} is in use by another program; choose another --port, or remove it to "
            "use the next free one."
        )
    return f"Port {port} cannot be opened: {problem.strerror}; choose another --port."
