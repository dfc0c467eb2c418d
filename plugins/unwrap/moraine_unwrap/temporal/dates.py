"""Dates of images, and what they say about the costs of pairs in time; no numpy is loaded."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MEDIAN_COST = 4
"""Temporal cost of a pair of the median time span."""

MOST_COST = 20
"""Largest temporal cost; the smallest is 1."""


def read_dates(path: str) -> list[str]:
    """Return the dates of a TOML file with ``dates = ["YYYYMMDD", ...]``.

    Raises
    ------
    ValueError
        It cannot be read, or has no such list.
    """
    try:
        dates = tomllib.loads(Path(path).read_text(encoding="utf-8")).get("dates")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"dates {path} cannot be read as TOML: {error}") from None
    if not isinstance(dates, list):
        raise ValueError(f'dates {path} has no list of dates; expected dates = ["YYYYMMDD", ...]')  # noqa: TRY004 - of a file
    return [str(date) for date in dates]


def length_costs(dates: Sequence[str], pairs: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Costs of cycles in time by length: the longer a pair spans, the cheaper it is to change.

    ``round(4 median(span) / span)``, at least 1 and at most 20.

    Parameters
    ----------
    dates
        Dates of all images, YYYYMMDD, in any order.
    pairs
        Image pairs, ``(n_pairs, 2)``.

    Returns
    -------
    tuple of int
        Cost of one cycle for every pair, unitless.

    Raises
    ------
    ValueError
        A date is none, or the two of a pair are the same.

    Examples
    --------
    >>> length_costs(["20200101", "20200113", "20200125"], [(0, 1), (1, 2), (0, 2)])
    (4, 4, 2)
    """
    days = [_day(date) for date in dates]
    spans = [abs(days[sec] - days[ref]) for ref, sec in pairs]
    if 0 in spans:
        ref, sec = pairs[spans.index(0)]
        raise ValueError(f"images {ref} and {sec} of a pair both have the date {dates[ref]}; expected two dates")
    typical = median(spans) if spans else 0
    return tuple(min(max(round(MEDIAN_COST * typical / span), 1), MOST_COST) for span in spans)


def _day(date: str) -> int:
    try:
        if len(date) == 8 and date.isascii() and date.isdigit():
            return datetime.date(int(date[:4]), int(date[4:6]), int(date[6:])).toordinal()
    except ValueError:
        pass
    raise ValueError(f"dates have {date!r}; expected YYYYMMDD")
