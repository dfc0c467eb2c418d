"""How much regularization EMI should have at least: errors of linked phases for several `beta_min`, by simulation.

    .venv/bin/python tools/studies/beta_min.py                  # to 1 or 2 %, in about 20 seconds
    .venv/bin/python tools/studies/beta_min.py --points 20000   # more precisely, in a few minutes

Each row is one kind of stack: independent looks at circular Gaussian speckle of a known coherence, whose phases are
all 0. Errors are root mean squares over points and over all images but the first, which is the reference. The bound is
that of Cramer and Rao for known coherence (Guarnieri and Tebaldini, 2008), the efficiency its square over that of the
error. Two more tables: where the changing scatterers have a phase rate of their own, so that phases do not close, how
far the mean error of the last image is pulled along by them; and what errors there are without regularization. The
decision that came of it is docs/decisions/0023.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from moraine_ds.phase_linking.kernels import emi
from moraine_load.simulation.covers import COVERS
from moraine_load.simulation.ground import coherence
from moraine_load.simulation.scene import Strength, make_scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    Matrix = np.ndarray[Any, Any]

BETAS = (0.0, 0.25, 0.5, 0.75)
REPEAT_DAYS = 12
BIAS_RATE = 2.2
"""Phase rate of changing scatterers: 1 cm per year in C band (rad/yr)."""


def decaying(n_images: int, lasting: float, changing: float, images: float) -> Matrix:
    """Return coherence that falls exponentially with the distance of images to a part that stays."""
    distance = np.abs(np.subtract.outer(np.arange(n_images), np.arange(n_images)))
    matrix = lasting + changing * np.exp(-distance / images)
    np.fill_diagonal(matrix, 1)
    return matrix


def covers(n_images: int) -> dict[str, Matrix]:
    """Return coherence of the ground that `moraine simulate` knows, an image every 12 days."""
    start = np.datetime64("2023-01-06")
    dates = [str(start + REPEAT_DAYS * image).replace("-", "") for image in range(n_images)]
    scene = make_scene(
        shape=(8, 8),
        spacing=(14.0, 2.3),
        center=(14.14, 40.82),
        dates=tuple(dates),
        reference=0,
        seed=1,
        baseline=0.0,
        orbit_error=0.0,
        post=25.0,
        strength=Strength(0.0, 0.0, 0.0, 0.0, 6.0, decorrelation=True),
    )
    return {cover.name: matrix.astype(float) for cover, matrix in zip(COVERS, coherence(scene), strict=True)}


def stacks() -> Iterator[tuple[str, int, int, Matrix]]:
    """Yield name, number of images, number of looks and coherence of every stack."""
    for n_images, looks in ((17, 20), (17, 50), (30, 20), (30, 50), (60, 46), (92, 20), (92, 46), (92, 60)):
        yield "exponential .1 + .9, 4 images", n_images, looks, decaying(n_images, 0.1, 0.9, 4)
        yield "long .3 + .3, 10 images", n_images, looks, decaying(n_images, 0.3, 0.3, 10)
        yield "high .6 + .3, 20 images", n_images, looks, decaying(n_images, 0.6, 0.3, 20)
        known = covers(n_images)
        for name in ("streets", "bare ground", "fields"):
            yield name, n_images, looks, known[name]


def biased(n_images: int) -> Matrix:
    """Return coherence of bare ground whose changing part, 75 %, has a phase rate of its own."""
    years = np.arange(n_images) * REPEAT_DAYS / 365.25
    apart = np.subtract.outer(years, years)
    changing = np.exp(-np.abs(apart) * 365.25 / 90) * np.exp(1j * BIAS_RATE * apart)
    matrix = 0.9 * (0.25 + 0.75 * changing)
    np.fill_diagonal(matrix, 1)
    return matrix


def estimated(matrix: Matrix, looks: int, points: int, rng: np.random.Generator) -> Matrix:
    """Return packed sample coherence of points, ``(points, n_pairs)`` complex64."""
    n_images = len(matrix)
    factor = np.linalg.cholesky(matrix)
    noise = rng.standard_normal((2, points, looks, n_images))
    samples = (noise[0] + 1j * noise[1]) @ factor.T
    products = samples.swapaxes(1, 2) @ samples.conj()
    power = np.sqrt(np.einsum("pii->pi", products).real)
    first, second = np.triu_indices(n_images, 1)
    packed = (products / (power[:, :, None] * power[:, None, :]))[:, first, second]
    return packed.astype(np.complex64)


def rms_error(coh: Matrix, **options: Any) -> float:
    """Return the root mean square error of phases that should be 0, in radians."""
    error = np.angle(emi(coh, **options)[:, 1:])
    return float(np.sqrt(np.mean(error**2)))


def bound(matrix: Matrix, looks: int) -> float:
    """Return the root mean square of the Cramer-Rao bound of the phases relative to the first image, in radians."""
    information = 2 * looks * (matrix * np.linalg.inv(matrix) - np.eye(len(matrix)))
    return float(np.sqrt(np.mean(np.diag(np.linalg.inv(information[1:, 1:])))))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--points", type=int, default=2000, help="points of a stack of 30 images (points)")
    chosen = parser.parse_args()
    rng = np.random.default_rng(20180701)
    print(f"| coherence | images | looks | bound | {' | '.join(f'{beta:g}' for beta in BETAS)} | efficiency |")
    print(f"| --- | {'--- | ' * (len(BETAS) + 4)}".rstrip())
    ratios = []
    for name, n_images, looks, matrix in stacks():
        coh = estimated(matrix, looks, max(chosen.points * 30 // n_images, 2), rng)
        errors = [rms_error(coh, beta_min=beta) for beta in BETAS]
        least = bound(matrix, looks)
        efficiency = " ".join(f"{(least / error) ** 2:.2f}" for error in errors)
        numbers = " | ".join(f"{number:.3f}" for number in (least, *errors))
        print(f"| {name} | {n_images} | {looks} | {numbers} | {efficiency} |")
        ratios.append([error / errors[0] for error in errors])
    print("\nError relative to that of the first column, over all stacks:")
    for beta, ratio in zip(BETAS, np.transpose(ratios), strict=True):
        worse = int((ratio > 1.005).sum())
        span = f"median {np.median(ratio):.3f}, {ratio.min():.3f} to {ratio.max():.3f}, worse in {worse}"
        print(f"beta_min {beta:g}: {span}")
    columns = " | ".join(f"{beta:g}" for beta in BETAS)
    print(f"\n| part of the rate of changing scatterers that is taken over: images | looks | {columns} |")
    print(f"| --- | {'--- | ' * (len(BETAS) + 1)}".rstrip())
    for n_images in (30, 92):
        coh = estimated(biased(n_images), 46, max(chosen.points * 30 // n_images, 2), rng)
        full = BIAS_RATE * (n_images - 1) * REPEAT_DAYS / 365.25
        parts = []
        for beta in BETAS:
            steps = emi(coh, beta_min=beta)
            steps = steps[:, 1:] * steps[:, :-1].conj()  # mean steps add up to a mean phase of any size
            parts.append(float(np.angle(steps.mean(axis=0)).sum()) / full)
        print(f"| {n_images} | 46 | {' | '.join(f'{part:.3f}' for part in parts)} |")
    print("\n| without regularization: coherence | images | looks | error |\n| --- | --- | --- | --- |")
    for n_images, looks in ((17, 50), (30, 20)):
        coh = estimated(decaying(n_images, 0.3, 0.3, 10), looks, chosen.points, rng)
        error = rms_error(coh, regularize=False)
        print(f"| long .3 + .3, 10 images | {n_images} | {looks} | {error:.3f} |")


if __name__ == "__main__":
    main()
