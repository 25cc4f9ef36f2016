"""Command lines completed by the real shells, at a terminal: what the program gets in the end is what counts."""
import shlex
import shutil
import unittest

from terminal import Terminal, without_codes
from yard import SETTINGS, TRAINYARD, YardTest, commands_in, json, options_in, os, subprocess

# Ids with what shells split words at, and what means something to them.
ODD = ["with space", "it's", 'a "b"', "x=1:y=2", "$HOME", "semi;colon", "back\\slash", "star*", "(round)", "é=ü", "@at", "#1"]
ODD_JOB = """
name: odd
groups:
  - name: g
    cpus: 0
    memory: 1MB
    tasks:
%s
  - {name: h, tasks: [{id: unique, command: 'true', cpus: 0, memory: 1MB}]}
""" % "\n".join(f"      - {{id: {json.dumps(name, ensure_ascii=False)}, command: 'true'}}" for name in ODD)
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
        done = self.trainyard("complete", "words", *words, expect=0)
        self.assertEqual(done.stderr, "")
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    def run_odd(self):
        self.job(ODD_JOB, "odd.yaml")
        self.trainyard("run", "odd.yaml", expect=0)

    def test_commands_options_and_values_are_those_that_the_help_shows(self):
        commands = commands_in(self.trainyard("--help").stdout)
        self.assertGreater(len(commands), 20)
        self.assertEqual(self.asked(""), sorted([*commands, "cancel"]))
        self.assertEqual(self.asked("help", ""), sorted([*commands, "cancel", "task-options"]))
        self.assertEqual(self.asked("st"), ["status"])
        self.assertEqual(self.asked("can"), ["cancel"])
        self.assertEqual(self.asked("config", ""), ["init", "show"])
        self.assertEqual(self.asked("status", "--w"), ["--watch"])
        self.assertEqual(self.asked("completion", ""), ["bash", "fish", "zsh"])
        self.assertEqual(self.asked("ranks", "--launcher", ""), ["built-in", "mpirun", "srun", "torchrun"])
        self.assertEqual(self.asked("ranks", "-n", "4", "--", "pyt"), [""], "files, as of any command")
        self.assertEqual(self.asked("run", "--set", "scheduler.max-p"), ["scheduler.max-per-gpu=", "scheduler.max-process="])
        self.assertEqual(self.asked("run", "--set=scheduler.max-pr"), ["--set=scheduler.max-process="])
        self.assertEqual(self.asked("submit", "--set", "task."), ["task.allow-duplicate-id=", "task.directory-grouping="])
        self.assertEqual(self.asked("rum", ""), [])
        self.assertEqual(self.asked("status", "--nothing", ""), [])

    def test_every_option_that_takes_a_value_says_what_it_is(self):
        """The name of a value decides which words are offered; TEXT is the default, if no name was set."""
        page = self.trainyard("manual").stdout
        self.assertNotIn("TEXT", page)
        self.assertNotIn("INT\n", page)

    def test_every_option_of_every_help_is_offered(self):
        commands = [[command] for command in (*self.asked(""), "client", "replay", "agent") if command != "help"]
        commands += [[command[0], below] for command in commands for below in self.asked(*command, "")
                     if command[0] in ("config", "client", "learned") and not below.startswith("-")]
        self.assertGreater(len(commands), 20)
        for command in commands:
            named = set(options_in(self.trainyard(*command, "--help").stdout))
            if command in (["run"], ["submit"]):
                named |= set(options_in(self.trainyard("help", "task-options").stdout))
            self.assertEqual(set(self.asked(*command, "-")), named, command)

    def test_runs_and_tasks_are_offered_with_what_was_typed_before_them(self):
        self.run_odd()
        self.trainyard("run", "odd.yaml", "--new", expect=0)
        self.assertEqual(self.asked("status", "o"), ["odd", "odd-2", "odd.yaml"])
        self.assertEqual(self.asked("devices", ""), ["1", "2", "odd", "odd-2"])
        self.assertEqual(self.asked("status", "runs/"), ["runs/odd", "runs/odd-2"])
        self.assertEqual(self.asked("logs", "un"), ["unique"])
        self.assertEqual(self.asked("logs", "2/un"), ["2/unique"])
        self.assertEqual(self.asked("logs", "runs/odd/h/"), ["runs/odd/h/unique"])
        self.assertEqual(self.asked("logs", "1", "h"), ["h/"])
        self.assertEqual(self.asked("logs", "--run-dir", "1", "un"), ["unique"])
        self.assertEqual(self.asked("logs", "--run-dir", "nowhere", "un"), [])
        self.assertEqual(self.asked("logs", ":f"), [":failed", ":finished"])
        self.assertEqual(self.asked("kill", "1", ":o"), [":on-hold", ":oom", ":out-of-memory"])
        self.assertEqual(self.asked("run", "od"), ["odd.yaml"])
        self.assertEqual([name for name in self.asked("logs", "1", "") if name in ODD], sorted(ODD, key=str.encode))

    def test_columns_are_those_of_the_run(self):
        self.write("task.sh", """echo '{"acc": 1}' > "$TRAINYARD_RESULT"\n""")
        self.job("name: job\ngroups: [{name: g, matrix: {lr: [1, 2], seed: 0..1}, cpus: 0, memory: 1MB, "
                 "tasks: [{command: sh task.sh}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.asked("results", "--over", "s"), ["seed", "status"])
        self.assertEqual(self.asked("results", "--over", "lr,se"), ["lr,seed"])
        self.assertEqual(self.asked("results", "--sort=-a"), ["--sort=-acc"])

    def test_of_many_tasks_the_beginnings_are_offered(self):
        # At most a hundred are offered.
        self.job("name: job\ngroups: [{name: g, matrix: {lr: 1..20, seed: 0..9}, tasks: [{command: 'true'}]}, "
                 "{name: h, tasks: [%s]}]" % ", ".join(f"{{id: task-{n:03}, command: 'true'}}" for n in range(150)))
        yard = self.start("run", "job.yaml", "--set", "scheduler.max-process=1")
        self.until_file("runs/job/journal.db")
        self.until("the tasks", lambda: "task-149" in self.asked("logs", "task-149"))
        self.assertEqual(self.asked("logs", "lr="), sorted(f"lr={lr}," for lr in range(1, 21)))
        self.assertEqual(self.asked("logs", "lr=1"), sorted(f"lr={lr}," for lr in (1, *range(10, 20))))
        self.assertEqual(self.asked("logs", "lr=4,"), [f"lr=4,seed={seed}" for seed in range(10)])
        self.assertEqual(self.asked("logs", "lr=4,seed=2"), ["lr=4,seed=2"])
        # Not the first hundred, whose common beginning the others do not have.
        self.assertEqual(self.asked("logs", "task-"), [f"task-{n:02}" for n in range(15)])
        yard.terminate()
        self.end_of(yard)

    def test_nobody_is_told_that_something_is_wrong(self):
        for words in ([], ["bash"], ["words"], ["bash", "=", ""], ["zsh", "x"], ["bash", "", "trainyard logs 'x"]):
            done = self.trainyard("complete", *words, expect=0)
            self.assertEqual(done.stderr, "")
        self.write("runs/broken/journal.db", "no journal at all")
        self.write("trainyard.yaml", "nonsense: [")
        for words in (["logs", ""], ["logs", "runs/broken/x"], ["logs", "runs/broken", ""], ["status", ""], ["run", ""],
                      ["results", "--sort", ""], ["logs", "\udcff"], ["status", "/nowhere/"], ["logs", "a\nb"]):
            done = self.trainyard("complete", "words", *words, expect=0)
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
        self.job(ODD_JOB, "odd.yaml")
        self.trainyard("run", "odd.yaml", expect=0)

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

    def given(self, shell, typed, after=""):
        """The arguments of the program when the line is completed with a tab and ended."""
        given = self.directory / "given"
        given.unlink(missing_ok=True)
        shell.type(typed + "\t")
        shell.type(after + "\r")
        shell.until(given.exists, f"a command after {typed!r}")
        return given.read_text().split("\0")[:-1]

    def typed_for(self, name, word):
        """The first characters of a word as somebody would type them."""
        return "".join(f"\\{sign}" if sign in " '\"$;\\*()#@" and sign != "@" else sign for sign in word)

    def completes_words(self, name):
        shell = self.begin(name)
        for typed, given in (("trainyard stat", ["status"]), ("trainyard logs --foll", ["logs", "--follow"]),
                             ("trainyard config in", ["config", "init"]),
                             ("trainyard logs :fai", ["logs", ":failed"]),
                             ("trainyard run --set scheduler.max-pro", ["run", "--set", "scheduler.max-process="]),
                             ("trainyard run --set=scheduler.max-pro", ["run", "--set=scheduler.max-process="]),
                             ("trainyard run od", ["run", "odd.yaml"]), ("trainyard logs 1/uni", ["logs", "1/unique"]),
                             ("trainyard logs uni", ["logs", "unique"]), ("trainyard logs runs/odd/h/u", ["logs", "runs/odd/h/unique"])):
            with self.subTest(shell=name, typed=typed):
                self.assertEqual(self.given(shell, typed), given)
        return shell

    def completes_odd_ids(self, name):
        shell = self.begin(name)
        for id in ODD:
            for begun in {id[:2], id[:-1]}:
                with self.subTest(shell=name, id=id, begun=begun):
                    self.assertEqual(self.given(shell, "trainyard logs 1 " + self.typed_for(name, begun)), ["logs", "1", id])
        for id in ("with space", "x=1:y=2", "semi;colon", "star*", 'a "b"', "$HOME"):
            with self.subTest(shell=name, quoted=id):
                self.assertEqual(self.given(shell, "trainyard logs 1 '" + id[:3]), ["logs", "1", id])

    def shows_no_error(self, name):
        shell = self.begin(name)
        self.write("runs/odd/journal.db", "damaged")
        at = len(shell.shown)
        self.assertEqual(self.given(shell, "trainyard logs zz"), ["logs", "zz"])
        self.assertEqual(self.given(shell, "trainyard nothing zz"), ["nothing", "zz"])
        for word in ("rror", "trainyard:", "cannot", "journal"):
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
        # The words of the command before are none of ours, and neither is what is set for it.
        self.assertEqual(self.given(shell, "echo 'x y' | A=b trainyard stat"), ["status"])
        self.assertEqual(self.given(shell, f"{self.directory}/bin/trainyard stat"), ["status"])
        self.assertEqual(self.given(shell, "alias ty=trainyard; complete -F _trainyard ty; trainyard x"), ["x"])
        self.assertEqual(self.given(shell, "ty stat"), ["status"])

    def test_zsh_completes_words(self):
        self.completes_words("zsh")

    def test_fish_completes_words(self):
        self.completes_words("fish")

    def test_bash_completes_odd_ids(self):
        self.completes_odd_ids("bash")

    def test_zsh_completes_odd_ids(self):
        self.completes_odd_ids("zsh")

    def test_fish_completes_odd_ids(self):
        self.completes_odd_ids("fish")

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
        self.assertEqual(self.given(shell, "trainyard logs uni"), ["logs", "unique"])
        self.assertEqual(self.given(shell, "trainyard logs :fai"), ["logs", ":failed"])


if __name__ == "__main__":
    unittest.main()
