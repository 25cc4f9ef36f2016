"""What a run has written down, as far as a yard needs it (docs/journal.md). Only read, and a moment at a
time, so that the program is not held up."""
import collections
import json
import os
import sqlite3
import urllib.parse

from .task_group import commands_of, verbatim

_BUSY_S = 30  # For how long a file system without a write-ahead log may keep a reader out.
_ENDED = 2  # The first of the phases of a group that has ended.
# Where a yard keeps what it hands over, in the run's directory, where no group may have this name.
UNDER = "trainyard.python"
# The batches that a yard has begun, beside which others may submit theirs.
_OF_THE_YARD = "b.complete AND (b.number = 1 OR instr(b.job_file, '/%s/'))" % UNDER

# A task as a batch has it. `called`: by which commands know it.
Row = collections.namedtuple("Row", "id, batch, called, command, state")


class Journal:
    def __init__(self, directory):
        path = urllib.parse.quote(os.path.join(directory, "journal.db"))
        self._connection = sqlite3.connect("file:%s?mode=ro" % path, uri=True, isolation_level=None,
                                           timeout=_BUSY_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()

    def first_group(self):
        """The name of the group that the run began with."""
        return self._rows("SELECT name FROM groups WHERE batch = 1 AND position NOT NULL ORDER BY position")[0][0]

    def given(self, group):
        """Its tasks as the run was given them, batch by batch: a task that had other parameters is in several."""
        rows = self._rows(
            'SELECT l.id, b.number, g.called, l.state FROM groups g JOIN task_list l ON l."group" = g.called '
            'JOIN batches b ON b.number = g.batch WHERE ' + _OF_THE_YARD +
            ' AND g.name = ? AND g.position NOT NULL ORDER BY b.number', group)
        commands = {batch: commands_of(self._job_text(batch)) for batch in {row[1] for row in rows}}
        return [Row(task, batch, "%s/%s" % (called, task), commands[batch][verbatim(task)], state)
                for task, batch, called, state in rows]

    def _job_text(self, batch):
        if batch == 1:  # Each execution has it as it was then.
            return self._rows("SELECT job_text FROM executions ORDER BY number DESC LIMIT 1")[0][0]
        return self._rows("SELECT job_text FROM batches WHERE number = ?", batch)[0][0]

    def executions(self):
        return self._rows("SELECT count(*) FROM executions")[0][0]

    def has_ended(self, group):
        """Whether all of its tasks have, whatever has become of them."""
        phases = self._rows('SELECT g.phase FROM groups g JOIN batches b ON b.number = g.batch WHERE ' +
                            _OF_THE_YARD + ' AND g.name = ? AND g.position NOT NULL', group)
        return bool(phases) and all(phase >= _ENDED for phase, in phases)

    def has_open_groups(self):
        return bool(self._rows("SELECT 1 FROM groups WHERE position NOT NULL AND phase < ? LIMIT 1", _ENDED))

    def was_told_to_end(self):
        """Whether this execution ends before what it was given has ended."""
        return bool(self._rows("SELECT 1 FROM events WHERE kind = 'interrupt' AND execution = "
                               "(SELECT max(number) FROM executions) LIMIT 1"))

    def tasks(self, group):
        """What has become of its tasks, by id: of a task with other parameters since, what it was given last."""
        found = {}
        for task, *row in self._rows(
                'SELECT l.id, l."group", l.directory, CASE WHEN l.failure = \'\' OR l.state <> \'FAILED\' '
                'THEN l.state ELSE l.failure END, l.message, l.result, x.text, e.warning '
                'FROM groups g JOIN task_list l ON l."group" = g.called '
                'JOIN batches b ON b.number = g.batch LEFT JOIN ended e ON e.task = l.task '
                'LEFT JOIN tracebacks x ON x.task = l.task AND x.attempt = l.attempt '
                'WHERE ' + _OF_THE_YARD + ' AND g.name = ? AND g.position NOT NULL ORDER BY b.number', group):
            group_called, directory, status, message, result, traceback, warning = row
            found[task] = {"called": "%s/%s" % (group_called, task), "directory": directory, "status": status,
                           "message": message or warning or "", "traceback": traceback or "",
                           "warning": warning,
                           "result": json.loads(result) if result else {}}
        return found

    def _rows(self, query, *values):
        return self._connection.execute(query, values).fetchall()


def executions_of(directory):
    """How often the run there was begun and resumed; 0 while there is none, or a file that is none yet."""
    try:
        with Journal(directory) as journal:
            return journal.executions()
    except sqlite3.DatabaseError:
        return 0


def has_open_groups(directory):
    """Whether tasks of the run there may not have ended: also where that cannot be read."""
    try:
        with Journal(directory) as journal:
            return journal.has_open_groups()
    except sqlite3.DatabaseError:
        return True
