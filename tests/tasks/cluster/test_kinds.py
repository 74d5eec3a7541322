"""Clusters by one option: what is sent to batch systems and orchestrators, without any of them."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from cppcl.errors import InputError
from flows.configuration.load import load_experiment
from tasks.cluster import kinds, network
from tasks.cluster.jobs import run_jobs
from tasks.cluster.kinds import ClusterOptions, Kubernetes, Slurm, Tls, Wanted
from tasks.cluster.session import Cluster, cluster_session

GIB = 2**30


def wanted(where: str, **options: Any) -> Wanted:
    return Wanted(where, 2, 3 * GIB, ClusterOptions(**options))


SCRIPT = """\
#!/usr/bin/env bash

#SBATCH -J cppcl-{name}
#SBATCH -p long
#SBATCH -A vision
#SBATCH -n 1
#SBATCH --cpus-per-task=1
#SBATCH --mem=3G
#SBATCH -t 01:30:00
#SBATCH --exclusive{gpu}
export OMP_NUM_THREADS=1
export MKL_NUM_THREADS=1
export OPENBLAS_NUM_THREADS=1
export DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP=30s
export DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT=30s
export DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL=40s
export DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=3
export DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT=120s
{python} -m distributed.cli.dask_worker tcp://10.0.0.1:8786 --name {name} --nthreads 1 \
--memory-limit 3.00GiB --nanny --death-timeout 120 --resources {resource}=1
"""


@pytest.mark.parametrize(
    ("name", "resource", "gpu"),
    [("cpu-1", "CPU", ""), ("gpu-0", "GPU", "\n#SBATCH --gres=gpu:a100:1")],
)
def test_the_script_of_a_slurm_job(name, resource, gpu):
    slurm = Slurm("long", "vision", "01:30:00", ("--exclusive",), ("--gres=gpu:a100:1",))
    script = kinds.job_script(
        wanted("slurm", gpu_workers=1, slurm=slurm), name, "tcp://10.0.0.1:8786"
    )
    expected = SCRIPT.format(name=name, resource=resource, gpu=gpu, python=sys.executable)
    assert script.strip() == expected.strip()


def test_a_slurm_job_without_options_has_none():
    script = kinds.job_script(wanted("slurm"), "cpu-0", "tcp://10.0.0.1:8786")
    assert "-p " not in script
    assert "-A " not in script
    assert "#SBATCH -t 04:00:00\n" in script
    assert "gres" not in script


def test_slurm_workers_are_those_of_one_cluster():
    specification = kinds.slurm_specification(wanted("slurm", gpu_workers=3))
    assert list(specification) == ["cpu-0", "cpu-1", "gpu-0", "gpu-1", "gpu-2"]


def test_the_manifest_of_kubernetes():
    kubernetes = Kubernetes("registry.example/cppcl:1", "vision")
    there = wanted("kubernetes", gpu_workers=1, kubernetes=kubernetes)
    document = kinds.manifest(there)
    assert (document["kind"], document["metadata"]["name"]) == ("DaskCluster", "cppcl")
    worker = document["spec"]["worker"]
    assert worker["replicas"] == 2
    (container,) = worker["spec"]["containers"]
    assert container["image"] == "registry.example/cppcl:1"
    assert container["args"][:10] == [
        *("dask", "worker", "--nthreads", "1"),
        *("--memory-limit", str(3 * GIB), "--resources", "CPU=1", "--death-timeout", "120"),
    ]
    amounts = {"cpu": "1", "memory": str(3 * GIB)}
    assert container["resources"] == {"requests": amounts, "limits": amounts}
    environment = {
        **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")},
        **network.environment(),
    }
    assert {entry["name"]: entry["value"] for entry in container["env"]} == environment
    (scheduler,) = document["spec"]["scheduler"]["spec"]["containers"]
    assert scheduler["image"] == "registry.example/cppcl:1"
    assert kinds.gpu_group(there) == {
        "name": "cppcl-gpu",
        "n_workers": 1,
        "image": "registry.example/cppcl:1",
        "env": environment,
        "resources": {"requests": amounts, "limits": {**amounts, "nvidia.com/gpu": "1"}},
        "worker_command": [*container["args"][:7], "GPU=1", *container["args"][8:10]],
    }


def test_workers_go_round_the_hosts():
    there = replace(wanted("ssh://one,ann@two:2222", gpu_workers=1), workers=3)
    specification = kinds.ssh_specification(there)
    found = {
        name: (worker["options"]["address"], worker["options"]["connect_options"])
        for name, worker in specification.items()
    }
    two = ("two", {"username": "ann", "port": 2222})
    assert found == {
        "cpu-0": ("one", {}),
        "cpu-1": two,
        "cpu-2": ("one", {}),
        "gpu-0": ("one", {}),
    }
    assert specification["gpu-0"]["options"]["kwargs"] == {
        "nthreads": 1,
        "memory_limit": 3 * GIB,
        "resources": {"GPU": 1},
        "name": "gpu-0",
        "death_timeout": 120,
    }


@pytest.mark.parametrize("where", ["ssh://", "ssh://one,", "ssh://one:x", "ssh://ann@"])
def test_hosts_that_are_none_are_named(where):
    with pytest.raises(InputError, match=r"compute\.cluster 'ssh://.*must be a host"):
        kinds.read_hosts(where)


def test_one_worker_a_host_unless_told():
    assert Cluster("ssh://one,two,three", None, "3GiB").workers == 3
    assert Cluster("ssh://one,two,three", 6, "3GiB").workers == 6


@pytest.mark.parametrize(
    ("where", "started"),
    [
        ("local", True),
        ("slurm", True),
        ("kubernetes", True),
        ("ssh://one", True),
        ("tcp://one:8786", False),
        ("tls://one:8786", False),
    ],
)
def test_addresses_are_found_and_others_started(where, started):
    assert kinds.is_started_here(where) is started


@pytest.mark.parametrize(
    ("where", "module", "extra"),
    [
        ("slurm", "dask_jobqueue", "slurm"),
        ("kubernetes", "dask_kubernetes", "kubernetes"),
        ("ssh://one", "asyncssh", "ssh"),
    ],
)
def test_a_missing_extra_is_named(where, module, extra, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == module else 1)
    with pytest.raises(InputError, match=rf"{where}.*pip install 'cppcl\[{extra}\]'"):
        kinds.start(wanted(where))


def test_options_come_from_the_configuration():
    changes = [
        "compute.cluster=slurm",
        "compute.gpu_workers=2",
        "compute.slurm={queue: long, directives: [--exclusive]}",
        "compute.kubernetes.container=registry.example/cppcl:2",
        "compute.tls.ca=ca.pem",
    ]
    compute = load_experiment("emoji", changes).compute
    options = ClusterOptions.from_dict(compute.model_dump())
    assert options == ClusterOptions(
        gpu_workers=2,
        tls=Tls(ca="ca.pem"),
        slurm=Slurm("long", directives=("--exclusive",)),
        kubernetes=Kubernetes("registry.example/cppcl:2"),
    )


def test_files_of_tls_are_asked_for(tmp_path):
    ca = tmp_path / "ca.pem"
    ca.write_text("x")
    assert kinds.security_of("tcp://one:8786", Tls()) is None
    with pytest.raises(InputError, match=r"compute\.tls\.ca=None is not a file"):
        kinds.security_of("tls://one:8786", Tls())
    with pytest.raises(InputError, match=r"compute\.tls\.certificate='gone\.pem' is not a file"):
        kinds.security_of("tls://one:8786", Tls(str(ca), "gone.pem", "key.pem"))
    files = Tls(str(ca), str(ca), str(ca))
    security = kinds.security_of("tls://one:8786", files)
    assert security.require_encryption
    assert security.get_tls_config_for_role("client")["ca_file"] == str(ca)


@pytest.mark.flow
def test_a_scheduler_is_reached_by_tls(tmp_path, monkeypatch):
    from distributed import LocalCluster
    from distributed.security import Security

    security = Security.temporary()
    found = security.get_tls_config_for_role("client")
    for name, kind in (("ca", "ca_file"), ("certificate", "cert"), ("private_key", "key")):
        (tmp_path / f"{name}.pem").write_text(found[kind])
    files = {name: str(tmp_path / f"{name}.pem") for name in ("ca", "certificate", "private_key")}
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        security=security,
        dashboard_address="127.0.0.1:0",
        protocol="tls://",
    ) as there:
        address = there.scheduler_address
        assert address.startswith("tls://")
        with cluster_session(address, options=ClusterOptions(tls=Tls(**files))) as session:
            done = run_jobs(abs, [-3], device="cpu", name="abs", hint="")
            assert list(done) == [(0, 3)]
            assert session.memory_of_a_worker() > 0


@pytest.mark.flow
def test_gpu_work_goes_to_gpu_workers_of_one_cluster(tmp_path):
    def where(job: int) -> str:
        from distributed import get_worker

        return str(get_worker().name)

    report = tmp_path / "report.html"
    options = ClusterOptions(gpu_workers=1, performance_report=str(report))
    with cluster_session(workers=1, memory_per_worker="1GiB", options=options) as session:
        session.client().wait_for_workers(2, timeout=120)
        found = {
            device: {
                name for _, name in run_jobs(where, range(6), device=device, name="where", hint="")
            }
            for device in ("cpu", "gpu")
        }
        assert found == {"cpu": {"cpu-0"}, "gpu": {"gpu-0"}}
    page = report.read_text()
    assert "where" in page
    assert "cdn.bokeh.org" not in page


def test_a_failed_start_tells_its_causes_and_what_to_mend(monkeypatch, tmp_path):
    try:
        try:
            raise PermissionError(13, "Permission denied", "/dev/shm/x")
        except PermissionError as error:
            raise RuntimeError("Nanny failed to start.") from error
    except RuntimeError as error:
        said = kinds.with_causes(error)
    assert said == "Nanny failed to start; cause: [Errno 13] Permission denied: '/dev/shm/x'"
    monkeypatch.setattr(kinds.sys, "platform", "linux")
    monkeypatch.setattr(kinds, "SHARED_MEMORY", str(tmp_path))
    assert kinds.shared_memory_hint() == ""
    monkeypatch.setattr(kinds, "SHARED_MEMORY", str(tmp_path / "none"))
    assert "must be a folder that can be written" in kinds.shared_memory_hint()
