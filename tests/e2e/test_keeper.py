"""A run outlives its keeper: another one takes its place, and what ran is tried again."""
import re

from test_preload import MYDATA
from yard import CLIENT, YardTest, alive, guard_of, keeper_of, os, processes_with, signal, suspend

# Each attempt notes itself; the first ones wait to be killed.
JOB = """
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    matrix: {i: 1..4}
    tasks:
      - command: 'echo {i}.$TRAINYARD_ATTEMPT >> begun; test $TRAINYARD_ATTEMPT -gt %d || sleep 1000; echo "{{\\"i\\": {i}}" > $TRAINYARD_RESULT'
  - {name: last, tasks: [{id: end, command: ['true']}]}
"""
TAKES_ITS_PLACE = r"the keeper \(process (\d+)\) was killed by signal 9: process (\d+) replaces it"


class Keeper(YardTest):
    def environment_of_run(self, run="job"):
        return f"TRAINYARD_RUN_DIR={self.directory.resolve()}/runs/{run}"

    def attempts(self, run="runs/job"):
        """(task, attempt, failure) of those that another one came after."""
        names = {6: "LOST", 4: "EXIT", 0: "STOPPED"}
        return [(task, attempt, names.get(failure, failure)) for task, attempt, failure in self.query(
            "SELECT t.id, a.attempt, a.failure FROM attempts a JOIN tasks t ON t.number = a.task ORDER BY 1, 2", run)]

    def begun(self, count):
        self.until(f"{count} attempts", lambda: (self.directory / "begun").exists() and
                   len(self.text("begun").splitlines()) == count)

    def kill_keeper(self, yard, count):
        """Kills the keeper once this number of attempts has begun. Returns its process number."""
        self.begun(count)
        keeper = keeper_of(yard.pid)
        os.kill(keeper, signal.SIGKILL)
        return keeper

    def test_that_is_killed_loses_its_tasks_which_are_tried_again_and_the_run_goes_on(self):
        self.job(JOB % 1)
        yard = self.start("run", "job.yaml")
        keeper = self.kill_keeper(yard, 4)
        _, errors = self.end_of(yard, expect=0)
        told = re.search(TAKES_ITS_PLACE + "; 4 running tasks were lost with it and retried\n", errors)
        self.assertTrue(told, errors)
        self.assertEqual(told[1], str(keeper))
        self.assertEqual(self.query("SELECT how FROM executions"), [("ended",)])
        self.assertEqual(self.attempts(), [(f"i={i}", 1, "LOST") for i in range(1, 5)])
        rows = {row["id"]: (row["word"], row["attempt"], row["result"]) for row in self.status()["tasks"]}
        self.assertEqual(rows, {**{f"i={i}": ("FINISHED", 2, {"i": i}) for i in range(1, 5)},
                                "end": ("FINISHED", 1, None)})
        self.assertEqual(processes_with(self.environment_of_run()), [])
        self.assertEqual(list(self.sockets.iterdir()), [])

    def test_that_is_killed_again_and_again_is_replaced_as_often(self):
        self.job(JOB % 3)
        yard = self.start("run", "job.yaml")
        keepers = [self.kill_keeper(yard, 4 * count) for count in (1, 2, 3)]
        _, errors = self.end_of(yard, expect=0)
        self.assertEqual([int(told[0]) for told in re.findall(TAKES_ITS_PLACE, errors)], keepers)
        self.assertEqual(self.attempts(), [(f"i={i}", attempt, "LOST") for i in range(1, 5) for attempt in (1, 2, 3)])
        self.assertEqual(set(self.words().values()), {"FINISHED"})

    def test_the_death_of_its_guard_ends_the_run_with_what_it_knows(self):
        self.job(JOB % 1)
        yard = self.start("run", "job.yaml")
        self.begun(4)
        guard = guard_of(yard.pid)
        os.kill(guard, signal.SIGKILL)
        _, errors = self.end_of(yard, expect=75)
        why = f"the guard of the keeper (process {guard}) was killed by signal 9"
        self.assertIn(f"{why}: no new tasks start\n", errors)
        self.assertNotIn("again kills all", errors)
        self.assertIn("the process that starts tasks is gone; resume it with 'trainyard run --resume runs/job'\n", errors)
        self.assertEqual({(row["word"], row["message"]) for row in self.status()["tasks"]}, {("STOPPED", why)})
        self.until("the end of every process", lambda: not processes_with(self.environment_of_run()))
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertEqual(set(self.words().values()), {"FINISHED"})

    def test_the_death_of_its_guard_loses_no_end_that_came_before_it(self):
        self.keep_an_end_that_came_before_the_death_of("guard")

    def test_its_death_with_its_guard_loses_no_end_that_came_before_it(self):
        self.keep_an_end_that_came_before_the_death_of("guard", "keeper")

    def keep_an_end_that_came_before_the_death_of(self, *names):
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 10MB, tasks: [{id: a, command: "
                 "'echo 1 >> begun; until test -e go; do sleep 0.01; done; echo $$ > ended'}]}]")
        yard = self.start("run", "job.yaml")
        self.until("the task", lambda: self.life("a")[-1:] == ["TRAINING"])
        # The kernel has reported the end, and the keeper has not received it.
        suspend(keeper_of(yard.pid))
        self.write("go", "")
        self.until("the task's end", lambda: (self.directory / "ended").exists() and self.text("ended") and
                   not alive(int(self.text("ended"))))
        there = self.three_of(yard)
        for name in names:
            os.kill(there[name], signal.SIGKILL)
        # Nothing is left to be resumed.
        self.assertNotIn("resume it", self.end_of(yard, expect=0)[1])
        self.assertEqual([(row["word"], row["attempt"]) for row in self.status()["tasks"]], [("FINISHED", 1)])
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertEqual(self.text("begun"), "1\n")

    def test_takes_ranks_with_it_which_begin_anew_together(self):
        self.job("""
name: job
groups: [{name: g, cpus: 0, memory: 10MB, tasks: [{id: t, ranks: 3, command:
  'echo $RANK.$TRAINYARD_ATTEMPT >> begun; test $TRAINYARD_ATTEMPT = 2 || sleep 1000'}]}]
""")
        yard = self.start("run", "job.yaml")
        self.kill_keeper(yard, 3)
        self.end_of(yard, expect=0)
        self.assertEqual(sorted(self.text("begun").split()), [f"{rank}.{attempt}" for rank in range(3) for attempt in (1, 2)])
        self.assertEqual(self.attempts(), [("t", 1, "LOST")])

    def test_takes_what_has_been_imported_with_it_and_two_phase_tasks(self):
        (self.directory / "trainyard.py").write_bytes((CLIENT / "trainyard/client.py").read_bytes())
        self.write("mydata.py", MYDATA)
        self.write("train.py", """
import os, sys, time, trainyard, mydata
for attempt in trainyard.attempts():
    with attempt as device:
        with open("begun", "a") as begun:
            begun.write("%s.%s\\n" % (sys.argv[1], os.environ["TRAINYARD_ATTEMPT"]))
        if os.environ["TRAINYARD_ATTEMPT"] == "1":
            time.sleep(1000)
        trainyard.result(device=device)
""")
        self.job("""
name: job
groups:
  - {name: f, preload: [mydata], two-phase: true, memory: 50MB, tasks: [{id: forked, command: /usr/bin/python3 train.py forked}]}
  - {name: p, needs: [], two-phase: true, memory: 50MB, tasks: [{id: plain, command: /usr/bin/python3 train.py plain}]}
""")
        yard = self.start("run", "job.yaml")
        self.kill_keeper(yard, 2)
        self.end_of(yard, expect=0)
        self.assertEqual(sorted(self.text("begun").split()), ["forked.1", "forked.2", "plain.1", "plain.2"])
        self.assertEqual(self.attempts(), [("forked", 1, "LOST"), ("plain", 1, "LOST")])
        self.assertEqual([(row["word"], row["result"]) for row in self.status()["tasks"]],
                         2 * [("FINISHED", {"device": "cpu"})])
        # Once for those that are forks of it, in each keeper, and once in each plain process.
        self.assertEqual(len(self.text("imported").split()), 4)

    def test_that_is_killed_with_its_yard_loses_nothing_that_was_done(self):
        self.job("""
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    tasks:
      - {id: done, command: 'echo run >> runs.txt'}
      - {id: long, command: 'test $TRAINYARD_ATTEMPT = 2 || sleep 1000'}
""")
        yard = self.start("run", "job.yaml")
        self.until("one that has finished", lambda: self.life("done")[-1:] == ["EXITED"] and self.life("long")[-1:] == ["TRAINING"])
        both = (yard.pid, keeper_of(yard.pid))
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in both:
                os.kill(pid, number)
        yard.wait()
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertEqual({row["id"]: (row["word"], row["attempt"]) for row in self.status()["tasks"]},
                         {"done": ("FINISHED", 1), "long": ("FINISHED", 2)})
        self.assertEqual(self.text("runs.txt"), "run\n")
        self.assertEqual(self.attempts(), [("long", 1, "LOST")])

    def test_knows_how_long_a_task_ran_while_its_yard_was_stopped(self):
        for gate in ("gate", "other"):
            os.mkfifo(self.directory / gate)
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 10MB, tasks: ["
                 "{id: a, command: 'echo $$ > a; cat gate'}, {id: b, command: 'echo $$ > b; cat other; sleep 0.2'}]}]")
        yard = self.start("run", "job.yaml")
        self.until("the tasks", lambda: all(self.life(task)[-1:] == ["TRAINING"] for task in "ab"))
        yard.send_signal(signal.SIGSTOP)
        self.until("the yard to be suspended", lambda: self.status()["state"] == "suspended")
        self.open_gate()
        self.until_reaped("a")
        # The second one runs at least 200 ms longer than the first one.
        with open(self.directory / "other", "w"):
            pass
        self.until_reaped("b")
        yard.send_signal(signal.SIGCONT)
        self.end_of(yard, expect=0)
        a, b = self.status()["tasks"]
        self.assertGreaterEqual(b["ended_ms"] - a["ended_ms"], 200)
        for row in (a, b):
            self.assertEqual(row["train_ms"], row["duration_ms"])

    def until_reaped(self, task):
        """Waits until the keeper knows that this task has ended. A file of the task's name has its process number."""
        pid = self.until_written(task) and self.text(task).strip()
        self.until("the keeper to see its end", lambda: not os.path.exists(f"/proc/{pid}"))

    def dead_yard(self, tasks):
        """A run whose yard was killed while these ran, each of which says so in `begun`; and its keeper."""
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 10MB, tasks: [\n%s]}]" % ",\n".join(
            "{id: %s, command: '%s'}" % task for task in tasks.items()))
        yard = self.start("run", "job.yaml")
        self.begun(len(tasks))
        self.until("the journal's knowledge of it", lambda: all(self.life(task)[-1:] == ["TRAINING"] for task in tasks))
        keeper = keeper_of(yard.pid)
        yard.kill()
        yard.wait()
        return keeper

    SAVES = 'trap "%s; exit %d" TERM; echo $TRAINYARD_ATTEMPT >> begun; while :; do sleep 0.01; done'

    def test_what_ends_when_the_yard_is_gone_is_counted_when_its_run_goes_on(self):
        again = 'test $TRAINYARD_ATTEMPT = 1 || exit 0; '
        self.write("saved.json", '{"epoch": 7}')
        self.dead_yard({
            "done": again + self.SAVES % ("cp saved.json $TRAINYARD_RESULT", 0),
            "saved": again + self.SAVES % ("true", 0),
            "failed": again + self.SAVES % ("true", 3),
            "killed": again + "echo 1 >> begun; exec sleep 1000"})
        # It may still be at it: that is waited for.
        would = self.trainyard("run", "--resume", "runs/job", "--dry-run")
        self.assertEqual(would.returncode, 0, would.stderr)
        resumed = self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertIn("resumed: 1 of 4 tasks finished before, and will not run again", resumed.stderr)
        self.assertIn("1 task ended after trainyard had died; its outcome is recorded", resumed.stderr)
        self.assertIn("3 tasks were running when trainyard died, and were killed: they run again", resumed.stderr)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual({task: (row["word"], row["attempt"]) for task, row in rows.items()},
                         {"done": ("FINISHED", 1), "saved": ("FINISHED", 2), "failed": ("FINISHED", 2),
                          "killed": ("FINISHED", 2)})
        self.assertEqual(rows["done"]["result"], {"epoch": 7})
        self.assertEqual(self.attempts(), [(task, 1, "STOPPED") for task in ("failed", "killed", "saved")])
        told = dict(self.query("SELECT t.id, a.message FROM attempts a JOIN tasks t ON t.number = a.task"))
        self.assertEqual(told["failed"], "trainyard died while the task ran; the task was then killed: exit code 3")
        self.assertEqual(told["killed"], "trainyard died while the task ran; the task was then killed: SIGTERM")
        # As for any other attempt: the events are those of the execution that died, in order.
        self.assertEqual(self.query("SELECT execution, count(*) FROM events WHERE kind = 'ended' GROUP BY 1"),
                         [(1, 4), (2, 3)])
        times = [at for at, in self.query("SELECT at_ms FROM events ORDER BY seq")]
        self.assertEqual(times, sorted(times))
        self.assertFalse((self.directory / "runs/job/trainyard.ends").exists())

    def test_what_a_stopped_yard_had_not_heard_of_is_counted_too(self):
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 10MB, tasks: [{id: a, command: "
                 "'echo 1 >> begun; until test -e go; do sleep 0.01; done; echo $$ > ended'}]}]")
        yard = self.start("run", "job.yaml")
        self.until("the task", lambda: self.life("a")[-1:] == ["TRAINING"])
        keeper = keeper_of(yard.pid)
        yard.send_signal(signal.SIGSTOP)
        self.write("go", "")
        self.until("the task's end", lambda: (self.directory / "ended").exists() and self.text("ended") and
                   not alive(int(self.text("ended"))))
        yard.kill()
        yard.wait()
        self.until("the keeper's end", lambda: not alive(keeper))
        resumed = self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertIn("1 task ended after trainyard had died; its outcome is recorded", resumed.stderr)
        self.assertEqual([(row["word"], row["attempt"]) for row in self.status()["tasks"]], [("FINISHED", 1)])
        self.assertEqual(self.text("begun"), "1\n")

    def test_notes_that_cannot_be_made_lose_nothing_but_the_note(self):
        self.write("mine", "mine")
        link = 'test $TRAINYARD_ATTEMPT = 1 || exit 0; ln -s "$PWD/mine" "$TRAINYARD_RUN_DIR/trainyard.ends"; '
        self.dead_yard({"a": link + self.SAVES % ('echo {{} > $TRAINYARD_RESULT', 0)})
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertEqual(set(self.words().values()), {"FINISHED"})
        self.assertEqual(self.text("mine"), "mine")
        self.assertFalse(os.path.lexists(self.directory / "runs/job/trainyard.ends"))

    def three_of(self, yard):
        """The yard, and what there is of its keeper and its guard."""
        found = {"yard": yard.pid}
        try:
            found["guard"] = guard_of(yard.pid)
            found["keeper"] = keeper_of(yard.pid)
        except (AssertionError, OSError):
            pass  # It has not forked them yet, or has ended.
        return {name: pid for name, pid in found.items() if pid}

    def test_kills_leave_nothing_where_sockets_are(self):
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 10MB, matrix: {i: 1..3}, tasks: [{command: sleep 1000}]}]")
        # The progress of the yard when it is killed.
        stages = {
            "begun": lambda yard: True,
            "guarded": lambda yard: "guard" in self.three_of(yard),
            "listening": lambda yard: list(self.sockets.glob("trainyard-*/control")),
            "running": lambda yard: len(processes_with(self.environment_of_run(f"kill-{len(kills)}"))) >= 3}
        kills = []
        for stage, reached in stages.items():
            for names in (("yard",), ("keeper", "yard"), ("guard",), ("guard", "yard")):
                if names == ("guard", "yard") and stage in ("begun", "guarded"):
                    continue  # The keeper alone does not know of the socket yet.
                kills.append((stage, names))
                with self.subTest(stage=stage, names=names):
                    self.kill_at(reached, names, f"kill-{len(kills)}")

    def kill_at(self, reached, names, run):
        yard = self.start("run", "job.yaml", "--run-dir", f"runs/{run}")
        self.until("the stage", lambda: yard.poll() is not None or reached(yard))
        if yard.poll() is not None:
            self.fail(self.end_of(yard))
        for name in names:
            there = self.three_of(yard)
            if yard.poll() is None:
                os.kill(there.get(name, yard.pid), signal.SIGKILL)
        self.end_of(yard)
        self.until("the end of the others", lambda: not any(alive(pid) for pid in there.values()))
        # A process that had just been forked when they were looked for may still be removing it.
        self.until("empty runtime directory", lambda: not list(self.sockets.iterdir()))
        self.until("the end of the tasks", lambda: not processes_with(self.environment_of_run(run)))

    def test_the_exit_codes_stand_in_the_help(self):
        for words in (["--help"], ["run", "--help"]):
            told = self.trainyard(*words, expect=0).stdout
            for code in (0, 1, 2, 75, 130, 143):
                self.assertRegex(told, rf"\b{code} ", words)
            # Tasks may have failed as well.
            self.assertIn("75 incomplete ('run --resume' continues it);", told)
