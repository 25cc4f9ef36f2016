"""The components of a rank: classes and functions in a user's scripts."""
import importlib.util
import os
import sys


class _Function:
    """A function in the place of an executor."""

    def __init__(self, call, args):
        self._call, self._args = call, args

    def execute(self, task, data, context, stop):
        return self._call(task, data, context, stop, **self._args)


def make_component(args):
    path = os.path.abspath(args["script"])
    name = os.path.splitext(os.path.basename(path))[0]
    if name not in sys.modules or getattr(sys.modules[name], "__file__", None) != path:
        directory = os.path.dirname(path)
        if directory not in sys.path:
            sys.path.insert(0, directory)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None:
            raise ImportError("'%s' is no Python script" % args["script"])
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    entry = sys.modules[name]
    for part in args["entry"].split("."):
        entry = getattr(entry, part)
    given = args.get("args") or {}
    return entry(**given) if isinstance(entry, type) else _Function(entry, given)
