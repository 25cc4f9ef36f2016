"""Notifications about a run: by webhooks, by mail, by the command of `on-finish`. Against real servers, and servers that
never answer, refuse, and hang up: they delay and harm nothing."""
import email
import email.policy
import fcntl
import functools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import termios

from servers import (Authority, BadServer, HOST, MailServer, WebServer, drop_in_mid_mail, free_port, refuse_receiver,
                     say_nothing)
from test_queue import QueueTest
from yard import SETTINGS, YardTest, unittest

SECRET = "T0-B0-verysecret"


@functools.cache
def authority():
    """One for all tests of this file: its keys take a moment to make."""
    directory = tempfile.mkdtemp(prefix="trainyard-e2e-")
    unittest.addModuleCleanup(shutil.rmtree, directory)
    return Authority(directory)


class TellingTest(YardTest):
    def setUp(self):
        super().setUp()
        # The tests may run behind a proxy, with other certificates, and in a task of trainyard.
        for name in list(self.environment):
            if name.lower().endswith("_proxy") or name in ("CURL_CA_BUNDLE", "SSL_CERT_FILE"):
                del self.environment[name]

    def serve(self, server):
        self.addCleanup(server.stop)
        return server

    def log_of_notices(self):
        return self.text("runs/job/trainyard.telling.log")

    def assert_nowhere(self, secret, *outputs):
        """It is in no file of the run, and was not printed."""
        for path in (self.directory / "runs").rglob("*"):
            if path.is_file():
                self.assertNotIn(secret.encode(), path.read_bytes(), path)
        for output in outputs:
            self.assertNotIn(secret, output)


class OnFinish(TellingTest):
    def test_has_the_outcome_in_its_environment_and_its_output_in_a_file(self):
        self.job("""
name: digits
on-finish: |
  env | grep -E '^TRAINYARD_(RUN|JOB|OUT|EXIT|TASKS|FIN|FAILED|SKIP|STOP)' | sort
  pwd
  echo problem >&2
groups:
- name: g
  tasks: [{id: a, command: 'true'}, {id: b, command: exit 3}]
- name: h
  tasks: [{command: 'true'}]
""")
        done = self.trainyard("run", "job.yaml", expect=1)
        self.assertNotIn("on-finish", done.stderr)
        run = self.directory / "runs/digits"
        self.assertEqual((run / "trainyard.on-finish.log").read_text().splitlines(), [
            "TRAINYARD_EXIT_CODE=1", "TRAINYARD_FAILED=1", "TRAINYARD_FINISHED=1", "TRAINYARD_JOB=digits",
            "TRAINYARD_OUTCOME=failed", "TRAINYARD_RUN=1", f"TRAINYARD_RUN_DIR={run}", "TRAINYARD_SKIPPED=1",
            "TRAINYARD_STOPPED=0", "TRAINYARD_TASKS=3", str(self.directory), "problem"])

    def test_runs_if_a_signal_comes_while_the_results_of_the_ended_run_are_printed(self):
        self.job("""
name: job
on-finish: echo $TRAINYARD_OUTCOME
groups: [{matrix: {n: 0..19}, tasks: [{id: '{n}', command: 'true'}]}]
""")
        run = self.start("run", "job.yaml", "--json")
        # Its output does not fit.
        fcntl.fcntl(run.stdout, fcntl.F_SETPIPE_SZ, 4096)
        waiting = bytearray(4)
        self.until("output", lambda: fcntl.ioctl(run.stdout, termios.FIONREAD, waiting) == 0 and any(waiting))
        run.send_signal(signal.SIGTERM)
        output, _ = self.end_of(run, expect=0)
        self.assertEqual([task["verdict"] for task in json.loads(output)["tasks"]], ["FINISHED"] * 20)
        self.assertEqual(self.text("runs/job/trainyard.on-finish.log"), "finished\n")

    def test_changes_nothing_about_the_run_where_it_fails(self):
        self.job("name: job\non-finish: exit 7\ngroups: [{tasks: [{command: 'true'}]}]")
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertIn("trainyard: on-finish: exited with code 7; see ", done.stderr)

    def test_that_hangs_is_ended_by_an_interrupt_with_what_it_has_started(self):
        self.job("""
name: job
on-finish: sleep 1000 & echo $! > child; wait
groups: [{tasks: [{command: 'true'}]}]
""")
        yard = self.start("run", "job.yaml")
        child = int(self.until_written("child"))
        yard.send_signal(signal.SIGINT)
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("on-finish: was interrupted, and stopped", errors)
        self.until("the end of what it has started", lambda: not os.path.exists(f"/proc/{child}") or
                   ") Z " in open(f"/proc/{child}/stat").read())

    def test_knows_of_an_interrupt(self):
        self.job("""
name: job
on-finish: echo $TRAINYARD_OUTCOME $TRAINYARD_EXIT_CODE $TRAINYARD_STOPPED > told
groups: [{tasks: [{command: touch there; sleep 1000}]}]
""")
        for run, number, code in (("runs/job", signal.SIGINT, 130), ("runs/job-2", signal.SIGTERM, 143)):
            yard = self.start("run", "job.yaml", "--new")
            self.until_file("there")
            yard.send_signal(number)
            self.end_of(yard, expect=code)
            self.assertEqual(self.text("told"), f"interrupted {code} 1\n")
            self.trainyard("wait", run, expect=code)
            (self.directory / "there").unlink()


class NotifyTest(TellingTest):
    def url(self, server, number, scheme="http"):
        return f"{scheme}://{HOST}:{server.port}/{SECRET}/{number}"

    def notify(self, *servers, tasks="[{id: a, command: 'true'}, {id: b, command: exit 3}, {id: c, command: exit 4}]",
               more="", scheme="http", variables=()):
        urls = [self.url(server, number, scheme) for number, server in enumerate(servers)]
        addresses = ", ".join([*urls, *variables])
        return self.job(f"name: job\nnotify: [{addresses}]\n{more}\ngroups:\n- name: g\n  tasks: {tasks}\n")


class NotifyOfSubmissions(NotifyTest, QueueTest):
    def test_tells_of_one_that_is_skipped_or_refused_when_it_begins(self):
        server = self.serve(WebServer())
        self.notify(variables=["$HOOK"], tasks="[{id: a, cpus: 0, memory: 1MB, command: 'true'}]")
        hook = {"HOOK": self.url(server, 0)}
        failed = self.command_of("exit 3", "--name", "failed")
        skipped = self.submit("job.yaml", "--needs", failed, *SETTINGS, env=hook)
        self.wait(skipped, 1)
        self.until("the first post", lambda: len(server.posts) == 1)
        held = self.holds()
        refused = self.submit("job.yaml", "--needs", held, *SETTINGS, env=hook)
        settings = self.write("trainyard.yaml", "nonsense: 1\n")
        self.open_gate()
        self.wait(refused, 2)
        settings.unlink()
        self.until("the second post", lambda: len(server.posts) == 2)
        held = self.holds("again")
        gone = self.submit("job.yaml", "--needs", held, *SETTINGS, env=hook)
        shutil.rmtree(self.living()[int(gone)]["run_directory"])
        self.open_gate()
        self.until("the third post", lambda: len(server.posts) == 3)
        first, second, third = (post["json"] for post in server.posts)
        self.assertEqual((first["event"], first["job"], first["run"], first["run_dir"], first["tasks"], first["reason"]),
                         ("not-started", "job", int(skipped), str(self.directory / "runs/job"), None,
                          f"needs run {failed}, which did not succeed"))
        self.assertIn(f"did not start: needs run {failed}, which did not succeed", first["text"])
        self.assertEqual((second["event"], second["run"]), ("not-started", int(refused)))
        self.assertIn("unknown key 'nonsense'", second["reason"])
        self.assertEqual((third["event"], third["run"], third["reason"]),
                         ("not-started", int(gone), "its directory was deleted or moved: submit it again"))
        self.until_file("runs/job/trainyard.telling.log")
        self.until("its line", lambda: ": sent\n" in self.log_of_notices())

    def test_tells_of_one_whose_directories_were_moved_or_logs_that_it_cannot(self):
        server = self.serve(WebServer())
        job = self.notify(server, tasks="[{id: a, cpus: 0, memory: 1MB, command: 'true'}]")
        project, there = self.directory / "project", self.directory / "there"
        project.mkdir()
        there.mkdir()
        shutil.copy(job, project)
        held = self.holds()
        moved = self.submit(str(project / "job.yaml"), "--needs", held, *SETTINGS)
        outside = self.submit(str(job), "--needs", held, *SETTINGS, prefix=("sh", "-c", 'cd there; exec "$@"', "sh"))
        command = self.command_of("true", "--needs", held, "--name", "command")
        for number in (outside, command):
            shutil.rmtree(self.living()[int(number)]["run_directory"])
        project.rename(self.directory / "elsewhere")
        shutil.rmtree(there)
        self.open_gate()
        for number in (moved, outside, command):
            self.assertIn("its directory was deleted or moved", self.wait(number, 2).stderr)
        self.until("the post", lambda: len(server.posts) == 1)
        self.assertEqual(server.posts[0]["json"]["run"], int(outside))
        self.assertEqual([line for line in (self.queue / "queue.log").read_text().splitlines() if "notify" in line],
                         [f"trainyard queue: run {moved}: a 'notify' of its job file had no effect: '{project}/job.yaml' not found"])

    def test_says_when_it_is_submitted_and_skipped_that_a_variable_is_not_set(self):
        self.notify(variables=["$NONE"], tasks="[{id: a, cpus: 0, memory: 1MB, command: 'true'}]")
        why = "notify: $NONE is not set, so nothing is sent to it"
        failed = self.command_of("exit 3", "--name", "failed")
        skipped = self.submit("job.yaml", "--needs", failed, *SETTINGS)
        self.assertEqual(self.told.count(why), 1, self.told)
        self.wait(skipped, 1)
        self.until_file("runs/job/trainyard.run.log")
        self.until("its line", lambda: why in self.text("runs/job/trainyard.run.log"))


class Notify(NotifyTest):
    def test_tells_of_the_first_failure_and_of_the_end(self):
        servers = [self.serve(WebServer()), self.serve(WebServer())]
        self.notify(servers[0], variables=["$HOOK", "$NONE"])
        done = self.trainyard("run", "job.yaml", expect=1, env={"HOOK": self.url(servers[1], 1)})
        for number, server in enumerate(servers):
            failure, end = server.posts
            for post in server.posts:
                self.assertEqual(post["path"], f"/{SECRET}/{number}")
                self.assertEqual(post["type"], "application/json")
                self.assertEqual(post["json"]["run_dir"], str(self.directory / "runs/job"))
                self.assertEqual((post["json"]["job"], post["json"]["run"]), ("job", 1))
            self.assertEqual(failure["json"]["event"], "first-failure")
            self.assertIn(failure["json"]["task"], ("g/b", "g/c"))
            self.assertIn(f'{failure["json"]["task"]} failed: EXIT ', failure["json"]["text"])
            self.assertEqual(end["json"]["event"], "end")
            self.assertEqual((end["json"]["outcome"], end["json"]["exit_code"]), ("failed", 1))
            self.assertEqual(end["json"]["tasks"], {"total": 3, "finished": 1, "failed": 2, "skipped": 0, "stopped": 0,
                                                    "running": 0, "waiting": 0})
            self.assertIn("1 of 3 tasks finished, 2 failed", end["json"]["text"])
        self.assertEqual(self.log_of_notices().count(": sent\n"), 4)
        self.assertEqual(done.stderr.count("notify: $NONE is not set, so nothing is sent to it"), 1)
        self.assertEqual(done.stderr.count("notify"), 1, done.stderr)
        self.assert_nowhere(SECRET, done.stdout, done.stderr)

    def test_and_on_finish_tell_of_the_end_again_when_the_run_is_resumed_and_when_tasks_are_retried(self):
        server = self.serve(WebServer())
        self.notify(server, tasks="[{id: a, command: test -e fixed}, {id: b, command: 'true'}]",
                    more="on-finish: echo $TRAINYARD_OUTCOME $TRAINYARD_FINISHED >> told")
        self.trainyard("run", "job.yaml", expect=1)
        self.trainyard("run", "--resume", "runs/job", expect=1)
        self.write("fixed", "")
        self.trainyard("retry", "runs/job", expect=0)
        self.assertEqual([(post["json"]["event"], post["json"].get("outcome")) for post in server.posts],
                         [("first-failure", None), ("end", "failed")] * 2 + [("end", "finished")])
        self.assertEqual(self.text("told").splitlines(), ["failed 1", "failed 1", "finished 2"])

    def test_tells_of_a_run_that_was_killed(self):
        server = self.serve(WebServer())
        self.notify(server, tasks="[{command: touch there; sleep 1000}]")
        yard = self.start("run", "job.yaml")
        self.until_file("there")
        yard.kill()
        self.until("what is told of it", lambda: server.posts)
        (post,) = server.posts
        self.assertEqual((post["json"]["event"], post["json"]["outcome"]), ("end", "died"))
        self.assertIsNone(post["json"]["exit_code"])
        self.assertIn("'trainyard run --resume", post["json"]["text"])

    def test_leaves_no_secret_in_what_is_kept_of_the_repository(self):
        server = self.serve(WebServer())
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
        path = self.notify(server, tasks="[{command: 'true'}]")
        written = path.read_text()
        path.write_text("name: job\n")
        for words in (["init", "-q"], ["add", "job.yaml"], ["commit", "-qm", "a"]):
            subprocess.run([*git, *words], cwd=self.directory, check=True)
        path.write_text(written)
        self.trainyard("run", "job.yaml", expect=0)
        self.assert_nowhere(SECRET)
        self.assertIn(f"notify: [http://{HOST}:{server.port}/***]".encode(),
                      b"".join(path.read_bytes() for path in (self.directory / "runs/job").glob("journal.db*")))

    def test_of_a_submission_has_no_effect_and_leaves_no_secret(self):
        server, other = self.serve(WebServer()), self.serve(WebServer())
        self.notify(server, tasks="[{command: cat gate}]")
        os.mkfifo(self.directory / "gate")
        yard = self.start("run", "job.yaml")
        self.job(f"notify: http://{HOST}:{other.port}/{SECRET}\ngroups: [{{name: h, tasks: [{{command: 'true'}}]}}]",
                 "more.yaml")
        self.until("the run", lambda: self.trainyard("status", "runs/job").returncode == 0)
        done = self.trainyard("submit", "more.yaml", "--run-dir", "runs/job", expect=0)
        self.assertIn("its 'notify' and 'on-finish' have no effect: the run has its own", done.stdout)
        self.open_gate()
        self.end_of(yard, expect=0)
        self.assertEqual((len(server.posts), len(other.posts)), (1, 0))
        self.assert_nowhere(SECRET, done.stdout)

    def test_speaks_tls_with_those_it_trusts_alone(self):
        server = self.serve(WebServer(context=authority().context))
        self.notify(server, tasks="[{command: 'true'}]", scheme="https")
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertIn(f"notify: {HOST}:{server.port}: the end: not sent: its certificate is not trusted", done.stderr)
        self.assertEqual(server.posts, [])
        self.trainyard("run", "job.yaml", "--new", expect=0, env={"SSL_CERT_FILE": str(authority().file)})
        self.assertEqual(len(server.posts), 1)

    def test_is_harmed_by_no_server_and_says_which_were_not_told(self):
        """One run with all of them, as it waits at its end for those that never answer. A server that is well again and a
        good one are told everything."""
        class Down:
            port = free_port()
        elsewhere, good = self.serve(WebServer()), self.serve(WebServer())
        silent, silent_mail = self.serve(BadServer(say_nothing)), self.serve(BadServer(say_nothing))
        broken, missing = self.serve(WebServer(answers=(500,))), self.serve(WebServer(answers=(404,)))
        moved = self.serve(WebServer(answers=(302,), location=f"http://{HOST}:{elsewhere.port}/x"))
        shaky = self.serve(WebServer(answers=(500, 429, 200, 200, 200)))
        self.notify(Down, silent, broken, missing, moved, shaky, good)
        mail = ["smtp.enable=true", f"smtp.server-host={HOST}", f"smtp.server-port={silent_mail.port}",
                "smtp.user=me@example.com", "smtp.receiver=you@example.com"]
        done = self.trainyard("run", "job.yaml", "--set=period.notify-end=2s", "--set=period.notify-again=100ms",
                              *(f"--set={word}" for word in mail), expect=1)
        for who, what in ((f"notify: {HOST}:{Down.port}: the end", "not sent yet: Couldn't connect to server"),
                          (f"notify: {HOST}:{broken.port}: the end", "not sent yet: answers 500; next attempt in 0.1 s"),
                          (f"notify: {HOST}:{missing.port}: the end", "not sent: answers 404"),
                          (f"notify: {HOST}:{moved.port}: the end", "not sent: answers 302: the address has changed; write the new one"),
                          (f"notify: {HOST}:{silent.port}: the end", "given up: it was not taken in time"),
                          (f"mail: {HOST}:{silent_mail.port}: a report", "given up: it was not taken in time")):
            with self.subTest(who=who):
                self.assertIn(f"{who}: {what}", done.stderr)
        self.assertIn(f"notify: {HOST}:{broken.port}: the first failure: not sent", self.log_of_notices())
        for server, posts in ((good, 2), (shaky, 4), (missing, 2), (moved, 2), (elsewhere, 0)):
            self.assertEqual(len(server.posts), posts, done.stderr)
        self.assertEqual(self.log_of_notices().count(f"notify: {HOST}:{shaky.port}: the end: sent\n"), 1)
        self.assertEqual((silent.connections, silent_mail.connections), (2, 1))
        self.assertEqual(self.words(), {"g/a": "FINISHED", "g/b": "EXIT 3", "g/c": "EXIT 4"})
        self.assert_nowhere(SECRET, done.stdout, done.stderr)


class Mail(TellingTest):
    def setUp(self):
        super().setUp()
        self.job("name: digits\ngroups: [{name: g0, max-parallel: 1, tasks: [{id: a, command: 'true'}, {id: b0, command: exit 3}]}]\n")

    def run_with(self, port, *settings, expect=1):
        words = ["smtp.enable=true", f"smtp.server-host={HOST}", f"smtp.server-port={port}", "smtp.user=me@example.com",
                 "smtp.receiver=you@example.com, all@example.com", *settings]
        return self.trainyard("run", "job.yaml", "--run-dir", "runs/job", *(f"--set={word}" for word in words), expect=expect)

    def parts(self, mail):
        message = email.message_from_bytes(mail["bytes"], policy=email.policy.default)
        text, *pages = message.iter_parts()
        return message, text.get_content(), {page.get_filename(): page.get_content() for page in pages}

    def test_has_the_report_of_a_group_that_has_ended(self):
        server = self.serve(MailServer())
        done = self.run_with(server.port)
        (mail,) = server.mails
        self.assertEqual((mail["from"], mail["to"], mail["encrypted"]),
                         ("me@example.com", ["you@example.com", "all@example.com"], False))
        message, text, pages = self.parts(mail)
        self.assertEqual(message["Subject"], "trainyard g0 report")
        self.assertEqual(message["From"], "trainyard <me@example.com>")
        self.assertEqual(message["To"], "you@example.com, all@example.com")
        self.assertTrue(message["Date"].endswith("+0000"))
        self.assertRegex(message["Message-ID"], r"^<[\d.]+@trainyard>$")
        self.assertIn("run 1: ", text)
        self.assertRegex(text, r"g0: 1 of 2 tasks finished, 1 failed, in ")
        self.assertEqual(list(pages), ["g0.html"])
        self.assertTrue(pages["g0.html"].startswith("<!doctype html>"), pages["g0.html"][:100])
        self.assertIn("EXIT 3", pages["g0.html"])
        self.assertNotIn("mail", done.stderr)

    def test_goes_encrypted_to_a_user_who_logs_in_and_without_a_password_where_that_is_offered(self):
        offers, password = {"tls_context": authority().context}, "smtp.password=open: sesame"
        users = {"users": {"me@example.com": "open: sesame"}}
        for options, settings in (
            ({**offers, **users, "require_starttls": True}, [password]),
            ({**offers, **users, "require_starttls": True}, [password, "smtp.security=starttls"]),
            ({"ssl_context": authority().context, **users, "auth_require_tls": False}, [password, "smtp.security=tls"]),
            (offers, []),
        ):
            with self.subTest(settings=settings):
                server = self.serve(MailServer(**options))
                done = self.run_with(server.port, f"smtp.ca-file={authority().file}", *settings)
                self.assertEqual(len(server.mails), 1, done.stderr)
                self.assertTrue(server.mails[0]["encrypted"] or "smtp.security=tls" in settings)
                self.assertEqual([login[0] for login in server.logins], ["me@example.com"] if settings else [])
                self.assert_nowhere("sesame", done.stdout, done.stderr)
                subprocess.run(["rm", "-r", self.directory / "runs"], check=True)

    def test_is_not_sent_to_a_server_that_nobody_trusts_vouches_for(self):
        server = self.serve(MailServer(users={"me@example.com": "p"}, tls_context=authority().context, require_starttls=True))
        done = self.run_with(server.port, "smtp.password=p")
        self.assertIn(f"mail: {HOST}:{server.port}: a report: not sent: its certificate is not trusted; set 'smtp.ca-file' "
                      "to the certificates of its authority", done.stderr)
        self.assertEqual((server.mails, server.logins), ([], []))

    def test_is_not_sent_with_a_wrong_password(self):
        server = self.serve(MailServer(users={"me@example.com": "right"}, tls_context=authority().context,
                                       require_starttls=True))
        done = self.run_with(server.port, "smtp.password=wrong-sesame", f"smtp.ca-file={authority().file}")
        self.assertIn("a report: not sent: the server does not take this user and password", done.stderr)
        self.assertEqual(server.mails, [])
        self.assert_nowhere("wrong-sesame", done.stdout, done.stderr)

    def test_gives_no_password_away_in_clear_unless_somebody_says_so(self):
        server = self.serve(MailServer(users={"me@example.com": "p"}, auth_require_tls=False))
        done = self.run_with(server.port, "smtp.password=p")
        self.assertIn("not sent: the server offers no encryption; 'smtp.security: none' sends in clear", done.stderr)
        self.assertEqual(server.logins, [])
        self.trainyard("run", "job.yaml", "--run-dir", "runs/again", "--set=smtp.enable=true", f"--set=smtp.server-host={HOST}",
                       f"--set=smtp.server-port={server.port}", "--set=smtp.user=me@example.com", "--set=smtp.password=p",
                       "--set=smtp.receiver=you@example.com", "--set=smtp.security=none", expect=1)
        self.assertEqual(len(server.mails), 1)

    def test_says_what_is_missing_and_goes_on(self):
        done = self.trainyard("run", "job.yaml", "--set=smtp.enable=true", f"--set=smtp.server-host={HOST}", expect=1)
        self.assertIn("mail: reports are not mailed; not set: smtp.user, smtp.receiver", done.stderr)

    def test_says_that_others_may_read_the_password(self):
        server = self.serve(MailServer())
        self.write("trainyard.yaml", "smtp: {password: sesame}\n", mode=0o644)
        done = self.run_with(server.port, "smtp.enable=false")
        self.assertIn("other users can read 'trainyard.yaml', which has smtp.password; 'chmod 600 trainyard.yaml' protects it",
                      done.stderr)
        (self.directory / "trainyard.yaml").chmod(0o600)
        done = self.trainyard("run", "job.yaml", "--new", expect=1)
        self.assertNotIn("smtp.password", done.stderr)
        shown = self.trainyard("config", "show", expect=0).stdout
        self.assertIn("smtp.password: \"******\"", shown)
        self.assertNotIn("sesame", shown)

    def test_is_harmed_by_no_server_that_hangs_up_in_mid_mail_or_refuses(self):
        acts = [drop_in_mid_mail, refuse_receiver]
        server = self.serve(BadServer(lambda talk: acts.pop(0)(talk)))
        done = self.run_with(server.port, "period.notify-again=100ms")
        self.assertRegex(done.stderr, rf"mail: {HOST}:\d+: a report: not sent yet: ")
        self.assertRegex(done.stderr, rf"mail: {HOST}:\d+: a report: not sent after 2 attempts: the server answers 550")
        self.assertEqual(server.connections, 2)
        self.assertEqual(self.words(), {"g0/a": "FINISHED", "g0/b0": "EXIT 3"})


if __name__ == "__main__":
    unittest.main()
