# SPDX-License-Identifier: BSD-3-Clause
"""Small HemeLB cases for tests: the XML as text, with the sites of a tube along z or those of HemeLB's own tests."""

from __future__ import annotations

from pathlib import Path

from gmy_files import four_cube, large_cylinder
from seiche.domain.shapes import tube
from seiche.io.formats.gmy import write_gmy

COSINE = """
      <condition type="pressure" subtype="cosine">
        <amplitude value="{amplitude}" units="mmHg"/><mean value="{mean}" units="mmHg"/>
        <phase value="0.5" units="rad"/><period value="0.02" units="s"/>
      </condition>"""
PARABOLIC = """
      <condition type="velocity" subtype="parabolic">
        <radius value="1.0e-3" units="m"/><maximum value="4e-3" units="m/s"/>
      </condition>"""
WOMERSLEY = """
      <condition type="velocity" subtype="womersley">
        <radius value="1.0e-3" units="m"/><period value="0.02" units="s"/>
        <pressure_gradient_amplitude value="0.1" units="mmHg/m"/>
        <womersley_number value="8.862269254527579" units="dimensionless"/>
      </condition>"""
OUTPUT = """
  <properties>
    <propertyoutput file="results/whole.dat" period="20">
      <geometry type="whole"/><field type="pressure"/><field type="velocity" name="u"/>
    </propertyoutput>
    <propertyoutput file="plane.xtr" period="40" timestep_mode="multi">
      <geometry type="plane">
        <point value="(0.0,0.0,2e-3)" units="m"/><normal value="(0,0,1)" units="dimensionless"/>
        <radius value="0" units="m"/>
      </geometry>
      <field type="shearstress"/>
    </propertyoutput>
    <propertyoutput file="line.xtr" period="40">
      <geometry type="line">
        <point value="(0.0,0.0,0.0)" units="m"/><point value="(0.0,0.0,4e-3)" units="m"/>
      </geometry>
      <field type="shearrate"/>
    </propertyoutput>
    <checkpoint file="c" period="30"/>
  </properties>"""


def xml(
    *,
    version: str = "5",
    inlet: str = PARABOLIC,
    outlet: str = COSINE.format(mean="0.0", amplitude="0.0"),
    simulation: str = "",
    place: str = '<position value="(0.0,0.0,0.0)" units="m"/>',
    rest: str = "",
) -> str:
    """Return a case of 40 steps in a tube of radius 1 mm and length 4 mm along z, 0.25 mm a voxel."""
    return f"""<?xml version="1.0"?>
<hemelbsettings version="{version}">
  <simulation>
    <step_length value="2e-3" units="s"/><steps value="40" units="lattice"/><stresstype value="1"/>
    <voxel_size value="2.5e-4" units="m"/><origin value="(-0.875e-3,-0.875e-3,0.125e-3)" units="m"/>{simulation}
  </simulation>
  <geometry><datafile path="./tube.gmy"/></geometry>
  <initialconditions><pressure><uniform value="0.0" units="mmHg"/></pressure></initialconditions>
  <inlets>
    <inlet>{inlet}
      <normal value="(0.0,0.0,1.0)" units="dimensionless"/>{place}
    </inlet>
  </inlets>
  <outlets>
    <outlet>{outlet}
      <normal value="(0.0,0.0,-1.0)" units="dimensionless"/><position value="(0.0,0.0,4e-3)" units="m"/>
    </outlet>
  </outlets>{rest}
</hemelbsettings>
"""


def write_case(folder: Path, text: str) -> Path:
    """Write the case and the sites of its tube into `folder`; return the name of the XML."""
    write_gmy(folder / "tube.gmy", tube(1.0e-3, 4.0e-3, 2.5e-4, (0, 0, 1)))
    (folder / "config.xml").write_text(text)
    return folder / "config.xml"


_IOLET = """
  <{kind}s>
    <{kind}>
      <condition type="pressure" subtype="cosine">
        <amplitude value="0.0" units="mmHg" /><mean value="{mean}" units="mmHg" />
        <phase value="0.0" units="rad" /><period value="0.6" units="s" />
      </condition>
      <normal value="(0.0,0.0,{normal})" units="dimensionless" /><position value="(0.0,0.0,{z})" units="m" />
    </{kind}>
  </{kind}s>"""
_VISUALISATION = """
  <visualisation>
    <centre value="(0.0,0.0,0.0)" units="m" />
    <orientation><latitude value="45.0" units="deg" /><longitude value="45.0" units="deg" /></orientation>
    <display brightness="0.03" zoom="1.0" />
    <range><maxstress value="0.1" units="Pa" /><maxvelocity value="0.1" units="m/s" /></range>
  </visualisation>"""


def _iolets(inlet: float, outlet: float, end: float) -> str:
    """Return an inlet and an outlet with their mean pressures (mmHg) at z = -end and end, and a visualisation."""
    first = _IOLET.format(kind="inlet", mean=inlet, normal=1.0, z=f"-{end}")
    return first + _IOLET.format(kind="outlet", mean=outlet, normal=-1.0, z=end) + _VISUALISATION


#: A case like `four_cube.xml` of HemeLB's tests: pressures too large for its time step, outputs of every kind.
FOUR_CUBE = f"""<?xml version="1.0" ?>
<hemelbsettings version="5">
  <simulation>
    <steps value="10" units="lattice" /><step_length value="0.0857" units="s" /><voxel_size value="0.01" units="m" />
    <origin value="(0.0,0.0,0.0)" units="m" /><fluid_density value="1000.0" units="kg/m3" /><stresstype value="1" />
  </simulation>
  <geometry><datafile path="./four_cube.gmy" /></geometry>
  <initialconditions><pressure><uniform value="80.0" units="mmHg"/></pressure></initialconditions>
{_iolets(80.1, 80.0, 0.05)}
  <properties>
    <propertyoutput period="2" file="wholegeometryvelocityandstress.dat">
      <geometry type="whole" /><field type="velocity" name="Whole velocity field"/><field type="vonmisesstress"/>
    </propertyoutput>
    <propertyoutput period="5" file="centrelinepressure.dat">
      <geometry type="line"><point value="(2.5,2.5,0)" units="m" /><point value="(2.5,2.5,5)" units="m" /></geometry>
      <field type="pressure"/>
    </propertyoutput>
    <propertyoutput period="5" file="surfaceshearstress.dat">
      <geometry type="surface" /><field type="shearstress"/>
    </propertyoutput>
    <propertyoutput period="10" file="surfacetraction.dat">
      <geometry type="surfacepoint"><point value="(2.5,2.5,0)" units="m" /></geometry><field type="traction"/>
    </propertyoutput>
  </properties>
</hemelbsettings>
"""

#: A case like `large_cylinder.xml` of HemeLB's tests: no fluid, so its defaults, and elements that change nothing.
LARGE_CYLINDER = f"""<?xml version="1.0" ?>
<hemelbsettings version="5">
  <simulation>
    <step_length units="s" value="4.4e-07" /><steps units="lattice" value="50000" /><stresstype value="1" />
    <voxel_size units="m" value="1.4e-06" /><origin units="m" value="(-1.05e-05,-1.05e-05,-2.45e-05)" />
  </simulation>
  <geometry><datafile path="large_cylinder.gmy" /></geometry>
{_iolets(1e-5, 0, 2.4e-5)}
  <initialconditions><pressure><uniform units="mmHg" value="0.0" /></pressure></initialconditions>
  <monitoring><incompressibility/></monitoring>
</hemelbsettings>
"""

#: Cases with the sites of HemeLB's own tests: the XML, and what makes the geometry file.
PUBLIC = {"four_cube": (FOUR_CUBE, four_cube), "large_cylinder": (LARGE_CYLINDER, large_cylinder)}


def write_public_case(folder: Path, name: str) -> Path:
    """Write the case `name` of `PUBLIC` and its geometry file into `folder`; return the name of the XML."""
    text, vessel = PUBLIC[name]
    (folder / f"{name}.gmy").write_bytes(vessel().file())
    (folder / f"{name}.xml").write_text(text)
    return folder / f"{name}.xml"
