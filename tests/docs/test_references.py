"""What a page names is there: links, headings, paths, make targets, words that are not ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rollview.core.states import SourceState
from tests.docs.pages import ROOT, all_pages, prose, read_blocks

PAGES = pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PATH = re.compile(r"`((?:src|tests|docs|demo|bench|\.ci)(?:/[\w.\-]+)+)`")
_MAKE = re.compile(r"(?:`|^)make ([a-z]+)(?:`|$)", re.MULTILINE)
_OTHERS_WORDS = ("upstream", "bronze", "watermark", "checkpointing", "blazing", "seamless", "cutting-edge", "leverage")


@PAGES
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in _LINK.findall(prose(page)) if not link.startswith("https://") and not _leads(page, link)]
    assert not broken


@PAGES
def test_paths_exist(page: Path) -> None:
    assert not [path for path in _PATH.findall(page.read_text(encoding="utf-8")) if not (ROOT / path).exists()]


@PAGES
def test_make_targets_exist(page: Path) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = _MAKE.findall("\n".join([prose(page), *(block.text for block in read_blocks(page) if block.kind == "sh")]))
    assert not set(named) - set(targets)


@PAGES
def test_words_are_ours(page: Path) -> None:
    text = prose(page).lower()
    assert not [word for word in _OTHERS_WORDS if word in text]


def test_papers_are_cited_by_author_and_title() -> None:
    cites = re.compile(r"\b[Ss]eed 00\d|\(00[0-4] |\b00[0-4] (?:§|/|\[|Eq|Def|Fig|Theorem)")
    texts = [path for folder in ("src", "docs") for path in (ROOT / folder).rglob("*.[pm][yd]")]
    assert not [path for path in texts if cites.search(path.read_text(encoding="utf-8"))]


def test_the_readme_fits() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_every_package_has_a_page() -> None:
    packages = {path.parent.name for path in (ROOT / "src" / "rollview").glob("*/__init__.py")}
    assert packages == {path.stem for path in (ROOT / "docs" / "internals").glob("*.md")} - {"architecture"}


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(prose(index))}
    assert not {page for page in all_pages() if page.parent != ROOT} - linked - {index}


def _leads(page: Path, link: str) -> bool:
    path, _, heading = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return False
    return not heading or heading in {_anchor(one) for one in _HEADING.findall(prose(target))}


def _anchor(heading: str) -> str:
    """As GitHub spells it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_states_of_a_source_are_all_explained() -> None:
    page = (ROOT / "docs" / "internals" / "capture.md").read_text(encoding="utf-8")
    table = page.partition("## States")[2].partition("\nA file of the warehouse")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(SourceState)
