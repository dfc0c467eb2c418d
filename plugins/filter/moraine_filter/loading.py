"""Networks with their weights, where they work."""

from __future__ import annotations

from typing import TypeVar

import torch

from moraine_filter import weights

Net = TypeVar("Net", bound=torch.nn.Module)


def loaded(net: Net, name: str, model: str, device: str) -> Net:
    """Return a network with the weights of a file, ready to run on a device.

    Parameters
    ----------
    net
        The network; its parameters are replaced.
    name
        What it is called, one of `weights.VERSIONS`.
    model
        The file.
    device
        ``cpu`` or ``cuda``.

    Raises
    ------
    ValueError
        The weights do not fit the network, or torch was built without CUDA.
    """
    try:
        net.load_state_dict(weights.load(model, name))
    except RuntimeError as error:
        fault = str(error).splitlines()[1].strip()
        raise ValueError(f"{name}: model {model} does not fit the network: {fault}") from None
    if device != "cpu":
        if not torch.cuda.is_available():
            raise ValueError(f"{name}: torch {torch.__version__} cannot use the GPU; install a torch with CUDA")
        torch.backends.cudnn.allow_tf32 = False  # its products have ten bits, which phases of one thousandth show
    return net.to(device).eval()
