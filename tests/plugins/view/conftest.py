"""What the tests of pyramids share: importable helpers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "helpers"))


@pytest.fixture(scope="module")
def browser():
    """A running browser."""
    from web_pages import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def url(browser, site):
    """Address of the module's site, served; the browser is asked for first, so that without one nothing is made."""
    from web_pages import serving

    with serving(site) as url:
        yield url


@pytest.fixture
def view(browser, url):
    """Open pages of the viewer; in the end, see that none has asked another origin for anything."""
    from web_pages import Viewer

    opened = []

    def open_it(fragment="", at=url, **options):
        opened.append(Viewer(browser, at, fragment, **options))
        return opened[-1]

    yield open_it
    for viewer in opened:
        viewer.close()
        place = viewer.page.url.split("#")[0].split("?")[0]
        assert all(request.startswith((place, "blob:", "data:")) for request in viewer.requests)


def pytest_terminal_summary(terminalreporter) -> None:
    """Say in one line that the viewer was not looked at, where no browser could be had."""
    from web_pages import NO_BROWSER

    # the reports, because tests may have run in other processes
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    for reason in (text.partition(NO_BROWSER)[2] for text in reasons if NO_BROWSER in text):
        terminalreporter.write_line(f"moraine view was NOT TESTED IN A BROWSER: {reason}", red=True, bold=True)
        break
