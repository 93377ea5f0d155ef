#!/usr/bin/env python3
"""Writes tests/cases/ort_slots.txt: the order of the functions in ONNX Runtime's C interface.

The C interface is one table of function pointers that only grows at its end, so a function's place in it (its slot)
never changes. tranship addresses the table by slot and has no header of ONNX Runtime. This file is the second opinion:
the Rust crate `ort-sys` declares the same table as a struct. Names and numbers are taken, nothing else.

    cargo fetch        # in a folder whose Cargo.toml depends on ort-sys = "=2.0.0-rc.15"
    tools/make_ort_slots.py ~/.cargo/registry/src/*/ort-sys-2.0.0-rc.15/src/lib.rs tests/cases/ort_slots.txt
"""

import re
import sys


def slots(source: str) -> list[str]:
    """The field names of `pub struct OrtApi`, in order; a field declared twice (for two platforms) counts once."""
    body = source.split("pub struct OrtApi {", 1)[1]
    body = body[: body.index("\n}")]
    names: list[str] = []
    for match in re.finditer(r"^\tpub (\w+):", body, re.MULTILINE):
        if not names or names[-1] != match.group(1):
            names.append(match.group(1))
    if len(set(names)) != len(names):
        raise SystemExit("a field appears twice in different places: the parser no longer fits this crate")
    return names


def main() -> None:
    crate, output = sys.argv[1:]
    with open(crate, encoding="utf-8") as file:
        names = slots(file.read())
    with open(output, "w", encoding="utf-8") as file:
        file.write("# slot name: the table of ONNX Runtime's C interface as the crate ort-sys 2.0.0-rc.15 orders it.\n")
        file.write("# Made by tools/make_ort_slots.py.\n")
        file.writelines(f"{slot} {name}\n" for slot, name in enumerate(names))


if __name__ == "__main__":
    main()
