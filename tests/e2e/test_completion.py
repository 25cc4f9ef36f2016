"""Command lines completed by the real shells, at a terminal: what the program gets in the end is what counts."""
import shlex
import shutil
import unittest

from pages import DOCS
from terminal import Terminal, without_codes
from yard import TRAINYARD, YardTest, commands_in, options_in, os

# The program that the shell finds: tells what it was given, but for what the shell itself asks.
TOLD = """#!/bin/sh
[ "$1" = complete ] && exec {program} "$@"
for word; do printf '%s\\0' "$word"; done > {directory}/given.new
mv {directory}/given.new {directory}/given
"""
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <({program} completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u -D; source <({program} completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "{program} completion fish | source"),
}


class Asked(YardTest):
    def asked(self, *words):
        """The offered words; an empty one where the shell offers files."""
        done = self.trainyard("complete", *words, expect=0)
        self.assertEqual(done.stderr, "")
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    def test_commands_and_options_are_those_that_the_help_shows(self):
        commands = commands_in(self.trainyard("--help").stdout)
        self.assertGreater(len(commands), 20)
        self.assertEqual(self.asked(""), sorted([*commands, "cancel"]))
        self.assertEqual(self.asked("help", ""), sorted([*commands, "cancel", "task-options"]))
        self.assertEqual(self.asked("st"), ["status"])
        self.assertEqual(self.asked("can"), ["cancel"])
        self.assertEqual(self.asked("config", ""), ["init", "show"])
        self.assertEqual(self.asked("status", "--w"), ["--watch"])
        self.assertEqual(self.asked("ranks", "--launcher", "mpi"), [""])
        self.assertEqual(self.asked("ranks", "-n", "4", "--", "pyt"), [""], "files, as of any command")
        self.assertEqual(self.asked("run", "--set", "--wat"), [""], "a value of --set")
        self.assertEqual(self.asked("run", "--set=scheduler.max-pr"), [""])
        self.assertEqual(self.asked("run", "--set=a=b", "--dry"), ["--dry-run"])
        self.assertEqual(self.asked("run", "job.yaml", "--dry"), ["--dry-run"])
        self.assertEqual(self.asked("logs", "od"), [""])
        self.assertEqual(self.asked("rum", ""), [])
        self.assertEqual(self.asked("status", "--nothing", ""), [""])

    def test_every_option_that_takes_a_value_says_what_it_is(self):
        """TEXT is the default, if no name was set."""
        page = (DOCS / "commands.md").read_text()
        self.assertNotRegex(page, r"(?m)^  .* (TEXT|INT|UINT|FLOAT)\b")

    def test_every_option_of_every_help_is_offered(self):
        commands = [[command] for command in (*self.asked(""), "client", "replay", "agent") if command != "help"]
        commands += [[command[0], below] for command in commands for below in self.asked(*command, "")
                     if command[0] in ("config", "client", "learned") and below]
        self.assertGreater(len(commands), 20)
        for command in commands:
            named = set(options_in(self.trainyard(*command, "--help").stdout))
            if command in (["run"], ["submit"]):
                named |= set(options_in(self.trainyard("help", "task-options").stdout))
            self.assertEqual(set(self.asked(*command, "-")), named, command)

    def test_nobody_is_told_that_something_is_wrong(self):
        self.write("trainyard.yaml", "nonsense: [")
        for words in ([], [""], ["logs", "'x"], ["logs", "\udcff", ""], ["run", ""], ["a\nb"]):
            done = self.trainyard("complete", *words, expect=0)
            self.assertEqual(done.stderr, "", words)


class Shell(YardTest):
    """At a shell: types, and sees what the program is given when the line is ended."""

    def setUp(self):
        super().setUp()
        bin = self.directory / "bin"
        bin.mkdir()
        self.write("bin/trainyard", TOLD.format(program=shlex.quote(TRAINYARD), directory=shlex.quote(str(self.directory))), 0o755)
        self.environment.update(PATH=f"{bin}:{os.environ['PATH']}", TERM="dumb", HOME=str(self.directory), PS1="ready> ",
                                LC_ALL="C.UTF-8", XDG_CONFIG_HOME=str(self.directory), XDG_DATA_HOME=str(self.directory))
        self.write("odd.yaml", "")

    def begin(self, name):
        if not shutil.which(name):
            self.skipTest(f"{name} is installed for `make check` alone")
        command, completes = SHELLS[name]
        shell = Terminal(command, self.directory, self.environment)
        self.addCleanup(shell.close)
        # Two signs in one word, so that what is typed does not look like what is answered.
        shell.type(completes.format(program=shlex.quote(TRAINYARD)) + "; echo re''ady\r")
        shell.until_shown("ready\r\n")
        return shell

    def given(self, shell, typed):
        """The arguments of the program when the line is completed with a tab and ended."""
        given = self.directory / "given"
        given.unlink(missing_ok=True)
        shell.type(typed + "\t")
        shell.type("\r")
        shell.until(given.exists, f"a command after {typed!r}")
        return given.read_text().split("\0")[:-1]

    def completes_words(self, name):
        shell = self.begin(name)
        for typed, given in (("trainyard stat", ["status"]), ("trainyard logs --foll", ["logs", "--follow"]),
                             ("trainyard config in", ["config", "init"]),
                             ("trainyard run od", ["run", "odd.yaml"]), ("trainyard run --config od", ["run", "--config", "odd.yaml"]),
                             ("trainyard run --set a=b --dry", ["run", "--set", "a=b", "--dry-run"])):
            with self.subTest(shell=name, typed=typed):
                self.assertEqual(self.given(shell, typed), given)
        return shell

    def shows_no_error(self, name):
        shell = self.begin(name)
        self.write("trainyard.yaml", "nonsense: [")
        at = len(shell.shown)
        self.assertEqual(self.given(shell, "trainyard logs zz"), ["logs", "zz"])
        self.assertEqual(self.given(shell, "trainyard nothing zz"), ["nothing", "zz"])
        for word in ("rror", "trainyard:", "cannot", "nonsense"):
            self.assertNotIn(word, without_codes(shell.shown[at:]))

    def shows_several(self, name):
        self.environment["TERM"] = "xterm"  # In a dumb one fish shows no list.
        shell = self.begin(name)
        at = len(shell.shown)
        shell.type("trainyard logs --std\t\t")
        for option in ("--stderr", "--stdout"):
            shell.until_shown(option, after=at)

    def test_bash_completes_words(self):
        shell = self.completes_words("bash")
        # A file next to the commands that may be there: 'show'.
        self.write("showcase.yaml", "")
        self.assertEqual(self.given(shell, "trainyard learned sho\tc"), ["learned", "showcase.yaml"])
        # The words of the command before are none of ours, and neither is what is set for it.
        self.assertEqual(self.given(shell, "echo 'x y' | A=b trainyard stat"), ["status"])
        self.assertEqual(self.given(shell, f"{self.directory}/bin/trainyard stat"), ["status"])
        self.assertEqual(self.given(shell, "alias ty=trainyard; complete -F _trainyard ty; trainyard x"), ["x"])
        self.assertEqual(self.given(shell, "ty stat"), ["status"])

    def test_zsh_completes_words(self):
        self.completes_words("zsh")

    def test_fish_completes_words(self):
        self.completes_words("fish")

    def test_bash_shows_no_error_and_several_words(self):
        self.shows_no_error("bash")
        self.shows_several("bash")

    def test_zsh_shows_no_error_and_several_words(self):
        self.shows_no_error("zsh")
        self.shows_several("zsh")

    def test_fish_shows_no_error_and_several_words(self):
        self.shows_no_error("fish")
        self.shows_several("fish")

    @unittest.skipUnless(shutil.which("zsh"), "zsh is installed for `make check` alone")
    def test_zsh_loads_it_as_a_function_of_its_path(self):
        self.write("site/_trainyard", self.trainyard("completion", "zsh", expect=0).stdout)
        shell = Terminal(["zsh", "-f", "-i"], self.directory, self.environment)
        self.addCleanup(shell.close)
        shell.type("fpath=(site $fpath); autoload -Uz compinit; compinit -u -D; echo re''ady\r")
        shell.until_shown("ready\r\n")
        self.assertEqual(self.given(shell, "trainyard stat"), ["status"])
        self.assertEqual(self.given(shell, "trainyard logs --foll"), ["logs", "--follow"])


if __name__ == "__main__":
    unittest.main()
