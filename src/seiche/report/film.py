# SPDX-License-Identifier: BSD-3-Clause
"""Films of a sequence of pictures: an animated GIF, or an MP4 by the program ffmpeg."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seiche.errors import CaseError
from seiche.io.files import replacing
from seiche.report.page_size import current_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

#: File suffixes of films.
SUFFIXES = (".gif", ".mp4")
#: Maximum number of pixels along a side of a film.
MAX_SIDE = 4096


def film_frame(figure: Figure, width: int) -> Image:
    """Return a figure as a picture with 128 colours, `width` pixels wide or with the resolution of `page`.

    Raises:
        CaseError: a side would have more than MAX_SIDE pixels.
    """
    from PIL import Image as Pillow

    sides = figure.get_size_inches()
    dpi = current_page().dpi or width / sides[0]
    if max(sides) * dpi > MAX_SIDE:
        raise CaseError(f"a film of {sides[0] * dpi:.0f} x {sides[1] * dpi:.0f} pixels: at most {MAX_SIDE} per side")
    figure.set_dpi(dpi)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    return Pillow.fromarray(pixels[..., :3].copy()).quantize(128, dither=Pillow.Dither.NONE)


def write_film(path: str | os.PathLike[str], frames: Iterable[Image], frame_time: int) -> None:
    """Write pictures of one size, each shown for `frame_time` ms; replace an existing file when complete.

    Raises:
        CaseError: an .mp4 without the program ffmpeg, before the first picture is drawn.
        OSError: the film cannot be written.
    """
    encoder = ffmpeg(path) if Path(path).suffix.lower() == ".mp4" else None
    remaining = iter(frames)
    first = next(remaining)
    with replacing(path) as temporary:
        if encoder is None:
            first.save(temporary, format="GIF", save_all=True, append_images=remaining, duration=frame_time, loop=0)
            return
        width, height = first.size
        command = [encoder, "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"]
        command += ["-s", f"{width}x{height}", "-r", f"{1000 / frame_time:g}", "-i", "-"]
        # Players require even sizes and this pixel format.
        command += ["-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2", "-pix_fmt", "yuv420p", "-f", "mp4", os.fspath(temporary)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stderr is not None
            try:
                for picture in chain([first], remaining):
                    process.stdin.write(picture.convert("RGB").tobytes())
                process.stdin.close()
            except BrokenPipeError:
                pass  # the reason is in its error output
            reason = process.stderr.read().decode(errors="replace").strip()
        if process.returncode != 0:
            raise OSError(0, f"ffmpeg: {reason.splitlines()[-1] if reason else process.returncode}", os.fspath(path))


def ffmpeg(path: str | os.PathLike[str]) -> str:
    """Return the program for .mp4 films, of the package imageio-ffmpeg or on the search path.

    Raises:
        CaseError: it is not installed.
    """
    try:
        import imageio_ffmpeg

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        program = shutil.which("ffmpeg")
    if program is None:
        raise CaseError(
            f"{os.fspath(path)}: an .mp4 film requires ffmpeg or the package imageio-ffmpeg; or choose .gif"
        )
    return program
