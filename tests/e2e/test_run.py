"""`trainyard run` with a job file that is right, or wrong."""
import os
import signal
import sqlite3
import sys
from contextlib import closing

from yard import PATIENCE_S, TRAINYARD, YardTest, json, subprocess

SWEEP = """
name: job
groups:
  - name: prepare
    tasks:
      - id: data
        command: [sh, -c, 'echo data > "$TRAINYARD_RUN_DIR/data.txt"']
  - name: train
    matrix: {lr: [1e-3, 0.1], seed: 0..1}
    memory: 50MB
    tasks:
      - command: >-
          cat $TRAINYARD_RUN_DIR/data.txt && echo {lr} >&2 &&
          echo '{{"acc": 0.9{seed}, "lr": "'{lr}'"}' > $TRAINYARD_RESULT
"""
SMALL = "name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}]}]\n"


class Run(YardTest):
    def test_runs_groups_in_order_and_keeps_results_and_logs(self):
        self.job(SWEEP)
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertIn("best:", done.stdout)
        self.assertEqual(self.words(), {"prepare/data": "FINISHED", **{
            f"train/lr={lr},seed={seed}": "FINISHED" for lr in ("1e-3", "0.1") for seed in (0, 1)}})
        task = "runs/job/train/lr=1e-3,seed=1"
        self.assertEqual(self.text(f"{task}/stdout.log"), "data\n")
        self.assertEqual(self.text(f"{task}/stderr.log"), "1e-3\n")
        self.assertEqual(json.loads(self.text(f"{task}/result.json")), {"acc": 0.91, "lr": "1e-3"})
        results = [row["result"] for row in self.status()["tasks"]]
        self.assertEqual(results[0], None)
        self.assertEqual(results[1], {"acc": 0.90, "lr": "1e-3"})
        for name in ("prepare.html", "prepare.json", "train.html", "train.json"):
            self.assertTrue((self.directory / "runs/job/reports" / name).stat().st_size > 0)

    def test_tells_a_task_where_it_is(self):
        self.job("""
name: job
groups:
  - name: g
    env: {WHO: 'me {task_id}', OMP_NUM_THREADS: '7'}
    tasks:
      - {id: a, cpus: 2, command: [sh, -c, 'pwd; env | grep -E "^(TRAINYARD_|[A-Z]*_NUM_THREADS|PYTHONUNB|WHO)" | sort']}
""")
        # The tests themselves get settings by such variables.
        for name in [name for name in self.environment if name.startswith("TRAINYARD_") and name != "TRAINYARD_PROMISES"]:
            del self.environment[name]
        self.trainyard("run", "job.yaml", expect=0, env={"MKL_NUM_THREADS": "3"})
        run = self.directory.resolve() / "runs/job"
        lines = self.text("runs/job/g/a/stdout.log").splitlines()
        self.assertEqual(lines[0], str(self.directory.resolve()))
        known = dict(line.split("=", 1) for line in lines[1:])
        self.assertEqual(known, {
            "MKL_NUM_THREADS": "3", "OMP_NUM_THREADS": "7", "OPENBLAS_NUM_THREADS": "2", "PYTHONUNBUFFERED": "1",
            "TRAINYARD_ATTEMPT": "1", "TRAINYARD_GROUP": "g", "TRAINYARD_RESULT": f"{run}/g/a/result.1.json",
            "TRAINYARD_PROMISES": self.environment["TRAINYARD_PROMISES"],
            "TRAINYARD_CHECKPOINT_DIR": f"{run}/g/a/checkpoints", "TRAINYARD_RUN_DIR": str(run), "TRAINYARD_SEED": known["TRAINYARD_SEED"], "TRAINYARD_SET": known["TRAINYARD_SET"], "TRAINYARD_TASK_DIR": f"{run}/g/a", "TRAINYARD_TASK_ID": "a",
            "TRAINYARD_PHASES": "1", "TRAINYARD_SOCKET": known["TRAINYARD_SOCKET"],
            "TRAINYARD_TOKEN": known["TRAINYARD_TOKEN"], "WHO": "me a"})
        self.assertRegex(known["TRAINYARD_SOCKET"], f"^{self.sockets}/")
        self.assertRegex(known["TRAINYARD_TOKEN"], r"^[0-9a-f]{32}$")
        self.assertRegex(known["TRAINYARD_SEED"], r"^\d{1,10}$")

    def test_comes_to_its_end_beside_others_who_keep_the_cpus_busy(self):
        os.mkfifo(self.directory / "gate")
        # More than can run at once.
        self.job("name: job\ngroups: [{name: g, memory: 10MB, cpus: 1, matrix: {n: 1..%d}, "
                 "tasks: [command: cat gate]}]" % (os.cpu_count() + 4))
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
        try:
            # Without the setting that all other tests have.
            yard = subprocess.Popen([TRAINYARD, "run", "job.yaml", "--set", "scheduler.interval=100ms"], cwd=self.directory, env=self.environment,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.started.append(yard)
            def reasons():
                if not (self.directory / "runs/job/journal.db").exists():
                    return []
                done = self.trainyard("status", "runs/job", "--json")
                rows = json.loads(done.stdout)["waiting"] if done.returncode == 0 else []
                return [row for row in rows if row["cause"] == "others-use-cpu"]
            (said,) = self.until("the limit", reasons)
            # Tasks that started before the CPUs were seen to be busy may hold all of them: then the limit is no help.
            held, _, limit = said["reason"].rpartition("; ")
            self.assertRegex(limit, r"^other processes use \d+ % of the CPUs: from 80 %, a task without a GPU starts only when no other runs$")
            self.assertRegex(held, r"^(needs 1 CPU: (the only CPU is|(both|all \d+) CPUs are) reserved by \d+ tasks?)?$")
            self.assertEqual(said["help"], None if held else
                             f"trainyard run --resume {self.directory}/runs/job --set utilization-limit.cpu=100%")
            self.keep_opening_gate(yard)
            self.end_of(yard, expect=0)
        finally:
            for process in busy:
                process.kill()
                process.wait()
        self.assertEqual(set(self.words().values()), {"FINISHED"})

    def test_goes_on_after_a_failure_and_skips_what_needs_it(self):
        self.job("""
name: job
groups:
  - {name: a, tasks: [{id: bad, command: [sh, -c, 'exit 3']}, {id: good, command: ['true']}]}
  - {name: b, tasks: [{id: x, command: ['true']}]}
  - {name: c, needs: [], tasks: [{id: y, command: ['true']}]}
""")
        done = self.trainyard("run", "job.yaml", expect=1)
        self.assertIn("a/bad: FAILED EXIT 3", done.stderr)
        self.assertEqual(self.words(), {"a/bad": "EXIT 3", "a/good": "FINISHED", "b/x": "SKIPPED", "c/y": "FINISHED"})
        self.assertIn("needs group 'a', where a task failed",
                      [row["message"] for row in self.status()["tasks"]])

    def test_sends_the_signal_that_a_task_wants_before_term(self):
        self.job("""
name: job
groups:
  - name: g
    signal: USR1@1
    cpus: 0
    tasks:
      - id: saves
        signal: USR1@60                   # It ends by itself, however slow the machine is.
        command: 'trap "echo saved; exit 0" USR1; echo ready; while :; do sleep 0.01; done'
      - id: stays
        command: 'trap "echo heard" USR1; trap "echo term; exit 0" TERM; echo ready; while :; do sleep 0.01; done'
""")
        yard = self.start("run", "job.yaml")
        for task in ("saves", "stays"):
            self.until_written(f"runs/job/g/{task}/stdout.log")
        self.until("both", lambda: set(self.words().values()) == {"RUNNING"})
        self.trainyard("kill", "*", expect=0)
        self.end_of(yard, expect=1)
        self.assertEqual(set(self.words().values()), {"KILLED"})
        self.assertEqual(self.text("runs/job/g/saves/stdout.log"), "ready\nsaved\n")
        self.assertEqual(self.text("runs/job/g/stays/stdout.log"), "ready\nheard\nterm\n")

    def test_kill_says_how_long_a_task_may_save_its_state_and_ctrl_c_stops_only_its_waiting(self):
        self.job_of_tasks("""
      - id: brief
        signal: USR1@1
        command: 'trap "exit 0" USR1; echo ready; while :; do sleep 0.01; done'
      - id: long
        signal: USR1@60
        command: 'trap "until test -e go; do sleep 0.01; done; exit 0" USR1; echo ready; while :; do sleep 0.01; done'
""")
        yard = self.start("run", "job.yaml")
        for task in ("brief", "long"):
            self.until_written(f"runs/job/g/{task}/stdout.log")
        self.until("both", lambda: set(self.words().values()) == {"RUNNING"})
        killed = self.trainyard("kill", "brief", expect=0)
        self.assertEqual(killed.stdout, "g/brief was killed\n")
        self.assertEqual(killed.stderr, "trainyard: g/brief has up to 1 s to save its state before SIGTERM; Ctrl-C stops only the waiting\n")
        kill = self.start("kill", "long")
        self.assertEqual(self.next_line(kill.stderr),
                         "trainyard: g/long has up to 1m to save its state before SIGTERM; Ctrl-C stops only the waiting\n")
        kill.send_signal(signal.SIGINT)
        self.assertEqual(self.end_of(kill, expect=130), ("", "trainyard: stopped waiting; the kill continues\n"))
        self.assertEqual(self.words()["g/long"], "RUNNING")
        self.write("go", "")
        self.end_of(yard, expect=1)
        self.assertEqual(self.words(), {"g/brief": "KILLED", "g/long": "KILLED"})

    def test_a_program_in_a_script_saves_with_its_helpers(self):
        self.write("run.sh", "#!/bin/sh\npython3 train.py\n", 0o755)
        self.write("train.py", """
import multiprocessing, os, signal

def square(number):
    return number * number

def save(*_):
    print(sum(pool.map(square, (1, 2, 3))), flush=True)
    os._exit(0)

pool = multiprocessing.Pool(2)
pool.map(square, (1, 2, 3))
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True:
    signal.pause()
""")
        self.job("name: job\ngroups: [{name: g, cpus: 0, tasks: [{id: a, command: ./run.sh}]}]")
        yard = self.start("run", "job.yaml")
        self.until_written("runs/job/g/a/stdout.log")
        self.trainyard("kill", "a", expect=0)
        self.end_of(yard, expect=1)
        self.assertEqual(self.text("runs/job/g/a/stdout.log"), "ready\n14\n")

    def test_tells_all_mistakes_at_once_and_runs_nothing(self):
        self.job("""name: job
groups:
  - name: train
    max-paralel: 2
    memory: 8gb
    tasks:
      - {id: a, command: 'touch ran'}
      - {id: a, command: 'touch ran {lr}'}
""")
        done = self.trainyard("run", "job.yaml", expect=2)
        self.assertIn("job.yaml:4:5: group 'train': unknown key 'max-paralel' (did you mean 'max-parallel'?)", done.stderr)
        self.assertIn("'8gb' is in bits: write '8GB'", done.stderr)
        self.assertIn("lr", done.stderr)
        self.assertFalse((self.directory / "ran").exists())
        self.assertFalse((self.directory / "runs").exists())

    def test_says_what_it_would_run_without_running_it(self):
        self.job(SWEEP)
        done = self.trainyard("run", "job.yaml", "--dry-run", expect=0)
        self.assertIn("lr=1e-3,seed=0", done.stdout)
        self.assertIn("OMP_NUM_THREADS", done.stdout)
        self.assertFalse((self.directory / "runs").exists())
        json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)

    def small_groups(self, train, later):
        """A job with these lines in its group train, and this task in the group later."""
        small = "memory: 1MB, cpus: 0, duration: 1s"
        self.job(f"name: job\ngroups:\n- {{name: train, {small}, {train}}}\n- {{name: later, {small}, tasks: [{later}]}}\n")

    def test_a_run_a_dry_run_and_a_plan_warn_of_a_program_that_is_missing(self):
        self.small_groups("""tasks: [
  {id: a, command: trainyard-none 1},
  {id: b, command: [./none, '2'], working-directory: sub},
  {id: c, command: ./plain.sh},
  {id: d, command: 'true'}]""", "{id: e, command: ./made}")
        (self.directory / "sub").mkdir()
        self.write("plain.sh", "true\n")
        here = self.directory.resolve()
        for words in (["run", "job.yaml", "--dry-run"], ["run", "job.yaml", "--dry-run", "--json"], ["plan", "job.yaml"]):
            self.assertEqual(self.trainyard(*words, expect=0).stderr.splitlines(), [
                f"trainyard: warning: task train/a in '{here}': cannot run 'trainyard-none': program not found on PATH; "
                "install it, or write its full path",
                f"trainyard: warning: task train/b in '{here}/sub': cannot run './none': no such file or directory",
                f"trainyard: warning: task train/c in '{here}': cannot run './plain.sh': permission denied; is it executable? "
                "try 'chmod +x ./plain.sh' or 'sh ./plain.sh'",
                f"trainyard: warning: task later/e in '{here}': cannot run './made': no such file or directory, "
                "unless a task that it waits for makes it"], words)
        done = self.trainyard("run", "job.yaml", expect=1)
        for task in ("train/a", "train/b", "train/c"):
            self.assertEqual(done.stderr.count(f"trainyard: warning: task {task} in "), 1, done.stderr)
        self.assertNotIn("unless a task that it waits for", done.stderr)
        for words in (["plan", "job.yaml", "--gpus", "0"], ["run", "job.yaml", "--dry-run", "--on", "lab1"]):
            self.assertNotIn("cannot run", self.trainyard(*words, expect=0).stderr, "programs of this machine do not matter")

    def test_warns_of_a_script_that_is_not_there_and_names_the_one_that_is(self):
        self.small_groups("""matrix: {lr: [1, 2]},
  tasks: [{id: 'a{lr}', command: 'sh src/trian.sh {lr}'}, {id: 'b{lr}', command: [sh, src/train.sh]}]""",
                          "{id: e, command: [sh, made.sh]}")
        self.write("src/train.sh", "true\n")
        here = self.directory.resolve()
        missing = f"trainyard: warning: task train/a1 in '{here}': script 'src/trian.sh' not found (did you mean 'src/train.sh'?)"
        for words in (["run", "job.yaml", "--dry-run"], ["plan", "job.yaml"]):
            self.assertEqual(self.trainyard(*words, expect=0).stderr.splitlines(), [
                missing, f"trainyard: warning: task later/e in '{here}': script 'made.sh' not found, "
                "unless a task that it waits for makes it"], words)
        done = self.trainyard("run", "job.yaml", expect=1)
        self.assertEqual(done.stderr.count("script '"), 1, done.stderr)
        self.assertIn(missing + "\n", done.stderr)
        self.assertEqual([self.words()[f"train/{task}"] for task in ("b1", "b2")], ["FINISHED"] * 2, "it was only a warning")
        of_all = self.trainyard("run", "--memory", "1MB", "--matrix", "lr=1,2", "--dry-run", "--", "sh", "src/trian.sh", "{lr}", expect=0)
        self.assertEqual(of_all.stderr, missing.replace("task train/a1 in", "both tasks in") + "\n")

    def test_warns_of_no_script_that_bash_or_a_launcher_finds(self):
        launchers = ["torchrun fit.py", "accelerate launch fit.py", "uv run fit.py", "conda run -n e python fit.py",
                     "srun python fit.py"]
        for name in ("torchrun", "accelerate", "uv", "conda", "srun", "started.sh"):
            self.write(f"bin/{name}", "#!/bin/sh\n", 0o755)
        for name, mode in (("bin/read.sh", 0o644), ("fit.py", 0o644), ("sub/fit.py", 0o644), ("fit.sh", 0o755)):
            self.write(name, "", mode)
        commands = ["bash fit.sh", "./fit.sh", "source fit.sh", ". ./fit.sh", "bash read.sh", "started.sh", "exported --lr 1",
                    "env A=1 python3 fit.py", "A=1 python3 fit.py", "time python3 fit.py", "exec python3 fit.py",
                    "python3 -m package", "python3 -u fit.py", "cd sub && python3 fit.py", "python3 $HOME/fit.py",
                    "echo 1 | xargs python3 fit.py", *launchers]
        tasks = "\n".join(f"      - {{command: {json.dumps(command)}}}" for command in commands)
        self.job(f"name: job\ngroups:\n  - name: g\n    memory: 1MB\n    cpus: 0\n    duration: 1s\n    tasks:\n{tasks}\n")
        found = {"PATH": f"{self.directory}/bin:{os.environ['PATH']}", "BASH_FUNC_exported%%": "() {  true; }"}
        self.assertEqual(self.trainyard("run", "job.yaml", "--dry-run", expect=0, env=found).stderr, "")
        self.assertIn("script 'none.sh' not found", self.trainyard("run", "--dry-run", "--", "bash", "none.sh", expect=0).stderr)
        self.assertIn("script '~/none.sh' not found: no shell expands '~' here; write the full path, or the whole command as one string\n",
                      self.trainyard("run", "--dry-run", "--", "bash", "~/none.sh", expect=0).stderr)

    def test_warns_of_a_matrix_key_that_nothing_uses_before_the_run_and_under_its_table(self):
        self.job("name: job\ngroups: [{name: g, memory: 1MB, cpus: 0, matrix: {lr: [1, 2], seed: 0..4}, tasks: [{command: ['true', '{lr}']}]}]")
        warning = "group 'g': matrix key 'seed' is not used in command, id or env: tasks that differ only in 'seed' are identical; write '{seed}' in the command\n"
        self.assertEqual(self.trainyard("run", "job.yaml", "--dry-run", expect=0).stdout.count(warning), 1)
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(done.stderr.count(warning), 1)
        self.assertIn("\nwarning: " + warning + "reports: ", done.stdout)
        as_json = self.trainyard("run", "job.yaml", "--new", "--json", expect=0)
        self.assertNotIn("is not used in", json.dumps(json.loads(as_json.stdout)))
        self.assertEqual(as_json.stderr.count(warning), 1)

    def test_keeps_the_diff_that_git_makes_whatever_a_person_looks_at_diffs_with(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}]}]")
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
        for words in (["init", "-q"], ["add", "job.yaml"], ["commit", "-qm", "one"],
                      ["config", "diff.external", "touch looked; echo"], ["config", "color.ui", "always"]):
            subprocess.run([*git, *words], cwd=self.directory, check=True)
        with open(self.directory / "job.yaml", "a") as file:
            file.write("\n# edited\n")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertFalse((self.directory / "looked").exists())
        with closing(sqlite3.connect(self.directory / "runs/job/journal.db")) as journal:
            diff, = journal.execute("SELECT git_diff FROM executions").fetchone()
        self.assertIn("\n+# edited\n", diff)

    def test_runs_with_new_that_start_at_once_take_a_directory_each(self):
        self.job(SMALL)
        for yard in [self.start("run", "job.yaml", "--new") for _ in range(3)]:
            self.end_of(yard, expect=0)
        self.assertEqual(sorted(path.name for path in (self.directory / "runs").glob("job*")), ["job", "job-2", "job-3"])

    def test_refuses_a_run_directory_that_was_used_and_names_the_ways_out(self):
        self.job(SMALL)
        self.trainyard("run", "job.yaml", expect=0)
        done = self.trainyard("run", "job.yaml", expect=2)
        lines = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("  ")]
        self.assertEqual([line[-1] for line in lines], ["--resume", "--new"])
        self.assertIn(f"in '{self.directory.resolve()}/runs/job-2'", done.stderr)
        resumed = self.trainyard(*lines[0], expect=0)
        self.assertIn(": runs/job\n", resumed.stderr)
        self.assertRegex(resumed.stderr, r"(?m)^nothing to run: (the only task has|(both|all [0-9]+) tasks have) finished$")
        self.assertIn(": runs/job-2\n", self.trainyard(*lines[1], expect=0).stderr)
        self.assertIn(": runs/job-3\n", self.trainyard(*lines[1], expect=0).stderr)
        self.assertIn(": runs/job-3\n", self.trainyard(*lines[0], expect=0).stderr, "the last one goes on")
        self.trainyard("run", "job.yaml", "--run-dir", "elsewhere", expect=0)
        self.assertIn(": elsewhere-2\n",
                      self.trainyard("run", "job.yaml", "--run-dir", "elsewhere", "--new", expect=0).stderr)

        refused = self.trainyard("run", "job.yaml", expect=2).stderr.splitlines()
        again = next(line for line in refused if line.startswith("  ")).split()[1:]
        self.assertEqual(again[-2:], ["--resume", "runs/job"], "the one that stands in the way, not the last one")
        self.assertIn(": runs/job\n", self.trainyard(*again, expect=0).stderr)

    def test_names_the_ways_out_so_that_a_shell_reads_them(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}]}]", "my job.yaml")
        self.trainyard("run", "my job.yaml", "--run-dir", "my runs", expect=0)
        refused = self.trainyard("run", "my job.yaml", "--run-dir", "my runs", expect=2).stderr
        lines = [line for line in refused.splitlines() if line.startswith("  ")]
        for line, place in zip(lines, ("my runs", "my runs-2")):
            done = subprocess.run(line + " --set utilization-limit.cpu=100%", shell=True, cwd=self.directory,
                                  env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(done.returncode, 0, done)
            self.assertIn(f": {place}\n", done.stderr)
        self.assertEqual(len(lines), 2)

    def test_takes_no_run_of_another_job_for_its_own_second_one(self):
        for name in ("net", "net-50"):
            self.job(SMALL.replace("name: job", f"name: {name}"), f"{name}.yaml")
            self.trainyard("run", f"{name}.yaml", expect=0)
        self.assertIn(": runs/net\n", self.trainyard("run", "net.yaml", "--resume", expect=0).stderr)
        for name in ("net", "net-50"):
            self.assertIn(f": runs/{name}\n", self.trainyard("status", f"{name}.yaml", expect=0).stdout)

    def test_takes_no_second_run_of_another_job_for_its_own(self):
        self.job(SMALL.replace("name: job", "name: net"), "net.yaml")
        self.job(SMALL.replace("name: job", "name: net-2"), "net-2.yaml")
        self.trainyard("run", "net.yaml", expect=0)
        self.trainyard("run", "net.yaml", "--new", expect=0)
        self.assertIn("no run of 'net-2.yaml' found", self.trainyard("status", "net-2.yaml", expect=2).stderr)
        self.assertIn("no run of 'net-2.yaml' found in", self.trainyard("run", "net-2.yaml", "--resume", expect=2).stderr)
        refused = self.trainyard("run", "net-2.yaml", expect=2).stderr
        self.assertRegex(refused, r"already contains a run, of another job file\.\nTo start another run, in '.*/runs/net-2-2', type\n"
                                  r"  .* run net-2\.yaml .*--new\nTo resume that run with this job file, type\n"
                                  r"  trainyard run --resume runs/net-2 net-2\.yaml\n\Z")
        self.assertIn(": runs/net-2-2\n", self.trainyard("run", "net-2.yaml", "--new", expect=0).stderr)
        self.assertIn(": runs/net-2-2\n", self.trainyard("run", "net-2.yaml", "--resume", expect=0).stderr)
        self.assertIn(": runs/net-2\n", self.trainyard("run", "net.yaml", "--resume", expect=0).stderr)
        # A job file that was moved takes its runs with it; a directory names its last run.
        (self.directory / "net.yaml").rename(self.directory / "moved.yaml")
        self.assertIn(": runs/net-2\n", self.trainyard("run", "moved.yaml", "--resume", expect=0).stderr)
        self.assertIn(": runs/net-2\n", self.trainyard("run", "--resume", ".", expect=0).stderr)
        self.assertIn("run 'nowhere' not found; ", self.trainyard("run", "--resume", "nowhere", expect=2).stderr)

    def test_runs_what_an_edit_changed_again_where_that_is_asked_for(self):
        text = "name: job\ngroups: [{name: g, tasks: [{id: a, command: echo VALUE}, {id: b, command: echo b}]}]\n"
        self.job(text.replace("VALUE", "1"))
        self.trainyard("run", "job.yaml", expect=0)
        self.job(text.replace("VALUE", "2"))
        kept = self.trainyard("run", "job.yaml", "--resume", expect=0)
        self.assertIn("nothing to run: both tasks have finished\n1 task was changed after it had finished; its result is "
                      "kept (--rerun-changed runs it again)\n", kept.stderr)
        self.assertRegex(kept.stdout, "a +FINISHED, edited ")
        self.assertRegex(kept.stdout, "b +FINISHED ")
        self.assertIn("1 of 2 tasks ran an earlier command: 'trainyard run --resume runs/job --rerun-changed' runs it again\n", kept.stdout)
        self.assertEqual([row["edited"] for row in self.status()["tasks"]], [True, False])
        self.assertIn(">edited</span>", self.text("runs/job/reports/g.html"))
        again = self.trainyard("run", "job.yaml", "--resume", "--rerun-changed", expect=0)
        self.assertNotIn("edited ", again.stdout)
        rows = self.status()["tasks"]
        self.assertEqual([(row["word"], row["attempt"], row["edited"]) for row in rows],
                         [("FINISHED", 2, False), ("FINISHED", 1, False)])
        self.assertEqual((self.text("runs/job/g/a/stdout.log"), self.text("runs/job/g/a/stdout.2.log")), ("1\n", "2\n"))
        # Written as it was before, it is as it was.
        self.job(text.replace("VALUE", "1"))
        self.trainyard("run", "job.yaml", "--resume", expect=0)
        self.assertEqual([row["edited"] for row in self.status()["tasks"]], [True, False])
        self.job(text.replace("VALUE", "2"))
        self.trainyard("run", "job.yaml", "--resume", expect=0)
        self.assertEqual([row["edited"] for row in self.status()["tasks"]], [False, False])

    def test_refuses_what_of_resume_and_new_does_not_go_together(self):
        self.job(SMALL)
        for words, said in ((["--resume", "--new"], "--resume and --new cannot be combined"), (["--rerun-changed"], "needs --resume"),
                            (["--resume"], "no run of 'job.yaml' found in")):
            self.assertIn(said, self.trainyard("run", "job.yaml", *words, expect=2).stderr)
        self.assertIn("no run given", self.trainyard("run", "--resume", expect=2).stderr)

    def test_of_a_job_file_is_not_to_resume_the_run_of_a_command(self):
        self.job(SMALL)
        self.trainyard("run", "--name", "job", "--cpus", "0", "--memory", "1MB", "--", "true", expect=0)
        self.assertIn("has another run: start one with 'trainyard run job.yaml --new'\n",
                      self.trainyard("run", "job.yaml", "--resume", expect=2).stderr)
        refused = self.trainyard("run", "job.yaml", expect=2).stderr
        self.assertRegex(refused, r"already contains a run, of a command\.\nTo start another run, in '.*/runs/job-2', type\n"
                                  r"  .* run job\.yaml .*--new\n\Z")

    def test_is_refused_in_a_directory_that_has_files_of_no_run(self):
        self.job(SMALL)
        self.write("full/notes.txt", "")
        for name, why in (("full", "is not empty and contains no run"), ("full/notes.txt", "is not a directory"),
                          ("/", "is not empty and contains no run")):
            for words in (["--", "true"], ["job.yaml"]):
                self.assertEqual(self.trainyard("run", "--run-dir", name, *words, expect=2).stderr,
                                 f"trainyard: --run-dir: '{name}' {why}; name a new or an empty directory\n")
        self.assertFalse((self.directory / "full-2").exists())
        self.assertEqual([path.name for path in (self.directory / "full").iterdir()], ["notes.txt"])

    def test_of_a_command_says_that_a_directory_which_was_named_has_a_run(self):
        words = ("run", "--cpus", "0", "--memory", "1MB", "--run-dir", "mine", "--", "true")
        environment = {**self.environment}
        for told in (False, True):
            done = subprocess.run([*self.command("status")[:1], *words], cwd=self.directory, env=environment, capture_output=True,
                                  text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("trainyard: 'mine' already contains a run: this run is in 'mine-2'\n" in done.stderr, told)
        self.assertTrue((self.directory / "mine-2/journal.db").exists())

    def test_says_how_a_run_is_put_elsewhere_where_its_directory_cannot_be_made(self):
        job = self.job("run-dir: /proc/x\ngroups: [{name: g, tasks: [{command: 'true'}]}]\n")
        by_option = "'--run-dir DIR' puts the run in another directory"
        for words, directory, cure in ((("run", "--", "true"), "/proc/runs", by_option),
                                       (("run", "--run-dir", "/proc/x", "--", "true"), "/proc/x", by_option),
                                       (("run", job), "/proc/x", by_option),
                                       (("submit", "--", "true"), "/proc/runs", "'--set workdir=DIR' puts runs in DIR/runs"),
                                       (("submit", job), "/proc/x", "'run-dir: DIR' in the job file puts the run in DIR")):
            self.assertEqual(self.trainyard(*words, cwd="/proc", expect=2).stderr,
                             f"trainyard: cannot make the directory '{directory}': no such file or directory; {cure}\n")

    def test_refuses_what_is_no_command_with_the_nearest_one(self):
        self.assertIn("unknown command 'rnu' (did you mean 'run'?)", self.trainyard("rnu", expect=2).stderr)
        for words, answer in ((["config", "int"], "unknown command 'int' (did you mean 'init'?)"),
                              (["plan", "--", "true"], "'true' not found; 'trainyard plan' takes a job file, not a command\n"),
                              (["submit", "."], "'.' is a directory, not a job file; it contains no .yaml file\n"),
                              (["plan", ""], "'' is not a job file"), (["learned", ""], "'' is not a job file"),
                              (["run", "--name", "", "--", "true"], "--name: '' is not a valid name"),
                              (["version"], "unknown command 'version' (did you mean '--version'?)"),
                              (["-v"], "unknown option '-v' (did you mean '--version'?)"),
                              (["stat"], "unknown command 'stat' (did you mean 'status'?)"),
                              (["gpus"], "unknown command 'gpus' (did you mean 'devices'?)"),
                              (["run", "--background"], "unknown option '--background' (did you mean '--detach'?)"),
                              (["run", "--json=x", "--sett=a=b"], "unknown option '--sett' (did you mean '--set'?)"),
                              (["logs", "--nothing"], "unknown option '--nothing'; 'trainyard logs --help' lists the options"),
                              (["run", "python3", "train.py"],
                               "unexpected argument 'train.py'; a command goes after '--': trainyard run -- python3 train.py"),
                              (["run", "--name", "one", "--resume", "--", "true"],
                               "--resume cannot be combined with a command: to continue the run of a command, type 'trainyard run --resume runs/one'\n"),
                              (["run", "--resume", "runs/a b", "--name", "one", "--", "true"], "type \"trainyard run --resume 'runs/a b'\"\n"),
                              (["run", "--resume", "--", "true"], "type 'trainyard run --resume RUN'\n"),
                              (["run", "--new", "--", "true"], "--new has no effect with a command, which always starts another run: leave it out\n"),
                              (["run", "--matrix", "lr=0.1", "seed=0..3", "--", "true"],
                               "each value of --matrix must be one word: --matrix lr=0.1 --matrix seed=0..3\n"),
                              (["devices", "99", "98"], "unexpected argument '98'\n'trainyard devices --help' shows the usage"),
                              (["plan"], "no job file given: use 'trainyard plan sweep.yaml'"),
                              (["update", "x", "--priority"], "--priority needs a number"),
                              (["run", "job.yaml", "--on", ""], "--on: no machine is given"),
                              (["run", "job.yaml", "--on", "lab1,lab1"], "--on: duplicate machine 'lab1'"),
                              (["run", "job.yaml", "--allocations", "65"], "--allocations: '65' is not a whole number from 1 to 64"),
                              (["ranks", "-n", "two"], "--ranks: 'two' is not a whole number from 1 to 4096"),
                              (["list", "--help"], "unknown command 'list'; 'trainyard status' shows active runs, "),
                              (["ps", "--help"], "unknown command 'ps' (did you mean 'status'?)"),
                              (["resume"], "unknown command 'resume' (did you mean 'trainyard run --resume RUN'?)")):
            self.assertIn(answer, self.trainyard(*words, expect=2).stderr)
        self.assertIn("no job file given", self.trainyard("run", expect=2).stderr)
        for words, answer in (((), "no command given; 'trainyard --help' lists the commands"), (("run", "--"), "no command after '--'")):
            alone = subprocess.run([*self.command("status")[:1], *words], env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual((alone.returncode, alone.stderr), (2, f"trainyard: {answer}\n"))
        self.trainyard("run", "missing.yaml", expect=2)
        self.assertIn("Examples:", self.trainyard("run", "--help", expect=0).stdout)
        self.assertIn("trainyard 0", self.trainyard("--version", expect=0).stdout)

    def test_refuses_an_option_without_effect(self):
        self.job(SMALL)
        for dry in ([], ["--dry-run"]):
            self.assertEqual(self.trainyard("run", "job.yaml", "--allocations", "2", *dry, expect=2).stderr,
                             "trainyard: --allocations has no effect: the run requests no Slurm nodes (--slurm does)\n")
        self.assertEqual(self.trainyard("run", "job.yaml", "-d", "--json", expect=2).stderr,
                         "trainyard: --detach and --json cannot be combined: use 'trainyard status RUN --json' later\n")
        for condition in ("success", "failure", "always()"):
            self.assertEqual(self.trainyard("run", "--if", condition, "--", "true", expect=2).stderr,
                             "trainyard: --if has no effect without --needs, which 'trainyard submit' has\n")
        self.assertFalse((self.directory / "runs").exists())


class Configuration(YardTest):
    def test_keeps_a_password_out_of_everything_that_is_shown(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}]}]")
        secret = "smtp.password=geheim"
        done = self.trainyard("run", "job.yaml", "--json", "--set", secret, f"--set={secret}", expect=0)
        self.assertIn("--set smtp.password=****** --set=smtp.password=******", done.stdout)
        for path in (self.directory / "runs/job").rglob("*"):
            self.assertFalse(path.is_file() and b"geheim" in path.read_bytes(), path)
        self.assertNotIn("geheim", done.stdout + self.trainyard("status", "--json", expect=0).stdout)
        self.assertEqual((self.directory / "runs/job/journal.db").stat().st_mode & 0o777, 0o600)

    def test_keeps_the_job_of_a_command_and_its_lock_for_the_user_alone(self):
        self.addCleanup(os.umask, os.umask(0o022))
        self.trainyard("run", "--name", "fit", "--cpus", "0", "--memory", "1MB", "--env", "KEY=geheim", "--", "true", expect=0)
        run = self.directory / "runs/fit"
        self.assertIn("geheim", (run / "trainyard.job.yaml").read_text())
        for name in ("trainyard.job.yaml", "journal.db", "lock"):
            self.assertEqual((run / name).stat().st_mode & 0o777, 0o600, name)
        for path in run.rglob("*"):
            is_read_by_all = path.is_file() and path.stat().st_mode & 0o004
            self.assertFalse(is_read_by_all and b"geheim" in path.read_bytes(), path)
        self.assertIn("--env KEY=******", (run / "reports/index.html").read_text())

    def test_overwrites_no_directory(self):
        (self.directory / "trainyard.yaml").mkdir()
        for words, why in (([], "' is a directory, not a regular file"), (["--force"], "': is a directory")):
            self.assertIn(f"trainyard.yaml{why}\n", self.trainyard("config", "init", *words, expect=2).stderr)
        self.assertTrue((self.directory / "trainyard.yaml").is_dir())

    def test_shows_what_is_in_force_and_where_it_came_from(self):
        self.trainyard("config", "init", expect=0)
        self.assertIn("already exists; --force overwrites it", self.trainyard("config", "init", expect=2).stderr)
        self.write("trainyard.yaml", "scheduler:\n  max-process: 3\n")
        self.assertEqual(self.trainyard("config", "show", "memory", expect=2).stderr,
                         "trainyard: job file 'memory' not found; without a job file, 'trainyard config show' shows all settings\n")
        self.job(SWEEP + "config:\n  scheduler:\n    train-nretry: 5\n")
        shown = self.trainyard("config", "show", "job.yaml", "--set", "gpu-priority.reverse=true", expect=0).stdout
        lines = {line.split(":")[0].strip(): line for line in shown.splitlines() if "#" in line}
        text = "\n".join(lines.values())
        self.assertIn("trainyard.yaml:2", text)
        self.assertIn("job.yaml:", text)
        self.assertIn("--set", text)
