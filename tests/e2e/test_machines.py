"""One run of workers on two machines, which meet at a real server of NATS: `trainyard parallel --attach` as a user types it."""
import pathlib
import re
import signal

import machines
from python_workers import BEGIN, PYTHON
from servers import free_port
from yard import PATIENCE_S, TRAINYARD, YardTest, json, os, subprocess

CARTPOLE = pathlib.Path(os.environ["TRAINYARD_BUILD"]) / "examples/cartpole/cartpole"


class Machines(YardTest):
    def start(self, *words, on=(), logs="logs", **variables):
        process = subprocess.Popen([*on, TRAINYARD, "parallel", "--logs", logs, *words], cwd=self.directory, text=True,
                                   env={**self.environment, "TRAINYARD_NATS_TOKEN": "s3cret", **variables}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(process)
        return process

    def end_of(self, process, expect=0):
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, expect, errors)
        return errors

    def server(self, **options):
        server = machines.NatsServer(self.directory, port=free_port(), **options)
        self.started.append(server.process)
        return server

    def read_until(self, process, part):
        while part not in (line := self.next_line(process.stderr)):
            self.assertTrue(line, f"it ended without {part!r}")

    def pair(self, *words):
        """Two machines of one run, here on one, whose workers are up: the first begins it."""
        attach = ["--attach", f"nats://127.0.0.1:{self.server().port}", "--run", "pair", *words]
        up = ["--", "sh", "-c", "echo up; exec sleep 1000"]
        both = (self.start("-n", "1", *attach, "--elsewhere", "1", *up, logs="a"),
                self.start("-n", "1", *attach, "--join", "--node-ids", "1", *up, logs="b"))
        for process in both:
            self.assertIn("up", self.next_line(process.stderr))
        return both

    def test_of_two_networks_learn_what_one_learns(self):
        try:
            first, second = self.enterContext(machines.two())
        except OSError as error:
            self.skipTest(str(error).strip())
        server = machines.NatsServer(self.directory, address=machines.FIRST, on=first.on)
        self.started.append(server.process)
        attach = ["--attach", f"nats://{machines.FIRST}:4222", "--run", "dqn"]
        learns = self.start("-n", "2", "--roles", "learner,evaluator", *attach, "--elsewhere", "2", "--", str(CARTPOLE), "--worker",
                            "--seed", "7", on=first.on)
        plays = self.start("-n", "2", "--roles", "collector,collector", *attach, "--join", "--node-ids", "2", "--", str(CARTPOLE),
                           "--worker", "--seed", "7", on=second.on, logs="there")
        self.end_of(plays)
        told = self.end_of(learns)
        self.assertIn("[0] finished: it keeps the pole up", told)
        self.assertRegex(told, r"\[0\] \d+ steps of the environment in .* a second")
        self.assertGreaterEqual(json.loads((self.directory / "cartpole-run/best.json").read_text())["kept"]["mean_return"], 475)

    def test_log_in_as_the_user_of_the_environment(self):
        attach = ["--attach", f"nats://127.0.0.1:{self.server(login=('--user', 'trainer', '--pass', 's3cret')).port}", "--run", "pair"]
        user = {"TRAINYARD_NATS_TOKEN": "", "TRAINYARD_NATS_USER": "trainer"}
        wrong = self.start("-n", "1", *attach, "--elsewhere", "1", "--", "true", **user, TRAINYARD_NATS_PASSWORD="guess")
        self.assertIn("the server must know this token, or this user and password", self.end_of(wrong, expect=2))
        both = [self.start("-n", "1", *attach, *words, "--", "true", logs=logs, **user, TRAINYARD_NATS_PASSWORD="s3cret")
                for logs, words in (("a", ["--elsewhere", "1"]), ("b", ["--join", "--node-ids", "1"]))]
        for process in both:
            self.end_of(process)

    def test_end_all_by_ctrl_c_on_one_of_them(self):
        first, second = self.pair()
        second.send_signal(signal.SIGINT)
        self.end_of(second, expect=130)
        self.assertIn("another machine ends the run: the run is stopped", self.end_of(first, expect=130))

    def test_end_as_failed_where_ctrl_c_comes_after_a_worker_has_failed(self):
        attach = ["--attach", f"nats://127.0.0.1:{self.server().port}", "--run", "pair", "--grace", "600s"]
        first = self.start("-n", "1", *attach, "--elsewhere", "1", "--", "sh", "-c",
                           "trap 'echo ends; until [ -e over ]; do sleep 0.01; done; exit' TERM; echo up; while :; do sleep 0.01; done", logs="a")
        second = self.start("-n", "1", *attach, "--join", "--node-ids", "1", "--", "sh", "-c",
                            "until [ -e fail ]; do sleep 0.01; done; exit 3", logs="b")
        self.read_until(first, "up")
        (self.directory / "fail").touch()
        self.read_until(first, "ends")
        first.send_signal(signal.SIGINT)
        self.read_until(first, "stopping the run on all machines")
        (self.directory / "over").touch()
        for process in (first, second):
            self.assertIn("worker 1 failed: exited with code 3", self.end_of(process, expect=1))

    def test_are_waited_for_no_more_after_a_second_ctrl_c(self):
        # Long before the grace of the workers is over.
        first, second = self.pair("--grace", "600s")
        second.send_signal(signal.SIGSTOP)
        first.send_signal(signal.SIGINT)
        self.assertIn("stopping the run on all machines; Ctrl-C again kills at once", self.next_line(first.stderr))
        first.send_signal(signal.SIGINT)
        self.end_of(first, expect=130)
        # The news has come that the run is stopped, and that the first machine has left it.
        second.send_signal(signal.SIGCONT)
        self.assertIn("another machine ends the run: the run is stopped", self.end_of(second, expect=130))

    def test_end_as_stopped_also_where_the_first_machine_is_gone_before(self):
        attach = ["--attach", f"nats://127.0.0.1:{self.server().port}", "--run", "pair"]
        first = self.start("-n", "1", *attach, "--elsewhere", "1", "--", "sh", "-c", "echo up; exec sleep 1000", logs="a")
        self.read_until(first, "up")
        second = self.start("-n", "1", *attach, "--join", "--node-ids", "1", "--grace", "600s", "--", "sh", "-c",
                            "trap '' INT TERM; echo up; while :; do sleep 1; done", logs="b")
        self.read_until(second, "up")
        second.send_signal(signal.SIGINT)
        self.read_until(first, "another machine ends the run")
        first.send_signal(signal.SIGINT)
        self.end_of(first, expect=130)
        self.read_until(second, "has begun the run, and is gone")
        second.send_signal(signal.SIGINT)
        self.end_of(second, expect=130)

    def test_are_shown_with_what_they_have_of_each_other(self):
        first, second = self.pair()
        shown = subprocess.run([TRAINYARD, "parallel", "--status"], env=self.environment, capture_output=True, text=True,
                               timeout=PATIENCE_S, check=True).stdout
        self.assertIn(f"logs: {self.directory}/a\nrun: pair\n", shown)
        idle = r"sends 0/s, gets 0/s, 0 events queued, 0 dropped, 0 refused\n"
        self.assertRegex(shown, rf"machine \S+: workers 1, last message \d+ ms ago, {idle}")
        self.assertRegex(shown, rf"machine \S+: workers 0, last message \d+ ms ago, {idle}")
        first.send_signal(signal.SIGTERM)
        self.end_of(first, expect=143)
        self.end_of(second, expect=130)

    def test_are_shown_with_the_rates_of_events_and_with_those_that_are_dropped(self):
        self.write("worker.py", BEGIN + """
if worker.node == 1:
    worker.on("n", lambda number: None)
worker.ready()
number = 0
while worker.node == 0 and not worker.ending.is_set():
    worker.emit("n", number)
    number += 1
    open("sends", "a").close()
worker.ending.wait()
""")
        server = self.server()
        attach = ["--attach", f"nats://127.0.0.1:{server.port}", "--run", "pair", "--queue", "64", "--when-full", "drop-oldest", "--grace", "1s"]
        first = self.start("-n", "1", *attach, "--elsewhere", "1", "--", PYTHON, "worker.py", logs="a")
        second = self.start("-n", "1", *attach, "--join", "--node-ids", "1", "--", PYTHON, "worker.py", logs="b")
        self.until_file("sends")
        server.kill()
        shown = ""

        def drops():
            nonlocal shown
            shown = subprocess.run([TRAINYARD, "parallel", "--status"], env=self.environment, capture_output=True, text=True,
                                   timeout=PATIENCE_S, check=True).stdout
            return re.search(r"machine \S+: workers 1, .* [1-9]\d* dropped, 0 refused\n", shown)
        self.until("dropped events", drops)
        rate = r"[1-9]\d*/s"
        self.assertRegex(shown, rf"machine \S+: workers 1, .*, sends 0/s, gets {rate}, \d+ events queued, ")
        self.assertRegex(shown, rf" 0  - +settled +1 +{rate} +0/s ")
        server.start()
        self.started.append(server.process)
        first.send_signal(signal.SIGINT)
        self.end_of(first, expect=130)
        self.end_of(second, expect=130)

    def test_say_what_is_missing_in_what_was_typed(self):
        for words, says in ((["--run", "a"], "need a server: use '--attach nats://host:4222'"),
                            (["--attach", "nats://h"], "no run given: use '--run NAME'"),
                            (["--attach", "nats://h", "--run", "a"], "or '--join' on the others"),
                            (["--attach", "nats://h", "--run", "a", "--join", "--elsewhere", "1"], "or '--join' on the others"),
                            (["--attach", "nats://h", "--run", "a b", "--join"], "run (--run): the name of a run must have 1 to 64 letters"),
                            (["--attach", "nats://h", "--run", "a", "--join", "--nats-nkey", "U"], "nkey_seed_file (--nats-seed) must be set together")):
            with self.subTest(words=words):
                self.assertIn(says, self.end_of(self.start("-n", "1", *words, "--", "true"), expect=2))
