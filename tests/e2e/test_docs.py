"""The documentation, as a reader tries it: what README shows is run as it stands there, and what the
pages say of the program's JSON, columns and exit codes is compared with what comes out.

The blocks of the pages are tried by test_blocks.py.
"""
import pathlib
import re
import shlex
import shutil
import sqlite3

from pages import DOCS, ROOT, blocks
from yard import CLIENT, PATIENCE_S, YardTest, guard_of, json, os, signal, subprocess

FAKE = pathlib.Path(os.environ.get("TRAINYARD_FAKE_NVML_DIR", "."))
# The README's status shows these two tasks running and the two before them finished. They wait for the file `go`.
PYTHON = """#!/bin/sh
case "$*" in
  "train.py --lr 0.001 --seed 2" | "train.py --lr 0.001 --seed 3") while [ ! -e go ]; do sleep 0.01; done ;;
esac
exec /usr/bin/python3 "$@"
"""


def settled(text):
    """The lines without what differs from run to run: times, measured memory, a process, a host, widths of columns."""
    text = re.sub(r"process \d+ on \S+", "process PID on HOST", text)
    text = re.sub(r"\b(?!100 MB)\d+(\.\d+)? [kMG]?B\b", "SIZE", text)
    text = re.sub(r"\b\d+(\.\d+)? m?s\b|\b\d+m(\d+s)?\b|\b\d+(:\d\d)+\b", "TIME", text)
    text = re.sub(r"TIME ± (TIME|[\d.]+)", "TIME ± TIME", text)
    return [" ".join(line.split()) for line in text.splitlines()]


def names_in(value):
    """All names of members, but for those of objects whose names the user chooses."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            if name not in ("matrix", "environment", "command_values", "configuration", "result", "progress_values"):
                yield from names_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from names_in(member)


def named(page, heading):
    """The words in code marks in a section of a page."""
    section = page.read_text().split(f"\n{heading}\n", 1)[1]
    level = heading.split(" ")[0]
    section = re.split(rf"^#{{1,{len(level)}}} ", section, maxsplit=1, flags=re.M)[0]
    return set(re.findall(r"`(\w+)`", section))


class Readme(YardTest):
    def setUp(self):
        super().setUp()
        for name in ("sweep.yaml", "train.py"):
            shutil.copy(ROOT / "examples/sweep" / name, self.directory)
        self.write("trainyard.yaml", "utilization-limit: {cpu: 100%}\n")
        self.use_gpus(0)
        self.write("bin/python3", PYTHON, mode=0o755)
        (self.directory / "bin/trainyard").symlink_to(os.environ["TRAINYARD"])
        self.environment["PATH"] = f"{self.directory}/bin:{os.environ['PATH']}"

    def use_gpus(self, count):
        gpus = [{"uuid": f"GPU-{n}", "name": "GPU", "pci": f"00000000:0{n}:00.0", "memory": 24 * 10**9}
                for n in range(count)]
        self.write("gpus.json", json.dumps({"devices": gpus}))
        self.environment.update(LD_LIBRARY_PATH=str(FAKE), TRAINYARD_FAKE_NVML=str(self.directory / "gpus.json"))

    def shell(self, line):
        return subprocess.run(["sh", "-c", line], cwd=self.directory, env=self.environment, capture_output=True,
                              text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)

    def commands(self):
        """The commands that the README shows with their output: {command: output}."""
        text = "".join(blocks(ROOT / "README.md", "console"))
        return {command: output for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M)}

    def start_on_two_cpus(self, line):
        """The README shows a machine with two CPUs."""
        cpus = sorted(os.sched_getaffinity(0))[:2]
        yard = subprocess.Popen(["taskset", "-c", ",".join(map(str, cpus)), "sh", "-c", "exec " + line],
                                cwd=self.directory, env=self.environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.started.append(yard)
        return yard

    def test_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), 100)

    def test_its_job_file_is_that_of_the_example(self):
        self.assertEqual(blocks(ROOT / "README.md", "yaml"), [self.text("sweep.yaml")])

    def test_three_tasks_of_its_job_share_a_gpu_of_24_GB(self):
        self.use_gpus(4)
        for before, after, per_gpu in (("", "", 0), ("# gpu-memory", "gpu-memory", 3)):
            self.job(self.text("sweep.yaml").replace(before, after))
            shown = json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)
            (task, *_), (gpu, *_) = shown["tasks"], shown["machine"]["gpus"]
            self.assertEqual(gpu["memory_to_give_bytes"] // task["gpu_memory_bytes"] if per_gpu else task["gpus"], per_gpu)

    def test_its_commands_print_what_it_shows_and_those_after_them_do_what_they_say(self):
        (run, ran), (status, running), (results, table) = self.commands().items()
        yard = self.start_on_two_cpus(run)
        seen = []

        def is_as_shown():
            seen[:] = settled(self.shell(status).stdout)
            return seen == settled(running)

        try:
            self.until("the status that the README shows", is_as_shown)
        except AssertionError:
            self.assertEqual(seen, settled(running))  # With the difference.
        self.write("go", "")
        output, _ = yard.communicate(timeout=PATIENCE_S)
        self.assertEqual(yard.returncode, 0, output)
        # Lines that are left out are shown as '...'.
        shown = "".join("(?:.*\n)*" if line == "..." else re.escape(line) + "\n" for line in settled(ran))
        self.assertRegex("\n".join(settled(output)) + "\n", rf"\A{shown}\Z")
        self.assertEqual(settled(self.shell(results).stdout), settled(table))
        self.assertEqual(list(self.words("runs/sweep").values()), ["FINISHED"] * 12)
        self.assertIn('<a href="train.html">train</a>', self.text("runs/sweep/reports/index.html"))
        page = self.text("runs/sweep/reports/train.html")
        for part in ("<h2>Timeline</h2>", "<svg ", "lr=0.001,seed=1", "test_acc"):
            self.assertIn(part, page)
        self.assertEqual(set(os.listdir(self.directory / "runs/sweep/train/lr=0.1,seed=0")) - {"result.1.json"},
                         {"stdout.log", "stderr.log", "result.json", "checkpoints"})
        self.each_command_after_the_first_run_does_what_it_says()
        # A reader who starts the page over in the same directory.
        self.assertEqual(self.shell(run).returncode, 2)
        again = self.shell(f"{run} --new --only lr=0.1")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.trainyard("logs", "lr=0.1,seed=0", expect=0).stdout.count("epoch "), 40)

    def each_command_after_the_first_run_does_what_it_says(self):
        (after,) = blocks(ROOT / "README.md", "sh")
        logs, kill, resume, detached, clean = [shlex.join(shlex.split(line, comments=True)) for line in after.splitlines()]
        self.assertEqual([line.split()[1] for line in (logs, kill, resume, detached, clean)], ["logs", "kill", "run", "run", "clean"])
        self.assertEqual(self.shell(logs).stdout.count("epoch "), 40)
        killed = self.shell(kill)
        self.assertEqual(killed.returncode, 2, killed.stderr)  # It has ended.
        self.assertRegex(killed.stderr, r"\bended\b|\bFINISHED\b|not running")
        resumed = self.shell(resume)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertIn("nothing to run: all 12 tasks have finished", resumed.stderr)
        begun = self.shell(detached)
        self.assertEqual(begun.returncode, 0, begun.stderr)
        self.trainyard("wait", begun.stdout.split()[-1], expect=0)
        self.assertEqual(self.words("runs/rates"), {"rates/lr=0.1": "FINISHED", "rates/lr=1": "FINISHED"})
        listed = self.shell(clean)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        for run in ("runs/sweep", "runs/rates"):
            self.assertIn(run, listed.stdout)
            self.assertTrue((self.directory / run / "journal.db").exists())
        # Tasks without a run are now those of the new run; the message names the run that has this one.
        refused = self.shell(logs)
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("type 1/lr=0.1,seed=0", refused.stderr)
        self.assertEqual(self.trainyard("logs", "1/lr=0.1,seed=0", expect=0).stdout.count("epoch "), 40)

    def test_a_program_with_its_three_lines_has_a_result(self):
        (lines,) = blocks(ROOT / "README.md", "python")
        self.assertEqual(len(lines.splitlines()), 3)
        self.write("mine.py", "accuracy = 0.5\n" + lines)
        self.job(re.sub(r"\[python3, train.py,.*\]", "[python3, mine.py]", self.text("sweep.yaml")))
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual({json.dumps(row["result"]) for row in self.status("runs/job")["tasks"]}, {'{"test_acc": 0.5}'})
        # By hand it writes a file next to it.
        self.assertEqual(self.shell("python3 mine.py").returncode, 0)
        self.assertEqual(json.loads(self.text("result.json")), {"test_acc": 0.5})


class Python(YardTest):
    def test_the_programs_of_the_python_page_run_as_they_stand_there(self):
        bin = self.directory / "bin"
        bin.mkdir()
        (bin / "trainyard").symlink_to(os.environ["TRAINYARD"])
        self.environment.update(PATH=f"{bin}:{os.environ['PATH']}", PYTHONPATH=str(CLIENT))
        self.write("trainyard.yaml", "utilization-limit: {cpu: 100%}\n")
        shown = []
        for number, block in enumerate(blocks(DOCS / "python.md", "python")[:2]):
            self.write(f"program-{number}.py", block)
            done = subprocess.run(["/usr/bin/python3", f"program-{number}.py"], cwd=self.directory, env=self.environment,
                                  capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stderr), (0, ""), block)
            shown.append(done.stdout.splitlines())
        folds, rounds = shown
        self.assertEqual([line.split(" ")[:2] for line in folds], [[f"fold-{k}", "FINISHED"] for k in range(5)])
        self.assertEqual([line.split(" ")[0] for line in rounds], ["0", "1", "2"])
        self.assertEqual([len(self.words(f"runs/{run}")) for run in ("yard", "federated")], [5, 12])


class Pages(YardTest):
    def json_of(self, *words, expect=0):
        return json.loads(self.trainyard(*words, "--json", expect=expect).stdout)

    def test_every_name_in_the_json_is_described(self):
        self.job("""
name: job
config: {utilization-limit.cpu: 100%}
groups:
  - name: g
    memory: 10MB
    cpus: 0
    matrix: {n: 0..1}
    tasks: [{id: "{n}", command: "echo '{{\\"a\\": 1}}' > $TRAINYARD_RESULT; exit {n}"}]
  - {name: h, tasks: [{id: later, command: "true", memory: 10MB}]}
""")
        (self.directory / ".trainyard").mkdir()
        self.write(".trainyard/job.yaml.learned.json",
                   json.dumps({"version": 2, "groups": {"g": {"0": {"memory": 2_000_000, "train_ms": 60_000}}}}))
        described = named(DOCS / "reports.md", "## JSON")
        dry = self.json_of("run", "job.yaml", "--dry-run")
        ran = self.json_of("run", "job.yaml", expect=1)
        status = self.json_of("status", "runs/job", "--all")
        self.assertEqual({name for name in ran} - {"elapsed_ms"}, {name for name in status} - {"elapsed_ms"})
        report = json.loads(self.text("runs/job/reports/g.json"))
        for shown in (dry, ran, status, report, self.json_of("plan", "job.yaml"), self.json_of("devices"), self.json_of("machines", "job.yaml"),
                      self.json_of("learned", "job.yaml"), self.json_of("learned", "forget", "job.yaml"),
                      self.json_of("clean", "--older", "0s", "--dry-run"), self.json_of("replay", "runs/job")):
            self.assertEqual(set(names_in(shown)) - described, set())
        for shown in self.json_of("config", "show").values():
            self.assertEqual(set(shown), {"value", "from"})

    def test_the_columns_of_task_list_are_described_and_no_others(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: 'true', memory: 10MB}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        with sqlite3.connect(f"file:{self.directory}/runs/job/journal.db?mode=ro", uri=True) as journal:
            columns = [column[0] for column in journal.execute("SELECT * FROM task_list").description]
        (row,) = re.findall(r"^\| `task_list` \(view\) \|.*Columns: (.*) \|$", (DOCS / "journal.md").read_text(), re.M)
        self.assertEqual(re.findall(r"`(\w+)`", row), columns)

    def test_the_list_of_commands_fits_into_80_columns(self):
        self.assertEqual([line for line in self.trainyard("--help", expect=0).stdout.splitlines() if len(line) > 80], [])

    def test_help_is_what_it_is_called_everywhere_else(self):
        self.assertEqual(self.trainyard("help", expect=0).stdout, self.trainyard("--help", expect=0).stdout)
        for words in (["run"], ["client", "wait-device"], ["ranks"]):
            asked = self.trainyard("help", *words, expect=0).stdout
            self.assertEqual(asked, self.trainyard(*words, "--help", expect=0).stdout)
        self.assertIn("Usage: trainyard ranks [OPTIONS] -- COMMAND\n", asked)
        self.assertIn("Usage: trainyard help [OPTIONS] [COMMAND]\n", self.trainyard("help", "help", expect=0).stdout)
        self.assertIn("did you mean 'run'?", self.trainyard("help", "rum", expect=2).stderr)
        self.assertEqual(self.trainyard("help", "run", "submit", expect=2).stderr,
                         "trainyard: unexpected argument 'submit'; 'trainyard help run' shows the help of one command\n")
        self.assertEqual(self.trainyard("help", "task-options", expect=0).stdout, self.trainyard("task-options", expect=0).stdout)

    def test_the_exit_codes_are_those_that_are_described(self):
        """The table's row of each command, tried: a code that has no words must not come."""
        section = (DOCS / "reports.md").read_text().split("\n## Exit codes\n", 1)[1]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
        begin = next(number for number, row in enumerate(rows) if row[0] == "command")
        self.assertEqual([row[0] for row in rows[2:begin]], ["0", "1", "2", "75", "130", "143"])
        heads, described = rows[begin], {}
        for row in rows[begin + 2:]:
            codes = {head for head, words in zip(heads[1:4], row[1:4]) if words} | set(re.findall(r"\b\d+(?=[,:])", row[4]))
            described.update({name: {int(code) for code in codes} for name in re.findall(r"`([^`]+)`", row[0])})
        good = "name: job\ngroups: [{name: g, tasks: [{id: a, command: 'true', memory: 10MB}]}]"
        self.job(good)
        self.job(good.replace("true", "false"), "fails.yaml")
        self.job("""
groups:
  - name: g
    memory: 10MB
    cpus: 0
    tasks:
      - {id: a, command: [sleep, 1000]}
      - {id: b, command: "echo b"}
      - {id: c, command: [sleep, 1000]}
      - {id: d, command: 'true', start-after: 1d}
""", "waits.yaml")
        self.job(good.replace("name: g", "name: h"), "more.yaml")
        self.job("groups: [{name: g, tasks: [{id: a, command: 'true', gpus: 99}]}]", "large.yaml")
        nothing = {"TRAINYARD_SOCKET": str(self.directory / "nowhere"), "TRAINYARD_TOKEN": "a"}
        yard = self.start("run", "waits.yaml", "--run-dir", "waits")
        self.until("b has ended", lambda: (self.directory / "waits/journal.db").exists()
                   and self.words("waits") == {"g/a": "RUNNING", "g/b": "FINISHED", "g/c": "RUNNING", "g/d": "WAITING"})
        seen = {}

        def tried(*words, name=None, env=None, prefix=()):
            seen.setdefault(name or words[0], set()).add(self.trainyard(*words, env=env, prefix=prefix).returncode)

        for words in (["job.yaml"], ["fails.yaml", "--run-dir", "fails"], ["nowhere.yaml"]):
            tried("run", *words)
        for words in (["run", "--dry-run", "large.yaml"], ["run", "--dry-run", "nowhere.yaml"]):
            tried(*words, name="run --dry-run")
        for refused in ("large.yaml", "job.yaml"):
            self.trainyard("run", refused, expect=2)
            self.trainyard("run", "--dry-run", refused, expect=0)
        for words in (["plan", "job.yaml"], ["plan", "large.yaml"], ["status", "waits"], ["status", "nowhere"],
                      ["logs", "a", "waits"], ["logs", "x", "waits"], ["devices", "waits"], ["devices", "nowhere"],
                      ["machines", "job.yaml"], ["machines", "nowhere.yaml"],
                      ["results", "waits"], ["results", "nowhere"], ["replay", "waits"], ["replay", "nowhere"],
                      ["learned", "job.yaml"], ["learned", "forget", "job.yaml"], ["learned", "nowhere.yaml"],
                      ["submit", "more.yaml", "--run-dir", "waits"], ["submit", "job.yaml", "--run-dir", "runs/job"],
                      ["kill", "b", "waits"], ["kill", "g/c", "waits"], ["kill", "x", "waits"],
                      ["retry", "g/c", "waits"], ["kill", "g/c", "waits"], ["retry", "fails/"], ["retry", "nowhere"],
                      ["kill", "a", "runs/job"], ["config", "show"], ["config", "show", "--set", "x=y"],
                      ["doctor"], ["doctor", "--set", "x=y"], ["help"], ["help", "x"],
                      ["completion", "bash"], ["completion", "csh"], ["clean", "runs/job", "--dry-run"], ["clean"]):
            tried(*words)
        for words in (["hold", "d"], ["release", "g/a", "d"], ["hold", "g/a", "d"], ["hold", "b"], ["release", "d"], ["release", "d"],
                      ["update", "d", "--priority", "1"], ["update", "b", "d", "--priority", "2"], ["update", "b", "--priority", "1"]):
            tried(*words, "--run-dir", "waits")
        tried("doctor", "--set", "remain-limit.memory=999TB")
        for words in (["plan", "job.yaml"], ["status", "waits"], ["logs", "b", "waits"], ["results", "waits"], ["replay", "waits"],
                      ["devices", "waits"], ["machines"], ["config", "show"],
                      ["doctor"], ["help"], ["completion", "zsh"], ["clean", "runs/job", "--dry-run"], ["submit", "more.yaml", "--run-dir", "waits"]):
            tried(*words, prefix=("sh", "-c", 'exec "$@" > /dev/full', "sh"))
        tried("run", "--dry-run", "job.yaml", name="run --dry-run", prefix=("sh", "-c", 'exec "$@" > /dev/full', "sh"))
        for words in (["wait-device"], ["result"]):
            tried("client", *words, env=nothing)
        tried("client", "wait-device")
        full = ("sh", "-c", 'exec "$@" > /dev/full', "sh")
        for words, more in ((["up"], {}), (["up"], {"prefix": full}), (["up"], {"env": {"SLURM_JOB_ID": "1"}})):
            tried(*words, **more)
        held = self.trainyard("submit", "--cpus", "0", "--", "sleep", "1000", expect=0).stdout.strip()
        waits = self.trainyard("submit", "--needs", held, "--", "true", expect=0).stdout.strip()
        self.until("the run of the queue", lambda: "RUNNING" in self.trainyard("status", held).stdout)
        for words, more in ((["down"], {}), (["down", "--now"], {}), (["down"], {"prefix": full})):
            tried(*words, **more)
        for run in ("runs/job", "fails", "nowhere", waits):
            tried("wait", run)
        for command in ("true", "exit 3", "kill -9 $$"):
            tried("ranks", "-n", "2", "--", "sh", "-c", command)
        tried("ranks", "-n", "2")
        for command in (["true"], ["false"], ["/nowhere/train", "--fast"]):
            tried("parallel", "-n", "1", "--logs", "logs", "--", *command)
        for number in (signal.SIGTERM, signal.SIGINT):
            logs = self.directory / f"logs-{number}"
            workers = self.start("parallel", "-n", "1", "--logs", str(logs), "--", "sh", "-c", "echo up; exec sleep 1000")
            self.until("its worker", lambda path=logs / "worker-0.log": path.exists() and path.read_text() == "up\n")
            workers.send_signal(number)
            self.end_of(workers)
            seen["parallel"].add(workers.returncode)
        for number in (signal.SIGTERM, signal.SIGINT):
            waiting = self.start("wait", "waits")
            waiting.send_signal(number)
            self.end_of(waiting)
            seen["wait"].add(128 - waiting.returncode)
            yard.send_signal(number)
            self.end_of(yard)
            seen["run"].add(yard.returncode)
            yard = self.start("run", "--resume", "waits")
            self.until("a runs again", lambda: self.status("waits")["tasks"][0]["word"] == "RUNNING")
        os.kill(guard_of(yard.pid), signal.SIGKILL)
        self.end_of(yard)
        seen["run"].add(yard.returncode)
        self.assertEqual(seen.pop("ranks"), described.pop("ranks") | {3, 128 + 9})
        self.assertEqual(seen, described)

    def test_the_queries_of_the_journal_page_run(self):
        self.write("task.py", "import json, os, sys\n"
                   "json.dump({'accuracy': int(sys.argv[1])}, open(os.environ['TRAINYARD_RESULT'], 'w'))\n")
        self.job("name: job\ngroups: [{name: g, matrix: {lr: [1, 2]}, "
                 "tasks: [{command: [/usr/bin/python3, task.py, '{lr}'], memory: 10MB}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        (queries,) = blocks(DOCS / "journal.md", "sql")
        with sqlite3.connect(f"file:{self.directory}/runs/job/journal.db?mode=ro", uri=True) as journal:
            ran = [journal.execute(query).fetchall() for query in queries.split(";") if query.strip()]
        self.assertEqual(sorted(accuracy for _, accuracy in ran[0]), [1, 2])
        self.assertEqual(len(ran), len(re.findall(r"\bSELECT\b", queries)))

    def test_the_figures_of_the_repository_are_described_as_they_are(self):
        """Not what the figures are, but how many runs they come from and how many goals hold."""
        measured = json.loads((ROOT / "bench/results.json").read_text())
        described = re.findall(r"^\| (\w+) \| (20\S+) \| (\w+) \| (.*) \| (.*) \|$", (DOCS / "benchmarks.md").read_text(),
                               re.M)
        holds = {group: [row["holds"] for row in measured["rows"] if row["group"] == group and row["goal"]]
                 for group in measured["measured"]}
        self.assertEqual(described, [
            (group, run["date"], run["commit"], f"{run['cpus']} of {run['cpu']}",
             f"{holds[group].count(True)} of {len(holds[group])}") for group, run in measured["measured"].items()])

    def test_every_link_leads_somewhere(self):
        def anchors(page):
            text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.S | re.M)
            heads = re.findall(r"^#+ (.*)$", text, re.M)
            return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}

        for page in sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "tests").rglob("*.md")]):
            for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
                if "://" in target:
                    continue
                name, _, anchor = target.partition("#")
                other = (page.parent / name).resolve() if name else page
                with self.subTest(page=page.name, target=target):
                    self.assertTrue(other.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(other))
