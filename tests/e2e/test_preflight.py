"""The checks of other machines before anything runs there: a stand-in for ssh starts the agents here."""
import json
import os
import unittest

import agents
from test_agents import AgentTest
from yard import own_mounts

# No machine has a program 'trainyard-none' unless a test puts it there.
JOB = """
name: sweep
groups:
  - name: train
    tasks:
      - {id: one, memory: 10MB, cpus: 0, command: '%s'}
"""


class Preflight(AgentTest):
    def machines(self, *words, on="lab1,lab2", expect=0):
        settings = agents.settings(self.directory, self.ssh)
        return self.trainyard("machines", *words, "--on", on, *settings, expect=expect).stdout

    def checks(self, *words, **options):
        """{machine: {check: (state, what it says)}}"""
        told = json.loads(self.machines(*words, "--json", **options))["machines"]
        return {machine["name"]: {check["check"]: (check["state"], check["says"]) for check in machine["checks"]} for machine in told}


class Looked(Preflight):
    def test_a_machine_has_a_line_for_each_check(self):
        self.job(JOB % "python3 -c 1")
        lines = self.machines("job.yaml", on="lab1").splitlines()
        self.assertRegex(lines[0], r"^lab1  ok  \S+, ")
        self.assertEqual([line.split()[:2] for line in lines[1:]],
                         [["directory", "ok"], ["programs", "ok"], ["disk", "ok"], ["GPUs", "ok"], ["clock", "ok"]])
        self.assertIn("python3", lines[2])
        self.assertEqual(sorted(path.name for path in self.directory.glob("*.yaml*")), ["job.yaml"], "nothing stays")
        self.until_no_agents()

    def test_a_program_that_only_one_of_them_has_is_missing_on_the_other(self):
        self.job(JOB % "trainyard-none 1")
        self.write("bin-lab1/trainyard-none", "#!/bin/sh\n", mode=0o755)
        self.write("ssh.lab1", f"export PATH={self.directory}/bin-lab1:$PATH\n")
        seen = self.checks("job.yaml", expect=2)
        self.assertEqual(seen["lab1"]["programs"], ("ok", "trainyard-none"))
        self.assertEqual(seen["lab2"]["programs"], ("no", "cannot run 'trainyard-none': program not found on PATH; install it, or write its full path (task train/one)"))
        self.assertRegex(self.machines("job.yaml", expect=2), r"(?m)^lab2  NO  \S+")

    def test_a_host_without_its_option_is_not_taken_for_a_job_file(self):
        self.assertEqual(self.trainyard("machines", "lab1", expect=2).stderr,
                         "trainyard: job file 'lab1' not found; if 'lab1' is a host, type: trainyard machines --on lab1\n")

    def test_a_key_of_tasks_in_the_settings_is_said_to_be_one(self):
        self.write("trainyard.yaml", "memory: 8GB\n")
        said = ("trainyard.yaml:1:1: 'memory' is a key of tasks, not a setting; use '--memory' with a command, or 'memory' in a job "
                "file\n")
        for words in (["machines"], ["run", "--name", "z", "--", "true"]):
            self.assertEqual(self.trainyard(*words, expect=2).stderr, f"trainyard: {said}")

    def test_what_another_task_may_make_is_no_mistake(self):
        self.job("groups: [{name: build, tasks: [{command: 'true'}]}, {name: train, tasks: [{command: ./made}]}]\n")
        state, says = self.checks("job.yaml", on="lab1")["lab1"]["programs"]
        self.assertEqual(state, "warning")
        self.assertIn("cannot run './made'", says)
        self.assertIn("unless another task makes it", says)

    def test_modules_are_looked_for_and_not_imported(self):
        self.write("mydata.py", f"open('{self.directory}/imported', 'w')\n")
        self.job("groups: [{name: a, preload: [json, mydata, nowhere], tasks: [{command: '/usr/bin/python3 train.py'}]}]\n")
        seen = self.checks("job.yaml", on="lab1", expect=2)["lab1"]
        self.assertEqual(seen["imports"], ("no", "/usr/bin/python3 does not find the module 'nowhere'"))
        self.assertFalse((self.directory / "imported").exists())

    def test_cards_are_named_and_a_wish_for_more_than_any_has_is_said(self):
        shown = self.directory / "gpus.json"
        self.environment.update(LD_LIBRARY_PATH=os.environ["TRAINYARD_FAKE_NVML_DIR"], TRAINYARD_FAKE_NVML=str(shown))
        shown.write_text(json.dumps({"devices": [{"uuid": "GPU-a", "name": "Fake H100", "pci": "00000000:01:00.0", "memory": 8_000_000_000}]}))
        self.job("groups: [{name: a, tasks: [{command: 'true', gpus: 1}]}]\n")
        self.assertEqual(self.checks("job.yaml", on="lab1")["lab1"]["GPUs"], ("ok", "0 Fake H100 (8 GB)"))
        self.job("groups: [{name: a, tasks: [{command: 'true', gpus: 2}]}]\n")
        checks = self.checks("job.yaml", on="lab1", expect=2)["lab1"]
        self.assertEqual(checks["GPUs"], ("ok", "0 Fake H100 (8 GB)"))
        self.assertEqual(checks["tasks"][0], "no")
        self.assertRegex(checks["tasks"][1], "^group 'a': needs 2 GPUs")

    def test_tasks_that_fit_nowhere_are_said_on_all_of_them(self):
        self.job("groups: [{name: a, tasks: [{command: 'true', memory: 900TB}]}]\n")
        for checks in self.checks("job.yaml", on="lab1,lab2", expect=2).values():
            self.assertRegex(checks["tasks"][1], "^group 'a': fits on none of lab1, lab2: needs 900 TB of memory")

    def test_room_on_the_disk_is_told_in_figures(self):
        self.job("groups: [{name: a, tasks: [{command: 'true', disk: 900000TB}]}]\n")
        state, says = self.checks("job.yaml", on="lab1", expect=2)["lab1"]["disk"]
        self.assertEqual(state, "no")
        self.assertRegex(says, r"^[0-9.]+ [GTM]B free, a task needs 900")
        told, = json.loads(self.machines("--json", on="lab1"))["machines"]
        self.assertGreater(told["disk_free_bytes"], 0)

    def test_another_job_file_at_the_same_place_is_no_shared_directory(self):
        if os.geteuid() != 0:
            self.skipTest("only root makes a machine another disk")
        self.job(JOB % "true", name="jobs/job.yaml")
        (self.directory / "runs").mkdir()
        self.write("other/job.yaml", "groups: []\n")
        self.write("ssh.lab1", f"told=\"{' '.join(own_mounts())} sh -c 'mount --bind {self.directory}/other {self.directory}/jobs && $told'\"\n")
        state, says = self.checks("jobs/job.yaml", on="lab1", expect=2)["lab1"]["directory"]
        self.assertEqual(state, "no")
        self.assertIn("is another file there: it must be on a disk that both machines share", says)

    @unittest.skipIf("TRAINYARD_SANITIZED" in os.environ, "libfaketime asks for the time before the sanitizer has started")
    def test_a_clock_that_differs_is_said_and_is_no_reason_against_it(self):
        real = self.directory / "trainyard-late"
        self.write("trainyard-late", f"#!/bin/sh\nexec faketime -f -1h {os.environ['TRAINYARD']} \"$@\"\n", mode=0o755)
        done = self.trainyard("machines", "--on", "lab1", "--json", *agents.settings(self.directory, self.ssh, program=real), expect=0)
        told, = json.loads(done.stdout)["machines"]
        clock = {check["check"]: check for check in told["checks"]}["clock"]
        self.assertEqual(clock["state"], "warning")
        self.assertRegex(clock["says"], r"^3[56]\d\d s behind the clock here$")
        self.assertAlmostEqual(told["clock_ahead_ms"], -3_600_000, delta=60_000)


class Begun(Preflight):
    def test_a_run_begins_nothing_where_a_program_is_missing(self):
        self.job(JOB % "trainyard-none 1")
        self.write("bin-lab1/trainyard-none", "#!/bin/sh\n", mode=0o755)
        self.write("ssh.lab1", f"export PATH={self.directory}/bin-lab1:$PATH\n")
        done = self.trainyard(*self.words(), expect=2)
        self.assertIn("lab2: programs: cannot run 'trainyard-none': program not found on PATH; install it, or write its full path (task train/one)", done.stderr)
        self.assertNotIn("lab1", done.stderr)
        self.assertFalse((self.directory / "runs").exists())
        self.until_no_agents()

    def test_a_program_is_wanted_only_where_its_task_may_run(self):
        self.job(JOB.replace("memory", "where: {machine: lab1}, memory") % "trainyard-none 1")
        self.write("bin-lab1/trainyard-none", "#!/bin/sh\n", mode=0o755)
        self.write("ssh.lab1", f"export PATH={self.directory}/bin-lab1:$PATH\n")
        seen = self.checks("job.yaml")
        self.assertEqual(seen["lab1"]["programs"], ("ok", "trainyard-none"))
        self.assertNotIn("programs", seen["lab2"])
        self.trainyard(*self.words(), expect=0)

    def test_a_program_of_the_environment_that_its_task_has_will_do(self):
        self.job("name: sweep\ngroups: [{env: {PATH: '%s/own:/bin'}, tasks: [{command: mine}]}]\n" % self.directory)
        self.write("own/mine", "#!/bin/sh\n", mode=0o755)
        self.trainyard(*self.words(), expect=0)
