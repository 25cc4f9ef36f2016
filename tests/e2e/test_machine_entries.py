"""The part of other machines that a run may use, and the commands run there first: a stand-in for ssh starts the agents here."""
import json
import os

import agents
from pages import DOCS, blocks
from test_agents import JOB, AgentTest

ASKS = "echo $MACHINE $CUDA_VISIBLE_DEVICES > $TRAINYARD_TASK_DIR/on"


class Entries(AgentTest):
    def run_job(self, machines, tasks, *words, expect=0):
        self.job(f"machines:\n{machines}" + tasks)
        return self.trainyard("run", "job.yaml", *agents.settings(self.directory, self.ssh), *words, expect=expect)

    def joined(self):
        return self.ask("SELECT name, cpus_milli, memory FROM machines ORDER BY number")

    def show_two_cards(self):
        shown = self.directory / "gpus.json"
        self.environment.update(LD_LIBRARY_PATH=os.environ["TRAINYARD_FAKE_NVML_DIR"], TRAINYARD_FAKE_NVML=str(shown))
        shown.write_text(json.dumps({"devices": [{"uuid": f"GPU-{name}", "name": "Fake", "pci": f"00000000:0{i}:00.0", "memory": 8_000_000_000}
                                                 for i, name in enumerate(("aaaa", "bbbb"))]}))


class Limits(Entries):
    def test_are_all_that_is_counted(self):
        self.run_job("  - {ssh: lab1, cpus: 0.5, memory: 1GB}\n  - lab2\n", JOB % (0.5, "echo $MACHINE > $TRAINYARD_TASK_DIR/on"))
        one, two = self.joined()
        self.assertEqual(one, ("lab1", 500, 1_000_000_000))
        self.assertEqual(two[:2], ("lab2", os.cpu_count() * 1000))
        self.assertLessEqual({*self.machines_of_tasks()}, {"lab1", "lab2"})

    def test_refuse_a_task_that_wants_more(self):
        told = self.run_job("  - {ssh: lab1, cpus: 0.5}\n", JOB % (1, "true"), expect=2).stderr
        self.assertRegex(told, r"needs 1 CPU")

    def test_leave_cards_out_that_nobody_is_given_or_told_of(self):
        self.show_two_cards()
        self.run_job("  - {ssh: lab1, gpus: 1}\n", JOB % ("0\n        gpus: 1", ASKS))
        self.assertEqual(set(self.machines_of_tasks()), {"lab1 1"})
        self.assertEqual(self.ask("SELECT uuid FROM gpus"), [("GPU-bbbb",)])
        told = self.run_job("  - {ssh: lab1, gpus: none}\n", JOB % ("0\n        gpus: 1", ASKS), "--new", expect=2).stderr
        self.assertIn("'machines' selects none of the GPUs", told)

    def test_that_leave_no_card_hide_all_of_them(self):
        self.show_two_cards()
        for left in ("none", "7"):
            self.run_job("  - {ssh: lab1, gpus: %s}\n" % left, JOB % (0, ASKS), "--run-dir", f"runs/of-{left}")
            seen = [path.read_text() for path in self.directory.glob(f"runs/of-{left}/*/*/on")]
            self.assertEqual(seen, ["lab1 -1\n"] * 4)

    def test_that_are_more_than_there_is_are_said_and_are_no_reason_against_it(self):
        self.show_two_cards()
        self.write("trainyard.yaml", "machines: [{ssh: lab1, cpus: 9000, gpus: [0, 5]}]\n")
        told, = json.loads(self.trainyard("machines", "--json", *agents.settings(self.directory, self.ssh), expect=0).stdout)["machines"]
        limits = {check["check"]: check for check in told["checks"]}["limits"]
        self.assertEqual((limits["state"], limits["says"]), ("warning", f"it has only {os.cpu_count()} CPUs; it has no GPU 5"))
        self.assertEqual(len(told["gpus"]), 1)


class Setup(Entries):
    def setup(self, line, command="true", **options):
        return self.run_job("  - {ssh: lab1, setup: '%s'}\n" % line.replace("'", "''"), JOB % (0, command), **options)

    def test_is_what_tasks_find_there(self):
        self.write("venv/activate", "export PATH=$PWD/venv:$PATH WORD=\"it's $PWD\"; read line && exit 1; echo said\n")
        self.write("venv/mine", "#!/bin/sh\necho \"$WORD\" > $TRAINYARD_TASK_DIR/on\n", mode=0o755)
        self.setup(". ./venv/activate # of this directory", "mine")
        self.assertEqual(set(self.machines_of_tasks()), {f"it's {self.directory}"})

    def test_that_fails_is_told_with_what_it_printed_and_nothing_runs(self):
        for line, said in (("echo no such module; echo torch >&2; false", "no such module\ntorch"), ("echo gone; exit 3", "gone"),
                           ("echo 'half", ""), ("false", "no output")):
            told = self.setup(line, expect=2).stderr
            self.assertIn(f"lab1: its setup failed: {said}", told)
            self.assertFalse((self.directory / "runs").exists())

    def test_is_in_the_directory_of_the_job_file_or_fails(self):
        self.write("ssh.lab1", f"told=\"mv {self.directory}/jobs {self.directory}/moved; $told\"\n")
        self.job("machines: [{ssh: lab1, setup: pwd}]\ngroups: [{tasks: [{command: 'true'}]}]\n", name="jobs/job.yaml")
        done = self.trainyard("run", "jobs/job.yaml", *agents.settings(self.directory, self.ssh), expect=2)
        self.assertRegex(done.stderr, r"lab1: its setup failed: .*cd: .*jobs")


class Page(Entries):
    def test_says_what_a_job_file_takes(self):
        self.write("venv/bin/activate", "")
        block, = [block for block in blocks(DOCS / "machines.md", "yaml") if "gpus: all" in block]
        block = block.replace("source venv", ". ./venv")
        self.job(block + JOB % (0, "true"))
        self.trainyard("run", "job.yaml", *agents.settings(self.directory, self.ssh), expect=0)
        self.assertEqual([name for name, _, _ in self.joined()][1:], ["lab1", "me@lab2"])
