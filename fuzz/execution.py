"""Execution of inputs within limits of time and memory. Inputs are recorded first, so that they survive a crash."""

from __future__ import annotations

import faulthandler
import hashlib
import mmap
import os
import resource
import signal
import struct
import time
import traceback
from contextlib import suppress
from pathlib import Path

from fuzz.mutation import LONGEST
from fuzz.target import Target

CPU_SECONDS, WALL_SECONDS = 5.0, 60
"""Limits for one input. CPU time detects loops, independent of other load; wall time detects blocking calls."""
MEMORY = 1_500_000_000
"""Bytes of private memory for one target, in addition to what its process has after the imports."""
SHRINK_SECONDS = 5.0
SAMPLES = 20

_HEAD = struct.Struct("<QQ")


class Recorder:
    """A mapped file with the number of executions and the input of the last one. It outlives a killed process."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_HEAD.size + LONGEST))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    @property
    def executions(self) -> int:
        return int(_HEAD.unpack_from(self._map)[0])

    @property
    def last(self) -> bytes:
        length = _HEAD.unpack_from(self._map)[1]
        return self._map[_HEAD.size : _HEAD.size + length]

    def record(self, data: bytes) -> None:
        _HEAD.pack_into(self._map, 0, self.executions + 1, len(data))
        self._map[_HEAD.size : _HEAD.size + len(data)] = data

    def close(self) -> None:
        self._map.close()


def confine(stacks: Path) -> None:
    """Limit this process permanently; fatal signals write the stacks of its threads first."""
    used = int(_status("VmData")) * 1_024
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    file = stacks.open("w")  # stays open: signal handlers write to it
    faulthandler.enable(file)
    for signum in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(signum, signal.SIG_DFL)
        faulthandler.register(signum, file, chain=True)


def warm_up(target: Target) -> None:
    """Run a few samples without limits: compiling changed kernels takes a minute."""
    for sample in target.seeds[:SAMPLES]:
        with suppress(BaseException):  # failures are found again within the limits
            target.run(sample)


def _status(name: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


class Executor:
    """Executes inputs of one target and saves a minimized input of each different failure."""

    def __init__(self, target: Target, folder: Path, seconds: float | None = None) -> None:
        """With `seconds`, the process exits after that much CPU time: libFuzzer measures only wall time."""
        self.target, self._folder = target, folder
        self._until = None if seconds is None else time.process_time() + seconds
        self._recorder = Recorder(folder / "last")
        self._known: set[str] = set()

    def __call__(self, data: bytes) -> None:
        data = data[:LONGEST]
        if self._until is not None and time.process_time() > self._until:
            os._exit(0)
        problem = self._problem(data)
        if problem is None:
            return
        signature = signature_of(problem)
        if signature not in self._known:
            self._known.add(signature)
            self._save_failure(self._shrink(data, signature), problem, signature)

    def _problem(self, data: bytes) -> BaseException | None:
        self._recorder.record(data)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        signal.alarm(WALL_SECONDS)
        try:
            self.target.run(data)
        except self.target.accepts:
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # noqa: BLE001 - a panic in Rust is a finding, but no Exception
            return problem
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
        return None

    def _shrink(self, data: bytes, signature: str) -> bytes:
        """Remove pieces, large ones first, while the failure stays the same."""
        until, size = time.monotonic() + SHRINK_SECONDS, len(data) // 2
        while size:
            start = 0
            while start < len(data) and time.monotonic() < until:
                smaller = data[:start] + data[start + size :]
                problem = self._problem(smaller)
                if problem is not None and signature_of(problem) == signature:
                    data = smaller
                else:
                    start += size
            size //= 2
        return data

    def _save_failure(self, data: bytes, problem: BaseException, signature: str) -> None:
        trace = "".join(traceback.format_exception(problem))
        save(self._folder, data, f"{signature}\n\n{trace}")


def signature_of(problem: BaseException) -> str:
    """Return the type of a failure and the innermost location in our code."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if "/tidings/" in frame.filename or "/fuzz/" in frame.filename]
    last = ours[-1] if ours else frames[-1]
    return f"{type(problem).__name__} in {Path(last.filename).name}:{last.lineno} ({last.name})"


def save(folder: Path, data: bytes, description: str) -> Path:
    """Write a failing input, and a description of the failure beside it."""
    path = folder / f"{hashlib.blake2b(description.encode(), digest_size=6).hexdigest()}.input"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(description, encoding="utf-8", errors="backslashreplace")
    return path
