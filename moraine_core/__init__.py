"""moraine_core: the host of moraine's commands, and the one Executor that runs their tasks.

What a plugin needs is imported from here. Nothing in here loads numpy or zarr before work begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moraine_core.arguments import Pairs
from moraine_core.blocks import ALL, Block, blocks, n_blocks, with_halo
from moraine_core.command import API, Blocks1D, Blocks2D, Command, Input, Output, command
from moraine_core.errors import MoraineError, UsageError
from moraine_core.hookspec import hookimpl
from moraine_core.options import RunOptions, Workers
from moraine_core.plan import Array, Chunk, ChunkTask, Device, Layout, Plan, RawLayout, Stream

if TYPE_CHECKING:
    from moraine_core.executor import Executor

__version__ = "0.1.0"

__all__ = [
    "ALL",
    "API",
    "Array",
    "Block",
    "Blocks1D",
    "Blocks2D",
    "Chunk",
    "ChunkTask",
    "Command",
    "Device",
    "Executor",
    "Input",
    "Layout",
    "MoraineError",
    "Output",
    "Pairs",
    "Plan",
    "RawLayout",
    "RunOptions",
    "Stream",
    "UsageError",
    "Workers",
    "__version__",
    "blocks",
    "command",
    "hookimpl",
    "n_blocks",
    "with_halo",
]


def __getattr__(name: str) -> Any:
    """Load the Executor only for those who ask for it: a declaration never does."""
    if name == "Executor":
        from moraine_core.executor import Executor

        return Executor
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
