"""Tasks on other machines run on when their yard is killed, and the run goes on with them."""
import json
import os
import signal

import agents
from test_agents import JOB, AgentTest
from test_unshared import UnsharedTest

# Each attempt says that it runs, and what it was.
WAITS = ("echo $TRAINYARD_ATTEMPT $$ >> $TRAINYARD_TASK_DIR/began; echo $MACHINE > $TRAINYARD_TASK_DIR/on; "
         "read line < $TRAINYARD_RUN_DIR/../../gate || true; echo $TRAINYARD_ATTEMPT >> $TRAINYARD_TASK_DIR/done")


class GoesOnTest(AgentTest):
    def begin(self, command=WAITS, on="lab1,lab2", **options):
        self.sweep(command)
        yard = self.start(*self.words(on=on, **options))
        self.until_all_run()
        return yard

    def kill(self, yard):
        yard.kill()
        self.end_of(yard)

    def resume(self, *words):
        return self.start("run", "--resume", "runs/sweep", *words)

    def end(self, yard):
        self.keep_opening_gate(yard)
        return self.end_of(yard, expect=0)[1]

    def lines(self, name):
        return [path.read_text() for path in sorted(self.directory.glob(f"runs/sweep/train/*/{name}"))]

    def until_they_are_told(self, executions):
        self.until("it to go on", lambda: self.ask(
            f"SELECT count(*) FROM events WHERE kind = 'found' AND execution = {executions}") == [(4,)])

    def resume_with_the_same_attempts(self):
        self.kill(self.begin())
        began = self.lines("began")
        again = self.resume()
        self.until_they_are_told(2)
        shown = json.loads(self.trainyard("status", "--json", "--all", expect=0).stdout)["tasks"]
        self.assertEqual([(task["word"], task["attempt"]) for task in shown], [("RUNNING", 1)] * 4)
        self.assertEqual(self.ask("SELECT count(*) FROM live WHERE started_ms < (SELECT min(at_ms) FROM events WHERE execution = 2)"), [(4,)],
                         "the time of the run continues while no yard counts it")
        told = self.end(again)
        self.assertIn("4 tasks kept running without trainyard, and continue", told)
        self.assertEqual(self.attempts(), [1, 1, 1, 1])
        self.assertEqual(self.ask("SELECT sum(train_numbers) FROM ended"), [(4,)])
        self.assertEqual(self.lines("began"), began)
        self.assertEqual(self.lines("done"), ["1\n"] * 4)
        self.assertEqual(self.ask("SELECT count(*) FROM attempts"), [(0,)])
        self.until_no_agents()
        self.assertFalse((self.directory / "runs/sweep/machines.keys").exists())


class GoesOn(GoesOnTest):
    def test_with_the_same_attempts_and_none_runs_twice(self):
        self.resume_with_the_same_attempts()

    def test_and_ctrl_c_ends_them(self):
        self.kill(self.begin())
        again = self.resume()
        self.until_they_are_told(2)
        again.send_signal(signal.SIGINT)
        self.end_of(again, expect=130)
        self.assertEqual(self.ask("SELECT count(*) FROM ended WHERE attempt = 1"), [(4,)])
        self.assertEqual(self.lines("done"), [])
        self.until_no_agents()

    def test_with_what_has_ended_meanwhile(self):
        self.kill(self.begin(WAITS + "; echo '{\"x\": 1}' > $TRAINYARD_RESULT"))
        self.until("all to end", lambda: self.open_gate_if_read() or len(self.lines("done")) == 4)
        self.end_of(self.resume(), expect=0)
        self.assertEqual(self.attempts(), [1, 1, 1, 1])
        shown = json.loads(self.trainyard("status", "--json", "--all", expect=0).stdout)["tasks"]
        self.assertEqual([(task["word"], task["result"]) for task in shown], [("FINISHED", {"x": 1})] * 4)
        self.assertEqual(self.lines("done"), ["1\n"] * 4)

    def test_though_the_next_yard_is_killed_as_well(self):
        self.kill(self.begin())
        again = self.resume()
        self.until_they_are_told(2)
        self.kill(again)
        self.end(self.resume())
        self.assertEqual(self.attempts(), [1, 1, 1, 1])
        self.assertEqual(self.lines("done"), ["1\n"] * 4)

    def test_anew_where_the_job_was_edited(self):
        self.kill(self.begin())
        self.sweep(WAITS + "; true")
        again = self.resume("job.yaml")
        self.until("all to run again", lambda: self.ask("SELECT count(*) FROM live WHERE pid <> 0 AND attempt = 2") == [(4,)])
        self.assertIn("4 tasks that kept running are killed, and start over", self.end(again))
        self.assertEqual(self.attempts(), [2, 2, 2, 2])
        self.assertEqual(self.lines("done"), ["2\n"] * 4)

    def test_once_it_can_be_resumed_and_is_not_deleted_before(self):
        self.kill(self.begin())
        job = (self.directory / "job.yaml").read_text()
        self.job(job.replace("tasks:", "taskss:"))
        self.trainyard("run", "--resume", "runs/sweep", expect=2)
        self.job(job)
        self.write("ssh.lab2", "echo no route >&2; exit 255")
        self.assertIn("lab2: no route", self.trainyard("run", "--resume", "runs/sweep", expect=2).stderr)
        (self.directory / "ssh.lab2").unlink()
        self.assertIn("may run for another", self.trainyard("clean", "runs/sweep", expect=2).stderr)
        self.end(self.resume())
        self.assertEqual(self.attempts(), [1, 1, 1, 1])
        self.trainyard("clean", "runs/sweep", expect=0)

    def test_and_a_second_yard_takes_nothing_away(self):
        yard = self.begin()
        self.assertRegex(self.trainyard("run", "--resume", "runs/sweep", expect=2).stderr,
                         "is in use by process .*: to watch it, type 'trainyard status runs/sweep --watch'")
        self.end(yard)
        self.assertEqual(self.attempts(), [1, 1, 1, 1])

    def test_whenever_it_is_killed(self):
        self.job("name: sweep\ngroups:\n  - {name: train, memory: 1MB, cpus: 0.5, matrix: {i: 0..39}, "
                 "tasks: [{command: 'echo $TRAINYARD_ATTEMPT >> {task_dir}/began; sleep 0.1; echo $TRAINYARD_ATTEMPT >> {task_dir}/done'}]}\n")
        yard = self.start(*self.words())
        for many in (5, 15, 25):
            self.until("some to be done", lambda: len(self.lines("done")) >= many)
            self.kill(yard)
            yard = self.resume()
        self.end_of(yard, expect=0)
        self.assertEqual(self.ask("SELECT count(*) FROM ended WHERE verdict = 1"), [(40,)])
        self.assertEqual(len(self.lines("done")), 40)
        for began, done in zip(self.lines("began"), self.lines("done"), strict=True):
            # An attempt that was decided and not yet said to the agent is lost, and has left no line.
            self.assertEqual(began, done)
            self.assertIn(began, ("1\n", "2\n", "3\n", "4\n"), "each task has run once")

    def test_with_what_a_preload_has_forked(self):
        self.write("train.py", "import json, os\nopen(os.environ['TRAINYARD_TASK_DIR'] + '/on', 'w').write('x')\n"
                   "open(os.environ['TRAINYARD_RUN_DIR'] + '/../../gate').readline()\n")
        self.job(JOB.replace("tasks:", "preload: json\n    tasks:") % (self.cpus, "python3 train.py"))
        yard = self.start(*self.words())
        self.until_all_run()
        self.kill(yard)
        again = self.resume()
        self.until_they_are_told(2)
        self.assertIn("4 tasks kept running without trainyard, and continue", self.end(again))
        self.assertEqual(self.attempts(), [1, 1, 1, 1])

    def test_but_for_tasks_of_two_phases_which_begin_anew(self):
        self.job(JOB.replace("command:", "two-phase: true\n        command:") % (
            self.cpus, f"{agents.TRAINYARD} client wait-device && echo x > $TRAINYARD_TASK_DIR/on; read line < $TRAINYARD_RUN_DIR/../../gate || true"))
        yard = self.start(*self.words())
        self.until_all_run()
        self.kill(yard)
        self.end(self.resume())
        self.assertEqual(self.attempts(), [2, 2, 2, 2])


class Survives(GoesOnTest):
    """Tasks on this machine survive the yard, too, where an agent is requested."""

    def words(self, *words, **_):
        return ["run", "job.yaml", "--survive", *agents.settings(self.directory, "/nowhere/ssh"), *words]

    def setUp(self):
        super().setUp()
        self.cpus = os.cpu_count() / 4

    def test_with_the_same_attempts_and_none_runs_twice(self):
        self.resume_with_the_same_attempts()

    def test_which_status_says_and_the_resumed_run_names_the_option_that_was_typed(self):
        self.kill(self.begin())
        self.assertRegex(self.trainyard("status", expect=0).stdout,
                         r"died at least \S.* after its start; its tasks are killed within \S.*; resume it with 'trainyard run --resume runs/sweep'; Ctrl-C then stops its tasks\n")
        told = self.end(self.resume())
        self.assertRegex(told, r"as in the last execution: --set agent\.ssh=.* --survive\n")
        self.assertNotIn("agent.local", told)

    def test_and_without_an_agent_they_are_ended(self):
        self.kill(self.begin())
        again = self.resume("--set", "agent.local=false")
        self.until("all to run again", lambda: self.ask("SELECT count(*) FROM live WHERE pid <> 0 AND attempt = 2") == [(4,)])
        self.end(again)
        self.assertEqual(self.lines("done"), ["2\n"] * 4)

    def test_as_a_machine_with_the_name_of_this_one(self):
        self.sweep("echo $MACHINE > $TRAINYARD_TASK_DIR/on")
        self.trainyard(*self.words(), expect=0)
        self.assertEqual(self.ask("SELECT name FROM machines"), [(os.uname().nodename,)])
        self.assertEqual(self.attempts(), [1, 1, 1, 1])


class Unshared(UnsharedTest):
    """Their files come back as if nothing had been."""

    def test_files_come_when_the_run_has_gone_on(self):
        self.sweep_of(f"""
  - name: train
    memory: 10MB
    matrix: {{i: [1, 2]}}
    tasks: [{{command: 'echo {{i}} > {{task_dir}}/model; touch {self.directory}/began.{{i}}; read line < {self.directory}/gate; echo {{i}} >> {{task_dir}}/model'}}]
""")
        yard = self.start("run", "job.yaml", *self.settings())
        for i in (1, 2):
            self.until_file(f"began.{i}")
        yard.kill()
        self.end_of(yard)
        again = self.start("run", "--resume", "runs/sweep", *self.settings())
        self.until("it to go on", lambda: self.ask("SELECT count(*) FROM events WHERE kind = 'found'") == [(2,)])
        self.keep_opening_gate(again)
        self.assertIn("2 tasks kept running without trainyard, and continue", self.end_of(again, expect=0)[1])
        for i in (1, 2):
            self.assertEqual(self.text(f"runs/sweep/train/i={i}/model"), f"{i}\n{i}\n")
        self.until("nothing of the run to stay there", lambda: self.own_directories("lab1") == [])
