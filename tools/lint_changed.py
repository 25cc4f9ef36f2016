#!/usr/bin/env python3
"""Runs clang-tidy over the source files that changed of late, or over those given.

What counts as changed: everything that differs from the last commit older than a day (or from the
commit in LINT_BASE), and sources whose own headers did. `make lint` reads everything.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path("build/clang")


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def changed_files():
    base = os.environ.get("LINT_BASE") or git("rev-list", "-1", "--before=1 day ago", "HEAD").strip()
    if not base:
        return set(git("ls-files", "*.cc", "*.h").split())
    return set(git("diff", "--name-only", base, "--", "*.cc", "*.h").split())


def tidy(path):
    done = subprocess.run(["clang-tidy-19", "--quiet", "-p", str(BUILD), path], capture_output=True, text=True)
    return path, done.returncode, done.stdout


def main():
    database = BUILD / "compile_commands.json"
    if not database.exists():
        sys.exit(f"{database} is missing: run 'make clang' first")
    built = {os.path.relpath(entry["file"]) for entry in json.loads(database.read_text())}
    changed = set(sys.argv[1:]) or changed_files()
    # A header is read through the source that carries its name.
    wanted = {path for path in built if path in changed or path.removesuffix(".cc") + ".h" in changed}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, code, output in pool.map(tidy, sorted(wanted)):
            if code != 0:
                failed += 1
                print(f"{path}:\n{output}", flush=True)
    print(f"lint: {len(wanted)} files read, {failed} with findings")
    sys.exit(failed > 0)


main()
