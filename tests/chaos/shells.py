"""Ten shells give orders to one run at the same time, some of which are killed meanwhile: each order that was confirmed holds."""
import concurrent.futures
import random
import signal
import subprocess

from scenario import LIES, Scenario, pause


class Shells(Scenario):
    seeds = 12

    def play(self):
        self.task_job(60, longest=3, more=self.gate())
        self.killed, self.unsure = set(), set()
        yard = self.execute("job.yaml", "--run-dir", self.run_dir)
        self.until("the run", self.notes)
        with concurrent.futures.ThreadPoolExecutor(10) as shells:
            list(shells.map(self.shell, range(10)))
        self.trainyard("release", self.run_dir)
        self.open_gate()
        self.judge(yard.wait(120), self.text("output"), may_fail=self.results)
        self.remember_finished()
        kept = (self.killed - self.unsure) & set(self.finished)
        self.count(LIES, f"kill was confirmed, and the task has finished: {kept}", len(kept))
        self.count_left()
        self.resume_to_the_end()

    def shell(self, number):
        """Each has tasks of its own, so that the last order to a task is known."""
        own, chance = [f"t{task}" for task in range(number, 60, 10)], random.Random(f"{self.seed} {number}")
        for _ in range(12):
            task = chance.choice(own)
            order = chance.choice(("status", "results", "logs", "kill", "kill", "hold", "release", "retry", "run", "--resume"))
            words = {"run": ("run", "job.yaml", "--run-dir", self.run_dir), "--resume": ("run", "--resume", self.run_dir)}.get(
                order, (order, f"{self.run_dir}/{task}"))
            process = subprocess.Popen(self.command(*words), cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, env=self.environment)
            if chance.random() < 0.2:
                pause(chance.uniform(0, 0.1))
                process.send_signal(chance.choice((signal.SIGINT, signal.SIGKILL)))
                if order in ("kill", "retry"):
                    self.unsure.add(task)
            said = process.communicate(timeout=120)[0]
            if order == "kill" and process.returncode == 0:
                self.killed.add(task)
            elif order == "retry":
                (self.killed.discard if process.returncode == 0 else self.unsure.add)(task)
            if process.returncode not in (0, 1, 2, 75, 130, -signal.SIGINT, -signal.SIGKILL):
                self.count(LIES, f"{words}: exit code {process.returncode}\n{said}")
