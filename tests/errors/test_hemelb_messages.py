# SPDX-License-Identifier: BSD-3-Clause
"""A wrong HemeLB file gives one line with file, line, element and what is supported; no file does worse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from case_files import check_read_or_rejected, read_case
from hemelb_files import COSINE, OUTPUT, PARABOLIC, WOMERSLEY, write_case, xml
from seiche.case.flow.check import describe
from seiche.case.loading import prepare
from seiche.cli import main
from seiche.errors import CaseError, FormatError

PLACES = "point, normal, radius"


def changed(old: str, new: str, text: str | None = None) -> str:
    text = xml(rest=OUTPUT) if text is None else text
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: not XML: no element found"),
        ("<a><b></a>", "line 1: not XML: mismatched tag"),
        ('<?xml version="1.0" encoding="klingon"?><a/>', "line 1: cannot be read: "),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "line 1: it declares a document type, which could define"),
        ("<a>" * 50, "line 1: elements are nested more than 40 deep"),
        ("<a>" + "<b/>" * 100_001 + "</a>", "line 1: more than 100000 elements"),
        ("<config/>", "line 1, config: this is not a HemeLB case; its first element must be <hemelbsettings>"),
        ("<hemelbsettings/>", 'hemelbsettings: the attribute "version" is missing; it has none'),
        (xml(version="4"), 'line 2, hemelbsettings: version "4" is not supported; expected 3 or 5'),
        ('<hemelbsettings version="5"/>', "hemelbsettings: the element <simulation> is missing; it is empty"),
        (
            xml(rest="<redbloodcells/>"),
            "redbloodcells: this element is not supported; supported here are simulation, geometry,",
        ),
        (xml(rest="<geometry/>"), "geometry[2]: is given twice"),
        (
            xml(simulation='<elastic_wall_stiffness value="1" units="lattice"/>'),
            "simulation/elastic_wall_stiffness: elastic walls are not supported; without this element the walls are ri",
        ),
        (
            xml(rest='<monitoring><steady_flow_convergence tolerance="1" terminate="true"/></monitoring>'),
            "monitoring/steady_flow_convergence: tolerance 1 is out of range; expected > 0 and < 1",
        ),
        (
            xml(rest='<monitoring><steady_flow_convergence tolerance="x" terminate="true"/></monitoring>'),
            'monitoring/steady_flow_convergence: tolerance "x" is not a number',
        ),
        (
            xml(simulation='<wobble value="1"/>'),
            "simulation/wobble: this element is not supported; supported here are step_length, steps,",
        ),
        (changed('value="2e-3" units="s"', 'value="2e-3" units="ms"'), 'step_length: units "ms" are not supported'),
        (changed('value="2e-3" units="s"', 'value="2e-3"'), 'step_length: the attribute "units" is missing; it has va'),
        (changed('value="2e-3" units="s"', 'value="abc" units="s"'), 'step_length: value "abc" is not a number'),
        (changed('value="2e-3" units="s"', 'value="1e999" units="s"'), 'value "1e999" is not a number'),
        (changed('value="2e-3" units="s"', 'value="-1" units="s"'), "value -1 is out of range; expected > 0"),
        (changed('value="40" units', 'value="4.5" units'), 'simulation/steps: value "4.5" is not a whole number >= 0'),
        (changed('"40" units="lattice"', '"40" units="s"'), 'steps: units "s" are not supported; expected "lattice"'),
        (changed('stresstype value="1"', 'stresstype value="7"'), 'stresstype: value "7" is not known; expected -1, 0'),
        (changed("(-0.875e-3,", "("), "simulation/origin: value .* is not a vector such as (0.0,0.0,1.0)"),
        (changed("(-0.875e-3,", "(1e999,"), "simulation/origin: value .* is not a vector"),
        (changed('path="./tube.gmy"', 'file="x"'), 'geometry/datafile: the attribute "path" is missing; it has file'),
        (changed('path="./tube.gmy"', 'path=" "'), 'geometry/datafile: path " " is not a usable file name'),
        (changed("<uniform", "<other"), "initialconditions/pressure/other: this element is not supported; supported"),
        (
            changed("<pressure><uniform", '<checkpoint file="a"/><pressure><uniform'),
            "initialconditions/checkpoint: a checkpoint of HemeLB cannot be read; expected pressure/uniform",
        ),
        (
            changed("<pressure><uniform", '<time value="41" units="lattice"/><pressure><uniform'),
            "initialconditions/time: the first step 41 is after the last one, 40",
        ),
        (
            changed(
                "<pressure><uniform",
                '<time value="9" units="lattice"/><pressure><uniform',
                xml(simulation='<extra_warmup_steps value="10" units="lattice"/>'),
            ),
            "initialconditions/time: a first step is not supported with extra_warmup_steps; remove one of the two",
        ),
        (
            changed(
                "<pressure><uniform",
                '<time value="9" units="lattice"/><pressure><uniform',
                xml(inlet='<condition type="pressure" subtype="file"><path value="p.txt"/></condition>'),
            ),
            "inlets/inlet/condition: initialconditions starts the run at 0.016 s, but a table starts at its first",
        ),
        (
            changed("<uniform", '<checkpoint file="a"/><uniform'),
            "initialconditions/pressure/checkpoint: a checkpoint of HemeLB cannot be read; expected",
        ),
        (
            xml(inlet='<condition type="pressure" subtype="multiscale"/>'),
            'inlets/inlet/condition: type="pressure" subtype="multiscale" is not supported; expected one of '
            "pressure/cosine, .*velocity/parabolic, velocity/womersley",
        ),
        (
            xml(inlet='<condition type="windkessel" subtype="GKmodel"><R value="1" units="kg/m^4*s"/></condition>'),
            "inlets/inlet/condition: the element <C> is missing; it has no default, "
            'expected <C value="..." units="m^4*s^2/kg"/>, the compliance: the relaxation time of the outlet '
            "divided by its resistance R",
        ),
        (xml(inlet=""), "inlets/inlet: the element <condition> is missing; it has normal, position"),
        (changed("</inlets>", "<foo/></inlets>"), "inlets/foo: this element is not supported; supported here are inl"),
        (changed("<maximum", '<speed value="1"/><maximum'), "condition/speed: this element is not supported; suppor"),
        (
            xml(place='<position value="(0,0,0)" units="cm"/>'),
            'inlet/position: units "cm" are not supported; expected "m" or "lattice"',
        ),
        (
            changed('value="0.1" units="mmHg/m"', 'value="1e308" units="mmHg/m"', xml(inlet=WOMERSLEY)),
            "condition: the combination of its values overflows; check their units",
        ),
        (
            changed('value="8.862269254527579"', 'value="1e-9"', xml(inlet=WOMERSLEY)),
            "condition/womersley_number: value 1e-09 is out of range (0.01 to 1000)",
        ),
        (changed('file="plane.xtr"', 'file="../"'), 'propertyoutput[2]: file ".." is not a usable file name'),
        (changed('period="40"', 'period="0"'), 'propertyoutput[2]: period "0" is not a whole number >= 1'),
        (
            changed('mode="multi"', 'mode="single"'),
            'timestep_mode "single" is not supported; expected "multi"',
        ),
        (
            changed('field type="shearstress"', 'field type="distributions"'),
            'propertyoutput[2]/field: type "distributions" is not supported; expected one of pressure, velocity,',
        ),
        (changed('<field type="shearstress"/>', ""), "propertyoutput[2]: the element <field> is missing; at least one"),
        (changed('type="plane"', 'type="torus"'), 'geometry: type "torus" is not supported; expected one of whole'),
        (
            changed('<radius value="0"', '<size value="0"'),
            f"geometry/size: this element is not supported; supported here are {PLACES}",
        ),
        (
            changed('<point value="(0.0,0.0,4e-3)" units="m"/>', ""),
            "propertyoutput[3]/geometry: 1 points are given; line needs 2",
        ),
        (changed('value="2e-3" units="s"', 'value="1e300" units="s"'), 'lattice.step: "1e+300 s" is out of'),
    ],
)
def test_errors_are_reported_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.xml"
    path.write_text(text)
    with pytest.raises((CaseError, FormatError)) as raised:
        read_case(path)
    output = str(raised.value)
    assert output.startswith(f"{path}: ")
    assert "\n" not in output
    assert re.search(".*".join(map(re.escape, message.split(".*"))), output), output


def test_files_that_are_not_there_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "no.xml")]) == 2
    message = f"seiche: error: {tmp_path / 'no.xml'}: cannot read the case file: No such file or directory\n"
    assert capsys.readouterr().err == message
    path = write_case(tmp_path, xml())
    (tmp_path / "tube.gmy").unlink()
    assert main(["run", str(path)]) == 2
    message = f"seiche: error: {path}: geometry: {tmp_path / 'tube.gmy'}: No such file or directory\n"
    assert capsys.readouterr().err == message


def test_more_inlets_than_the_sites_have_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = xml()
    one = text[text.index("<inlet>") : text.index("</inlet>") + len("</inlet>")]
    path = write_case(tmp_path, text.replace(one, one + one))
    assert main(["check", str(path)]) == 2
    assert 'the geometry has no opening "inlet1"; its openings are inlet0, outlet0' in capsys.readouterr().err


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.xml"
    path.write_bytes(b" " * (4 * 1024 * 1024 + 1))
    with pytest.raises(FormatError, match="an XML case has at most 4 MiB; this is not a case file"):
        read_case(path)


VALID = [
    xml(rest=OUTPUT).encode(),
    xml(version="3", inlet=WOMERSLEY, outlet=COSINE.format(mean="1", amplitude="2")).encode(),
]
ODD = ["1e308", "-0", "(1,2,1e308)", "NaN", "9" * 50]
ATTRIBUTES = [match.span(1) for match in re.finditer(r'="([^"]*)"', VALID[0].decode())]


def read(content: bytes) -> None:
    check_read_or_rejected(content, "config.xml", 1500)


@given(st.binary(max_size=300))
def test_any_bytes(content: bytes) -> None:
    read(content)
    read(b'<?xml version="1.0"?><hemelbsettings version="5">' + content)


@given(st.sampled_from(VALID), st.data())
def test_a_truncated_file_or_flipped_bits(valid: bytes, data: st.DataObject) -> None:
    content = bytearray(valid)
    for _ in range(data.draw(st.integers(0, 3))):
        bit = data.draw(st.integers(0, 8 * len(valid) - 1))
        content[bit // 8] ^= 1 << bit % 8
    read(bytes(content[: data.draw(st.integers(0, len(valid)) | st.just(len(valid)))]))


@settings(max_examples=200)
@given(
    st.sampled_from(ATTRIBUTES), st.text(max_size=30) | st.sampled_from(["1e308", "-0", "(1,2,1e308)", "NaN", "9" * 50])
)
def test_any_text_instead_of_an_attribute(span: tuple[int, int], text: str) -> None:
    for character, escaped in (("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;")):
        text = text.replace(character, escaped)
    valid = VALID[0].decode()
    read((valid[: span[0]] + text + valid[span[1] :]).encode(errors="surrogatepass"))


NAMES = sorted(set(re.findall(r"<(\w+)", xml(rest=OUTPUT) + PARABOLIC)))


@settings(max_examples=100)
@given(st.sampled_from(NAMES), st.sampled_from([*NAMES, "visualisation", "condition"]))
def test_any_element_instead_of_another(old: str, new: str) -> None:
    valid = VALID[0].decode()
    read(re.sub(rf"(</?){old}\b", rf"\g<1>{new}", valid).encode())


NUMBERS = ["0", "-0", "1", "-1", "1e-300", "1e300", "1e-30", "1e30", "1e29", "-1e29", "1e-29", "123456789012345", "0.5"]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(VALID), st.data())
def test_any_numbers_are_rejected_or_make_a_case(tmp_path: Path, valid: bytes, data: st.DataObject) -> None:
    text = valid.decode()
    for _ in range(data.draw(st.integers(1, 2))):
        start, end = data.draw(st.sampled_from([m.span(1) for m in re.finditer(r'value="([^"]*)"', text)]))
        several = text[start] == "("
        numbers = [data.draw(st.sampled_from(NUMBERS)) for _ in range(3 if several else 1)]
        text = text[:start] + (f"({','.join(numbers)})" if several else numbers[0]) + text[end:]
    path = write_case(tmp_path, text)
    try:
        setup = prepare(path)
    except (CaseError, FormatError) as error:
        assert "\n" not in str(error)
    else:
        assert describe(setup, measure=False)
