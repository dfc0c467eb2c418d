"""transform: known points, and the formulas of web mercator in another form."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moraine_core import MoraineError, UsageError, Workers
from moraine_core.store import open_array
from moraine_core.testing.data import read_array, write_array
from moraine_raster.coordinates import transform as coordinates
from moraine_raster.coordinates import transform as transform_arrays
from moraine_raster.coordinates import transformer
from moraine_raster.transform import transform

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

HALF_THE_WORLD = 20037508.342789244


def run(folder: Path, x: Any, y: Any, **options: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Transform two arrays that are stored; an array may come with its chunks."""
    paths = {}
    for name, given in (("xx_in", x), ("yy_in", y)):
        values, chunks = given if isinstance(given, tuple) else (given, None)
        paths[name] = write_array(folder / f"{name}.zarr", np.asarray(values), chunks)
    outputs = {name: str(folder / f"{name}.zarr") for name in ("xx_out", "yy_out")}
    transform(**paths, **outputs, workers=Workers(n_workers=2), **options)
    return read_array(outputs["xx_out"]), read_array(outputs["yy_out"])


def test_a_point_of_the_phlegraean_fields_is_where_it_is_published(tmp_path: Path) -> None:
    e, n = run(tmp_path, [14.14], [40.82])
    assert abs(e[0] - 1574057.5998) < 1e-3
    assert abs(n[0] - 4985827.8482) < 1e-3


def test_half_the_world_is_pi_times_the_radius() -> None:
    """The square of web mercator ends at 85.0511287798 degrees."""
    e, n = transform_arrays([180.0, -180.0], [85.05112877980659, 0.0], epsg_in=4326, epsg_out=3857)
    np.testing.assert_allclose(e, [HALF_THE_WORLD, -HALF_THE_WORLD], rtol=1e-15)
    np.testing.assert_allclose(n, [HALF_THE_WORLD, 0.0], rtol=1e-14, atol=1e-9)


def test_northing_is_the_integral_of_the_secant() -> None:
    """What makes the projection conformal, integrated by Simpson's rule."""
    lat = np.linspace(0, np.radians(60), 2001)
    secant, step = 1 / np.cos(lat), np.diff(lat)[0]
    integral = step / 3 * (secant[0] + 4 * secant[1:-1:2].sum() + 2 * secant[2:-1:2].sum() + secant[-1])
    _, n = transform_arrays([0.0], [60.0], epsg_in=4326, epsg_out=3857)
    assert abs(n[0] - 6378137.0 * integral) < 1e-5


def test_there_and_back_is_where_it_began() -> None:
    random = np.random.default_rng(1)
    lon, lat = random.uniform(-180, 180, 500), random.uniform(-89.9, 89.9, 500)
    e, n = transform_arrays(lon, lat, epsg_in=4326, epsg_out=3857)
    back = transform_arrays(e, n, epsg_in=3857, epsg_out=4326)
    np.testing.assert_allclose(back[0], lon, rtol=0, atol=1e-12)
    np.testing.assert_allclose(back[1], lat, rtol=0, atol=1e-12)


def test_float32_coordinates_become_float64_meters_without_steps(tmp_path: Path) -> None:
    """The reference program stored float32, whose steps are 0.125 to 2 m there."""
    lon, lat = np.float32([14.14, 14.1400001]), np.float32([40.82, 40.8200001])
    e, n = run(tmp_path, lon, lat)
    assert e.dtype == n.dtype == np.float64
    np.testing.assert_allclose(e, lon.astype(np.float64) * HALF_THE_WORLD / 180, rtol=1e-14)


def test_a_missing_coordinate_makes_both_missing(tmp_path: Path) -> None:
    e, n = run(tmp_path, [np.nan, 1.0, 2.0], [3.0, np.nan, 4.0])
    assert np.isnan(e).tolist() == np.isnan(n).tolist() == [True, True, False]


def test_the_poles_are_missing_and_beyond_the_square_is_not_clipped() -> None:
    e, n = transform_arrays([5.0, 5.0, 5.0, 5.0], [90.0, -90.0, 95.0, 86.0], epsg_in=4326, epsg_out=3857)
    assert np.isnan(e).tolist() == np.isnan(n).tolist() == [True, True, True, False]
    assert n[3] > HALF_THE_WORLD


def test_northing_grows_to_the_north_and_easting_to_the_east(tmp_path: Path) -> None:
    """The reference program's help calls y the south."""
    e, n = run(tmp_path, [10.0, 11.0], [-1.0, 1.0])
    assert e[1] > e[0] > 0
    assert n[1] > 0 > n[0]


def test_the_codes_that_are_given_are_those_that_count(tmp_path: Path) -> None:
    """The reference program takes them and always goes to web mercator."""
    lon, lat = run(tmp_path, [HALF_THE_WORLD / 2, 0.0], [0.0, -HALF_THE_WORLD], epsg_in=3857, epsg_out=4326)
    np.testing.assert_allclose(lon, [90, 0], atol=1e-12)
    np.testing.assert_allclose(lat, [0, -85.05112877980659], atol=1e-12)


def test_infinite_coordinates_are_missing(tmp_path: Path) -> None:
    e, n = run(tmp_path, [np.inf, 1.0, -np.inf, 1.0], [2.0, np.inf, 3.0, 4.0])
    assert np.isnan(e).tolist() == np.isnan(n).tolist() == [True, True, True, False]


@pytest.mark.parametrize("codes", [(4326, 3857), (3857, 4326), (4326, 32633)])
@pytest.mark.parametrize("shape", [(0,), (0, 4), (1,), (1, 9), (9, 1)])
def test_clouds_without_points_and_rasters_of_one_line_are_transformed(
    tmp_path: Path, codes: tuple[int, int], shape: tuple[int, ...]
) -> None:
    x, y = run(tmp_path, np.full(shape, 15.0), np.full(shape, np.nan), epsg_in=codes[0], epsg_out=codes[1])
    assert x.shape == y.shape == shape
    assert np.isnan(x).all()
    assert np.isnan(y).all()


@pytest.mark.parametrize("dtype", ["int16", "uint8", "float32", ">f8"])
def test_coordinates_of_any_real_dtype_become_float64(tmp_path: Path, dtype: str) -> None:
    e, n = run(tmp_path, np.array([90, 0], dtype), np.array([0, 45], dtype))
    np.testing.assert_allclose(e, [HALF_THE_WORLD / 2, 0], rtol=1e-15)
    np.testing.assert_allclose(n, [0, 6378137 * np.log(1 + np.sqrt(2))], rtol=1e-14, atol=1e-9)


def test_scatterers_of_amsterdam_are_where_pyproj_puts_them(
    tmp_path: Path, scatterers: tuple[NDArray[Any], NDArray[Any]]
) -> None:
    lon, lat = scatterers
    e, n = run(tmp_path, (lon, (600,)), (lat, (900,)))
    np.testing.assert_allclose((e, n), transformer(4326, 3857).transform(lon, lat), rtol=0, atol=1e-6)
    assert np.ptp(e) < 1000, "a few blocks of houses"
    assert np.ptp(n) < 1000
    back = transform_arrays(e, n, epsg_in=3857, epsg_out=4326)
    np.testing.assert_allclose(back, (lon, lat), rtol=0, atol=1e-12)


def test_equal_codes_change_nothing(tmp_path: Path) -> None:
    x, y = run(tmp_path, [1.0, np.nan], [2.0, 3.0], epsg_in=32633, epsg_out=32633)
    np.testing.assert_array_equal(x, [1.0, np.nan])
    np.testing.assert_array_equal(y, [2.0, np.nan])


@pytest.mark.parametrize("shape", [(7,), (5, 6), (3, 4, 2)])
def test_shape_and_chunks_are_those_of_x(tmp_path: Path, shape: tuple[int, ...]) -> None:
    chunks = tuple(max(n // 2, 1) for n in shape)
    values = np.linspace(-80, 80, int(np.prod(shape))).reshape(shape)
    e, _ = run(tmp_path, (values, chunks), (values, shape))
    assert e.shape == shape
    assert open_array(tmp_path / "yy_out.zarr").chunks == chunks
    np.testing.assert_allclose(e, values * HALF_THE_WORLD / 180)


def test_arrays_of_different_shapes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"yy_in .* has shape \(3,\); expected \(2,\), as xx_in"):
        run(tmp_path, [1.0, 2.0], [1.0, 2.0, 3.0])
    assert not (tmp_path / "xx_out.zarr").exists()


def test_complex_coordinates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MoraineError, match="complex64"):
        run(tmp_path, np.ones(2, np.complex64), np.ones(2))


def test_other_codes_name_the_library_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyproj", None)  # as where it is not installed
    with pytest.raises(UsageError, match=r"EPSG:4326 to EPSG:32633 pyproj is needed"):
        run(tmp_path, [14.0], [40.0], epsg_out=32633)


def test_the_closed_formulas_agree_with_pyproj() -> None:
    lon, lat = np.meshgrid(np.linspace(-179, 179, 40), np.linspace(-84, 84, 30))
    expected = transformer(4326, 3857).transform(lon, lat)
    np.testing.assert_allclose(coordinates(lon, lat, epsg_in=4326, epsg_out=3857), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(coordinates(*expected, epsg_in=3857, epsg_out=4326), (lon, lat), rtol=0, atol=1e-10)


def test_other_codes_go_by_pyproj_with_x_first(tmp_path: Path) -> None:
    """The central meridian of a UTM zone has easting 500 km."""
    x, y = run(tmp_path, [15.0], [0.0], epsg_out=32633)
    np.testing.assert_allclose([x[0], y[0]], [500000.0, 0.0], atol=1e-6)
    with pytest.raises(UsageError, match="epsg_out 999999"):
        run(tmp_path, [15.0], [0.0], epsg_out=999999)
