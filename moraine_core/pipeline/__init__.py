"""Pipelines: a TOML file of steps, what of it has to run, and running it.

`file` reads the file, `job` fits its steps to commands, `plan` says what has to run and why, `state` remembers what was
done, `runner` does it, `status` tells.
"""

from __future__ import annotations

from moraine_core.pipeline.file import Pipeline, Step, load
from moraine_core.pipeline.runner import RunResult, run
from moraine_core.pipeline.status import status

__all__ = ["Pipeline", "RunResult", "Step", "load", "run", "status"]
