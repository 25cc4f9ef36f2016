"""Groups that run round after round: until what their tasks leave is good enough, through failures, kills and resumes."""
import json
import os
import re
import sqlite3
import unittest

from yard import YardTest

LOOP = """
name: job
groups:
  - name: first
    cpus: 0
    memory: 10MB
    tasks: [{id: seed, command: 'echo 0 > {task_dir}/model'}]
  - repeat: 6
    until: server.result.acc >= 0.3
    initial: {server: first}
    groups:
      - name: clients
        cpus: 0
        memory: 10MB
        matrix: {client: [0, 1]}
        tasks: [{command: 'sh client.sh {round} {client} {prev.server.dir}'}]
      - name: server
        cpus: 0
        memory: 10MB
        tasks: [{id: mean, command: 'sh server.sh {round} {needs.clients.dirs}'}]
"""
CLIENT = """
echo $(($(cat $3/model) + 1 + $2)) > $TRAINYARD_TASK_DIR/model
"""
# The mean of what the two clients have made, rounded down: one more in each round.
SERVER = """
echo $((($(cat $2/model) + $(cat $3/model)) / 2)) > $TRAINYARD_TASK_DIR/model
echo "{\\"acc\\": 0.$1, \\"model\\": $(cat $TRAINYARD_TASK_DIR/model)}" > $TRAINYARD_RESULT
"""


class Repeats(YardTest):
    def setUp(self):
        super().setUp()
        self.job(LOOP)
        self.write("client.sh", CLIENT)
        self.write("server.sh", SERVER)

    def rounds(self):
        """The words of each group by round: {"clients": [[words of round 0], ...]}."""
        groups = {}
        for name, word in self.words().items():
            group = name.partition("/")[0]
            if group != "first":
                groups.setdefault(group, []).append(word)
        return groups

    def whole(self, rounds):
        return {name: ["FINISHED"] * tasks for number in range(rounds)
                for name, tasks in ((f"clients.{number}", 2), (f"server.{number}", 1))}

    def test_end_when_until_holds(self):
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.rounds(), self.whole(4))
        self.assertIn("round 3 of at most 6: 3 tasks in 2 groups: 2 of clients.3, 1 of server.3", done.stderr)
        self.assertIn("repeat: server.result.acc >= 0.3 holds after round 3, so no further round starts", done.stderr)
        self.assertEqual([self.text(f"runs/job/server.{number}/mean/model") for number in range(4)],
                         ["1\n", "2\n", "3\n", "4\n"])
        self.assertFalse((self.directory / "runs/job/clients.4").exists())
        journal = sqlite3.connect(self.directory / "runs/job/journal.db")
        self.assertEqual(journal.execute("SELECT number, complete FROM batches").fetchall(), [(n, 1) for n in range(1, 5)])
        journal.close()
        # The round is a key of results and of tasks.
        told = self.trainyard("results", "server", "--sort", "-round", "--csv", expect=0).stdout.splitlines()
        place = told[0].split(",").index("round")
        self.assertEqual([line.split(",")[place] for line in told[1:]], ["3", "2", "1", "0"])
        mean = self.trainyard("results", "clients", "--over", "client", "--csv", expect=0).stdout
        self.assertEqual(len(mean.splitlines()), 1 + 4, mean)
        logs = self.trainyard("logs", "round=2", expect=0).stdout
        self.assertEqual(sorted(set(re.findall(r"(?:clients|server)\.\d/\S*\w", logs))),
                         ["clients.2/client=0", "clients.2/client=1", "server.2/mean"])
        self.trainyard("logs", "runs/job/clients.2/client=1", expect=0)

    def test_end_with_the_last_one_where_it_never_holds(self):
        self.job(LOOP.replace("repeat: 6", "repeat: 2"))
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.rounds(), self.whole(2))
        self.assertIn("repeat: server.result.acc >= 0.3 does not hold after round 1, the last of 2", done.stderr)

    def test_that_fails_is_the_last_and_goes_on_when_it_is_mended(self):
        self.write("client.sh", '[ "$1$2" = 21 ] && exit 3\n' + CLIENT)
        done = self.trainyard("run", "job.yaml", expect=1)
        self.assertEqual(self.rounds(), {**self.whole(2), "clients.2": ["FINISHED", "EXIT 3"], "server.2": ["SKIPPED"]})
        self.assertIn("repeat: round 2 has not finished, so no other of at most 6 rounds starts; "
                      "continue with 'trainyard retry runs/job --cascade'", done.stderr)
        self.write("client.sh", CLIENT)
        self.trainyard("retry", "runs/job", "--cascade", expect=0)
        self.assertEqual(self.rounds(), self.whole(4))
        self.assertEqual(self.text("runs/job/server.3/mean/model"), "4\n")

    def test_whose_result_is_missing_end_it_with_the_cause(self):
        self.write("server.sh", SERVER + "[ $1 = 1 ] && echo '{}' > $TRAINYARD_RESULT\ntrue\n")
        done = self.trainyard("run", "job.yaml", expect=75)
        self.assertIn("repeat: until: 'server.result.acc >= 0.3': server.1/mean left no 'acc' in its result: "
                      "no round starts after round 1", done.stderr)
        self.trainyard("wait", expect=75)
        self.assertIn("not all is done: repeat: until: 'server.result.acc >= 0.3'", self.trainyard("status").stdout)
        # The condition can be corrected.
        self.write("server.sh", SERVER)
        self.job(LOOP.replace("result.acc >= 0.3", "result.model >= 4"))
        self.trainyard("run", "--resume", "runs/job", "job.yaml", expect=75)
        self.job(LOOP.replace("until: server.result.acc >= 0.3", ""))
        self.trainyard("run", "--resume", "runs/job", "job.yaml", expect=0)
        self.assertEqual(self.rounds(), self.whole(6))

    def test_of_a_run_that_was_killed_go_on_where_they_were(self):
        os.mkfifo(self.directory / "gate")
        self.write("client.sh", '[ "$1$2" = 20 ] && cat gate\n' + CLIENT)
        yard = self.start("run", "job.yaml")
        self.until("the run", lambda: self.trainyard("status", "runs/job").returncode == 0)
        self.until("round 2", lambda: self.words().get("clients.2/client=0") == "RUNNING")
        yard.kill()
        yard.wait()
        self.write("client.sh", CLIENT)
        self.assertIn("rounds 1 to 2 of the repeat resume as well",
                      self.trainyard("run", "--resume", "runs/job", "--dry-run", expect=0).stdout)
        done = self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertIn(" of 10 tasks finished before, and will not run again\n", done.stderr)
        self.assertEqual(self.rounds(), self.whole(4))
        self.assertEqual(self.text("runs/job/server.3/mean/model"), "4\n")

    def test_begin_where_a_run_was_killed_between_two_of_them(self):
        self.job(LOOP.replace("repeat: 6", "repeat: 2"))
        self.trainyard("run", "job.yaml", expect=0)
        # As a kill leaves it after the last word of round 1: all of it has finished, and no other is there.
        self.job(LOOP)
        done = self.trainyard("run", "--resume", "runs/job", "job.yaml", expect=0)
        self.assertEqual(self.rounds(), self.whole(4))
        self.assertIn("resumed: 7 of 7 tasks finished before", done.stderr)

    def test_whose_job_file_has_none_any_more_do_not_go_on(self):
        self.trainyard("run", "job.yaml", expect=0)
        self.job(LOOP[:LOOP.index("  - repeat")])
        done = self.trainyard("run", "--resume", "runs/job", "job.yaml", expect=2)
        self.assertIn("no longer has 'repeat', but round 1 has started", done.stderr)

    def test_go_on_beside_what_is_submitted(self):
        os.mkfifo(self.directory / "gate")
        self.write("client.sh", '[ "$1$2" = 10 ] && cat gate\n' + CLIENT)
        yard = self.start("run", "job.yaml")
        self.until("the run", lambda: self.trainyard("status", "runs/job").returncode == 0)
        self.until("round 1", lambda: self.words().get("clients.1/client=0") == "RUNNING")
        self.job("groups: [{name: clients.2, tasks: [{id: a, cpus: 0, memory: 10MB, command: 'true'}]}]", "more.yaml")
        told = self.trainyard("submit", "more.yaml", "--run-dir", "runs/job", expect=0)
        self.assertIn("1 of 'clients.2 (3)'", told.stdout)
        self.job(LOOP, "again.yaml")
        refused = self.trainyard("submit", "again.yaml", "--run-dir", "runs/job", expect=2)
        self.assertIn("'repeat' cannot be used in a file that is submitted to a run", refused.stderr)
        self.open_gate()
        self.end_of(yard, expect=0)
        rounds = self.rounds()
        self.assertEqual(rounds.pop("clients.2 (3)"), ["FINISHED"])
        self.assertEqual(rounds, self.whole(4))

    def test_are_not_begun_after_an_interrupt(self):
        os.mkfifo(self.directory / "gate")
        self.write("server.sh", "[ $1 = 1 ] && trap '' TERM && cat gate\n" + SERVER)
        yard = self.start("run", "job.yaml")
        self.until("the run", lambda: self.trainyard("status", "runs/job").returncode == 0)
        self.until("round 1", lambda: self.words().get("server.1/mean") == "RUNNING")
        yard.terminate()
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=143)
        self.assertEqual([name for name in self.rounds() if name.endswith(".2")], [])
        self.write("server.sh", SERVER)
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertEqual(self.rounds(), self.whole(4))

    def test_are_shown_before_they_run(self):
        dry = self.trainyard("run", "job.yaml", "--dry-run", expect=0).stdout
        self.assertIn("repeat: at most 6 rounds, until server.result.acc >= 0.3; round 0 is shown\n", dry)
        self.assertIn("group clients.0: needs first\n", dry)
        told = json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)
        self.assertEqual(told["repeat"], {"rounds_max": 6, "until": "server.result.acc >= 0.3"})
        self.assertEqual(told["task_count"], 4)

    def test_are_run_alone_where_one_is_asked_for(self):
        done = self.trainyard("run", "job.yaml", "--only", "round=0", expect=0)
        self.assertIn("repeat: no round starts after round 0, as only some tasks were selected; "
                      "continue with 'trainyard run --resume runs/job'", done.stderr)
        self.assertEqual(self.rounds(), self.whole(1))
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertEqual(self.rounds(), self.whole(4))


if __name__ == "__main__":
    unittest.main()
