# SPDX-License-Identifier: BSD-3-Clause
"""Small HemeLB cases for tests: the XML as text, with the sites of a tube along z."""

from __future__ import annotations

from pathlib import Path

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
