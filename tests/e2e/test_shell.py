"""Commands that are texts run in bash, with pipefail where they have a pipe."""
import json
import unittest

from yard import YardTest, own_mounts


def without_bash():
    return own_mounts("sh", "-c", 'mount --bind /dev/null "$(readlink -f /bin/bash)" && exec "$@"', "sh")


class Shell(YardTest):
    def tasks(self, commands, expect=0):
        """Runs a task for each command, by its id; returns the tasks as `status` has them."""
        self.job("groups: [{name: g, tasks: %s}]" % json.dumps([{"id": name, "cpus": 0, "command": text} for name, text in commands.items()]))
        self.trainyard("run", "job.yaml", expect=expect)
        return {task["id"]: task for task in self.status()["tasks"]}

    def test_is_bash(self):
        self.tasks({"both": "echo trained &> {task_dir}/log", "test": "[[ abc == a* ]] && echo yes > {task_dir}/log",
                    "array": "a=({1..3}); echo ${a[2]} > {task_dir}/log", "process": "cat <(echo hi) > {task_dir}/log"})
        self.assertEqual({name: self.text(f"runs/job/g/{name}/log") for name in ("both", "test", "array", "process")},
                         {"both": "trained\n", "test": "yes\n", "array": "3\n", "process": "hi\n"})

    def test_fails_with_any_command_of_a_pipe(self):
        tasks = self.tasks({"fails": "sh -c 'exit 3' 2>&1 | tee {task_dir}/out", "works": "echo x | tee {task_dir}/out"}, expect=1)
        self.assertEqual({name: (task["word"], task["exit_code"]) for name, task in tasks.items()},
                         {"fails": ("EXIT 3", 3), "works": ("FINISHED", None)})

    def test_takes_a_pipe_that_its_last_command_has_cut_for_a_success(self):
        tasks = self.tasks({"first": "yes | head -n 1 > {task_dir}/out", "sorted": "seq 100000 | sort -r | head -n 1 > {task_dir}/out"})
        self.assertEqual([task["word"] for task in tasks.values()], ["FINISHED", "FINISHED"])
        self.assertEqual(self.text("runs/job/g/first/out"), "y\n")

    def test_is_refused_where_its_last_command_would_be_stopped_at_once(self):
        self.job("groups: [{name: g, tasks: [{id: a, command: 'train > log 2>&1 &'}]}]")
        done = self.trainyard("run", "job.yaml", expect=2)
        self.assertRegex(done.stderr, r"job.yaml:1:\d+: group 'g': task 'a': command: the last command runs in the background, "
                                      r"so the task would end at once and stop it; remove '&' or 'coproc', or end with 'wait \$!'")
        self.assertFalse((self.directory / "runs").exists())

    def test_is_refused_where_there_is_no_bash_and_a_list_is_not(self):
        without = without_bash()
        self.job("groups: [{name: g, tasks: [{id: a, cpus: 0, command: train}]}]")
        done = self.trainyard("run", "job.yaml", expect=2, prefix=without)
        self.assertEqual((done.stdout, done.stderr),
                         ("", "trainyard: job.yaml:1:54: group 'g': task 'a': command: a text needs bash, and '/bin/bash' was not found; install bash, set 'shell: sh', or "
                              "write the command as a list, as in [sh, -c, 'train \"$1\"', sh, \"{lr}\"]\n"))
        self.assertFalse((self.directory / "runs").exists())
        self.job("groups: [{name: g, tasks: [{id: a, cpus: 0, memory: 10MB, command: [echo, trained]}]}]")
        self.trainyard("run", "job.yaml", expect=0, prefix=without)
        self.assertEqual(self.text("runs/job/g/a/stdout.log"), "trained\n")

    def test_runs_in_sh_where_there_is_no_bash(self):
        self.job("groups: [{name: g, shell: sh, tasks: [{id: a, cpus: 0, memory: 10MB, command: 'echo trained | cat'}]}]")
        self.trainyard("run", "job.yaml", expect=0, prefix=without_bash())
        self.assertEqual(self.text("runs/job/g/a/stdout.log"), "trained\n")

    def test_warns_of_a_condition_that_a_cut_pipe_decides(self):
        self.job("groups: [{name: g, tasks: [{id: a, command: 'if sort f | grep -q x; then train; fi'}]}]")
        done = self.trainyard("run", "job.yaml", "--dry-run", expect=0)
        self.assertIn("group 'g': task 1: a pipe into 'head', 'grep -q', 'grep -m' or 'sed q' whose status is used may fail with 141 (SIGPIPE)", done.stdout + done.stderr)

    def test_takes_only_plain_values_where_bash_evaluates_them(self):
        self.job("groups: [{name: g, matrix: {v: ['x[$(touch HIT)]']}, tasks: [{id: a, command: 'n={v}; echo $((n))'}]}]")
        done = self.trainyard("run", "job.yaml", expect=2)
        self.assertIn("the value 'x[$(touch HIT)]' of '{v}' must be plain", done.stderr)
        self.job("groups: [{name: g, tasks: [{id: a, command: [sh, -c, 'echo {task_id}']}]}]")
        self.assertIn("'{task_id}' cannot be used in the text that 'sh -c' reads", self.trainyard("run", "job.yaml", expect=2).stderr)
        self.assertEqual(list(self.directory.glob("**/HIT")), [])


if __name__ == "__main__":
    unittest.main()
