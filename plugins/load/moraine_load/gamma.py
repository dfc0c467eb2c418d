"""Running GAMMA's programs: argument lists, checked exit codes and sizes, results that appear whole or not at all.

The programs write into a scratch folder of the user, with ``gamma.log`` for all they say. What is there already is used
again if the note beside it tells that the same program made it from the same files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moraine_core import MoraineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LOG_TAIL = 20
"""Lines of a program's output that an error repeats."""


class GammaError(MoraineError, RuntimeError):
    """A program of GAMMA failed, or did not write what it should."""


@dataclass(frozen=True)
class Product:
    """A file that a program writes.

    Attributes
    ----------
    path
        Where it will lie.
    nbytes
        Its size; 0 for a text file of any size but none.
    """

    path: str
    nbytes: int = 0

    @property
    def part(self) -> str:
        """Where the program writes it."""
        return f"{self.path}.part"


def make(
    words: Sequence[str | Product],
    products: Sequence[Product],
    inputs: Sequence[str],
    *,
    threads: int = 1,
    log: Path | None = None,
) -> None:
    """Run a program unless its products are there already.

    Parameters
    ----------
    words
        Program and arguments; a `Product` stands for the place where it is written.
    products
        All that the program writes.
    inputs
        Files that it reads.
    threads
        ``OMP_NUM_THREADS`` of the program.
    log
        File to which all that the program says is added; ``gamma.log`` beside the first product by default.

    Raises
    ------
    GammaError
        The program cannot be run, ends with another code than 0, or writes files of another size.
    """
    line = [word.path if isinstance(word, Product) else word for word in words]
    note = {"command": line, "inputs": {path: os.stat(path).st_mtime_ns for path in inputs}}
    if all(_is_made(product, note) for product in products):
        return
    for product in products:
        Path(product.path).parent.mkdir(parents=True, exist_ok=True)
        for path in (product.part, product.path, f"{product.path}.json"):
            Path(path).unlink(missing_ok=True)
    log = log or Path(products[0].path).parent / "gamma.log"
    _run([word.part if isinstance(word, Product) else word for word in words], log, threads)
    for product in products:
        found = os.stat(product.part).st_size if Path(product.part).is_file() else None
        if found is None or found == 0 or (product.nbytes and found != product.nbytes):
            expected = f"{product.nbytes} bytes" if product.nbytes else "a file"
            told = "nothing" if found is None else f"{found} bytes"
            msg = f"{line[0]} wrote {told} to {product.path}; expected {expected}; see {log}"
            raise GammaError(msg)
    for product in products:
        Path(product.part).replace(product.path)
        Path(f"{product.path}.json").write_text(json.dumps(note), encoding="utf-8")


def _is_made(product: Product, note: Mapping[str, Any]) -> bool:
    """Tell whether a product is whole and was made by the same program from the same files."""
    try:
        told = json.loads(Path(f"{product.path}.json").read_text(encoding="utf-8"))
        size = os.stat(product.path).st_size
    except (OSError, ValueError):
        return False
    return bool(told == note and (size == product.nbytes if product.nbytes else size))


def _run(words: Sequence[str], log: Path, threads: int) -> None:
    """Run a program to its end, and add what it says to a log.

    Raises
    ------
    GammaError
        It cannot be run, or ends with another code than 0; with the end of what it said.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    try:
        done = subprocess.run(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        msg = f"{words[0]} cannot be run: {error.strerror}; expected a program of GAMMA on the PATH"
        raise GammaError(msg) from error
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(words)}\n{done.stdout}\nexit code {done.returncode}\n")
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-LOG_TAIL:])
        msg = f"{' '.join(words)} ended with {_ending(done.returncode)}; expected exit code 0; see {log}:\n{tail}"
        raise GammaError(msg)


def _ending(returncode: int) -> str:
    """Return how a program ended: by which signal, or with which exit code."""
    if returncode >= 0:
        return f"exit code {returncode}"
    is_known = -returncode in signal.valid_signals()
    return f"signal {signal.Signals(-returncode).name if is_known else -returncode}"


# ----------------------------------------------------------------------------------------------------- the programs


def simulate_phase(*, reference_par: str, par: str, hgt: str, phase: str, shape: tuple[int, int], threads: int) -> str:
    """Let create_offset and phase_sim_orb write the phase that geometry makes; a task.

    Parameters
    ----------
    reference_par, par
        Headers of the reference and of another image.
    hgt
        Heights in the geometry of the reference, float.
    phase
        The file to write: phase of ``s_ref conj(s)``, float, radians.
    shape
        Lines and width.
    threads
        Of the program.

    Returns
    -------
    str
        `phase`.
    """
    off = Product(f"{phase}.off")
    made = Product(phase, shape[0] * shape[1] * 4)
    make(["create_offset", reference_par, par, off, "1", "1", "1", "0"], [off], [reference_par, par], threads=threads)
    make(
        ["phase_sim_orb", reference_par, par, off.path, hgt, made, reference_par, "-", "-", "1", "1"],
        [made],
        [reference_par, par, off.path, hgt],
        threads=threads,
    )
    return phase


def locate_pixels(
    *, rslc_par: str, hgt: str, dem_par: str, diff_par: str, folder: str, shape: tuple[int, int], threads: int
) -> list[str]:
    """Let mkgrid and pt2geo write where on Earth all pixels of an image are; a task.

    Parameters
    ----------
    rslc_par, hgt, dem_par, diff_par
        Header and heights of the image, of the map, and of their registration.
    folder
        Where to write.
    shape
        Lines and width.
    threads
        Of the programs.

    Returns
    -------
    list
        Files of the coordinates and of the heights.
    """
    nlines, width = shape
    grid = Product(str(Path(folder) / "pixels.plist"), 8 * nlines * width)
    coordinates = Product(str(Path(folder) / "pixels.lonlat"), 16 * nlines * width)
    heights = Product(str(Path(folder) / "pixels.hgt"), 4 * nlines * width)
    words: list[str | Product] = ["mkgrid", grid, str(width), str(nlines), "1", "1"]
    make(words, [grid], [], threads=threads)
    words = ["pt2geo", grid.path, "-", rslc_par, "-", hgt, dem_par, diff_par, "1", "1", "-", "-", coordinates, heights]
    make(words, [coordinates, heights], [grid.path, rslc_par, hgt, dem_par, diff_par], threads=threads)
    return [coordinates.path, heights.path]


def geocode_look_vectors(
    *,
    theta: str,
    phi: str,
    lt: str,
    map_shape: tuple[int, int],
    folder: str,
    shape: tuple[int, int],
    threads: int,
) -> list[str]:
    """Let geocode resample look vectors from map to radar geometry; a task.

    The orientation is resampled as cosine and sine: across its step from pi to -pi an average would point elsewhere.

    Parameters
    ----------
    theta, phi, lt, map_shape
        Elevation, orientation and lookup table, and their lines and width.
    folder
        Where to write.
    shape
        Lines and width of the radar image.
    threads
        Of the program.

    Returns
    -------
    list
        Files of elevation, cosine and sine of the orientation in radar geometry, float.
    """
    import numpy as np

    from moraine_load.rasters import read_block, write_block

    place, maps = Path(folder), [theta]
    place.mkdir(parents=True, exist_ok=True)
    functions: tuple[tuple[str, Callable[[Any], Any]], ...] = (("cosine", np.cos), ("sine", np.sin))
    for name, function in functions:
        path = place / f"map.{name}"
        for start in range(0, map_shape[0], 256):
            lines = (start, min(start + 256, map_shape[0]))
            write_block(path, function(read_block(phi, "FLOAT", map_shape[1], lines)), "FLOAT", map_shape[1], start)
        maps.append(str(path))
    made = []
    for source, name in zip(maps, ("theta", "cosine", "sine"), strict=True):
        product = Product(str(place / f"radar.{name}"), 4 * shape[0] * shape[1])
        words: list[str | Product] = ["geocode", lt, source, str(map_shape[1]), product, str(shape[1]), str(shape[0])]
        make(words, [product], [lt, source], threads=threads)
        made.append(product.path)
    return made


def baselines(images: Mapping[str, str], reference: str, folder: str) -> dict[str, float]:
    """Let base_calc write the perpendicular baselines of a stack, and read them.

    Parameters
    ----------
    images
        Files of the SLCs by date, their headers beside them.
    reference
        Date of the reference.
    folder
        Where to write.

    Returns
    -------
    dict
        m, by date.

    Raises
    ------
    GammaError
        The program failed, or its table cannot be read or lacks a date.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    table = place / "slc_tab"
    table.write_text("".join(f"{path} {path}.par\n" for path in images.values()), encoding="utf-8")
    bperp, itab = Product(str(place / "bperp")), Product(str(place / "itab"))
    headers = [f"{path}.par" for path in images.values()]
    make(["base_calc", str(table), f"{images[reference]}.par", bperp, itab, "-"], [bperp, itab], headers)
    return read_baselines(bperp.path, list(images), reference)


def read_baselines(path: str, dates: Sequence[str], reference: str) -> dict[str, float]:
    """Return the fourth column of base_calc's table by the date of its third one.

    Parameters
    ----------
    path
        Table with number, reference date, date and perpendicular baseline (m) in a row.
    dates
        Dates that must be there.
    reference
        The date they are relative to; its own baseline is 0.

    Returns
    -------
    dict
        m, by date.

    Raises
    ------
    GammaError
        A row cannot be read, or a date is missing or not relative to the reference.
    """
    found: dict[str, float] = {reference: 0.0}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            first, second, value = words[1], words[2], float(words[3])
        except (IndexError, ValueError):
            msg = f"{path}: line {number} is {line!r}; expected number, two dates and the perpendicular baseline"
            raise GammaError(msg) from None
        if reference == first:
            found[second] = value
        elif reference == second:
            found[first] = -value
    if missing := [date for date in dates if date not in found]:
        msg = f"{path} has no row of {reference} with {', '.join(missing)}; expected one for each date"
        raise GammaError(msg)
    return {date: 0.0 if date == reference else found[date] for date in dates}
