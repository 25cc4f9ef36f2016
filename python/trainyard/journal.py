"""What a run has written down, as far as a yard needs it (docs/journal.md). Only read, and a moment at a
time, so that the program is not held up."""
import json
import os
import sqlite3
import urllib.parse

_BUSY_S = 30  # For how long a file system without a write-ahead log may keep a reader out.
_ENDED = 2  # The first of the phases of a group that has ended.


class Journal:
    def __init__(self, directory):
        path = urllib.parse.quote(os.path.join(directory, "journal.db"))
        self._connection = sqlite3.connect("file:%s?mode=ro" % path, uri=True, isolation_level=None,
                                           timeout=_BUSY_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()

    def groups(self):
        """The ids of the tasks of each group, in the order of the groups."""
        found = {}
        for name, task in self._rows(
                'SELECT g.name, t.id FROM groups g JOIN tasks t ON t.group_number = g.number '
                'JOIN batches b ON b.number = g.batch WHERE b.complete AND t.position NOT NULL '
                'ORDER BY g.batch, g.position'):
            found.setdefault(name, set()).add(task)
        return found

    def submitted(self, group):
        """The ids of those of its tasks that came after the run had begun."""
        return {task for task, in self._rows(
            'SELECT t.id FROM groups g JOIN tasks t ON t.group_number = g.number '
            'JOIN batches b ON b.number = g.batch WHERE b.complete AND t.position NOT NULL '
            'AND g.name = ? AND g.batch > 1', group)}

    def executions(self):
        return self._rows("SELECT count(*) FROM executions")[0][0]

    def has_ended(self, group):
        """Whether all of its tasks have, whatever has become of them."""
        phases = self._rows("SELECT phase FROM groups WHERE name = ? AND position NOT NULL", group)
        return bool(phases) and all(phase >= _ENDED for phase, in phases)

    def tasks(self, group):
        """What has become of its tasks, by id."""
        found = {}
        for task, *row in self._rows(
                'SELECT l.id, l."group", l.directory, CASE WHEN l.failure = \'\' OR l.state <> \'FAILED\' '
                'THEN l.state ELSE l.failure END, l.message, l.result, b.text '
                'FROM groups g JOIN task_list l ON l."group" = g.called '
                'LEFT JOIN tracebacks b ON b.task = l.task AND b.attempt = l.attempt '
                'WHERE g.name = ? AND g.position NOT NULL', group):
            group_called, directory, status, message, result, traceback = row
            found[task] = {"called": "%s/%s" % (group_called, task), "directory": directory, "status": status,
                           "message": message, "traceback": traceback or "",
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
