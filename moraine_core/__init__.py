"""moraine_core: the host of moraine's commands, and the one Executor that runs their tasks.

What a plugin needs is imported from here. Names are loaded from their modules when they are asked for, so that a worker
process, which needs hardly any of them, starts at once; and nothing here loads numpy or zarr before work begins.
(`blocks` is a function and a module, so it is the exception: importing the module later would hide the function.)
"""

from __future__ import annotations

import importlib

from moraine_core.blocks import ALL, Block, blocks, n_blocks, with_halo

TYPE_CHECKING = False  # as type checkers know it; importing typing would cost every new worker milliseconds
if TYPE_CHECKING:
    from typing import Any

    from moraine_core.arguments import Pairs
    from moraine_core.declaration import Blocks1D, Blocks2D, Command, Input, Output, command
    from moraine_core.errors import MoraineError, UsageError
    from moraine_core.executor import Executor
    from moraine_core.hookspec import API, hookimpl
    from moraine_core.options import RunOptions, Workers
    from moraine_core.plan import Array, Chunk, ChunkTask, Device, Layout, Plan, RawLayout, Stream

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

_HOMES = {
    "arguments": ("Pairs",),
    "declaration": ("Blocks1D", "Blocks2D", "Command", "Input", "Output", "command"),
    "errors": ("MoraineError", "UsageError"),
    "executor": ("Executor",),
    "hookspec": ("API", "hookimpl"),
    "options": ("RunOptions", "Workers"),
    "plan": ("Array", "Chunk", "ChunkTask", "Device", "Layout", "Plan", "RawLayout", "Stream"),
}
"""Public names by the module that holds them."""


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
