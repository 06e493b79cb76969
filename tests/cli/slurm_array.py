#!/usr/bin/env python3
"""examples/sweep_slurm.sh under a Slurm of one node: its job array and the job behind it give the bytes of one run.

usage: slurm_array.py --bin DIR    (skipped, with 77, where slurm-wlm and munge are not installed or cannot be started)
"""
import argparse
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
CONFIGURATION = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
AuthInfo=socket={folder}/munge.sock
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=sched_min_interval=100000
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000
PartitionName=all Nodes=ALL Default=YES
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    """munged, slurmctld and slurmd with files of their own, which end with the block."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        for name in ("state", "spool"):
            (folder / name).mkdir()
        folder.chmod(0o755)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (folder / "slurm.conf").write_text(CONFIGURATION.format(
            folder=folder, host=socket.gethostname().split(".")[0], user=getpass.getuser(), ports=free_ports(2)))
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def __enter__(self):
        munged = ["munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key", f"--socket={self.folder}/munge.sock",
                  f"--pid-file={self.folder}/munge.pid", f"--log-file={self.folder}/munge.log",
                  f"--seed-file={self.folder}/munge.seed"]
        for command in (munged, ["slurmctld", "-D", "-c"], ["slurmd", "-D"]):
            log = open(self.folder / f"{command[0]}.log", "wb")
            self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))
            time.sleep(0.5)
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            daemon.wait()

    def is_idle(self):
        for _ in range(40):
            shown = subprocess.run(["sinfo", "--noheader", "--format=%t"], env=self.environment, capture_output=True,
                                   text=True, check=False)
            if shown.stdout.startswith("idle"):
                return True
            time.sleep(0.5)
        return False

    def waits(self):
        """Until no job is left."""
        for _ in range(240):
            shown = subprocess.run(["squeue", "--noheader"], env=self.environment, capture_output=True, text=True, check=True)
            if not shown.stdout.strip():
                return
            time.sleep(0.5)
        sys.exit(f"wrong: jobs do not end: {shown.stdout}")


def check(holds, what):
    if not holds:
        sys.exit(f"wrong: {what}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=Path, required=True)
    program = (parser.parse_args().bin / "headroom").resolve()
    os.environ["PATH"] = f"{program.parent}:/usr/sbin:{os.environ['PATH']}"
    lacking = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if lacking:
        print(f"skipped: no {', '.join(lacking)} (slurm-wlm, munge)")
        return SKIPPED
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, Slurm(Path(folder)) as slurm:
        if not slurm.is_idle():
            print(f"skipped: Slurm has no idle node here: {(Path(folder) / 'slurmd.log').read_text()[-400:]}")
            return SKIPPED
        into = Path(folder) / "a sweep"
        example = ROOT / "examples/sweep_slurm.sh"
        subprocess.run([example, into], env=slurm.environment, check=True, stdout=subprocess.DEVNULL)
        slurm.waits()
        logs = "".join(log.read_text() for log in into.glob("*.log"))
        check((into / "sweep.csv").exists(), f"nothing is joined: {logs}")
        rows = (into / "sweep.csv").read_text()
        sweep = example.read_text().split("headroom sweep plan ", 1)[1].split("--threads", 1)[0].replace("\\\n", " ")
        whole = subprocess.run([program, "sweep", "plan", *sweep.split(), "--format", "csv"], capture_output=True, text=True,
                               check=False)
        check(rows == whole.stdout and rows.count("\n") == 1 + 3 * 2 * 4, f"{rows}\nis not\n{whole.stdout}{whole.stderr}")
        # A part that was lost is run again by itself, as docs/sweeps.md says.
        (into / "part-3.json").unlink()
        subprocess.run(["sbatch", "--parsable", "--array=3", f"--output={into}/again.log", example, into],
                       env=slurm.environment, check=True, stdout=subprocess.DEVNULL)
        slurm.waits()
        parts = [into / f"part-{i}.json" for i in range(1, 9)]
        joined = subprocess.run([program, "merge", *parts, "--format", "csv"], capture_output=True, text=True, check=False)
        check(joined.stdout == rows, f"with a part run again: {joined.stdout}{joined.stderr}")
        print(f"{rows.splitlines()[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
