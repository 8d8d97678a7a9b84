"""Other processes at work on the same warehouse, all on one Java machine.

A worker is a Python process of its own, with its own catalog connection and leases, that attaches to the Spark of the
test. Killing it kills all of rollview that there is in it: Java only reads and writes files on its behalf.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollview.catalog import Catalog
from rollview.core import faults
from rollview.errors import RollviewError
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.conf import RuntimeConfig

PATIENCE = 300
ROOT = Path(__file__).parents[2]
Task = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Gateway:
    port: int
    secret: str


@dataclass(frozen=True, slots=True)
class Place:
    """A warehouse. ``lease_seconds``: how long its leases last without a sign of life."""

    root: Path
    url: str | None = None
    lease_seconds: float | None = None

    def open(self, spark: SparkSession | None) -> Warehouse:
        warehouse = Warehouse.open(self.root, self.url, spark=spark)
        if self.lease_seconds is not None:
            warehouse.catalog.close()
            warehouse._place.catalog = Catalog.open(
                self.url or self.root / "catalog.db", lease_seconds=self.lease_seconds
            )
        return warehouse


@dataclass(frozen=True, slots=True)
class Ended:
    """``error`` and ``message``: what the task raised. ``signal``: what killed it."""

    value: Any = None
    error: str | None = None
    message: str = ""
    signal: int = 0

    @property
    def killed(self) -> bool:
        return self.signal == signal.SIGKILL


class Worker:
    def __init__(self, process: BaseProcess, answers: Connection) -> None:
        self._process = process
        self.answers = answers

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def tell(self, what: Any) -> None:
        self.answers.send(what)

    def end(self) -> Ended:
        """Wait for it and say how it ended."""
        try:
            answer = self.answers.recv() if self.answers.poll(PATIENCE) else None
        except (EOFError, ConnectionResetError):
            answer = None
        self._process.join(PATIENCE)
        code = self._process.exitcode
        assert code is not None, "the worker does not end"
        if code < 0:
            return Ended(signal=-code)
        assert isinstance(answer, Ended), f"the worker ended with {code} and said {answer!r}"
        return answer

    def wait_until_stopped(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.is_stopped:
                return
            time.sleep(0.02)
        raise AssertionError("the worker does not stop")

    @property
    def is_stopped(self) -> bool:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        if self._process.is_alive():
            os.kill(self.pid, signal.SIGKILL)
            self._process.join(PATIENCE)


class Crew:
    """``start``: a worker that does a task; ``run``: the same, waiting for its end."""

    def __init__(self, gateway: Gateway, method: str = "forkserver") -> None:
        self._gateway = gateway
        self._context: BaseContext = multiprocessing.get_context(method)
        self._context.set_forkserver_preload([__name__, "tests.faults.loaded"])
        self._workers: list[Worker] = []

    def start(self, place: Place, task: Task, *arguments: Any, fault: str = "", stop: str = "") -> Worker:
        """``fault``: the step at which it is killed. ``stop``: the step at which it stops until it is told to go on."""
        mine, its = self._context.Pipe()
        process = self._context.Process(  # type: ignore[attr-defined]
            target=_work, args=(self._gateway, place, task, arguments, fault or stop, bool(stop), its), daemon=True
        )
        with pytest.MonkeyPatch.context() as patch:
            # the process that the workers are forked from finds the modules to load by this alone
            patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT / "src", ROOT))))
            process.start()
        its.close()
        worker = Worker(process, mine)
        self._workers.append(worker)
        return worker

    def run(self, place: Place, task: Task, *arguments: Any, fault: str = "") -> Ended:
        return self.start(place, task, *arguments, fault=fault).end()

    def dismiss(self) -> None:
        for worker in self._workers:
            worker.kill()


@contextmanager
def crew_on(spark: SparkSession | None, method: str = "forkserver") -> Iterator[Crew]:
    """Without a session: for tasks that need none."""
    crew = Crew(Gateway(0, "") if spark is None else _gateway(spark), method)
    try:
        yield crew
    finally:
        crew.dismiss()


def _gateway(spark: SparkSession) -> Gateway:
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    return Gateway(gateway.gateway_parameters.port, gateway.gateway_parameters.auth_token)


def _work(
    gateway: Gateway, place: Place, task: Task, arguments: tuple[Any, ...], step: str, stops: bool, answers: Connection
) -> None:
    os.environ.update(PYSPARK_GATEWAY_PORT=str(gateway.port), PYSPARK_GATEWAY_SECRET=gateway.secret)
    if step:
        os.environ["ROLLVIEW_FAULT"] = step
    warehouse = place.open(None)
    warehouse._place.given = Attached()  # type: ignore[assignment]
    if stops:
        faults.die = stop_when_idle(warehouse.catalog)
    try:
        listening = {"ears": answers} if "ears" in inspect.signature(task).parameters else {}
        answers.send(Ended(task(warehouse, *arguments, **listening)))
    except RollviewError as error:
        answers.send(Ended(error=error.code, message=error.message))


def stop_when_idle(catalog: Catalog) -> Callable[[], None]:
    """Stop between two transactions: one that stops inside holds the whole catalog, which is another matter."""

    def stop() -> None:
        del os.environ["ROLLVIEW_FAULT"]
        while catalog._database.engine.pool.checkedout():  # type: ignore[attr-defined]
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGSTOP)

    return stop


class Attached:
    """Stands for a session until one is asked for: tasks that need no Spark do not wait for it."""

    @cached_property
    def _running(self) -> SparkSession:
        return _attached()

    @property
    def conf(self) -> RuntimeConfig:
        return self._running.conf

    def newSession(self) -> SparkSession:
        from tests.spark.oracle.warehouses import PLAIN

        session = self._running.newSession()
        for key, value in PLAIN.items():
            session.conf.set(key, value)
        return session


def _attached() -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    running = gateway.jvm.org.apache.spark.api.java.JavaSparkContext(
        gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    context = SparkContext(gateway=gateway, jsc=running, conf=SparkConf(_jconf=running.getConf()))
    return SparkSession(context, gateway.jvm.org.apache.spark.sql.classic.SparkSession.builder().getOrCreate())
