#!/usr/bin/env python3
"""Runs clang-tidy over the source files that changed of late, or over those given.

What counts as changed: the files of the last ten commits and what is not committed, the newest
first, and no more than take some minutes, at ten to twenty seconds a file and core; with LINT_BASE
all that differs from that commit. A header is read through the source that carries its name.
`make lint` reads everything.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path("build/tidy")
FILES_MAX = 24


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def changed_since(base):
    return git("diff", "--name-only", base, "--", "*.cc", "*.h").split()


def changed_files():
    """The newest first."""
    files = changed_since("HEAD")
    for commit in git("rev-list", "-10", "HEAD").split():
        files += git("diff-tree", "--no-commit-id", "--name-only", "-r", commit, "--", "*.cc", "*.h").split()
    return files


def main():
    subprocess.run(["cmake", "--preset", "tidy", "--log-level=WARNING"], check=True)
    objects = {os.path.relpath(entry["file"]): re.search(r" -o (\S+)", entry["command"])[1]
               for entry in json.loads((BUILD / "compile_commands.json").read_text())}
    base = os.environ.get("LINT_BASE")
    asked = sys.argv[1:] or (changed_since(base) if base else None)
    changed = changed_files() if asked is None else asked
    sources = dict.fromkeys(re.sub(r"\.h$", ".cc", path) for path in changed)
    wanted = [objects[source] for source in sources if source in objects]
    read = wanted if asked is not None else wanted[:FILES_MAX]
    print(f"lint: {len(wanted)} of {len(objects)} files changed", flush=True)
    if len(read) < len(wanted):
        print(f"lint: reads the {len(read)} that changed last", flush=True)
    if read:
        sys.exit(subprocess.run(["cmake", "--build", "--preset", "tidy", "--target", *read,
                                 "--", "-k", "0"]).returncode)


main()
