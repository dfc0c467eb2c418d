"""What the tests of pyramids share: importable helpers."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))


def pytest_terminal_summary(terminalreporter) -> None:
    """Say in one line that the viewer was not looked at, where no browser could be had."""
    from web_pages import NO_BROWSER

    # the reports, because tests may have run in other processes
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    for reason in (text.partition(NO_BROWSER)[2] for text in reasons if NO_BROWSER in text):
        terminalreporter.write_line(f"moraine view was NOT TESTED IN A BROWSER: {reason}", red=True, bold=True)
        break
