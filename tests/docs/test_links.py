"""Links between pages of the documentation lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the names under which the headings of a page can be linked to."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_relative_links_lead_to_files_and_headings_that_exist():
    broken = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            if re.match(r"\w+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def test_every_page_can_be_reached_from_the_readme():
    reached, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop().resolve()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)\s#]+)", prose(page))
        todo += [page.parent / link for link in links if not re.match(r"\w+:", link)]
    left_out = {page.resolve() for page in PAGES if page.name != "CHANGELOG.md"} - reached
    assert sorted(str(page.relative_to(ROOT)) for page in left_out) == []
