"""Train the raster filter on synthetic interferograms: ``python tools/train_n2f.py --checkpoint n2f.ckpt``.

The learning rate is constant and falls to zero over the last steps. What is exported is a running mean of
the weights. A checkpoint holds all there is, random numbers too: the same call goes on where it was stopped (Ctrl-C,
SIGTERM, or --hours), and a larger --steps trains on. The curve is printed, one line of JSON each.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from math import pi
from pathlib import Path
from typing import Any

import torch
from training import scenes

from moraine_filter import weights
from moraine_filter.raster.network import N2F

SIDE = 160
USES = 4
WARM_UP = 200
UNSEEN = 999
"""Seed of the scenes that are never trained on."""


def inputs(z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit phasors and logarithms of amplitude of interferograms of shape ``(n, h, w)``."""
    amplitude = z.abs()
    unit = torch.view_as_real(z / amplitude.clamp(min=1e-30)).movedim(-1, 1)
    return unit.contiguous(), torch.log(amplitude.clamp(min=1e-30))[:, None]


def loss_of(net: N2F, batch: scenes.Scenes) -> torch.Tensor:
    """Return the mean squared error of a batch's valid samples."""
    unit, level = inputs(batch.z)
    with torch.autocast(batch.z.device.type, torch.bfloat16):
        found = net(unit, level)
    error = (found - torch.view_as_real(batch.clean).movedim(-1, 1)).square().sum(1)
    valid = batch.z != 0
    return (error * valid).sum() / valid.sum()


def unseen(device: torch.device) -> dict[float, tuple[torch.Tensor, torch.Tensor]]:
    """Return interferograms and clean phases of scenes of all kinds, by coherence."""
    gen = torch.Generator(device).manual_seed(UNSEEN)
    found = {}
    for coh in (0.2, 0.4, 0.6):
        phase = torch.cat([scenes.clean_phase(kind, 4, SIDE, gen) for kind in scenes.KINDS])
        found[coh] = scenes.interferogram(phase, torch.full_like(phase, coh), gen), phase
    return found


@torch.no_grad()
def evaluate(net: N2F, data: dict[float, tuple[torch.Tensor, torch.Tensor]]) -> dict[str, float]:
    """Return the root mean square of phase errors in radians, by coherence."""
    errors = {}
    for coh, (z, phase) in data.items():
        with torch.autocast(z.device.type, torch.bfloat16):
            found = net(*inputs(z))
        difference = torch.atan2(found[:, 1], found[:, 0]) - phase
        errors[f"rmse_{coh}"] = round(
            float((difference - 2 * pi * torch.round(difference / (2 * pi))).square().mean().sqrt()), 4
        )
    return errors


class Training:
    """Everything that goes on when a training goes on."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        device = torch.device(chosen.device)
        torch.manual_seed(chosen.seed)
        self.chosen = chosen
        self.net = N2F().to(device)
        self.mean = N2F().to(device)
        self.mean.load_state_dict(self.net.state_dict())
        self.gen = torch.Generator(device).manual_seed(chosen.seed)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), chosen.rate, betas=(0.9, 0.98), weight_decay=1e-4)
        self.step = 0
        self.seconds = 0.0
        self.curve: list[dict[str, Any]] = []
        self.stop = False

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "net": self.net.state_dict(),
            "mean": self.mean.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": self.gen.get_state(),
            "step": self.step,
            "seconds": self.seconds,
            "curve": self.curve,
        }
        part = self.chosen.checkpoint.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.chosen.checkpoint)

    def resume(self) -> None:
        """Take up a checkpoint."""
        state = torch.load(self.chosen.checkpoint, map_location="cpu", weights_only=True)
        self.net.load_state_dict(state["net"])
        self.mean.load_state_dict(state["mean"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.gen.set_state(state["random"])
        self.step, self.seconds, self.curve = state["step"], state["seconds"], state["curve"]

    def rate(self) -> float:
        """Return the learning rate of the next step."""
        warm = min(1.0, (self.step + 1) / WARM_UP)
        cool = min(1.0, (self.chosen.steps - self.step) / max(self.chosen.cool_down, 1))
        return float(self.chosen.rate * warm * cool)

    def train(self, batch: scenes.Scenes) -> float:
        """Take one step and return its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        loss = loss_of(self.net, batch)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        share = max(1 / (self.step + 1), 1e-3)
        with torch.no_grad():
            for mean, new in zip(self.mean.parameters(), self.net.parameters(), strict=True):
                mean.lerp_(new, share)
        return loss.item()

    def run(self) -> None:
        """Train until the steps are done, the time is over or a signal comes."""
        chosen, data = self.chosen, unseen(self.gen.device)
        begin, losses = time.monotonic(), list[float]()
        while self.step < chosen.steps and not self.stop:
            start = time.process_time()
            for batch in scenes.raster_batches(chosen.batch, SIDE, self.gen, USES, chosen.lost):
                losses.append(self.train(batch))
            self.seconds += time.process_time() - start
            if self.step % chosen.every == 0:
                line = {"step": self.step, "cpu_s": round(self.seconds), "loss": round(sum(losses) / len(losses), 4)}
                self.curve.append({**line, **evaluate(self.mean, data)})
                print(json.dumps(self.curve[-1]), flush=True)
                losses.clear()
                self.save()
            self.stop |= time.monotonic() - begin > chosen.hours * 3600
        self.save()


def main() -> None:
    """Train, or only export."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkpoint", type=Path, required=True, help="file that keeps the state; taken up if there")
    parser.add_argument("--steps", type=int, default=30_000, help="steps in all (count)")
    parser.add_argument("--cool-down", type=int, default=5_000, help="last steps, in which the rate falls (count)")
    parser.add_argument("--hours", type=float, default=1e9, help="stop after so long, to go on later (hours)")
    parser.add_argument("--batch", type=int, default=12, help="patches of a step (count)")
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate (unitless)")
    parser.add_argument("--lost", type=float, default=0.25, help="share of scenes with areas of pure noise (unitless)")
    parser.add_argument("--every", type=int, default=400, help=f"steps between lines; a multiple of {USES} (count)")
    parser.add_argument("--seed", type=int, default=1, help="of weights and scenes (unitless)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch on a CPU (count)")
    parser.add_argument("--export", type=Path, help="write the weights here, and train no further")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    training = Training(chosen)
    if chosen.checkpoint.exists():
        training.resume()
    if chosen.export:
        notes = {
            "made_by": "tools/train_n2f.py",
            "license": "BSD-3-Clause",
            "widths": json.dumps(training.net.widths),
            "steps": str(training.step),
            "seed": str(chosen.seed),
            "curve": json.dumps(training.curve),
        }
        weights.save(str(chosen.export), training.mean.state_dict(), "n2f", notes)
        return

    def stop(*_: object) -> None:
        training.stop = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    training.run()


if __name__ == "__main__":
    main()
