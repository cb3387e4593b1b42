# SPDX-License-Identifier: BSD-3-Clause
"""The gallery of the examples: current, with small pictures."""

from __future__ import annotations

import io

from PIL import Image
from tools import gallery

from seiche.case.new import examples


def test_the_page_lists_every_example_as_it_is() -> None:
    text = gallery.PAGE.read_text(encoding="utf-8")
    assert text == gallery.page(), "run python -m tools.gallery"
    assert all(f"(../examples/{example.name})" in text and example.line in text for example in examples())


def test_figures_are_small_and_belong_to_examples() -> None:
    pictures = list(gallery.PICTURES.glob("*.png"))
    names = {example.name for example in examples()}
    assert pictures and {path.stem for path in pictures} <= names
    assert sum(path.stat().st_size for path in pictures) < 1024 * 1024
    for path in pictures:
        assert path.stat().st_size <= gallery.LARGEST, path.name
        assert Image.open(path).width == gallery.WIDTH


def test_an_image_is_reduced_to_the_width_of_the_gallery() -> None:
    stream = io.BytesIO()
    Image.new("RGB", (960, 480), "red").save(stream, format="png")
    small = Image.open(io.BytesIO(gallery.reduced(stream.getvalue())))
    assert small.size == (480, 240) and small.convert("RGB").getpixel((5, 5)) == (255, 0, 0)
