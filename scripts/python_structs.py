#!/usr/bin/env python3
"""Writes python/mnp/_structs.py: the constants, structs and calls of include/mnp*.h for ctypes.

    scripts/python_structs.py            writes the file
    scripts/python_structs.py --check    says whether it is what the headers say

The headers are plain enough to be read by regular expressions; what is not understood is an error,
never left out. Pointers become addresses (c_void_p), texts c_char_p, enumerations c_int.
"""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "python" / "mnp" / "_structs.py"

BASIC = {
    "void": "None",
    "bool": "c_bool",
    "int": "c_int",
    "double": "c_double",
    "float": "c_float",
    "size_t": "c_size_t",
    "int64_t": "c_int64",
    "uint64_t": "c_uint64",
    "int32_t": "c_int32",
    "uint32_t": "c_uint32",
    "uint8_t": "c_uint8",
}

HEAD = '''\
"""The constants, structs and calls of include/mnp*.h. Written by scripts/python_structs.py.

Names are those of C. Pointers are addresses (c_void_p); a struct with a `size` sets it by itself.
"""

from ctypes import (
    @NAMES@
)


class Sized(Structure):
    """A struct whose first member is its size."""

    def __init__(self, **values):
        super().__init__(sizeof(type(self)), **values)

'''


class Headers:
    """All headers, without comments and preprocessor lines."""

    def __init__(self) -> None:
        self.version = ""
        self.constants: dict[str, float] = {}
        self.enums: set[str] = set()
        self.structs: dict[str, list[tuple[str, str]]] = {}
        self.callbacks: dict[str, str] = {}
        self.calls: dict[str, tuple[str, list[str]]] = {}
        files = sorted((ROOT / "include").glob("mnp*.h"), key=lambda f: (f.name != "mnp.h", f.name))
        for file in files:
            self.read(file.read_text())

    def read(self, text: str) -> None:
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        defined = r"^#define (MNP_[A-Z]+) +([\d.]+|\"[^\"]*\")\s*$"
        for name, value in re.findall(defined, text, re.MULTILINE):
            if name == "MNP_VERSION":
                self.version = value.strip('"')
            else:
                self.constants[name] = float(value)
        text = re.sub(r"^#.*?(?<!\\)$", "", text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r'extern "C" \{|^\}\s*$', "", text, flags=re.MULTILINE)
        for statement in split(text):
            self.statement(" ".join(statement.split()))

    def statement(self, s: str) -> None:
        if m := re.fullmatch(r"(typedef )?enum (\w+ )?\{(.*)\} ?(\w+)?", s):
            self.enum(m[3])
            if m[4]:
                self.enums.add(m[4])
        elif m := re.fullmatch(r"typedef struct \w+ \{(.*)\} (\w+)", s):
            fields = [f for part in m[1].split(";") if part.strip() for f in self.fields(part)]
            self.structs[m[2]] = fields
        elif re.fullmatch(r"typedef struct (\w+) \1", s):
            pass
        elif m := re.fullmatch(r"typedef (.*?)\(\*(\w+)\)\((.*)\)", s):
            self.callbacks[m[2]] = self.callback(m[1], m[3])
        elif m := re.fullmatch(r"MNP_API (.*?[ *])(\w+)\((.*)\)", s):
            self.calls[m[2]] = (self.type(m[1]), self.arguments(m[3]))
        elif s:
            sys.exit(f"python_structs.py does not understand: {s}")

    def enum(self, body: str) -> None:
        value = -1
        for item in filter(None, (part.strip() for part in body.split(","))):
            name, _, given = (part.strip() for part in item.partition("="))
            value = int(eval(given, {}, self.constants)) if given else value + 1
            self.constants[name] = value

    def fields(self, text: str) -> list[tuple[str, str]]:
        """`double *mean, *sd` or `double pit[10]` or `void (*progress)(...)`."""
        text = text.strip()
        if m := re.fullmatch(r"(.*?)\(\*(\w+)\)\((.*)\)", text):
            return [(m[2], self.callback(m[1], m[3]))]
        base, first = re.fullmatch(r"((?:const )?(?:struct )?\w+) ?(.*)", text).groups()
        out = []
        for one in first.split(","):
            stars, name, count = re.fullmatch(r" ?([* ]*)(\w+)(?:\[(\w+)\])?", one).groups()
            kind = self.type(base + " " + stars)
            if count:
                kind = f"{kind} * {int(self.constants.get(count, 0) or count)}"
            out.append((name, kind))
        return out

    def type(self, text: str) -> str:
        stars = text.count("*") + text.count("[")
        base = re.sub(r"\bconst\b|\bstruct\b|[*\s]|\[\w*\]", "", text)
        if stars:
            return "c_char_p" if base == "char" and stars == 1 and "const" in text else "c_void_p"
        if base in self.enums:
            return "c_int"
        if base in self.callbacks:
            return self.callbacks[base]
        return base if base in self.structs else BASIC[base]

    def arguments(self, text: str) -> list[str]:
        if text.strip() in ("", "void"):
            return []
        out = []
        for part in text.split(","):
            words = re.fullmatch(r"\s*(.*?)(\w+)(\[\w*\])?\s*", part)
            out.append(self.type(words[1] + (words[3] or "")))
        return out

    def callback(self, result: str, arguments: str) -> str:
        return f"CFUNCTYPE({', '.join([self.type(result), *self.arguments(arguments)])})"


def split(text: str) -> list[str]:
    """Statements: what ends with a semicolon outside all braces."""
    out, depth, start = [], 0, 0
    for k, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if c == ";" and depth == 0:
            out.append(text[start:k])
            start = k + 1
    return out


def wrapped(opening: str, items: list[str], closing: str, indent: str) -> str:
    """As a formatter lays it out: on one line where it fits in 100 columns."""
    line = indent + opening + ", ".join(items) + closing
    if len(line) <= 100:
        return line + "\n"
    inner = "".join(f"{indent}    {item},\n" for item in items)
    return f"{indent}{opening}\n{inner}{indent}{closing}\n"


def render(h: Headers) -> str:
    out = [HEAD, f'\nVERSION = "{h.version}"\n\n']
    out += [f"{name} = {value!r}\n" for name, value in h.constants.items()]
    for name, fields in h.structs.items():
        sized = fields[0] == ("size", "c_size_t")
        out.append(f"\n\nclass {name}({'Sized' if sized else 'Structure'}):\n")
        out.append("    _fields_ = [\n")
        out += [f'        ("{field}", {kind}),\n' for field, kind in fields]
        out.append("    ]\n")
    out.append("\n\n# name: (result, arguments)\nCALLS = {\n")
    for name, (result, arguments) in h.calls.items():
        listed = "(" + ", ".join(arguments) + ("," if len(arguments) == 1 else "") + ")"
        line = f'    "{name}": ({result}, {listed}),\n'
        if len(line) > 101:
            line = f'    "{name}": (\n        {result},\n'
            inner = wrapped("(", arguments, ")", "        ")
            line += inner[:-1] + ",\n    ),\n"
        out.append(line)
    out.append("}\n")
    text = "".join(out)
    names = sorted(set(re.findall(r"CFUNCTYPE|c_[a-z0-9_]+", text)), key=str.lower)
    names = [*(n for n in names if n.isupper()), "Structure", *names, "sizeof"]
    return text.replace("@NAMES@", ",\n    ".join(dict.fromkeys(names)) + ",")


def main() -> None:
    text = render(Headers())
    if sys.argv[1:] == ["--check"]:
        if not OUT.exists() or OUT.read_text() != text:
            sys.exit(f"{OUT} is not what the headers say: run scripts/python_structs.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        OUT.write_text(text)


if __name__ == "__main__":
    main()
