#!/usr/bin/env python3
"""Lets torch's CUDA wheel be imported where no GPU is, without two gigabytes of CUDA libraries: SITE_PACKAGES.

The registry has torch only as a build for CUDA, which links libcublas, libcudnn and a dozen more. For each that is
missing, a shared object of that name with the functions that torch's libraries want is put beside them; a stub that
is called after all says so and returns an error. Needs gcc, nm and readelf.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

STUBBED = ("libcu", "libnccl", "libnvrtc", "libnvshmem", "libnvJitLink", "libcupti")

# Whose function it is, by how its name begins: longer beginnings first.
OWNERS = (
    ("cublasLt", "libcublasLt"),
    ("cublas", "libcublas"),
    ("cudnn", "libcudnn"),
    ("nvrtc", "libnvrtc"),
    ("cufft", "libcufft"),
    ("curand", "libcurand"),
    ("cusparseLt", "libcusparseLt"),
    ("cusparse", "libcusparse"),
    ("cusolver", "libcusolver"),
    ("pnccl", "libnccl"),
    ("nccl", "libnccl"),
    ("nvshmem", "libnvshmem_host"),
    ("cuFile", "libcufile"),
    ("cupti", "libcupti"),
    ("cuda", "libcudart"),
)

PREAMBLE = """#include <stdio.h>
static int no(const char* name) { fprintf(stderr, "CUDA stub %s was called\\n", name); return 999; }
"""


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def missing_libraries(libraries, site):
    """CUDA libraries that torch's own link and nobody installed. libcuda is the driver's: torch opens it itself."""
    present = {path.name for path in libraries} | {path.name for path in site.glob("nvidia/**/lib*.so*")}
    needed = set()
    for path in libraries:
        needed.update(re.findall(r"NEEDED.*\[(.+?)\]", output("readelf", "-dW", path)))
    return sorted(name for name in needed - present if name.startswith(STUBBED) and name != "libcuda.so.1")


def wanted_symbols(libraries):
    """Undefined function names with their version ("" if none), without those that a library of torch defines."""
    undefined, defined = set(), set()
    for path in libraries:
        for line in output("nm", "-D", path).splitlines():
            fields = line.split()
            if len(fields) == 2 and fields[0] in "Uwv":
                undefined.add(fields[1].replace("@@", "@"))
            elif len(fields) == 3:
                defined.add(fields[2].split("@")[0])
    pairs = (symbol.partition("@")[::2] for symbol in undefined)
    return sorted((name, version) for name, version in pairs if name not in defined and re.fullmatch(r"\w+", name))


def owner(name, version, missing):
    """The missing library that has this function, or None."""
    if version in missing:
        return version
    for beginning, library in OWNERS:
        if name.startswith(beginning):
            return next((so for so in missing if so.startswith(library + ".so")), None)
    return None


def build_stub(path, symbols):
    with tempfile.TemporaryDirectory() as folder:
        source, versions = pathlib.Path(folder, "stub.c"), pathlib.Path(folder, "versions.map")
        names = sorted({name for name, _ in symbols})
        source.write_text(PREAMBLE + "".join(f'int {name}(void) {{ return no("{name}"); }}\n' for name in names))
        command = ["gcc", "-w", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-o", str(path), str(source)]
        tags = sorted({version for _, version in symbols if version})
        if tags:
            versions.write_text("".join(f"{tag} {{ global: *; }};\n" for tag in tags))
            command.append(f"-Wl,--version-script={versions}")
        subprocess.run(command, check=True)


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    folder = site / "torch" / "lib"
    libraries = [path for path in folder.glob("*.so*") if path.is_file() and not path.is_symlink()]
    missing = missing_libraries(libraries, site)
    symbols = {name: set() for name in missing}
    for name, version in wanted_symbols(libraries):
        library = owner(name, version, missing)
        if library:
            symbols[library].add((name, version))
    for name in missing:
        build_stub(folder / name, symbols[name])


if __name__ == "__main__":
    main()
