"""A run was killed, and bytes of its journal are flipped, cut off or gone. No command may crash, and no resume may run finished tasks again."""
import shutil

from scenario import LIES, Scenario, pause
from yard import alive, guards_of, wait_until


class Journals(Scenario):
    seeds = 40

    def play(self):
        self.task_job(16)
        yard = self.execute("job.yaml", "--run-dir", self.run_dir)
        self.until_ended(yard, self.chance.randrange(1, 14))
        pause(self.chance.uniform(0, 0.1))
        self.remember_exited()
        guards = guards_of(yard.pid)  # None if the run has ended.
        yard.kill()
        yard.wait()
        # It ends after the keeper, which may still note the ends of tasks in the run directory.
        wait_until("the guard's end", lambda: not any(map(alive, guards)))
        self.count_left()
        if self.chance.random() < 0.5:
            self.rows()  # A reader puts the journal and its write-ahead log together.
        whole, events = self.directory / "whole", self.text("events")
        shutil.copytree(self.directory / self.run_dir, whole)
        for number in range(10):
            shutil.rmtree(self.directory / self.run_dir)
            shutil.copytree(whole, self.directory / self.run_dir)
            self.write("events", events)
            self.again.clear()
            self.try_all(f"damage {number}: {self.damage()}")

    def keep_records(self):
        """Nothing can be said of the record in a damaged journal."""

    def damage(self):
        name = self.chance.choice(("journal.db", "journal.db-wal"))
        path = self.directory / self.run_dir / name
        how = self.chance.choice(("flip", "zero", "cut", "grow", "gone"))
        data = bytearray(path.read_bytes() if path.exists() else b"")
        if how == "gone" or not data:
            path.unlink(missing_ok=True)
            return f"{name} gone"
        at = self.chance.randrange(len(data))
        if how == "flip":
            for place in [at, *(self.chance.randrange(len(data)) for _ in range(self.chance.choice((0, 3, 40))))]:
                data[place] ^= 1 << self.chance.randrange(8)
        elif how == "zero":
            data[at:at + 4096] = bytes(len(data[at:at + 4096]))
        elif how == "cut":
            del data[at:]
        else:
            data += self.chance.randbytes(self.chance.randrange(1, 9000))
        path.write_bytes(data)
        return f"{name} of {len(data)} bytes: {how} at {at}"

    def try_all(self, what):
        run = self.run_dir
        for words in (("status", run), ("results", run, "--json"), ("logs", f"{run}/t0"), ("run", "--resume", run), ("status", run)):
            done = self.trainyard(*words)
            if done.returncode not in (0, 1, 2, 75):
                self.count(LIES, f"{what}: {words}: {done.returncode}\n{done.stdout}{done.stderr}")
            if words[0] == "run":
                resumed = done
        self.count_again(what)
        if resumed.returncode == 2:  # Refused, with a reason.
            self.assertIn("trainyard: ", resumed.stderr, what)
        else:
            self.judge(resumed.returncode, f"{what}\n{resumed.stderr}")
            self.count_lost()
