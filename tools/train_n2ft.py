"""Train the network of n2ft on synthetic interferograms, and write its weights.

    python tools/train_n2ft.py --minutes 60 --checkpoint n2ft.pt
    python tools/train_n2ft.py --checkpoint n2ft.pt --export plugins/filter/moraine_filter/weights/n2ft.safetensors

A run that ends, by its time or by SIGTERM or Ctrl-C, saves what it has; the same call goes on from there. What is
exported is the moving average of the weights, so that training can stop at any time. Curves go to CHECKPOINT.jsonl.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from training.clouds import CloudScenes, Pool

from moraine_filter import weights
from moraine_filter.points.network import PointNet, graphs_of
from moraine_filter.points.structure import cloud_of, structure_of

BATCH = 8
"""Interferograms on one cloud, whose structure they share."""

FEWEST, MOST = 600, 5000
"""Points of a cloud."""

AVERAGE = 0.998
"""Share of the moving average of the weights that a step leaves."""

COOLDOWN = 0.7
"""Last share of the time, in which the learning rate falls to a twentieth."""


def loss_of(net: PointNet, scenes: CloudScenes) -> Tensor:
    """Return the mean squared error of the filtered phasors, over the samples that are not missing."""
    x, y = scenes.xy.numpy().T
    cloud = cloud_of(x, y)
    parts = structure_of(cloud, np.arange(len(x)))
    order = torch.from_numpy(cloud.order[parts[0].members].astype(np.int64))
    z = scenes.z[order]
    size = z.abs()
    phasor = z / torch.where(size > 0, size, 1)
    out = net(torch.cat([torch.view_as_real(phasor), size[..., None]], -1), graphs_of(parts))
    wanted = order[: len(out)]
    error = (out - torch.view_as_real(scenes.clean[wanted])).square().sum(-1)
    valid = scenes.z[wanted] != 0
    return (error * valid).sum() / valid.sum()


def export(checkpoint: Path, path: str) -> None:
    """Write the averaged weights of a checkpoint, with the curve beside it."""
    state = torch.load(checkpoint, weights_only=True)
    curve = [json.loads(line) for line in checkpoint.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]
    notes = {
        "made_by": "tools/train_n2ft.py",
        "license": "BSD-3-Clause",
        "steps": str(state["step"]),
        "seed": str(state["seed"]),
        "curve": json.dumps(curve),
    }
    weights.save(path, state["average"], "n2ft", notes)


def train(options: argparse.Namespace) -> None:
    """Train until the time is over or a signal asks for the end."""
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    net = PointNet()
    average = {name: value.detach().clone() for name, value in net.state_dict().items()}
    optimizer = torch.optim.AdamW(net.parameters(), lr=options.rate, weight_decay=1e-4, betas=(0.9, 0.98))
    step, seconds, smooth, held_loss = 0, 0.0, 0.0, float("nan")
    if options.checkpoint.exists():
        state = torch.load(options.checkpoint, weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        average, step, seconds, smooth = state["average"], state["step"], state["seconds"], state["loss"]
    gen = torch.Generator().manual_seed(options.seed + 1 + step)
    validation = torch.Generator().manual_seed(options.seed)
    held_pool = Pool(24, validation)
    held = [held_pool.batch(2500, BATCH) for _ in range(8)]
    pool = Pool(options.pool, gen)
    ending: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: ending.append(got))

    def save() -> None:
        state = {
            "net": net.state_dict(),
            "optimizer": optimizer.state_dict(),
            "average": average,
            "step": step,
            "seconds": seconds,
            "loss": smooth,
            "held": held_loss,
            "seed": options.seed,
        }
        beside = options.checkpoint.with_suffix(".new")
        torch.save(state, beside)
        beside.replace(options.checkpoint)

    def note() -> None:
        nonlocal held_loss
        other = PointNet()
        other.load_state_dict(average)
        with torch.no_grad():
            held_loss = float(np.mean([float(loss_of(other, scenes)) for scenes in held]))
        row = {"step": step, "seconds": round(seconds), "loss": round(smooth, 5), "held": round(held_loss, 5)}
        with options.checkpoint.with_suffix(".jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)

    budget = 60 * options.minutes
    noted = seconds
    while seconds < budget and not ending:
        start = time.monotonic()
        left = 1 - seconds / budget
        rate = options.rate * min(1, (step + 1) / 100, 0.05 + 0.95 * left / COOLDOWN)
        for group in optimizer.param_groups:
            group["lr"] = rate
        n_points = int(FEWEST * (MOST / FEWEST) ** float(torch.rand(1, generator=gen)))
        loss = loss_of(net, pool.batch(n_points, BATCH))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        optimizer.step()
        share = min(AVERAGE, (step + 1) / (step + 10))
        with torch.no_grad():
            for name, value in net.state_dict().items():
                average[name].lerp_(value, 1 - share)
        smooth += (loss.item() - smooth) * max(0.01, 1 / (step + 1))
        step += 1
        seconds += time.monotonic() - start
        if seconds - noted > options.every:
            noted = seconds
            note()
            save()
    note()
    save()


def main() -> None:
    """Train, or write the weights of a checkpoint."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkpoint", type=Path, required=True, help="file that a run continues and saves to")
    parser.add_argument("--minutes", type=float, default=60, help="time of all runs together (minutes)")
    parser.add_argument("--every", type=float, default=120, help="time between two notes and saves (seconds)")
    parser.add_argument("--rate", type=float, default=2e-3, help="largest learning rate (unitless)")
    parser.add_argument("--pool", type=int, default=400, help="grids of clean phase that are kept (grids)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (unitless)")
    parser.add_argument("--export", help="write the weights of the checkpoint to this file, and end")
    options = parser.parse_args()
    if options.export:
        export(options.checkpoint, options.export)
    else:
        train(options)


if __name__ == "__main__":
    main()
