"""How a task gets from the program that made it into its process: as a file with two pickles, what the
process needs before it can read the object, and the object.

Where the object is of the program's `__main__`, or has something that is, the process imports that
again under the name `__mp_main__`, as those do that multiprocessing spawns: what must run in the
program alone stands under `if __name__ == "__main__":`.
"""
import os
import pickle
import runpy
import sys
import types

is_importing_main = False  # While the program's script runs again in the process of a task.
_old_main = None  # Kept: its globals are in use, and would be cleared with it.


def write(path, task, task_id):
    """The task as its process will have it, whole or not at all."""
    options, task._options = task._options, dict(task._options, id=task_id)
    try:
        pickled = pickle.dumps(task)
        main = _main() if b"__main__" in pickled else None
        if main is None and type(task).__module__ == "__main__":
            raise TypeError("%s is of a __main__ that is no file" % type(task).__name__)
    except Exception as error:
        raise TypeError("the task %r cannot be handed to its process: %s" % (task_id, error)) from error
    finally:
        task._options = options
    with open(path + ".new", "wb") as file:
        pickle.dump({"path": [entry or os.getcwd() for entry in sys.path], "arguments": sys.argv,
                     "main": main}, file)
        file.write(pickled)
    os.replace(path + ".new", path)


def read(path):
    """The task, in its process."""
    with open(path, "rb") as file:
        program = pickle.load(file)
        sys.path[:], sys.argv[:] = program["path"], program["arguments"]
        _import_main(program["main"])
        return pickle.load(file)


def _main():
    """How __main__ is imported again: (function of runpy, name or path); None when it cannot be."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return "run_module", spec.name
    path = getattr(main, "__file__", None)
    return ("run_path", os.path.abspath(path)) if path and os.path.exists(path) else None


def _import_main(main):
    global is_importing_main, _old_main
    if main is None:
        return
    function, name = main
    module = types.ModuleType("__mp_main__")
    is_importing_main = True
    try:
        if function == "run_module":
            module.__dict__.update(runpy.run_module(name, run_name="__mp_main__", alter_sys=True))
        else:
            module.__dict__.update(runpy.run_path(name, run_name="__mp_main__"))
    finally:
        is_importing_main = False
    _old_main = sys.modules["__main__"]
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
