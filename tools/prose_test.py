#!/usr/bin/python3
"""tools/prose.py, with texts that break each rule and texts that do not."""
import contextlib
import io
import pathlib
import shutil
import tempfile
import unittest

import prose

HELP = """Run many tasks.
Usage: trainyard [OPTIONS] SUBCOMMAND

Options:
  -h, --help                  Print this help message and exit

Run:
  run, go                     Run the tasks of a job file

Setup:
  config                      Show a configuration
  help                        Show the help of a command

Exit codes: 0 succeeded, 1 failed.
"""
RUN = """Run the tasks of a job file
Usage: trainyard run [OPTIONS] [job]

Arguments:
  job JOB-FILE                The job file

Options:
  -h, --help                  Print this help message and exit
  --only PATTERN              Run the selected tasks and the groups
                              that they need (default: all tasks)
  --if success|failure|always Condition on the groups before
  --gpu-memory-limit none|soft|hard
                              Cap the memory
  -n,--ranks NUMBER:INT in [1 - 4096] REQUIRED
                              Number of processes

Example:
  trainyard run sweep.yaml    # of what it is told

The run resumes
with --resume.
Exit codes: 0 succeeded.
"""


def page(content):
    return list(prose.page_texts("README.md", content))


def rules(content, of=page):
    """Of each finding: the rule without its cure."""
    return [rule.partition(":")[0] for text in of(content) for _, _, _, rule in prose.faults(text)]


def help_option(text):
    return prose.help_texts("trainyard run --help", f"Options:\n  --option                    {text}\n")


class Rules(unittest.TestCase):
    def test_a_sentence_begins_with_a_noun_or_a_verb(self):
        for word in ("Of", "It", "That", "Those", "What", "Who", "Which", "Whether", "How", "One that", "The same", "As", "Where", "So"):
            with self.subTest(word):
                rule = [f"begins with '{word.removesuffix(' that')}'"]
                self.assertEqual(rules(f"{word} runs here."), rule)
                self.assertEqual(rules(f"A task runs. {word} runs here."), [] if word == "It" else rule)
                self.assertEqual(rules(f"- {word} runs here."), rule)
                self.assertEqual(rules(f"| a | {word} runs here |"), rule)
                self.assertEqual(rules(f"{word} runs here", help_option), rule)
        for text in ("Tasks run.", "Often it runs.", "Ashes", "`What` runs.", "One-line texts"):
            self.assertEqual(rules(text), [])

    def test_a_question_may_begin_with_its_word(self):
        self.assertEqual(rules("Which GPUs are used?"), [])
        self.assertEqual(rules("# What does a run show"), [])
        self.assertEqual(rules("| Where is the log |"), [])
        self.assertEqual(rules("# How to resume a run"), [])
        self.assertEqual(rules("# What a run shows"), ["begins with 'What'"])
        self.assertEqual(rules("What is in force", help_option), ["begins with 'What'"])
        self.assertEqual(rules("How to resume", help_option), ["begins with 'How'"])

    def test_a_phrase_and_a_number_may_begin_a_sentence(self):
        self.assertEqual(rules("As soon as memory is free, the task starts. As of 2.0 this is the default."), [])
        self.assertEqual(rules("One task runs. One of `none` and `soft`."), [])
        self.assertEqual(rules("One of them runs."), ["begins with 'One'"])

    def test_a_word_of_the_table_is_not_used(self):
        for text, word in (("The task is told.", "told"), ("Files beside the job file", "beside"), ("The run goes on.", "goes on"),
                           ("A stranger\nuses a card.", "stranger"), ("A GPU of its own", "of its own"), ("All in vain", "in vain"),
                           ("This is no\nmanager.", "is no"), ("Try the task again", "Try the task again")):
            with self.subTest(text):
                self.assertIn(f"'{word}'", rules(text))
        for text in ("Besides", "wildcards", "Turned off", "There is no such run.", "Unless `--now` is given", "This is no longer so.",
                     "`told`", "[Chat](telling-people.md)", "https://example.org/what-is-told", "At the end the run is removed."):
            with self.subTest(text):
                self.assertEqual(rules(text), [])

    def test_an_option_in_a_help_is_code_and_so_is_what_is_in_quotes(self):
        self.assertEqual(rules("Refuse, unless --now is given", help_option), [])
        self.assertEqual(rules("The task's key 'at work' or 'told'", help_option), [])

    def test_a_sentence_has_at_most_28_words(self):
        self.assertEqual(rules("word " * 28), [])
        self.assertEqual(rules("word " * 28 + "`code in a span` 12 https://example.org/."), [])
        self.assertEqual(rules("word\n" * 29), ["29 words in a sentence (at most 28)"])
        self.assertEqual(rules("Word " * 20 + "end. " + "Word " * 20), [])
        self.assertEqual(rules("Word " * 20 + "e.g. " + "Word " * 20), ["41 words in a sentence (at most 28)"])

    def test_a_sentence_has_at_most_one_colon(self):
        self.assertEqual(rules("Sizes: 10GB, at 8:00."), [])
        self.assertEqual(rules("**Sizes**: these: 10GB."), [])
        self.assertEqual(rules("Ports (default: from 50515): all", help_option), [])
        self.assertEqual(rules("Sizes: these: 10GB."), ["a second colon"])

    def test_a_cell_has_at_most_15_words(self):
        self.assertEqual(rules(f"| {'word ' * 15} `a | b` | word |\n|---|---|"), [])
        self.assertEqual(rules(f"| {'word ' * 16}|"), ["16 words in a cell (at most 15)"])
        self.assertEqual(rules(f"| {'word ' * 29}|"), ["29 words in a cell (at most 15)"])

    def test_the_text_of_an_option_has_at_most_60_characters_without_its_default(self):
        self.assertEqual(rules("x" * 60 + "\n" + " " * 30 + "(default: the job file's (if any))", help_option), [])
        self.assertEqual(rules("x" * 61, help_option), ["61 characters (at most 60)"])
        self.assertEqual(rules("x" * 40 + "\n" + " " * 30 + "y" * 20, help_option), ["61 characters (at most 60)"])

    def test_a_line_of_a_help_has_at_most_60_characters_with_the_default(self):
        self.assertEqual(rules("x" * 46 + " (default: 10)", help_option), [])
        self.assertEqual(rules("x" * 47 + " (default: 10)", help_option), ["61 characters (at most 60)"])
        self.assertEqual(rules("x\n" + " " * 30 + "(default: " + "y" * 50 + ")", help_option), ["61 characters (at most 60)"])

    def test_the_text_of_a_command_has_at_most_60_characters(self):
        def command(text):
            return prose.help_texts("trainyard --help", f"Run:\n  run                         {text}\n")
        self.assertEqual(rules("x" * 60, command), [])
        self.assertEqual(rules("x" * 61, command), ["61 characters (at most 60)"])


class Texts(unittest.TestCase):
    def test_a_page_has_texts_with_their_lines_and_no_code(self):
        content = ("# Title\n<!-- of\nwhat -->\n```sh\nof what\n```\nA first\nline.\n- item\n  more\n- **Label**: item\n\n"
                   "| a | `b|c` |\n|---|---|\n")
        self.assertEqual([tuple(text)[1:] for text in page(content)],
                         [(1, "heading", "Title"), (7, "prose", "A first\nline."), (9, "prose", "item\nmore"), (11, "heading", "Label"),
                          (11, "prose", "item"), (13, "cell", "a"), (13, "cell", "`b/c`")])

    def test_a_help_has_texts_of_options_headings_and_paragraphs(self):
        self.assertEqual([tuple(text)[1:] for text in prose.help_texts("trainyard run --help", RUN)],
                         [(1, "prose", "Run the tasks of a job file"), (4, "heading", "Arguments"), (5, "option", "The job file"),
                          (7, "heading", "Options"), (8, "option", "Print this help message and exit"),
                          (9, "option", "Run the selected tasks and the groups\nthat they need (default: all tasks)"),
                          (11, "option", "Condition on the groups before"), (12, "option", "Cap the memory"),
                          (14, "option", "Number of processes"), (17, "heading", "Example"),
                          (20, "prose", "The run resumes\nwith --resume."), (22, "prose", "Exit codes: 0 succeeded.")])

    def test_a_finding_has_the_line_of_its_sentence(self):
        lines = prose.findings(page("# Title\n\nA task runs.\nWhat runs,\nruns."), {})
        self.assertEqual(lines, ["README.md:4: What runs, runs. : begins with 'What': begin with the noun or the verb"])

    def test_a_finding_shows_the_words_around_it(self):
        lines = prose.findings(page("A sentence with many words before the one that it has in vain."), {})
        self.assertEqual(lines, ["README.md:1: ...ds before the one that it has in vain. : 'in vain': write without effect, fails"])

    def test_a_text_that_several_helps_share_is_reported_once(self):
        texts = [text for name in ("run", "submit") for text in prose.help_texts(f"trainyard {name} --help", "What runs\n")]
        self.assertEqual([line.split(":")[0] for line in prose.findings(texts, {})], ["trainyard run --help"])


class Exceptions(unittest.TestCase):
    def test_an_exception_keeps_the_text_that_it_names_and_no_other(self):
        texts = page("What holds.\n\nWhat runs.")
        self.assertEqual(len(prose.findings(texts, {("README.md", "What holds"): "a title of long standing"})), 1)

    def test_an_exception_that_matches_nothing_is_a_finding(self):
        exceptions = {("README.md", "What holds"): "a title", ("help", "What holds"): "not checked without a program"}
        self.assertEqual(prose.findings(page("Tasks run."), exceptions),
                         ["README.md:1: What holds : an exception that matches nothing: delete it"])


class Program(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-prose-"))
        self.addCleanup(shutil.rmtree, self.root)
        for path in prose.PAGES:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text("Tasks run.\n")
        self.program = self.root / "trainyard"
        self.helps = {"--help": HELP, "run --help": RUN, "config --help": "Show a configuration\n\nSubcommands:\n  show    " + " " * 20 + "Show it\n",
                      "config show --help": "Show a configuration with its origins\n", "help --help": HELP, "help run --help": "What runs\n",
                      "help task-options": "Options of tasks\n"}

    def outcome(self, *arguments):
        cases = "".join(f"'{words}') cat <<'END'\n{output}END\n;;\n" for words, output in self.helps.items())
        self.program.write_text(f"#!/bin/sh\ncase \"$*\" in\n{cases}*) exit 2;;\nesac\n")
        self.program.chmod(0o755)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = prose.main([str(argument) for argument in arguments], self.root, {})
        return code, output.getvalue().splitlines()

    def test_a_program_is_optional(self):
        self.assertEqual(self.outcome(), (0, [f"prose: ok, {len(prose.PAGES)} texts"]))
        (self.root / "README.md").write_text("What runs.\n")
        code, lines = self.outcome()
        self.assertEqual((code, len(lines), lines[-1]), (1, 2, "prose: 1 findings"))

    def test_commands_are_found_at_every_level_and_so_are_topics(self):
        code, lines = self.outcome(self.program)
        self.assertEqual((code, len(lines)), (0, 1), lines)
        for words in ("config show --help", "help task-options", "run --help"):
            with self.subTest(words):
                before = self.helps[words]
                self.helps[words] = "What runs\n"
                place = "trainyard " + words
                self.assertEqual(self.outcome(self.program),
                                 (1, [f"{place}:1: What runs : begins with 'What': begin with the noun or the verb", "prose: 1 findings"]))
                self.helps[words] = before

    def test_a_program_may_have_no_topics(self):
        del self.helps["help task-options"]
        self.assertEqual(self.outcome(self.program)[0], 0)

    def test_the_help_of_run_has_at_most_50_lines_of_80_columns(self):
        most = "Text\n\n" * 24 + f"Usage: {'x' * 73}\n\n"
        self.helps["run --help"] = most
        self.assertEqual(self.outcome(self.program)[0], 0)
        for more in (most + "Text\n", most.replace("Usage: ", "Usage:  ")):
            self.helps["run --help"] = more
            self.assertEqual(self.outcome(self.program),
                             (1, ["trainyard run --help:51: 51 lines (at most 50) : move options to a topic of 'help'", "prose: 1 findings"]))

    def test_a_program_that_fails_or_is_missing_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "missing: not found"):
            self.outcome(self.root / "missing")
        del self.helps["--help"]
        with self.assertRaisesRegex(SystemExit, "--help' fails"):
            self.outcome(self.program)

    def test_a_program_that_hangs_or_cannot_run_or_prints_no_utf_8_is_an_error(self):
        self.addCleanup(setattr, prose, "PATIENCE_S", prose.PATIENCE_S)
        for script, patience_s, mode, why in (("exec sleep 1000", 0.1, 0o755, "Command .* timed out after 0.1 seconds$"),
                                              ("", 60, 0o644, ".*Permission denied"),
                                              ("printf '\\351'", 60, 0o755, "'utf-8' codec can't decode byte 0xe9 ")):
            with self.subTest(script):
                prose.PATIENCE_S = patience_s
                self.program.write_text(f"#!/bin/sh\n{script}\n")
                self.program.chmod(mode)
                with self.assertRaisesRegex(SystemExit, rf"^prose: '.*/trainyard --help': {why}"):
                    prose.main([str(self.program)], self.root, {})

    def test_a_page_that_cannot_be_read_is_an_error(self):
        (self.root / "README.md").write_bytes(b"caf\xe9\n")
        with self.assertRaisesRegex(SystemExit, "^prose: .*/README.md cannot be read: 'utf-8' codec can't decode byte 0xe9 "):
            self.outcome()
        (self.root / "README.md").unlink()
        with self.assertRaisesRegex(SystemExit, "^prose: .*/README.md cannot be read: .*No such file or directory"):
            self.outcome()


if __name__ == "__main__":
    unittest.main()
