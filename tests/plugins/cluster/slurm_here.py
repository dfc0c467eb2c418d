"""A Slurm of a test's own on this machine: all files in one folder, loopback only, no accounting, no cgroups."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

CONF = """\
ClusterName=moraine
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=10000
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
GresTypes=gpu
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port1} CPUs={cpus} RealMemory=4000 Gres=gpu:2 State=UNKNOWN
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port2} CPUs={cpus} RealMemory=4000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
"""

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")


def missing() -> str:
    """Return why there can be no Slurm here; empty if there can."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if lacking:
        return f"no {', '.join(lacking)}: apt-get install --no-install-recommends slurm-wlm munge"
    return "" if os.geteuid() == 0 else "a Slurm of its own needs root"


def free_port(first: int) -> int:
    """Return the first port from a number on, in steps of 20, whose block nobody uses: other tests may run beside."""
    for port in range(first, first + 2000, 20):
        with ExitStack() as held:
            try:
                for one in (port, port + 11, port + 12):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", one))
            except OSError:
                continue
            return port
    raise OSError(f"no free ports from {first} on")


class Slurm:
    """Two nodes of some processors, whatever this machine has, and two null devices as GPUs."""

    def __init__(self, folder: Path, port: int = 26800, cpus: int = 2) -> None:
        self.folder, self.conf, port = folder, folder / "slurm.conf", free_port(port)
        for name in ("state", "log", "spool/n1", "spool/n2", "munge"):
            (folder / name).mkdir(parents=True)
        self.conf.write_text(CONF.format(folder=folder, port=port, port1=port + 11, port2=port + 12, cpus=cpus))
        for n in (0, 1):
            # a null device is enough for Slurm to count, and to say which a job has
            os.mknod(folder / f"gpu{n}", 0o20666, os.makedev(1, 3))
        (folder / "gres.conf").write_text(f"NodeName=n[1-2] Name=gpu File={folder}/gpu[0-1]\n")
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        (folder / "munge").chmod(0o700)

    def start(self) -> None:
        munge = self.folder / "munge"
        files = [f"--{name}-file={munge / name}" for name in ("key", "pid", "log", "seed")]
        self._daemon(["munged", "--force", f"--socket={munge / 'socket'}", *files])
        self._daemon(["slurmctld", "-c", "-f", str(self.conf)])
        for node in ("n1", "n2"):
            self._daemon(["slurmd", "-c", "-N", node, "-f", str(self.conf)])
        deadline = time.monotonic() + 20
        while set(self.ask("sinfo", "-h", "-o", "%T").split()) != {"idle"}:
            if time.monotonic() > deadline:
                raise RuntimeError(self.ask("sinfo"))
            time.sleep(0.1)

    def _daemon(self, words: list[str]) -> None:
        with (self.folder / "log" / "start.log").open("ab") as log:
            subprocess.run(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=True, timeout=20)

    def ask(self, *words: str) -> str:
        environ = {**os.environ, "SLURM_CONF": str(self.conf)}
        done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout + done.stderr

    def jobs(self) -> list[str]:
        """Return the jobs that Slurm knows, those that are being ended among them."""
        return self.ask("squeue", "-h", "-o", "%i").split()

    def stop(self) -> None:
        self.ask("scancel", "-u", "root")
        deadline = time.monotonic() + 15
        while self.jobs() and time.monotonic() < deadline:
            time.sleep(0.2)
        files = [self.folder / name for name in ("slurmd-n1.pid", "slurmd-n2.pid", "slurmctld.pid", "munge/pid")]
        pids = [int(file.read_text()) for file in files if file.exists()]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline + 10:
            time.sleep(0.05)
        for pid in pids:
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, signal.SIGKILL)
