"""Programs in Python that run their own tasks: the yard of the package `trainyard`."""
from yard import CLIENT, TRAINYARD, YardTest, alive, guard_of, json, os, signal, subprocess

PYTHON = "/usr/bin/python3"
PRELUDE = f"""
import json, os, signal, subprocess, sys, threading
sys.path.insert(0, {str(CLIENT)!r})
import trainyard
def yard(directory="run", **more):
    return trainyard.Yard(directory, settings={{"utilization-limit": {{"cpu": "100%"}}}}, program={TRAINYARD!r}, **more)
def group(name, tasks, **more):
    return trainyard.TaskGroup(name, tasks, **dict({{"memory": "20MB", "cpus": 0}}, **more))
def note(text):
    with open(os.path.join({{place!r}}, "notes"), "a") as notes:
        notes.write(text + "\\n")
def at_gate():
    open(os.path.join({{place!r}}, "gate")).close()
"""


class PythonYard(YardTest):
    def program(self, text, name="program.py"):
        self.write(name, (PRELUDE + text).replace("{place!r}", repr(str(self.directory))))
        return name

    def start_program(self, text, *words):
        process = subprocess.Popen([PYTHON, *(words or [self.program(text)])], cwd=self.directory,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, env=self.environment)
        self.started.append(process)
        return process

    def run_program(self, text, *words, expect=0):
        output, errors = self.end_of(self.start_program(text, *words), expect=expect)
        return json.loads(output) if output else errors

    def notes(self):
        path = self.directory / "notes"
        return path.read_text().splitlines() if path.exists() else []

    def executions(self):
        return self.status("run", tasks=False)["execution"]["number"]

    ROUNDS = """
class Client(trainyard.Task):
    def __init__(self, number, weight):
        super().__init__(id="client-%d" % number)
        self.number, self.weight = number, weight
    def load(self):
        self.data = self.number + 1
    def train(self, device):
        note("%s %g" % (self.id, self.weight))
        return {"weight": self.weight + self.data, "device": device}
if __name__ == "__main__":
    weight, told = 0.0, []
    with yard() as flow:
        for turn in range(3):
            clients = flow.run(group("round-%d" % turn, [Client(number, weight) for number in range(4)]))
            weight = sum(client.result["weight"] for client in clients) / len(clients)
            told.append([weight, sorted({client.status for client in clients})])
    print(json.dumps(told))
"""

    def test_leaves_the_run_of_a_job_file_alone(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: t, command: 'false'}]}]\n")
        self.trainyard("run", "job.yaml", "--run-dir", "run", expect=1)
        errors = self.run_program("""
if __name__ == "__main__":
    with yard() as flow:
        flow.run(group("g", [trainyard.Task(id="t")]))
""", expect=1)
        self.assertIn("run' contains the run of a job file", errors)
        self.assertEqual((self.words("run"), self.executions()), ({"g/t": "EXIT 1"}, 1))

    def test_a_loop_of_rounds_reads_results_between_them_and_is_one_run(self):
        told = self.run_program(self.ROUNDS)
        self.assertEqual(told, [[2.5, ["FINISHED"]], [5.0, ["FINISHED"]], [7.5, ["FINISHED"]]])
        words = self.words("run")
        self.assertEqual(len(words), 12)
        self.assertEqual(set(words.values()), {"FINISHED"})
        shown = self.status("run")
        self.assertEqual([row["name"] for row in shown["groups"]], ["round-0", "round-1", "round-2"])
        self.assertEqual((shown["execution"]["number"], shown["execution"]["how"]), (1, "ended"))
        self.assertTrue((self.directory / "run/reports/index.html").exists())

    def test_tasks_that_fail_are_told_and_the_others_go_on(self):
        told = self.run_program("""
class Raises(trainyard.Task):
    def train(self, device):
        trainyard.result(early=1)
        raise ValueError("no such data")
class Exits(trainyard.Task):
    def load(self):
        os._exit(3)
class Good(trainyard.Task):
    def train(self, device):
        return {"directory": os.getcwd(), "id": self.id}
if __name__ == "__main__":
    with yard() as flow:
        tasks = flow.run(group("g", [Raises(), Exits(id="exits"), Good(id=7)])).tasks
        after = flow.run(Good())
    print(json.dumps([[task.id, task.status, task.message, task.result, task.task_dir] for task in tasks + [after]]))
    print(tasks[0].traceback, file=sys.stderr)
""")
        place = str(self.directory / "run")
        self.assertEqual(told[0], ["task-1", "ERROR", "ValueError: no such data", {"early": 1}, f"{place}/g/task-1"])
        self.assertEqual(told[1][:2], ["exits", "EXIT 3"])
        self.assertEqual(told[2], ["7", "FINISHED", "", {"directory": f"{place}/g/7", "id": "7"}, f"{place}/g/7"])
        again = f"{place}/submissions/2/default/task-1"
        self.assertEqual(told[3], ["task-1", "FINISHED", "", {"directory": again, "id": "task-1"}, again])

    def test_tasks_are_tried_again_after_out_of_memory_and_as_often_as_they_say(self):
        told = self.run_program("""
class Large(trainyard.Task):
    tries = 0
    def train(self, device):
        self.tries += 1
        if self.tries == 1:
            raise MemoryError()
        return {"tries": self.tries}
class Flaky(trainyard.Task):
    def train(self, device):
        if os.environ["TRAINYARD_ATTEMPT"] == "1":
            raise OSError("the network")
        return {"attempt": os.environ["TRAINYARD_ATTEMPT"]}
if __name__ == "__main__":
    with yard() as flow:
        tasks = flow.run(group("g", [Large(id="large"), Flaky(id="flaky", retries=1), Flaky(id="once")]))
    print(json.dumps({task.id: [task.status, task.result] for task in tasks}))
""")
        self.assertEqual(told, {"large": ["FINISHED", {"tries": 2}], "flaky": ["FINISHED", {"attempt": "2"}],
                                "once": ["ERROR", {}]})

    def test_classes_of_modules_and_of_a_program_started_as_a_module_work(self):
        self.write("package/__init__.py", "")
        self.write("package/folds.py", "import trainyard\nclass Other(trainyard.Task):\n"
                   "    def train(self, device): return {'of': type(self).__module__}\n")
        self.program("""
from package.folds import Other
class Mine(trainyard.Task):
    def train(self, device):
        import heavy
        return {"of": type(self).__module__, "argument": sys.argv[1], "heavy": heavy.PID != os.getpid()}
if __name__ == "__main__":
    with yard() as flow:
        tasks = flow.run(group("g", [Mine(), Other()], preload=["heavy"]))
    print(json.dumps([task.result for task in tasks]))
""", "package/program.py")
        self.write("package/heavy.py", "import os\nPID = os.getpid()\n")
        self.environment["PYTHONPATH"] = str(self.directory / "package")
        # A class that is not from __main__ does not need it again, and so no guard.
        told = self.run_program("""
import datetime
from package.folds import Other
print(json.dumps(yard("other").run(Other(id="{lr}", time_limit=datetime.timedelta(minutes=9))).result))
""")
        self.assertEqual(told, {"of": "package.folds"})
        self.assertEqual(self.words("other"), {"default/{lr}": "FINISHED"})
        self.assertEqual(self.run_program("", "-m", "package.program", "word"), [
            {"of": "__mp_main__", "argument": "word", "heavy": True}, {"of": "package.folds"}])

    def test_a_script_without_a_guard_is_told_of_it(self):
        told = self.run_program("""
class Fold(trainyard.Task):
    def train(self, device):
        return {}
with yard() as flow:
    task = flow.run(Fold())
print(json.dumps([task.status, task.message]))
""")
        self.assertEqual(told[0], "ERROR")
        self.assertIn('if __name__ == "__main__":', told[1])

    WAITS = """
class Waits(trainyard.Task):
    def train(self, device):
        note("%s %d" % (self.id, os.getpid()))
        at_gate()
        return {"pid": os.getpid()}
if __name__ == "__main__":
    with yard() as flow:
        flow.run(group("g", [Waits(id="a"), Waits(id="b")]))
"""

    def waiting(self, text=None):
        """A program whose two tasks wait at the gate; and their processes."""
        os.mkfifo(self.directory / "gate")
        program = self.start_program(text or self.WAITS)
        self.until("two tasks", lambda: len(self.notes()) == 2)
        return program, [int(line.split()[1]) for line in self.notes()]

    def interrupts(self):
        return self.query("SELECT count(*) FROM events WHERE kind = 'interrupt'", "run")[0][0]

    def gone(self, tasks, how="interrupted"):
        self.until("the end of the tasks", lambda: not any(map(alive, tasks)))
        self.until("the end of the run", lambda: self.status("run")["state"] == "ended")
        self.assertEqual(self.status("run")["execution"]["how"], how)
        self.assertEqual(set(self.words("run").values()), {"STOPPED"})

    def test_all_ends_when_the_program_is_killed(self):
        program, tasks = self.waiting()
        program.kill()
        self.gone(tasks)
        self.assertEqual(self.interrupts(), 2, "the second one kills at once")

    def test_all_ends_by_ctrl_c_and_has_time_to_save(self):
        program, tasks = self.waiting()
        program.send_signal(signal.SIGINT)
        _, errors = self.end_of(program, expect=-signal.SIGINT)
        self.assertTrue(errors.endswith("KeyboardInterrupt\n"), errors)
        self.gone(tasks)
        self.assertEqual(self.interrupts(), 1)

    def test_a_group_that_is_being_submitted_when_the_yard_closes_has_time_to_save(self):
        os.mkfifo(self.directory / "gate")
        self.run_program("""
class Fold(trainyard.Task):
    def train(self, device):
        if self.id == "b":
            at_gate()
        return {}
if __name__ == "__main__":
    flow, submits = yard(), threading.Event()
    flow.run(group("first", [Fold(id="a")]))
    submit = flow._submit
    def submit_while_it_closes(group):
        submits.set()
        while not flow._closed:
            pass
        submit(group)
    flow._submit = submit_while_it_closes
    def run_second():
        try:
            flow.run(group("second", [Fold(id="b")]))
        except trainyard.YardError:
            note("ended")
    other = threading.Thread(target=run_second)
    other.start()
    submits.wait()
    flow.close()
    other.join()
""")
        self.assertEqual(self.notes(), ["ended"])
        self.assertEqual(self.words("run"), {"first/a": "FINISHED", "second/b": "STOPPED"})
        self.assertEqual(self.interrupts(), 1)

    def test_a_fork_of_the_program_does_not_hold_its_run(self):
        os.mkfifo(self.directory / "other")
        program, tasks = self.waiting(self.WAITS.replace("    with yard() as flow:\n", """    with yard() as flow:
        flow.run(Waits.Empty(id="begins"))
        if os.fork() == 0:
            os.closerange(0, 3)
            open("other").close()
            os._exit(0)
""").replace("    def train(self, device):\n        note", """    class Empty(trainyard.Task):
        def train(self, device):
            return {}
    def train(self, device):
        note"""))
        program.kill()
        self.until("the end of the tasks", lambda: not any(map(alive, tasks)))
        self.until("the end of the run", lambda: self.status("run")["state"] == "ended")
        with open(self.directory / "other", "w"):
            pass  # The fork was there until now.

    def test_it_goes_on_where_it_was_killed_and_keeps_what_has_finished(self):
        os.mkfifo(self.directory / "gate")
        held = self.ROUNDS.replace("        note(", """
        if self.id == "client-3" and self.weight == 2.5 and os.path.exists(os.path.join({place!r}, "held")):
            note("held")
            at_gate()
        note(""")
        self.write("held", "")
        program = self.start_program(held)
        self.until("the second round", lambda: len(self.notes()) == 8 and "held" in self.notes())
        self.until("three of four", lambda: list(self.words("run").values()).count("FINISHED") == 7)
        program.kill()
        self.until("the end of the run", lambda: self.status("run")["state"] == "ended")
        (self.directory / "held").unlink()
        told = self.run_program(held)
        self.assertEqual([weight for weight, _ in told], [2.5, 5.0, 7.5])
        notes = [line for line in self.notes() if line != "held"]
        self.assertEqual(len(notes), 12, "each has trained once")
        self.assertEqual(len(set(notes)), 12)
        self.assertEqual(self.executions(), 2)
        self.assertEqual(len(self.words("run")), 12)

    COUNTS = """
class Counts(trainyard.Task):
    def train(self, device):
        note(self.id)
        return {"id": self.id}
if __name__ == "__main__":
"""

    def test_a_group_that_has_grown_runs_what_is_new_in_the_same_program_and_when_it_goes_on(self):
        text = self.COUNTS + """    with yard() as flow:
        grows = group("a", [Counts(id="a0")])
        for number in range(1, COUNT):
            flow.run(grows)
            grows.add(Counts(id="a%d" % number))
        print(json.dumps([task.result["id"] for task in flow.run(grows)]), file=sys.stderr)
        flow.run(grows)
"""
        for count in (2, 3):
            ids = json.loads(self.run_program(text.replace("COUNT", str(count))))
            self.assertEqual(ids, ["a%d" % number for number in range(count)])
        self.assertEqual(self.notes(), ["a0", "a1", "a2"])
        self.assertEqual(self.words("run"), {"a/a0": "FINISHED", "a (2)/a1": "FINISHED", "a (3)/a2": "FINISHED"})

    PARAMETERS = """
import enum
class Kind(enum.Enum):
    ADAM = 1
    SGD = 2
class Trial(trainyard.Task):
    def __init__(self, number, rate):
        super().__init__(id="trial-%d" % number)
        self.rate, self.tags, self.kind = rate, {"fast", "small", "new"}, Kind.SGD
    def train(self, device):
        note("%s %g" % (self.id, self.rate))
        if self.rate == 9:
            at_gate()
        return {"rate": self.rate}
if __name__ == "__main__":
    rates, told = json.loads(sys.argv[1]), []
    with yard() as flow:
        for name in json.loads(sys.argv[2]):
            tasks = flow.run(group(name, [Trial(number, rate) for number, rate in enumerate(rates)]))
            told.append([task.result["rate"] for task in tasks])
    print(json.dumps(told))
"""

    def test_a_task_with_other_parameters_runs_again_and_no_other_one_does(self):
        program = self.program(self.PARAMETERS)
        for rates, noted in (([1, 2], ["trial-0 1", "trial-1 2"]), ([1, 2], []), ([1, 3], ["trial-1 3"]), ([1, 3], [])):
            before = self.notes()
            output, errors = self.end_of(self.start_program("", program, json.dumps(rates), '["first", "second"]'), expect=0)
            self.assertEqual(json.loads(output), [rates, rates], errors)
            self.assertEqual(sorted(self.notes()[len(before):]), sorted(noted * 2))
            told = [line for line in errors.splitlines() if "have other parameters than before and run again" in line]
            self.assertEqual(len(told), 2 if noted and before else 0, errors)

    def test_a_task_that_goes_on_with_parameters_of_before_is_killed(self):
        os.mkfifo(self.directory / "gate")
        path = self.program(self.PARAMETERS)
        program = self.start_program("", path, "[1]", '["first"]')
        self.end_of(program, expect=0)
        program = self.start_program("", path, "[9]", '["second"]')
        self.until("the task", lambda: "trial-0 9" in self.notes())
        program.kill()
        self.until("the end of the run", lambda: self.status("run")["state"] == "ended")
        self.assertEqual(self.run_program("", path, "[2]", '["second"]'), [[2]])
        words = self.words("run")
        self.assertIn(words.pop("second/trial-0"), ("KILLED", "SKIPPED"))
        # Its group has a number of its own, which depends on how far the killed yard had come.
        self.assertRegex(json.dumps(words), r'^\{"first/trial-0": "FINISHED", "second \(\d\)/trial-0": "FINISHED"\}$')

    FOREIGN = """
class Says(trainyard.Task):
    def train(self, device):
        note(self.id)
        return {"v": 5}
if __name__ == "__main__":
    with yard() as flow:
        flow.run(group("first", [Says(id="t")]))
        if STOP:
            open("ready", "w").close()
            open("gate").close()
        task = Says(id="t")
        flow.run(group("round", [task]))
        print(json.dumps([task.status, task.result]))
"""

    def test_a_group_of_the_same_name_that_somebody_else_submits_is_not_its_own(self):
        os.mkfifo(self.directory / "gate")
        self.write("other.sh", 'echo \'{"v": 666}\' > "$TRAINYARD_RESULT"; echo other >> notes')
        self.job("name: other\ngroups: [{name: round, tasks: [{id: t, command: [sh, other.sh]}]}]", "other.yaml")
        program = self.start_program(self.FOREIGN.replace("STOP", "True"))
        self.until_file("ready")
        self.trainyard("submit", "other.yaml", "--run-dir", "run", expect=0)
        self.until("the other's task", lambda: self.words("run").get("round/t") == "FINISHED")
        program.kill()
        self.until("the end of the run", lambda: self.status("run")["state"] == "ended")
        self.assertEqual(self.run_program(self.FOREIGN.replace("STOP", "False")), ["FINISHED", {"v": 5}])
        self.assertEqual(self.notes(), ["t", "other", "t"])

    def test_ids_with_braces_and_a_result_that_is_none_are_told(self):
        told = self.run_program("""
import datetime, warnings
class Says(trainyard.Task):
    def train(self, device):
        return {"big": "x" * 2000000} if self.id == "big" else {"id": self.id}
if __name__ == "__main__":
    ids = ["set{a}}", "{{a}}", "${a}", "{a}", "{", "big"]
    with warnings.catch_warnings(record=True) as heard, yard() as flow:
        warnings.simplefilter("always")
        tasks = flow.run(group(5, [Says(id=each) for each in ids]))
        assert [task.result.get("id") for task in tasks] == ids[:5] + [None], [task.result for task in tasks]
        assert "more than the 1 MB" in tasks.tasks[5].message, tasks.tasks[5].message
    print(json.dumps([str(each.message)[:12] for each in heard if each.category is RuntimeWarning]))
    with yard() as flow:
        try:
            flow.run(group("long", [Says(id="x" * 300)]))
        except trainyard.YardError as error:
            assert "300 bytes" in str(error), error
        flow.run(group("lock", [Says(id="a", time_limit=datetime.timedelta(microseconds=5000))]))
""")
        self.assertEqual(told, ["task 'big': "])

    def test_one_task_is_cancelled_and_the_others_go_on(self):
        os.mkfifo(self.directory / "cancel")
        program, _ = self.waiting(self.WAITS.replace("""
    with yard() as flow:
        flow.run(group("g", [Waits(id="a"), Waits(id="b")]))
""", """
    tasks = [Waits(id="a"), Waits(id="b"), Waits(id="later")]
    def cancel():
        open("cancel").close()
        print(json.dumps([flow.cancel(tasks[2]), flow.cancel(tasks[1]), flow.cancel(tasks[1])]), flush=True)
    threading.Thread(target=cancel).start()
    with yard() as flow:
        flow.run(group("g", tasks, max_parallel=2))
    print(json.dumps({task.id: task.status for task in tasks}))
"""))
        with open(self.directory / "cancel", "w"):
            pass
        self.assertEqual(json.loads(program.stdout.readline()), [True, True, False])
        self.open_gate()
        output, _ = self.end_of(program, expect=0)
        self.assertEqual(json.loads(output), {"a": "FINISHED", "b": "KILLED", "later": "SKIPPED"})

    def test_what_is_wrong_is_told_in_the_words_of_the_program_before_anything_runs(self):
        told = self.run_program("""
class Fold(trainyard.Task):
    def train(self, device):
        note(self.id)
        return {}
class Lambda(Fold):
    def __init__(self):
        super().__init__(id="lambda")
        self.function = lambda: 1
def refused(tasks, **options):
    try:
        flow.run(group("folds", tasks, **options))
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)
if __name__ == "__main__":
    with yard() as flow:
        told = [refused([Fold(id="a", memroy="1GB")]), refused([Fold(id="a"), Fold(id="a")]), refused([Lambda()]),
                refused([Fold(id="a")]), refused([Fold(id="b")])]
        try:
            flow.run(group("more", [Fold(id="c")], max_paralel=1))
        except trainyard.YardError as error:
            told.append(str(error))
        told.append(flow.run(group("more", [Fold(id="c")])).tasks[0].status)
        for wrong in flow.run, flow.cancel:
            try:
                wrong("folds")
            except TypeError as error:
                told.append(str(error))
    told.append(refused([Fold()]))
    print(json.dumps(told))
""")
        self.assertRegex(told[0], r"^YardError: .*unknown key 'memroy' \(did you mean 'memory'\?\)")
        self.assertRegex(told[1], r"^YardError: .*duplicate id 'a'")
        self.assertRegex(told[2], r"^TypeError: the task 'lambda' cannot be handed to its process: ")
        self.assertIsNone(told[3])
        self.assertIn("ValueError: the yard has run a group 'folds' already", told[4])
        self.assertIn("unknown key 'max-paralel' (did you mean 'max-parallel'?)", told[5])
        self.assertEqual(told[6], "FINISHED")
        self.assertEqual(told[7:9], ["'folds' is neither a trainyard.TaskGroup nor a trainyard.Task",
                                     "'folds' is no trainyard.Task"])
        self.assertEqual(told[9], "YardError: the yard is closed")
        self.assertEqual(self.notes(), ["a", "c"])

    def test_a_program_that_is_not_there_and_a_directory_in_use_are_told(self):
        _, tasks = self.waiting()
        self.program("""
class Fold(trainyard.Task):
    def train(self, device):
        return {}
if __name__ == "__main__":
    told = []
    for flow in (yard(), trainyard.Yard("other", program="./none")):
        try:
            flow.run(Fold())
        except trainyard.YardError as error:
            told.append(str(error))
    print(json.dumps(told))
""", "second.py")
        told = self.run_program("", "second.py")
        self.assertIn("another program runs its tasks in", told[0])
        self.assertIn("cannot start './none'", told[1])
        self.assertTrue(all(map(alive, tasks)))

    def test_a_directory_may_be_called_like_the_number_of_a_run(self):
        self.run_program("""
class Fold(trainyard.Task):
    def train(self, device):
        return {}
if __name__ == "__main__":
    with yard("7") as flow:
        flow.run(group("g", [Fold(id="t")]))
""")
        self.assertEqual(self.words("./7"), {"g/t": "FINISHED"})

    def test_a_run_that_somebody_else_ends_is_an_error(self):
        told = self.told_when_its_program_gets(signal.SIGTERM)
        self.assertEqual(told[0], "the run was ended before group 'g' had ended")
        self.assertIn("the run has ended", told[1])

    def test_a_run_whose_program_is_killed_says_so(self):
        self.assertEqual(self.told_when_its_program_gets(signal.SIGKILL),
                         ["the run has ended: its program was killed by signal 9"] * 2)

    def test_a_run_whose_guard_is_killed_says_how_it_goes_on(self):
        first, second = self.told_when_its_program_gets(signal.SIGKILL, of=guard_of)
        how = (r"the process that starts tasks is gone; .*; "
               rf"a yard in '{self.directory.resolve()}/run' again goes on with it$")
        self.assertRegex(first, r"^the run has ended: the guard of the keeper \(process \d+\) was killed by signal 9; " + how)
        self.assertRegex(second, "^the run has ended: " + how)

    def told_when_its_program_gets(self, number, of=lambda yard: yard):
        program, tasks = self.waiting(self.WAITS.replace("""
    with yard() as flow:
        flow.run(group("g", [Waits(id="a"), Waits(id="b")]))
""", """
    flow, told = yard(), []
    for name in "gh":
        try:
            flow.run(group(name, [Waits(id="a"), Waits(id="b")]))
        except trainyard.YardError as error:
            told.append(str(error))
    print(json.dumps(told))
"""))
        os.kill(of(self.status("run", tasks=False)["execution"]["yard_pid"]), number)
        output, _ = self.end_of(program, expect=0)
        if number == signal.SIGKILL:  # No process was left to write down how it ended.
            self.until("the end of the tasks", lambda: not any(map(alive, tasks)))
        else:
            self.gone(tasks, how="interrupted by TERM")
        return json.loads(output)
