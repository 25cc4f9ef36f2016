"""Tasks that request a part of the disk: it is promised once, and a request beyond the disk's size is an error."""
import os
import shutil
import unittest

from yard import YardTest

JOB = """
name: job
config: {{scheduler.interval: 100ms}}
groups:
  - name: train
    cpus: 0
    memory: 10MB
    disk: {disk}
    matrix: {{i: 0..2}}
    tasks: [{{command: ': > began.{{i}}; cat go.{{i}}'}}]
  - name: other
    needs: []
    cpus: 0
    memory: 10MB
    tasks: [{{id: other, command: ': > began.other'}}]
"""


class Disk(YardTest):
    def test_is_promised_once_and_the_others_wait_and_say_why(self):
        for i in range(3):
            os.mkfifo(self.directory / f"go.{i}")
        # Only one of three has room at a time, whatever else comes and goes on this disk.
        part = shutil.disk_usage(self.directory).free * 6 // 10
        self.job(JOB.format(disk=f"{part}B"))
        run = self.start("run", "job.yaml")
        for i in range(3):
            self.until_file(f"began.{i}")
            if i == 0:
                self.until_file("began.other")
            self.assertFalse((self.directory / f"began.{i + 1}").exists())
            if i < 2:
                waiting = self.until("the others to wait", lambda: self.status()["waiting"])
                self.assertEqual([(each["group"], each["tasks"], each["cause"]) for each in waiting], [("train", 2 - i, "disk")])
                self.assertRegex(waiting[0]["reason"], r"^needs [0-9.]+ [GTM]B of disk, [0-9.]+ [GTM]B free, "
                                                       r"[0-9.]+ [GTM]B of it reserved by 1 task$")
            (self.directory / f"go.{i}").write_text("")
        self.end_of(run, expect=0)
        self.assertEqual({row["word"] for row in self.status()["tasks"]}, {"FINISHED"})

    def test_more_than_there_is_is_refused_before_anything_runs(self):
        self.job(JOB.format(disk="9000000TB"))
        words = "group 'train': task 'i=0' can never run here: needs 9000000 TB of disk, the disk of the run directory has "
        for command in ("plan", "run", "submit"):
            with self.subTest(command):
                self.assertIn(f"job.yaml:8:11: {words}", self.trainyard(command, "job.yaml", expect=2).stderr)
        self.assertFalse((self.directory / "runs").exists())
        self.assertIn(words, self.trainyard("run", "job.yaml", "--dry-run", expect=0).stdout)
        self.trainyard("plan", "job.yaml", "--machines", "1x(1 CPU)", expect=0)
        self.job(JOB.format(disk="1MB"))
        self.trainyard("plan", "job.yaml", expect=0)

    def test_a_task_says_it_on_the_command_line_too(self):
        shown = self.trainyard("run", "--disk", "20GB", "--dry-run", "--", "true", expect=0).stdout
        self.assertIn("20 GB of disk", shown)
        wrong = self.trainyard("run", "--disk", "20 gigs", "--", "true", expect=2)
        self.assertIn("disk: '20 gigs': unknown unit 'gigs'", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
