"""Runs on a Ray cluster of two machines, also if one of them fails.

`python tests/benchmarks/ray_machines.py`, as root on Linux with iproute2 and Ray: this machine as
three, each with a separate network, name and temporary folder. The first two are a cluster, with
one processor each; the third is not part of it, and connects with Ray's client. Runs have to equal
a run of one process, byte for byte: complete, by the client, with the raylet of the second machine
killed in the middle, and with its cable pulled. If a machine has no model, an error has to report
it. The machines are removed at the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.scoring import CROSS, SAMPLE, folder_of  # noqa: E402

PLUGIN = ROOT / "tests" / "runs" / "ray_plugin.py"
NAMES = ("first", "second", "third")
ADDRESS = "10.77.0"
HEAD = f"{ADDRESS}.1:6379"
CLIENT = f"ray://{ADDRESS}.1:10001"
SECONDS = 300.0
# The machine's separate resources besides its network; "$2" is a folder that it lacks.
OWN = """
hostname "$0"; mkdir -p /tmp/ray "$1"; mount --bind "$1" /tmp/ray
[ -z "$2" ] || mount -t tmpfs tmpfs "$2"
shift 2; exec "$@"
"""
# Half of the queries; single queries are timed first.
MIDDLE = 110


def ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True)


def space(name: str) -> str:
    return f"rankdash-{name}"


@contextmanager
def machines() -> Iterator[None]:
    switch = space("switch")
    try:
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "br0", "type", "bridge")
        ip("-n", switch, "link", "set", "br0", "up")
        for place, name in enumerate(NAMES, 1):
            own, plug = space(name), f"plug{place}"
            ip("netns", "add", own)
            ip(*f"-n {own} link add eth0 type veth peer name {plug} netns {switch}".split())
            ip(*f"-n {switch} link set {plug} master br0 up".split())
            ip(*f"-n {own} addr add {ADDRESS}.{place}/24 dev eth0".split())
            cable(name, "up")
            ip("-n", own, "link", "set", "lo", "up")
        yield
    finally:
        for name in (*NAMES, "switch"):
            end(processes(name))
            subprocess.run(("ip", "netns", "del", space(name)), check=False)


def cable(name: str, way: str) -> None:
    ip("-n", space(name), "link", "set", "eth0", way)


def processes(name: str) -> list[int]:
    command = ("ip", "netns", "pids", space(name))
    told = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    return [int(pid) for pid in told.split()]


def raylet(name: str) -> list[int]:
    def called(pid: int) -> str:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]

    return [pid for pid in processes(name) if called(pid).endswith("/raylet")]


def end(pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def on(name: str, folder: Path, *command: str, without: str = "") -> list[str]:
    """Return the arguments that run a command on a machine."""
    own = ("unshare", "-u", "-m", "bash", "-c", OWN, name, str(folder / name), without)
    return ["ip", "netns", "exec", space(name), *own, *command]


@contextmanager
def cluster(folder: Path, without: str = "") -> Iterator[None]:
    """Run a cluster of two machines. without: a folder that the second machine lacks."""
    ray = str(Path(sys.executable).with_name("ray"))
    size = ["--num-cpus=1", "--object-store-memory=200000000", "--disable-usage-stats", "--block"]
    head = f"--head --include-dashboard false --node-ip-address {ADDRESS}.1 --port 6379".split()
    ports = ("--ray-client-server-port", "10001")
    joining = f"--address {HEAD} --node-ip-address {ADDRESS}.2".split()

    def start(command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    status = on("first", folder, ray, "status", "--address", HEAD)

    def joined(number: int) -> bool:
        told = subprocess.run(status, check=False, capture_output=True, text=True).stdout
        return told.count(" node_") >= number

    started = [start(on("first", folder, ray, "start", *head, *ports, *size))]
    try:
        until(lambda: joined(1))
        second = on("second", folder, ray, "start", *joining, *size, without=without)
        started.append(start(second))
        until(lambda: joined(2))
        yield
    finally:
        for name in NAMES:
            end(processes(name))
        for process in started:
            process.wait()


def until(holds: Callable[[], object]) -> None:
    limit = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > limit:
            raise TimeoutError("It did not happen.")
        time.sleep(0.2)


def command(out: Path, kind: str, settings: dict[str, object], *more: str) -> list[str]:
    rerank = [sys.executable, "-m", "rankdash", "rerank", "--data", str(SAMPLE), "--out", str(out)]
    given = [f"--set={name}={value}" for name, value in settings.items()]
    return [*rerank, "--reranker", kind, "--plugin", str(PLUGIN), *given, *more]


def asked(address: str) -> list[str]:
    return ["--on", address, "--actors", "2", "--actor-cpus", "1"]


def done(name: str, folder: Path, *command: str) -> tuple[int, list[str], float]:
    """Return the exit code of a command on a machine, its lines of stderr, and its seconds."""
    started = time.monotonic()
    told = subprocess.run(on(name, folder, *command), check=False, stderr=-1, text=True)
    return told.returncode, told.stderr.splitlines(), time.monotonic() - started


def broken(folder: Path, whole: bytes, what: str, breaking: Callable[[], object]) -> bool:
    """Return whether a run is complete although `breaking` interrupts it in the middle."""
    out, kept, log = (folder / each for each in ("broken.trec", "kept", "pids"))
    settings = {"ms": 100, "log": log}
    with cluster(folder):
        run = command(out, "hashing", settings, *asked(HEAD), "--resume", str(kept))
        with subprocess.Popen(on("first", folder, *run), stderr=-1, text=True) as process:
            until(lambda: kept.exists() and kept.read_bytes().count(b"\n") > MIDDLE)
            scoring = {int(pid) for pid in log.read_text().split()}
            shared = [bool(scoring & {*processes(name)}) for name in NAMES[:2]]
            at, started = kept.read_bytes().count(b"\n") - 1, time.monotonic()
            breaking()
            said = process.stderr.read() if process.stderr else ""
    good = process.returncode == 0 and out.read_bytes() == whole
    print(
        f"{what} after {at} queries, actors on both {all(shared)}: "
        f"{'equal' if good else 'NOT EQUAL'}, {time.monotonic() - started:.0f} s later",
        flush=True,
    )
    if not good:
        print(said)
    for each in (out, kept, log):
        each.unlink(missing_ok=True)
    return good and all(shared)


def main() -> int:
    os.environ |= {"PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled"}
    good = []
    with tempfile.TemporaryDirectory() as made, machines():
        folder = Path(made)
        models = folder / "models"
        model = shutil.copytree(folder_of(CROSS), models / "own")
        settings = {"model": model, "runtime": "onnx", "max_length": 128}
        less = ("--depth", "10")
        whole, out = folder / "whole.trec", folder / "out.trec"
        done("third", folder, *command(whole, "cross-encoder", settings, *less))
        with cluster(folder):
            for name, address in (("first", HEAD), ("third", CLIENT)):
                run = command(out, "cross-encoder", settings, *less, *asked(address))
                code, said, seconds = done(name, folder, *run)
                good.append(code == 0 and out.read_bytes() == whole.read_bytes())
                equal = "equal" if good[-1] else "NOT EQUAL"
                print(f"from {name} to {address}: {equal}, {seconds:.0f} s", *said[-2:], sep="\n  ")
                out.unlink(missing_ok=True)
        done("third", folder, *command(whole, "hashing", {}))
        expected = whole.read_bytes()
        kill = ("raylet of the second killed", lambda: end(raylet("second")))
        pull = ("cable of the second pulled", lambda: cable("second", "down"))
        good += [broken(folder, expected, *each) for each in (kill, pull)]
        cable("second", "up")
        with cluster(folder, without=str(models)):
            run = command(out, "cross-encoder", settings, *less, *asked(HEAD))
            code, said, _ = done("first", folder, *run)
        good.append(code == 2 and "On second, a machine of the Ray cluster" in said[-1])
        print(f"without the model on the second: {said[-1]}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
