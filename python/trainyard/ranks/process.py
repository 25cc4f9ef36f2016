"""The process of a rank: what a RankExecutor of the C++ library starts (docs/ranks.md)."""
import atexit
import os
import socket
import sys
import traceback

from ..client import _HELLO, _VERSION, _WELCOME, Refused
from .channel import Channel
from .number import rank_number
from .rank import Rank


def run_as_rank():
    path, token = os.environ.pop("TRAINYARD_RANK_SOCKET"), os.environ.pop("TRAINYARD_RANK_TOKEN")
    logs, unknown = os.environ.pop("TRAINYARD_RANK_LOGS", ""), ""
    try:
        rank, local_rank, ranks = rank_number(os.environ)
    except Refused as why:
        rank, unknown = None, str(why)
    if logs and rank is not None:
        log = os.open(os.path.join(logs, "rank-%d.log" % rank),
                      os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    channel = Channel(connection)
    hello = {"role": "rank", "version": _VERSION, "token": token, "program": unknown or "python"}
    if rank is not None:
        hello["rank"] = rank
        if ranks is not None:
            hello["ranks"] = ranks
    channel.send(_HELLO, 0, hello)
    welcome = channel.receive()
    if welcome.kind != _WELCOME or not welcome.fields.get("ok"):
        sys.exit("trainyard: refused: " + welcome.fields.get("error", "no reason was given"))
    if rank is None:
        sys.exit("trainyard: " + unknown)
    os.environ.update(TRAINYARD_RANK=str(rank), RANK=str(rank), LOCAL_RANK=str(local_rank), WORLD_SIZE=str(ranks or 1))
    try:
        Rank(channel, local_rank).run()
    except (OSError, Refused) as why:
        print("trainyard: %s" % why, file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(_run_exit_hooks())


def _run_exit_hooks():
    """Threads of events may be anywhere: the interpreter is not taken down around them."""
    try:
        atexit._run_exitfuncs()
        return 0
    except BaseException:
        traceback.print_exc()
        return 1
