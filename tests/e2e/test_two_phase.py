"""Scripts of two phases: they load while others train, wait for a device, and train.

They are Python scripts with the client as a user has it, and one client written from the protocol's
page alone, which says what the Python client never would.
"""
import glob
import importlib.util
import pathlib

from yard import CLIENT, PATIENCE_S, TRAINYARD, YardTest, json, os, processes_with, signal, subprocess

JOB = """
name: job
groups:
  - name: g
    two-phase: true
    memory: 50MB
    cpus: {cpus}
    tasks:
"""
HEAD = f"""
import os, sys
sys.path.insert(0, {str(CLIENT)!r})
import trainyard
"""
GOOD = """
for attempt in trainyard.attempts():
    with attempt as device:
        trainyard.result(device=device, acc=0.5)
"""
# docs/protocol.md, "Tasks".
RAW = """
import json, os, socket, struct, sys
PREFIX = struct.Struct("<4sBBHQQIIIIQ")
def connect(token=os.environ["TRAINYARD_TOKEN"]):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(os.environ["TRAINYARD_SOCKET"])
    send(connection, 1, {"role": "task", "version": 1, "token": token})
    return connection
def send(connection, kind, fields):
    text = json.dumps(fields).encode()
    connection.sendall(PREFIX.pack(b"TYRD", 1, kind, 0, 0, 0, 0, len(text), 0, 0, 0) + text)
def receive(connection):
    prefix = connection.recv(PREFIX.size, socket.MSG_WAITALL)
    if not prefix:
        return None
    fields = PREFIX.unpack(prefix)
    return json.loads(connection.recv(fields[7], socket.MSG_WAITALL) or b"{}")
"""


class TwoPhase(YardTest):
    def scripts(self, cpus=0, **scripts):
        """A job of one task for each script."""
        text = JOB.format(cpus=cpus)
        for name, script in scripts.items():
            self.write(f"{name}.py", script if script.startswith(RAW) else HEAD + script)
            text += f"      - {{id: {name}, command: [/usr/bin/python3, {name}.py]}}\n"
        self.job(text)

    def rows(self):
        return {row["id"]: row for row in self.status()["tasks"]}

    def test_a_script_goes_through_its_whole_life(self):
        self.scripts(good=GOOD)
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.life("good"),
                         ["AVAILABLE", "LOADING", "WAITING", "TRAINING", "FINISHED", "EXITED"])
        self.assertEqual(json.loads(self.text("runs/job/g/good/result.json")), {"device": "cpu", "acc": 0.5})

    def test_a_script_loads_while_another_trains_and_waits_with_what_it_has(self):
        os.mkfifo(self.directory / "gate")
        trains = ("for attempt in trainyard.attempts():\n    with attempt:\n"
                  "        open('trains', 'w').close()\n        open('gate').read()\n")
        waits = "import time\nwhile not os.path.exists('trains'): time.sleep(0.01)\n"
        self.scripts(cpus=os.cpu_count(), first=trains, second=waits + GOOD)
        yard = self.start("run", "job.yaml")
        self.until("one to train and one to wait",
                   lambda: (self.life("first")[-1:], self.life("second")[-1:]) == (["TRAINING"], ["WAITING"]))
        self.assertEqual(self.rows()["second"]["word"], "WAITING")
        self.assertIn("reserved by 1 task", self.trainyard("status", "runs/job").stdout)
        self.open_gate()
        self.end_of(yard, expect=0)
        self.assertEqual(self.words(), {"g/first": "FINISHED", "g/second": "FINISHED"})

    def test_statuses_are_seen_from_outside(self):
        """Tasks that stay where they are, one for each status that can last; one more comes with the interrupt."""
        stay = "import signal\nwhile True: signal.pause()\n"
        life = RAW + "c = connect(); receive(c)\n"
        loaded = life + "send(c, 6, {'say': 'loading'})\nsend(c, 6, {'say': 'loaded'})\n"
        self.scripts(
            available=life + stay, loading=life + "send(c, 6, {'say': 'loading'})\n" + stay,
            training=loaded + "receive(c)\n" + stay, exited=GOOD, exception="raise ValueError()")
        self.write("waiting.py", loaded + stay)
        self.job(self.text("job.yaml") + f"""      - {{id: waiting, command: [/usr/bin/python3, waiting.py], cpus: {os.cpu_count()}}}
      - {{id: holds, command: [sleep, 1000], cpus: {os.cpu_count()}, two-phase: false}}
  - {{name: later, tasks: [{{id: init, command: 'true'}}]}}
""")
        expected = {name: name.upper() for name in ("init", "available", "loading", "waiting", "training", "exited",
                                                    "exception")} | {"holds": "TRAINING"}
        yard = self.start("run", "job.yaml", "--set", "scheduler.max-waiting=9")

        def seen():
            if not (self.directory / "runs/job/journal.db").exists():
                return False
            return {name: row["status"] for name, row in self.rows().items()} == expected
        self.until("seven statuses side by side", seen)
        yard.send_signal(signal.SIGINT)
        self.end_of(yard, expect=130)
        rows = self.rows()
        self.assertEqual((rows["training"]["status"], rows["init"]["status"]), ("INTERRUPT", "INIT"))

    def test_out_of_memory_in_training_keeps_the_process_and_what_it_loaded(self):
        self.scripts(greedy="""
data = [os.getpid()]
for attempt in trainyard.attempts():
    with attempt as device:
        data.append(os.getpid())
        if len(data) == 2: raise MemoryError()
        trainyard.result(processes=len(set(data)), tries=len(data) - 1)
""")
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertIn("g/greedy: RETRYING", done.stderr)
        self.assertEqual(self.life("greedy"), ["AVAILABLE", "LOADING", "WAITING", "TRAINING", "INTERRUPT", "WAITING",
                                               "TRAINING", "FINISHED", "EXITED"])
        self.assertEqual(json.loads(self.text("runs/job/g/greedy/result.json")), {"processes": 1, "tries": 2})
        row = self.rows()["greedy"]
        self.assertEqual((row["memory_requested_bytes"], row["traceback"]), (60_000_000, None))
        self.assertIn("raise MemoryError()", self.text("runs/job/g/greedy/stderr.log"))

    def test_an_exception_is_told_with_its_stage_and_traceback_and_the_others_finish(self):
        self.scripts(loads="raise ValueError('no such data')", trains="""
class Broken(trainyard.Task):
    def train(self, device):
        raise ValueError("no") from KeyError("inner")
trainyard.main(Broken)
""", odd="""
class Odd(trainyard.Task):
    def train(self, device):
        return [1, 2]
trainyard.main(Odd())
""", good=GOOD)
        self.trainyard("run", "job.yaml", expect=1)
        rows = self.rows()
        self.assertEqual((rows["loads"]["word"], rows["loads"]["message"]), ("ERROR", "ValueError: no such data"))
        broken, good = rows["trains"], rows["good"]
        self.assertEqual((broken["word"], broken["message"], broken["stage"]), ("ERROR", "ValueError: no", "TRAIN"))
        for part in ["KeyError: 'inner'", "ValueError: no", "in train"]:
            self.assertIn(part, broken["traceback"])
        self.assertEqual((self.life("loads")[-2:], self.life("trains")[-2:]),
                         (["LOADING", "EXCEPTION"], ["TRAINING", "EXCEPTION"]))
        self.assertIn("ValueError: no", self.text("runs/job/g/trains/stderr.log"))
        self.assertIn("ValueError: no", self.text("runs/job/reports/g.html"))
        self.assertEqual((good["word"], good["traceback"]), ("FINISHED", None))
        self.assertEqual((good["load_numbers"], good["train_numbers"]), (1, 1))
        self.assertGreaterEqual(good["load_ms"], 0)
        self.assertGreaterEqual(good["train_ms"], 0)
        # A result that is no dict is not kept.
        self.assertEqual((rows["odd"]["word"], rows["odd"]["result"]), ("FINISHED", None))
        self.assertIn("is a list, not an object", rows["odd"]["warning"])

    def test_a_client_in_another_language_goes_through_its_whole_life(self):
        client = pathlib.Path(__file__).parent / "clients" / "two_phase.pl"
        self.job(JOB.format(cpus=0) + f"      - {{id: a, command: [perl, {client}]}}\n")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.life("a"), ["AVAILABLE", "LOADING", "WAITING", "TRAINING", "FINISHED", "EXITED"])
        row = self.rows()["a"]
        self.assertEqual((row["result"], row["progress"], row["progress_values"]),
                         ({"sum": 55, "device": "cpu"}, 1, {"sum": 55}))

    def shell_job(self, script):
        self.write("task.sh", "set -eu\n" + script.replace("CLIENT", f"{TRAINYARD} client"))
        self.job(JOB.format(cpus=0) + "      - {id: a, command: [sh, task.sh]}\n")

    def test_a_shell_script_waits_tells_and_leaves_its_result_and_trains_once_though_it_waits_twice(self):
        self.shell_job("""
device=$(CLIENT wait-device)
CLIENT progress 0.5 loss=0.25 phase=warm
CLIENT result acc=0.5 name=x
again=$(CLIENT wait-device)
CLIENT result acc=0.75 device=$device again=$again 'list=[1,2]'
""")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.life("a"), ["AVAILABLE", "LOADING", "WAITING", "TRAINING", "FINISHED", "EXITED"])
        row = self.rows()["a"]
        self.assertEqual(row["result"], {"acc": 0.75, "name": "x", "device": "cpu", "again": "cpu", "list": [1, 2]})
        self.assertEqual((row["progress"], row["progress_values"]), (0.5, {"loss": 0.25, "phase": "warm"}))

    def test_a_shell_script_has_loaded_from_its_beginning_on(self):
        os.mkfifo(self.directory / "gate")
        self.shell_job("""
until [ -e loaded ]; do sleep 0.01; done
device=$(CLIENT wait-device)
""")
        yard = self.start("run", "job.yaml", "--set", "scheduler.interval=100ms")
        self.until("its process", lambda: (self.directory / "runs/job/journal.db").exists()
                   and self.rows()["a"]["pid"])
        self.until("its first look", lambda: self.rows()["a"]["memory_peak_bytes"])
        self.write("loaded", "")
        self.end_of(yard, expect=0)
        row = self.rows()["a"]
        self.assertGreater(row["load_ms"], 0)
        self.assertLessEqual(row["load_ms"] + row["train_ms"], row["duration_ms"])

    def test_a_shell_script_tries_again_after_out_of_memory(self):
        self.shell_job("""
CLIENT wait-device
CLIENT wait-device --after-out-of-memory
CLIENT result pid=$$
""")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.life("a"), ["AVAILABLE", "LOADING", "WAITING", "TRAINING", "INTERRUPT", "WAITING",
                                          "TRAINING", "FINISHED", "EXITED"])

    def test_the_same_shell_script_runs_by_hand_and_mistakes_are_told(self):
        for words, code, out in [(["wait-device"], 0, "cpu\n"), (["progress", "0.5"], 0, ""),
                                 (["result", "acc=1"], 0, 'result: {"acc":1}\n'), (["result", "acc"], 2, ""),
                                 (["progress", "1.5"], 2, ""), (["progress", "0.5", "=x"], 2, "")]:
            done = self.trainyard("client", *words, expect=code)
            self.assertEqual(done.stdout, out)
        none = self.trainyard("client", "result", "y=nan", "x=1e400", "z=-inf", "n=nanometre", expect=0)
        self.assertEqual(none.stdout, 'result: {"n":"nanometre","x":null,"y":null,"z":null}\n')
        self.assertIn("'x' was 1e400, a number that JSON does not have: kept as null\n", none.stderr)
        gone = self.trainyard("client", "progress", "0.5", expect=1,
                              env={"TRAINYARD_SOCKET": str(self.directory / "none"), "TRAINYARD_TOKEN": "x"})
        self.assertIn("the yard is not running", gone.stderr)

    def test_pip_installs_the_client_without_an_index(self):
        # If there is no pip, the one that comes with venv: making a virtual environment takes seconds.
        wheels = glob.glob("/usr/share/python-wheels/pip-*.whl")
        pip = [f"{wheels[0]}/pip"] if wheels and not importlib.util.find_spec("pip") else ["-m", "pip"]
        place = self.directory / "installed"
        subprocess.run(["/usr/bin/python3", *pip, "install", "-q", "--no-index", "--disable-pip-version-check", "--target", place,
                        CLIENT], check=True, timeout=PATIENCE_S)
        done = subprocess.run(["/usr/bin/python3", "-c", "import trainyard; print(trainyard.__file__)"], check=True,
                              cwd=self.directory, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(place)})
        self.assertTrue(done.stdout.startswith(str(place)), done.stdout)
        self.assertEqual(sorted(path.name for path in CLIENT.iterdir() if path.name in ("build", "dist")), [])

    def test_a_script_that_dies_anywhere_or_says_what_nobody_understands_ends(self):
        die = "os.kill(os.getpid(), 9)"
        self.scripts(loads=die, waits=RAW + "c = connect(); receive(c)\nsend(c, 6, {'say': 'loading'})\n"
                     "send(c, 6, {'say': 'loaded'})\n" + die,
                     trains=f"for attempt in trainyard.attempts():\n    with attempt:\n        {die}\n",
                     never="sys.exit(0)", code="sys.exit(3)", good=GOOD,
                     dances=RAW + "c = connect(); receive(c)\nsend(c, 6, {'say': 'dancing'})\nreceive(c)\n",
                     hurries=RAW + "c = connect(); receive(c)\nsend(c, 6, {'say': 'trained'})\nreceive(c)\n")
        self.trainyard("run", "job.yaml", expect=1)
        self.assertEqual({name: word for name, word in self.words().items() if name not in ("g/dances", "g/hurries")}, {
            "g/loads": "KILLED", "g/waits": "KILLED", "g/trains": "KILLED", "g/never": "EXIT 0", "g/code": "EXIT 3",
            "g/good": "FINISHED"})
        self.assertIn("exited without reporting 'trained'", self.rows()["never"]["message"])
        self.assertEqual(self.life("dances"), ["AVAILABLE", "UNKNOWN", "EXCEPTION"])
        self.assertEqual(self.life("hurries"), ["AVAILABLE", "UNKNOWN", "EXCEPTION"])
        self.assertEqual(self.rows()["dances"]["message"], "it said 'dancing', which nobody understands")

    def test_a_task_that_closes_its_socket_repeats_itself_or_leaves_a_daemon_harms_nobody(self):
        life = RAW + "c = connect(); receive(c)\nfor word in ['loading', 'loaded']: send(c, 6, {'say': word})\n"
        trained = life + "receive(c)\nsend(c, 6, {'say': 'trained'})\n"
        self.scripts(closes=life + "c.close()\n", half=life + "receive(c)\nc.sendall(b'TYRD')\nc.close()\n",
                     twice=trained + "send(c, 6, {'say': 'trained'})\nsend(c, 6, {'say': 'loading'})\n",
                     daemon="""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import time
        time.sleep(1000)
    os._exit(0)
os.wait()
""" + GOOD, good=GOOD)
        self.trainyard("run", "job.yaml", expect=1)
        self.assertEqual(self.words(), {"g/closes": "EXIT 0", "g/half": "EXIT 0", "g/twice": "FINISHED",
                                        "g/daemon": "FINISHED", "g/good": "FINISHED"})
        self.assertEqual(self.life("twice")[-3:], ["TRAINING", "FINISHED", "EXITED"])
        self.assertEqual(processes_with(f"TRAINYARD_RUN_DIR={self.directory}/runs/job"), [])

    def test_every_way_in_which_the_ancestor_loses_a_run_ends_well(self):
        """The faults under which fedflow hangs, aborts or gives up for good, side by side in one run."""
        train = "for attempt in trainyard.attempts():\n    with attempt as device:\n        "
        once = "tries.append(1)\n        if len(tries) == 1: raise "
        self.scripts(
            killed=train + "os.kill(os.getpid(), 9)\n",
            gone=train + "os._exit(0)\n",
            load="if os.environ['TRAINYARD_ATTEMPT'] == '1': raise MemoryError()\n" + GOOD,
            host="tries = []\n" + train + once + "MemoryError()\n",
            torch="class OutOfMemoryError(RuntimeError): pass\ntries = []\n" + train + once + "OutOfMemoryError('x')\n",
            cuda="tries = []\n" + train + once + "RuntimeError('CUDA out of memory. Tried to allocate')\n",
            hopeless=train + "raise MemoryError()\n", good=GOOD)
        text = self.text("job.yaml").replace("memory: 50MB", "memory: 0.05GiB")
        self.job(text)
        self.trainyard("run", "job.yaml", expect=1)
        words = self.words()
        self.assertEqual({name: word for name, word in words.items() if word != "FINISHED"},
                         {"g/killed": "KILLED", "g/gone": "EXIT 0", "g/hopeless": "OUT_OF_MEMORY"})
        self.assertEqual(len(words), 8)
        for name in ("host", "torch", "cuda"):
            self.assertEqual(self.life(name).count("TRAINING"), 2, name)
        rows = self.rows()
        self.assertEqual(rows["load"]["attempt"], 2)
        self.assertIn("raise MemoryError()", rows["hopeless"]["traceback"])
        self.assertRegex(self.trainyard("status", "runs/job", "--all", expect=0).stdout,
                         r"hopeless +FAILED OUT_OF_MEMORY .* 1 \(3 trainings\) ")

    def test_a_forked_worker_does_not_speak_for_its_task(self):
        self.scripts(forks="""
child = os.fork()
if child == 0:
    try:
        list(trainyard.attempts())
    except trainyard.Refused:
        raise ValueError("the worker's own trouble")
os.waitpid(child, 0)
""" + GOOD, imports="""
import subprocess
worker = subprocess.run([sys.executable, "-c", "import sys; sys.path[:] = %r; import trainyard" % sys.path])
assert worker.returncode == 0
""" + GOOD)
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.words(), {"g/forks": "FINISHED", "g/imports": "FINISHED"})

    def test_a_yard_in_a_task_does_not_hand_on_what_it_was_told(self):
        self.write("plain.py", "import os\nassert os.environ['TRAINYARD_TOKEN'] != os.environ['OUTER']\n"
                   "assert os.environ['TRAINYARD_PHASES'] == '1' and 'TRAINYARD_RANK' not in os.environ\n")
        self.job("name: inner\ngroups: [{name: p, tasks: [{id: a, command: [/usr/bin/python3, plain.py]}]}]\n",
                 name="inner.yaml")
        self.scripts(outer=f"""
import subprocess
subprocess.run([{TRAINYARD!r}, "run", "inner.yaml", "--set", "utilization-limit.cpu=100%"], check=True,
               env=dict(os.environ, TRAINYARD_RANK="1", OUTER=os.environ["TRAINYARD_TOKEN"]))
""" + GOOD)
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.words("runs/inner"), {"p/a": "FINISHED"})

    def test_the_same_script_runs_by_hand(self):
        self.scripts(good=GOOD)
        done = subprocess.run(["/usr/bin/python3", "good.py"], cwd=self.directory, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=True)
        self.assertEqual((done.stdout, done.stderr), ('result: {"device": "cpu", "acc": 0.5}\n', ""))

    def test_a_run_that_was_killed_goes_on_with_its_scripts(self):
        os.mkfifo(self.directory / "gate")
        self.scripts(good=GOOD, held="if os.environ['TRAINYARD_ATTEMPT'] == '1': open('gate').read()\n" + GOOD)
        yard = self.start("run", "job.yaml")
        self.until("one to finish and one to load", lambda: self.life("good")[-1:] == ["EXITED"] and self.life("held")[-1:] == ["LOADING"])
        yard.kill()
        self.end_of(yard)
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertEqual(self.words(), {"g/good": "FINISHED", "g/held": "FINISHED"})
        self.assertEqual(self.rows()["held"]["attempt"], 2)
