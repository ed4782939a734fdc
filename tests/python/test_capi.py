"""The signatures in glyd/_capi.py are those of include/glyd/*.h, and the errors those of glyd_status."""

import ctypes
import re
from pathlib import Path

import pytest
from glyd import _capi, _errors

INCLUDE = Path(__file__).resolve().parents[2] / "include" / "glyd"

SCALARS = {
    "void": None,
    "int": ctypes.c_int,
    "size_t": ctypes.c_size_t,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "glyd_status": _capi.Status,
    "glyd_layout": _capi.Layout,
    "glyd_progress": _capi.Progress,
    "char*": ctypes.c_char_p,
    "char**": ctypes.POINTER(ctypes.c_char_p),
    "void*": ctypes.c_void_p,
    "uint16_t*": ctypes.c_void_p,
    "int64_t*": ctypes.c_void_p,
    "uint64_t*": ctypes.POINTER(ctypes.c_uint64),
    "glyd_layout*": ctypes.POINTER(_capi.Layout),
    "glyd_text*": ctypes.c_void_p,
    "glyd_text**": ctypes.POINTER(ctypes.c_void_p),
}
SCALARS |= {f"{name}*": ctypes.POINTER(cls) for name, cls in _capi.STRUCTS.items()}
SCALARS |= _capi.STRUCTS


def header_text():
    text = "\n".join((INCLUDE / name).read_text() for name in _capi.HEADERS)
    return re.sub(r"//[^\n]*", "", text)


def parse_declaration(text):
    """`const char* name` -> ("char*", "name"), without const."""
    text = " ".join(re.sub(r"\bconst\b", "", text).split())
    match = re.fullmatch(r"(\w+(?: \w+)*?)\s*((?:\*\s*)*)\s*(\w+)", text)
    assert match, text
    return match[1] + match[2].replace(" ", ""), match[3]


def header_functions():
    for result, name, arguments in re.findall(
        r"GLYD_API\s+([\w\s*]+?)(\bglyd_\w+)\(([^)]*)\)\s*GLYD_NOEXCEPT;", header_text()
    ):
        kind, _ = parse_declaration(f"{result} {name}")
        parts = [] if arguments.strip() in ("", "void") else arguments.split(",")
        yield name, kind, [parse_declaration(part)[0] for part in parts]


def header_structs():
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", header_text(), re.S):
        yield name, [parse_declaration(member) for member in body.split(";") if member.strip()]


FUNCTIONS = {name: (result, arguments) for name, result, arguments in header_functions()}
MEMBERS = dict(header_structs())


def test_every_function_is_declared():
    assert set(FUNCTIONS) == set(_capi.SIGNATURES)
    assert len(FUNCTIONS) > 20


@pytest.mark.parametrize("name", sorted(_capi.SIGNATURES))
def test_signature(name):
    result, arguments = FUNCTIONS[name]
    assert (SCALARS[result], [SCALARS[kind] for kind in arguments]) == _capi.SIGNATURES[name]


@pytest.mark.parametrize("name", sorted(_capi.STRUCTS))
def test_struct(name):
    expected = [(member, SCALARS[kind]) for kind, member in MEMBERS[name]]
    assert expected == list(_capi.STRUCTS[name]._fields_)


def test_every_struct_is_declared():
    assert set(MEMBERS) == set(_capi.STRUCTS)


def test_status_codes_have_classes():
    codes = {int(code) for code in re.findall(r"GLYD_ERROR_\w+ = (\d+)", header_text())}
    assert codes == set(_errors.BY_STATUS) and len(codes) == 13


def test_layout_numbers():
    numbers = dict(re.findall(r"GLYD_LAYOUT_(\w+) = (\d+)", header_text()))
    assert {k: int(v) for k, v in numbers.items()} == {"RAW": 0, "FAST": 1, "SMALL": 2, "AUTO": 255}


def test_abi_version():
    assert f"#define GLYD_ABI_VERSION {_capi.ABI_VERSION}\n" in (INCLUDE / "status.h").read_text()
    assert _capi.lib().glyd_abi_version() == _capi.ABI_VERSION


def test_error_carries_the_librarys_text():
    layout = _capi.Layout()
    with pytest.raises(_errors.InvalidArgumentError, match="fast") as caught:
        _capi.lib().glyd_layout_from_name(b"slow", ctypes.byref(layout))
    assert caught.value.status == 1 and isinstance(caught.value, ValueError)
