# SPDX-License-Identifier: BSD-3-Clause
"""Every kernel specialisation that Seiche may launch: its C++ type, its header and the layout of its argument struct.

The build writes the CPU table from `all_kernels()`, the GPU gate compiles the same list, and the solvers ask for
`KernelSpec`s by the functions below. Only the standard library is used, so that a build can import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Real = Literal["float64", "float32"]
Store = Literal["float64", "float32", "float16"]

#: Names of the C++ types of a precision.
CPP_TYPE = {"float64": "double", "float32": "float", "float16": "f16"}

#: (compute, storage) pairs that are built.
PRECISIONS: tuple[tuple[Real, Store], ...] = (
    ("float64", "float64"),
    ("float64", "float32"),
    ("float64", "float16"),
    ("float32", "float32"),
    ("float32", "float16"),
)
LAYOUTS = ("list-ab", "list-aa-even", "list-aa-odd", "tiles-4", "tiles-8")
RELAXATIONS = ("constant", "carreau-yasuda")
FORCES = ("none", "uniform")

#: A member of an argument struct: its name, and "ptr", a NumPy scalar name, (scalar name, length) or nested members.
Member = tuple[str, "str | tuple[str, int] | tuple[Member, ...]"]
Members = tuple[Member, ...]


@dataclass(frozen=True)
class KernelSpec:
    """One specialisation of a kernel.

    `type` is the C++ type of the functor inside namespace seiche, `header` its file below `kernels/`, `members` its
    members in order. On a GPU a block has `threads` threads of `items` items each, and `blocks` of them are to be
    resident on a multiprocessor, which bounds the registers (0: the compiler's choice). `max_registers` is the ceiling
    that the GPU gate checks; no kernel may spill unless `may_spill` says so.
    """

    type: str
    header: str
    members: Members
    threads: int = 256
    items: int = 1
    blocks: int = 0
    max_registers: int = 128
    may_spill: bool = False

    @property
    def launch(self) -> str:
        """Return the template arguments of the GPU loop, as C++ writes them."""
        return f"{self.threads},{self.blocks},{self.items}"


def layout_type(layout: str, real: Real, store: Store) -> tuple[str, Members]:
    """Return C++ type and members of a storage layout of D3Q19 populations."""
    types = f"D3Q19,{CPP_TYPE[real]},{CPP_TYPE[store]}"
    list_members: Members = (("adjacency", "ptr"), ("stride", "int64"))
    if layout == "list-ab":
        return f"ListAB<{types}>", (("f_in", "ptr"), ("f_out", "ptr"), *list_members)
    if layout == "list-aa-even":
        return f"ListAAEven<{types}>", (("f", "ptr"), *list_members)
    if layout == "list-aa-odd":
        return f"ListAAOdd<{types}>", (("f", "ptr"), *list_members)
    edge = int(layout.removeprefix("tiles-"))
    return f"Tiles<{types},{edge}>", (("f_in", "ptr"), ("f_out", "ptr"), ("table", "ptr"), ("walls", "ptr"))


def relaxation_type(relaxation: str, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of the rule that gives a site's relaxation rates."""
    if relaxation == "constant":
        return f"ConstantRates<{CPP_TYPE[real]}>", (("even", real), ("odd", real))
    numbers = ("viscosity_infinity", "viscosity_range", "relaxation_time", "a", "exponent", "magic")
    return f"CarreauYasudaRates<{CPP_TYPE[real]}>", (("omega", "ptr"), *((name, real) for name in numbers))


def force_type(force: str, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of the body force."""
    if force == "none":
        return f"NoForce<{CPP_TYPE[real]}>", (("unused", "uint8"),)
    return f"UniformForce<{CPP_TYPE[real]}>", (("g", (real, 3)),)


def stream_collide(layout: str, real: Real, store: Store, relaxation: str, force: str) -> KernelSpec:
    """Streaming and collision of one site."""
    layout_cpp, layout_members = layout_type(layout, real, store)
    relaxation_cpp, relaxation_members = relaxation_type(relaxation, real)
    force_cpp, force_members = force_type(force, real)
    members: Members = (("layout", layout_members), ("relaxation", relaxation_members), ("force", force_members))
    name = f"StreamCollide<{layout_cpp},Trt,{relaxation_cpp},{force_cpp}>"
    if layout.startswith("list"):
        return KernelSpec(name, "flow/stream_collide.hpp", members)
    items = 2 if (real, store) == ("float32", "float16") else 1  # two values of 2 B move as one
    blocks = 6 if real == "float64" and force == "uniform" and relaxation == "constant" else 0  # or it spills
    return KernelSpec(name, "flow/stream_collide.hpp", members, threads=128, items=items, blocks=blocks)


def observe(layout: str, real: Real, store: Store, relaxation: str) -> KernelSpec:
    """Density, velocity, stress and shear rate of chosen sites; the force may be zero."""
    layout_cpp, layout_members = layout_type(layout, real, store)
    relaxation_cpp, relaxation_members = relaxation_type(relaxation, real)
    force_cpp, force_members = force_type("uniform", real)
    members: Members = (
        ("layout", layout_members),
        ("relaxation", relaxation_members),
        ("force", force_members),
        ("sites", "ptr"),
        ("out", "ptr"),
        ("stride", "int64"),
    )
    return KernelSpec(f"Observe<{layout_cpp},{relaxation_cpp},{force_cpp}>", "flow/observe.hpp", members)


_IOLET_SITES: Members = (
    ("sites", "ptr"),
    ("links", "ptr"),
    ("iolet", "ptr"),
    ("inflow", "ptr"),
    ("values", "ptr"),
    ("clock", "ptr"),
    ("value_count", "int64"),
)


def nash_pressure(layout: str, real: Real, store: Store) -> KernelSpec:
    """Pressure iolets; the force may be zero."""
    layout_cpp, layout_members = layout_type(layout, real, store)
    force_cpp, force_members = force_type("uniform", real)
    members: Members = (("layout", layout_members), ("at", _IOLET_SITES), ("normals", "ptr"), ("force", force_members))
    return KernelSpec(f"NashPressure<{layout_cpp},{force_cpp}>", "flow/iolet.hpp", members)


def anti_bounce_back_pressure(layout: str, real: Real, store: Store) -> KernelSpec:
    """Pressure iolets of second order."""
    layout_cpp, layout_members = layout_type(layout, real, store)
    members: Members = (
        ("layout", layout_members),
        ("at", _IOLET_SITES),
        ("observed", "ptr"),
        ("stride", "int64"),
    )
    return KernelSpec(f"AntiBounceBackPressure<{layout_cpp}>", "flow/iolet.hpp", members)


def ladd_velocity(layout: str, real: Real, store: Store) -> KernelSpec:
    """Velocity iolets; the force may be zero."""
    layout_cpp, layout_members = layout_type(layout, real, store)
    force_cpp, force_members = force_type("uniform", real)
    members: Members = (
        ("layout", layout_members),
        ("at", _IOLET_SITES),
        ("weights", "ptr"),
        ("first_link", "ptr"),
        ("first_value", "ptr"),
        ("modes", "int32"),
        ("force", force_members),
    )
    return KernelSpec(f"LaddVelocity<{layout_cpp},{force_cpp}>", "flow/iolet.hpp", members)


def tick() -> KernelSpec:
    """The clock of the iolets."""
    return KernelSpec("Tick", "flow/iolet.hpp", (("clock", "ptr"),), threads=32)


def sum_inflow(real: Real) -> KernelSpec:
    """The flow through Windkessel outlets, from their sites."""
    return KernelSpec(
        f"SumInflow<{CPP_TYPE[real]}>", "flow/windkessel.hpp", (("inflow", "ptr"), ("outlet", "ptr"), ("sums", "ptr"))
    )


def windkessel(real: Real) -> KernelSpec:
    """The circuits of Windkessel outlets."""
    names = ("sums", "capacitor", "imposed", "values", "numbers", "ramp", "clock")
    members: Members = (*((name, "ptr") for name in names), ("count", "int64"))
    return KernelSpec(f"Windkessel<{CPP_TYPE[real]}>", "flow/windkessel.hpp", members, threads=32)


def wall_shear_stress(real: Real) -> KernelSpec:
    """Wall shear stress of wall sites from observed stresses."""
    members: Members = (("observed", "ptr"), ("stride", "int64"), ("walls", "ptr"), ("normals", "ptr"), ("out", "ptr"))
    return KernelSpec(f"WallShearStress<{CPP_TYPE[real]}>", "flow/observe.hpp", members)


def halo_move(action: Literal["Pack", "Unpack", "UnpackAdd"], store: Store) -> KernelSpec:
    """Move slots of an array into a message, or a message into slots."""
    names = ("array", "slots", "buffer") if action == "Pack" else ("buffer", "slots", "array")
    return KernelSpec(f"{action}<{CPP_TYPE[store]}>", "halo/move.hpp", tuple((name, "ptr") for name in names))


def halo_publish() -> KernelSpec:
    """The word to every neighbour that a message lies in its memory."""
    return KernelSpec("Publish", "halo/flags.hpp", (("flags", "ptr"), ("sent", "ptr")), threads=32)


def halo_await() -> KernelSpec:
    """The wait for a message of every neighbour."""
    members: Members = (("flags", "ptr"), ("received", "ptr"), ("failed", "ptr"), ("patience", "uint64"))
    return KernelSpec("Await", "halo/flags.hpp", members, threads=32)


def all_kernels() -> Iterator[KernelSpec]:
    """Yield every specialisation once."""
    for real, store in PRECISIONS:
        for layout in LAYOUTS:
            for relaxation in RELAXATIONS:
                for force in FORCES:
                    yield stream_collide(layout, real, store, relaxation, force)
                yield observe(layout, real, store, relaxation)
            yield nash_pressure(layout, real, store)
            yield anti_bounce_back_pressure(layout, real, store)
            yield ladd_velocity(layout, real, store)
    yield tick()
    yield halo_publish()
    yield halo_await()
    reals: tuple[Real, ...] = ("float64", "float32")
    for real in reals:
        yield sum_inflow(real)
        yield windkessel(real)
        yield wall_shear_stress(real)
        yield halo_move("UnpackAdd", real)
    stores: tuple[Store, ...] = ("float64", "float32", "float16")
    for store in stores:
        yield halo_move("Pack", store)
        yield halo_move("Unpack", store)
