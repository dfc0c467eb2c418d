"""Jobs of Torque, which has PBS's programs and words of its own for the resources of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moraine_cluster.providers.pbs import Pbs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moraine_cluster.config import ClusterConfig


def provider(config: ClusterConfig) -> Torque:
    """Return the provider."""
    return Torque(config)


class Torque(Pbs):
    """Torque."""

    def resources_of_a_node(self) -> Iterator[str]:
        """Yield what a job asks for on its node."""
        config = self.config
        gpus = f":gpus={config.gpus_per_node}" if config.gpus_per_node else ""
        yield f"-l nodes=1:ppn={self.cores}{gpus}"
        if config.max_memory_per_node:
            yield f"-l mem={config.max_memory_per_node >> 20}mb"
        if config.exclusive:
            yield "-n"
