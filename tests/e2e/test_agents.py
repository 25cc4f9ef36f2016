"""A run on several machines, as far as one can be several: agents that something in the place of ssh starts here."""
import contextlib
import json
import os
import signal
import sqlite3
import subprocess

import agents
from pages import DOCS, blocks
from yard import PATIENCE_S, TRAINYARD, YardTest, own_mounts

MACHINES = DOCS / "machines.md"
JOB = """
name: sweep
groups:
  - name: train
    matrix: {i: [0, 1, 2, 3]}
    tasks:
      - cpus: %s
        memory: 10MB
        command: '%s'
"""
# Leaves a file where the attempt before is still running.
NOTES_ITSELF = "cd $TRAINYARD_TASK_DIR; [ -e pid ] && kill -0 $(cat pid) && touch twice; echo $$ > pid; "
WAITS = "echo $MACHINE > $TRAINYARD_TASK_DIR/on; read line < $TRAINYARD_RUN_DIR/../../gate || true"


class AgentTest(YardTest):
    def setUp(self):
        super().setUp()
        self.ssh = self.write("ssh", agents.STAND_IN, mode=0o755)
        self.cpus = os.cpu_count() / 2
        os.mkfifo(self.directory / "gate")

    def tearDown(self):
        for relay, agent in agents.agents(self.sockets):
            for process in (relay, agent):
                if process:
                    with contextlib.suppress(ProcessLookupError):  # It may just have ended.
                        os.kill(process, signal.SIGKILL)
        super().tearDown()

    def words(self, *words, on="lab1,lab2", **options):
        return ["run", "job.yaml", "--on", on, *agents.settings(self.directory, self.ssh, **options), *words]

    def sweep(self, command=WAITS):
        self.job(JOB % (self.cpus, command.replace("'", "''")))

    def ask(self, sql):
        journal = sqlite3.connect(f"file:{self.directory}/runs/sweep/journal.db?mode=ro", uri=True)
        try:
            return journal.execute(sql).fetchall()
        finally:
            journal.close()

    def until_all_run(self):
        self.until("all to run", lambda: len([path for path in self.directory.glob("runs/sweep/*/*/on") if path.read_text()]) == 4)

    def machines_of_tasks(self):
        return [path.read_text().strip() for path in sorted(self.directory.glob("runs/sweep/*/*/on"))]

    def attempts(self):
        return [attempt for attempt, in self.ask("SELECT attempt FROM ended ORDER BY task")]

    def until_no_agents(self):
        self.until("all agents to go", lambda: not agents.agents(self.sockets))


class Machines(AgentTest):
    def test_run_what_has_room_there(self):
        self.sweep()
        yard = self.start(*self.words())
        self.until_all_run()
        self.assertEqual(self.machines_of_tasks(), ["lab1", "lab1", "lab2", "lab2"])
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)
        self.assertEqual(self.attempts(), [1, 1, 1, 1])
        joined = [json.loads(data)["name"] for data, in self.ask("SELECT data FROM events WHERE kind = 'machine_joined'")]
        self.assertEqual(joined, ["lab1", "lab2"])
        self.until_no_agents()

    def test_run_the_job_file_as_it_was_when_the_run_was_typed(self):
        self.sweep("echo before > $TRAINYARD_TASK_DIR/on")
        self.write("ssh.lab1", f"sed -i s/before/after/ {self.directory}/job.yaml\n")
        self.trainyard(*self.words(on="lab1"), expect=0)
        self.assertIn("after", self.text("job.yaml"), "it is edited while the run reaches its machine")
        self.assertEqual(self.machines_of_tasks(), ["before"] * 4)

    def test_are_beside_this_one_where_it_is_named(self):
        self.sweep("echo ${MACHINE-here} > $TRAINYARD_TASK_DIR/on; read line < $TRAINYARD_RUN_DIR/../../gate || true")
        yard = self.start(*self.words(on="lab1,local"))
        self.until_all_run()
        self.assertEqual(sorted(self.machines_of_tasks()), ["here", "here", "lab1", "lab1"])
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)

    def test_tell_what_tasks_say_print_and_leave(self):
        self.job(f"""
name: sweep
groups:
  - name: train
    tasks:
      - id: one
        memory: 10MB
        command: |
          {TRAINYARD} client progress 0.5 loss=0.25
          echo '::metric acc=0.75'
          echo printed; echo wrong >&2
          {TRAINYARD} client result score=3
""")
        self.trainyard(*self.words(on="lab1"), expect=0)
        told, = json.loads(self.trainyard("status", "--json", "--all", expect=0).stdout)["tasks"]
        self.assertEqual(told["result"], {"score": 3})
        self.assertIn("printed", self.trainyard("logs", "one", expect=0).stdout)

    def test_fail_tasks_that_fail_there(self):
        self.sweep("exit 3")
        done = self.trainyard(*self.words(), expect=1)
        self.assertIn("EXIT 3", done.stdout)

    def test_end_all_by_ctrl_c(self):
        self.sweep()
        yard = self.start(*self.words())
        self.until_all_run()
        yard.send_signal(signal.SIGINT)
        self.end_of(yard, expect=130)
        self.until_no_agents()


class Unreachable(AgentTest):
    def refused(self, *words, **options):
        self.sweep("true")
        done = self.trainyard(*self.words(*words, **options), expect=2)
        self.assertFalse((self.directory / "runs/sweep/journal.db").exists(), "nothing has begun")
        return done.stderr

    def test_machines_are_named_with_what_ssh_says_and_that_does_nothing_to_a_terminal(self):
        self.write("ssh.lab2", "printf '\\033[2J\\007me@lab2: Permission denied (publickey).\\n' >&2; exit 255\n")
        told = self.refused()
        self.assertRegex(told, r"lab2: .*me@lab2: Permission denied \(publickey\)\.\n")
        self.write("ssh.lab1", "echo lost >&2; exit 255\n")
        self.assertRegex(self.refused(), r"(?m)^trainyard: lab1: lost\ntrainyard: lab2: .*Permission denied")
        self.assertNotIn("\033", told)
        self.assertNotIn("\007", told)

    def test_a_machine_without_trainyard_is_told_from_others(self):
        told = self.refused(program="/nowhere/trainyard")
        self.assertIn("lab1: ", told)
        self.assertIn("install trainyard there, set 'agent.program' to its path, or set 'agent.copy' to copy it there", told)

    def test_a_program_that_is_no_agent_is_refused(self):
        self.assertIn("the output is not that of an agent", self.refused(program="yes #"))

    def where_the_runs_are(self, mounted):
        """An agent that sees the directory of all runs as `mounted` makes it."""
        if os.geteuid() != 0:
            self.skipTest("only root makes a machine another disk")
        (self.directory / "runs").mkdir()
        return self.write("elsewhere", f"""#!/bin/sh
runs={self.directory}/runs
exec {" ".join(own_mounts())} sh -c "{mounted}"' && exec {TRAINYARD} "$@"' sh "$@"
""", mode=0o755)

    def test_a_directory_that_is_not_the_same_there_is_refused(self):
        self.assertIn("is not the same on", self.refused(program=self.where_the_runs_are("mount -t tmpfs none $runs")))

    def test_a_directory_that_cannot_be_written_there_is_refused(self):
        locked = self.where_the_runs_are("mount --bind $runs $runs && mount -o remount,ro,bind $runs")
        self.assertRegex(self.refused(program=locked), r"lab1: directory: .*[Rr]ead-only file system")

    def test_greetings_of_a_shell_are_passed_over(self):
        self.write("ssh.lab1", "echo 'Welcome to lab1!'; printf 'and no end of this line'\n")
        self.sweep("true")
        self.trainyard(*self.words(), expect=0)


class Faults(AgentTest):
    def begin(self, command=WAITS, **options):
        self.sweep(command)
        yard = self.start(*self.words(**options))
        self.until_all_run()
        return yard, self.until("two agents", lambda: len(found := agents.agents(self.sockets)) == 2 and found)

    def end(self, yard):
        self.keep_opening_gate(yard)
        return self.end_of(yard, expect=0)[1]

    def tasks_of(self, agent):
        """The processes of the tasks that this agent runs."""
        everybody = agents.processes()

        def descends(pid):
            parent = everybody.get(pid, (0, []))[0]
            return parent == agent or parent > 1 and descends(parent)
        return {pid for pid, (_, words) in everybody.items() if words[:1] == ["/bin/bash"] and descends(pid)}

    def test_a_stream_that_is_cut_costs_no_task(self):
        yard, ((relay, _), _) = self.begin()
        os.kill(relay, signal.SIGKILL)
        self.until("it to answer again", lambda: self.ask("SELECT count(*) FROM events WHERE kind = 'keeper'") == [(2,)])
        told = self.end(yard)
        self.assertIn("its tasks run for another 1m, and no new tasks start there", told)
        self.assertIn("answers again", told)
        self.assertEqual(self.attempts(), [1, 1, 1, 1])

    def test_a_stream_that_says_nothing_is_opened_again(self):
        yard, ((relay, _), _) = self.begin(lease="2s")
        os.kill(relay, signal.SIGSTOP)
        # It answers again, or joins again if its lease has ended meanwhile. test_ssh.py shows the use of a long lease.
        self.until("it to be there again", lambda: self.ask(
            "SELECT count(*) >= 4 FROM events WHERE kind = 'machine_joined' OR kind = 'keeper'") == [(1,)])
        self.assertIn("no response", self.end(yard))

    def test_tasks_of_an_agent_that_is_suspended_end_with_the_lease_and_none_runs_twice(self):
        yard, ((_, agent), _) = self.begin(NOTES_ITSELF + WAITS, lease="1s")
        os.kill(agent, signal.SIGSTOP)
        theirs = self.tasks_of(agent)
        self.until("the lease to end its tasks", lambda: not theirs & set(agents.processes()))
        os.kill(agent, signal.SIGCONT)
        self.assertIn("LOST", self.end(yard))
        self.assertTrue(all(attempt > 1 for attempt in sorted(self.attempts())[-2:]), self.attempts())
        self.assertEqual(list(self.directory.glob("runs/sweep/*/*/twice")), [])

    def test_an_agent_that_is_killed_costs_its_tasks_a_try(self):
        yard, ((_, agent), _) = self.begin()
        os.kill(agent, signal.SIGKILL)
        self.until("another agent", lambda: self.ask("SELECT count(*) FROM events WHERE kind = 'machine_joined'") == [(3,)])
        told = self.end(yard)
        self.assertIn("is gone: its agent is gone", told)
        self.assertEqual(sorted(self.attempts()), [1, 1, 2, 2])


class Resumed(AgentTest):
    def test_waits_for_machines_that_it_has_no_more_and_keeps_those_that_it_has(self):
        self.sweep(NOTES_ITSELF + WAITS)
        yard = self.start(*self.words(lease="4s"), "--set", "period.machine-end=1s")
        self.until_all_run()
        yard.kill()
        self.end_of(yard)
        again = self.start("run", "--resume", "runs/sweep", "--on", "lab1")
        self.until("the agent of lab2 to go", lambda: len(agents.agents(self.sockets)) < 2)
        self.until("it to resume", lambda: self.ask("SELECT count(*) FROM executions") == [(2,)])
        self.keep_opening_gate(again)
        told = self.end_of(again, expect=0)[1]
        self.assertRegex(told, "tasks of the last execution may still run on lab2 for another .*, and the run waits for their end ")
        self.assertIn("2 tasks kept running without trainyard, and continue", told)
        self.assertEqual(sorted(self.attempts()), [1, 1, 2, 2])
        self.assertEqual(list(self.directory.glob("runs/sweep/*/*/twice")), [])


class Spoken(AgentTest):
    """An agent as it is spoken to by hand."""

    def agent(self):
        return subprocess.Popen([TRAINYARD, "agent", "--stdio", "--key", "k1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env=self.environment)

    def say(self, agent, *lines):
        for line in lines:
            agent.stdin.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        agent.stdin.flush()

    def hear(self, agent):
        return json.loads(agent.stdout.readline())

    def opened(self):
        agent = self.agent()
        self.started.append(agent)
        self.open(agent)
        return agent

    def open(self, agent):
        self.assertEqual(agent.stdout.readline(), "\n", "what a shell has greeted with may not have ended its line")
        self.say(agent, {"open": {"protocol": 2, "program": "test", "lease": 60000}})
        self.assertEqual(self.hear(agent)["hello"]["protocol"], 2)

    def test_garbage_ends_the_stream_and_not_the_agent(self):
        for line, why in (("garbage", "yard: "), ("{}", "yard: "), ('{"number":7,"bye":{}}', "something that was said is missing"),
                          ('{"number":1,"start":{}}', "no run has begun here")):
            agent = self.opened()
            self.say(agent, line)
            self.assertIn(why, self.hear(agent)["refuses"]["why"])
            self.assertEqual(agent.stdout.readline(), "")
            agent.wait(PATIENCE_S)
        long = self.opened()
        with contextlib.suppress(BrokenPipeError):
            self.say(long, "x" * 17_000_000)
        self.assertEqual(long.stdout.readline(), "", "one that never ends is not answered")
        long.wait(PATIENCE_S)
        self.assertEqual(len(agents.agents(self.sockets)), 1)
        last = self.opened()
        self.say(last, {"bye": {}})
        self.until_no_agents()

    def test_a_yard_of_another_version_is_refused(self):
        agent = self.agent()
        self.started.append(agent)
        self.say(agent, {"open": {"protocol": 9, "program": "trainyard 9.0"}})
        agent.stdout.readline()
        self.assertIn("and trainyard 9.0 are incompatible", self.hear(agent)["refuses"]["why"])

    def test_a_start_that_is_cut_at_any_byte_is_none(self):
        self.write("proof", "token")
        begin = json.dumps({"number": 1, "begin": {"run_directory": str(self.directory), "proof": f"{self.directory}/proof", "token": "token"}})
        start = json.dumps({"number": 2, "start": {"command": {"key": {"task": 0, "attempt": 1}}, "launch": {
            "arguments": ["touch", f"{self.directory}/was-here"], "working_directory": str(self.directory),
            "task_directory": f"{self.directory}/task"}}}) + "\n"
        first = self.opened()
        self.say(first, begin)
        # There may be notes about limits of this machine.
        said = self.hear(first)
        while "note" in said:
            said = self.hear(first)
        self.assertIn("ready", said)
        for size in [*range(0, len(start) - 1, 29), len(start) - 1]:
            agent = self.opened()
            agent.stdin.write(start[:size])
            agent.communicate(timeout=PATIENCE_S)
        self.assertFalse((self.directory / "was-here").exists())
        whole = self.opened()
        self.say(whole, start.strip())
        self.until_file("was-here")
        self.say(whole, {"bye": {}})
        self.until_no_agents()

    def test_greets_before_it_tells_what_has_happened_meanwhile(self):
        self.write("proof", "token")
        command = f"echo $$ > {self.directory}/pid; read line < {self.directory}/gate"
        first = self.opened()
        self.say(first, {"number": 1, "begin": {"run_directory": str(self.directory), "proof": f"{self.directory}/proof", "token": "token"}},
                 {"number": 2, "start": {"command": {"key": {"task": 0, "attempt": 1}}, "launch": {
                     "arguments": ["sh", "-c", command], "working_directory": str(self.directory), "task_directory": f"{self.directory}/task"}}})
        self.until_written("pid")
        second = self.agent()
        self.started.append(second)
        first.stdout.read()
        self.open_gate()
        task = int(self.text("pid"))
        self.until("the task to end", lambda: task not in agents.processes())
        self.open(second)
        self.say(second, {"bye": {}})
        self.until_no_agents()

    def test_it_wants_a_key_and_a_stream(self):
        done = self.trainyard("agent", expect=2)
        self.assertIn("'trainyard run --on HOST' starts it", done.stderr)
        self.assertIn("--cpus: 'many' is not a number of CPUs", self.trainyard("agent", "--stdio", "--key", "k1", "--cpus", "many", expect=2).stderr)
        self.assertIn("must be 1 to 64 letters and digits", self.trainyard("agent", "--stdio", "--key", "../x", expect=2).stderr)


class Looked(AgentTest):
    def machines(self, *words, on="lab1,lab2,local", expect=0):
        settings = agents.settings(self.directory, self.ssh)
        return self.trainyard("machines", "--on", on, *settings, *words, expect=expect).stdout

    def test_machines_that_will_do_say_what_they_have(self):
        self.assertRegex(self.machines(), r"(?s)\Alab1   ok  \S+, [^\n]* CPUs?, [^\n]*, (no GPU|GPUs? [^\n]*), trainyard .*\nlab2   ok .*\nlocal  ok ")
        first = json.loads(self.machines("--json"))["machines"][0]
        self.assertEqual((first["name"], first["ok"], first["cpus"] > 0, first["memory_bytes"] > 0), ("lab1", True, True, True))
        self.until_no_agents()

    def test_machines_that_will_not_say_why(self):
        self.write("ssh.lab2", "echo 'Permission denied (publickey).' >&2; exit 255\n")
        self.assertIn("lab2   NO  Permission denied (publickey).\n", self.machines(expect=2))
        one, two = json.loads(self.machines("--json", on="lab1,lab2", expect=2))["machines"]
        self.assertEqual((one["ok"], two), (True, {"name": "lab2", "ok": False, "wrong": "Permission denied (publickey)."}))


class Kinds(AgentTest):
    """Other kinds of tasks, there as here."""

    def test_cards_are_those_of_the_machine(self):
        shown = self.directory / "gpus.json"
        self.environment.update(LD_LIBRARY_PATH=os.environ["TRAINYARD_FAKE_NVML_DIR"], TRAINYARD_FAKE_NVML=str(shown))
        for host, uuid in (("lab1", "GPU-aaaa"), ("lab2", "GPU-bbbb")):
            card = {"uuid": uuid, "name": "Fake", "pci": "00000000:01:00.0", "memory": 8_000_000_000}
            self.write(f"gpus-{host}.json", json.dumps({"devices": [card]}))
            self.write(f"ssh.{host}", f"export TRAINYARD_FAKE_NVML={self.directory}/gpus-{host}.json\n")
        shown.write_text(json.dumps({"devices": []}))
        self.job(JOB % ("0\n        gpus: 1", "echo $MACHINE $CUDA_VISIBLE_DEVICES > $TRAINYARD_TASK_DIR/on"))
        self.trainyard(*self.words(), expect=0)
        self.assertEqual(set(self.machines_of_tasks()), {"lab1 0", "lab2 0"})

    def test_ranks_meet_there(self):
        self.job(JOB % ("0\n        ranks: 2", "echo $RANK $WORLD_SIZE $MASTER_ADDR >> $TRAINYARD_TASK_DIR/on"))
        self.trainyard(*self.words(), expect=0)
        for text in self.machines_of_tasks():
            self.assertEqual(sorted(text.splitlines()), ["0 2 127.0.0.1", "1 2 127.0.0.1"])

    def test_two_phases_load_and_train_on_one_machine(self):
        wait = f"{TRAINYARD} client wait-device > $TRAINYARD_TASK_DIR/device && echo $MACHINE > $TRAINYARD_TASK_DIR/on"
        self.job(JOB % ("0\n        two-phase: true", wait))
        self.trainyard(*self.words(), expect=0)
        self.assertEqual(set(self.machines_of_tasks()) - {"lab1", "lab2"}, set())
        self.assertEqual([path.read_text() for path in self.directory.glob("runs/sweep/*/*/device")], ["cpu\n"] * 4)

    def test_a_task_that_is_killed_ends_there(self):
        self.job(JOB % ("0\n        time-limit: 1h", WAITS))
        yard = self.start(*self.words())
        self.until_all_run()
        self.trainyard("kill", "runs/sweep", "i=0", expect=0)
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=1)
        self.assertEqual(self.ask("SELECT count(*) FROM ended WHERE failure = 3"), [(1,)])


class Page(AgentTest):
    """The blocks that readers copy from docs/machines.md; the salloc is tested with a real Slurm (test_slurm.py)."""

    def setUp(self):
        super().setUp()
        self.write("bin/ssh", agents.STAND_IN, mode=0o755)
        (self.directory / "bin/trainyard").symlink_to(TRAINYARD)
        self.environment["PATH"] = f"{self.directory}/bin:{self.environment['PATH']}"
        self.write("sweep.yaml", "name: sweep\ngroups: [{tasks: [{command: 'true', memory: 10MB}]}]\n")

    def shell(self, script):
        done = subprocess.run(["sh", "-ec", script], cwd=self.directory, env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def ran_on(self):
        return [name for name, in self.ask("SELECT name FROM machines ORDER BY number")]

    def test_names_them_where_a_run_is_started(self):
        self.shell(blocks(MACHINES, "sh")[0])
        self.assertEqual(self.ran_on()[1:], ["lab1", "me@lab2"])

    def test_has_an_agent_look_after_this_one_where_that_is_asked_for(self):
        self.shell(blocks(MACHINES, "sh")[4])
        self.assertEqual(self.ran_on(), [os.uname().nodename])

    def test_plays_a_run_through_before_they_are_there(self):
        script, = [block for block in blocks(MACHINES, "sh") if "trainyard plan" in block]
        self.shell(script)

    def test_says_of_tasks_that_they_go_on_where_they_were(self):
        written, = [block for block in blocks(MACHINES, "yaml") if "checkpoint:" in block]
        self.write("job.yaml", written)
        tasks = json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)["tasks"]
        self.assertEqual([(task["signal"], task["checkpoint"]) for task in tasks], [("SIGUSR1, 2m before TERM", False), (None, True)])

    def test_names_them_for_a_directory(self):
        self.write("trainyard.yaml", blocks(MACHINES, "yaml")[0])
        self.shell("trainyard run sweep.yaml")
        self.assertEqual(self.ran_on()[1:], ["lab1", "me@lab2"])
