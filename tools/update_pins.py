#!/usr/bin/env python3
"""Renews the hashes in pins.txt after a version was changed there: `update_pins.py`.

Asks pip for what it would install of each name==version, for each supported Python, and writes down the sha256 of
each wheel. Names, order, versions and comments stay. pip may download a large wheel to learn its hash.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

PINS = pathlib.Path(__file__).with_name("pins.txt")
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 26, 25, 24, 17, 12, 5)]
PLATFORMS += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64", "any"]
REQUIREMENT = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ]+)")


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def rounds(requirements):
    """The same in lists that have no name twice: pip installs one version of a package."""
    left = list(requirements)
    while left:
        chosen = {canonical(requirement.split("==")[0]): requirement for requirement in reversed(left)}
        yield list(chosen.values())
        left = [requirement for requirement in left if requirement not in chosen.values()]


def hashes(requirements, python):
    """Requirement -> sha256 of the wheel that pip picks for this Python."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "--no-deps"]
        command += ["--only-binary", ":all:", "--python-version", python, "--target", folder, "--report", str(report)]
        command += [word for platform in PLATFORMS for word in ("--platform", platform)]
        subprocess.run([*command, *requirements], check=True)
        items = json.loads(report.read_text())["install"]
    found = {canonical(i["metadata"]["name"]): i["download_info"]["archive_info"]["hashes"]["sha256"] for i in items}
    return {requirement: found[canonical(requirement.split("==")[0])] for requirement in requirements}


def main():
    lines = PINS.read_text().splitlines()
    matches = [REQUIREMENT.match(line) for line in lines]
    requirements = list(dict.fromkeys(match[0] for match in matches if match))
    by_python = [{} for _ in PYTHONS]
    for some in rounds(requirements):
        for python, found in zip(PYTHONS, by_python, strict=True):
            found.update(hashes(some, python))
    for i, match in enumerate(matches):
        if match:
            digests = dict.fromkeys(found[match[0]] for found in by_python)
            lines[i] = " ".join([match[0], *(f"--hash=sha256:{digest}" for digest in digests)])
    PINS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
