"""A run on the nodes of an allocation, as `salloc -N2 trainyard run --on slurm` is typed: beside a real Slurm of the test's own."""
import os
import pathlib
import shutil
import signal
import subprocess

import agents
from pages import DOCS, blocks
from test_agents import AgentTest
from yard import PATIENCE_S, TRAINYARD

SLURM = ["/usr/bin/python3", "-B", str(pathlib.Path(__file__).resolve().parent.parent / "slurm.py")]
# The least that Slurm knows.
A_MINUTE_S = 60
# Processes in the background of a shell ignore SIGINT, and the tests may be such.
HEARS_CTRL_C = ["env", "--default-signal=INT"]
NODE = "echo $SLURMD_NODENAME > $TRAINYARD_TASK_DIR/on; read line < $TRAINYARD_RUN_DIR/../../gate || true"


class SlurmTest(AgentTest):
    def end_after_a_minute(self, yard, **options):
        self.until("the end of the run", lambda: yard.poll() is not None, patience=A_MINUTE_S + PATIENCE_S)
        return self.end_of(yard, **options)


class Slurm(SlurmTest):
    def words(self, *words, on="slurm", **options):
        return super().words(*words, on=on, **options)

    def test_gives_all_nodes_of_its_allocation(self):
        self.job("""
name: sweep
groups:
  - name: train
    matrix: {i: [0, 1, 2, 3]}
    tasks: [{cpus: 1, memory: 400MB, command: '%s'}]
""" % NODE)
        yard = self.start(*self.words(), prefix=[*SLURM, "salloc", "-Q", "-N2", "--ntasks-per-node=4"])
        self.until_all_run()
        self.assertEqual(sorted(self.machines_of_tasks()), ["node1", "node1", "node2", "node2"])
        shown = self.trainyard("status", "runs/sweep", expect=0).stdout
        self.assertIn("node1", shown)
        self.assertIn("node2", shown)
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)
        self.assertEqual(self.attempts(), [1, 1, 1, 1])
        self.until_no_agents()

    def test_is_none_outside_of_one(self):
        self.sweep("true")
        done = self.trainyard(*self.words(), expect=2)
        self.assertIn("'slurm' means the nodes of a Slurm allocation, and trainyard runs in none; to request one, type: trainyard run --slurm", done.stderr)

    def test_starts_a_step_again_that_is_ended(self):
        self.sweep(NODE)
        yard = self.start(*self.words(), prefix=[*SLURM, "salloc", "-Q", "-N2", "--ntasks-per-node=4"])
        self.until("some to run", lambda: len(list(self.directory.glob("runs/sweep/*/*/on"))) >= 2)
        _, agent = agents.agents(self.sockets)[0]
        os.kill(agent, signal.SIGKILL)
        self.until("another agent", lambda: self.ask("SELECT count(*) FROM events WHERE kind = 'machine_joined'") == [(3,)])
        self.keep_opening_gate(yard)
        self.assertIn("is gone: its agent is gone", self.end_of(yard, expect=0)[1])

    def test_is_asked_for_nodes_as_the_page_does(self):
        (self.directory / "bin").mkdir()
        (self.directory / "bin/trainyard").symlink_to(TRAINYARD)
        self.environment["PATH"] = f"{self.directory}/bin:{self.environment['PATH']}"
        self.write("sweep.yaml", "name: sweep\ngroups: [{tasks: [{command: 'true', memory: 10MB}]}]\n")
        asked = [block for block in blocks(DOCS / "machines.md", "sh") if "--nodes" in block or "salloc" in block]
        self.assertEqual(len(asked), 2)
        for block in asked:
            script = self.write("go.sh", block)
            done = subprocess.run([*SLURM, "sh", "-e", str(script)], cwd=self.directory, env=self.environment, capture_output=True, text=True,
                                  timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(self.ask("SELECT name FROM machines ORDER BY number"), [("node1",), ("node2",)])
            shutil.rmtree(self.directory / "runs")

    def test_ends_the_run_with_the_allocation(self):
        self.write("job.yaml", """
            name: sweep
            groups:
              - name: train
                memory: 1MB
                checkpoint: true
                tasks: [{id: long, command: 'touch $TRAINYARD_TASK_DIR/on; while :; do sleep 0.1; done'}]
            """)
        yard = self.start(*self.words(), prefix=[*SLURM, "salloc", "-Q", "-N1", "--ntasks-per-node=4", "--time=1"])
        errors = self.end_after_a_minute(yard)[1]
        self.assertIn("the time of the allocation is over: 'trainyard run --resume' continues in another one\n", errors)
        told = self.ask("SELECT count(*) FROM events WHERE data LIKE '%retry 1: preempted: the time of its machine was over%'")
        self.assertEqual(told, [(1,)])
        self.assertEqual(self.ask("SELECT how FROM executions"), [("interrupted",)])


class AskedSlurm(SlurmTest):
    """Slurm is asked for nodes: it is there as long as the test is."""

    def setUp(self):
        super().setUp()
        self.slurm = subprocess.Popen([*SLURM, "sh", "-c", "echo $SLURM_CONF; read over"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.environment["SLURM_CONF"] = self.slurm.stdout.readline().strip()

    def tearDown(self):
        super().tearDown()
        self.slurm.communicate("\n", timeout=PATIENCE_S)

    def words(self, *words, options="--nodes=1 --ntasks-per-node=4", **settings):
        known = agents.settings(self.directory, self.ssh, **settings)
        return ["run", "job.yaml", "--slurm", options, "--set", "utilization-limit.cpu=100%", *known, *words]

    def slurm_says(self, *words):
        return subprocess.run(words, env=self.environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout.split()

    def queue(self):
        return self.slurm_says("squeue", "-h", "-o", "%i")

    def until_queue_is_empty(self):
        self.until("all to be given back", lambda: not self.queue())

    def jobs_of_tasks(self):
        return sorted({path.read_text() for path in self.directory.glob("runs/sweep/*/*/job")})

    def sweep(self, command="echo $SLURM_JOB_ID > $TRAINYARD_TASK_DIR/job; " + NODE):
        super().sweep(command)
        self.cpus = 1

    def joined(self):
        return self.ask("SELECT count(*) FROM events WHERE kind = 'machine_joined'")[0][0]

    def test_runs_in_what_it_is_given_and_gives_it_back(self):
        self.sweep()
        yard = self.start(*self.words(options="--nodes=2 --ntasks-per-node=4 --time=30"))
        self.until("some to run", lambda: len(list(self.directory.glob("runs/sweep/*/*/on"))) >= 2)
        self.assertEqual(len(self.queue()), 1)
        self.keep_opening_gate(yard)
        errors = self.end_of(yard, expect=0)[1]
        self.assertIn("trainyard: slurm: requests nodes: --nodes=2 --ntasks-per-node=4 --time=30\n", errors)
        self.assertRegex(errors, "trainyard: slurm: allocation 1 has node1, node2, for (30m|2\dm(\d+s)?)\n")
        self.assertEqual(set(self.machines_of_tasks()), {"node1", "node2"})
        self.until_queue_is_empty()
        self.until_no_agents()

    def test_interrupts_what_goes_on_where_it_was_and_goes_on_in_the_next_one(self):
        # 45 s of a minute, the least that Slurm knows, are for tasks, and half of them for a signal.
        self.write("train.sh", """
            trap 'echo saved >> $TRAINYARD_CHECKPOINT_DIR/steps; exit 0' USR1
            echo $SLURM_JOB_ID >> $TRAINYARD_TASK_DIR/jobs
            [ -e $TRAINYARD_CHECKPOINT_DIR/steps ] && exit 0
            echo on > $TRAINYARD_TASK_DIR/on
            while :; do sleep 0.1; done
            """)
        self.write("job.yaml", """
            name: sweep
            groups:
              - name: train
                memory: 1MB
                signal: USR1@60
                tasks: [{id: long, command: exec sh train.sh}]
            """)
        yard = self.start(*self.words("--set", "period.allocation-idle=2s", options="--nodelist=node1 --ntasks-per-node=4 --time=1"))
        errors = self.end_after_a_minute(yard, expect=0)[1]
        self.assertEqual(self.text("runs/sweep/train/long/jobs"), "1\n2\n")
        self.assertEqual(self.text("runs/sweep/train/long/checkpoints/steps"), "saved\n")
        self.assertEqual(self.ask("SELECT attempt, message FROM attempts"), [(1, "retry 1: preempted: the time of its machine was over")])
        self.assertIn("allocation 1 is released: no task runs there, and no waiting task could start there\n", errors)
        self.until_queue_is_empty()

    def test_gives_back_early_what_nothing_needs_any_more(self):
        self.write("job.yaml", """
            name: sweep
            groups:
              - name: train
                memory: 1MB
                tasks: [{id: long, command: 'touch $TRAINYARD_TASK_DIR/on; while [ ! -e over ]; do sleep 0.1; done'}]
            """)
        yard = self.start(*self.words("--allocations", "2", "--set", "period.allocation-idle=2s",
                                       options="--nodes=1 --ntasks-per-node=4"))
        self.until("both", lambda: len(self.slurm_says("squeue", "-h", "-t", "R", "-o", "%i")) == 2)
        self.until("one of both to be given back", lambda: len(self.slurm_says("squeue", "-h", "-t", "R", "-o", "%i")) == 1)
        self.assertTrue((self.directory / "runs/sweep/train/long/on").exists())
        self.write("over", "")
        errors = self.end_of(yard, expect=0)[1]
        self.assertRegex(errors, "allocation [12] is released: no task runs there, and no waiting task could start there\n")
        self.assertNotIn("requests another", errors)
        self.until_queue_is_empty()

    def test_goes_on_in_the_next_one_when_one_has_ended(self):
        self.sweep()
        yard = self.start(*self.words(options="--nodelist=node1 --ntasks-per-node=4"))
        self.until("some to run", lambda: len(list(self.directory.glob("runs/sweep/*/*/on"))) >= 2)
        self.slurm_says("scancel", "1")
        self.until("the next one", lambda: self.joined() == 2)
        self.keep_opening_gate(yard)
        errors = self.end_of(yard, expect=0)[1]
        self.assertIn("allocation 1 has ended: Job allocation 1 has been revoked.\n", errors)
        self.assertIn("allocation 2 has node1\n", errors)
        self.assertIn("node1: is gone: its agent is gone\n", errors)
        self.assertEqual(self.jobs_of_tasks(), ["2\n"])
        self.assertTrue(all(count in (1, 2) for count in self.attempts()), self.attempts())
        self.until_queue_is_empty()

    def test_tries_again_what_ran_where_the_next_one_is_elsewhere(self):
        # Here it has no control groups. The tasks are ended all the same, as none of their processes has left the step.
        (self.directory / "bin").mkdir()
        self.write("bin/scontrol", '#!/bin/sh\n[ "$*" = "show config" ] && exec echo "ProctrackType = proctrack/cgroup"\nexec /usr/bin/scontrol "$@"\n',
                   mode=0o755)
        self.environment["PATH"] = f"{self.directory}/bin:{self.environment['PATH']}"
        self.sweep()
        yard = self.start(*self.words())
        self.until("some to run", lambda: len(list(self.directory.glob("runs/sweep/*/*/on"))) >= 2)
        self.slurm_says("scontrol", "update", "nodename=node1", "state=drain", "reason=test")
        self.slurm_says("scancel", "1")
        self.until("the next one", lambda: self.joined() == 2)
        self.keep_opening_gate(yard)
        errors = self.end_of(yard, expect=0)[1]
        self.assertIn("node1: is gone: its allocation has ended\n", errors)
        self.assertEqual(set(self.machines_of_tasks()), {"node2"})
        lost = [line for line in errors.splitlines() if "LOST" in line]
        self.assertEqual(sum(self.attempts()), 4 + len(lost), "each that was lost was tried once more")
        self.assertGreaterEqual(len(lost), 2)
        self.assertEqual(self.jobs_of_tasks()[-1], "2\n")

    def test_goes_on_elsewhere_when_a_node_dies(self):
        self.sweep()
        yard = self.start(*self.words(lease="2s"))
        self.until("some to run", lambda: len(list(self.directory.glob("runs/sweep/*/*/on"))) >= 2)
        # Slurm cannot end what runs there: its daemon is gone, and what that has started goes on.
        place = pathlib.Path(self.environment["SLURM_CONF"]).parent
        os.kill(int((place / "slurmd-node1.pid").read_text()), signal.SIGKILL)
        self.slurm_says("scontrol", "update", "nodename=node1", "state=down", "reason=dead")
        self.until("the next one", lambda: self.joined() == 2)
        self.keep_opening_gate(yard)
        errors = self.end_of(yard, expect=0)[1]
        self.assertIn("allocation 2 has node2\n", errors)
        self.assertEqual(set(self.machines_of_tasks()), {"node2"})
        lost = [line for line in errors.splitlines() if "LOST" in line]
        self.assertGreaterEqual(len(lost), 2)
        self.assertEqual(sum(self.attempts()), 4 + len(lost), "each that was lost was tried once more")

    def test_takes_nodes_as_they_come(self):
        other = subprocess.Popen(["salloc", "-Q", "--nodelist=node2", "--exclusive", "sh", "-c", "read over"], env=self.environment, stdin=subprocess.PIPE)
        self.started.append(other)
        self.until("the other to have it", lambda: self.slurm_says("squeue", "-h", "-t", "R", "-o", "%i"))
        self.sweep()
        yard = self.start(*self.words("--allocations", "2", options="--nodes=1 --exclusive"))
        self.until("some to run", lambda: len(list(self.directory.glob("runs/sweep/*/*/on"))) >= 1)
        self.assertEqual(self.ask("SELECT name FROM machines"), [("node1",)])
        other.communicate(b"\n", timeout=PATIENCE_S)
        self.until("the other node", lambda: self.joined() == 2)
        self.assertEqual(self.ask("SELECT name FROM machines ORDER BY number"), [("node1",), ("node2",)])
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)
        self.until_queue_is_empty()

    def test_asks_no_more_when_nobody_waits_for_it(self):
        self.sweep()
        for number in (signal.SIGINT, signal.SIGKILL):
            yard = self.start(*self.words(options="--nodes=9"), prefix=HEARS_CTRL_C)
            self.until("it to be asked", self.queue)
            yard.send_signal(number)
            self.end_of(yard)
            self.until_queue_is_empty()
        self.assertFalse((self.directory / "runs").exists())

    def test_gives_back_what_a_run_had_that_is_killed(self):
        self.sweep()
        yard = self.start(*self.words())
        self.until("some to run", lambda: len(list(self.directory.glob("runs/sweep/*/*/on"))) >= 1)
        yard.kill()
        self.end_of(yard)
        self.until_queue_is_empty()
        self.until_no_agents()

    def test_asks_no_more_when_a_run_is_ended_that_was_to_go_on_without_its_terminal(self):
        self.sweep()
        yard = self.start(*self.words("-d", options="--nodes=9"), prefix=HEARS_CTRL_C)
        self.until("it to be asked", self.queue)
        yard.send_signal(signal.SIGINT)
        self.end_of(yard)
        self.until_queue_is_empty()

    def test_asks_again_for_what_was_cancelled_before_the_first_was_granted(self):
        self.sweep()
        yard = self.start(*self.words("--allocations", "2", options="--nodes=1 --ntasks-per-node=4 --hold"))
        self.until("both to be asked", lambda: len(self.queue()) == 2)
        self.slurm_says("scancel", "1")
        self.until("one to be left", lambda: len(self.queue()) == 1)
        self.slurm_says("scontrol", "release", "2")
        self.until("another to be asked", lambda: "3" in self.queue())
        self.keep_opening_gate(yard)
        self.assertIn("an allocation is not granted: ", self.end_of(yard, expect=0)[1])
        self.until_queue_is_empty()

    def test_asks_for_nothing_where_the_job_file_is_wrong(self):
        self.job("name: sweep\ngroups: [{tsks: []}]\n")
        errors = self.trainyard(*self.words(), expect=2).stderr
        self.assertIn("tsks", errors)
        self.assertNotIn("requests nodes", errors)

    def test_says_what_slurm_refuses(self):
        self.sweep()
        for options, why in (("--nodse=9", "slurm: unrecognized option '--nodse=9'"), ("--partition=gpu", "invalid partition specified: gpu")):
            errors = self.trainyard(*self.words(options=options), expect=2).stderr
            self.assertIn(why, errors)
            self.assertNotIn("an allocation is not granted", errors)
        for options, why in (("--nodes=1 --no-shell", "with '--no-shell', salloc keeps no nodes"), ("--comment='a b'", "options are split at spaces, and cannot have quotes")):
            self.assertIn(why, self.trainyard(*self.words(options=options), expect=2).stderr)
        self.assertEqual(self.queue(), [])
        self.assertIn("'--on local' does not contain it", self.trainyard(*self.words("--on", "local"), expect=2).stderr)
        self.assertIn("'65' is not a whole number from 1 to 64", self.trainyard(*self.words("--allocations", "65"), expect=2).stderr)
