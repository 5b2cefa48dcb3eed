# SPDX-License-Identifier: Apache-2.0
"""The configuration of a Slurm cluster on the rig's hosts, below $HVDRUN_RIG/slurm.

Host node0 runs slurmctld, all others slurmd; one munged serves them all, through a socket in a folder
that every host sees. The configuration is mounted over /etc/slurm, so that no environment variable
has to lead to it.
"""

import os
import shutil
import stat

from network import address, call

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIGURATION = "/etc/slurm"
PROGRAMS = ("munged", "sbatch", "scontrol", "slurmctld", "slurmd", "srun")
DAEMONS = ("slurmctld", "slurmd")
CPUS, GPUS = 4, 2  # of each node, whatever the machine has

# cred_expire: a job whose node has failed starts anew after seconds, not after minutes.
# proctrack, task, jobacct_gather: nothing that needs cgroups.
COMMON = {
    "ClusterName": "rig",
    "SlurmctldHost": "node0",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "AuthType": "auth/munge",
    "CryptoType": "crypto/munge",
    "StateSaveLocation": "/run/slurmctld",
    "SlurmdSpoolDir": "/run/slurmd.%n",
    "SlurmctldPidFile": "/run/slurmctld.pid",
    "SlurmdPidFile": "/run/slurmd.%n.pid",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU",
    "SlurmdParameters": "config_overrides",
    "GresTypes": "gpu",
    "MpiDefault": "none",
    "SwitchType": "switch/none",
    "ReturnToService": 2,
    "SlurmctldTimeout": 10,
    "SlurmdTimeout": 10,
    "InactiveLimit": 0,
    "KillWait": 5,
    "MinJobAge": 300,
    "OverTimeLimit": 0,
    "BatchStartTimeout": 10,
    "MessageTimeout": 10,
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "permit_job_expansion,permit_job_shrink,batch_sched_delay=0,sched_interval=1,bf_interval=1",
    "PreemptType": "preempt/partition_prio",
    "PreemptMode": "REQUEUE",
    "MailProg": "/bin/true",
    "SlurmctldDebug": "info",
    "SlurmdDebug": "info",
}


def missing():
    """What keeps a cluster from being built here; "" when nothing does."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return "these programs: " + " ".join(absent) if absent else ""


def folder():
    return os.path.join(os.environ["HVDRUN_RIG"], "slurm")


def log(name):
    return os.path.join(folder(), "log", name)


def mount():
    """Once in a box, before its hosts are started."""
    for name in ("etc", "log", "munge"):
        os.makedirs(os.path.join(folder(), name))
    key = os.path.join(folder(), "munge", "key")
    with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.urandom(128))
    for number in range(GPUS):
        os.mknod(os.path.join(folder(), f"gpu{number}"), stat.S_IFCHR | 0o666, os.makedev(1, 3))  # another /dev/null
    call("mount", "--bind", os.path.join(folder(), "etc"), CONFIGURATION)
    os.symlink(os.path.join(HERE, "slurm_boot"), os.path.join(os.environ["HVDRUN_RIG"], "etc", "boot"))


def munged():
    """The command line of the one munged."""
    place = os.path.join(folder(), "munge")
    return ["/usr/sbin/munged", "--foreground", "--force", f"--key-file={place}/key", f"--socket={munge_socket()}",
            f"--pid-file={place}/pid", f"--log-file={log('munged')}", f"--seed-file={place}/seed", "--num-threads=2"]


def munge_socket():
    return os.path.join(folder(), "munge", "socket")


def _write(name, lines):
    path = os.path.join(folder(), "etc", name)
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    os.rename(path + ".new", path)


def write(names, settings):
    """The configuration for these names of host 1, 2..., with settings that differ from ours."""
    known = {**COMMON, "AuthInfo": f"socket={munge_socket()},cred_expire=5", "SlurmctldLogFile": log("slurmctld"),
             "SlurmdLogFile": log("slurmd.%n"), **settings}
    lines = [f"{name}={value}" for name, value in known.items()]
    lines += [f"NodeName={name} NodeHostname=node{number} NodeAddr={address(number)} CPUs={CPUS} RealMemory=2000 "
              f"Gres=gpu:{GPUS} State=UNKNOWN" for number, name in enumerate(names, 1)]
    # a job of the second takes nodes from jobs of the first, which have GraceTime to end
    lines += ["PartitionName=rig Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO GraceTime=3",
              "PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=10"]
    _write("slurm.conf", lines)
    _write("gres.conf", [f"Name=gpu File={folder()}/gpu[0-{GPUS - 1}]"])
    # without it slurmd looks for a version of cgroups and ends, though nothing uses any
    _write("cgroup.conf", ["CgroupPlugin=cgroup/v1"])
