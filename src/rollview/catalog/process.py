"""Who this process is, and whether another one on this machine still lives.

Law: a process is called dead only when its number is free, or belongs to a process that started at another time, in
the same boot and the same process namespace. Everything else may be alive.
"""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    owner: str
    machine: str
    pid: int
    started: str


def this_process() -> Process:
    pid = os.getpid()
    return Process(f"{_user()}@{socket.gethostname()} pid {pid}", _machine(), pid, _started(pid) or "")


def is_dead(process: Process) -> bool:
    if process.machine != _machine():
        return False
    started = _started(process.pid)
    if started is None:
        return True
    return bool(started) and bool(process.started) and started != process.started


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _machine() -> str:
    """Equal for two processes only if they see each other's process numbers."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str | None:
    """When the process began, in the kernel's ticks; empty where the system does not tell; None if it is dead."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return "" if _answers(pid) else None
    # The field after the command's name is the state, and the twentieth from there the start time.
    return None if fields[0] in "ZX" else fields[19]


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
