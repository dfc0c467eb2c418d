"""Kubernetes by a stand-in for its client, whose pods are processes of this machine. No real one was ever asked."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import SimpleNamespace

import executor_tasks as tasks
import fake_kubernetes
import pytest
from parsl.providers.kubernetes import kube

from moraine_cluster.config import ClusterConfig, Jobs
from moraine_cluster.parsl_backend import ParslBackend
from moraine_cluster.providers import common, provider_for
from moraine_core import Executor
from moraine_core.errors import UsageError


@pytest.fixture
def pods(tmp_path, monkeypatch):
    """Put the stand-in in the place of the client; return its pods."""
    pods = fake_kubernetes.Pods(tmp_path)
    monkeypatch.setattr(kube, "client", fake_kubernetes.client(pods), raising=False)
    monkeypatch.setattr(kube, "config", SimpleNamespace(load_kube_config=lambda: None), raising=False)
    monkeypatch.setattr(kube, "_kubernetes_enabled", True)
    monkeypatch.setattr(common, "POLL_SECONDS", 1)
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: name == "kubernetes" or real(name, *rest))
    yield pods
    for name in list(pods.pods):
        pods.delete_namespaced_pod(name, "default", None)


def table(tmp_path, **changes):
    shared = tmp_path / "shared"
    shared.mkdir(exist_ok=True)
    usual = {"image": "insar:1", "max_memory_per_node": 2**30, "address": "127.0.0.1", "slots_per_node": 2}
    usual["setup"] = (f"export PYTHONPATH={Path(tasks.__file__).parent}",)
    return ClusterConfig(scheduler="kubernetes", shared=str(shared), **{**usual, **changes})


def submitted(tmp_path, command="sleep 60", **changes):
    provider = provider_for(table(tmp_path, **changes))
    return provider, provider.submit(command, 1)


def state(provider, job):
    return provider.status([job])[0].state.name


def test_a_pod_has_what_the_table_says(pods, tmp_path):
    submitted(tmp_path, cores_per_slot=3, gpus_per_node=2, namespace="radar", volumes=("data:/data",))
    (body,) = pods.bodies.values()
    assert (body.namespace, body.container.image) == ("radar", "insar:1")
    for part in (body.container.resources.requests, body.container.resources.limits):
        assert part == {"cpu": "6.0", "memory": "1024Mi", "nvidia.com/gpu": "2"} or part["cpu"] == "6"
    (mount,), (volume,) = body.container.volume_mounts, body.pod.spec.volumes
    assert (mount.mount_path, mount.name) == ("/data", "data")
    assert volume.persistent_volume_claim.claim_name == "data"


def test_a_pod_runs_until_it_is_canceled(pods, tmp_path):
    provider, job = submitted(tmp_path)
    assert state(provider, job) == "RUNNING"
    assert provider.known([job]) == [job]
    provider.cancel([job])
    assert (state(provider, job), provider.known([job]), pods.pods) == ("CANCELLED", [], {})


def test_a_pod_that_somebody_else_deletes_has_ended(pods, tmp_path):
    provider, job = submitted(tmp_path)
    pods.delete_namespaced_pod(next(iter(pods.pods)), "default", None)
    assert state(provider, job) == "COMPLETED"


def test_a_cluster_that_gives_no_answer_changes_nothing(pods, tmp_path):
    provider, job = submitted(tmp_path)
    pods.is_down = True
    assert state(provider, job) == "RUNNING"
    assert provider.known([job]) == [job]


def test_tasks_run_in_a_pod_and_no_pod_is_left(pods, tmp_path):
    with Executor(backend=ParslBackend(table(tmp_path))) as executor:
        assert executor.map(tasks.double, [(i,) for i in range(20)]) == [2 * i for i in range(20)]
        assert len(pods.pods) == 1
    assert pods.pods == {}


@pytest.mark.slow
def test_a_pod_ends_by_itself_at_its_walltime(pods, tmp_path):
    """Kubernetes is not told of it, so the pod's own command keeps to it."""
    with Executor(backend=ParslBackend(table(tmp_path, walltime="00:00:15", jobs=Jobs()))) as executor:
        executor.map(tasks.double, [(1,)])
        (process,) = pods.pods.values()
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        assert process.poll() == 124
        assert executor.map(tasks.double, [(1,)]) == [2]  # in another


def test_a_missing_package_is_one_sentence(tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "kubernetes" else real(name, *rest)
    )
    with pytest.raises(UsageError, match=r'needs the package kubernetes: pip install "moraine-cluster\[kubernetes\]"'):
        provider_for(table(tmp_path))


def test_a_cluster_that_is_not_configured_is_one_sentence(pods, tmp_path, monkeypatch):
    class ConfigError(Exception):
        pass

    def fail():
        raise ConfigError("Invalid kube-config file.\nNo configuration found.")

    config = SimpleNamespace(load_kube_config=fail, load_incluster_config=fail)
    config.config_exception = SimpleNamespace(ConfigException=ConfigError)
    monkeypatch.setattr(kube, "config", config)
    with pytest.raises(UsageError, match="scheduler kubernetes cannot be reached: Failed to load both"):
        provider_for(table(tmp_path))
