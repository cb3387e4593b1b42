# SPDX-License-Identifier: BSD-3-Clause
"""The web pages: adapted links, and the list of versions."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from tools import site_links, site_versions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def conf() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "conf.py"))


@pytest.mark.parametrize(
    ("page", "link", "adapted"),
    [
        ("index.md", "gallery/README.rst", "auto_gallery/index.rst"),
        ("index.md", "gallery/flow/README.rst", "auto_gallery/flow/index.rst"),
        ("howto/ultrasound.md", "../gallery/flow/plot_stl.py", "../auto_gallery/flow/plot_stl.rst"),
        ("examples.md", "../examples/basin", "../examples/basin/case.toml"),
        ("examples.md", "../examples/inversion-2d", "../examples/inversion-2d/invert.py"),
        ("howto/install.md", "../../README.md#extras", "../index.md"),
        ("howto/install.md", "geometry.md#openings", "geometry.md#openings"),
        ("howto/install.md", "https://docs.pyvista.org", "https://docs.pyvista.org"),
    ],
)
def test_links_of_the_repository_lead_to_web_pages(conf: dict[str, Any], page: str, link: str, adapted: str) -> None:
    assert conf["adapt_links"](f"[text]({link})", DOCS / page) == f"[text]({adapted})"


def test_the_pages_link_to_what_the_gallery_has(conf: dict[str, Any]) -> None:
    text = conf["adapt_links"]((DOCS / "index.md").read_text(encoding="utf-8"), DOCS / "index.md")
    assert {"flow", "blood", "ultrasound", "waves"} == set(re.findall(r"\(auto_gallery/(\w+)/index.rst\)", text))
    folders = {path.name for path in (DOCS / "gallery").iterdir() if path.is_dir()}
    assert [f"gallery/{name}" for name in ("flow", "blood", "ultrasound", "waves")] == conf["sphinx_gallery_conf"][
        "subsection_order"
    ]
    assert folders == {"flow", "blood", "ultrasound", "waves"}


def test_versions_are_listed_with_the_newest_release_first(tmp_path: Path) -> None:
    for name in ("0.2.0", "0.10.0", "dev"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("")
    (tmp_path / "empty").mkdir()
    assert site_versions.write(tmp_path) == ["0.10.0", "0.2.0", "dev"]
    assert json.loads((tmp_path / "versions.json").read_text()) == ["0.10.0", "0.2.0", "dev"]
    assert 'url=0.10.0/index.html"' in (tmp_path / "index.html").read_text()


def test_a_site_without_versions_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no version"):
        site_versions.write(tmp_path)


def test_broken_links_pictures_and_anchors_of_pages_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text('<h1 id="top">B</h1><a href="../a.html#none">a</a><a href="#top">top</a>')
    links = '<a href="sub/b.html#top">b</a><img src="missing.png"><a href="c.html">c</a>'
    (tmp_path / "a.html").write_text(links + '<a href="https://example.org/none.html">x</a>')
    assert site_links.broken(tmp_path) == ["a.html: missing.png", "a.html: c.html", "sub/b.html: ../a.html#none"]
    assert site_links.main(tmp_path) == 1
    (tmp_path / "a.html").write_text('<p id="none">a</p>')
    assert site_links.main(tmp_path) == 0


def test_every_sidebar_has_search_and_versions(conf: dict[str, Any]) -> None:
    (parts,) = conf["html_sidebars"].values()
    assert {"sidebar/search.html", "versions.html"} <= set(parts)
    assert "versions.js" in conf["html_js_files"] and (DOCS / "_static" / "versions.js").is_file()
