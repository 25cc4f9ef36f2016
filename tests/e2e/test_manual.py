"""The program's own documentation: help with examples for every command, the page of commands, and its manual page."""
import pathlib
import re
import shutil
import sys
import unittest

from pages import DOCS, ROOT
from yard import TRAINYARD, YardTest, commands_in, os, subprocess

sys.path.insert(0, str(ROOT / "tools"))
import command_page  # noqa: E402

# Any other error shows that the line was understood: the files of the examples are not there.
MISUNDERSTOOD = ("shows the usage", "unknown option", "options follow", "unknown command", "lists the options", "lists the commands", "unexpected argument", "is required", "goes after")

# Where the build has made it.
PAGE = pathlib.Path(TRAINYARD).resolve().parent / "trainyard.1"
has_page = unittest.skipUnless(PAGE.exists(), "the build makes the manual page with help2man alone")


class Manual(YardTest):
    def setUp(self):
        super().setUp()
        bin = self.directory / "bin"
        bin.mkdir()
        (bin / "trainyard").symlink_to(TRAINYARD)
        self.environment["PATH"] = f"{bin}:{os.environ['PATH']}"

    def commands(self):
        """All commands that a person is shown, as lists of words, but for `help`, whose help is that of all."""
        def below(words):
            text = self.trainyard(*words, "--help", expect=0).stdout
            names = commands_in(text) + ([] if words else ["client", "replay", "agent"])
            return [path for name in names if name != "help" for path in ([*words, name], *below([*words, name]))]
        found = below([])
        self.assertGreater(len(found), 20)
        return found

    def examples(self, command):
        """The lines beneath 'Example:' and 'Examples:' of its help."""
        text = self.trainyard(*command, "--help", expect=0).stdout
        return [line.strip() for block in re.findall(r"^Examples?:\n((?:  .*\n?)+)", text, re.M) for line in block.splitlines()]

    def test_every_command_has_examples_that_are_understood(self):
        for command in self.commands():
            examples = self.examples(command)
            with self.subTest(command=command):
                self.assertTrue(examples, "none in its help")
                self.assertTrue(all(line.startswith("trainyard ") for line in examples), examples)
                named = [line for line in examples if line.split()[1:1 + len(command)] == command]
                self.assertTrue(named, "none is of itself")
            for line in examples:
                # An agent outlives the connection to its run, but not as a step.
                if line.startswith("trainyard agent --stdio"):
                    line += " --step"
                with self.subTest(example=line):
                    done = subprocess.run(["sh", "-c", line], cwd=self.directory, env={**self.environment, "HOME": str(self.directory)},
                                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
                    for words in MISUNDERSTOOD:
                        self.assertNotIn(words, done.stderr)

    def test_an_example_that_is_not_understood_would_be_seen(self):
        for line in ("trainyard run sweep.yaml --newest", "trainyard stats", "trainyard logs --rank x", "trainyard results --csv --json"):
            done = subprocess.run(["sh", "-c", line], cwd=self.directory, env=self.environment, capture_output=True, text=True)
            self.assertTrue(any(words in done.stderr for words in MISUNDERSTOOD), done.stderr)

    def test_the_page_of_commands_is_the_help(self):
        self.assertEqual((DOCS / "commands.md").read_text(), command_page.page(TRAINYARD),
                         "run: tools/command_page.py PROGRAM > docs/commands.md")

    @has_page
    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is installed for `make check` alone")
    def test_the_page_is_well_formed(self):
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "error", PAGE], capture_output=True, text=True)
        self.assertEqual((lint.returncode, lint.stdout, lint.stderr), (0, "", ""))

    @has_page
    def test_the_page_is_shown(self):
        shown = subprocess.run(["man", "-l", PAGE], capture_output=True, text=True,
                               env={**self.environment, "MANPAGER": "cat", "MANWIDTH": "120", "MANROFFSEQ": "", "LC_ALL": "C.UTF-8"})
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        text = re.sub(".\b", "", shown.stdout)
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "EXIT STATUS", "FILES", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"):
            self.assertRegex(text, rf"(?m)^{section}$")
        self.assertIn("trainyard results 46 'optimizer=adam*'", text)

    @has_page
    def test_the_page_has_the_help_of_all_commands(self):
        text = PAGE.read_text().replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
        for command in self.commands():
            with self.subTest(command=command):
                help = self.trainyard(*command, "--help", expect=0).stdout
                self.assertIn(f"\n.SS {' '.join(command)}\n.EX\n{help.strip()}\n.EE\n", text)

    def test_what_an_option_is_is_a_short_text_with_the_default(self):
        long = {}
        for command in self.commands():
            for option in re.findall(r"^  (?:TASKS|-).*(?:\n {28}.*)*$", self.trainyard(*command, "--help", expect=0).stdout, re.M):
                # A long name has its text below it.
                name, *text = (line.strip() for line in re.split(r"\n {28}|(?<=^.{27}) ", option))
                if len(" ".join(text)) > 60:
                    long[(*command, name)] = text
        self.assertEqual(long, {})

    def test_no_line_of_a_help_is_wider_than_80_columns(self):
        helps = [self.trainyard(*command, "--help", expect=0).stdout for command in [[], *self.commands(), ["task-options"]]]
        self.assertEqual([line for text in helps for line in text.splitlines() if len(line) > 80], [])

    @has_page
    def test_its_exit_codes_are_those_of_the_help(self):
        told = re.search(r"Exit codes: (.*)$", self.trainyard("--help", expect=0).stdout, re.S)[1]
        section = PAGE.read_text().split('.SH "EXIT STATUS"\n')[1].split(".SH")[0]
        self.assertEqual(re.findall(r"^\.B (\d+)$", section, re.M), re.findall(r"(?:^|; )(\d+) ", told.replace("\n", " ")))

    @has_page
    def test_its_examples_are_understood(self):
        for line in re.findall(r"^  (trainyard .*)$", PAGE.read_text().split(".SH EXAMPLES")[1].replace("\\-", "-"), re.M):
            done = subprocess.run(["sh", "-c", line], cwd=self.directory, env=self.environment, capture_output=True, text=True,
                                  timeout=120, stdin=subprocess.DEVNULL)
            for words in MISUNDERSTOOD:
                self.assertNotIn(words, done.stderr, line)
