"""Every block of a page that a reader may copy is tried as it stands there: jobs run or are shown by a dry run,
scripts run in a yard, programs are compiled with the headers that they name, and those that are whole run.

A test says which blocks it tries by `tries`; the last test here says that none is left out.
"""
import re
import shutil
import sqlite3
import tempfile
import unittest

from block_programs import COMPONENTS, LIBRARY, MINE, PIPELINE, PROJECT, QUICK_LINKER, RANKS, WORKERS, install, with_cache_in
from pages import DOCS, TRIED, TRIED_ELSEWHERE, blocks, pages
from servers import WebServer
from yard import CLIENT, PATIENCE_S, YardTest, json, os, pathlib, subprocess

BUILD = os.environ.get("TRAINYARD_BUILD", "")
JOBS, JOURNAL, PROTOCOL = (DOCS / f"{name}.md" for name in ("job-file", "journal", "protocol"))
PYTHON, SETTINGS, TELLING = (DOCS / f"{name}.md" for name in ("python", "configuration", "telling"))
tried = set()


def tries(page, language, *numbers):
    """Marks a test: it tries these blocks of a page, counted from 0."""
    tried.update((page, language, number) for number in numbers)
    return lambda test: test


class BlockTest(YardTest):
    def setUp(self):
        super().setUp()
        bin = self.directory / "bin"
        bin.mkdir()
        (bin / "trainyard").symlink_to(os.environ["TRAINYARD"])
        for name in ("python", "python3"):
            (bin / name).symlink_to("/usr/bin/python3")
        self.environment.update(PATH=f"{bin}:{os.environ['PATH']}", PYTHONPATH=str(CLIENT))

    def shell(self, script, **options):
        done = subprocess.run(["sh", "-ec", script], cwd=self.directory, env=self.environment, capture_output=True,
                              text=True, timeout=PATIENCE_S, **{"stdin": subprocess.DEVNULL, **options})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def yaml(self, number):
        return blocks(JOBS, "yaml")[number]

    def shown(self, text, machine=""):
        """The tasks of a job as a dry run shows them: {id: task}."""
        self.job(text + machine)
        whole = json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)
        self.assertEqual([note for note in whole["notes"] if "can never run" not in note], [])
        return {task["id"]: task for task in whole["tasks"]}

    def run_job(self, text, words):
        self.job("name: job\n" + text)
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.words(), words, done.stderr)
        return {row["id"]: row["result"] for row in self.status()["tasks"]}


class Jobs(BlockTest):
    @tries(JOBS, "yaml", 0)
    def test_the_first_one_is_what_its_page_says(self):
        tasks = self.shown(self.yaml(0))
        self.assertEqual(len(tasks), 19)
        self.assertEqual(tasks["fetch"]["command"], ["/bin/bash", "-c", "./fetch.sh"])
        self.assertIn("lr=1e-2,hidden=32,seed=0", tasks)
        self.assertEqual(tasks["lr=1e-3,hidden=128,seed=2"]["time_limit_ms"], 30 * 60 * 1000)

    @tries(JOBS, "yaml", 1)
    def test_cells_are_inherited(self):
        tasks = self.shown(self.yaml(1))
        self.assertEqual(sorted(tasks), sorted(["lr=1e-3", "lr=1e-4"] + [f"lr={lr},seed={seed}" for lr in ("1e-3", "1e-4")
                                                                         for seed in range(3)]))
        self.assertIn('"$@"', tasks["lr=1e-3"]["command"][2])
        self.assertEqual(len(tasks["lr=1e-3"]["command"]), 4 + 3)

    @tries(JOBS, "yaml", 2)
    def test_round_after_round(self):
        tasks = self.shown(self.yaml(2))
        self.assertEqual(list(tasks), ["first-1", *(f"client={client}" for client in range(10)), "server-1"])
        self.assertEqual(tasks["client=3"]["command_values"],
                         {"TRAINYARD_V1": "{prev.server.dir}", "TRAINYARD_V2": "0", "TRAINYARD_V3": "3"})
        self.assertIn("/clients.0/client=9", json.dumps(tasks["server-1"]["command"]))

    @tries(WORKERS, "yaml", 0)
    def test_workers_are_one_task_for_each_cell(self):
        tasks = self.shown(blocks(WORKERS, "yaml")[0])
        self.assertEqual(list(tasks), ["dqn-0", "dqn-1", "dqn-2"])
        self.assertEqual(tasks["dqn-2"]["workers"], {"count": 3, "roles": ["learner", "collector", "collector"]})

    @tries(PYTHON, "yaml", 0)
    def test_preload_names_modules_beside_the_script(self):
        tasks = self.shown(blocks(PYTHON, "yaml")[0])
        self.assertEqual(len(tasks), 200)
        self.assertEqual(tasks["lr=1e-2,seed=0"]["preload"], ["numpy", "mydata"])

    @tries(JOBS, "yaml", 3)
    def test_a_matrix_has_its_lists_and_ranges(self):
        self.job(self.yaml(3))
        self.assertEqual(json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)
                         ["task_count"], 3 * 100 * 5)

    @tries(JOBS, "yaml", 4)
    def test_include_makes_the_tasks_that_the_page_lists(self):
        text = JOBS.read_text()
        (listed,) = re.findall(r"^makes six tasks: (.*?)\.$", text, re.S | re.M)
        self.assertEqual(list(self.shown(self.yaml(4))), re.findall(r"`([^`]+)`", listed))

    @tries(SETTINGS, "yaml", 1)
    def test_gpus_are_limited_by_the_hour(self):
        self.write("trainyard.yaml", blocks(SETTINGS, "yaml")[1])
        shown = json.loads(self.trainyard("config", "show", "--json", expect=0).stdout)
        self.assertEqual({key: value["value"] for key, value in shown.items() if value["from"] != "default"},
                         {"limits.gpus": "3", "limits.hours": "Mon,Tue,Wed,Thu,Fri 08:00-19:00=2"})

    @tries(SETTINGS, "yaml", 0)
    def test_settings_are_nested_or_in_one(self):
        text = blocks(SETTINGS, "yaml")[0]
        self.write("trainyard.yaml", text)
        shown = json.loads(self.trainyard("config", "show", "--json", expect=0).stdout)
        self.assertEqual({key: value["value"] for key, value in shown.items() if value["from"] != "default"},
                         {"scheduler.max-process": "4", "remain-limit.memory": "8GB"})


class Telling(BlockTest):
    @tries(TELLING, "yaml", 0)
    def test_tells_a_chat_and_runs_a_command(self):
        server = WebServer()
        self.addCleanup(server.stop)
        for name in [name for name in self.environment if name.lower().endswith("_proxy")]:
            del self.environment[name]
        self.write("train.py", "")
        (self.directory / "archive").mkdir()
        self.job(blocks(TELLING, "yaml")[0])
        self.environment["SLACK_WEBHOOK"] = f"http://127.0.0.1:{server.port}/services/x"
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual([post["json"]["outcome"] for post in server.posts], ["finished"])
        # The reports are copied when they are written.
        self.assertTrue((self.directory / "archive/digits-1/train.html").exists())

    @tries(TELLING, "yaml", 1, 2)
    def test_takes_the_address_of_a_topic_and_the_settings_of_mail(self):
        (_, topic, mail) = blocks(TELLING, "yaml")
        self.write("trainyard.yaml", mail)
        tasks = self.shown(topic + "groups: [{tasks: [{id: a, command: x}]}]\n")
        self.assertEqual(list(tasks), ["a"])
        shown = json.loads(self.trainyard("config", "show", "--json", expect=0).stdout)
        self.assertEqual({key: value["value"] for key, value in shown.items() if value["from"] != "default"},
                         {"smtp.enable": "true", "smtp.server-host": "smtp.example.com", "smtp.server-port": "587",
                          "smtp.user": "me@example.com", "smtp.password": "******",
                          "smtp.receiver": "me@example.com, lab@example.com"})


class Scripts(BlockTest):
    TASK = "groups: [{{name: g, tasks: [{{id: a, two-phase: true, memory: 200MB, cpus: 0, command: {}}}]}}]\n"
    MINE = "def load(): return [0.5]\ndef fit(data, device): return data[0]\n"

    @tries(PYTHON, "python", 2, 3)
    def test_in_python_wait_for_a_device_and_leave_a_result(self):
        for number, text in enumerate(blocks(PYTHON, "python")[2:4]):
            with self.subTest(number):
                self.write("train.py", self.MINE + text)
                results = self.run_job(self.TASK.format("[python3, train.py]"), {"g/a": "FINISHED"})
                self.assertEqual(results, {"a": {"acc": 0.5}})
                # By hand the same script trains at once.
                self.assertIn("0.5", self.shell("python3 train.py"))
                shutil.rmtree(self.directory / "runs")

    @tries(PYTHON, "sh", 0)
    def test_for_the_shell_do_the_same(self):
        text = blocks(PYTHON, "sh")[0]
        for name in ("load.sh", "train.sh"):
            self.write(name, "#!/bin/sh\nexit 0\n", mode=0o755)
        self.write("task.sh", text)
        self.assertEqual(self.run_job(self.TASK.format("[sh, -eu, task.sh]"), {"g/a": "FINISHED"}), {"a": {"acc": 0.98}})
        self.assertIn('{"acc":0.98}', self.shell("sh -eu task.sh"))

    @tries(PYTHON, "python", 4)
    def test_a_preloaded_module_renews_its_own_generator(self):
        self.write("mydata.py", blocks(PYTHON, "python")[4])
        self.write("train.py", "import json, os, mydata\n"
                   "json.dump({'drawn': mydata.rng.random()}, open(os.environ['TRAINYARD_RESULT'], 'w'))\n")
        results = self.run_job("groups: [{name: g, preload: [mydata], matrix: {n: 0..3}, memory: 100MB, "
                               "tasks: [{id: '{n}', command: [python3, train.py]}]}]\n",
                               {f"g/{n}": "FINISHED" for n in range(4)})
        self.assertEqual(len({result["drawn"] for result in results.values()}), 4)

    @tries(DOCS / "reports.md", "sh", 4)
    def test_what_is_submitted_is_queued_and_waited_for(self):
        self.write("sweep.yaml", "groups: [{name: g, tasks: [{id: a, memory: 10MB, cpus: 0, command: 'true'}]}]\n")
        for name in ("train", "evaluate"):
            self.write(f"{name}.py", f"import sys; open('{name}-' + sys.argv[2], 'w')\n")
        lines = self.shell(blocks(DOCS / "reports.md", "sh")[4]).splitlines()
        self.assertEqual(lines[:3], ["1", "2", "3"])
        self.assertTrue((self.directory / "train-3e-4").exists())
        self.trainyard("wait", "3", expect=0)
        self.assertEqual(sorted(path.name for path in self.directory.glob("evaluate-*")), [f"evaluate-{n}" for n in range(4)])
        self.shell("trainyard down --now")

    @tries(DOCS / "reports.md", "sh", 5)
    @tries(PROTOCOL, "python", 0)
    def test_submit_adds_and_the_client_of_the_protocol_page_kills(self):
        self.job("name: mnist\ngroups: [{name: train, tasks: [{id: a, memory: 10MB, cpus: 0, command: [sleep, 1000]}]}]\n")
        self.write("more.yaml", "groups: [{name: more, tasks: [{command: 'true', memory: 10MB}]}]\n")
        yard = self.start("run", "job.yaml")
        self.until_file("runs/mnist/train/a/stdout.log")
        said = self.shell(blocks(DOCS / "reports.md", "sh")[5])
        self.assertEqual([line.split(":")[0] for line in said.splitlines()], ["submission 2"])
        with sqlite3.connect(f"file:{self.directory}/runs/mnist/journal.db?mode=ro", uri=True) as journal:
            ((path,),) = journal.execute("SELECT socket_path FROM executions").fetchall()
        self.write("kill.py", blocks(PROTOCOL, "python")[0])
        self.assertIn("'outcome': 'done'", self.shell(f"python3 kill.py '{path}' train a"))
        self.end_of(yard, expect=1)

    @tries(DOCS / "reports.md", "sh", 6)
    def test_what_is_submitted_may_be_edited(self):
        self.write("sweep.yaml", "groups: [{name: g, cpus: 0, memory: 10MB, tasks: [{id: a, command: [python3, train.py]}]}]\n")
        self.write("train.py", "import os; print(os.getcwd())\n")
        self.write(".gitignore", "*\n!sweep.yaml\n!train.py\n")
        self.shell("git init -q && git add train.py && git -c user.name=a -c user.email=a@b commit -qm one")
        first, second = self.shell(blocks(DOCS / "reports.md", "sh")[6]).split()
        for number in (first, second):
            self.trainyard("wait", number, expect=0)
            run = json.loads(self.trainyard("status", number, "--json", expect=0).stdout)["run_directory"]
            self.assertEqual(self.trainyard("logs", number, "--stdout", expect=0).stdout.splitlines()[-1], f"{run}/trainyard.code")
        self.shell("trainyard down --now")

    @tries(DOCS / "reports.md", "sh", 0)
    def test_runs_and_tasks_are_named_in_the_ways_of_their_page(self):
        self.job("""
name: sweep
groups:
  - name: g
    cpus: 0
    memory: 10MB
    matrix: {lr: [1e-4, 1e-3]}
    tasks: [{command: 'echo trained; [ {lr} = 1e-4 ]'}]
""")
        self.trainyard("run", "job.yaml", expect=1)
        # The results have no column that is called so.
        shown = self.shell(blocks(DOCS / "reports.md", "sh")[0].replace("--sort -acc", "--sort -lr"))
        self.assertIn("stdout.log <==\ntrained\n", shown)
        self.assertRegex(shown, "\n1e-3 +EXIT 1 ")
        self.assertNotIn("\n1e-4 ", shown)
        self.assertIn("\nrun 1: runs/sweep\n", shown)

    @tries(DOCS / "reports.md", "sh", 1)
    def test_tasks_are_tried_again_in_the_ways_of_their_page(self):
        self.write("task.sh", """
[ $TRAINYARD_ATTEMPT = 2 ] && exit 0
[ $1 = 0.2 ] && echo MemoryError >&2
exit 1
""")
        self.job("""
name: sweep
groups:
  - name: g
    cpus: 0
    memory: 10MB
    oom-retries: 0
    matrix: {lr: [0.1, 0.2]}
    tasks: [{command: 'sh task.sh {lr}'}]
  - {name: h, needs: g, tasks: [{id: a, memory: 10MB, cpus: 0, command: 'true'}]}
  - {name: k, needs: [], memory: 10MB, cpus: 0, matrix: {seed: [3]}, tasks: [{command: 'sh task.sh {seed}'}]}
""")
        self.trainyard("run", "job.yaml", expect=1)
        # There may be no GPU here.
        shown = self.shell(blocks(DOCS / "reports.md", "sh")[1].replace("--gpu-memory 20GB", "--memory 20MB"))
        self.assertIn("3 tasks of 'runs/sweep':\n", shown)
        self.assertEqual(set(self.words("runs/sweep").values()), {"FINISHED"})

    @tries(DOCS / "reports.md", "sh", 2)
    def test_tasks_are_held_and_put_first_in_the_ways_of_their_page(self):
        os.mkfifo(self.directory / "gate")
        self.job("""
name: sweep
groups:
  - name: g
    cpus: 0
    memory: 10MB
    max-parallel: 1
    matrix: {lr: [1, 0.1, 0.001]}
    tasks: [{command: 'test {lr} != 1 || cat gate; echo {lr} >> order'}]
""")
        yard = self.start("run", "job.yaml")
        self.until("the first task runs", lambda: os.path.exists(self.directory / "runs/sweep/journal.db")
                   and self.words("runs/sweep").get("g/lr=1") == "RUNNING")
        shown = self.shell(blocks(DOCS / "reports.md", "sh")[2])
        self.assertEqual(shown, "g/lr=0.1 on hold\ng/lr=0.001 has priority 10\ng/lr=0.1 may start\n")
        with open(self.directory / "gate", "w"):
            pass
        self.assertEqual(yard.wait(), 0)
        self.assertEqual(self.text("order"), "1\n0.001\n0.1\n")

    @tries(DOCS / "reports.md", "sh", 3)
    def test_results_are_shown_in_all_the_ways_of_their_page(self):
        self.write("task.sh", "echo '{\"acc\": 0.5}' > $TRAINYARD_RESULT")
        self.job("""
name: sweep
groups:
  - name: g
    cpus: 0
    memory: 10MB
    matrix: {lr: [1e-4, 1e-3], batch: [8, 64], seed: [0, 1]}
    tasks: [{command: [sh, task.sh, '{lr}', '{batch}', '{seed}']}]
""")
        self.trainyard("run", "job.yaml", expect=0)
        self.trainyard("run", "job.yaml", "--new", expect=0)
        shown = self.shell(blocks(DOCS / "reports.md", "sh")[3])
        self.assertEqual(shown.count("50.0 %"), 8 + 4 + 4 + 8)
        self.assertIn("batch=8", shown)
        self.assertIn("\nrun,lr,batch,seed,status,time,acc\nruns/sweep,1e-4,8,0,FINISHED,", shown)

    @tries(JOURNAL, "sh", 0)
    def test_a_run_that_is_recorded_is_played_again(self):
        self.job("name: sweep\ngroups: [{name: g, tasks: [{id: a, cpus: 0, memory: 10MB, command: 'true'}]}]\n", "sweep.yaml")
        shown = self.shell(blocks(JOURNAL, "sh")[0]).splitlines()
        self.assertRegex(shown[-2], r"^execution 1 of runs/sweep: \d+ events until \d+\.\d s, 1 starts: the same decisions$")
        self.assertIn('"attempt_ended":', shown[-1])

    @tries(JOURNAL, "sh", 1)
    def test_the_journal_is_opened_read_only(self):
        self.job("name: mnist\ngroups: [{name: g, tasks: [{id: a, memory: 10MB, command: 'true'}]}]\n")
        self.trainyard("run", "job.yaml", expect=0)
        text = blocks(JOURNAL, "sh")[1]
        (queries,) = blocks(JOURNAL, "sql")
        self.assertIn("a|", self.shell(text, stdin=None, input=queries))


@unittest.skipUnless(BUILD, "needs a build of the library without a sanitizer")
class Programs(BlockTest):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-blocks-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        whole = {(LIBRARY, 0): "folds", (PIPELINE, 0): "cartpole", (RANKS, 0): "trainer", (WORKERS, 0): "together",
                 (WORKERS, 3): "pool"}
        others = []
        for (page, number), mine in MINE.items():
            name = whole.get((page, number), f"{page.stem}_{number}") + ".cc"
            if (page, number) not in whole:
                others.append(name)
            (cls.place / name).write_text(cls.with_mine(blocks(page, "cpp")[number], mine))
        (cls.place / "components.cc").write_text(COMPONENTS)
        (cls.place / "CMakeLists.txt").write_text(PROJECT.format(
            library=blocks(LIBRARY, "cmake")[0], pipeline=blocks(PIPELINE, "cmake")[0], others=" ".join(others)))
        install(BUILD, cls.place / "prefix")
        for words in (["-G", "Ninja", "-S", cls.place, "-B", cls.place / "build",
                       f"-DCMAKE_PREFIX_PATH={cls.place / 'prefix'}", f"-DCMAKE_CXX_COMPILER={os.environ['CXX']}", *QUICK_LINKER],
                      ["--build", cls.place / "build", "-j2"]):
            # A compiler beside other tests may take as long as it does.
            done = subprocess.run(["cmake", *words], capture_output=True, text=True, env=with_cache_in(cls.place))
            assert done.returncode == 0, done.stdout + done.stderr

    @staticmethod
    def with_mine(block, mine):
        """The block, with what is the reader's behind the last header that it includes itself."""
        head, last, rest = block.rpartition("#include ")
        line, _, body = rest.partition("\n")
        return f"{head}{last}{line}\n{mine}{body}"

    def output_of(self, name, *words):
        self.write("trainyard.yaml", "utilization-limit: {cpu: 100%}\n")
        done = subprocess.run([self.place / "build" / name, *words], cwd=self.directory, env=self.environment,
                              capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    @tries(PIPELINE, "cpp", 1, 2, 3)
    @tries(RANKS, "cpp", 1)
    @tries(WORKERS, "cpp", 1, 2)
    def test_name_the_headers_of_all_that_they_use(self):
        """They have been compiled above, each by itself."""

    @tries(LIBRARY, "cpp", 0)
    @tries(LIBRARY, "cmake", 0)
    def test_of_the_library_run(self):
        self.assertEqual(self.output_of("folds").splitlines(), [f'fold-{k} {{"acc":{k + 0.5}}}' for k in range(10)])

    @tries(PIPELINE, "cpp", 0)
    @tries(PIPELINE, "cmake", 0)
    def test_of_pipelines_run(self):
        self.assertEqual(self.output_of("cartpole"), "")

    @tries(WORKERS, "cpp", 0)
    def test_of_workers_run(self):
        done = subprocess.run([self.place / "build/together"], cwd=self.directory, env=self.environment,
                              capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        # The number of scores that a worker receives before another one ends depends on their pace.
        self.assertEqual(set(done.stderr.splitlines(keepends=True)), {"0.500000\n"})

    @tries(WORKERS, "cpp", 3)
    def test_of_pools_run(self):
        self.assertEqual(self.output_of("pool"), "1\n2\n3.5\n2.5\n")

    @tries(RANKS, "cpp", 0)
    def test_of_ranks_run_where_there_are_fewer_cpus_than_ranks(self):
        self.assertEqual(self.output_of("trainer"), "mean of four: 0.3\n")

    @tries(RANKS, "yaml", 0)
    def test_components_are_made_as_they_are_configured(self):
        self.write("components.yaml", blocks(RANKS, "yaml")[0])
        self.assertEqual(self.output_of("components", "components.yaml"), 'ok {"made":true}\n')

    @tries(RANKS, "yaml", 1)
    @tries(RANKS, "python", 0)
    def test_ranks_in_python_are_a_class_of_a_script(self):
        self.write("components.yaml", blocks(RANKS, "yaml")[1])
        self.write("trainer.py", blocks(RANKS, "python")[0])
        self.assertEqual(self.output_of("components", "components.yaml"), 'ok {"loss":0.1}\n0.1\n')


class Blocks(unittest.TestCase):
    def test_are_all_tried_or_say_why_not(self):
        there = {(page, language, number) for page in pages() for language in TRIED
                 for number in range(len(blocks(page, language)))}
        self.assertEqual(there, {block for block in tried if block[0] in pages()} | TRIED_ELSEWHERE)
