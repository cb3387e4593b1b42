# SPDX-License-Identifier: BSD-3-Clause
"""Pictures one after the other as a film: an animated GIF, or MP4 through the program ffmpeg where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from seiche.errors import CaseError
from seiche.io.files import replacing

if TYPE_CHECKING:
    from PIL.Image import Image

#: Endings of films.
ENDINGS = (".gif", ".mp4")


def write_film(path: str | os.PathLike[str], frames: Iterable[Image], frame_time: int) -> None:
    """Write pictures of one size, each shown for `frame_time` ms; the file is replaced only by a complete one.

    Raises:
        CaseError: a film .mp4 without the program ffmpeg; said before the first picture is asked for.
        OSError: the film cannot be written.
    """
    encoder = ffmpeg(path) if Path(path).suffix.lower() == ".mp4" else None
    rest = iter(frames)
    first = next(rest)
    with replacing(path) as part:
        if encoder is None:
            first.save(part, format="GIF", save_all=True, append_images=rest, duration=frame_time, loop=0)
            return
        width, height = first.size
        command = [encoder, "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"]
        command += ["-s", f"{width}x{height}", "-r", f"{1000 / frame_time:g}", "-i", "-"]
        # Players want even sizes and this format of pixels.
        command += ["-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2", "-pix_fmt", "yuv420p", "-f", "mp4", os.fspath(part)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stderr is not None
            try:
                for picture in chain([first], rest):
                    process.stdin.write(picture.convert("RGB").tobytes())
                process.stdin.close()
            except BrokenPipeError:
                pass  # it has said why
            reason = process.stderr.read().decode(errors="replace").strip()
        if process.returncode != 0:
            raise OSError(0, f"ffmpeg: {reason.splitlines()[-1] if reason else process.returncode}", os.fspath(path))


def ffmpeg(path: str | os.PathLike[str]) -> str:
    """Return the program that makes a film .mp4: that of the package imageio-ffmpeg, or the one on the path.

    Raises:
        CaseError: there is none.
    """
    try:
        import imageio_ffmpeg

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        found = shutil.which("ffmpeg")
    if found is None:
        raise CaseError(
            f"{os.fspath(path)}: a film .mp4 needs the program ffmpeg, or the package imageio-ffmpeg; or write a .gif"
        )
    return found
