# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the flow solver, `kernels/flow/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from . import walls
from .spec import CPP_TYPE, REALS, KernelSpec, Members, Real, Store, pointers, typed_members

#: (compute, storage) pairs in the CPU table.
PRECISIONS: tuple[tuple[Real, Store], ...] = (
    ("float64", "float64"),
    ("float64", "float32"),
    ("float64", "float16"),
    ("float32", "float32"),
    ("float32", "float16"),
)
LAYOUTS = ("list-ab", "list-aa-even", "list-aa-odd", "tiles-4", "tiles-8")
#: Edge of the tiles of moment storage, layout "moments" (only with the collision "regularised").
MOMENT_EDGE = 8
VELOCITY_SETS = ("D3Q15", "D3Q19", "D3Q27")
RELAXATIONS = ("constant", "carreau-yasuda", "casson", "power-law")
COLLISIONS = ("trt", "mrt", "regularised")
FORCES = ("none", "uniform", "site")
#: Forces of immersed bodies. The slot of a site in the bricks equals its number, or is read from a table.
IMMERSED = {"immersed-own": ("OwnSlots", ("unused", "uint8")), "immersed-table": ("TableSlots", ("slots", "ptr"))}
#: Relaxation with another viscosity inside cells, and the force that finds slots in the same way.
INSIDE = {"inside-own": "immersed-own", "inside-table": "immersed-table"}
#: Most bits of a site that select its viscosity; the number follows the name of the relaxation.
MAX_PLANES = 3

#: Description of the kernels in the CPU table.
BUILT = "D3Q19 with trt or bgk, a Newtonian or Carreau-Yasuda fluid and no force or a uniform one"


def layout_type(layout: str, real: Real, store: Store, velocity_set: str = "D3Q19") -> tuple[str, Members]:
    """Return C++ type and members of a storage layout for the populations of a velocity set."""
    types = f"{velocity_set},{CPP_TYPE[real]},{CPP_TYPE[store]}"
    adjacency: Members = (("adjacency", "ptr"), ("stride", "int64"))
    if layout == "list-ab":
        return f"ListAB<{types}>", (*pointers("f_in f_out"), *adjacency)
    if layout == "list-aa-even":
        return f"ListAAEven<{types}>", (("f", "ptr"), *adjacency)
    if layout == "list-aa-odd":
        return f"ListAAOdd<{types}>", (("f", "ptr"), *adjacency, *pointers("runs pieces"))
    tiles = pointers("f_in f_out table walls")
    if layout == "moments":
        return f"MomentTiles<{types},{MOMENT_EDGE}>", (*tiles, *pointers("link_rows link_masks link_values"))
    return f"Tiles<{types},{int(layout.removeprefix('tiles-'))}>", tiles


#: C++ type and parameters of the viscosity laws in `flow/rheology.hpp`, by relaxation.
_LAWS = {
    "carreau-yasuda": ("CarreauYasuda", "viscosity_infinity viscosity_range relaxation_time a exponent"),
    "casson": ("Casson", "root_yield_stress root_viscosity_infinity viscosity_zero"),
    "power-law": ("PowerLaw", "consistency exponent shear_lowest shear_highest"),
}


def relaxation_type(relaxation: str, real: Real, collision: str = "trt") -> tuple[str, Members]:
    """Return C++ type and members of the rule for a site's relaxation rates, for a collision."""
    members: Members
    if relaxation == "constant":
        name, members = f"ConstantRates<{CPP_TYPE[real]}>", typed_members(real, "even odd")
    elif (words := relaxation.partition(" "))[0] in INSIDE:
        slots, member = IMMERSED[INSIDE[words[0]]]
        planes = int(words[2] or 1)
        name = f"InsideRates<{CPP_TYPE[real]},{slots}{f',{planes}' if planes > 1 else ''}>"
        rates = typed_members((real, 1 << planes), "even odd")
        members = (("inside", "ptr"), ("slots", (member,)), ("words", "int64"), *rates)
    else:
        law, parameters = _LAWS[relaxation]
        name = f"LaggedRates<{law}<{CPP_TYPE[real]}>>"
        members = (("omega", "ptr"), ("law", typed_members(real, parameters)), ("magic", real))
    if collision == "mrt":
        return f"ManyRates<{name}>", (("shear", members), ("bulk", real), ("even", real))
    return name, members


def force_type(force: str, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of the body force."""
    if force == "none":
        return f"NoForce<{CPP_TYPE[real]}>", (("unused", "uint8"),)
    if force == "site":
        return f"SiteForce<{CPP_TYPE[real]}>", pointers("gx gy gz")
    if force in IMMERSED:
        slots, member = IMMERSED[force]
        members: Members = (*pointers("field flow touched"), ("slots", (member,)), ("body", (real, 3)))
        return f"CellForce<{CPP_TYPE[real]},{slots}>", members
    return f"UniformForce<{CPP_TYPE[real]}>", (("g", (real, 3)),)


def _header(header: str, force: str) -> str:
    """Return the header of a kernel with this force."""
    return header if force not in IMMERSED else f"ibm/coupled{'_moments' * header.startswith('flow/moment')}.hpp"


def _policies(
    layout: str, storage: tuple[Real, Store, str], rule: tuple[str, str], force: str
) -> tuple[tuple[str, str, str], Members]:
    """Return the C++ types of layout, relaxation and force, and their members."""
    (real, store, velocity_set), (relaxation, collision) = storage, rule
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    relaxation_cpp, relaxation_members = relaxation_type(relaxation, real, collision)
    force_cpp, force_members = force_type(force, real)
    members: Members = (("layout", layout_members), ("relaxation", relaxation_members), ("force", force_members))
    return (layout_cpp, relaxation_cpp, force_cpp), members


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
    types, members = _policies(layout, (real, store, velocity_set), (relaxation, collision), force)
    layout_cpp, relaxation_cpp, force_cpp = types
    if layout == "moments":
        name = f"MomentSweep<{layout_cpp},{relaxation_cpp},{force_cpp}>"
        # one item per tile; as many blocks as fit the shared memory of a multiprocessor (228 KB)
        has_few_registers = velocity_set != "D3Q27" and (
            force == "none" or (force == "uniform" and relaxation == "constant")
        )
        blocks = 2 if real == "float64" else 5 if has_few_registers else 4  # five blocks need at most 48 registers
        return KernelSpec(name, _header("flow/moment_sweep.hpp", force), members, threads=256, blocks=blocks, team=True)
    rule = f"Coupled<{collision.capitalize()}>" if force in IMMERSED else collision.capitalize()
    name = f"StreamCollide<{layout_cpp},{rule},{relaxation_cpp},{force_cpp}>"
    every_site = force == "site" or force in IMMERSED
    registers = 255 if every_site and real == "float64" else _register_limit(real, velocity_set, collision)
    header = _header("flow/regularised.hpp" if collision == "regularised" else "flow/stream_collide.hpp", force)
    if layout.startswith("list"):
        return KernelSpec(name, header, members, max_registers=registers)
    items = 2 if (real, store) == ("float32", "float16") else 1  # two values of 2 B are moved together
    has_few_registers = velocity_set != "D3Q27" and relaxation == "constant" and collision == "trt"
    blocks = 6 if real == "float64" and force != "none" and has_few_registers else 0  # otherwise it spills
    return KernelSpec(name, header, members, threads=128, items=items, blocks=blocks, max_registers=registers)


def _register_limit(real: Real, velocity_set: str, collision: str = "trt") -> int:
    """Return the register limit: 27 doubles with their slots, or 19 with the stress, need more than 128."""
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
    at_opening: bool = False,
) -> KernelSpec:
    """Density, velocity, stress and shear rate of selected sites; the force may be zero.

    With `at_opening`, density and trace of the stress are those of the rules of openings, which differ with `mrt`.
    """
    types, policies = _policies(layout, (real, store, velocity_set), (relaxation, collision), force)
    members: Members = (*policies, *pointers("sites out"), ("stride", "int64"))
    registers = _register_limit(real, velocity_set)
    name = f"Observe<{','.join(types)}>"
    header = _header("flow/moment_observe.hpp" if layout == "moments" else "flow/observe.hpp", force)
    if at_opening and collision == "mrt":
        name = name.replace("Observe<", "ObserveOpening<").replace("ManyRates<", "ManyRatesAtOpening<")
        header = "ibm/coupled_openings.hpp" if force in IMMERSED else "flow/opening_stress.hpp"
    blocks = {"float64": 2, "float32": 4}[real] if layout == "moments" else 0  # otherwise it spills
    return KernelSpec(name, header, members, blocks=blocks, max_registers=registers)


def outgoing_populations(layout: str, real: Real, store: Store, *, velocity_set: str = "D3Q19") -> KernelSpec:
    """Outgoing populations of sites in moment storage."""
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    members: Members = (("layout", layout_members), *pointers("sites out"), ("stride", "int64"))
    return KernelSpec(f"OutgoingPopulations<{layout_cpp}>", "flow/layout_moments.hpp", members)


def rebuilt_populations(real: Real, store: Store, *, velocity_set: str = "D3Q19") -> KernelSpec:
    """Outgoing and incoming populations of boundary sites in moment storage."""
    layout_cpp, layout_members = layout_type("moments", real, store, velocity_set)
    members: Members = (("layout", layout_members), *pointers("sites outgoing first_outgoing incoming first_incoming"))
    return KernelSpec(f"RebuiltPopulations<{layout_cpp}>", "flow/moment_walls.hpp", members)


IOLET_SITES: Members = (*pointers("sites links iolet inflow values clock"), ("value_count", "int64"))


def _iolet_kernel(name: str, members: Members, real: Real, velocity_set: str, force: str = "uniform") -> KernelSpec:
    """Return the kernel of an iolet rule; it has few sites, so smaller blocks are used where more would spill."""
    registers, threads = _register_limit(real, velocity_set), 128 if velocity_set == "D3Q27" else 256
    moments = "MomentTiles" in name
    header = _header("flow/moment_iolet.hpp" if moments else "flow/iolet.hpp", force)
    spills = moments and real == "float64"  # 32 bytes on sm_100, whose compiler uses no more than 48 registers
    return KernelSpec(name, header, members, threads=threads, max_registers=registers, may_spill=spills)


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
    """Pressure iolets by anti-bounce-back; the observed values already include the force."""
    del force
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    members: Members = (("layout", layout_members), ("at", IOLET_SITES), ("observed", "ptr"), ("stride", "int64"))
    return _iolet_kernel(f"AntiBounceBackPressure<{layout_cpp}>", members, real, velocity_set)


def plane_pressure(
    layout: str, real: Real, store: Store, force: str = "uniform", *, velocity_set: str = "D3Q19"
) -> KernelSpec:
    """Pressure iolets with the pressure imposed in their plane, independent of the force."""
    del force
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    observed: Members = (
        ("observed", "ptr"),
        ("stride", "int64"),
        ("normals", "ptr"),
        ("damping", real),
        ("site_weight", real),
    )
    depths = pointers("depths density pairs first_link plane_weight")
    members: Members = (("layout", layout_members), ("at", IOLET_SITES), *observed, *depths)
    spec = _iolet_kernel(f"PlanePressure<{layout_cpp}>", members, real, velocity_set)
    return spec if layout == "moments" else replace(spec, header="flow/plane_pressure.hpp")


def outgoing_depth(real: Real, store: Store, *, velocity_set: str = "D3Q19") -> KernelSpec:
    """Outgoing populations of sites further inside that are overwritten before `incoming_depth` reads them."""
    members: Members = (*pointers("f slots record values"), *typed_members("int64", "stride records"))
    return _depth("OutgoingDepth", real, store, velocity_set, members)


def incoming_depth(real: Real, store: Store, *, velocity_set: str = "D3Q19") -> KernelSpec:
    """Density excess of sites further inside, and sums of their outgoing and incoming populations."""
    populations = pointers("f outgoing_slots incoming_slots sampled values")
    members: Members = (*populations, ("records", "int64"), ("observed", "ptr"), ("stride", "int64"))
    return _depth("IncomingDepth", real, store, velocity_set, members)


def _depth(name: str, real: Real, store: Store, velocity_set: str, members: Members) -> KernelSpec:
    types = f"{velocity_set},{CPP_TYPE[real]},{CPP_TYPE[store]}"
    registers = 255 if real == "float64" else 128  # for all populations of a site at once
    return KernelSpec(f"{name}<{types}>", "flow/plane_pressure.hpp", members, threads=128, max_registers=registers)


def ladd_velocity(
    layout: str, real: Real, store: Store, force: str = "uniform", *, velocity_set: str = "D3Q19"
) -> KernelSpec:
    """Velocity iolets; the force may be zero."""
    layout_cpp, layout_members = layout_type(layout, real, store, velocity_set)
    force_cpp, force_members = force_type(force, real)
    values = pointers("weights first_link first_value")
    policies: Members = (("modes", "int32"), ("force", force_members))
    members: Members = (("layout", layout_members), ("at", IOLET_SITES), *values, *policies)
    return _iolet_kernel(f"LaddVelocity<{layout_cpp},{force_cpp}>", members, real, velocity_set, force)


def tick() -> KernelSpec:
    """The clock of the iolets."""
    return KernelSpec("Tick", "flow/iolet.hpp", pointers("clock"), threads=32)


def sum_inflow(real: Real) -> KernelSpec:
    """The flow rate through Windkessel outlets, from their sites."""
    return KernelSpec(f"SumInflow<{CPP_TYPE[real]}>", "flow/windkessel.hpp", pointers("inflow outlet sums"))


def windkessel(real: Real) -> KernelSpec:
    """The circuits of Windkessel outlets."""
    arrays = pointers("sums capacitor imposed values coefficients ramp clock")
    members: Members = (*arrays, ("count", "int64"))
    return KernelSpec(f"Windkessel<{CPP_TYPE[real]}>", "flow/windkessel.hpp", members, threads=32)


def wall_shear_stress(real: Real) -> KernelSpec:
    """Wall shear stress of wall sites from observed stresses."""
    members: Members = (("observed", "ptr"), ("stride", "int64"), *pointers("walls normals out"))
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
        yield outgoing_depth(real, store)
        yield incoming_depth(real, store)
    yield tick()
    for real in REALS:
        yield sum_inflow(real)
        yield windkessel(real)
        yield wall_shear_stress(real)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of kernels compiled on first use: of each family those that need the most registers."""
    real: Real = "float64"
    store: Store = "float64"
    costliest_options: dict[str, Any] = {"collision": "mrt", "velocity_set": "D3Q27"}
    for layout in ("list-aa-odd", "tiles-8"):
        for velocity_set in VELOCITY_SETS:
            for collision in COLLISIONS:
                options = {"collision": collision, "velocity_set": velocity_set}
                yield stream_collide(layout, real, store, "constant", "site", **options)
                yield stream_collide(layout, real, store, "carreau-yasuda", "site", **options)
        for relaxation in RELAXATIONS[2:]:
            yield stream_collide(layout, real, store, relaxation, "uniform")
        yield stream_collide(layout, "float32", "float16", "carreau-yasuda", "site", **costliest_options)
        yield observe(layout, real, store, "carreau-yasuda", "site", **costliest_options)
        yield observe(layout, real, store, "carreau-yasuda", "site", at_opening=True, **costliest_options)
        yield nash_pressure(layout, real, store, "site", velocity_set="D3Q27")
        yield ladd_velocity(layout, real, store, "site", velocity_set="D3Q27")
        yield plane_pressure(layout, real, store, velocity_set="D3Q27")
    yield walls.outgoing_density(real, store, velocity_set="D3Q27")
    yield from (walls.wall_forces(*precision) for precision in PRECISIONS)
    yield incoming_depth(real, store, velocity_set="D3Q27")
    yield from _moment_kernels()


def _moment_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of moment storage: every sweep of D3Q19, all others with the largest policies."""
    for real, store in PRECISIONS:
        for force in FORCES:
            for relaxation in RELAXATIONS[:2]:
                yield stream_collide("moments", real, store, relaxation, force, collision="regularised")
    real, store = "float64", "float64"
    for velocity_set in VELOCITY_SETS:
        options = {"velocity_set": velocity_set}
        costliest_options: dict[str, Any] = {"collision": "regularised", **options}
        if velocity_set != "D3Q19":
            yield stream_collide("moments", real, store, "carreau-yasuda", "site", **costliest_options)
            yield stream_collide("moments", "float32", "float32", "carreau-yasuda", "site", **costliest_options)
        yield observe("moments", real, store, "carreau-yasuda", "site", **costliest_options)
        yield nash_pressure("moments", real, store, "site", **options)
        yield ladd_velocity("moments", real, store, "site", **options)
        yield anti_bounce_back_pressure("moments", real, store, **options)
        yield plane_pressure("moments", real, store, **options)
        yield outgoing_populations("moments", real, store, **options)
        yield rebuilt_populations(real, store, **options)
        yield rebuilt_populations("float32", "float16", **options)
