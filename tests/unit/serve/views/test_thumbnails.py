"""Small images of screenshots."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from waygraph.core.errors import NotFound
from waygraph.serve.views.thumbnails import HEIGHT, WIDTH, make_thumbnail


def jpeg(width: int, height: int, mode: str = "RGB") -> bytes:
    written = io.BytesIO()
    Image.new(mode, (width, height), 40 if mode == "L" else (200, 30, 30)).save(written, "JPEG")
    return written.getvalue()


@pytest.mark.parametrize("size", [(1280, 800), (1280, 9000), (390, 844), (1280, 5), (1, 1)])
def test_every_screenshot_becomes_an_image_of_one_size(size: tuple[int, int]) -> None:
    with Image.open(io.BytesIO(make_thumbnail(jpeg(*size)))) as made:
        assert (made.format, made.size) == ("JPEG", (WIDTH, HEIGHT))


def test_the_top_is_shown_and_the_rest_is_white() -> None:
    with Image.open(io.BytesIO(make_thumbnail(jpeg(800, 260)))) as made:
        top, bottom = made.getpixel((200, 40)), made.getpixel((200, 240))
    assert isinstance(top, tuple)
    assert isinstance(bottom, tuple)
    assert top[0] > 180
    assert top[1] < 60
    assert min(bottom) > 250


def test_grey_screenshots_are_accepted() -> None:
    assert make_thumbnail(jpeg(1280, 800, "L"))


@pytest.mark.parametrize("damaged", [b"", b"\xff\xd8\xff\xe0 not an image", jpeg(1280, 800)[:300]])
def test_a_screenshot_that_cannot_be_decoded_is_not_found(damaged: bytes) -> None:
    with pytest.raises(NotFound):
        make_thumbnail(damaged)
