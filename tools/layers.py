#!/usr/bin/env python3
"""Checks the rules that no compiler checks: who may include whom, which library belongs to which
folder, how long a file may be, and that no work is left marked as urgent.

The order of LAYERS is the architecture: a folder may include those before it, never those after.
"""
import pathlib
import re
import sys

LAYERS = ["base", "model", "schedule", "wire", "io", "journal", "run", "pipeline", "sim", "config", "report", "ranks", "yard", "cli"]
QUIET = {"base", "model", "schedule", "wire", "sim"}
LINES_MAX = 500
ONLY_HERE = {
    "boost/": {"io"},
    "sqlite3.h": {"journal"},
    "yaml-cpp/": {"config"},
    "CLI/": {"cli"},
    "spdlog/": {"run", "cli"},
    "<thread>": {"io", "pipeline", "ranks", "yard"},
}
# What the quiet half may not have: the doors to the machine.
LOUD_HEADERS = re.compile(
    r"<(sys/|unistd\.h|fcntl\.h|signal\.h|csignal|spawn\.h|fstream|iostream|filesystem|thread|mutex|random|ctime|time\.h)")
HEAVY = re.compile(r"nlohmann/json\.hpp|boost/|CLI/|yaml-cpp/|sqlite3\.h")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<][^">]+[">])')
SOURCES = ("src", "include", "tests", "bench", "fuzz", "examples")


def include_faults(path, folder, number, target):
    if target.startswith('"') and "/" not in target:
        yield f"{path}:{number}: includes are full paths from the root of the sources"
    used = target.strip('"').split("/")[0]
    if target.startswith('"') and folder in LAYERS and used in LAYERS:
        if LAYERS.index(used) > LAYERS.index(folder):
            yield f"{path}:{number}: {folder}/ may not use {used}/, which comes after it"
    of_tests = path.stem.endswith("_test") or "planted" in path.parts
    if folder in QUIET and LOUD_HEADERS.match(target) and not of_tests:
        yield f"{path}:{number}: {folder}/ is quiet and may not use {target}"
    if folder in LAYERS and path.suffix == ".h" and HEAVY.search(target):
        yield f"{path}:{number}: {target} is heavy: only .cc files include it"
    for library, homes in ONLY_HERE.items():
        if library in target and folder in LAYERS and folder not in homes:
            yield f"{path}:{number}: only {', '.join(sorted(homes))} may use {target}"


def faults(path):
    folder = path.parts[1] if path.parts[0] == "src" else ""
    lines = path.read_text().splitlines()
    if len(lines) > LINES_MAX:
        yield f"{path}:{LINES_MAX}: {len(lines)} lines, more than {LINES_MAX}: it holds two things"
    if path.suffix == ".h" and not lines[0].startswith("// "):
        yield f"{path}:1: a header starts with what it is for"
    for number, line in enumerate(lines, 1):
        if "TODO(now)" in line:
            yield f"{path}:{number}: TODO(now) is for before the commit"
        if match := INCLUDE.match(line):
            yield from include_faults(path, folder, number, match[1])


files = [p for top in SOURCES for p in sorted(pathlib.Path(top).rglob("*.[hc]*")) if p.suffix in (".h", ".cc")]
found = [fault for path in files for fault in faults(path)]
print("\n".join(found) if found else f"layers: ok, {len(files)} files")
sys.exit(bool(found))
