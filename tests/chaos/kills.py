"""The run, its keeper, its guard and its helpers are killed at random moments, alone or together; the run is resumed until all has finished."""
import contextlib
import os
import signal

from scenario import Scenario, pause
from yard import children_of, name_of


class Kills(Scenario):
    seeds = 120

    def play(self):
        self.task_job(30)
        for _ in range(4):
            yard = self.execute(*self.resumed_words())
            if not self.kill_at_some_moment(yard):
                break
        self.resume_to_the_end()

    def parts(self, yard):
        """The processes that belong to the run and are no tasks."""
        guards = [child for child in children_of(yard.pid) if name_of(child) == "yard-guard"]
        keepers = [child for guard in guards for child in children_of(guard) if name_of(child) == "trainyard-keep"]
        return {"yard": [yard.pid], "guard": guards, "keeper": keepers, "helper": [child for child in children_of(yard.pid) if child not in guards]}

    def kill_at_some_moment(self, yard):
        """Returns whether the run is to be resumed."""
        if self.chance.random() < 0.3:
            pause(self.chance.uniform(0, 0.3))
        else:
            self.until_ended(yard, self.chance.randrange(12))
            pause(self.chance.choice((0, 0.02, 0.3)) * self.chance.random())
        who = self.chance.choice(("yard", "keeper", "guard", "helper", "yard keeper", "yard guard", "guard keeper", "yard guard keeper")).split()
        victims = [pid for name, pids in self.parts(yard).items() if name in who for pid in pids]
        # An end of the last milliseconds, which nobody has noted, dies with the keeper and the yard.
        last_ends_die = {"yard", "keeper"} <= set(who)
        if not last_ends_die:
            self.remember_exited()
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code = yard.wait(120)
        if last_ends_die:
            self.remember_finished()
        if not {"guard", "keeper"} <= set(who):
            self.count_left()
        self.judge(code, self.text("output"), killed="yard" in who)
        self.count_again(f"{' '.join(who)} killed")
        return code != 0
