#!/usr/bin/python3
"""Runs a command beside a Slurm of its own: two nodes on this machine, on loopback, without root.

    tests/slurm.py COMMAND...

The command finds SLURM_CONF in its environment. Everything lies in a directory that goes with it,
and so do all processes. Needs the Debian packages slurmctld, slurmd, slurm-client,
slurm-wlm-basic-plugins and munge.
"""
import fcntl
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

NODES = 2
CONFIGURATION = """\
ClusterName=trainyard
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={place}/munge.socket
CommunicationParameters=NoAddrCache,NoCtldInAddrAny,NoInAddrAny
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool-%n
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd-%n.log
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
InactiveLimit=0
KillWait=2
NodeName=node[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port={first}-{last} CPUs=4 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# A line that says which part did not come up is worth more than a test that hangs.
PATIENCE_S = 60


def wait_until(what, holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            sys.exit("slurm: %s was not ready within %d s" % (what, PATIENCE_S))
        time.sleep(0.05)


def succeeds(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def idle_nodes():
    listed = subprocess.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return len(set(listed.split()))


def free_ports():
    """Free ports in a row; another instance of this program does not take them."""
    for first in range(17000, 19000, 10):
        try:
            lock = open("/tmp/trainyard-slurm-%d.lock" % first, "w")
        except OSError:
            continue  # It belongs to another user.
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for port in range(first, first + NODES + 1):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        return first, lock
    sys.exit("slurm: no free ports")


def configure(place, port):
    (place / "state").mkdir()
    for number in range(1, NODES + 1):
        (place / ("spool-node%d" % number)).mkdir()
    key = place / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    configuration = place / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(
        host=socket.gethostname().split(".")[0], user=pwd.getpwuid(os.getuid()).pw_name, place=place,
        port=port, first=port + 1, last=port + NODES, nodes=NODES))
    os.environ["SLURM_CONF"] = str(configuration)


def start(place, running):
    def run(*command):
        with open(place / (os.path.basename(command[0]) + ".out"), "ab") as log:
            # If this is killed, as when a test takes too long, no other process ends them.
            running.append(subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
    run("munged", "--force", "--foreground", "--key-file=%s/munge.key" % place,
        "--socket=%s/munge.socket" % place, "--pid-file=%s/munge.pid" % place,
        "--log-file=%s/munged.log" % place, "--seed-file=%s/munge.seed" % place)
    wait_until("munge", lambda: succeeds("munge", "-n", "-S", "%s/munge.socket" % place))
    run("slurmctld", "-D", "-c")
    for number in range(1, NODES + 1):
        run("slurmd", "-N", "node%d" % number, "-D")
    wait_until("two idle nodes", lambda: idle_nodes() == NODES)


def stop(running):
    try:
        subprocess.run(["scancel", "--user", pwd.getpwuid(os.getuid()).pw_name],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        pass  # There may be no server that could answer.
    for process in reversed(running):
        process.terminate()
    for process in reversed(running):
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [name for name in ("munged", "slurmctld", "slurmd", "srun") if not shutil.which(name)]
    if missing:
        sys.exit("slurm: there is no %s; scripts/setup test installs it" % ", ".join(missing))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    running = []
    port, lock = free_ports()
    place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-slurm-"))
    try:
        configure(place, port)
        start(place, running)
        return subprocess.run(sys.argv[1:]).returncode
    finally:
        stop(running)
        lock.close()
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
