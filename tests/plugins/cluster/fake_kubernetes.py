"""A stand-in for the client of Kubernetes: pods are processes of this machine, without the caller's environment."""

from __future__ import annotations

import os
import signal
import subprocess
from types import SimpleNamespace


class ApiError(Exception):
    """What the client raises."""

    def __init__(self, status):
        super().__init__(f"({status}) Reason: Not Found")
        self.status = status


class Pods:
    """The part of the API that creates, reads and deletes pods."""

    def __init__(self, folder):
        self.folder = folder
        self.pods = {}
        self.bodies = {}
        self.is_down = False

    def create_namespaced_pod(self, namespace, body):
        (container,) = body.spec.containers
        name = body.metadata.name
        with (self.folder / f"{name}.log").open("wb") as log:
            self.pods[name] = subprocess.Popen(
                [*container.command, *container.args],
                env={"HOME": os.environ["HOME"], "PATH": "/usr/bin:/bin", "HOSTNAME": name},
                cwd="/",
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.bodies[name] = SimpleNamespace(namespace=namespace, pod=body, container=container)
        return SimpleNamespace(status="created")

    def read_namespaced_pod(self, name, namespace):
        if self.is_down:
            raise ApiError(503)
        if name not in self.pods:
            raise ApiError(404)
        code = self.pods[name].poll()
        phase = "Running" if code is None else "Failed" if code else "Succeeded"
        return SimpleNamespace(status=SimpleNamespace(phase=phase))

    def delete_namespaced_pod(self, name, namespace, body):
        if name not in self.pods:
            raise ApiError(404)
        process = self.pods.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return SimpleNamespace(status="deleted")


def client(pods):
    """Return a module like ``kubernetes.client``: its models are their keywords."""

    def model(**keywords):
        return SimpleNamespace(**keywords)

    names = ("Container", "ContainerPort", "DeleteOptions", "EnvVar", "LocalObjectReference", "ObjectMeta", "Pod")
    names += ("PersistentVolumeClaimVolumeSource", "PodSpec", "ResourceRequirements", "SecurityContext", "Volume")
    return SimpleNamespace(CoreV1Api=lambda: pods, **{f"V1{name}": model for name in (*names, "VolumeMount")})
