"""Files of trained weights: safetensors that say which network they are for, its version, and their own checksum.

Checking a file needs the standard library alone, so a command refuses a wrong one before anything is written. Format:
https://github.com/huggingface/safetensors (a length, a header in JSON, the values).
"""

from __future__ import annotations

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

FOLDER = Path(__file__).with_name("weights")
"""Where the weights lie that come with this package."""

VERSIONS = {"n2f": "1", "n2ft": "1"}
"""Versions of the networks; another one cannot use the weights of this one."""

MOST_HEADER_BYTES = 2**24


def packaged(network: str) -> str:
    """Return the path of the weights that come with this package, by the name of their network."""
    return str(FOLDER / f"{network}.safetensors")


def chosen(network: str, model: str | None) -> tuple[str, str]:
    """Return the path of the weights that a command of the same name as its network uses, and their checksum.

    Parameters
    ----------
    network
        The network, one of `VERSIONS`.
    model
        The user's file; None for the packaged one.

    Raises
    ------
    UsageError
        The weights are not what `check` asks for, or torch is not installed.
    """
    if find_spec("torch") is None:
        raise UsageError(f"{network}: torch is not installed; install it with: pip install torch")
    path = model or packaged(network)
    try:
        return path, check(path, network)["sha256"]
    except UsageError as error:
        raise UsageError(f"{network}: {error}") from None


def check(path: str, network: str) -> dict[str, str]:
    """Return what a file of weights says of itself, after making sure that it is whole and fits.

    Parameters
    ----------
    path
        The file.
    network
        The network that will use the weights, one of `VERSIONS`.

    Returns
    -------
    dict
        ``network``, ``version``, ``sha256`` of names, shapes and values, and what else was noted when they were made.

    Raises
    ------
    UsageError
        There is no such file, it is no safetensors file of this suite, it is for another network or version, or its
        checksum is wrong.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"model {path}: {error.strerror}; expected a file of {network} weights") from None
    notes, entries, values = _parts(data, path, network)
    if notes.get("network") != network:
        found = notes.get("network", "no network")
        raise UsageError(f"model {path} has weights of {found}; expected {network}")
    if notes.get("version") != VERSIONS[network]:
        raise UsageError(
            f"model {path} is for version {notes.get('version')} of {network}; expected version {VERSIONS[network]}"
        )
    if notes.get("sha256") != _digest(entries, values):
        raise UsageError(f"model {path} is damaged: its checksum is not that of its values")
    return notes


def load(path: str, network: str) -> dict[str, Tensor]:
    """Return the tensors of a file of weights by name; parameters and errors are those of `check`."""
    from safetensors.torch import load_file

    check(path, network)
    return load_file(path)


def save(path: str, tensors: Mapping[str, Tensor], network: str, notes: Mapping[str, str]) -> None:
    """Write a file of weights.

    Parameters
    ----------
    path
        The file.
    tensors
        Values by name.
    network
        What they are for, one of `VERSIONS`.
    notes
        What else to say of them, such as how they were trained.
    """
    from safetensors.torch import save as as_bytes

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    _, entries, values = _parts(as_bytes(plain), path, network)
    about = {**notes, "network": network, "version": VERSIONS[network], "sha256": _digest(entries, values)}
    Path(path).write_bytes(as_bytes(plain, about))


def _parts(data: bytes, path: str, network: str) -> tuple[dict[str, str], dict[str, Any], bytes]:
    """Return the notes, the table of tensors and the values of a safetensors file."""
    size = int.from_bytes(data[:8], "little")
    try:
        if not 0 < size <= min(MOST_HEADER_BYTES, len(data) - 8):
            raise ValueError
        entries = json.loads(data[8 : 8 + size])
        notes = entries.pop("__metadata__", {})
        if sum(end - start for start, end in (e["data_offsets"] for e in entries.values())) != len(data) - 8 - size:
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(f"model {path} is not a whole safetensors file; expected weights of {network}") from None
    return notes, entries, data[8 + size :]


def _digest(entries: Mapping[str, Any], values: bytes) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode() + values).hexdigest()
