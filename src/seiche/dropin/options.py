# SPDX-License-Identifier: BSD-3-Clause
"""The command line of kspaceFirstOrder-OMP and kspaceFirstOrder-CUDA (k-Wave manual, section 4)."""

from __future__ import annotations

import getopt
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from seiche.errors import CaseError

_SERIES_OPTIONS = {"p_raw": "p", "u_raw": "u", "u_non_staggered_raw": "u_non_staggered"}
_AGGREGATE_OPTIONS = tuple(f"{q}_{kind}" for q in "pu" for kind in ("rms", "max", "min", "max_all", "min_all", "final"))
_LONG_OPTIONS = (
    *(*_SERIES_OPTIONS, *_AGGREGATE_OPTIONS, "copy_sensor_mask", "help", "version"),
    *("benchmark=", "verbose=", "checkpoint_file=", "checkpoint_interval=", "checkpoint_timesteps=", "overlap="),
)
#: Attribute of `Options`, and the lowest and highest value, by option.
_TEXT_OPTIONS = {"i": "input", "o": "output", "checkpoint_file": "checkpoint_file"}
_INTEGER_OPTIONS = {
    "t": ("threads", 1, 4096),
    "r": ("progress", 1, 100),
    "c": ("compression", 0, 9),
    "verbose": ("verbose", 0, 2),
    "benchmark": ("benchmark", 1, 1 << 62),
    "checkpoint_timesteps": ("checkpoint_steps", 1, 1 << 62),
}

USAGE = """\
Usage: {program} -i INPUT -o OUTPUT [options]
  -i FILE, -o FILE              input and output file (HDF5)
  -t N                          CPU threads
  -g [N or N,M,..]              GPU, the first free one by default; the grid is divided among several
  -r PERCENT                    interval of progress reports, 1 to 100 (5)
  -c LEVEL                      compression of the output, 0 to 9 (0)
  -s STEP                       first recorded time step, from 1 (1)
  --benchmark N                 run N time steps only
  --verbose LEVEL               0, 1 or 2 (0)
  --checkpoint_file FILE        checkpoint of an incomplete run
  --checkpoint_interval S       write it and stop after S seconds
  --checkpoint_timesteps N      write it and stop after N time steps
  --overlap N                   several GPUs: width of the overlap of their parts, 4 to 32 points (16), or 0 for
                                transforms of the whole grid
  -p, --p_raw                   pressure at the sensor; the default record
  --p_rms --p_max --p_min --p_max_all --p_min_all --p_final
  -u, --u_raw                   velocity at the sensor, on the staggered grid
  --u_rms --u_max --u_min --u_max_all --u_min_all --u_final
  --u_non_staggered_raw         velocity at the points of the grid
  --copy_sensor_mask            copy the sensor mask to the output
  -h, --help                    this text
  --version                     version
"""


@dataclass
class Options:
    """Values of a command line; `quantities` are names of `seiche.ultrasound.records.Request`."""

    input: str = ""
    output: str = ""
    threads: int | None = None
    gpus: tuple[int, ...] = ()
    overlap: int = 16
    progress: int = 5
    compression: int = 0
    first: int = 0
    benchmark: int | None = None
    verbose: int = 0
    checkpoint_file: str | None = None
    checkpoint_interval: float | None = None
    checkpoint_steps: int | None = None
    quantities: list[str] = field(default_factory=list)
    final: list[str] = field(default_factory=list)
    copy_sensor_mask: bool = False
    help: bool = False
    version: bool = False


def parse(arguments: list[str]) -> Options:
    """Return the options of a command line; long ones may be abbreviated. Raise CaseError for invalid ones."""
    try:
        flags, positional = getopt.gnu_getopt(_without_bare_gpu(arguments), "i:o:t:g:r:c:s:puh", _LONG_OPTIONS)
    except getopt.GetoptError as error:
        raise CaseError(str(error)) from error
    options = Options()
    for flag, value in flags:
        _set_option(options, flag.lstrip("-"), value)
    if options.help or options.version:
        return options
    if positional:
        raise CaseError(f"argument {positional[0]!r} is not an option")
    for flag, name in (("-i", options.input), ("-o", options.output)):
        if not name:
            raise CaseError(f"option {flag} is missing")
    has_interval = options.checkpoint_interval is not None or options.checkpoint_steps is not None
    if has_interval != (options.checkpoint_file is not None):
        raise CaseError("--checkpoint_file must be used together with --checkpoint_interval or --checkpoint_timesteps")
    if not options.quantities and not options.final:
        options.quantities = ["p"]
    return options


def check_distinct_files(options: Options) -> None:
    """Raise CaseError if two of input, output and checkpoint are the same file, or a folder does not exist."""
    checkpoint = [("--checkpoint_file", options.checkpoint_file)] if options.checkpoint_file is not None else []
    files = [("-i", options.input), ("-o", options.output), *checkpoint]
    for (flag, name), (other_flag, other_name) in combinations(files, 2):
        if Path(name).resolve() == Path(other_name).resolve() or (
            Path(name).exists() and Path(other_name).exists() and Path(name).samefile(other_name)
        ):
            raise CaseError(f"{flag} {name} and {other_flag} {other_name} are the same file")
    for flag, name in files[1:]:
        if not Path(name).absolute().parent.is_dir():
            raise CaseError(f"{flag} {name}: there is no folder {Path(name).parent}")


def _without_bare_gpu(arguments: list[str]) -> list[str]:
    """Remove a -g without a number: the first free GPU is the default."""
    next_arguments = [*arguments[1:], "-"]
    return [
        flag
        for flag, value in zip(arguments, next_arguments, strict=False)
        if flag != "-g" or not value.startswith("-")
    ]


def _set_option(options: Options, name: str, value: str) -> None:
    name = {"p": "p_raw", "u": "u_raw", "h": "help"}.get(name, name)
    if name in _SERIES_OPTIONS or name in _AGGREGATE_OPTIONS:
        names, record = (
            options.final if name.endswith("_final") else options.quantities,
            _SERIES_OPTIONS.get(name, name),
        )
        names += [record] if record not in names else []
    elif name in ("copy_sensor_mask", "help", "version"):
        setattr(options, name, True)
    elif name in _TEXT_OPTIONS:
        setattr(options, _TEXT_OPTIONS[name], value)
    elif name in _INTEGER_OPTIONS:
        attribute, minimum, maximum = _INTEGER_OPTIONS[name]
        setattr(options, attribute, _integer(name, value, minimum, maximum))
    elif name == "g":
        options.gpus = tuple(_integer(name, index, 0, 4096) for index in value.split(","))
        if len(set(options.gpus)) < len(options.gpus):
            raise CaseError(f"-g {value}: a GPU is selected twice")
    elif name == "s":
        options.first = _integer(name, value, 1, 1 << 62) - 1
    elif name == "overlap":
        options.overlap = _integer(name, value, 0, 32)
        if 0 < options.overlap < 4:
            raise CaseError(f"--overlap {value}: not 0 or between 4 and 32")
    else:
        options.checkpoint_interval = float(_integer(name, value, 1, 1 << 62))


def _integer(name: str, value: str, minimum: int, maximum: int) -> int:
    dashes = "-" if len(name) == 1 else "--"
    try:
        number = int(value)
    except ValueError:
        raise CaseError(f"{dashes}{name} {value}: not a whole number") from None
    if not minimum <= number <= maximum:
        raise CaseError(f"{dashes}{name} {value}: not between {minimum} and {maximum}")
    return number
