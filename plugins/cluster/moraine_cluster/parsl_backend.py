"""Slots in jobs of a batch scheduler, brought there by Parsl's HighThroughputExecutor.

Only this module and `moraine_cluster.providers` import Parsl. It starts jobs, replaces lost ones, and carries bytes;
its workers run no task themselves (see `moraine_core.executor.slot`), because it loses tasks when a worker of its own
dies.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psutil
from parsl.config import Config
from parsl.dataflow.dflow import DataFlowKernel
from parsl.executors.high_throughput.executor import DEFAULT_LAUNCH_CMD, HighThroughputExecutor
from parsl.jobs.states import TERMINAL_STATES, JobState

from moraine_cluster.providers import provider_for
from moraine_core.errors import DeviceError, MoraineError, UsageError, WorkerDiedError
from moraine_core.executor.backend import Slot
from moraine_core.executor.message import Call, Outcome, pack
from moraine_core.store import disk_errors

if TYPE_CHECKING:
    import subprocess

    from parsl.jobs.states import JobStatus

    from moraine_cluster.config import ClusterConfig
    from moraine_cluster.on_node import Answer
    from moraine_cluster.providers import Provider
    from moraine_core.executor.slot import Place
    from moraine_core.options import Workers

log = logging.getLogger("moraine")

HEARTBEAT_SECONDS = 5
"""How often nodes and head tell each other that they are there."""

LOST_SECONDS = 15
"""Silence after which a node, or the head, counts as gone. Jobs whose head is gone end after it."""

STOP_SECONDS = 10.0
"""How long the scheduler may take to end the jobs."""

WITHOUT_WALLTIME = ("local", "kubernetes")

IN_A_ROW = 3
"""Jobs that end before a slot answers, one after the other, after which no more are asked for."""

LOOK_SECONDS = 1.0
SIGNS_OF_LIFE = (10.0, 55.0)
"""Seconds until it is first said why there is no slot, and between later times: a queue may be long."""

UNKNOWN = "a node not heard of yet"


def make_backend(workers: Workers, config: ClusterConfig) -> ParslBackend:
    """Return the backend of a table ``[executors.NAME]``.

    Raises
    ------
    UsageError
        GPUs are chosen by number, which is the scheduler's business.
    """
    if workers.gpus:
        msg = f"--gpus names {', '.join(workers.gpus)}, but on executor {workers.executor} the scheduler gives the GPUs"
        raise UsageError(msg)
    return ParslBackend(config, cuda=workers.cuda)


class ClusterError(MoraineError, RuntimeError):
    """The jobs of a cluster cannot be started."""


class ParslBackend:
    """Slots in jobs.

    Parameters
    ----------
    config
        The jobs.
    cuda
        Whether each slot binds a GPU.
    """

    repeats = 2
    patience = 120.0

    def __init__(self, config: ClusterConfig, *, cuda: bool = False) -> None:
        self._config = config
        self._cuda = cuda
        self._folder: Path | None = None
        self._kernel: DataFlowKernel | None = None
        self._pool: HighThroughputExecutor | None = None
        self._provider: Provider
        self._lock = threading.Lock()
        self._open: set[Future[Any]] = set()
        self._places: dict[tuple[str, int], Place] = {}
        self._alive: dict[str, int] = {}
        self._nodes: dict[str, str] = {}
        self._ended = threading.Event()

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Ask for the first jobs and wait until a slot answers.

        Raises
        ------
        ClusterError
            The jobs cannot be started; with the scheduler's own words.
        """
        try:
            if self._kernel is not None and self._is_cut_off():
                log.warning("cluster: the interchange has ended; the jobs are started anew")
                self.stop(now=True)
            if self._kernel is None:
                self._bring_up()
            if not self._alive:
                self._await_first_slot()
        except BaseException:
            self.stop(now=True)
            raise

    def _bring_up(self) -> None:
        config = self._config
        shared = Path(config.shared)
        if not shared.is_dir():
            msg = f"shared folder {shared} does not exist; it must be there for this machine and all nodes"
            raise UsageError(msg)
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="moraine-run-", dir=shared))
        except OSError as error:
            msg = f"shared folder {shared}: {error.strerror or error}; a run must be able to make a folder there"
            raise UsageError(msg) from None
        self._provider = provider_for(config)
        # where no scheduler knows of a walltime, jobs must end by themselves all the same
        limit = f"timeout --foreground {config.walltime_seconds} " if config.scheduler in WITHOUT_WALLTIME else ""
        self._pool = HighThroughputExecutor(
            label="moraine",
            provider=cast("Any", self._provider),
            launch_cmd=f"{limit}{DEFAULT_LAUNCH_CMD}",
            interchange_launch_cmd=[sys.executable, "-m", "moraine_cluster.interchange", str(os.getpid())],
            address=address_of(config),
            cores_per_worker=0.001,  # the number of slots is ours to say
            max_workers_per_node=config.slots,
            available_accelerators=(),
            prefetch_capacity=0,
            heartbeat_period=HEARTBEAT_SECONDS,
            heartbeat_threshold=LOST_SECONDS,
            encrypted=True,
            block_error_handler=cast("Any", self._judge),
        )
        logging.getLogger("parsl").propagate = False  # what matters of it is told in our own words
        settings = Config(
            executors=[self._pool],
            run_dir=str(self._folder),
            strategy="simple",
            strategy_period=1,
            max_idletime=config.jobs.idle_seconds,
            retries=0,
            usage_tracking=0,
            initialize_logging=False,
        )
        with disk_errors(self._folder):
            self._kernel = DataFlowKernel(settings)
        self._ended = threading.Event()
        for work in (self._watch, self._count):
            threading.Thread(target=work, args=(self._ended,), name="moraine-cluster", daemon=True).start()

    def _judge(self, pool: HighThroughputExecutor, states: dict[str, JobStatus]) -> None:
        """Give up when no job has ever reported, and when none is there and three in a row have not."""
        ended = [state for _, state in sorted(states.items(), key=lambda item: int(item[0]))]
        failed = [state for state in ended if state.state in (JobState.FAILED, JobState.MISSING)]
        none_ever = len(ended) >= self._config.jobs.start and failed == ended
        none_now = not self._alive and len(failed) >= IN_A_ROW and failed[-IN_A_ROW:] == ended[-IN_A_ROW:]
        if none_ever or none_now:
            reasons = dict.fromkeys(self._reason(state) for state in failed[-IN_A_ROW:])
            pool.set_bad_state_and_fail_all(ClusterError("; ".join(reasons)))

    def _reason(self, state: JobStatus) -> str:
        """Return what is known of a job that ran nothing: the scheduler's words, or what its script wrote."""
        reason = state.message or ""
        if state.stderr_path and not os.path.exists(state.stderr_path):
            reason += f", and wrote nothing here; do its nodes see {self._config.shared}?"
        written = state.stderr_summary or state.stdout_summary or ""
        return ": ".join(" ".join(part.split()) for part in (reason, written) if part.strip())

    def _await_first_slot(self) -> None:
        began = time.monotonic()
        speak, pause = (began + SIGNS_OF_LIFE[0]), SIGNS_OF_LIFE[1]
        hello = self._send(pack(Call(os.getpid, (), {})))
        while True:
            with contextlib.suppress(FutureTimeoutError):
                self._hear(Outcome.unpack(hello.result(timeout=0.2).outcome))
                return
            if (now := time.monotonic()) > speak:
                speak = now + pause
                log.info("cluster: no slot yet after %.0f s, jobs: %s", now - began, self._job_states())

    def _hear(self, first: Outcome) -> None:
        """Raise what keeps a slot from running tasks at all."""
        if first.kind == "ok":
            return
        if isinstance(first.value, DeviceError) and not self._config.gpus_per_node:
            msg = f"{first.value}; the table of this executor asks for none (gpus_per_node)"
            raise DeviceError(msg)
        raise first.value

    def _job_states(self) -> str:
        jobs = dict(self._provider.resources)
        reasons = self._provider.reasons(list(jobs)) if jobs else {}
        states = [
            f"{job} {row['status'].state.name.lower()}" + (f" ({reasons[job]})" if job in reasons else "")
            for job, row in jobs.items()
        ]
        return ", ".join(states) or "none"

    def stop(self, *, now: bool = False) -> None:
        """Cancel the jobs, wait until the scheduler says that they are gone, and remove the run's folder."""
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            self._ended.set()
            jobs = self._cancel()
            # threads of their own: the engine's may wait for ever for an interchange that has gone
            cleaning = threading.Thread(target=_clean_up, args=(kernel,), name="moraine-cluster-end", daemon=True)
            cleaning.start()
            self._await_end(jobs)
            cleaning.join(1 if self._is_cut_off() else STOP_SECONDS)
        if (process := self._interchange()) is not None and process.poll() is None:
            process.kill()
        self._give_up("the jobs were ended")
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _give_up(self, reason: str) -> None:
        """Answer for all tasks that are under way."""
        with self._lock:
            waiting, self._open = list(self._open), set()
            self._places.clear()
            self._alive.clear()
        for future in waiting:
            future.set_exception(WorkerDiedError(reason))

    def _cancel(self) -> list[str]:
        jobs = [
            job for job, row in dict(self._provider.resources).items() if row["status"].state not in TERMINAL_STATES
        ]
        if jobs:
            with contextlib.suppress(Exception):
                self._provider.cancel(jobs)
        return jobs

    def _await_end(self, jobs: list[str]) -> None:
        """Wait until the scheduler knows the jobs no more."""
        deadline = time.monotonic() + STOP_SECONDS
        while jobs and (left := self._provider.known(jobs)):
            if time.monotonic() > deadline:
                log.warning("cluster: jobs %s do not end; %s", ", ".join(left), self._provider.help)
                return
            time.sleep(0.2)

    # ------------------------------------------------------------------------------------------------ slots

    def _interchange(self) -> subprocess.Popen[bytes] | None:
        process: subprocess.Popen[bytes] | None = getattr(self._pool, "interchange_proc", None)
        return process

    def _is_cut_off(self) -> bool:
        process = self._interchange()
        return process is not None and process.poll() is not None

    def _watch(self, ended: threading.Event) -> None:
        """Answer for the tasks of an interchange that has ended."""
        while not ended.wait(LOOK_SECONDS):
            if self._is_cut_off() and not ended.is_set():
                self._give_up("the interchange, which carries tasks to the jobs, has ended")

    def _count(self, ended: threading.Event) -> None:
        """Ask which nodes are connected.

        In a thread of its own: an interchange that dies between question and answer leaves it waiting for ever.
        """
        pool = cast("HighThroughputExecutor", self._pool)
        while not ended.wait(LOOK_SECONDS):
            managers = []
            if not (pool.bad_state_is_set or self._is_cut_off()):
                with contextlib.suppress(Exception):  # the interchange is going
                    managers = pool.connected_managers()
            with self._lock:
                if not ended.is_set():
                    self._alive = {m["manager"]: m["worker_count"] for m in managers if m["active"]}
                    self._places = {key: place for key, place in self._places.items() if key[0] in self._alive}

    def slots(self) -> list[Slot]:
        """Return the slots of all nodes that are connected."""
        with self._lock:
            alive, places = dict(self._alive), dict(self._places)
        memory = min((place.memory_bytes for place in places.values()), default=0)
        found: list[Slot] = []
        for manager, count in sorted(alive.items()):
            same_node = next((place for key, place in places.items() if key[0] == manager), None)
            for rank in range(count):
                place = places.get((manager, rank))
                node, job = (same_node.node, same_node.job) if same_node else (UNKNOWN, "")
                found.append(
                    Slot(
                        len(found),
                        read_ahead=1,  # that much waits in the engine
                        node=node,
                        job=job,
                        gpu=place.gpu if place else "",
                        gpu_bytes=place.gpu_bytes if place else self._gpu_bytes(places),
                        memory_bytes=place.memory_bytes if place else memory,
                    )
                )
        return found

    @staticmethod
    def _gpu_bytes(places: dict[tuple[str, int], Place]) -> int:
        return min((place.gpu_bytes for place in places.values()), default=0)

    # ------------------------------------------------------------------------------------------------- work

    def submit(self, task: bytes) -> Future[bytes]:
        """Send a task to whichever slot is free; a node that is lost answers as a worker that died."""
        answer: Future[bytes] = Future()
        try:
            sent = self._send(task)
        except ClusterError as error:
            answer.set_result(Outcome("died", WorkerDiedError(str(error))).pack())
            return answer
        sent.add_done_callback(lambda done: answer.set_result(_outcome(done)))
        return answer

    def _send(self, task: bytes, errand: str = "") -> Future[Answer]:
        config = self._config
        call = {
            "f": "moraine_cluster.on_node.run",
            "a": (config.slots, config.max_memory_per_node or 0, errand),
            "k": {"cuda": self._cuda},
        }
        future: Future[Answer] = Future()
        with self._lock:
            if self._pool is None or self._kernel is None:
                msg = "the jobs were ended"
                raise ClusterError(msg)
            self._open.add(future)
            try:
                sent = self._pool.submit_payload({"task_executor": call}, task)
            except Exception as error:  # noqa: BLE001 - whatever made the engine give up
                self._open.discard(future)
                raise self._told(error) from None
        sent.add_done_callback(lambda done: self._take(done, future))
        return future

    def _take(self, done: Future[Answer], future: Future[Answer]) -> None:
        """Note where an answer comes from, and pass it on."""
        error = done.exception()
        with self._lock:
            if future not in self._open:
                return  # it was given up
            self._open.discard(future)
            if error is None:
                answer = done.result()
                self._places[answer.manager, answer.place.rank] = answer.place
                self._nodes[answer.manager] = answer.place.node
                self._alive.setdefault(answer.manager, self._config.slots)
        if error is None:
            future.set_result(answer)
        else:
            future.set_exception(self._told(error))

    def _told(self, error: BaseException) -> Exception:
        """Return an error of the engine in our words: a lost node, or jobs that cannot run."""
        host = getattr(error, "hostname", "")
        if host:
            node = self._nodes.get(getattr(error, "manager_id", b"").decode(), host)
            lost = WorkerDiedError(f"node {node} was lost: its job has ended, or its network")
            lost.node = node
            return lost
        reason = str(getattr(error, "exception", None) or error).removeprefix("Executor moraine failed due to: ")
        return ClusterError(f"the jobs cannot run: {' '.join(reason.split())}")

    def submit_to_all(self, task: bytes) -> list[Future[bytes]]:
        """Run a task once in every slot that is connected now; return when all of them have answered."""
        errand = secrets.token_hex(8)
        answers: dict[tuple[str, int], bytes] = {}
        for _ in range(10):  # slots that are lost under way are asked no more
            with self._lock:
                wanted = {(manager, rank) for manager, count in self._alive.items() for rank in range(count)}
            sent = [self._send(task, errand) for _ in wanted - set(answers)]
            if not sent:
                break
            for future in sent:
                with contextlib.suppress(WorkerDiedError, FutureTimeoutError):
                    answer = future.result(timeout=self.patience)
                    if answer.outcome:
                        answers[answer.manager, answer.place.rank] = answer.outcome
        futures: list[Future[bytes]] = []
        for key in sorted(wanted):
            futures.append(Future())
            lost = Outcome("died", WorkerDiedError("the slot was lost")).pack
            futures[-1].set_result(answers[key] if key in answers else lost())
        return futures

    def put_dir(self) -> Path | None:
        """Return the run's folder under `shared`."""
        return self._folder

    def pids(self) -> list[int]:
        """Return nothing: the workers are elsewhere, and the scheduler watches over their memory."""
        return []


def _outcome(done: Future[Answer]) -> bytes:
    error = done.exception()
    if error is None:
        return done.result().outcome
    if not isinstance(error, WorkerDiedError):
        error = WorkerDiedError(str(error))
    return Outcome("died", error).pack()


def _clean_up(kernel: DataFlowKernel) -> None:
    with contextlib.suppress(Exception):  # what is left of a broken engine must not hide what broke it
        kernel.cleanup()


def address_of(config: ClusterConfig) -> str:
    """Return the address of this machine that the nodes use; nobody outside is asked for it."""
    if config.address:
        return config.address
    if config.interface:
        known = psutil.net_if_addrs()
        for found in known.get(config.interface, []):
            if found.family == socket.AF_INET:
                return str(found.address)
        msg = f"interface {config.interface} has no address; there are {', '.join(known)}"
        raise UsageError(msg)
    if config.scheduler == "local":
        return "127.0.0.1"
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError as error:
        msg = f"{socket.gethostname()} has no address ({error}); give interface or address"
        raise UsageError(msg) from None
