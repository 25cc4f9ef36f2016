"""The disk of a run is full, or has no inodes left, for moments, and the run is killed meanwhile: every task finishes, each once."""
import contextlib
import os

from scenario import Scenario, pause


class Disks(Scenario):
    seeds = 16

    def play(self):
        self.task_job(60, without_result=True)
        self.run_dir = "disk/run"
        (self.directory / "disk").mkdir()
        self.prefix = self.own_world(f"mount -t tmpfs -o size=8m,nr_inodes=4k none {self.directory}/disk")
        self.disk = f"{self.world}{self.directory}/disk"
        yard = self.execute("job.yaml", "--run-dir", self.run_dir)
        for _ in range(3):
            pause(self.chance.uniform(0.1, 1))
            with self.nothing_left():
                pause(self.chance.uniform(0.2, 3))
                self.remember_exited()
                if self.chance.random() < 0.4 and yard.poll() is None:
                    yard.kill()
                    yard.wait()
                    yard = self.execute("--resume", self.run_dir)
                    pause(self.chance.uniform(0, 2))
        if yard.wait(120) != 75:  # A yard that could not begin has said so, also when all tasks had finished.
            self.judge(yard.returncode, self.text("output"))
        self.resume_to_the_end()

    @contextlib.contextmanager
    def nothing_left(self):
        made = []
        with contextlib.suppress(OSError):
            if self.chance.random() < 0.5:
                made.append(f"{self.disk}/fill")
                with open(made[0], "wb", buffering=0) as file:
                    while file.write(bytes(4096)):
                        pass
            else:
                for number in range(5000):
                    made.append(f"{self.disk}/inode.{number}")
                    os.close(os.open(made[-1], os.O_CREAT | os.O_WRONLY))
        yield
        for path in filter(os.path.exists, made):
            os.unlink(path)

    def keep_records(self):
        """The record may have lost what came before a kill on a full disk; where it is whole, the other scenarios play it again."""
