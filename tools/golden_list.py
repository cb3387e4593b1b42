# SPDX-License-Identifier: BSD-3-Clause
"""The runs of tools/golden.py: case files, changes, numbers of ranks, restarts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).parent
CASES = TOOLS / "golden_cases"
EXAMPLES = TOOLS.parent / "examples"


@dataclass(frozen=True)
class Run:
    """A case on some numbers of ranks.

    Attributes:
        name: unique, without " @ ".
        file: case file; empty for `prepare` alone.
        changes: changes of keys, as for `--set`.
        ranks: numbers of ranks.
        quick: those of `--quick`.
        restarts: (from, on): the checkpoint of the run on `from` ranks is restarted on `on` ranks.
        prepare: command lines of one process that run first, without the name of the program.
        files: other files that the case and these commands need.
    """

    name: str
    file: Path | None
    changes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = (1, 2, 3)
    quick: tuple[int, ...] = ()
    restarts: tuple[tuple[int, int], ...] = ()
    prepare: tuple[tuple[str, ...], ...] = ()
    files: tuple[Path, ...] = ()


def small(name: str, *changes: str, file: str = "", **options: object) -> Run:
    """Return a run of a case of tools/golden_cases."""
    return Run(name, CASES / f"{file or name}.toml", changes, **options)  # type: ignore[arg-type]


def example(name: str, *changes: str, file: str = "case.toml", ranks: tuple[int, ...] = (1, 2)) -> Run:
    """Return a run of a shortened example."""
    return Run(f"example {name}", EXAMPLES / name / file, changes, ranks)


def compute(compute: str, storage: str | None = None) -> tuple[str, ...]:
    """Return the changes for a precision of flow."""
    words = (f"run.precision.compute={compute}",)
    return (*words, f"run.precision.storage={storage}") if storage else words


PRECISIONS = {
    "float64": compute("float64"),
    "float32": compute("float32"),
    "float32-half": compute("float32", "float16"),
}
LAYOUTS = ("list-ab", "list-aa", "tiles-4", "tiles-8", "moments")
#: Output of the last state only, for comparisons of layouts.
LAST_STATE = ("output.extraction=[]", "output.surface=[]", "time.steps=60", "output.fields.0.every=60")
REGULARISED = ("lattice.collision=regularised",)
#: Blocks of eight sites for three ranks.
LONG_VESSEL = ("geometry.shape.length=6 mm",)


def layouts() -> list[Run]:
    """Return every layout in every precision."""
    return [
        small(
            f"flow {layout} {precision}",
            f"lattice.layout={layout}",
            *(REGULARISED if layout == "moments" else ()),
            *(LONG_VESSEL if layout in ("tiles-8", "moments") else ()),
            *changes,
            *LAST_STATE,
            file="flow",
            quick=(2,) if (layout, precision) in {("tiles-4", "float32"), ("moments", "float32-half")} else (),
        )
        for layout in LAYOUTS
        for precision, changes in PRECISIONS.items()
    ]


FLOW = [
    small("flow", quick=(1, 2), restarts=((2, 1), (1, 3), (3, 2))),
    small("windkessel", quick=(2,), restarts=((2, 1), (1, 3), (3, 2))),
    small("rotor", ranks=(1, 3)),
    Run(
        "gmy",
        CASES / "gmy.toml",
        ranks=(2,),
        prepare=(("convert", "flow.toml", "vessel.gmy"),),
        files=(CASES / "flow.toml",),
    ),
    *(
        small(f"flow {v}", f"lattice.velocity_set={v}", *LAST_STATE, file="flow", ranks=(1, 3))
        for v in ("D3Q15", "D3Q27")
    ),
    *(
        small(f"flow {c}", f"lattice.collision={c}", *LAST_STATE, file="flow", ranks=(1, 3))
        for c in ("bgk", "mrt", "regularised")
    ),
    *(small(f"flow {p}", f"run.partition={p}", *LAST_STATE, file="flow", ranks=(3,)) for p in ("curve", "slabs")),
    *(
        small(f"outlet {s}", f"iolet.outlet.scheme={s}", *LAST_STATE, file="flow", ranks=(3,))
        for s in ("anti-bounce-back", "plane")
    ),
    small("flow bouzidi", "walls.kind=bouzidi", *LAST_STATE, file="flow", ranks=(1, 3)),
    small("inlet computed", "iolet.inlet.profile=computed", *LAST_STATE, file="flow", ranks=(2,)),
    small(
        "fluid casson",
        'fluid={ rheology = { kind = "casson", preset = "human" } }',
        *LAST_STATE,
        file="flow",
        ranks=(2,),
    ),
]
BLOOD = [
    small("blood", quick=(1, 2), restarts=((2, 1), (1, 3))),
    small("blood-mixed", restarts=((2, 1), (1, 3))),
    small("blood-open", quick=(2,), restarts=((2, 1), (1, 2))),
    small("blood triangles", "cells.0.model=triangles", "coupling.delta=cosine", file="blood", ranks=(2,)),
    small("blood float32", "run.precision.compute=float32", "coupling.slip=0.0", file="blood", ranks=(2,)),
]
WAVES = [
    small("waves", quick=(1, 2), restarts=((2, 1),)),
    small("attenuation", quick=(2,), restarts=((2, 1), (1, 3), (3, 2))),
    small("leapfrog", quick=(2,), restarts=((2, 1), (1, 3), (3, 2))),
    small("attenuation float32", "run.precision=float32", file="attenuation", ranks=(2,)),
    small("leapfrog float32", "run.precision=float32", file="leapfrog", ranks=(1, 3)),
    *(
        small(f"waves ghosts {g}", f"run.ghosts={g}", file="waves", ranks=(3,))
        for g in ("half", "faces", "variables", "elements")
    ),
    *(small(f"waves nodes {n}", f"mesh.nodes={n}", file="waves", ranks=(2,)) for n in (2, 5, 8)),
]
SCHEMES = ("exact", "separable", "local4")
ULTRASOUND = [
    small("ultrasound", quick=(1, 2)),
    small("tissue", quick=(2,)),
    small("ultrasound wide", "grid.shape=[64, 64, 48]", "grid.steps=15", file="ultrasound", ranks=(1, 2)),
    *(
        small(
            f"ultrasound {scheme} {precision}",
            f"run.scheme={scheme}",
            f"run.precision={precision}",
            file="tissue",
            ranks=(1, 3),
        )
        for scheme in SCHEMES
        for precision in ("float32", "float64")
    ),
    *(
        small(f"tissue {mode}", f"medium.alpha_mode={mode}", file="tissue", ranks=(2,))
        for mode in ("no_absorption", "no_dispersion", "relaxation")
    ),
    small("tissue stokes", "medium.alpha_mode=stokes", "medium.alpha_power=2.0", file="tissue", ranks=(1, 2)),
    small("tissue basis local", "run.basis=local", "run.overlap=4", file="tissue", ranks=(3,)),
    small("tissue basis global", "run.basis=global", file="tissue", ranks=(2, 3)),
    small(
        "sensors",
        'record={ points = [["1.1 mm", "0.3 mm", "0 mm"]], frequencies = ["500 kHz"], periods = 1,'
        ' quantities = ["p", "p_rms", "u_non_staggered", "I", "I_avg"] }',
        'heat={ duration = "2 s", cooling = "1 s", perfusion = "0.01 1/s" }',
        file="tissue",
        ranks=(1,),
    ),
]
SHORTENED = [
    example(
        "bifurcation", "geometry.spacing=0.2 mm", "lattice.step=120 us", "time={ steps = 400 }", "iolet.inlet.ramp=100"
    ),
    example("tube", "time.steps=1500", "output.fields.0.every=1500"),
    example("poiseuille_box", "time.steps=2000", "output.fields.0.every=2000"),
    example("blood-tube", "time.duration=60 us", "output.cells.0.every=30 us"),
    example(
        "blood-bifurcation",
        "geometry.spacing=0.8 um",
        "lattice.tau=1.5",
        "lattice.velocity_scale=60 mm/s",
        "run.device=cpu",
        "time={ steps = 30 }",
        "iolet.inlet.ramp=10",
        "cells.red.shape.vertices=162",
        "cells.platelet.shape.vertices=42",
        "output.checkpoint={}",
        "output.cells.0.every=30",
    ),
    example("photoacoustic", ranks=(1,)),
    example("skull-focus", "grid.duration=50 us", ranks=(1,)),
    example("basin", "mesh.frequency=0.8 Hz", "time={ steps = 60 }", "output.snapshots.0.points=40"),
]

#: Machines for the predictions of the four solvers: an invented node of processors, a real one with GPUs.
_MACHINES = (("cpu", "machine.json"), ("cuda", "summit"))
PREDICTED = ("flow", "blood", "waves", "ultrasound")
PREDICTIONS = [
    Run(
        f"predict {name} {device}",
        None,
        ranks=(1,),
        prepare=(
            (
                *("predict", f"{name}.toml", "--machine", machine, "--ranks", "1,2,4"),
                *("--device", device, "--json", "prediction.json"),
            ),
        ),
        files=(CASES / f"{name}.toml", CASES / "machine.json"),
    )
    for name in PREDICTED
    for device, machine in _MACHINES
]

RUNS = [*FLOW, *layouts(), *BLOOD, *WAVES, *ULTRASOUND, *SHORTENED, *PREDICTIONS]
