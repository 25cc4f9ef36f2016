"""The pages for people who have a question, and for those who come from another tool: every block is tried as it
stands there. Where the other tool is a package of Debian, its example is run with it, and has to come to the same.
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

from pages import DOCS, ROOT, TRIED, blocks, guides
from test_blocks import BlockTest, tried, tries
from yard import PATIENCE_S, json

FAKE = pathlib.Path(os.environ.get("TRAINYARD_FAKE_NVML_DIR", "."))
INSTALL, GPUS, WAITING, COOKBOOK, SECURITY = (
    DOCS / f"{name}.md" for name in ("install", "gpus", "waiting", "cookbook", "security"))
FEDFLOW, DI_ENGINE, NVFLARE, PARALLEL, SPOOLER, GFLOW, SLURM, RAY, WANDB, HYDRA = (
    DOCS / "coming-from" / f"{name}.md" for name in
    ("fedflow", "di-engine", "nvflare", "gnu-parallel", "task-spooler", "gflow", "slurm", "ray", "wandb", "hydra"))
# Leaves its arguments as its result, a line of them in `ran`, and an accuracy.
TRAIN = """
import json, os, sys
words = sys.argv[1:]
given = dict(zip([word.lstrip("-") for word in words[::2]], words[1::2])) if len(words) % 2 == 0 else {}
with open("ran", "a") as file:
    print(" ".join(words), file=file)
if "TRAINYARD_RESULT" in os.environ:
    json.dump({"acc": 0.5, "given": " ".join(words)}, open(os.environ["TRAINYARD_RESULT"], "w"))
"""


class GuideTest(BlockTest):
    def setUp(self):
        super().setUp()
        # A busy machine must not hold the tasks up, and a small one has room for all.
        self.write("trainyard.yaml", "{utilization-limit.cpu: 100%, scheduler.default-memory: 10MB}\n")
        self.write("train.py", TRAIN)

    def commands(self):
        """The commands that have run since the last call, sorted."""
        ran = sorted(self.text("ran").splitlines())
        (self.directory / "ran").unlink()
        return ran

    def has_gpus(self, count):
        cards = [{"uuid": f"GPU-{n}", "name": "card", "pci": f"00000000:0{n}:00.0", "memory": 24 * 10**9}
                 for n in range(count)]
        self.write("gpus.json", json.dumps({"devices": cards}))
        self.environment.update(LD_LIBRARY_PATH=str(FAKE), TRAINYARD_FAKE_NVML=str(self.directory / "gpus.json"))

    def run_block(self, page, number, name="sweep.yaml", changed=lambda text: text):
        """Runs a job of a page to a good end: {group/id: word}."""
        self.write(name, changed(blocks(page, "yaml")[number]))
        self.trainyard("run", name, expect=0)
        words = self.words(f"runs/{name.removesuffix('.yaml')}")
        self.assertEqual(set(words.values()), {"FINISHED"})
        return words


class Guides(GuideTest):
    @tries(INSTALL, "console", 0)
    def test_what_is_there_is_seen_in_the_way_of_the_page(self):
        version, doctor = re.findall(r"^\$ (.*)$", blocks(INSTALL, "console")[0], re.M)
        self.assertRegex(self.shell(version), r"^trainyard \d+\.\d+\.\d+\n$")
        self.assertRegex(self.shell(doctor), r"^machine: \d+ CPU")

    @tries(GPUS, "yaml", 0)
    def test_three_share_a_card_beside_one_that_has_its_own_and_two_ranks(self):
        self.has_gpus(4)
        self.write("train.py", "import json, os\n"
                   "if os.environ.get('RANK', '0') == '0':\n"
                   "    json.dump({'cards': os.environ['CUDA_VISIBLE_DEVICES']}, open(os.environ['TRAINYARD_RESULT'], 'w'))\n")
        words = self.run_block(GPUS, 0)
        self.assertEqual(len(words), 11)
        cards = {f'{row["group"]}/{row["id"]}': row["result"]["cards"].split(",")
                 for row in self.status("runs/sweep")["tasks"]}
        self.assertEqual({len(has) for name, has in cards.items() if not name.startswith("parallel")}, {1})
        self.assertEqual(len(cards["parallel/parallel-1"]), 2)
        (task,) = (row for row in self.dry_run("sweep.yaml")["tasks"] if row["id"] == "seed=0")
        (card, *_) = self.dry_run("sweep.yaml")["machine"]["gpus"]
        self.assertEqual(card["memory_to_give_bytes"] // task["gpu_memory_bytes"], 3)

    def dry_run(self, name):
        return json.loads(self.trainyard("run", name, "--dry-run", "--json", "--new", expect=0).stdout)

    @tries(WAITING, "yaml", 0)
    @tries(WAITING, "console", 0)
    def test_a_run_says_why_it_waits_as_the_page_shows_it(self):
        os.mkfifo(self.directory / "gate")
        self.write("train.py", "open('gate').close()\n")
        self.write("test.py", "")
        self.write("sweep.yaml", blocks(WAITING, "yaml")[0])
        yard = self.start("run", "sweep.yaml")
        (shown,) = [text for text in blocks(WAITING, "text") if text.startswith("waiting:")]
        (line,) = re.findall(r"^\$ (.*)$", blocks(WAITING, "console")[0], re.M)
        self.until_file("runs/sweep/train/seed=0/stdout.log")
        self.until("what the page shows", lambda: shown in self.shell(line))
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)

    def test_every_cause_of_the_program_is_on_the_page_and_no_other(self):
        source = (ROOT / "src/model/reason_text.cc").read_text()
        told = re.findall(r"^\| `([\w-]+)` \|", WAITING.read_text().partition("|---|")[2], re.M)
        self.assertEqual(sorted(told), sorted(re.findall(r'\.word = "([\w-]+)"', source)))

    @tries(SECURITY, "yaml", 0)
    def test_a_value_is_never_text_of_a_program(self):
        self.run_block(SECURITY, 0)
        values = ["$(touch HIT)", "; touch HIT", "a  b"]
        self.assertEqual({(kind, value): self.text(f"runs/sweep/greet/{kind} {value}/stdout.log")
                          for kind in ("text", "list") for value in values},
                         {(kind, value): value + "\n" for kind in ("text", "list") for value in values})
        self.assertFalse(list(self.directory.rglob("HIT")))
        modes = {name: (self.directory / "runs/sweep" / name).stat().st_mode & 0o777
                 for name in ("journal.db", "greet", "reports/greet.json")}
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(modes, {"journal.db": 0o600, "greet": 0o777 & ~mask, "reports/greet.json": 0o644 & ~mask})


class Cookbook(GuideTest):
    def grid(self):
        """The grid of the page, with two seeds instead of five."""
        self.write("grid.yaml", blocks(COOKBOOK, "yaml")[0].replace("seed: 0..4", "seed: 0..1"))

    def lines(self, number):
        return [line for line in blocks(COOKBOOK, "sh")[number].splitlines() if line.strip()]

    @tries(COOKBOOK, "yaml", 0)
    @tries(COOKBOOK, "sh", 0)
    def test_a_grid_has_means_over_its_seeds(self):
        self.write("grid.yaml", blocks(COOKBOOK, "yaml")[0])
        run, means, pivot = map(self.shell, self.lines(0))
        self.assertIn("grid: 20 tasks, 20 finished", run)
        self.assertEqual(means.count("50.0 % ± 0.0\n"), 4, means)
        self.assertRegex(pivot, r"\n *1e-3 +50\.0 %.* 50\.0 %")

    @tries(COOKBOOK, "sh", 1)
    def test_a_few_are_run_first_and_then_the_others(self):
        self.grid()
        few, others = self.lines(1)
        self.shell(few)
        self.assertEqual(len(self.commands()), 4)
        self.shell(others)
        self.assertEqual(len(self.commands()), 4)

    @tries(COOKBOOK, "sh", 2)
    def test_each_line_of_a_file_is_a_command(self):
        self.write("commands.txt", "".join(f"python3 train.py --n {n} && echo 'line  {n}'\n" for n in range(1, 9)))
        self.shell(blocks(COOKBOOK, "sh")[2].replace("2GB", "10MB"))
        self.assertEqual(self.commands(), sorted(f"--n {n}" for n in range(1, 9)))
        self.assertEqual(self.text("runs/commands/commands/7/stdout.log"), "line  7\n")

    @tries(COOKBOOK, "yaml", 1)
    def test_what_folds_came_to_is_there_for_their_mean(self):
        self.run_block(COOKBOOK, 1)
        self.assertEqual(len(re.findall('"acc": 0.5', self.text("runs/sweep/mean/mean-1/all.json"))), 5)

    @tries(COOKBOOK, "yaml", 2)
    def test_what_is_trained_is_evaluated_after_it(self):
        self.write("fetch.sh", "#!/bin/sh\ntouch data\n", mode=0o755)
        self.write("train.py", "import sys\nopen('data').close()\nopen(sys.argv[4], 'w').write(sys.argv[2])\n")
        self.write("evaluate.py", "import sys\nprint(open(sys.argv[1]).read())\n")
        self.run_block(COOKBOOK, 2)
        for rate in ("1e-3", "1e-2"):
            self.assertEqual(self.text(f"runs/sweep/evaluate/lr={rate}/stdout.log"), rate + "\n")

    @tries(COOKBOOK, "yaml", 3)
    @tries(COOKBOOK, "python", 0)
    def test_long_training_is_saved_at_its_signal_and_goes_on_in_the_next_attempt(self):
        (text,) = blocks(COOKBOOK, "python")
        epoch = 'state["epoch"] += 1'
        self.assertIn(epoch, text)
        # In its first attempt the third epoch lasts until the signal comes, which is soon here.
        waits = ("while len(ended) == 0 and state['epoch'] == 3 and os.environ['TRAINYARD_ATTEMPT'] == '1': "
                 "__import__('time').sleep(0.01)")
        self.write("long.py", text.replace(epoch, f"{epoch}\n    {waits}"))
        self.run_block(COOKBOOK, 3, changed=lambda job: job.replace("12h", "32s").replace("@120", "@30"))
        (task,) = self.status("runs/sweep")["tasks"]
        self.assertEqual(task["attempt"], 2)
        self.assertEqual(json.loads(self.text("runs/sweep/long/long-1/checkpoint.json")), {"epoch": 100})
        self.assertIn("saved, and not done", self.text("runs/sweep/long/long-1/stderr.log"))

    @tries(COOKBOOK, "yaml", 4)
    def test_a_request_comes_from_the_matrix(self):
        tasks = self.shown(blocks(COOKBOOK, "yaml")[4])
        self.assertEqual({id: task["memory_bytes"] for id, task in tasks.items()},
                         {f"{model}-{seed}": gb * 10**9 for model, gb in (("small", 1), ("large", 6)) for seed in range(5)})

    @tries(COOKBOOK, "yaml", 5)
    def test_a_search_that_grows_draws_only_what_is_new(self):
        self.run_block(COOKBOOK, 5, changed=lambda job: job.replace("1..50", "1..5"))
        self.assertEqual(len(self.commands()), 5)
        self.write("sweep.yaml", blocks(COOKBOOK, "yaml")[5].replace("1..50", "1..8"))
        self.trainyard("run", "sweep.yaml", "--resume", expect=0)
        self.assertEqual(self.commands(), sorted(f"--draw {n}" for n in range(6, 9)))

    @tries(COOKBOOK, "yaml", 6)
    def test_losses_of_others_code_are_in_the_table(self):
        self.write("theirs.py", "import sys\nprint('epoch 3 loss: 0.31')\nprint('epoch 4 loss:', sys.argv[2])\n")
        self.run_block(COOKBOOK, 6)
        table = self.trainyard("results", "--csv", expect=0).stdout.splitlines()
        self.assertEqual([(row.split(",")[0], row.split(",")[-1]) for row in table],
                         [("lr", "loss"), ("1e-3", "0.001"), ("1e-2", "0.01")])

    @tries(COOKBOOK, "sh", 3)
    def test_more_is_added_and_some_is_ended_while_it_runs(self):
        self.write("train.py", "open('gate').close()\n")
        os.mkfifo(self.directory / "gate")
        self.grid()
        self.write("more.yaml", "groups: [{name: more, tasks: [{command: 'true', cpus: 0}]}]\n")
        yard = self.start("run", "grid.yaml")
        self.until_file("runs/grid/grid/lr=1e-3,batch=32,seed=0/stdout.log")
        submit, kill = self.lines(3)
        self.assertIn("submission 2: 1 task in 1 group", self.shell(submit))
        self.assertEqual(len(re.findall("was killed|will not start", self.shell(kill))), 4)
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=1)
        # Tasks that had begun are ended; on a small machine none had.
        words = self.words("runs/grid")
        self.assertLessEqual({word for task, word in words.items() if "lr=1e-2" in task}, {"KILLED", "SKIPPED"})
        self.assertEqual({word for task, word in words.items() if "lr=1e-2" not in task}, {"FINISHED"})

    @tries(COOKBOOK, "sh", 4, 5)
    def test_a_nightly_job_leaves_its_table(self):
        self.grid()
        self.shell(blocks(COOKBOOK, "sh")[4])
        self.assertEqual(len(json.loads(self.text("run.json"))["tasks"]), 8)
        self.assertEqual(len(re.findall(r"^\| 1e-[32] \|", self.text("results.md"), re.M)), 8)
        said = self.shell(blocks(COOKBOOK, "sh")[5].replace("16GB", "1GB"))
        self.assertEqual(said.count("8 tasks, 8 finished"), 2)


    @tries(COOKBOOK, "yaml", 7)
    def test_rounds_end_when_they_are_good_enough(self):
        words = self.run_block(COOKBOOK, 7, changed=lambda job: job.replace("acc >= 0.97", "acc < 1"))
        self.assertEqual(sorted(words), [*(f"clients.0/client={client}" for client in range(5)), "server.0/server-1"])
        self.write("sweep.yaml", blocks(COOKBOOK, "yaml")[7].replace("repeat: 20", "repeat: 2"))
        self.trainyard("run", "sweep.yaml", "--resume", expect=0)
        directory = str(self.directory / "runs/sweep/server.0/server-1")
        self.assertEqual([directory in line for line in self.commands() if "--from" in line].count(True), 5)

    @tries(COOKBOOK, "yaml", 8)
    def test_a_report_is_made_whatever_became_of_the_training(self):
        for name, script in (("train", '[ "$2" != 3 ]'), ("report", "touch reported"), ("send-alarm", "touch alarmed")):
            self.write(name, f"#!/bin/sh\n{script}\n", mode=0o755)
        self.write("sweep.yaml", blocks(COOKBOOK, "yaml")[8])
        self.trainyard("run", "sweep.yaml", expect=1)
        self.assertTrue((self.directory / "reported").exists() and (self.directory / "alarmed").exists())
        self.write("train", "#!/bin/sh\n", mode=0o755)
        self.trainyard("run", "sweep.yaml", "--new", expect=0)
        self.assertEqual(self.words("runs/sweep-2")["alarm/alarm-1"], "NOT_NEEDED")

    @tries(COOKBOOK, "yaml", 9)
    def test_the_best_tasks_keep_their_checkpoints(self):
        self.write("train.py", "import json, os, sys\nlr, seed, out = sys.argv[2], sys.argv[4], sys.argv[6]\n"
                   "open(out + '/model.pt', 'w').write(lr)\n"
                   "json.dump({'acc': int(seed) / 10 + float(lr)}, open(os.environ['TRAINYARD_RESULT'], 'w'))\n")
        self.write("eval.py", "import sys\nopen(sys.argv[1]).read()\n")
        self.run_block(COOKBOOK, 9)
        self.assertEqual(sorted(path.parent.name for path in self.directory.glob("runs/sweep/train/*/model.pt")),
                         ["lr=1e-2,seed=3", "lr=1e-2,seed=4", "lr=1e-3,seed=4"])


class ComingFrom(GuideTest):
    @tries(PARALLEL, "sh", 0)
    @tries(PARALLEL, "yaml", 0)
    def test_gnu_parallel_runs_the_same_commands(self):
        self.shell(blocks(PARALLEL, "sh")[0])
        theirs = self.commands()
        self.run_block(PARALLEL, 0, changed=lambda job: job.replace("2GB", "20MB"))
        self.assertEqual(self.commands(), theirs)
        self.assertEqual(len(theirs), 6)

    @tries(SPOOLER, "sh", 0)
    @tries(SPOOLER, "yaml", 0)
    def test_task_spooler_runs_the_same_commands(self):
        self.environment.update(TS_SOCKET=str(self.sockets / "tsp"), TMPDIR=str(self.directory))
        try:
            self.shell(blocks(SPOOLER, "sh")[0])
            self.shell("for job in 0 1 2 3; do tsp -w $job; done")
        finally:
            self.shell("tsp -K")
        theirs = self.commands()
        self.assertEqual(set(self.run_block(SPOOLER, 0, "seeds.yaml")), {f"seeds/seed-{n}" for n in range(4)})
        self.assertEqual(self.commands(), theirs)
        self.assertEqual(len(theirs), 4)

    @tries(SPOOLER, "sh", 1)
    def test_what_task_spooler_would_queue_is_queued(self):
        self.assertEqual(self.shell(blocks(SPOOLER, "sh")[1]), "1\n")
        self.trainyard("wait", "1", expect=0)
        self.assertEqual(self.commands(), [f"--seed {seed}" for seed in range(4)])
        self.shell("trainyard down --now")

    @tries(SLURM, "yaml", 0, 1)
    def test_slurm_runs_the_same_commands(self):
        (script,) = blocks(SLURM, "bash")
        # Its nodes are small here, and its batch does not wait for us. A wait in sbatch polls every ten seconds.
        self.write("array.sh", script.replace("16G", "100M"))
        self.write("batch.sh", "sbatch array.sh; while squeue -h | grep -q .; do sleep 0.1; done\n")
        done = subprocess.run([sys.executable, ROOT / "tests/slurm.py", "sh", "-e", "batch.sh"], cwd=self.directory,
                              env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        theirs = self.commands()
        self.assertEqual(len(theirs), 10)
        smaller = {"changed": lambda job: job.replace("16G", "20M")}
        self.run_block(SLURM, 0, **smaller)
        self.assertEqual(self.commands(), theirs)
        self.run_block(SLURM, 1, "as-it-is.yaml", **smaller)
        self.assertEqual(self.commands(), theirs)

    @tries(GFLOW, "yaml", 0)
    def test_what_gflow_would_run_is_run(self):
        (line,) = [text for text in blocks(GFLOW, "text") if text.startswith("gbatch")]
        given = {name: values.split(",") for name, values in re.findall(r"--param (\w+)=(\S+)", line)}
        self.write("sweep.yaml", blocks(GFLOW, "yaml")[0])
        tasks = json.loads(self.trainyard("run", "sweep.yaml", "--dry-run", "--json", expect=0).stdout)["tasks"]
        template = line[line.index("python3 train.py"):].split()
        self.assertEqual({task["id"]: task["command"] for task in tasks},
                         {f"lr{lr}_bs{bs}": [word.format(lr=lr, bs=bs) for word in template]
                          for lr in given["lr"] for bs in given["bs"]})
        self.assertEqual({(task["gpus"], task["time_limit_ms"]) for task in tasks}, {(1, 2 * 3_600_000)})

    @tries(GFLOW, "sh", 0)
    def test_what_gflow_would_submit_is_submitted(self):
        self.has_gpus(1)
        self.assertEqual(self.shell(blocks(GFLOW, "sh")[0]), "1\n")
        shown = self.trainyard("run", "runs/sweep/trainyard.job.yaml", "--dry-run", "--json", expect=0).stdout
        self.assertEqual({" ".join(task["command"]) for task in json.loads(shown)["tasks"]},
                         {f"python3 train.py --lr {lr} --batch-size {bs}" for lr in ("0.001", "0.01") for bs in (32, 64)})
        self.shell("trainyard down --now")

    @tries(RAY, "yaml", 0)
    @tries(RAY, "python", 0)
    @tries(RAY, "sh", 0)
    def test_a_search_of_ray_finds_its_least(self):
        self.write("search.yaml", blocks(RAY, "yaml")[0].replace("200MB", "20MB"))
        self.write("objective.py", blocks(RAY, "python")[0])
        (script,) = blocks(RAY, "sh")
        said = self.shell(script)
        (best,) = re.findall(r'ends with "best: (.*)"', script)
        self.assertIn(f"\nbest: {best}\n", said)
        self.assertRegex(said, r"\n +a +b .*\n *0\.001 +1 ")

    def shown_commands(self, job):
        """The commands of a job as a dry run shows them, sorted."""
        self.write("job.yaml", job)
        shown = json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)
        return sorted(" ".join(task["command"]) for task in shown["tasks"])

    @tries(WANDB, "yaml", 0)
    def test_what_a_grid_of_wandb_would_run_is_run(self):
        (sweep,) = blocks(WANDB, "text")
        grid = {name: values.split(", ") for name, values in re.findall(r"(\w+): \{values: \[(.*)\]\}", sweep)}
        rates, sizes = grid.values()
        self.assertEqual(self.shown_commands(blocks(WANDB, "yaml")[0]),
                         sorted(f"python3 train.py --learning_rate={rate} --batch_size={size}" for rate in rates for size in sizes))

    @tries(HYDRA, "yaml", 0)
    def test_what_a_multirun_of_hydra_would_run_is_run(self):
        (line,) = blocks(HYDRA, "text")
        given = {name: values.split(",") for name, values in re.findall(r"(\w+)=(\S+)", line)}
        self.assertEqual(self.shown_commands(blocks(HYDRA, "yaml")[0]),
                         sorted(f"python3 train.py lr={lr} seed={seed} hydra.run.dir=${{oc.env:TRAINYARD_TASK_DIR}}"
                                for lr in given["lr"] for seed in given["seed"]))

    @tries(DI_ENGINE, "yaml", 0)
    def test_ding_runs_each_seed_in_a_directory_of_its_own(self):
        self.write("cartpole_dqn_config.py", "")
        self.write("bin/ding", '#!/bin/sh\n[ -e "$4" ] && echo "$@" > ran\n', mode=0o755)
        self.run_block(DI_ENGINE, 0, "cartpole.yaml", changed=lambda job: job.replace("1GB", "10MB"))
        config = self.directory / "cartpole_dqn_config.py"
        for seed in range(5):
            self.assertEqual(self.text(f"runs/cartpole/cartpole/seed={seed}/ran"), f"-m serial -c {config} -s {seed}\n")

    def program(self, page):
        self.write("program.py", blocks(page, "python")[0])
        return self.shell("/usr/bin/python3 program.py")

    @tries(NVFLARE, "python", 0)
    def test_three_rounds_of_two_sites_add_three(self):
        self.assertEqual(self.program(NVFLARE), "[[ 4.  5.  6.]\n [ 7.  8.  9.]\n [10. 11. 12.]]\n")
        self.assertEqual(len(self.words("runs/hello-numpy")), 6)

    @tries(FEDFLOW, "python", 0)
    def test_the_tasks_of_fedflow_run_in_a_yard(self):
        self.assertEqual(self.program(FEDFLOW), "[0.95, 0.95, 0.95]\n" * 2)


class Blocks(unittest.TestCase):
    def test_are_all_tried_or_say_why_not(self):
        there = {(page, language, number) for page in guides() for language in TRIED
                 for number in range(len(blocks(page, language)))}
        self.assertEqual({block for block in tried if block[0] in guides()}, there)
