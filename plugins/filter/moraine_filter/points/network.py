"""The network of n2ft: a U-net of sums over neighbors whose features turn with the phase.

Features are complex; a constant phase added to the interferogram turns them all, and the result, by that constant. Sums
over neighbors and mixtures of channels have real weights, which commute with it. What is not linear happens in the
frame of the point: features are turned by minus the phase of channel 0, which is a running estimate of the result.

Features have the shape ``(n, batch, 2, channels)``, real and imaginary parts on the third axis.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from moraine_filter.points import _cpu
from moraine_filter.points.structure import AFTER, BEFORE, LEVELS, SPECTRA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from moraine_filter.points.structure import Part
    from moraine_filter.points.structure import Table as TableArrays

TURNING = (16, 24, 32, 40)
"""Channels of the levels that turn with the phase."""

STILL = (8, 8, 8, 8)
"""Pairs of channels that do not; the first is a running estimate of the slope of the phase, in radians per unit."""

EDGE_WIDTH = 16
"""Hidden units of what turns the position of a neighbor into its weights."""

STEP = 1.1
"""Radians per unit between two slopes of a local spectrum."""

TRUST = (0.02, 0.2, 4.0)
"""Weight of the spectra of levels before training: single ones say little, pooled ones much."""

ROWS = 2048
"""Points that are worked on together where no gradient is asked for."""

BRIGHTEST = 4.0
"""Amplitude, over the mean around, beyond which a sample counts no more: one bright point is not all there is."""

EPSILON = 0.03
"""Modulus below which the running estimate is no frame; features there are small."""


class _Gather(torch.autograd.Function):
    """Weighted sums over neighbors on a CPU."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, rows: Tensor, toward: Tensor, weights: Tensor, turning: int) -> Tensor:
        ctx.save_for_backward(features, rows, toward, weights)
        ctx.turning = turning
        out = features.new_empty((rows.shape[0], *features.shape[1:]))
        values = _arrays(features, rows, toward, weights)
        _cpu.gather(values[0], values[1], values[2], values[3], turning, out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        features, rows, toward, weights = ctx.saved_tensors
        changes = torch.zeros_like(features), torch.empty_like(weights)
        g, *values = _arrays(gradients[0].contiguous(), features, rows, toward, weights)
        _cpu.gather_gradient(
            g, values[0], values[1], values[2], values[3], ctx.turning, changes[0].numpy(), changes[1].numpy()
        )
        return changes[0], None, None, changes[1], None


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.detach().numpy() for tensor in tensors]


def gather(features: Tensor, table: Table, weights: Tensor, turning: int) -> Tensor:
    """Return sums over neighbors, whose turning channels are first turned by what their slope gives on the way.

    Parameters
    ----------
    features
        Shape ``(n, batch, 2, channels)``.
    table
        Neighbors of m points.
    weights
        Of each neighbor and channel, ``(m, k, channels)``.
    turning
        Channels that turn; the next one is the slope.

    Returns
    -------
    Tensor
        Shape ``(m, batch, 2, channels)``.
    """
    if features.device.type == "cpu":
        values = (features.contiguous(), table.rows.contiguous(), table.toward.contiguous(), weights.contiguous())
        out: Tensor = _Gather.apply(*values, turning)  # type: ignore[no-untyped-call]
        return out
    return gather_with_torch(features, table, weights, turning)


def gather_with_torch(features: Tensor, table: Table, weights: Tensor, turning: int) -> Tensor:
    """Return what `gather` does, on any device."""
    total = features.new_zeros((table.rows.shape[0], *features.shape[1:]))
    for k in range(table.rows.shape[1]):
        near = features[table.rows[:, k]]
        angle = -(near[..., turning] * table.toward[:, k, None]).sum(-1)
        frame = torch.stack([torch.cos(angle), torch.sin(angle)], -1)[..., None]
        near = torch.cat([turned(near[..., :turning], frame, 1), near[..., turning:]], -1)
        total = total.addcmul(near, weights[:, k, None, None, :])
    return total


class Edges(nn.Module):
    """Weights of neighbors out of how they lie: two channels get a mean, phase and slope, the others are free."""

    def __init__(self, turning: int, channels: int) -> None:
        super().__init__()
        self.means = (0, turning) if channels > turning else (0,)
        self.hidden = nn.Linear(4, EDGE_WIDTH)
        self.out = nn.Linear(EDGE_WIDTH, channels)
        with torch.no_grad():
            self.out.bias.fill_(1)
            self.out.weight[list(self.means)] = 0

    def forward(self, table: Table) -> Tensor:
        """Return weights, ``(n, k, channels)``."""
        place = table.toward * table.sharpness[:, None, None]
        distance = place.square().sum(-1, keepdim=True).sqrt()
        seen = torch.cat([place, distance, (distance == 0).to(place.dtype)], -1)
        raw = self.out(nn.functional.silu(self.hidden(seen)))
        weights = list(
            (raw * table.weight[..., None]).tensor_split([1, *(c + d for c in self.means[1:] for d in (0, 1))], -1)
        )
        for number, channel in enumerate(self.means):
            mean = torch.exp(raw[..., channel, None].clamp(-8, 8)) * table.weight[..., None]
            weights[2 * number] = mean / mean.sum(1, keepdim=True)
        return torch.cat(weights, -1)


def turned(features: Tensor, frame: Tensor, sign: int, axis: int = 2) -> Tensor:
    """Return features times a complex frame, or its conjugate where the sign is -1; parts are on an axis of both."""
    (re, im), (c, s) = features.unbind(axis), frame.unbind(axis)
    s = s * sign
    return torch.stack([re * c - im * s, re * s + im * c], axis)


class Change(nn.Module):
    """What is added to the features of a point, out of what was gathered around it."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.turning, still = TURNING[level], STILL[level]
        channels = self.turning + still
        self.hidden = nn.Linear(3 * self.turning + 2 * still + 1, 4 * channels)
        self.out = nn.Linear(4 * channels, 2 * channels)
        with torch.no_grad():
            self.out.weight.mul_(0.3)

    def forward(self, around: Tensor, valid: Tensor) -> Tensor:
        """Return the change, of the shape of what was gathered."""
        turning, still = around[..., : self.turning], around[..., self.turning :]
        size = turning.square().sum(2).add(EPSILON**2).sqrt()
        frame = turning[..., :1] / size[:, :, None, :1]
        seen = torch.cat([turned(turning, frame, -1).flatten(2), size, still.flatten(2), valid], -1)
        change = self.out(nn.functional.silu(self.hidden(seen))).reshape(around.shape)
        return torch.cat([turned(change[..., : self.turning], frame, 1), change[..., self.turning :]], -1)


class Step(nn.Module):
    """A sum over neighbors, and a change of the features that depends on it."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.turning = TURNING[level]
        self.edges = Edges(TURNING[level], TURNING[level] + STILL[level])
        self.change = Change(level)

    def forward(self, features: Tensor, own: Tensor, valid: Tensor, table: Table) -> Tensor:
        """Return features of the table's members, whose features and share of valid samples are `own` and `valid`."""
        around = gather(features, table, self.edges(table), self.turning)
        changed: Tensor = own + self.change(around, valid)
        return changed


class Down(nn.Module):
    """Features of the level above, out of those of neighbors; phase and slope stay means."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.turning = TURNING[level]
        self.edges = Edges(TURNING[level], TURNING[level] + STILL[level])
        self.mix = nn.Linear(TURNING[level], TURNING[level + 1] - 1, bias=False)
        self.mix_still = nn.Linear(STILL[level], STILL[level + 1] - 1, bias=False)

    def forward(self, features: Tensor, table: Table) -> Tensor:
        """Return features of the table's members."""
        around = gather(features, table, self.edges(table), self.turning)
        turning, still = around[..., : self.turning], around[..., self.turning :]
        return torch.cat([turning[..., :1], self.mix(turning), still[..., :1], self.mix_still(still)], -1)


class Slopes(nn.Module):
    """The slope of the phase, out of local spectra of a level and of those above it."""

    grid: Tensor

    def __init__(self, level: int) -> None:
        super().__init__()
        steps = STEP * (torch.arange(8) - 3.5)
        grid = torch.stack([steps.repeat_interleave(8), steps.repeat(8)], -1)
        self.register_buffer("grid", grid, persistent=False)
        self.trust = nn.Parameter(torch.tensor(TRUST[level:]))
        self.prior = nn.Parameter(-grid.square().sum(-1) / 8)

    def forward(self, evidence: Sequence[Tensor]) -> Tensor:
        """Return slope, and how sure it is, of normalized spectra ``(n, 64)`` of a point on each level: (n, 2, 2)."""
        total: Tensor = self.prior + sum(trust * one for trust, one in zip(self.trust, evidence, strict=True))
        share = torch.softmax(total, -1)
        slope = share @ self.grid
        spread = (share @ self.grid.square()).sum(-1) - slope.square().sum(-1)
        sure = torch.stack([(share * evidence[-1]).sum(-1) - 1, torch.exp(-spread)], -1)
        return torch.stack([slope, sure], -1)


class Up(nn.Module):
    """Features of a level, out of its own and of those of the level above, between which each point chooses."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.turning, self.above = TURNING[level], TURNING[level + 1]
        channels = TURNING[level] + STILL[level]
        self.edges = Edges(TURNING[level + 1], TURNING[level + 1] + STILL[level + 1])
        self.mix = nn.Linear(TURNING[level + 1], TURNING[level], bias=False)
        self.mix_still = nn.Linear(STILL[level + 1], STILL[level], bias=False)
        self.hidden = nn.Linear(4 * TURNING[level] + 4 * STILL[level], 2 * channels)
        self.share = nn.Linear(2 * channels, channels)
        with torch.no_grad():
            for mix in (self.mix, self.mix_still):
                mix.weight[0] = 0
                mix.weight[0, 0] = 1

    def forward(self, own: Tensor, above: Tensor, table: Table) -> Tensor:
        """Return features of the table's members."""
        around = gather(above, table, self.edges(table), self.above)
        around = torch.cat([self.mix(around[..., : self.above]), self.mix_still(around[..., self.above :])], -1)
        both = own[..., : self.turning], around[..., : self.turning]
        sizes = [turning.square().sum(2).add(EPSILON**2).sqrt() for turning in both]
        alike = turned(both[0], both[1] / (sizes[0] * sizes[1])[:, :, None], -1)
        still = [features[..., self.turning :].flatten(2) for features in (own, around)]
        hidden = nn.functional.silu(self.hidden(torch.cat([*sizes, alike.flatten(2), *still], -1)))
        return own + torch.sigmoid(self.share(hidden))[:, :, None] * (around - own)


class Stem(nn.Module):
    """The first features, out of samples: phasors, and phasors that count more where they are brighter than around."""

    def __init__(self) -> None:
        super().__init__()
        self.edges = Edges(TURNING[0], TURNING[0])
        self.bright = Edges(TURNING[0], TURNING[0])
        self.change = Change(0)

    def forward(self, samples: Tensor, slopes: Tensor, table: Table) -> Tensor:
        """Return features of the table's members, and as one more channel the share of valid samples around.

        Parameters
        ----------
        samples
            Phasor and amplitude of interferograms, float32 ``(n, batch, 3)``; of missing ones 0.
        slopes
            Slopes and how sure they are, of the members, ``(m, batch, 2, 2)``.
        table
            Neighbors.
        """
        around = samples[table.rows] * (table.weight > 0)[:, :, None, None]  # (m, k, batch, 3)
        phasor, size = around[..., :2], around[..., 2:]
        there = (size > 0).to(size.dtype)
        mean = size.sum(1, keepdim=True) / there.sum(1, keepdim=True).clamp(min=1)
        angle = -(table.toward[:, :, None] * slopes[:, None, :, :, 0]).sum(-1)
        phasor = turned(phasor[..., None], torch.stack([torch.cos(angle), torch.sin(angle)], -1)[..., None], 1, 3)[
            ..., 0
        ]
        bright = phasor * (size / torch.where(mean > 0, mean, 1)).clamp(max=BRIGHTEST)
        both = torch.cat([phasor, bright], 1).flatten(2)  # (m, 2 k, batch 2)
        weights = torch.cat([self.edges(table), self.bright(table)], 1)
        turning = (both.transpose(1, 2) @ weights).reshape(len(both), -1, 2, weights.shape[-1])
        valid = (there * table.weight[:, :, None, None]).sum(1)
        features = torch.cat([turning, slopes, turning.new_zeros((*turning.shape[:3], STILL[0] - 2))], -1)
        features = features + self.change(features, valid)
        return torch.cat([features, valid[..., None].expand(-1, -1, 2, 1)], -1)


class Table(NamedTuple):
    """Neighbors as tensors; see `structure.Table`."""

    rows: Tensor
    toward: Tensor
    sharpness: Tensor
    weight: Tensor

    def of(self, members: slice | Tensor) -> Table:
        """Return the table of some members."""
        return Table(*(values[members] for values in self))


class Graph(NamedTuple):
    """One level of a structure as tensors; see `structure.Part`."""

    counts: Sequence[int]
    table: Table
    up: Table | None
    down: Tensor | None


def by_rows(table: Table, of_rows: Callable[[slice, Table], Tensor]) -> Tensor:
    """Return what a function gives for the rows of a table: for some at a time, where no gradient asks for all."""
    n = table.rows.shape[0]
    if torch.is_grad_enabled() or n <= ROWS:
        return of_rows(slice(0, n), table)
    first = of_rows(slice(0, ROWS), table.of(slice(0, ROWS)))
    out = first.new_empty((n, *first.shape[1:]))
    out[:ROWS] = first
    for start in range(ROWS, n, ROWS):
        rows = slice(start, min(start + ROWS, n))
        out[rows] = of_rows(rows, table.of(rows))
    return out


class PointNet(nn.Module):
    """The network of n2ft."""

    def __init__(self) -> None:
        super().__init__()
        self.slopes = nn.ModuleList(Slopes(level) for level in range(SPECTRA))
        self.stem = Stem()
        self.before, self.after = (
            nn.ModuleList(nn.ModuleList(Step(level) for _ in range(n)) for level, n in enumerate(steps))
            for steps in (BEFORE, AFTER)
        )
        self.down = nn.ModuleList(Down(level) for level in range(LEVELS - 1))
        self.up = nn.ModuleList(Up(level) for level in range(LEVELS - 1))

    def forward(self, samples: Tensor, graphs: Sequence[Graph]) -> Tensor:
        """Return the filtered phasors of the points that a structure was made for.

        Parameters
        ----------
        samples
            Phasor and amplitude of interferograms at the members of level 0, float32 ``(n, batch, 3)``; of missing ones
            0.
        graphs
            The structure.

        Returns
        -------
        Tensor
            Shape ``(n_points, batch, 2)``; the modulus, mostly below 1, tells how far a phasor can be trusted.
        """
        slopes = slopes_of(self.slopes, samples, graphs)
        table = graphs[0].table.of(slice(graphs[0].counts[-2]))
        features = by_rows(table, lambda rows, some: self.stem(samples, slopes[0][rows], some))
        features, valid = features[..., :-1].contiguous(), features[..., :1, -1]
        own, shares = [], []
        for level, graph in enumerate(graphs):
            if 0 < level < SPECTRA:
                new = slopes[level][: features.shape[0]]
                turning = TURNING[level]
                features = torch.cat([features[..., :turning], new, features[..., turning + 2 :]], -1)
            first = len(graph.counts) - (2 if level == 0 else 1)
            for number, step in enumerate(_steps(self.before[level])):
                features = _stepped(step, features, valid, graph, graph.counts[first - number - 1])
            kept = slice(graph.counts[AFTER[level]])
            own.append(features[kept].clone())
            shares.append(valid[kept].clone())
            if graph.down is not None:
                table = graph.table.of(graph.down[: graphs[level + 1].counts[-1]])
                features, valid = (
                    by_rows(table, partial(_down, self.down[level], features)),
                    (valid[table.rows] * table.weight[:, :, None, None]).sum(1),
                )
        for level in reversed(range(LEVELS)):
            graph = graphs[level]
            if graph.up is not None:
                table = graph.up.of(slice(graph.counts[AFTER[level]]))
                features = by_rows(table, partial(_up, self.up[level], own[level], features))
            for number, step in enumerate(_steps(self.after[level])):
                features = _stepped(step, features, shares[level], graph, graph.counts[AFTER[level] - number - 1])
        return features[..., 0]


def slopes_of(modules: Iterable[nn.Module], samples: Tensor, graphs: Sequence[Graph]) -> list[Tensor]:
    """Return the slopes of levels whose spectra are taken, and how sure they are, ``(n, batch, 2, 2)``.

    Spectra are pooled from level to level, which makes them sure where coherence is low; what is known on a level is
    handed down to those below. One interferogram at a time, since a spectrum is large.
    """
    columns = []
    for number in range(samples.shape[1]):
        pooled = [spectra(samples[:, number].contiguous(), graphs[0].table)]
        for lower in graphs[: SPECTRA - 1]:
            if lower.down is not None:
                pooled.append(pool(pooled[-1], lower.table.of(lower.down)))
        evidence = [pooled[-1][:, None]]
        for level in reversed(range(SPECTRA - 1)):
            up = graphs[level].up
            if up is not None:
                above = pool(evidence[0].flatten(1), up).reshape(len(up.rows), -1, 64)
                evidence.insert(0, torch.cat([pooled[level][: len(above), None], above], 1))
        columns.append([module(one.unbind(1)) for module, one in zip(modules, evidence, strict=True)])
    return [torch.stack(column, 1) for column in zip(*columns, strict=True)]


def spectra(samples: Tensor, table: Table) -> Tensor:
    """Return the local spectra of one interferogram ``(n, 3)`` at the members of a table, ``(m, 64)``, mean 1."""
    if samples.device.type != "cpu":
        return spectra_with_torch(samples, table)
    out = torch.empty((table.rows.shape[0], 64))
    values = _arrays(samples, table.rows, table.toward, table.weight)
    _cpu.spectra(values[0], values[1], values[2], values[3], np.float32(STEP), out.numpy())
    return out


def spectra_with_torch(samples: Tensor, table: Table) -> Tensor:
    """Return what `spectra` does, on any device."""
    steps = STEP * (torch.arange(8, device=samples.device) - 3.5)
    z = torch.view_as_complex(samples[:, :2].contiguous())
    total = torch.zeros((table.rows.shape[0], 8, 8), dtype=z.dtype, device=z.device)
    for k in range(table.rows.shape[1]):
        angles = -table.toward[:, k, :, None] * steps
        x, y = torch.polar(torch.ones_like(angles), angles).unbind(1)
        near = z[table.rows[:, k]] * (table.weight[:, k] > 0)
        total += near[:, None, None] * x[:, :, None] * y[:, None, :]
    power = (total.real.square() + total.imag.square()).flatten(1)
    mean = power.mean(1, keepdim=True)
    return power / torch.where(mean > 0, mean, 1)


def pool(values: Tensor, table: Table) -> Tensor:
    """Return means over neighbors of values ``(n, channels)``, without a gradient."""
    if values.device.type != "cpu":
        return pool_with_torch(values, table)
    out = torch.empty((table.rows.shape[0], values.shape[1]))
    arrays = _arrays(values.contiguous(), table.rows.contiguous(), table.weight.contiguous())
    _cpu.pool(arrays[0], arrays[1], arrays[2], out.numpy())
    return out


def pool_with_torch(values: Tensor, table: Table) -> Tensor:
    """Return what `pool` does, on any device."""
    out = values.new_zeros((table.rows.shape[0], values.shape[1]))
    for k in range(table.rows.shape[1]):
        out += values[table.rows[:, k]] * table.weight[:, k, None]
    return out


def _steps(modules: nn.Module) -> list[nn.Module]:
    return list(modules.children())


def _stepped(step: nn.Module, features: Tensor, valid: Tensor, graph: Graph, count: int) -> Tensor:
    def of_rows(rows: slice, table: Table) -> Tensor:
        out: Tensor = step(features, features[rows], valid[rows], table)
        return out

    return by_rows(graph.table.of(slice(count)), of_rows)


def _down(down: nn.Module, features: Tensor, _: slice, table: Table) -> Tensor:
    out: Tensor = down(features, table)
    return out


def _up(up: nn.Module, own: Tensor, above: Tensor, rows: slice, table: Table) -> Tensor:
    out: Tensor = up(own[rows], above, table)
    return out


def graphs_of(parts: Sequence[Part], device: torch.device | str = "cpu") -> list[Graph]:
    """Return a structure as tensors on a device."""

    def tensors(table: TableArrays) -> Table:
        return Table(*(torch.from_numpy(values).to(device) for values in table))

    return [
        Graph(
            part.counts,
            tensors(part.table),
            None if part.up is None else tensors(part.up),
            None if part.down is None else torch.from_numpy(part.down).to(device),
        )
        for part in parts
    ]
