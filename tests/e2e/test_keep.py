"""Files of tasks that are not among the best of their group: deleted when no task needs them any more, and no other file
is."""
import json
import os
import unittest

from yard import YardTest

HEAD = """
name: job
groups:
  - name: train
    cpus: 0
    memory: 10MB
    keep: {keep}
    matrix: {{i: 0..5}}
    tasks: [{{command: 'sh train.sh {{i}}'}}]
"""
# The result of each: the best are 5, 3 and 1.
TRAIN = """
cd $TRAINYARD_TASK_DIR
mkdir -p checkpoints
head -c 100000 /dev/zero > checkpoints/last.pt
echo "model $1" > model.txt
[ $1 = 4 ] && exit 0
echo "{\\"acc\\": 0.$(( $1 % 2 * 5 + $1 / 2 ))}" > $TRAINYARD_RESULT
"""
LEFT = ["result.1.json", "result.json", "stderr.log", "stdout.log"]


class Keep(YardTest):
    def sweep(self, keep="{best: 2, by: acc}", more="", train=TRAIN):
        self.write("train.sh", train)
        return self.job(HEAD.format(keep=keep) + more)

    def files(self, group="train", run="runs/job"):
        return {path.name: sorted(each.name for each in path.iterdir())
                for path in (self.directory / run / group).iterdir()}

    def kept(self, group="train"):
        """The tasks that still have what they saved."""
        return sorted(name for name, files in self.files(group).items() if "model.txt" in files)

    def test_the_best_and_those_without_a_number_keep_what_they_hold(self):
        self.sweep()
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.kept(), ["i=3", "i=4", "i=5"])
        files = self.files()
        for name in ("i=0", "i=1", "i=2"):
            self.assertEqual(files[name], LEFT)
        self.assertIn("keep: 3 of 6 tasks of 'train' were not among the best 2 by acc: 300 kB were freed\n", done.stderr)
        self.assertIn("keep: 1 of 6 tasks of 'train' reported no number 'acc', so their files stay: "
                      "train/i=4\n", done.stderr)
        self.assertNotIn("not deleted", done.stderr)
        # And all else goes on.
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual({row["word"] for row in rows.values()}, {"FINISHED"})
        self.assertEqual(rows["i=0"]["result"], {"acc": 0.0})
        table = json.loads(self.trainyard("results", "runs/job", "--sort", "-acc", "--json", expect=0).stdout)
        self.assertEqual([row["acc"] for row in table["rows"]], [0.7, 0.6, 0.5, 0.1, 0.0, None])
        self.assertEqual(self.trainyard("logs", "runs/job", "i=0", expect=0).returncode, 0)

    def test_the_dry_run_says_what_is_kept_and_until_when(self):
        self.sweep("{best: 3, by: acc}", "  - {name: report, tasks: [{command: ./report}]}\n")
        would = self.trainyard("run", "job.yaml", "--dry-run", expect=0).stdout
        self.assertIn("group train: keeps the best 3 by acc (the largest); the files of the other tasks except logs and results are deleted "
                      "when 'report' has finished\n", would)
        would = json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)
        self.assertEqual([group["keep"] for group in would["groups"]], [{"best": 3, "by": "acc", "largest": True}, None])
        self.sweep("{best: 3, by: loss}")
        would = self.trainyard("run", "job.yaml", "--dry-run", expect=0).stdout
        self.assertIn("keeps the best 3 by loss (the smallest); the files of the other tasks except logs and results are deleted as soon as "
                      "that is known\n", would)

    def test_what_a_link_leads_to_survives(self):
        self.write("data/precious.bin", "precious")
        self.write("data/file.bin", "precious, too")
        self.sweep(train=TRAIN.replace("mkdir -p", f"ln -s {self.directory}/data data; ln -s {self.directory}/data/file.bin "
                                       "linked.bin; mkdir -p"))
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.files()["i=0"], LEFT)
        self.assertEqual(self.text("data/precious.bin"), "precious")
        self.assertEqual(self.text("data/file.bin"), "precious, too")
        self.assertTrue((self.directory / "runs/job/train/i=5/data/precious.bin").exists())

    def test_what_failed_behind_it_may_still_be_tried_again(self):
        self.sweep(more="""
  - name: mean
    cpus: 0
    memory: 10MB
    tasks: [{id: all, command: 'test -e mended && cat {needs.train.dirs}/model.txt'}]
""".replace("{needs.train.dirs}/model.txt", "{run_dir}/train/*/model.txt"))
        done = self.trainyard("run", "job.yaml", expect=1)
        self.assertEqual(len(self.kept()), 6)
        self.assertIn("keep: 3 of 6 tasks of 'train' were not among the best 2 by acc; the files of 3 of them stay, "
                      "as a task that needs them has not finished\n", done.stderr)
        self.write("mended", "")
        done = self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertEqual(self.text("runs/job/mean/all/stdout.2.log").splitlines(), [f"model {i}" for i in range(6)])
        self.assertEqual(self.kept(), ["i=3", "i=4", "i=5"])
        self.assertIn("keep: 3 of 6 tasks of 'train' were not among the best 2 by acc: 300 kB were freed\n", done.stderr)

    def test_a_run_that_was_killed_goes_on_with_it(self):
        os.mkfifo(self.directory / "gate")
        self.sweep(train='[ $1 = 5 ] && cat gate\n' + TRAIN)
        yard = self.start("run", "job.yaml")
        self.until("all but one", lambda: self.trainyard("status", "runs/job").returncode == 0 and
                   sorted(self.words().values()) == ["FINISHED"] * 5 + ["RUNNING"])
        yard.kill()
        yard.wait()
        # As if it had been killed before it had deleted anything.
        for name in ("i=0", "i=2"):
            self.write(f"runs/job/train/{name}/model.txt", "again")
        again = self.start("run", "--resume", "runs/job")
        self.keep_opening_gate(again)
        _, errors = self.end_of(again, expect=0)
        self.assertEqual(self.kept(), ["i=3", "i=4", "i=5"])
        self.assertEqual(self.files()["i=0"], LEFT)
        self.assertIn("keep: 3 of 6 tasks of 'train' were not among the best 2 by acc: ", errors)
        self.assertEqual({row["word"] for row in self.status()["tasks"]}, {"FINISHED"})


if __name__ == "__main__":
    unittest.main()
