"""Serial numba kernels, and what calls them with arrays; `kernels` documents them.

Complex samples come to the kernels as float32 arrays of alternating real and imaginary parts. Loops write to few arrays
each and take no sums, so that they run in vector registers; a tile of them stays in the cache from one to the next.
"""

from __future__ import annotations

from math import prod

import numba as nb
import numpy as np

TINY = np.float32(1e-30)
"""An amplitude below this is a missing sample: zero is GAMMA's no-data, denormals are its shadow."""

LARGEST = np.float32(np.finfo(np.float32).max)

TILE = 512
"""Pixels that are worked on together."""

_jit = nb.njit(nogil=True, cache=True, error_model="numpy")


@_jit
def _scale(re, im):
    """Return a power of two, and its inverse, that keeps the squares of a sample normal numbers in float32."""
    larger = max(abs(re), abs(im))
    scale = np.float32(2.0**-80) if larger > np.float32(1e15) else np.float32(1)
    scale = np.float32(2.0**60) if larger < np.float32(1e-12) else scale
    return scale, np.float32(1) / scale


@_jit
def _amplitudes(parts, out):
    """Write the amplitudes of samples; 0 where they are missing."""
    for i in range(out.size):
        scale, inverse = _scale(parts[2 * i], parts[2 * i + 1])
        re, im = parts[2 * i] * scale, parts[2 * i + 1] * scale
        amplitude = np.sqrt(re * re + im * im) * inverse
        out[i] = amplitude if (amplitude >= TINY) & (amplitude <= LARGEST) else np.float32(0)


@_jit
def _set_shift(amplitude, gain, shift):
    """Set the shift of pixels that have none yet, which is 0; return how many are left."""
    left = 0
    for i in range(amplitude.size):
        shift[i] = np.float64(amplitude[i]) * gain if shift[i] == 0 else shift[i]
    for i in range(amplitude.size):
        left += shift[i] == 0
    return left


@_jit
def _add(amplitude, gain, count, shift, total, squares):
    """Add amplitudes to the running count of their pixels, and their deviations from the shift to sums and squares."""
    for i in range(amplitude.size):
        count[i] += amplitude[i] > np.float32(0)
    for i in range(amplitude.size):
        deviation = np.float64(amplitude[i]) * gain - shift[i] if amplitude[i] > np.float32(0) else 0.0
        total[i] += deviation
        squares[i] += deviation * deviation


@_jit
def _dispersion(count, shift, total, squares, fewest, out):
    """Turn the sums into the dispersion index, nan where too few images are valid."""
    for i in range(out.size):
        offset = total[i] / count[i]
        variance = max(squares[i] / count[i] - offset * offset, 0.0)
        out[i] = np.sqrt(variance) / (shift[i] + offset) if count[i] >= fewest else np.nan


@_jit
def _add_image(parts, gain, count, shift, total, squares):
    """Add one image to the running sums of each pixel."""
    amplitude = np.empty(TILE, np.float32)
    for first in range(0, count.size, TILE):
        last = min(first + TILE, count.size)
        tile = amplitude[: last - first]
        _amplitudes(parts[2 * first : 2 * last], tile)
        pixels = slice(first, last)
        _set_shift(tile, gain, shift[pixels])
        _add(tile, gain, count[pixels], shift[pixels], total[pixels], squares[pixels])


@_jit
def _amp_disp_of_pixels(parts, n_images, fewest, out):
    """Write the dispersion index of pixels whose images lie side by side; every bit is as with `_add_image`."""
    amplitude, image = np.empty(TILE * n_images, np.float32), np.empty(TILE, np.float32)
    count, sums = np.empty(TILE, np.int32), np.empty((3, TILE), np.float64)
    for first in range(0, out.size, TILE):
        n = min(TILE, out.size - first)
        shift, total, squares = sums[0, :n], sums[1, :n], sums[2, :n]
        _amplitudes(parts[2 * first * n_images : 2 * (first + n) * n_images], amplitude[: n * n_images])
        count[:], sums[:] = 0, 0
        left = n
        for number in range(n_images):
            for i in range(n):
                image[i] = amplitude[i * n_images + number]
            if left:
                left = _set_shift(image[:n], 1.0, shift)
            _add(image[:n], 1.0, count[:n], shift, total, squares)
        _dispersion(count[:n], shift, total, squares, fewest, out[first : first + n])


@_jit
def amplitude_sum(image):
    """Return the sum of the valid amplitudes of an image in float64, and how many there are."""
    total, lost, count = 0.0, 0.0, 0
    for i in range(image.size):
        re, im = np.float64(image[i].real), np.float64(image[i].imag)
        amplitude = np.sqrt(re * re + im * im)
        if np.isfinite(amplitude) and amplitude >= TINY:
            # Kahan: what rounding loses is carried on, so the sum hardly depends on how an image is cut into blocks
            term = amplitude - lost
            larger = total + term
            lost = (larger - total) - term
            total = larger
            count += 1
    return total, count


@_jit
def _phasors(parts, out):
    """Write samples with modulus 1; 0 where they are missing."""
    for i in range(out.size // 2):
        scale, inverse = _scale(parts[2 * i], parts[2 * i + 1])
        re, im = parts[2 * i] * scale, parts[2 * i + 1] * scale
        modulus = np.sqrt(re * re + im * im)
        is_valid = (modulus * inverse >= TINY) & (modulus * inverse <= LARGEST)
        out[2 * i] = re / modulus if is_valid else np.float32(0)
        out[2 * i + 1] = im / modulus if is_valid else np.float32(0)


@_jit
def _add_residuals(u, ref, sec, sums, count):
    """Add ``u conj(ref) sec`` to the sums of its pixels, and count where no phasor is 0."""
    for i in range(count.size):
        re = u[2 * i] * ref[2 * i] + u[2 * i + 1] * ref[2 * i + 1]
        im = u[2 * i + 1] * ref[2 * i] - u[2 * i] * ref[2 * i + 1]
        x = re * sec[2 * i] - im * sec[2 * i + 1]
        y = re * sec[2 * i + 1] + im * sec[2 * i]
        count[i] += (x * x + y * y) > np.float32(0.5)
        sums[2 * i] += x
        sums[2 * i + 1] += y


@_jit
def _add_pair(intf, ref, sec, sums, count):
    """Add the residual phasors of one pair to the sums of each pixel; `ref` and `sec` are what `_phasors` gives."""
    u = np.empty(2 * TILE, np.float32)
    for first in range(0, count.size, TILE):
        last = min(first + TILE, count.size)
        tile, part = u[: 2 * (last - first)], slice(2 * first, 2 * last)
        _phasors(intf[part], tile)
        _add_residuals(tile, ref[part], sec[part], sums[part], count[first:last])


@_jit
def _coherence(sums, count, fewest, out):
    """Turn the sums into temporal coherence, nan where too few pairs are valid."""
    for i in range(out.size):
        modulus = np.sqrt(sums[2 * i] * sums[2 * i] + sums[2 * i + 1] * sums[2 * i + 1])
        out[i] = min(modulus / count[i], 1.0) if count[i] >= fewest else np.nan  # rounding may pass 1


def amp_disp(rslc, fewest):
    """Return the dispersion index of a complex64 stack ``(..., nimages)``."""
    n_images = rslc.shape[-1]
    if rslc.strides[-1] != rslc.itemsize:  # images one after another, for instance
        state = Amplitudes(rslc.shape[:-1])
        for image in range(n_images):
            state.add(rslc[..., image], 1.0)
        return state.dispersion(fewest)
    out = np.empty(rslc.shape[:-1], np.float32)
    _amp_disp_of_pixels(_parts(rslc), n_images, fewest, out.reshape(-1))
    return out


class Amplitudes:
    """Running count of every pixel's amplitudes, the first of them as shift, and sums of deviations from it."""

    def __init__(self, shape):
        self._shape = shape
        self._count = np.zeros(prod(shape), np.int32)
        self._sums = np.zeros((3, prod(shape)))

    def add(self, plane, gain):
        """Add one image, its amplitudes times a factor."""
        shift, total, squares = self._sums
        _add_image(_parts(plane), gain, self._count, shift, total, squares)

    def dispersion(self, fewest):
        """Return the dispersion index; nan where fewer images are valid."""
        out = np.empty(self._shape, np.float32)
        shift, total, squares = self._sums
        _dispersion(self._count, shift, total, squares, fewest, out.reshape(-1))
        return out


class Residuals:
    """Running sum and count of the residual phasors of every pixel."""

    def __init__(self, shape):
        self._sums, self._count = np.zeros((*shape, 2)), np.zeros(shape, np.int32)

    @staticmethod
    def phasors(plane):
        """Return an image as `add` takes it."""
        out = np.empty(2 * plane.size, np.float32)
        _phasors(_parts(plane), out)
        return out

    def add(self, intf, ref, sec):
        """Add one interferogram, given the phasors of its two images."""
        _add_pair(_parts(intf), ref, sec, self._sums.reshape(-1), self._count.reshape(-1))

    def coherence(self, fewest):
        """Return the temporal coherence; nan where fewer pairs are valid."""
        out = np.empty(self._count.shape, np.float32)
        _coherence(self._sums.reshape(-1), self._count.reshape(-1), fewest, out.reshape(-1))
        return out


def _parts(samples):
    """Return complex samples as alternating real and imaginary parts, one after another."""
    return np.ascontiguousarray(samples, np.complex64).reshape(-1).view(np.float32)
