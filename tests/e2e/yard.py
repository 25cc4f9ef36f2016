"""A yard for a test: a directory of its own, job files, and the built program.

Every wait here is for something that happens, with a bound; nothing sleeps for a fixed time and hopes.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from environment import clean_environment

clean_environment()
TRAINYARD = os.environ.get("TRAINYARD", "trainyard")
# The folder of the Python client.
CLIENT = pathlib.Path(__file__).resolve().parent.parent.parent / "python"
# Other tests run at the same time: what they use of the CPUs must not hold this yard up. And each run is recorded, to
# be played again when its test has ended.
SETTINGS = ["--set", "utilization-limit.cpu=100%", "--set", "journal.record=full"]
# By when the program must have answered. It answers in milliseconds on an idle machine.
PATIENCE_S = 60
# Directories with the journals of tests that have ended.
RECORDS = []


def directory_in_memory():
    """The parent of the directories of tests: each run waits for its disk several times, a tenth of the time of most tests.
    None: the default, as in a container whose /dev/shm is small, or holds no programs."""
    try:
        status = os.statvfs("/dev/shm")
    except OSError:
        return None
    has_room = status.f_bavail * status.f_frsize >= 2 << 30
    return "/dev/shm" if has_room and not status.f_flag & os.ST_NOEXEC and os.access("/dev/shm", os.W_OK) else None


def is_recorded(path):
    """False, too, for other files that tests leave, such as a pipe. A link leads to a journal that is found by itself."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        journal = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return journal.execute("SELECT policy FROM executions ORDER BY number DESC LIMIT 1").fetchone()[0] != ""
        finally:
            journal.close()
    except (sqlite3.Error, TypeError):
        return False


def keep_record(journal, test):
    """Moves a journal to where replay_records() finds it, which runs at the end of the file of tests."""
    if not RECORDS:
        unittest.addModuleCleanup(replay_records)
    RECORDS.append(tempfile.mkdtemp(prefix=f"trainyard-e2e-{test}-", dir=directory_in_memory()))
    for path in journal.parent.glob("journal.db*"):
        with contextlib.suppress(FileNotFoundError):  # A reader that ends takes the write-ahead log away.
            shutil.move(path, RECORDS[-1])


def replay_records():
    """The scheduler of each run that was kept decides the same again. One process replays all of them: its start costs more
    than a run of a test does. The directory of a run names its test."""
    records = RECORDS[:]
    RECORDS.clear()
    try:
        if records:
            done = subprocess.run([TRAINYARD, "replay", *records], capture_output=True, text=True, timeout=PATIENCE_S * len(records))
            if done.returncode != 0:
                raise AssertionError(done.stdout + done.stderr)
    finally:
        for record in records:
            shutil.rmtree(record, ignore_errors=True)


class YardTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-e2e-", dir=directory_in_memory()))
        self.started = []
        # The yard puts its control socket here, and what a killed one leaves goes with the test.
        self.sockets = self.directory / ".sockets"
        self.sockets.mkdir()
        # Its runs are numbered apart from those of the user who runs the tests.
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.sockets),
                            "XDG_STATE_HOME": str(self.directory / ".state"),
                            # Tests that run beside each other are no neighbours.
                            "TRAINYARD_PROMISES": str(self.directory / ".promises")}

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        if os.geteuid() != 0:  # The superuser may read and delete everything.
            subprocess.run(["chmod", "-R", "u+rwX", self.directory], check=False)
        try:
            self.keep_records()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def keep_records(self):
        """Keeps the journals of recorded runs for replay_records(), whatever became of the runs."""
        # Sockets and the like may go meanwhile, which os.walk() bears and rglob() does not.
        for place, _, names in os.walk(self.directory):
            journal = pathlib.Path(place, "journal.db")
            if journal.name in names and is_recorded(journal):
                keep_record(journal, self.id())

    def write(self, name, text, mode=0o644):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def job(self, text, name="job.yaml"):
        return self.write(name, text)

    def job_of_tasks(self, tasks):
        """A job file with one group, 'g', whose tasks wait for no CPU. `tasks` are lines of YAML, indented by 6."""
        return self.job("name: job\ngroups:\n  - name: g\n    cpus: 0\n    tasks:\n" + tasks.removeprefix("\n"))

    def command(self, *words):
        settings = SETTINGS if words[0] == "run" else []
        return [TRAINYARD, *map(str, words), *settings]

    def trainyard(self, *words, expect=None, env=None, prefix=(), cwd=None):
        """Runs the program to its end. Returns what it did; `expect` is the exit code it must have."""
        done = subprocess.run([*prefix, *self.command(*words)], cwd=cwd or self.directory, capture_output=True,
                              text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                              env={**self.environment, **(env or {})})
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def start(self, *words, prefix=(), **options):
        """Starts the program in a session of its own; it is killed at the end of the test."""
        options.setdefault("env", self.environment)
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen([*prefix, *self.command(*words)], cwd=self.directory, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True, **options)
        self.started.append(process)
        return process

    def next_line(self, stream):
        """One line and no more: what a stream has read ahead would be missing in end_of()."""
        line = b""
        while not line.endswith(b"\n") and (byte := os.read(stream.fileno(), 1)):
            line += byte
        return line.decode()

    def end_of(self, process, expect=None):
        output, errors = process.communicate(timeout=PATIENCE_S)
        if expect is not None:
            self.assertEqual(process.returncode, expect, output + errors)
        return output, errors

    def until(self, what, holds, patience=PATIENCE_S):
        """Waits until holds() gives something true, and returns it."""
        return wait_until(what, holds, patience)

    def until_file(self, name):
        return self.until(name, lambda: (self.directory / name).exists())

    def until_written(self, name):
        """Waits for the text of a file: a shell makes the file a moment before it writes the text."""
        return self.until(name, lambda: (self.directory / name).exists() and self.text(name))

    def open_gate(self):
        """Lets the reader of the fifo `gate` go on. Waits until there is one."""
        with open(self.directory / "gate", "w"):
            pass

    def keep_opening_gate(self, yard):
        """Lets all readers of the fifo `gate` go on, until the yard has ended."""
        self.until("the end of the run", lambda: self.open_gate_if_read() or yard.poll() is not None)

    def open_gate_if_read(self):
        try:
            os.close(os.open(self.directory / "gate", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass  # It has no reader just now.

    def status(self, run="runs/job", tasks=True):
        done = self.trainyard("status", run, "--json", *(["--all"] if tasks else []), expect=0)
        return json.loads(done.stdout)

    def words(self, run="runs/job"):
        """The word that users read for each task: {"train/a": "FINISHED"}."""
        return {f'{task["group"]}/{task["id"]}': task["word"] for task in self.status(run)["tasks"]}

    def query(self, sql, run="runs/job"):
        with contextlib.closing(sqlite3.connect(f"file:{self.directory / run}/journal.db?mode=ro", uri=True)) as journal:
            return journal.execute(sql).fetchall()

    def life(self, name, run="runs/job"):
        """The statuses of a task, in order, as the journal has them."""
        path = self.directory / run / "journal.db"
        if not path.exists():
            return []
        journal = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            found = journal.execute("SELECT number FROM tasks WHERE id = ?", (name,)).fetchone()
            rows = journal.execute("SELECT data FROM events ORDER BY seq").fetchall()
        except sqlite3.OperationalError:
            return []  # It is being made.
        finally:
            journal.close()
        if found is None:
            return []
        changes = [change for (data,) in rows for change in json.loads(data).get("changes", [])]
        return [change["status"] for change in changes if change.get("task") == found[0]]

    def text(self, name):
        return (self.directory / name).read_text()


def commands_in(text):
    """The commands that a `--help` lists, in its order."""
    return re.findall(r"^  ([a-z][\w-]*)(?:, [\w-]+)*  +\S", text, re.M)


def options_in(text):
    """The names of the options that a `--help` lists, in its order."""
    return [name for names in re.findall(r"^  (?:[A-Z-]+, )?(-.*?)(?:  |$)", text, re.M) for name in re.findall(r"(?:^|, )(--?[a-z][\w-]*)", names)]


def wait_until(what, holds, patience=PATIENCE_S):
    """Waits until holds() gives something true, and returns it. The one place where tests sleep."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if value := holds():
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {patience} s without effect for {what}")


def own_mounts(*more):
    """The words that run a command in a mount namespace of its own. Skips the test where none can be made."""
    user = ["--map-root-user"] if os.geteuid() != 0 else []
    # In a chroot the root is no mount, so that its propagation cannot be changed.
    for propagation in ("private", "unchanged"):
        words = ["unshare", "--mount", "--propagation", propagation, *user, *more]
        done = subprocess.run([*words, "true"], capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode == 0:
            return words
    raise unittest.SkipTest(f"no mount namespace can be made here: {done.stderr.strip()}")


def state_of(pid):
    """The state of a process, a letter as `ps` shows it; None when it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def alive(pid):
    """Whether a process is there and has not ended."""
    return state_of(pid) not in (None, "Z", "X")


def suspend(pid):
    """Returns when the process is suspended: on a busy machine that is later than the signal."""
    os.kill(pid, signal.SIGSTOP)
    wait_until("it to be suspended", lambda: state_of(pid) == "T")


def keeper_of(yard):
    """The keeper of the yard with this pid: the child of its guard. None while there is none, as where one has died."""
    there = [child for child in children_of(guard_of(yard)) if name_of(child) == "trainyard-keep"]
    return there[0] if there and alive(there[0]) else None


def guard_of(yard):
    for guard in guards_of(yard):
        return guard
    raise AssertionError(f"process {yard} has no guard")


def guards_of(yard):
    return [child for child in children_of(yard) if name_of(child) == "yard-guard"]


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def children_of(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []  # It has ended.


def processes_with(text):
    """The living processes whose environment holds `text`."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in path.read_bytes().split(b"\0") and alive(path.parent.name):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


__all__ = ["CLIENT", "PATIENCE_S", "TRAINYARD", "YardTest", "alive", "children_of", "guard_of", "keeper_of", "name_of", "own_mounts", "processes_with", "replay_records", "wait_until", "json", "os", "pathlib", "signal",
           "subprocess"]
