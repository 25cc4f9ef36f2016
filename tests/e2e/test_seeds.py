"""Random numbers of tasks that are forks of one process (`preload`), with the real torch and NumPy."""
from yard import CLIENT, YardTest, json

JOB = """
name: job
groups:
  - name: g
    preload: [{modules}]
    memory: 50MB
    cpus: 1
    matrix: {{n: 0..{last}}}
    tasks: [command: /usr/bin/python3 train.py]
"""
DRAW = """
import json, os, random, sys
numpy, torch, mydata = (sys.modules.get(name) for name in ("numpy", "torch", "mydata"))
drawn = {"python": random.random(), "seed": int(os.environ["TRAINYARD_SEED"])}
if numpy: drawn["numpy"] = numpy.random.rand()
if torch: drawn["torch"] = torch.rand(1).item()
if hasattr(mydata, "draw"): drawn["own"] = mydata.draw()
json.dump(drawn, open(os.environ["TRAINYARD_RESULT"], "w"))
"""
# Stands in for the real one, which is in no package here: it keeps what it was seeded with.
TENSORFLOW = {
    "tensorflow/__init__.py": "from tensorflow.python.framework import random_seed\n"
                              "from tensorflow.python.ops import stateful_random_ops\n",
    "tensorflow/python/__init__.py": "", "tensorflow/python/framework/__init__.py": "",
    "tensorflow/python/ops/__init__.py": "",
    "tensorflow/python/framework/random_seed.py": "seed = None\ndef set_seed(value):\n    global seed\n    seed = value\n",
    "tensorflow/python/ops/stateful_random_ops.py": "class Generator: pass\n",
}


class Seeds(YardTest):
    def run_tasks(self, modules, tasks=4, mydata="", train=DRAW):
        """The results of the tasks, and what the run said."""
        (self.directory / "trainyard.py").write_bytes((CLIENT / "trainyard/client.py").read_bytes())
        self.write("mydata.py", mydata)
        self.write("train.py", train)
        self.job(JOB.format(modules=modules, last=tasks - 1))
        done = self.trainyard("run", "job.yaml", expect=0)
        return [json.loads(self.text(f"runs/job/g/n={n}/result.json")) for n in range(tasks)], done.stderr

    def test_what_frameworks_draw_is_each_tasks_own(self):
        """Also where a module leaves its seed to chance, and where a seed held only for a while. A task that sets the same
        seed draws the same numbers as the module did."""
        train = DRAW.replace("json.dump(", """
random.seed(1); numpy.random.seed(1); torch.manual_seed(1)
drawn["seeded"] = [random.random(), numpy.random.rand(), torch.rand(1).item()]
drawn["held"] = mydata.held
json.dump(""")
        results, said = self.run_tasks("torch, numpy, random, mydata", train=train, mydata="""
import random, numpy, torch
numpy.random.seed(3); numpy.random.seed(); random.seed()
held = []
state = random.getstate(); random.seed(1); held.append(random.random()); random.setstate(state)
state = numpy.random.get_state(); numpy.random.seed(1); held.append(numpy.random.rand()); numpy.random.set_state(state)
with torch.random.fork_rng(): torch.manual_seed(1); held.append(torch.rand(1).item())
""")
        for result in results:
            self.assertEqual(result["seeded"], result["held"])
        for generator in ("python", "numpy", "torch", "seed"):
            self.assertEqual(len({result[generator] for result in results}), 4, generator)
        self.assertNotIn("preload:", said)

    def test_a_seed_that_a_module_chose_is_left_and_told(self):
        results, said = self.run_tasks("mydata", mydata="""
import random, numpy, torch
torch.manual_seed(7)
with torch.random.fork_rng(): torch.manual_seed(1)
numpy.random.seed(7)
random.seed(7)
""")
        for generator in ("python", "numpy", "torch"):
            self.assertEqual(len({result[generator] for result in results}), 1, generator)
        for generator in ("random", "numpy.random", "torch"):
            note = (f"preload: mydata seeds {generator} when it is imported: all tasks begin with the same random "
                    "numbers of it\n")
            self.assertEqual(said.count(note), 1, said)
            self.assertIn(note.removeprefix("preload: "), self.text("runs/job/trainyard.preload.log"))

    def test_generators_that_modules_own_are_named(self):
        results, said = self.run_tasks("mydata", mydata="""
import random, numpy, torch
rng, mine, old = numpy.random.default_rng(), torch.Generator(), numpy.random.RandomState()
python, safe = random.Random(), random.SystemRandom()
shared = [torch.default_generator, numpy.random.mtrand._rand, random._inst]
same = rng
def draw(): return [rng.random(), old.rand(), python.random(), torch.rand(1, generator=mine).item()]
""")
        self.assertEqual(len({json.dumps(result["own"]) for result in results}), 1)
        self.assertEqual(len({result["torch"] for result in results}), 4)
        note = ("preload: generators in the same state in every task: mydata.rng (numpy.random._generator.Generator), "
                "mydata.mine (torch._C.Generator), mydata.old (numpy.random.mtrand.RandomState), mydata.python "
                "(random.Random); seed them from TRAINYARD_SEED in a function that you give to trainyard.on_fork()\n")
        self.assertEqual(said.count("preload:"), 1, said)
        self.assertIn(note, said)

    def test_what_is_given_to_on_fork_seeds_them_alike_in_every_run(self):
        module = """
import os, numpy, trainyard
rng = numpy.random.default_rng()
@trainyard.on_fork
def renew():
    global rng
    rng = numpy.random.default_rng(int(os.environ["TRAINYARD_SEED"]))
def draw(): return rng.random()
"""
        results, said = self.run_tasks("mydata", mydata=module)
        self.assertNotIn("preload:", said)
        self.assertEqual(len({result["own"] for result in results}), 4)
        (self.directory / "runs").rename(self.directory / "before")
        again, _ = self.run_tasks("mydata", mydata=module)
        for key in ("own", "seed"):
            self.assertEqual([result[key] for result in again], [result[key] for result in results])

    def test_a_function_of_on_fork_that_fails_fails_the_task(self):
        (self.directory / "trainyard.py").write_bytes((CLIENT / "trainyard/client.py").read_bytes())
        self.write("mydata.py", "import trainyard\n@trainyard.on_fork\ndef renew(): raise ValueError('no seed')\n")
        self.write("train.py", DRAW)
        self.job(JOB.format(modules="mydata", last=0))
        self.trainyard("run", "job.yaml", expect=1)
        self.assertIn("ValueError: no seed", self.text("runs/job/g/n=0/stderr.log"))
        self.assertEqual(self.words(), {"g/n=0": "EXIT 1"})
        self.assertEqual(self.status()["tasks"][0]["message"], "ValueError: no seed")

    def test_the_seed_of_tensorflow_is_each_tasks_own(self):
        for name, text in TENSORFLOW.items():
            self.write(name, text)
        draw = ("import json, os\nfrom tensorflow.python.framework import random_seed\n"
                "json.dump({'seed': random_seed.seed}, open(os.environ['TRAINYARD_RESULT'], 'w'))\n")
        results, said = self.run_tasks("tensorflow", train=draw)
        self.assertEqual(len({result["seed"] for result in results} - {None}), 4)
        self.assertNotIn("preload:", said)
        (self.directory / "runs").rename(self.directory / "before")
        results, said = self.run_tasks("mydata", train=draw, mydata="from tensorflow.python.framework.random_seed "
                                       "import set_seed\nset_seed(5)\n")
        self.assertEqual({result["seed"] for result in results}, {5})
        self.assertIn("preload: mydata seeds tensorflow when it is imported", said)
