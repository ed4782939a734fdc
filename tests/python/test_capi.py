"""The signatures in glyd/_capi.py are those of include/glyd/*.h, and the errors those of glyd_status."""

import ctypes
import re
from pathlib import Path

import pytest
from glyd import _capi, _capi_cuda, _errors

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
    "glyd_note": _capi.Note,
    "glyd_level": _capi.Level,
    "glyd_level*": ctypes.POINTER(_capi.Level),
    "glyd_read_at": _capi.ReadAt,
    "glyd_write": _capi.Write,
    "glyd_read": _capi.Read,
    "glyd_salvaged": _capi.Salvaged,
    "size_t*": ctypes.POINTER(ctypes.c_size_t),
    "glyd_reader*": ctypes.c_void_p,
    "glyd_reader**": ctypes.POINTER(ctypes.c_void_p),
    "glyd_compressor*": ctypes.c_void_p,
    "glyd_compressor**": ctypes.POINTER(ctypes.c_void_p),
    "glyd_decompressor*": ctypes.c_void_p,
    "glyd_decompressor**": ctypes.POINTER(ctypes.c_void_p),
    "codec_progress": _capi.CodecProgress,
    "char*": ctypes.c_char_p,
    "char**": ctypes.POINTER(ctypes.c_char_p),
    "void*": ctypes.c_void_p,
    "uint16_t*": ctypes.c_void_p,
    "int32_t*": ctypes.c_void_p,
    "int64_t*": ctypes.c_void_p,
    "uint64_t*": ctypes.POINTER(ctypes.c_uint64),
    "glyd_layout*": ctypes.POINTER(_capi.Layout),
    "glyd_text*": ctypes.c_void_p,
    "glyd_text**": ctypes.POINTER(ctypes.c_void_p),
}
STRUCTS = _capi.STRUCTS | _capi_cuda.STRUCTS
SIGNATURES = _capi.SIGNATURES | _capi_cuda.SIGNATURES
SCALARS |= {f"{name}*": ctypes.POINTER(cls) for name, cls in STRUCTS.items()}
SCALARS |= STRUCTS
SCALARS |= {"int32_t": ctypes.c_int32, "glyd_cuda_route_kind": _capi_cuda.RouteKind}
SCALARS |= {f"glyd_cuda_{name}": ctypes.c_void_p for name in ("context*", "pack*")}
SCALARS |= {f"glyd_cuda_{name}": ctypes.POINTER(ctypes.c_void_p) for name in ("context**", "pack**")}


def header_text():
    text = "\n".join((INCLUDE / name).read_text() for name in _capi.HEADERS + _capi_cuda.HEADERS)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    # The one kind of function pointer that is declared in place, under a name that parse_declaration knows.
    text = re.sub(r"int \(\*progress\)\(void\* context, uint64_t content_bytes\)", "codec_progress progress", text)
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
        yield name, [member for line in body.split(";") if line.strip() for member in parse_members(line)]


def parse_members(line):
    """`uint64_t frames, units` -> two of them."""
    first, *others = line.split(",")
    kind, name = parse_declaration(first)
    # Of `uint64_t* a, b` the second would be no pointer: none is declared so.
    assert not others or "*" not in first
    return [(kind, name), *((kind, other.strip()) for other in others)]


FUNCTIONS = {name: (result, arguments) for name, result, arguments in header_functions()}
MEMBERS = dict(header_structs())


def test_every_function_is_declared():
    assert set(FUNCTIONS) == set(SIGNATURES)
    assert len(FUNCTIONS) > 20


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_signature(name):
    result, arguments = FUNCTIONS[name]
    assert (SCALARS[result], [SCALARS[kind] for kind in arguments]) == SIGNATURES[name]


@pytest.mark.parametrize("name", sorted(STRUCTS))
def test_struct(name):
    expected = [(member, SCALARS[kind]) for kind, member in MEMBERS[name]]
    assert expected == list(STRUCTS[name]._fields_)


def test_every_struct_is_declared():
    assert set(MEMBERS) == set(STRUCTS)


def test_status_codes_have_classes():
    codes = {int(code) for code in re.findall(r"GLYD_ERROR_\w+ = (\d+)", header_text())}
    assert codes == set(_errors.BY_STATUS) and len(codes) == 13


def test_layout_numbers():
    numbers = dict(re.findall(r"GLYD_LAYOUT_(\w+) = (\d+)", header_text()))
    assert {k: int(v) for k, v in numbers.items()} == {"RAW": 0, "FAST": 1, "SMALL": 2, "AUTO": 255}


def test_level_numbers():
    numbers = dict(re.findall(r"GLYD_LEVEL_(\w+) = (\d+)", header_text()))
    level = _capi.Level()
    for name, number in numbers.items():
        _capi.lib().glyd_level_from_name(name.lower().encode(), ctypes.byref(level))
        assert level.value == int(number)
    assert sorted(numbers) == ["DEFAULT", "MAX", "ULTRA"]


def test_callback_types():
    """The typedefs of function pointers, read apart and compared with the CFUNCTYPEs."""
    found = {}
    for result, name, arguments in re.findall(r"typedef (\w+) \(\*(\w+)\)\(([^)]*)\);", header_text()):
        kinds = [SCALARS[parse_declaration(part)[0]] for part in arguments.split(",")]
        found[name] = (SCALARS[result], kinds)
    for name, (result, kinds) in found.items():
        assert (SCALARS[name]._restype_, list(SCALARS[name]._argtypes_)) == (result, kinds), name
    assert {"glyd_progress", "glyd_note", "glyd_read_at", "glyd_write", "glyd_read", "glyd_salvaged"} <= set(found)


def test_abi_version():
    assert f"#define GLYD_ABI_VERSION {_capi.ABI_VERSION}\n" in (INCLUDE / "status.h").read_text()
    assert _capi.lib().glyd_abi_version() == _capi.ABI_VERSION
    assert f"#define GLYD_CUDA_ABI_VERSION {_capi_cuda.ABI_VERSION}\n" in (INCLUDE / "cuda.h").read_text()


def test_every_header_is_declared():
    assert set(_capi.HEADERS + _capi_cuda.HEADERS) == {path.name for path in INCLUDE.glob("*.h")} - {"export.h"}


def test_error_carries_the_librarys_text():
    layout = _capi.Layout()
    with pytest.raises(_errors.InvalidArgumentError, match="fast") as caught:
        _capi.lib().glyd_layout_from_name(b"slow", ctypes.byref(layout))
    assert caught.value.status == 1 and isinstance(caught.value, ValueError)
