"""A run on machines that ssh leads to: real sshd's on loopback, and one in a network of its own whose cable is pulled."""
import contextlib
import json
import os
import signal
import subprocess

import agents
from test_agents import JOB, NOTES_ITSELF, WAITS, AgentTest
from yard import PATIENCE_S


class SshTest(AgentTest):
    def setUp(self):
        super().setUp()
        self.servers = []
        self.ssh = self.directory / "ssh-wrapper"

    def tearDown(self):
        super().tearDown()
        for server in self.servers:
            server.end()

    def serve(self, *names, **options):
        for name in names:
            self.servers.append(agents.SshServer(self.directory, name, **options))
        self.client()

    def client(self):
        self.write("ssh.conf", "".join(server.client_lines() for server in self.servers))

    def words(self, *words, on="lab1,lab2", ssh="ssh", **options):
        return ["run", "job.yaml", "--on", on, *agents.settings(self.directory, f"{ssh} -F {self.directory}/ssh.conf", **options), *words]


class Ssh(SshTest):
    def test_reads_the_setup_of_a_machine_in_its_login_shell(self):
        self.serve("lab1", "lab2")
        self.write("venv/activate", "export WORD=\"from $PWD\"\n")
        self.job("machines:\n  - {ssh: lab1, cpus: 0.5, setup: '. ./venv/activate'}\n  - lab2\n"
                 + JOB % (0.5, "echo $MACHINE $WORD > $TRAINYARD_TASK_DIR/on"))
        words = ["job.yaml", *agents.settings(self.directory, f"ssh -F {self.directory}/ssh.conf")]
        told = json.loads(self.trainyard("machines", *words, "--json", expect=0).stdout)["machines"]
        self.assertEqual([(machine["name"], machine["ok"], machine["cpus"]) for machine in told],
                         [("lab1", True, 0.5), ("lab2", True, os.cpu_count())])
        self.trainyard("run", *words, expect=0)
        self.assertLessEqual({*self.machines_of_tasks()}, {f"lab1 from {self.directory}", "lab2"})
        self.assertIn(f"lab1 from {self.directory}", self.machines_of_tasks())
        self.until_no_agents()

    def test_brings_files_to_machines_that_share_no_disk_and_back(self):
        self.serve("lab1", "lab2")
        self.write("train.sh", "echo $MACHINE in $PWD > $TRAINYARD_TASK_DIR/on\necho printed\n")
        entries = "".join(f"  - {{ssh: {server.name}, directory: '{server.directory}/home/my proj', sync: [train.sh]}}\n" for server in self.servers)
        self.job(f"machines:\n{entries}" + JOB % (self.cpus, "sh train.sh"))
        words = ["job.yaml", *agents.settings(self.directory, f"ssh -F {self.directory}/ssh.conf")]
        self.trainyard("machines", *words, expect=0)
        self.trainyard("run", *words, expect=0)
        self.assertEqual(len(self.machines_of_tasks()), 4)
        self.assertLessEqual({*self.machines_of_tasks()}, {f"{server.name} in {server.directory}/home/my proj" for server in self.servers})
        self.assertEqual([path.read_text() for path in self.directory.glob("runs/sweep/*/*/stdout.log")], ["printed\n"] * 4)
        self.until_no_agents()
        self.assertEqual({path.name for server in self.servers for path in (server.directory / "home/my proj").iterdir()}, {"train.sh"})

    def test_may_die_and_be_started_again(self):
        self.serve("lab1")
        self.cpus /= 2
        self.sweep()
        yard = self.start(*self.words(on="lab1"))
        self.until_all_run()
        (relay, agent), = agents.agents(self.sockets)
        # The whole session that carries the stream, as where a daemon is restarted: what it has started goes with it.
        self.servers[0].end()
        os.kill(relay, signal.SIGKILL)
        self.until("it to be silent", lambda: self.ask("SELECT count(*) FROM events WHERE kind = 'keeper'") == [(1,)])
        self.assertIn(agent, agents.processes())
        self.servers[0].start()
        self.until("it to answer again", lambda: self.ask("SELECT count(*) FROM events WHERE kind = 'keeper'") == [(2,)])
        self.keep_opening_gate(yard)
        self.assertIn("answers again", self.end_of(yard, expect=0)[1])
        self.assertEqual(self.attempts(), [1, 1, 1, 1])

    def test_is_asked_no_question(self):
        self.serve("lab1", "lab2")
        (self.servers[0].directory / "authorized").write_text("")
        (self.servers[1].directory / "known").write_text("")
        self.sweep("true")
        done = self.trainyard(*self.words(), expect=2)
        self.assertRegex(done.stderr, r"lab1: \S*lab1: Permission denied|lab1: \S+: Permission denied")
        self.assertIn("lab2: Host key verification failed.", done.stderr)


class Cable(SshTest):
    """One machine at the other end of a cable that is pulled: no byte and no end of a stream comes from there."""

    def network(self):
        if os.geteuid() != 0:
            self.skipTest("only root lays a cable to a machine of its own")
        holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "ip link set lo up && echo ready && exec sleep infinity"], stdout=subprocess.PIPE,
                                  text=True)
        self.addCleanup(lambda: (holder.kill(), holder.communicate()))
        if holder.stdout.readline() != "ready\n":
            self.skipTest("no network of its own here")
        there = ["nsenter", "-t", str(holder.pid), "-n", "--"]
        self.cable = f"ty{os.getpid() % 100000}"
        try:
            self.ip("link", "add", self.cable, "type", "veth", "peer", "name", "cable", "netns", str(holder.pid))
        except subprocess.CalledProcessError:
            self.skipTest("no cables here")
        self.ip("addr", "add", "10.78.0.1/24", "dev", self.cable)
        self.ip("link", "set", self.cable, "up")
        self.ip("addr", "add", "10.78.0.2/24", "dev", "cable", on=there)
        self.ip("link", "set", "cable", "up", on=there)
        self.serve("lab1", address="10.78.0.2", on=there)

    def ip(self, *words, on=()):
        subprocess.run([*on, "ip", *words], check=True, timeout=PATIENCE_S, stderr=subprocess.DEVNULL)

    def tearDown(self):
        super().tearDown()
        with contextlib.suppress(AttributeError, subprocess.CalledProcessError):
            self.ip("link", "del", self.cable)

    def begin(self, **options):
        self.network()
        self.cpus /= 2
        self.sweep(NOTES_ITSELF + WAITS)
        yard = self.start(*self.words("--set", "period.machine-silence=3s", on="lab1", **options))
        self.until_all_run()
        self.before = {pid for pid, _ in self.tasks()}
        self.ip("link", "set", self.cable, "down")
        self.until("it to be silent", lambda: self.ask("SELECT count(*) >= 1 FROM events WHERE kind = 'keeper'") == [(1,)])
        return yard

    def test_that_is_plugged_in_again_costs_no_task(self):
        yard = self.begin()
        self.ip("link", "set", self.cable, "up")
        self.until("it to answer again", lambda: self.ask("SELECT count(*) FROM events WHERE kind = 'keeper'") == [(2,)])
        self.keep_opening_gate(yard)
        self.assertIn("answers again", self.end_of(yard, expect=0)[1])
        self.assertEqual(self.attempts(), [1, 1, 1, 1])

    def test_that_is_plugged_in_too_late_costs_all_of_them_a_try_and_none_runs_twice(self):
        yard = self.begin(lease="2s")
        self.until("the lease to end them", lambda: not self.before & set(agents.processes()))
        self.ip("link", "set", self.cable, "up")
        self.until("all to run again", lambda: len(self.tasks()) == 4)
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)
        self.assertTrue(all(attempt > 1 for attempt in self.attempts()), self.attempts())
        self.assertEqual(list(self.directory.glob("runs/sweep/*/*/twice")), [])

    def tasks(self):
        return [(pid, words) for pid, (_, words) in agents.processes().items() if words[:2] == ["/bin/bash", "-c"] and "gate" in " ".join(words)
                and f"XDG_RUNTIME_DIR={self.sockets}".encode() in agents.environment_of(pid)]
