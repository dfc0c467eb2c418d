"""Parameter files: what is read is what is there, and what is written is read again."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from moraine_core.errors import StoreNotFoundError
from moraine_load import examples
from moraine_load.par import (
    DemPar,
    DiffPar,
    ParError,
    read_dem_par,
    read_diff_par,
    read_entries,
    read_slc_par,
    write_par,
)

SLC = """Gamma Interferometric SAR Processor (ISP) - Image Parameter File

title:     a scene with width: 7 and range_samples: 3
sensor:    S1A IW IW1 VV
date:      2018 01 06
range_samples:                 68116
azimuth_lines:                  9083
image_format:               FCOMPLEX
azimuth_line_time:     2.0555563e-03   s
doppler_polynomial:         28.89379 -1.70466e-04  1.00457e-09  0.00000e+00  Hz     Hz/m     Hz/m^2     Hz/m^3
number_of_state_vectors:                    2
time_of_first_state_vector:       2399.144213   s
state_vector_interval:              10.000000   s
state_vector_position_1:  -1442639.9545   -6604806.9075    2082951.4020   m   m   m
state_vector_velocity_1:    -1104.60340      2489.17836      7092.92324   m/s m/s m/s
state_vector_position_2:  -1453586.5506   -6579537.2326    2153761.6359   m   m   m
state_vector_velocity_2:    -1084.67698      2564.70460      7068.99018   m/s m/s m/s
"""


@pytest.fixture
def written(tmp_path):
    """Return what writes a text as a parameter file."""

    def write(text):
        file = tmp_path / "image.par"
        file.write_text(text, encoding="utf-8")
        return file

    return write


def test_values_are_those_of_the_key_whatever_the_title_says(written):
    """A33: a title line that contains a key does no harm."""
    par = read_slc_par(written(SLC))
    assert (par.range_samples, par.azimuth_lines, par.date) == (68116, 9083, "20180106")
    assert par.title == "a scene with width: 7 and range_samples: 3"
    assert par.azimuth_line_time == 2.0555563e-03
    assert par.orbit.positions[1] == (-1453586.5506, -6579537.2326, 2153761.6359)
    assert par.orbit.last_time == 2409.144213
    assert par.others["doppler_polynomial"].startswith("28.89379 -1.70466e-04")


def test_what_is_written_is_read_again_to_the_last_bit(tmp_path, written):
    third = 1 / 3
    pars = [
        (replace(read_slc_par(written(SLC)), start_time=third, heading=-third), read_slc_par),
        (examples.image_par((7, 9), "20200229"), read_slc_par),
        (DemPar(projection="EQA", width=3, nlines=4, corner_lat=third, post_lat=-1e-5 * third), read_dem_par),
        (DiffPar(range_samp_1=3, range_offset_polynomial=(third, 1e-20, 0.0)), read_diff_par),
    ]
    for number, (par, read) in enumerate(pars):
        file = tmp_path / f"{number}.par"
        write_par(file, par)
        assert read(file) == par


def test_a_reader_that_takes_the_second_word_of_a_line_reads_what_is_written(tmp_path):
    """The way of scripts, and of programs that scan a line for a key and a number."""
    file = tmp_path / "image.par"
    par = examples.image_par((7, 9), "20200229")
    write_par(file, replace(par, title="nothing"))
    words = {line.split()[0]: line.split()[1:] for line in file.read_text().splitlines() if ":" in line}
    assert int(words["range_samples:"][0]) == 9
    assert float(words["near_range_slc:"][0]) == par.near_range_slc
    assert [int(word) for word in words["date:"]] == [2020, 2, 29]
    assert words["near_range_slc:"][1:] == ["m"]
    assert tuple(map(float, words["state_vector_position_3:"][:3])) == par.orbit.positions[2]


def test_a_short_form_has_none_for_what_it_leaves_out(written):
    par = read_slc_par(written("# made by hand: no title\nradar_frequency: 5.3e9 Hz\n"))
    assert (par.radar_frequency, par.range_samples, par.orbit, par.image_format) == (5.3e9, None, None, "")
    with pytest.raises(ParError, match=r"image\.par: range_samples, image_format not found; expected a line"):
        par.need("range_samples", "image_format", "radar_frequency")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("range_samples: many\n", "range_samples is 'many'; expected a whole number"),
        ("range_samples: 7.5\n", "range_samples is '7.5'; expected a whole number"),
        ("heading:\n", "heading is ''; expected a number"),
        ("date: 2018 13 1\n", "date is '2018 13 1'; expected year month day"),
        ("range_samples: 7\nrange_samples: 8\n", "range_samples is both '7' and '8'; expected one value"),
        ("no colon\n", "has no line 'key: value'; expected a GAMMA parameter file"),
        (SLC.replace("velocity_2", "velocity_9"), "state_vector_velocity_2 not found"),
        (SLC.replace("vectors:                    2", "vectors: 1"), "is 1, but there is state_vector_position_2"),
        (SLC.replace("7068.99018   m/s", "m/s"), "state_vector_velocity_2 has 2 numbers; expected x, y and z"),
        (SLC.replace("state_vector_interval", "interval"), "state_vector_interval not found"),
    ],
)
def test_what_cannot_be_read_is_told_with_file_key_found_and_expected(written, text, message):
    file = written(text)
    with pytest.raises(ParError, match=f"{re.escape(str(file))}.*{re.escape(message)}"):
        read_slc_par(file)


def test_a_missing_or_binary_file_is_named(tmp_path):
    with pytest.raises(StoreNotFoundError, match=r"no\.par does not exist; expected a GAMMA parameter file"):
        read_slc_par(tmp_path / "no.par")
    (tmp_path / "binary.par").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParError, match=r"binary\.par is not text"):
        read_entries(tmp_path / "binary.par")
