"""The results of tasks as a table: `trainyard results`."""
import csv
import io
import json
import unittest

from terminal import Terminal, without_codes
from yard import TRAINYARD, YardTest

JOB = """
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    matrix: {lr: [1e-3, 0.01], seed: [0, 1]}
    tasks: [{command: 'sh task.sh {lr} {seed}'}]
"""


class Results(YardTest):
    def setUp(self):
        super().setUp()
        self.job(JOB)
        self.write("task.sh", """
[ $1$2 = 0.011 ] && exit 3
acc=$(echo "0.$((${#1} + $2))")
echo "{\\"acc\\": $acc, \\"loss\\": 1.5}" > $TRAINYARD_RESULT
""")

    def results(self, *words, expect=0):
        return self.trainyard("results", *words, expect=expect)

    def test_are_sorted_averaged_and_turned(self):
        self.trainyard("run", "job.yaml", expect=1)
        lines = self.results("--sort", "-acc").stdout.splitlines()
        self.assertRegex(lines[0], r"^ *lr +seed +status +time +acc +loss$")
        self.assertEqual([line.split()[:2] for line in lines[1:5]],
                         [["1e-3", "1"], ["1e-3", "0"], ["0.01", "0"], ["0.01", "1"]])
        self.assertEqual(lines[5:], [])
        self.assertRegex(lines[4], "EXIT 3")
        over = self.results("--over", "seed", "--json").stdout
        rows = json.loads(over)["rows"]
        self.assertEqual([(row["lr"], row["tasks"], row["acc"]["count"]) for row in rows], [("1e-3", 2, 2), ("0.01", 1, 1)])
        self.assertAlmostEqual(rows[0]["acc"]["mean"], 0.45)
        turned = self.results("job.yaml", "--pivot", "lr,seed").stdout.splitlines()
        self.assertRegex(turned[0], r"^ *lr +seed=0 +seed=1$")
        self.assertIn("shown: acc", turned)

    def test_have_the_columns_that_fit_a_narrow_terminal(self):
        self.trainyard("run", "job.yaml", expect=1)
        terminal = Terminal(["sh", "-c", f"stty cols 30; exec {TRAINYARD} results"], self.directory,
                            self.environment, columns=30)
        self.addCleanup(terminal.close)
        terminal.until_shown("2 columns left out (time, loss): a wider terminal, '| less -S' or --csv shows them")
        self.assertRegex(without_codes(terminal.shown), r"^ *lr +seed +status +acc\s")

    def test_are_averaged_in_a_run_that_has_another_group_too(self):
        self.job(JOB.replace("groups:", "groups:\n  - {name: data, cpus: 0, memory: 10MB, tasks: [{command: 'true'}]}"))
        self.trainyard("run", "job.yaml", expect=1)
        rows = json.loads(self.results("--over", "seed", "--json").stdout)["rows"]
        self.assertEqual([(row["group"], row["lr"], row["tasks"]) for row in rows],
                         [("data", None, 0), ("g", "1e-3", 2), ("g", "0.01", 1)])

    def test_without_a_match_are_a_message(self):
        self.trainyard("run", "job.yaml", expect=1)
        none = self.results("--where", "seed=7")
        self.assertEqual((none.stdout, none.stderr), ("", "trainyard: no task matches 'seed=7': seed is 0 to 1\n"))

    def test_of_several_runs_stand_in_one_table(self):
        self.trainyard("run", "job.yaml", expect=1)
        self.trainyard("run", "job.yaml", "--new", expect=1)
        text = self.results("runs/job", "runs/job-2", "--where", "seed=0", "--csv").stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual([(row["run"], row["lr"], row["acc"]) for row in rows],
                         [("runs/job", "1e-3", "0.4"), ("runs/job", "0.01", "0.4"),
                          ("runs/job-2", "1e-3", "0.4"), ("runs/job-2", "0.01", "0.4")])
        for words, other in ((("job", "job-2"), "job-2"), (("job-2", "job"), "job-2"), (("job", "2"), "2")):
            self.assertEqual(self.results(*words, expect=2).stderr,
                             f"trainyard: 'job' and '{other}' both mean run 2 ('runs/job-2'); "
                             "type runs/job for the run in that directory\n")
        latest = "trainyard: 'job' is run 2 ('runs/job-2'), the latest of 2 runs\n"
        for words in (("results", "job"), ("results", "job/seed=0", "job/seed=1"), ("status", "job")):
            self.assertEqual(self.trainyard(*words, expect=0).stderr, latest)
        for word in ("job.yaml", "2", "runs/job-2", "job-2", "last"):
            self.assertEqual(self.trainyard("results", word, expect=0).stderr, "", word)
        self.assertEqual(self.results("runs/job", "1", "1/*", "--csv").stdout, self.results("1", "--csv").stdout)
        self.assertEqual(self.results("1/seed=0", "1/lr=0.01", "--csv").stdout.count("\n"), 4)
        self.assertEqual(self.results("runs/job", "--markdown").stdout.splitlines()[1],
                         "| ---: | ---: | --- | ---: | ---: | ---: |")

    def test_as_csv_have_their_notes_on_standard_error(self):
        self.write("task.sh", '''
[ $1 = 0.01 ] && exit
[ $2 = 0 ] && acc=0.5 || acc='"none"'
echo "{\\"acc\\": $acc}" > $TRAINYARD_RESULT
''')
        self.trainyard("run", "job.yaml", expect=0)
        for words, rows in (((), 4), (("--over", "seed"), 2)):
            notes = self.results(*words).stdout.splitlines()[1 + rows:]
            self.assertEqual(len(notes), 3, "two tasks without a result, and a text")
            table = self.results(*words, "--csv")
            self.assertEqual(table.stderr.splitlines(), [f"trainyard: {line}" for line in notes])
            self.assertEqual(len(list(csv.reader(io.StringIO(table.stdout)))), 1 + rows)

    def test_tell_what_was_meant(self):
        self.trainyard("run", "job.yaml", expect=1)
        for words, told in ((["--sort", ""], "--sort needs a column: --sort -acc sorts by 'acc', largest first"),
                            (["--pivot", "lr", "job.yaml"], "--pivot needs two different keys"),
                            (["nowhere"], "task 'nowhere' not found in 'runs/job', and no run has this name"),
                            (["--sort", "acc", "--pivot", "lr,seed"], " cannot be combined with --")):
            self.assertIn(told, self.results(*words, expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
