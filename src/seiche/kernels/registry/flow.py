# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the flow solver, of `kernels/flow/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from . import walls
from .spec import CPP_TYPE, KernelSpec, Members, Real, Store

#: (compute, storage) pairs that are built.
PRECISIONS: tuple[tuple[Real, Store], ...] = (
    ("float64", "float64"),
    ("float64", "float32"),
    ("float64", "float16"),
    ("float32", "float32"),
    ("float32", "float16"),
)
LAYOUTS = ("list-ab", "list-aa-even", "list-aa-odd", "tiles-4", "tiles-8")
#: Edge of the tiles of moment storage, the layout "moments" of the collision "regularised" only.
MOMENT_EDGE = 8
VELOCITY_SETS = ("D3Q15", "D3Q19", "D3Q27")
RELAXATIONS = ("constant", "carreau-yasuda", "casson", "power-law")
COLLISIONS = ("trt", "mrt", "regularised")
FORCES = ("none", "uniform", "site")
#: Forces of what is immersed in the fluid: the slot of an item in the bricks is its number, or is looked up.
IMMERSED = {"immersed-own": ("OwnSlots", ("unused", "uint8")), "immersed-table": ("TableSlots", ("slots", "ptr"))}
#: Relaxation of a fluid with another viscosity inside cells; each goes with the force that finds slots the same way.
INSIDE = {"inside-own": "immersed-own", "inside-table": "immersed-table"}

#: What the CPU table has, in words.
BUILT = "D3Q19 with trt or bgk, a Newtonian or Carreau-Yasuda fluid and no force or a uniform one"


def layout_type(layout: str, real: Real, store: Store, velocity_set: str = "D3Q19") -> tuple[str, Members]:
    """Return C++ type and members of a storage layout of the populations of a velocity set."""
    types = f"{velocity_set},{CPP_TYPE[real]},{CPP_TYPE[store]}"
    list_members: Members = (("adjacency", "ptr"), ("stride", "int64"))
    if layout == "list-ab":
        return f"ListAB<{types}>", (("f_in", "ptr"), ("f_out", "ptr"), *list_members)
    if layout == "list-aa-even":
        return f"ListAAEven<{types}>", (("f", "ptr"), *list_members)
    if layout == "list-aa-odd":
        return f"ListAAOdd<{types}>", (("f", "ptr"), *list_members)
    if layout == "moments":
        names = ("f_in", "f_out", "table", "walls", "link_rows", "link_masks", "link_values")
        return f"MomentTiles<{types},{MOMENT_EDGE}>", tuple((name, "ptr") for name in names)
    edge = int(layout.removeprefix("tiles-"))
    return f"Tiles<{types},{edge}>", (("f_in", "ptr"), ("f_out", "ptr"), ("table", "ptr"), ("walls", "ptr"))


#: C++ type and numbers of the viscosity laws of `flow/rheology.hpp`, by the relaxation that uses them.
_LAWS = {
    "carreau-yasuda": ("CarreauYasuda", ("viscosity_infinity", "viscosity_range", "relaxation_time", "a", "exponent")),
    "casson": ("Casson", ("root_yield_stress", "root_viscosity_infinity", "viscosity_zero")),
    "power-law": ("PowerLaw", ("consistency", "exponent", "shear_lowest", "shear_highest")),
}


def relaxation_type(relaxation: str, real: Real, collision: str = "trt") -> tuple[str, Members]:
    """Return C++ type and members of the rule that gives a site's relaxation rates, for a collision."""
    members: Members
    if relaxation == "constant":
        name, members = f"ConstantRates<{CPP_TYPE[real]}>", (("even", real), ("odd", real))
    elif relaxation in INSIDE:
        slots, member = IMMERSED[INSIDE[relaxation]]
        name = f"InsideRates<{CPP_TYPE[real]},{slots}>"
        members = (("inside", "ptr"), ("slots", (member,)), ("even", (real, 2)), ("odd", (real, 2)))
    else:
        law, numbers = _LAWS[relaxation]
        name = f"LaggedRates<{law}<{CPP_TYPE[real]}>>"
        members = (("omega", "ptr"), ("law", tuple((number, real) for number in numbers)), ("magic", real))
    if collision == "mrt":
        return f"ManyRates<{name}>", (("shear", members), ("bulk", real), ("even", real))
    return name, members


def force_type(force: str, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of the body force."""
    if force == "none":
        return f"NoForce<{CPP_TYPE[real]}>", (("unused", "uint8"),)
    if force == "site":
        return f"SiteForce<{CPP_TYPE[real]}>", (("gx", "ptr"), ("gy", "ptr"), ("gz", "ptr"))
    if force in IMMERSED:
        slots, member = IMMERSED[force]
        members: Members = (("field", "ptr"), ("flow", "ptr"), ("touched", "ptr"), ("slots", (member,)))
        return f"CellForce<{CPP_TYPE[real]},{slots}>", (*members, ("body", (real, 3)))
    return f"UniformForce<{CPP_TYPE[real]}>", (("g", (real, 3)),)


def _header(header: str, force: str) -> str:
    """Return the header that has a kernel with this force."""
    return header if force not in IMMERSED else f"ibm/coupled{'_moments' * header.startswith('flow/moment')}.hpp"


def stream_collide(
    layout: str,
    real: Real,
    store: Store,
    relaxation: str,
    force: str,
    *,
    collision: str = "trt",
    velocity_set: str = "D3Q19",
) -> KernelSpec:
    """Streaming and collision of one site."""
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    relaxation_cpp, relaxation_members = relaxation_type(relaxation, real, collision)
    force_cpp, force_members = force_type(force, real)
    members: Members = (("layout", layout_members), ("relaxation", relaxation_members), ("force", force_members))
    if layout == "moments":
        name = f"MomentSweep<{layout_cpp},{relaxation_cpp},{force_cpp}>"
        # an item is a tile; as many blocks as there is shared memory for on a multiprocessor of 228 KB
        small = velocity_set != "D3Q27" and (force == "none" or (force == "uniform" and relaxation == "constant"))
        blocks = 2 if real == "float64" else 5 if small else 4  # five ask for 48 registers
        return KernelSpec(name, _header("flow/moment_sweep.hpp", force), members, threads=256, blocks=blocks, team=True)
    rule = f"Coupled<{collision.capitalize()}>" if force in IMMERSED else collision.capitalize()
    name = f"StreamCollide<{layout_cpp},{rule},{relaxation_cpp},{force_cpp}>"
    every_site = force == "site" or force in IMMERSED
    many = 255 if every_site and real == "float64" else _register_ceiling(real, velocity_set, collision)
    header = _header("flow/regularised.hpp" if collision == "regularised" else "flow/stream_collide.hpp", force)
    if layout.startswith("list"):
        return KernelSpec(name, header, members, max_registers=many)
    items = 2 if (real, store) == ("float32", "float16") else 1  # two values of 2 B move as one
    small = velocity_set != "D3Q27" and relaxation == "constant" and collision == "trt"
    blocks = 6 if real == "float64" and force != "none" and small else 0  # or it spills
    return KernelSpec(name, header, members, threads=128, items=items, blocks=blocks, max_registers=many)


def _register_ceiling(real: Real, velocity_set: str, collision: str = "trt") -> int:
    """Return the registers that a kernel may use: 27 doubles and their slots, or the stress beside 19, need more."""
    return 255 if real == "float64" and (velocity_set == "D3Q27" or collision == "mrt") else 128


def observe(
    layout: str,
    real: Real,
    store: Store,
    relaxation: str,
    force: str = "uniform",
    *,
    collision: str = "trt",
    velocity_set: str = "D3Q19",
) -> KernelSpec:
    """Density, velocity, stress and shear rate of chosen sites; the force may be zero."""
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    relaxation_cpp, relaxation_members = relaxation_type(relaxation, real, collision)
    force_cpp, force_members = force_type(force, real)
    members: Members = (
        ("layout", layout_members),
        ("relaxation", relaxation_members),
        ("force", force_members),
        ("sites", "ptr"),
        ("out", "ptr"),
        ("stride", "int64"),
    )
    many = _register_ceiling(real, velocity_set)
    name = f"Observe<{layout_cpp},{relaxation_cpp},{force_cpp}>"
    header = _header("flow/moment_observe.hpp" if layout == "moments" else "flow/observe.hpp", force)
    blocks = 2 if layout == "moments" and real == "float64" else 0  # or it spills
    return KernelSpec(name, header, members, blocks=blocks, max_registers=many)


def leaving_populations(layout: str, real: Real, store: Store, *, velocity_set: str = "D3Q19") -> KernelSpec:
    """What leaves the sites of moment storage."""
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    members: Members = (("layout", layout_members), ("sites", "ptr"), ("out", "ptr"), ("stride", "int64"))
    return KernelSpec(f"LeavingPopulations<{layout_cpp}>", "flow/layout_moments.hpp", members)


def rebuilt_populations(real: Real, store: Store, *, velocity_set: str = "D3Q19") -> KernelSpec:
    """What leaves sites of moment storage beside boundaries, and what arrives there."""
    layout_cpp, layout_members = layout_type("moments", real, store, velocity_set)
    names = ("sites", "leaving", "left", "arriving", "arrived")
    members: Members = (("layout", layout_members), *((name, "ptr") for name in names))
    return KernelSpec(f"RebuiltPopulations<{layout_cpp}>", "flow/moment_walls.hpp", members)


IOLET_SITES: Members = (
    ("sites", "ptr"),
    ("links", "ptr"),
    ("iolet", "ptr"),
    ("inflow", "ptr"),
    ("values", "ptr"),
    ("clock", "ptr"),
    ("value_count", "int64"),
)


def _iolet_kernel(name: str, members: Members, real: Real, velocity_set: str, force: str = "uniform") -> KernelSpec:
    """Return the kernel of an iolet's rule; its sites are few, so that smaller blocks cost nothing where more spill."""
    many, threads = _register_ceiling(real, velocity_set), 128 if velocity_set == "D3Q27" else 256
    moments = "MomentTiles" in name
    header = _header("flow/moment_iolet.hpp" if moments else "flow/iolet.hpp", force)
    spills = moments and real == "float64"  # 32 bytes on sm_100, whose compiler uses no more than 48 registers
    return KernelSpec(name, header, members, threads=threads, max_registers=many, may_spill=spills)


def nash_pressure(
    layout: str, real: Real, store: Store, force: str = "uniform", *, velocity_set: str = "D3Q19"
) -> KernelSpec:
    """Pressure iolets; the force may be zero."""
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    force_cpp, force_members = force_type(force, real)
    members: Members = (("layout", layout_members), ("at", IOLET_SITES), ("normals", "ptr"), ("force", force_members))
    return _iolet_kernel(f"NashPressure<{layout_cpp},{force_cpp}>", members, real, velocity_set, force)


def anti_bounce_back_pressure(
    layout: str, real: Real, store: Store, force: str = "uniform", *, velocity_set: str = "D3Q19"
) -> KernelSpec:
    """Pressure iolets by anti-bounce-back; what was observed before the sweep knows of the force."""
    del force
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    members: Members = (("layout", layout_members), ("at", IOLET_SITES), ("observed", "ptr"), ("stride", "int64"))
    return _iolet_kernel(f"AntiBounceBackPressure<{layout_cpp}>", members, real, velocity_set)


def plane_pressure(
    layout: str, real: Real, store: Store, force: str = "uniform", *, velocity_set: str = "D3Q19"
) -> KernelSpec:
    """Pressure iolets whose pressure holds in their plane, whatever the force."""
    del force
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    members: Members = (
        ("layout", layout_members),
        ("at", IOLET_SITES),
        ("observed", "ptr"),
        ("stride", "int64"),
        ("normals", "ptr"),
        ("damping", real),
        ("depths", "ptr"),
        ("density", "ptr"),
        ("pairs", "ptr"),
        ("first_link", "ptr"),
        ("share", "ptr"),
    )
    spec = _iolet_kernel(f"PlanePressure<{layout_cpp}>", members, real, velocity_set)
    return spec if layout == "moments" else replace(spec, header="flow/plane_pressure.hpp")


def depth_left(real: Real, store: Store, *, velocity_set: str = "D3Q19") -> KernelSpec:
    """What left sites further inside, and their density."""
    return _depth("DepthLeft", real, store, velocity_set, ())


def depth_arrived(real: Real, store: Store, *, velocity_set: str = "D3Q19") -> KernelSpec:
    """What arrives at sites further inside, on top."""
    return _depth("DepthArrived", real, store, velocity_set, (("observed", "ptr"),))


def _depth(name: str, real: Real, store: Store, velocity_set: str, more: Members) -> KernelSpec:
    members: Members = (("f", "ptr"), ("slots", "ptr"), ("row", "ptr"), ("values", "ptr"), ("stride", "int64"), *more)
    types = f"{velocity_set},{CPP_TYPE[real]},{CPP_TYPE[store]}"
    return KernelSpec(f"{name}<{types}>", "flow/plane_pressure.hpp", members)


def ladd_velocity(
    layout: str, real: Real, store: Store, force: str = "uniform", *, velocity_set: str = "D3Q19"
) -> KernelSpec:
    """Velocity iolets; the force may be zero."""
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    force_cpp, force_members = force_type(force, real)
    members: Members = (
        ("layout", layout_members),
        ("at", IOLET_SITES),
        ("weights", "ptr"),
        ("first_link", "ptr"),
        ("first_value", "ptr"),
        ("modes", "int32"),
        ("force", force_members),
    )
    return _iolet_kernel(f"LaddVelocity<{layout_cpp},{force_cpp}>", members, real, velocity_set, force)


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


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table."""
    for real, store in PRECISIONS:
        for layout in LAYOUTS:
            for relaxation in RELAXATIONS[:2]:
                for force in FORCES[:2]:
                    yield stream_collide(layout, real, store, relaxation, force)
                yield observe(layout, real, store, relaxation)
            yield nash_pressure(layout, real, store)
            yield anti_bounce_back_pressure(layout, real, store)
            yield ladd_velocity(layout, real, store)
            yield plane_pressure(layout, real, store)
        yield from walls.built_kernels(real, store)
        yield depth_left(real, store)
        yield depth_arrived(real, store)
    yield tick()
    reals: tuple[Real, ...] = ("float64", "float32")
    for real in reals:
        yield sum_inflow(real)
        yield windkessel(real)
        yield wall_shear_stress(real)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use: of each family the ones that need most registers."""
    real: Real = "float64"
    store: Store = "float64"
    largest = {"collision": "mrt", "velocity_set": "D3Q27"}
    for layout in ("list-aa-odd", "tiles-8"):
        for velocity_set in VELOCITY_SETS:
            for collision in COLLISIONS:
                options = {"collision": collision, "velocity_set": velocity_set}
                yield stream_collide(layout, real, store, "constant", "site", **options)
                yield stream_collide(layout, real, store, "carreau-yasuda", "site", **options)
        for relaxation in RELAXATIONS[2:]:
            yield stream_collide(layout, real, store, relaxation, "uniform")
        yield stream_collide(layout, "float32", "float16", "carreau-yasuda", "site", **largest)
        yield observe(layout, real, store, "carreau-yasuda", "site", **largest)
        yield nash_pressure(layout, real, store, "site", velocity_set="D3Q27")
        yield ladd_velocity(layout, real, store, "site", velocity_set="D3Q27")
        yield plane_pressure(layout, real, store, velocity_set="D3Q27")
    yield walls.leaving_density(real, store, velocity_set="D3Q27")
    yield depth_arrived(real, store, velocity_set="D3Q27")
    yield from _moment_kernels()


def _moment_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of moment storage: every sweep of D3Q19, and the rest with the largest policies."""
    for real, store in PRECISIONS:
        for force in FORCES:
            for relaxation in RELAXATIONS[:2]:
                yield stream_collide("moments", real, store, relaxation, force, collision="regularised")
    real, store = "float64", "float64"
    for velocity_set in VELOCITY_SETS:
        options = {"velocity_set": velocity_set}
        largest = {"collision": "regularised", **options}
        if velocity_set != "D3Q19":
            yield stream_collide("moments", real, store, "carreau-yasuda", "site", **largest)
            yield stream_collide("moments", "float32", "float32", "carreau-yasuda", "site", **largest)
        yield observe("moments", real, store, "carreau-yasuda", "site", **largest)
        yield nash_pressure("moments", real, store, "site", **options)
        yield ladd_velocity("moments", real, store, "site", **options)
        yield anti_bounce_back_pressure("moments", real, store, **options)
        yield plane_pressure("moments", real, store, **options)
        yield leaving_populations("moments", real, store, **options)
        yield rebuilt_populations(real, store, **options)
        yield rebuilt_populations("float32", "float16", **options)
