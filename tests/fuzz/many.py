"""`python -m tests.fuzz.many 50000`: reads so many changed files, each format of data and each kind
of file beside the data in turn.

Prints what was raised that is no error of rankdash's own, what was read as something else without a
warning (the simple formats are read a second time by `independent`), what took longer than 5 s of
processor time, what took more than 1 GB of memory, and what ended the process.
"""

import multiprocessing
import resource
import sys
import time
import traceback
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from rankdash.errors import RankdashError
from rankdash.i18n import error_text
from rankdash.loading import examine
from tests.fuzz import side_files
from tests.fuzz.independent import silently_wrong
from tests.fuzz.mutated import FORMATS, mutated, sources
from tests.fuzz.side_files import SIDE_FILES

_SECONDS = 5.0
# As `ru_maxrss` and the limit of the issue count them: kilobytes.
_KILOBYTES = 1_000_000
# After so many files a process is replaced, so that what one leaves behind does not count for all.
_FILES = 5000


def main(count: int, first: int = 0) -> int:
    """How many faults there were."""
    found: Counter[str] = Counter()
    kinds = [*FORMATS, *SIDE_FILES]
    at = first
    while at < first + count:
        end = min(at + _FILES, first + count)
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=_read, args=(theirs, kinds, at, end)
        )
        process.start()
        theirs.close()
        at = _watch(ours, process, at, end, found)
        process.join()
        print(f"{at - first:,} files: {dict(found)}", flush=True)
    faults = {kind: found[kind] for kind in ("raw", "silent", "hang", "memory", "crash")}
    print(f"{count:,} files of {len(kinds)} kinds: {faults}")
    return sum(faults.values())


def _watch(
    ours: Connection,
    process: multiprocessing.process.BaseProcess,
    at: int,
    end: int,
    found: Counter[str],
) -> int:
    """The number of the file to go on with."""
    while at < end:
        started = _cpu(process.pid)
        while not ours.poll(0.5):
            if process.is_alive() and _cpu(process.pid) - started > 3 * _SECONDS:
                process.kill()
                process.join()
                return _fault(found, "hang", at, "no end")
            if not process.is_alive() and not ours.poll():
                return _fault(found, "crash", at, f"exit code {process.exitcode}")
        try:
            kind, seconds, kilobytes, text = ours.recv()
        except EOFError:
            process.join()
            return _fault(found, "crash", at, f"exit code {process.exitcode}")
        found[kind] += 1
        if text:
            print(f"{kind}: file {at}: {text}", flush=True)
        if seconds > _SECONDS:
            _fault(found, "hang", at, f"{seconds:.1f} s")
        at += 1
        if kilobytes > _KILOBYTES:
            process.kill()
            return _fault(found, "memory", at - 1, f"{kilobytes / 1000:,.0f} MB")
    return at


def _fault(found: Counter[str], kind: str, at: int, text: str) -> int:
    found[kind] += 1
    print(f"{kind}: file {at}: {text}", flush=True)
    return at + 1


def _cpu(pid: int | None) -> float:
    """Seconds of processor time of a process; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100


def _read(theirs: Connection, kinds: list[str], at: int, end: int) -> None:
    for number in range(at, end):
        name, seed = kinds[number % len(kinds)], number // len(kinds)
        beside = name in SIDE_FILES
        content = side_files.mutated(name, seed) if beside else mutated(name, seed)
        started = time.process_time()
        kind, text = "read", ""
        try:
            if beside:
                side_files.read(name, content)
            else:
                text = silently_wrong(name, content, examine(sources(name, content)))
                kind = "silent" if text else kind
        except RankdashError as error:
            kind = "refused"
            error_text(error).encode()
        except Exception as error:  # noqa: BLE001 - these are what is looked for
            frames = traceback.extract_tb(error.__traceback__)
            kind = "raw"
            text = f"{name}: {type(error).__name__}: {str(error)[:100]!a} {frames[-1]}"
        seconds = time.process_time() - started
        theirs.send((kind, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, text))


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
