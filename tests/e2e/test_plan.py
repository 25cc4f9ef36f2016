"""The forecast of a run, and what runs teach for the next."""
import json

from yard import YardTest

SWEEP = """
name: sweep
groups:
  - name: train
    memory: 1GB
    cpus: 0
    matrix: {n: 0..3}
    gpu-memory: 10GB
    duration: 10m
    tasks: [{id: "t{n}", command: 'true'}]
  - name: test
    cpus: 1
    duration: 1m
    tasks: [{id: all, command: 'true'}]
"""


class Plan(YardTest):
    def plan(self, *words, **how):
        return self.trainyard("plan", "job.yaml", *words, **how)

    def test_a_run_is_played_through_on_machines_that_are_not_here(self):
        self.job(SWEEP)
        text = self.plan("--gpus", "1x24GB", "2x24GB", "--memory", "64GB", "--cpus", "8", expect=0).stdout
        self.assertIn("1x24GB, 64GB of memory, 8 CPUs: 5 tasks in 21m, or 41m if tasks that share a GPU slow each other down\n", text)
        self.assertIn("GPU 0    with tasks  95 % of the time", text)
        self.assertIn("10m: needs 10 GB on its GPU", text)
        self.assertRegex(text, r"compared:\n.* 21m\n.* 11m  1\.91 x the speed of the first\n")
        text = self.plan("--gpus", "1x24GB", "--memory", "64GB", "--cpus", "1", expect=0).stdout
        self.assertIn("1x24GB, 64GB of memory, 1 CPU: 5 tasks in", text)
        said = json.loads(self.plan("--gpus", "2x24GB", "--json", expect=0).stdout)["runs"][0]
        self.assertEqual((said["makespan_ms"], said["makespan_at_the_worst_ms"], said["finished"]), (660_000, 1_260_000, 5))
        self.assertEqual(sorted(task["gpus"] for task in said["tasks"]), [[], ["0"], ["0"], ["1"], ["1"]])
        self.assertFalse((self.directory / "runs").exists())

    def test_each_machine_counts_the_cpus_that_its_own_tasks_reserve(self):
        # Without 'cpus', a task on a GPU has a part of them that depends on the machine.
        self.job("name: job\ngroups: [{name: g, gpu-memory: 6GB, memory: 1GB, duration: 10m, matrix: {n: 1..40}, tasks: [{command: 'true {n}'}]}]\n")
        def reserved(*gpus):
            said = json.loads(self.plan("--gpus", *gpus, "--cpus", "32", "--memory", "256GB", "--json", expect=0).stdout)
            return [device["promised"] for run in said["runs"] for device in run["devices"] if device["name"] == "CPUs"]
        self.assertEqual(reserved("1x24GB", "4x80GB"), reserved("1x24GB") + reserved("4x80GB"))

    def test_a_run_is_played_through_on_several_machines(self):
        self.job(SWEEP)
        text = self.plan("--machines", "2x(1x12GB, 8 CPUs, 64GB)", "1x(1x12GB, 8 CPUs, 64GB)+1x(1 CPU, 16GB)", expect=0).stdout
        self.assertIn("2x(1x12GB, 8 CPUs, 64GB): 5 tasks in 21m\n  2x(1x12GB, 8 CPUs, 64GB): tasks ran on 2 of 2 machines\n    GPUs     with tasks", text)
        self.assertIn("  1x(1 CPU, 16GB): tasks ran on 0 of 1 machine\n", text)
        self.assertRegex(text, r"compared:\n.* 21m\n.* 41m  0\.51 x the speed of the first\n")
        said = json.loads(self.plan("--machines", "2x(1x12GB)", "--json", expect=0).stdout)["runs"][0]
        self.assertEqual([task["machine"] for task in said["tasks"][:4]], [0, 1, 0, 1])
        self.assertEqual((said["kinds"][0]["kind"], said["kinds"][0]["used"]), ("2x(1x12GB)", 2))

    def test_the_page_has_a_timeline(self):
        self.job(SWEEP)
        self.plan("--gpus", "24GB", "--html", "plan.html", expect=0)
        page = self.text("plan.html")
        self.assertIn("<svg", page)
        self.assertIn("train/t3: 10m to 20m", page)

    def test_mistakes_are_told(self):
        self.job(SWEEP)
        for words, why in ((("--gpus", "4y24GB"), "--gpus: '4y24GB'"),
                           (("--gpus", "0"), "needs a GPU, the planned machine (no GPU) has none\n"),
                           (("--gpus", "24GB", "--cpus", "0"), "needs 1 CPU, the planned machine (24GB, 0 CPUs) has 0\n")):
            with self.subTest(words):
                self.assertIn(why, self.plan(*words, expect=2).stderr)

    def test_without_gpus_says_how_to_plan_for_some(self):
        self.job(SWEEP.replace("gpu-memory: 10GB", "gpus: 4"))
        refused = self.plan().stderr
        if "this machine has none" in refused:
            self.assertTrue(refused.endswith("trainyard: plan for a machine with GPUs: 'trainyard plan job.yaml --gpus 4x24GB'\n"), refused)
        self.plan("--gpus", "4x24GB", expect=0)
        self.assertNotIn("plan for a machine", self.plan("--gpus", "0", expect=2).stderr)

    TEACHES = ("--set", "scheduler.interval=100ms", "--set", "period.trained-least=1ms")

    def live_until_sampled(self, run, yard):
        """Lets its one task end when its memory has been sampled: else nothing is learned of it."""
        self.until_file(f"{run}/journal.db")
        self.until("a sample of the task", lambda: [row["memory_now_bytes"] > 0 for row in self.status(run)["running"]] == [True])
        self.write("go", "")
        self.end_of(yard, expect=0)

    def test_a_command_teaches_the_next_one_of_its_name_and_is_named_by_its_run(self):
        self.write("commands", "until test -e go; do sleep 0.01; done\n")
        yard = self.start("run", "--name", "fit", "--cpus", "0", "--each-line", "commands", *self.TEACHES)
        self.live_until_sampled("runs/fit", yard)
        kept = json.loads(self.text("runs/.trainyard/fit.learned.json"))
        self.assertEqual([each["run"] for each in kept["sources"]], ["fit"])
        again = ("run", "--name", "fit", "--cpus", "0", "--each-line", "commands", "--dry-run")
        for words in (("run", "--resume", "runs/fit", "--dry-run"), again):
            self.assertIn("as learned from fit of ", self.trainyard(*words, expect=0).stdout)
        shown = self.trainyard("learned", "fit", expect=0).stdout
        self.assertTrue(shown.startswith("learned estimates of runs/fit/trainyard.job.yaml, kept in runs/.trainyard/fit.learned.json\n\n"
                                         "fit: 1 task\n"), shown)
        # The name of the job, by which its estimates are found, is in this file.
        job_file = self.text("runs/fit/trainyard.job.yaml")
        self.write("runs/fit/trainyard.job.yaml", "name: 'fit\n")
        self.assertRegex(self.trainyard("learned", "forget", "fit", expect=2).stderr,
                         r"runs/fit/trainyard\.job\.yaml:1:7: .* quote is not closed; nothing was deleted\n")
        (self.directory / "runs/fit/trainyard.job.yaml").unlink()
        self.assertIn("runs/fit/trainyard.job.yaml: file not found; nothing was deleted\n",
                      self.trainyard("learned", "forget", "fit", expect=2).stderr)
        self.write("runs/fit/trainyard.job.yaml", job_file)
        self.assertEqual(self.trainyard("learned", "forget", "fit", expect=0).stdout,
                         "removed the learned estimates of 1 task of runs/fit/trainyard.job.yaml\n")
        self.assertIn("none yet", self.trainyard("learned", "fit", expect=0).stdout)

    def test_a_name_forgets_nothing_that_a_command_of_another_directory_taught(self):
        self.write("commands", "until test -e go; do sleep 0.01; done\n")
        yard = self.start("run", "--name", "fit", "--cpus", "0", "--each-line", "commands", *self.TEACHES)
        self.live_until_sampled("runs/fit", yard)
        other = self.directory / "other"
        other.mkdir()
        self.assertEqual(self.trainyard("learned", "forget", "fit", expect=2, cwd=other).stderr,
                         f"trainyard: 'fit' is run 1 ('{self.directory.resolve()}/runs/fit'), and no run of this directory has this "
                         "name; type 1 instead of 'fit'\n")
        self.assertRegex(self.trainyard("learned", "forget", "1", expect=0, cwd=other).stdout,
                         r"^removed the learned estimates of 1 task of .*runs/fit/trainyard\.job\.yaml\n$")

    def test_a_run_teaches_the_next(self):
        self.job("""
name: j
groups:
  - name: g
    cpus: 0
    tasks: [{id: a, command: "until test -e go; do sleep 0.01; done"}]
""")
        yard = self.start("run", "job.yaml", "--run-dir", "first", *self.TEACHES)
        self.live_until_sampled("first", yard)
        kept = json.loads(self.text(".trainyard/job.yaml.learned.json"))["groups"]["g"]["a"]
        self.assertGreater(kept["train_ms"], 0)
        self.assertGreater(kept["memory"], 0)
        said = json.loads(self.plan("--json", expect=0).stdout)
        (note,) = said["notes"]
        self.assertRegex(note, r"^group 'g': memory .*, duration [\d.:]+( s)?, as learned from first of \d{4}-\d\d-\d\d$")
        self.assertGreaterEqual(said["runs"][0]["makespan_ms"], kept["train_ms"])
        shown = json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)["tasks"]
        self.assertLess(shown[0]["memory_bytes"], 100_000_000)

    def test_runs_of_a_moment_leave_nothing(self):
        self.job("name: j\ngroups: [{name: g, tasks: [{command: 'true'}]}]\n")
        self.trainyard("run", "job.yaml", "--set", "period.trained-least=1h", expect=0)
        self.assertFalse((self.directory / ".trainyard").exists())
