"""A Spark Connect server and a standalone cluster of two workers, from PySpark's own scripts, on loopback ports."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from rollview.engine import java

HOME = Path(pyspark.__file__).parent
_PATIENCE = 180.0
_HERE = "127.0.0.1"


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The address of a server that works with two threads."""
    port, quiet = _free_port(), ("--conf", "spark.ui.enabled=false")
    command = [HOME / "sbin" / "start-connect-server.sh", "--wait", "--master", "local[2]", *quiet]
    command += ["--conf", f"spark.connect.grpc.binding.port={port}"]
    command += ["--conf", f"spark.connect.grpc.binding.address={_HERE}"]
    with _running(command, folder, "connect"):
        _wait_for(port, folder / "connect.log")
        yield f"sc://{_HERE}:{port}"


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """The address of a master with so many workers of one core, each a process of its own."""
    port = _free_port()
    address = f"spark://{_HERE}:{port}"
    spark_class = HOME / "bin" / "spark-class"
    master = [spark_class, "org.apache.spark.deploy.master.Master", "--host", _HERE, "--port", port, "--webui-port", 0]
    with ExitStack() as stack:
        stack.enter_context(_running(master, folder, "master"))
        _wait_for(port, folder / "master.log")
        for number in range(workers):
            place = folder / f"worker-{number}"
            worker = [spark_class, "org.apache.spark.deploy.worker.Worker", "--host", _HERE, "--webui-port", 0]
            size = ["--cores", 1, "--memory", "1g", "--work-dir", place]
            stack.enter_context(_running([*worker, *size, address], folder, f"worker-{number}"))
        for number in range(workers):
            _wait_until_said(folder / f"worker-{number}.log", "Successfully registered with master")
        yield address


@contextmanager
def _running(command: Sequence[object], folder: Path, name: str) -> Iterator[None]:
    """A process group of its own, ended with everything in it."""
    environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": _HERE, "PYSPARK_PYTHON": sys.executable}
    environment |= {"SPARK_LOG_DIR": str(folder), "SPARK_PID_DIR": str(folder), "SPARK_DAEMON_MEMORY": "512m"}
    java.prepare(environment)
    with (folder / f"{name}.log").open("w") as log:
        started = subprocess.Popen(
            list(map(str, command)), cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield
    finally:
        os.killpg(started.pid, signal.SIGTERM)
        started.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_HERE, 0))
        return int(free.getsockname()[1])


def _wait_for(port: int, log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            socket.create_connection((_HERE, port), 1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise TimeoutError(log.read_text()) from None
            time.sleep(0.2)


def _wait_until_said(log: Path, words: str) -> None:
    until = time.monotonic() + _PATIENCE
    while words not in log.read_text():
        if time.monotonic() > until:
            raise TimeoutError(log.read_text())
        time.sleep(0.2)
