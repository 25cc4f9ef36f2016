"""The placement of tasks on several machines: a stand-in for ssh starts the agents here, and the cards are made up."""
import json

import test_agents
import test_gpus
from pages import DOCS, blocks

JOB = """
name: sweep
groups:
  - name: train
    where: {machine: %s}
    matrix: {i: [0, 1, 2, 3]}
    tasks:
      - cpus: %s
        memory: 10MB
        command: '%s'
"""
SAYS = "echo ${MACHINE-here} > $TRAINYARD_TASK_DIR/on"


class Placement(test_agents.AgentTest):
    def sweep_on(self, machine, command=SAYS):
        self.job(JOB % (machine, self.cpus, command))

    def waiting(self):
        return json.loads(self.trainyard("status", "--json", expect=0).stdout)["waiting"]

    def test_tasks_run_on_the_machine_that_they_name_and_on_no_other(self):
        self.sweep_on("'LAB2'")
        self.trainyard(*self.words("--set", "journal.record=full"), expect=0)
        self.assertEqual(self.machines_of_tasks(), ["lab2"] * 4, "lab1 comes first, and has room")
        self.assertIn("the same", self.trainyard("replay", expect=0).stdout)

    def test_what_waits_is_told_of_the_machine_that_it_waits_for(self):
        self.sweep_on("'*2'", test_agents.WAITS)
        yard = self.start(*self.words())
        self.until("two to run", lambda: len(self.machines_of_tasks()) == 2)
        self.until("the reason", lambda: [(reason["cause"], reason["machine"], reason["tasks"]) for reason in self.waiting()]
                   == [("cpus", "lab2", 2)])
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)
        self.assertEqual(self.machines_of_tasks(), ["lab2"] * 4)

    def test_a_run_on_this_machine_alone_has_its_name(self):
        host = self.host()
        self.sweep_on(f"'{host}'")
        self.trainyard("run", "job.yaml", expect=0)
        self.sweep_on("lab1")
        done = self.trainyard("run", "job.yaml", "--run-dir", "other", expect=2)
        why = f"can never run here: where: no machine is called 'lab1'; the only machine is {host}"
        self.assertIn(why, done.stderr)
        self.assertIn(why, self.trainyard("run", "job.yaml", "--run-dir", "other", "--dry-run", expect=0).stdout)
        self.assertIn(why, self.trainyard("submit", "job.yaml", expect=2).stderr)

    def host(self):
        self.job("name: host\ngroups: [{name: a, tasks: [{command: 'true'}]}]\n", "host.yaml")
        self.trainyard("run", "host.yaml", "--run-dir", "host", expect=0)
        machine, = json.loads(self.trainyard("status", "host", "--json", expect=0).stdout)["machines"]
        return machine["name"]

    def test_a_resumed_run_keeps_to_it(self):
        self.sweep_on("lab2", SAYS + "; test -e go")
        self.trainyard(*self.words(), expect=1)
        self.write("go", "")
        self.trainyard("run", "--resume", *self.words()[1:], expect=0)
        self.assertEqual(self.machines_of_tasks(), ["lab2"] * 4)

    def test_what_is_submitted_is_looked_at_on_the_machines_of_the_run(self):
        self.sweep_on("lab2", test_agents.WAITS)
        yard = self.start(*self.words())
        self.until("two to run", lambda: len(self.machines_of_tasks()) == 2)
        self.job("name: more\ngroups: [{name: more, tasks: [{where: {machine: big1}, command: 'true'}]}]\n", "more.yaml")
        done = self.trainyard("submit", "more.yaml", "runs/sweep", expect=2)
        self.assertIn("where: no machine is called 'big1'; the machines are lab1, lab2", done.stderr)
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)

    def test_a_command_may_say_it_too(self):
        self.trainyard("run", *self.words()[2:], "--name", "sweep", "--where", "machine=lab?,gpu=", "--", "true", expect=2)
        self.trainyard("run", *self.words()[2:], "--name", "sweep", "--matrix", "i=0,1", "--where", "machine=*2", "--", "sh", "-c", SAYS, expect=0)
        self.assertEqual([path.read_text().strip() for path in self.directory.glob("runs/sweep/**/on")], ["lab2"] * 2)


class Cards(test_gpus.GpuTest):
    def test_are_given_by_their_names(self):
        self.sweep("gpus: 1\n    where: {gpu: 'fake b'}", 2, "/usr/bin/python3 task.py 0")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual({path.read_text().strip() for path in self.directory.glob("runs/job/g/*/stdout*.log")}, {"1"})

    def test_are_named_as_on_the_page(self):
        self.write("train", "#!/bin/sh\n", mode=0o755)
        self.write("preprocess", "#!/bin/sh\n", mode=0o755)
        written, = [block for block in blocks(DOCS / "machines.md", "yaml") if "where:" in block]
        self.job("name: sweep\n" + written)
        done = self.trainyard("run", "job.yaml", expect=2)
        self.assertIn("job.yaml:4:12: group 'train': task 'train-1' can never run here: where: no machine has a GPU called 'H100'; the only machine is ", done.stderr)
        self.assertIn("job.yaml:8:12: group 'preprocess': task 'preprocess-1' can never run here: where: no machine is called 'lab*'; the only machine is ", done.stderr)
