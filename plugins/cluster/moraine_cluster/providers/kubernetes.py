"""Jobs that are pods of Kubernetes."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import TYPE_CHECKING, Any

from parsl.jobs.states import JobState, JobStatus
from parsl.providers import KubernetesProvider

from moraine_cluster.providers.common import Usual, blocks, job_setup
from moraine_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moraine_cluster.config import ClusterConfig


def provider(config: ClusterConfig) -> Kubernetes:
    """Return the provider.

    Raises
    ------
    UsageError
        The package is missing, or says that there is no cluster.
    """
    if importlib.util.find_spec("kubernetes") is None:
        msg = 'scheduler kubernetes needs the package kubernetes: pip install "moraine-cluster[kubernetes]"'
        raise UsageError(msg)
    cores, memory = config.slots * config.cores_per_slot, f"{(config.max_memory_per_node or 0) >> 20}Mi"
    gpus = {"nvidia.com/gpu": str(config.gpus_per_node)} if config.gpus_per_node else {}
    volumes = (volume.partition(":") for volume in config.volumes)
    try:
        return Kubernetes(
            image=str(config.image),
            namespace=config.namespace or "default",
            **blocks(config),
            init_cpu=cores,
            max_cpu=cores,
            init_mem=memory,
            max_mem=memory,
            extra_requests=gpus,
            extra_limits=gpus,
            worker_init=job_setup(config),
            persistent_volumes=[(claim, folder) for claim, _, folder in volumes],
        )
    except Exception as error:
        msg = f"scheduler kubernetes cannot be reached: {' '.join(str(error).split())}"
        raise UsageError(msg) from error


class Kubernetes(Usual, KubernetesProvider):  # type: ignore[misc, unused-ignore]
    """The engine's own, which also notices that a pod was deleted by somebody else."""

    help = "look with kubectl get pods, end them with kubectl delete pod"

    def _status(self) -> None:
        super()._status()  # type: ignore[no-untyped-call, unused-ignore]
        rows: dict[Any, Any] = self.resources
        open_ = [job for job, row in rows.items() if not row["status"].terminal]
        for job in set(open_) - set(self.known(open_)):
            rows[job]["status"] = JobStatus(JobState.COMPLETED)

    def _delete_pod(self, pod_name: str) -> None:
        with contextlib.suppress(Exception):  # it has gone already, or `known` will say that it has not
            super()._delete_pod(pod_name)  # type: ignore[no-untyped-call, unused-ignore]

    def known(self, jobs: Sequence[str]) -> list[str]:
        """Return those whose pods are there."""
        return [job for job in jobs if self._is_there(self.resources[job]["pod_name"])]

    def _is_there(self, pod: str) -> bool:
        try:
            self.kube_client.read_namespaced_pod(name=pod, namespace=self.namespace)
        except Exception as error:  # noqa: BLE001 - without an answer it counts as being there
            return getattr(error, "status", None) != 404
        return True
