#!/usr/bin/env python3
"""The JSON Schema for editors agrees with the documentation: it takes every job file in it, and
refuses what trainyard refuses. Without python3-jsonschema and python3-yaml the test is skipped (77).
"""
import json
import pathlib
import re
import sys

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

docs = pathlib.Path(sys.argv[1])


def once(pairs):
    """A name that stands twice would quietly be what it is the second time."""
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"twice in the schema: {sorted(names)}"
    return dict(pairs)


schema = json.loads((docs / "job-file.schema.json").read_text(), object_pairs_hook=once)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)

WRONG = {
    "no groups": "name: x",
    "an unknown key": "groups: [{tasks: [{command: x}], max-paralel: 2}]",
    "an unknown key of a task": "groups: [{tasks: [{comand: x, command: y}]}]",
    "no command": "groups: [{tasks: [{id: x}]}]",
    "no tasks": "groups: [{tasks: []}]",
    "bits": "groups: [{memory: 8gb, tasks: [{command: x}]}]",
    "a bare number": "groups: [{memory: 500, tasks: [{command: x}]}]",
    "a time without a unit": "groups: [{time-limit: 5, tasks: [{command: x}]}]",
    "days without hours": "groups: [{time-limit: 1-, tasks: [{command: x}]}]",
    "days with four numbers": "groups: [{time-limit: '1-1:2:3:4', tasks: [{command: x}]}]",
    "a time of minutes or hours": "groups: [{time-limit: '1:30', tasks: [{command: x}]}]",
    "a delay of minutes or hours": "groups: [{start-after: '90:00', tasks: [{command: x}]}]",
    "a delay that is a time of day": "groups: [{start-after: 22:00, tasks: [{command: x}]}]",
    "a delay that is a time of day, in quotes": "groups: [{start-after: '06:30', tasks: [{command: x}]}]",
    "an id with a slash": "groups: [{tasks: [{id: a/b, command: x}]}]",
    "a matrix key that is no name": "groups: [{matrix: {a b: [1]}, tasks: [{command: x}]}]",
    "a matrix key that is taken": "groups: [{matrix: {task_dir: [1]}, tasks: [{command: x}]}]",
    "a matrix value that is no list": "groups: [{matrix: {a: 1}, tasks: [{command: x}]}]",
    "a variable of trainyard": "groups: [{env: {TRAINYARD_X: 1}, tasks: [{command: x}]}]",
    "an unknown setting": "config: {scheduler: {max-proces: 1}}\ngroups: [{tasks: [{command: x}]}]",
    "a command that is a mapping": "groups: [{tasks: [{command: {a: b}}]}]",
    "an address without its beginning": "notify: hooks.example.com/x\ngroups: [{tasks: [{command: x}]}]",
    "a list as the last command": "on-finish: [a, b]\ngroups: [{tasks: [{command: x}]}]",
    "a signal that nobody can catch": "groups: [{signal: KILL@10, tasks: [{command: x}]}]",
    "a mail server's security of another kind": "config: {smtp: {security: ssl}}\ngroups: [{tasks: [{command: x}]}]",
    "retries that are too many": "groups: [{retries: 255, tasks: [{command: x}]}]",
    "half a retry": "groups: [{tasks: [{command: x, retries: 2.5}]}]",
    "no rank at all": "groups: [{ranks: 0, tasks: [{command: x}]}]",
    "too many ranks": "groups: [{ranks: 4097, tasks: [{command: x}]}]",
    "no worker at all": "groups: [{workers: 0, tasks: [{command: x}]}]",
    "too many workers": "groups: [{tasks: [{command: x, workers: 1025}]}]",
    "workers of no role": "groups: [{workers: {}, tasks: [{command: x}]}]",
    "a role with a space": "groups: [{workers: {a b: 1}, tasks: [{command: x}]}]",
    "a role with the name of a node": "groups: [{workers: {node.3: 1}, tasks: [{command: x}]}]",
    "a role with a pipeline's label": "groups: [{workers: 'learner=1,async=2', tasks: [{command: x}]}]",
    "a role without a number": "groups: [{workers: 'collector,learner=1', tasks: [{command: x}]}]",
    "half a collector": "groups: [{workers: {collector: 0.5}, tasks: [{command: x}]}]",
    "a list of workers": "groups: [{workers: [collector, learner], tasks: [{command: x}]}]",
    "a number that may grow from nothing": "groups: [{gpu-memory: at least, tasks: [{command: x}]}]",
    "a number that may grow in other words": "groups: [{gpu-memory: 4GB+, tasks: [{command: x}]}]",
    "half a GPU": "groups: [{gpus: 0.5, tasks: [{command: x}]}]",
    "no word of where": "groups: [{where: {}, tasks: [{command: x}]}]",
    "where on a rack": "groups: [{where: {rack: 7}, tasks: [{command: x}]}]",
    "where without a key": "groups: [{tasks: [{command: x, where: lab1}]}]",
    "a list of machines": "groups: [{tasks: [{command: x, where: [lab1, lab2]}]}]",
    "two machines in a pattern": "groups: [{tasks: [{command: x, where: {machine: 'lab1,lab2'}}]}]",
    "a machine without its host": "machines: [{cpus: 8}]\ngroups: [{tasks: [{command: x}]}]",
    "a machine with half a word": "machines: [{ssh: lab1, cpu: 8}]\ngroups: [{tasks: [{command: x}]}]",
    "no machine": "machines: []\ngroups: [{tasks: [{command: x}]}]",
    "limits of local": "machines: [{ssh: local, cpus: 8}]\ngroups: [{tasks: [{command: x}]}]",
    "a setup of two lines": "machines: [{ssh: lab1, setup: \"a\\nb\"}]\ngroups: [{tasks: [{command: x}]}]",
    "a device of another kind": "groups: [{device: gpu, tasks: [{command: x}]}]",
    "no round at all": "groups: [{repeat: 0, groups: [{tasks: [{command: x}]}]}]",
    "too many rounds": "groups: [{repeat: 10001, groups: [{tasks: [{command: x}]}]}]",
    "an end by no result": "groups: [{repeat: 2, until: often, groups: [{tasks: [{command: x}]}]}]",
    "a repeat within a repeat": "groups: [{repeat: 2, groups: [{repeat: 2, groups: [{tasks: [{command: x}]}]}]}]",
    "a repeat with tasks": "groups: [{repeat: 2, tasks: [{command: x}]}]",
    "two that are tried first": "groups: [{try-first: 2, tasks: [{command: x}]}]",
    "none that is kept": "groups: [{keep: {best: 0, by: acc}, tasks: [{command: x}]}]",
    "the best by nothing": "groups: [{keep: {best: 1}, tasks: [{command: x}]}]",
    "the best by a sign": "groups: [{keep: {best: 1, by: '-'}, tasks: [{command: x}]}]",
    "a keep that is a number": "groups: [{keep: 3, tasks: [{command: x}]}]",
    "a fail-fast that is a number": "groups: [{fail-fast: 1, tasks: [{command: x}]}]",
}
RIGHT = {
    "every key": """
name: a
run-dir: b
try-first: 1
notify: [https://hooks.example.com/x, $NTFY]
on-finish: ./done.sh
machines: [local, {ssh: me@lab2, cpus: 7.5, memory: 32GB, gpus: [0, "1:0"], setup: . venv/bin/activate}, {ssh: lab3, gpus: none}]
config: {workdir: c, debug: false, smtp: {enable: true, security: tls}, other-users: share, scheduler: {max-process: 4, interval: 0.5}, remain-limit.memory: 1GB}
groups:
- name: g
  needs: []
  max-parallel: 2
  fail-fast: true
  try-first: 1
  keep: {best: 3, by: -reward}
  matrix: {a: 0..9, b: [1, x, null, 1e-3], c: {file: f.txt}, include: [{a: 1, z: 2}], exclude: [{b: x}]}
  preload: [torch, my.data]
  memory: "{z}GB"
  signal: USR1@120
  memory-limit: hard
  preemptible: false
  checkpoint: true
  ranks: 4096
  retries: 254
  launcher: [srun, "{command}"]
  two-phase: true
  tasks:
  - {id: "{a}", command: [x, 1], cpus: 0.5, gpus: 0, gpu-memory: 0, time-limit: 1:30:00, env: {A: 1}, working-directory: d}
  - {command: z, device: "{b}", ranks: "{a}", retries: "{a}", oom-retries: 0, gpus: "{a}"}
  - {command: y, device: "cuda:1", duration: 10m, signal: SIGUSR2@2min, memory: 1GB, launcher: mpirun, ranks: 2, two-phase: false,
     memory-limit: none, preemptible: true}
  - {command: w, workers: {collector: "{a}", learner: 1}}
  - {command: v, workers: 1024}
  - {command: u, workers: "collector=2,learner=1"}
  - {command: t, workers: "{a}"}
  - {command: s, where: {machine: "lab{a}", gpu: H100}}
  - {command: r, where: {machine: 7}}
  - {command: q, where: "gpu=H100,machine=lab*"}
  - {command: p, time-limit: 1-12, start-after: 0-22:00}
  - {command: o, time-limit: 1-12:30, start-after: "90:00:00"}
  - {command: n, time-limit: 1-12:30:00, start-after: "{a}m"}
  - {command: x, memory: at least 2GB, gpu-memory: "at least {b}"}
- repeat: 20
  until: s.result.test acc >= -0.5e1
  initial: {s: g, s.dirs: "", s.result.acc: 0}
  groups: [{name: s, tasks: [{command: "x {round} {prev.s.dirs}"}]}]
""",
}

faults = []
examples = re.findall(r"```yaml\n(.*?)```", (docs / "job-file.md").read_text(), re.S)
if len(examples) < 5:
    faults.append(f"only {len(examples)} examples in the documentation")
for text in examples + list(RIGHT.values()):
    faults += [f"refused: {error.json_path}: {error.message}\n{text}"
               for error in validator.iter_errors(yaml.safe_load(text))]
faults += [f"taken: {what}" for what, text in WRONG.items() if validator.is_valid(yaml.safe_load(text))]
print("\n".join(faults) if faults else f"{len(examples)} examples taken, {len(WRONG)} mistakes refused")
sys.exit(bool(faults))
