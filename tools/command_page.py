#!/usr/bin/env python3
"""Makes docs/commands.md from the program: every command, with what it says of itself.

    tools/command_page.py build/dev/src/cli/trainyard > docs/commands.md

tests/e2e/test_manual.py fails when the page is no longer what the program says.
"""
import re
import subprocess
import sys

HEAD = """# Every command

`trainyard help <command>` prints the same text. See also the [exit codes](reports.md#exit-codes) of all commands, and
[how to name runs and tasks](reports.md#which-run-which-tasks). `tools/command_page.py` makes this page from the program.

"""


def help_of(program, *words):
    return subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True).stdout


# Commands that `trainyard --help` does not list.
PLUMBING = ("task-options", "client", "replay", "agent")


def subcommands(text):
    """The names of the commands that a help lists, each with its sentence."""
    return re.findall(r"^  ([a-z][\w-]*)(?:, [\w-]+)*  +(.+)$", text, re.M)


def tree(program, *words):
    """Every command below this one, in the order of the help: its words, its sentence and its help."""
    listed = subcommands(help_of(program, *words))
    if not words:
        listed += [(name, help_of(program, name).partition(".\n")[0]) for name in PLUMBING]
    for name, sentence in listed:
        text = help_of(program, *words, name)
        yield (*words, name), sentence, text
        if text != help_of(program):
            yield from tree(program, *words, name)


def page(program):
    """The text of the page."""
    whole = help_of(program)
    commands = list(tree(program))
    lines = ["| command | what it does |", "|---|---|"]
    lines += [f"| [`{' '.join(words)}`](#trainyard-{'-'.join(words)}) | {sentence} |" for words, sentence, _ in commands]
    parts = [HEAD + "\n".join(lines), "## `trainyard`\n\n" + block(whole)]
    for words, _, text in commands:
        shown = "`trainyard help` prints the same text as `trainyard --help`.\n"
        parts.append(f"## `trainyard {' '.join(words)}`\n\n" + (block(text) if text != whole else shown))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def block(text):
    return f"```text\n{text}```\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.stdout.write(page(sys.argv[1]))
