"""Machines that have no disk in common with the one of the run: each has a home of its own here, and real rsync's bring files there and back."""
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile

import agents
from pages import DOCS, blocks
from test_agents import AgentTest
from yard import PATIENCE_S

SYNC = "[., '!data', '!homes', '!.*']"


class UnsharedTest(AgentTest):
    def setUp(self):
        super().setUp()
        for host in ("lab1", "lab2"):
            home = self.home(host)
            home.mkdir(parents=True)
            self.write(f"ssh.{host}", f"export HOME='{home}'; cd; [ -e '{self.directory}/cut' ] && case $* in rsync*|*'&& rsync '*) rm '{self.directory}/cut'; exit 255;; esac\n")

    def home(self, host):
        return self.directory / "homes" / host

    def entries(self, *hosts, sync=SYNC):
        return "machines:\n" + "".join(f"  - {{ssh: {host}, directory: ~/proj, sync: {sync}}}\n" for host in hosts or ("lab1",))

    def sweep_of(self, tasks, *hosts, **options):
        self.job(self.entries(*hosts, **options) + "name: sweep\ngroups:\n" + tasks)

    def settings(self, **options):
        return agents.settings(self.directory, self.ssh, **options)

    def run_job(self, *words, expect=0):
        return self.trainyard("run", "job.yaml", *self.settings(), *words, expect=expect)

    def sweep_that_goes_on(self):
        """Its task waits in its first attempt, and in the next finds what that has saved."""
        self.sweep_of(f"""
  - name: train
    memory: 10MB
    tasks: [{{id: one, command: 'if [ -e $TRAINYARD_CHECKPOINT_DIR/1 ]; then echo goes on; else echo 1 > $TRAINYARD_CHECKPOINT_DIR/1; touch {self.directory}/began; read line < {self.directory}/gate; fi'}}]
""")

    def own_directories(self, host):
        return [path.name for path in self.home(host).glob("proj/.trainyard/*")]


class Code(UnsharedTest):
    def test_is_there_as_here_and_nothing_of_the_run_stays(self):
        self.write("train.sh", "#!/bin/sh\necho trained in $PWD\n. src/words.sh\n", mode=0o755)
        self.write("src/words.sh", "echo word > $TRAINYARD_TASK_DIR/model\n")
        self.write("data/large", "not for there")
        self.write("runs/earlier/model", "not for there")
        self.sweep_of("  - {name: train, memory: 10MB, tasks: [{id: one, command: ./train.sh}]}\n")
        self.run_job()
        self.until_no_agents()  # They remove what they have made, after the run has ended.
        proj = self.home("lab1") / "proj"
        self.assertEqual(sorted(path.name for path in proj.iterdir()), ["job.yaml", "src", "ssh", "ssh.lab1", "ssh.lab2", "train.sh"])
        self.assertIn(f"trained in {proj}\n", self.trainyard("logs", "one", expect=0).stdout)
        self.assertEqual(self.text("runs/sweep/train/one/model"), "word\n")

    def test_that_was_changed_is_brought_again_and_nothing_is_deleted_there(self):
        self.write("a.sh", "echo one\n")
        self.sweep_of("  - {name: train, memory: 10MB, tasks: [{id: one, command: 'sh a.sh; cat mine'}]}\n")
        mine = self.home("lab1") / "proj/mine"
        mine.parent.mkdir()
        mine.write_text("of there\n")
        self.run_job()
        self.write("a.sh", "echo two\n")
        self.run_job("--new")
        self.assertEqual(self.text("runs/sweep/train/one/stdout.log"), "one\nof there\n")
        self.assertEqual(self.text("runs/sweep-2/train/one/stdout.log"), "two\nof there\n")

    def test_that_cannot_be_brought_is_told_and_nothing_runs(self):
        self.sweep_of("  - {name: train, tasks: [{command: 'true'}]}\n", sync="[missing.py]")
        told = self.run_job(expect=2).stderr
        self.assertIn("lab1: cannot copy the code there: rsync: ", told)
        self.assertIn("missing.py", told)
        self.assertFalse((self.directory / "runs").exists())

    def test_of_a_job_file_with_mistakes_goes_nowhere(self):
        self.sweep_of("  - {name: train, taskss: [{command: 'true'}]}\n")
        self.run_job(expect=2)
        self.assertFalse((self.home("lab1") / "proj").exists())

    def test_is_for_rsync_there(self):
        with open(self.directory / "ssh.lab1", "a") as hook:
            hook.write("PATH=/nowhere\n")
        self.sweep_of("  - {name: train, tasks: [{command: 'true'}]}\n")
        self.assertRegex(self.run_job(expect=2).stderr, "lab1: cannot copy the code there: .*mkdir.*not found")


class Files(UnsharedTest):
    def test_of_a_task_are_where_the_next_one_needs_them(self):
        self.sweep_of("""
  - name: make
    memory: 10MB
    where: {machine: lab1}
    tasks:
      - id: one
        command: |
          echo $MACHINE > {task_dir}/made; mkdir {task_dir}/sub; echo x > {task_dir}/sub/stdout.log; echo said
          echo "{{\\"model\\": \\"$TRAINYARD_TASK_DIR/made\\"}" > $TRAINYARD_RESULT
  - name: use
    memory: 10MB
    needs: [make]
    where: {machine: lab2}
    tasks:
      - {id: two, command: 'echo $MACHINE uses; cat {needs.make.result.model} {needs.make.dir}/sub/stdout.log {needs.make.dir}/stdout.log'}
""", "lab1", "lab2")
        self.run_job()
        self.assertEqual(self.text("runs/sweep/use/two/stdout.log"), "lab2 uses\nlab1\nx\nsaid\n")
        told = {task["id"]: task for task in json.loads(self.trainyard("status", "--json", "--all", expect=0).stdout)["tasks"]}
        self.assertEqual(told["one"]["result"], {"model": f"{self.directory}/runs/sweep/make/one/made"})
        for host in ("lab1", "lab2"):
            self.until("its own directory to go", lambda: not (self.home(host) / "proj/.trainyard").exists())

    def test_of_what_runs_are_printed_here(self):
        self.sweep_of(f"  - {{name: train, memory: 10MB, tasks: [{{id: one, command: 'echo epoch 1; read line < {self.directory}/gate; echo epoch 2'}}]}}\n")
        yard = self.start("run", "job.yaml", *self.settings())
        logs = self.until("its log", lambda: (self.directory / "runs/sweep/train/one/stdout.log").exists() and self.trainyard("logs", "one", expect=0).stdout)
        self.assertTrue(logs.endswith("\nepoch 1\n"), logs)
        self.open_gate()
        self.end_of(yard, expect=0)
        self.assertEqual(self.text("runs/sweep/train/one/stdout.log"), "epoch 1\nepoch 2\n")

    def test_come_back_by_ctrl_c_and_go_there_again_when_the_run_goes_on(self):
        self.sweep_that_goes_on()
        yard = self.start("run", "job.yaml", *self.settings())
        self.until_file("began")
        yard.send_signal(signal.SIGINT)
        self.end_of(yard, expect=130)
        self.assertEqual(self.text("runs/sweep/train/one/checkpoints/1"), "1\n")
        self.until_no_agents()
        self.assertEqual(self.own_directories("lab1"), [])
        self.trainyard("run", "--resume", "runs/sweep", *self.settings(), expect=0)
        self.assertIn("goes on", self.trainyard("logs", "one", expect=0).stdout)

    def test_that_only_the_machine_has_are_kept_when_the_run_is_killed(self):
        self.sweep_that_goes_on()
        yard = self.start("run", "job.yaml", *self.settings(lease="3s"))
        self.until_file("began")
        yard.kill()
        self.end_of(yard)
        self.until_no_agents()
        self.trainyard("run", "--resume", "runs/sweep", *self.settings(), expect=0)
        self.assertIn("goes on", self.trainyard("logs", "one", expect=0).stdout)
        self.assertEqual(self.text("runs/sweep/train/one/checkpoints/1"), "1\n")

    def test_that_cannot_all_be_had_are_told_of_and_left_there(self):
        self.write("bin/rsync", "#!/bin/sh\ncase $* in *--ignore-missing-args*) echo no permission >&2; exit 23;; esac\nexec /usr/bin/rsync \"$@\"\n", mode=0o755)
        self.environment["PATH"] = f"{self.directory}/bin:{self.environment['PATH']}"
        self.sweep_of("  - {name: train, memory: 10MB, tasks: [{id: one, command: 'echo 1 > $TRAINYARD_TASK_DIR/a'}]}\n")
        errors = self.run_job(expect=75).stderr
        self.assertRegex(errors, "lab1: files are left there, in .*: no permission\n")
        told, = json.loads(self.trainyard("status", "--json", "--all", expect=0).stdout)["tasks"]
        self.assertEqual((told["word"], told["warning"]), ("FINISHED", "its files are still on lab1: no permission"))
        left, = self.home("lab1").glob("proj/.trainyard/*/train/one/a")
        self.assertEqual(left.read_text(), "1\n")

    def test_of_the_last_attempt_are_the_next_ones_whatever_the_clocks_say(self):
        # The second attempt deletes what the first one has left, and the clock of the first one is ahead.
        self.sweep_of("""
  - name: train
    memory: 10MB
    retries: 2
    tasks:
      - id: one
        command: |
          cd $TRAINYARD_TASK_DIR; ls step-* || true; rm -f step-*; touch step-$TRAINYARD_ATTEMPT
          cd checkpoints; cat state || true; echo $TRAINYARD_ATTEMPT > state
          [ $TRAINYARD_ATTEMPT = 1 ] && touch -d "+1 hour" state
          [ $TRAINYARD_ATTEMPT = 3 ]
""")
        self.run_job()
        task = self.directory / "runs/sweep/train/one"
        self.assertEqual([(task / f"stdout{n}.log").read_text() for n in ("", ".2", ".3")], ["", "step-1\n1\n", "step-2\n2\n"])
        self.assertEqual((task / "checkpoints/state").read_text(), "3\n")
        self.assertEqual([path.name for path in task.glob("step-*")], ["step-3"])

    def test_that_are_not_kept_stay_deleted(self):
        self.sweep_of("""
  - name: train
    memory: 10MB
    cpus: 0
    matrix: {i: [1, 2, 3]}
    keep: {best: 1, by: acc}
    tasks: [{command: 'echo x > {task_dir}/model; echo "{\\"acc\\": {i}}" > $TRAINYARD_RESULT'}]
""")
        self.run_job()
        self.assertEqual([path.parent.name for path in self.directory.glob("runs/sweep/train/*/model")], ["i=3"])

    def test_that_come_when_the_run_is_interrupted_are_of_a_task_that_has_finished(self):
        with open(self.directory / "ssh.lab1", "a") as hook:
            hook.write(f"case $told in *--sender*) touch '{self.directory}/moves'; read line < '{self.directory}/gate';; esac\n")
        self.sweep_of("  - {name: train, memory: 10MB, tasks: [{id: one, command: 'echo once'}]}\n")
        yard = self.start("run", "job.yaml", *self.settings())
        self.until_file("moves")
        yard.send_signal(signal.SIGINT)
        self.until("it to be said", lambda: "interrupt" in self.next_line(yard.stderr))
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=130)
        told, = json.loads(self.trainyard("status", "--json", "--all", expect=0).stdout)["tasks"]
        self.assertEqual((told["word"], told["attempt"]), ("FINISHED", 1), told)
        self.assertEqual(self.text("runs/sweep/train/one/stdout.log"), "once\n")

    def test_that_hang_on_their_way_are_left_when_it_is_interrupted_twice(self):
        with open(self.directory / "ssh.lab1", "a") as hook:
            hook.write(f"case $told in *--sender*) touch '{self.directory}/moves'; exec sleep 1000;; esac\n")
        self.sweep_of("  - {name: train, memory: 10MB, tasks: [{id: one, command: 'echo once'}]}\n")
        yard = self.start("run", "job.yaml", *self.settings())
        self.until_file("moves")
        said = []
        for _ in range(2):
            yard.send_signal(signal.SIGINT)
            self.until("it to be said", lambda: said.append(self.next_line(yard.stderr)) or "interrupt" in said[-1])
        self.assertIn("files are left there, in ", "".join(said) + self.end_of(yard, expect=130)[1])

    def test_of_ranks_and_of_workers_come_too(self):
        self.sweep_of("""
  - {name: train, memory: 10MB, tasks: [{id: one, ranks: 2, command: 'echo rank $RANK of $WORLD_SIZE'}]}
  - {name: play, memory: 10MB, tasks: [{id: two, workers: 2, command: 'echo worker'}]}
""")
        self.run_job()
        self.assertEqual(sorted(path.read_text() for path in self.directory.glob("runs/sweep/train/one/*.log") if path.stat().st_size), ["rank 0 of 2\n", "rank 1 of 2\n"])
        self.assertEqual([path.read_text() for path in self.directory.glob("runs/sweep/play/two/worker-*.log")], ["worker\n", "worker\n"])


class Looks(UnsharedTest):
    def look(self, expect):
        told, = json.loads(self.trainyard("machines", "job.yaml", "--json", *self.settings(), expect=expect).stdout)["machines"]
        return {check["check"]: (check["state"], check["says"]) for check in told["checks"]}

    def test_bring_the_code_first(self):
        self.write("train.sh", "#!/bin/sh\n", mode=0o755)
        self.sweep_of("  - {name: train, tasks: [{command: [./train.sh]}]}\n")
        checks = self.look(expect=0)
        self.assertEqual(checks["sync"], ("ok", "rsync reaches it"))
        self.assertEqual(checks["directory"], ("ok", f"{self.home('lab1')}/proj"))
        self.assertEqual(checks["programs"], ("ok", "./train.sh"))

    def test_say_what_is_not_there(self):
        self.write("train.sh", "#!/bin/sh\n", mode=0o755)
        self.sweep_of("  - {name: train, tasks: [{command: [./train.sh]}]}\n", sync="[job.yaml]")
        self.assertEqual(self.look(expect=2)["programs"][0], "no")
        self.sweep_of("  - {name: train, tasks: [{command: 'true'}]}\n", sync="[missing]")
        checks = self.look(expect=2)
        self.assertEqual(checks["sync"][0], "no")
        self.assertIn("missing", checks["sync"][1])

    def test_refuse_a_directory_that_is_not_there(self):
        self.job("machines:\n  - {ssh: lab1, directory: ~/none}\nname: sweep\ngroups:\n  - {name: train, tasks: [{command: 'true'}]}\n")
        self.assertEqual(self.look(expect=2)["directory"][0], "no")
        self.assertIn(f"{self.home('lab1')}/none", self.run_job(expect=2).stderr)


class Program(UnsharedTest):
    @classmethod
    def setUpClass(cls):
        place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-e2e-"))
        cls.addClassCleanup(shutil.rmtree, place)
        # Debug information would be most of what is copied.
        cls.program = place / "trainyard"
        subprocess.run(["strip", "-o", cls.program, agents.TRAINYARD], check=True, timeout=PATIENCE_S)

    def command(self, *words):
        return [self.program, *super().command(*words)[1:]]

    def test_is_brought_where_it_is_not_installed_and_once(self):
        self.sweep_of("  - {name: train, memory: 10MB, tasks: [{id: one, command: 'true'}]}\n")
        cached = self.home("lab1") / ".cache/trainyard"
        self.trainyard("run", "job.yaml", *self.settings(program="/nowhere/trainyard"), expect=2)
        self.trainyard("run", "job.yaml", *self.settings(program="/nowhere/trainyard"), "--set", "agent.copy=true", expect=0)
        copy, = cached.iterdir()
        self.assertRegex(copy.name, r"^trainyard-\d+\.\d+\.\d+-[0-9a-f]{16}$")
        self.assertEqual((copy.stat().st_mode & 0o777, copy.stat().st_size), (0o755, self.program.stat().st_size))
        before = copy.stat().st_mtime_ns
        self.trainyard("machines", *self.settings(program="/nowhere/trainyard"), "--set", "machines=lab1", "--set", "agent.copy=true", expect=0)
        self.assertEqual([path.stat().st_mtime_ns for path in cached.iterdir()], [before])

    def test_that_cannot_be_brought_is_told_with_its_machine(self):
        self.sweep_of("  - {name: train, tasks: [{command: 'true'}]}\n")
        (self.home("lab1") / ".cache").write_text("a file in the way")
        words = ["--set", "agent.copy=true", *self.settings(program="/nowhere/trainyard")]
        told = self.trainyard("run", "job.yaml", *words, expect=2).stderr
        self.assertRegex(told, "lab1: cannot copy trainyard there: mkdir: .*\\.cache")
        seen, = json.loads(self.trainyard("machines", "--json", "--set", "machines=lab1", *words, expect=2).stdout)["machines"]
        self.assertRegex(seen["wrong"], "lab1: cannot copy trainyard there: mkdir: ")


class Page(UnsharedTest):
    def test_has_an_entry_that_does_what_it_says(self):
        block, = [block for block in blocks(DOCS / "machines.md", "yaml") if "sync:" in block]
        self.write("trainyard.yaml", block.replace("'!data'", "'!data', '!homes', '!.*', '!gate'"))
        activate = self.home("lab1") / "proj/venv/bin/activate"
        activate.parent.mkdir(parents=True)
        activate.write_text("export WORD=activated\n")
        self.write("data/x", "")
        self.job("name: sweep\ngroups:\n  - {name: train, memory: 10MB, tasks: [{id: one, command: 'echo $WORD; ls'}]}\n")
        self.run_job()
        lines = self.trainyard("logs", "one", expect=0).stdout.split()
        self.assertIn("activated", lines)
        self.assertIn("job.yaml", lines)
        self.assertNotIn("data", lines)


class Snapshot(UnsharedTest):
    def test_is_none_of_there(self):
        self.sweep_of("  - {name: train, tasks: [{command: 'true'}]}\n")
        for words in (["init", "-q"], ["add", "job.yaml"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
            subprocess.run(["git", *words], cwd=self.directory, check=True)
        self.assertIn("--snapshot", self.run_job("--snapshot", expect=2).stderr)
