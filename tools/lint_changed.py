#!/usr/bin/env python3
"""Runs clang-tidy over the source files that changed of late, or over those given.

What counts as changed: everything that differs from the commit ten before the last (or from the
commit in LINT_BASE), and sources whose own headers did. `make lint` reads everything, at ten to
twenty seconds a file.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path("build/tidy")


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def changed_files():
    commits = git("rev-list", "-11", "HEAD").split()
    base = os.environ.get("LINT_BASE") or commits[-1]
    return set(git("diff", "--name-only", base, "--", "*.cc", "*.h").split())


def main():
    subprocess.run(["cmake", "--preset", "tidy", "--log-level=WARNING"], check=True)
    objects = {os.path.relpath(entry["file"]): re.search(r" -o (\S+)", entry["command"])[1]
               for entry in json.loads((BUILD / "compile_commands.json").read_text())}
    changed = set(sys.argv[1:]) or changed_files()
    # A header is read through the source that carries its name.
    wanted = sorted(object for path, object in objects.items()
                    if path in changed or path.removesuffix(".cc") + ".h" in changed)
    print(f"lint: {len(wanted)} of {len(objects)} files changed", flush=True)
    if wanted:
        sys.exit(subprocess.run(["cmake", "--build", "--preset", "tidy", "--target", *wanted,
                                 "--", "-k", "0"]).returncode)


main()
