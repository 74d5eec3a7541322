"""Kinds of Dask clusters: in this machine, elsewhere, by SSH, on SLURM, on Kubernetes.

What is sent to a batch system or an orchestrator is made by functions that need none.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cppcl.errors import CppclError, InputError
from tasks.cluster import network

KINDS = ("local", "slurm", "kubernetes")
"""Values of ``compute.cluster`` that are no address."""
SECONDS = {"local": 120.0, "slurm": 24 * 3600.0, "kubernetes": 1800.0}
"""How long the first worker may take; jobs wait in a queue."""
OTHER_SECONDS = 120.0
MOST_CAUSES = 4
SHARED_MEMORY = "/dev/shm"
NAME = "cppcl"


@dataclass(frozen=True)
class Tls:
    """PEM files for a cluster at a tls:// address.

    Parameters
    ----------
    ca : str, optional
        Certificate of the authority, a PEM file
    certificate : str, optional
        Certificate of this client, a PEM file
    private_key : str, optional
        Key of that certificate, a PEM file
    """

    ca: str | None = None
    certificate: str | None = None
    private_key: str | None = None


@dataclass(frozen=True)
class Slurm:
    """What the jobs of cluster=slurm ask for.

    Parameters
    ----------
    queue : str, optional
        Partition; that of the site if none
    account : str, optional
        Account that is charged
    walltime : str
        Longest time of a job
    directives : tuple of str
        Further lines after #SBATCH
    gpu_directives : tuple of str
        Further lines of jobs with a GPU
    """

    queue: str | None = None
    account: str | None = None
    walltime: str = "04:00:00"
    directives: tuple[str, ...] = ()
    gpu_directives: tuple[str, ...] = ("--gres=gpu:1",)


@dataclass(frozen=True)
class Kubernetes:
    """Pods of cluster=kubernetes, by the Dask operator.

    Parameters
    ----------
    container : str
        Image of the pods, with the same cppcl installed
    namespace : str, optional
        Namespace; that of the context if none
    """

    container: str = "cppcl"
    namespace: str | None = None


@dataclass(frozen=True)
class ClusterOptions:
    """What beside its kind describes a cluster.

    Parameters
    ----------
    gpu_workers : int, optional
        Workers with a GPU; default one where this machine has one
    scheduler_host : str, optional
        Address at which workers on other machines reach this one
    performance_report : str, optional
        HTML file for Dask's record of tasks and workers
    tls : Tls
        Files for a tls:// address
    slurm : Slurm
        What jobs of SLURM ask for
    kubernetes : Kubernetes
        Pods of Kubernetes
    """

    gpu_workers: int | None = None
    scheduler_host: str | None = None
    performance_report: str | None = None
    tls: Tls = Tls()
    slurm: Slurm = Slurm()
    kubernetes: Kubernetes = Kubernetes()

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> ClusterOptions:
        """Options from plain data, such as ``compute`` of a configuration."""
        parts = {"tls": Tls, "slurm": Slurm, "kubernetes": Kubernetes}
        known = {name: given[name] for name in cls.__dataclass_fields__ if name in given}
        for name, kind in parts.items():
            if name in known:
                known[name] = kind(**known[name])
        return cls(**known)


@dataclass(frozen=True)
class Wanted:
    """A cluster to start: kind or address, workers of one thread, memory of each, options."""

    where: str
    workers: int
    memory: int
    options: ClusterOptions

    @property
    def n_gpu_workers(self) -> int:
        """Workers with a GPU."""
        if self.options.gpu_workers is not None:
            return self.options.gpu_workers
        return int(self.where == "local" and Path("/dev/nvidiactl").exists())

    def names(self) -> dict[str, dict[str, float]]:
        """Workers by name, with the resource that each offers."""
        return {
            **{f"cpu-{n}": {"CPU": 1} for n in range(self.workers)},
            **{f"gpu-{n}": {"GPU": 1} for n in range(self.n_gpu_workers)},
        }


def is_started_here(where: str) -> bool:
    """True if the session starts this cluster, rather than connecting to one."""
    return where in KINDS or where.startswith("ssh://")


def start(wanted: Wanted) -> AbstractContextManager[Any]:
    """Start a cluster.

    Raises
    ------
    CppclError
        If the extra that it needs is not installed, or it does not start.
    """
    import dask
    from distributed import SpecCluster

    if wanted.where == "kubernetes":
        return start_on_kubernetes(wanted)
    specify = slurm_specification if wanted.where == "slurm" else local_specification
    if wanted.where.startswith("ssh://"):
        specify = ssh_specification
    specification = specify(wanted)
    # Workers of SSH say by a line of their log that they run, and inherit this configuration:
    # with a log that was silenced here, they would be waited for without end.
    said = {"logging.distributed": "info"} if wanted.where.startswith("ssh://") else {}
    try:
        with dask.config.set(said):
            return SpecCluster(
                workers=specification,
                scheduler=scheduler_of(wanted),
                silence_logs=logging.CRITICAL,
            )
    except Exception as error:  # of a host or a batch system: the libraries have no common class
        raise CppclError(
            f"compute.cluster {wanted.where!r} does not start: {with_causes(error)}"
            f"{shared_memory_hint()}"
        ) from error


def with_causes(error: BaseException) -> str:
    """Text of an error, and of those that it was raised from."""
    said: list[str] = []
    found: BaseException | None = error
    while found is not None and len(said) < MOST_CAUSES:
        text = str(found) or type(found).__name__
        if text not in said:
            said.append(text)
        found = found.__cause__ or found.__context__
    return "; cause: ".join(text.rstrip(".") for text in said)


def shared_memory_hint() -> str:
    """Say what to mend where the semaphores of worker processes cannot be made."""
    if sys.platform != "linux" or os.access(SHARED_MEMORY, os.W_OK | os.X_OK):
        return ""
    return f"; {SHARED_MEMORY} must be a folder that can be written: worker processes share it"


def scheduler_of(wanted: Wanted) -> dict[str, Any]:
    """Specification of the scheduler, which runs in this process."""
    from distributed import Scheduler

    options: dict[str, Any] = {"dashboard": True, "dashboard_address": "127.0.0.1:0"}
    if wanted.where == "local":
        options["host"] = "127.0.0.1"
    elif wanted.options.scheduler_host:
        options["host"] = wanted.options.scheduler_host
    return {"cls": Scheduler, "options": options}


def local_specification(wanted: Wanted) -> dict[str, Any]:
    """Workers of this machine, each a process that a nanny restarts."""
    from distributed import Nanny

    options = {
        "nthreads": 1,
        "memory_limit": wanted.memory,
        "dashboard": False,
        "silence_logs": logging.CRITICAL,
    }
    return {
        name: {"cls": Nanny, "options": {**options, "resources": offered}}
        for name, offered in wanted.names().items()
    }


def ssh_specification(wanted: Wanted) -> dict[str, Any]:
    """Workers of the hosts of ``ssh://host1,user@host2:port``, one after the other."""
    _require("asyncssh", "ssh", wanted.where)
    from distributed.deploy.ssh import Worker

    hosts = read_hosts(wanted.where)
    counted = {"CPU": 0, "GPU": 0}
    found = {}
    for name, offered in wanted.names().items():
        (resource,) = offered
        host, connect = hosts[counted[resource] % len(hosts)]
        counted[resource] += 1
        found[name] = {
            "cls": Worker,
            "options": {
                "address": host,
                "connect_options": connect,
                "kwargs": {
                    "nthreads": 1,
                    "memory_limit": wanted.memory,
                    "resources": offered,
                    "name": name,
                    "death_timeout": network.DEATH_TIMEOUT_S,
                },
                "worker_class": "distributed.Nanny",
                "remote_python": sys.executable,
            },
        }
    return found


def read_hosts(where: str) -> list[tuple[str, dict[str, Any]]]:
    """Hosts of an address ``ssh://[user@]host[:port],...`` and options of the connection.

    Raises
    ------
    InputError
        If there is none, or a port is no number.
    """
    found = []
    for text in where.removeprefix("ssh://").split(","):
        user, _, place = text.strip().rpartition("@")
        host, colon, port = place.partition(":")
        if not host or (colon and not port.isdecimal()):
            raise InputError(
                f"compute.cluster {where!r}: {text!r} must be a host, as in "
                "ssh://host1,user@host2:2222"
            )
        connect = ({"username": user} if user else {}) | ({"port": int(port)} if port else {})
        found.append((host, connect))
    return found


def slurm_specification(wanted: Wanted) -> dict[str, Any]:
    """Workers that are jobs of SLURM, one worker each."""
    _require("dask_jobqueue", "slurm", wanted.where)
    from dask_jobqueue.slurm import SLURMJob

    slurm = wanted.options.slurm
    found = {}
    for name, offered in wanted.names().items():
        ((resource, amount),) = offered.items()
        directives = [*slurm.directives, *(slurm.gpu_directives if resource == "GPU" else ())]
        found[name] = {
            "cls": SLURMJob,
            "options": {
                "job_name": f"{NAME}-{name}",
                "queue": slurm.queue,
                "account": slurm.account,
                "walltime": slurm.walltime,
                "cores": 1,
                "processes": 1,
                "memory": f"{wanted.memory}B",
                "nanny": True,
                "death_timeout": network.DEATH_TIMEOUT_S,
                "python": sys.executable,
                "worker_extra_args": ["--resources", f"{resource}={amount}"],
                "job_extra_directives": directives,
                "job_script_prologue": [
                    f"export {variable}={value}" for variable, value in _environment().items()
                ],
            },
        }
    return found


def job_script(wanted: Wanted, name: str, scheduler: str) -> str:
    """Script that is submitted to SLURM for one worker.

    Parameters
    ----------
    wanted : Wanted
        The cluster.
    name : str
        Worker, such as ``cpu-0``.
    scheduler : str
        Address of the scheduler.
    """
    job = slurm_specification(wanted)[name]
    return str(job["cls"](scheduler, name=name, **job["options"]).job_script())


def manifest(wanted: Wanted) -> dict[str, Any]:
    """Resource ``DaskCluster`` of Kubernetes, with the workers without a GPU."""
    _require("dask_kubernetes", "kubernetes", wanted.where)
    from dask_kubernetes.operator import make_cluster_spec

    spec: dict[str, Any] = make_cluster_spec(
        name=NAME,
        image=wanted.options.kubernetes.container,
        n_workers=wanted.workers,
        env=_environment(),
        resources=_pod_resources(wanted),
        worker_command=_pod_command(wanted, "CPU"),
        idle_timeout=3600,
    )
    return spec


def start_on_kubernetes(wanted: Wanted) -> AbstractContextManager[Any]:
    """Start the pods of a manifest, and of a second group where GPUs are wanted."""
    spec = manifest(wanted)
    from dask_kubernetes.operator import KubeCluster

    cluster = KubeCluster(
        custom_cluster_spec=spec, namespace=wanted.options.kubernetes.namespace, quiet=True
    )
    if wanted.n_gpu_workers:
        cluster.add_worker_group(**gpu_group(wanted))
    return cluster


def gpu_group(wanted: Wanted) -> dict[str, Any]:
    """Group of Kubernetes workers with a GPU each."""
    resources = _pod_resources(wanted)
    limits = {**resources["limits"], "nvidia.com/gpu": "1"}
    return {
        "name": f"{NAME}-gpu",
        "n_workers": wanted.n_gpu_workers,
        "image": wanted.options.kubernetes.container,
        "env": _environment(),
        "resources": {**resources, "limits": limits},
        "worker_command": _pod_command(wanted, "GPU"),
    }


def security_of(where: str, tls: Tls) -> Any:
    """What ``tls://`` addresses are reached with; None for others.

    Raises
    ------
    InputError
        If a file is missing.
    """
    given = {"ca": tls.ca, "certificate": tls.certificate, "private_key": tls.private_key}
    if not where.startswith("tls://"):
        return None
    for name, path in given.items():
        if not path or not Path(path).is_file():
            raise InputError(
                f"compute.tls.{name}={path!r} is not a file; compute.cluster {where!r} needs the "
                "PEM files of an authority, a certificate and its key: tls.ca, tls.certificate, "
                "tls.private_key"
            )
    from distributed.security import Security

    return Security(
        require_encryption=True,
        tls_ca_file=tls.ca,
        tls_client_cert=tls.certificate,
        tls_client_key=tls.private_key,
    )


def _pod_resources(wanted: Wanted) -> dict[str, dict[str, str]]:
    amounts = {"cpu": "1", "memory": str(wanted.memory)}
    return {"requests": dict(amounts), "limits": dict(amounts)}


def _pod_command(wanted: Wanted, resource: str) -> list[str]:
    return [
        *("dask", "worker", "--nthreads", "1"),
        *("--memory-limit", str(wanted.memory), "--resources", f"{resource}=1"),
        *("--death-timeout", str(network.DEATH_TIMEOUT_S)),
    ]


def _environment() -> dict[str, str]:
    """Environment of workers that do not inherit the configuration of this process."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
    return threads | network.environment()


def _require(module: str, extra: str, where: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise InputError(
            f"compute.cluster {where!r} needs a package that is not installed: "
            f"pip install 'cppcl[{extra}]'"
        )
