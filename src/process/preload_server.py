"""Imports modules once, and forks off tasks that have them. In a process of the keeper's.

    python3 -c "exec(...)" path module...

Descriptor 0 is this text, 3 a socket to the keeper, who sends for each task one byte with two
descriptors: what is to run, and a socket to wait at until the keeper knows it. An answer is a number
and a text: that of the task's process, or the errno of what went wrong, negative. The first answer
is 0, when everything is imported, with lines for people; or negative, with why it is not.

A task is forked twice, so that the keeper, as the subreaper of all that it starts, is its parent,
and it outlives this process. It has all that this process has but the state of the generators of
random numbers: those that frameworks share with everybody are seeded anew in each task.
"""
import array
import atexit
import errno
import functools
import gc
import importlib
import io
import os
import random
import runpy
import signal
import socket
import stat
import struct
import sys
import traceback
import types

try:
    import ctypes
except ImportError:
    ctypes = None

_ANSWER = struct.Struct("=qI")  # A number, and how many bytes of text follow.
_NUMBER = struct.Struct("=q")
# The message of a task that cannot begin, at its socket: a step, and an errno, as in start.h.
_FAILURE = struct.Struct("=ii")
_DIRECTORY, _OLD_RESULT, _STDOUT, _STDERR, _WORKING_DIRECTORY = 2, 3, 4, 5, 6
_NOT_PLAIN = 1000
_SECOND_NAME = 1001
_TEXT_MAX = 4096  # The longest text of an answer.
_OURS = "trainyard-preload"  # The name that this text is compiled under.

# The generators of random numbers that a process has one of: the module that defines it, its usual
# name, its functions that set a chosen state, and its state, to be compared.
_GLOBAL_GENERATORS = {
    "random": ("random", ("seed", "setstate"), lambda module: module.getstate()),
    "numpy.random": ("numpy.random", ("seed", "set_state"),
                     lambda module: sys.modules["pickle"].dumps(module.get_state(legacy=False))),
    "torch.random": ("torch", ("manual_seed", "set_rng_state"), lambda module: module.get_rng_state().tolist()),
    "tensorflow.python.framework.random_seed": ("tensorflow", ("set_seed", "set_random_seed"), lambda module: None),
}
_OF_GENERATORS = set(_GLOBAL_GENERATORS) | {"contextlib"}  # Modules between a caller and the generator.
_NAMED_MAX = 5  # Generators of modules in a warning.


def answer(keeper, number, text=""):
    text = text.encode("utf-8", "replace")[:_TEXT_MAX]
    keeper.sendall(_ANSWER.pack(number, len(text)) + text)


def who_asks():
    """The module that has called a generator's function, by itself or by another one of these."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__") in _OF_GENERATORS:
        frame = frame.f_back
    return frame.f_globals.get("__name__", "a module")


class Seeds:
    """Notices the modules that choose the state of a global generator while they are imported, from the
    moment that the generator's own module is there."""

    def __init__(self):
        self.chosen = {}  # By generator: the module that has seeded it on purpose.
        self._before = {}  # By generator: its state before that.
        self._replaced = []
        self._listening = True
        for name in _GLOBAL_GENERATORS:
            if name in sys.modules:
                self._listen_to(name, sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        """As one of sys.meta_path: finds what the others find, and listens to it once it is made."""
        if name not in _GLOBAL_GENERATORS:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is None or not hasattr(spec.loader, "exec_module"):
                continue
            execute = spec.loader.exec_module

            def execute_and_listen(module):
                execute(module)
                self._listen_to(name, module)
            spec.loader.exec_module = execute_and_listen
            return spec
        return None

    def _listen_to(self, name, module):
        for function in _GLOBAL_GENERATORS[name][1]:
            original = getattr(module, function, None)
            if original is not None:
                heard = self._heard(name, original)
                setattr(module, function, heard)
                self._replaced.append((function, heard, original))

    def _heard(self, name, original):
        @functools.wraps(original)
        def choose(*values, **named):
            if not self._listening:
                return original(*values, **named)
            state_of = functools.partial(_GLOBAL_GENERATORS[name][2], sys.modules[name])
            if name not in self.chosen:
                self._before[name] = state_of()
            result = original(*values, **named)
            value = values[0] if values else next(iter(named.values()), None)
            before = self._before[name]
            # Left to chance, or put back to where it was before a seed that held for a while.
            if value is None or (before is not None and before == state_of()):
                self.chosen.pop(name, None)
            else:
                self.chosen[name] = who_asks()
            return result
        return choose

    def stop_listening(self):
        """Leaves the functions as they were, wherever a framework's modules have taken them over."""
        self._listening = False
        sys.meta_path.remove(self)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] not in ("random", "numpy", "torch", "tensorflow"):
                continue
            for function, heard, original in self._replaced:
                if getattr(module, "__dict__", {}).get(function) is heard:
                    setattr(module, function, original)
        # Python itself seeds this one in each fork.
        self._of_python = random.getstate()

    def renew(self):
        """In a task: from the system's entropy, but for those whose state was chosen."""
        if "random" in self.chosen:
            random.setstate(self._of_python)
        modules = {name: sys.modules[name] for name in _GLOBAL_GENERATORS
                   if name in sys.modules and name not in self.chosen}
        if "numpy.random" in modules:
            modules["numpy.random"].seed()
        if "torch.random" in modules:
            modules["torch.random"].seed()  # And CUDA's, when it is made.
        if "tensorflow.python.framework.random_seed" in modules:
            modules["tensorflow.python.framework.random_seed"].set_seed(
                int.from_bytes(os.urandom(4), "little"))

    def notes(self):
        return ["%s seeds %s when it is imported: all tasks begin with the same random numbers of it"
                % (who, _GLOBAL_GENERATORS[name][0]) for name, who in self.chosen.items()]


def owned_generators():
    """The generators that modules have made for themselves: (module, "rng (numpy.random.Generator)").
    Those inside of other objects are not found."""
    kinds, shared = [random.Random], [random._inst]
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    tensorflow = sys.modules.get("tensorflow.python.ops.stateful_random_ops")
    if numpy is not None:
        kinds += [numpy.random.Generator, numpy.random.RandomState, numpy.random.BitGenerator]
        shared.append(numpy.random.mtrand._rand)
    if torch is not None:
        kinds.append(torch.Generator)
        shared.append(torch.default_generator)
    if tensorflow is not None:
        kinds.append(tensorflow.Generator)
    seen = {id(one) for one in shared}
    found = []
    for module_name, module in list(sys.modules.items()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            kind = type(value)  # Asking the object itself could run code of its own.
            if id(value) in seen or not issubclass(kind, tuple(kinds)) or issubclass(kind, random.SystemRandom):
                continue
            seen.add(id(value))
            found.append((module_name, "%s (%s.%s)" % (name, kind.__module__, kind.__name__)))
    return found


def notes_on_generators():
    client = sys.modules.get("trainyard")
    renewed = {function.__module__ for function in getattr(client, "_on_fork", ())}
    found = ["%s.%s" % (module, name) for module, name in owned_generators() if module not in renewed]
    if not found:
        return []
    named = ", ".join(found[:_NAMED_MAX])
    if len(found) > _NAMED_MAX:
        named += " and %d more" % (len(found) - _NAMED_MAX)
    return ["generators in the same state in every task: %s; seed them from TRAINYARD_SEED in a function that you"
            " give to trainyard.on_fork()" % named]


def import_all(path, modules, seeds):
    """Returns what people should know of it, in lines."""
    if sys.path and sys.path[0] == "":  # Not so when it is to look at nothing but what is installed.
        sys.path[0] = path
    sys.argv = [""]
    for name in modules:
        importlib.import_module(name)
    try:
        importlib.import_module("trainyard")  # Its client, where the tasks have it.
    except ImportError:
        pass
    seeds.stop_listening()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise ImportError("importing has initialised CUDA, which does not work in forks")
    notes = seeds.notes() + notes_on_generators()
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        notes.append("importing has left %d threads, which are not there in the tasks: what waits for one of them,"
                     " as computing with torch may, hangs; only import, and compute in the task" % threads)
    for note in notes:
        print("trainyard: " + note, file=sys.stderr)
    # All present objects stay where they are, shared by all.
    gc.collect()
    gc.freeze()
    return notes


def receive(keeper):
    """The descriptors of the next task, or nothing when the keeper wants no more."""
    room = socket.CMSG_SPACE(2 * array.array("i").itemsize)
    data, ancillary, _, _ = keeper.recvmsg(1, room)
    descriptors = array.array("i")
    for _, _, content in ancillary:
        descriptors.frombytes(content)
    return list(descriptors) if data else []


def fork_twice():
    """0 in the grandchild; in this process its number, or the errno of what went wrong, negative.

    The grandchild tells its number itself: what hangs in it before that hangs here, and not with the
    keeper, who ends us then.
    """
    reader, writer = os.pipe()
    try:
        child = os.fork()
    except OSError as error:
        os.close(reader)
        os.close(writer)
        return -error.errno
    if child == 0:
        try:
            grandchild = os.fork()
        except OSError as error:
            os.write(writer, _NUMBER.pack(-error.errno))
            os._exit(0)
        if grandchild != 0:
            os._exit(0)
        os.write(writer, _NUMBER.pack(os.getpid()))
        os.close(reader)
        os.close(writer)
        return 0
    os.close(writer)
    told = os.read(reader, _NUMBER.size)
    os.close(reader)
    os.waitpid(child, 0)
    return _NUMBER.unpack(told)[0] if len(told) == _NUMBER.size else -11  # EAGAIN


def serve(keeper):
    """Forks tasks off. Returns in each of them, with its descriptors."""
    while True:
        descriptors = receive(keeper)
        if not descriptors:
            sys.exit(0)
        sys.stdout.flush()
        sys.stderr.flush()
        number = fork_twice()
        if number == 0:
            keeper.close()
            return descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        answer(keeper, number)


def die_with(keeper):
    """Makes this process die with the keeper, which alone could see that it goes on without a yard."""
    if ctypes is not None:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != keeper:
        os._exit(1)


def open_task_directory(followed, own):
    """Makes what is missing of it. Follows no link below `followed`."""
    os.makedirs(followed or b"/", exist_ok=True)
    at = os.open(followed or b"/", os.O_PATH | os.O_DIRECTORY)
    for part in filter(None, own[len(followed) + 1:].split(b"/")):
        try:
            os.mkdir(part, dir_fd=at)
        except FileExistsError:
            if stat.S_ISLNK(os.stat(part, dir_fd=at, follow_symlinks=False).st_mode):
                raise OSError(_NOT_PLAIN, "")
        above, at = at, os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
        os.close(above)
    return at


def open_log(path, directory):
    """Opens a log without waiting for a reader, and without writing to another file."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOCTTY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = os.open(path, flags, 0o644, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ELOOP):
            error.errno = _NOT_PLAIN
        raise
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode):
        raise OSError(_NOT_PLAIN, "")
    if about.st_nlink > 1:
        raise OSError(_SECOND_NAME, "")
    os.ftruncate(file, 0)
    os.set_blocking(file, True)
    return file


def make_files(permission, followed, own, to_make, result, copy_of_result, out, err,
               working_directory):
    """Says at the socket what went wrong, and ends then."""
    def named(path):
        return path[len(own) + 1:] if path.startswith(own + b"/") else path

    step = _DIRECTORY
    try:
        directory = open_task_directory(followed, own)
        if to_make != own:
            try:
                os.mkdir(named(to_make), dir_fd=directory)
            except FileExistsError:
                os.close(os.open(named(to_make), os.O_PATH | os.O_DIRECTORY, dir_fd=directory))
        step = _OLD_RESULT
        for old in filter(None, (result, copy_of_result)):
            try:
                os.unlink(named(old), dir_fd=directory)
            except FileNotFoundError:
                pass
        step = _STDOUT
        file = open_log(named(out), directory)
        os.dup2(file, 1)
        os.close(file)
        step = _STDERR
        file = os.dup(1) if err == out else open_log(named(err), directory)
        os.dup2(file, 2)
        os.close(file)
        os.close(directory)
        step = _WORKING_DIRECTORY
        os.chdir(working_directory)
    except OSError as error:
        number = errno.ENOTDIR if error.errno == errno.EEXIST else error.errno
        os.write(permission, _FAILURE.pack(step, number))
        os._exit(127)


def become_task(keeper, launch, permission):
    """Returns the arguments that come after the interpreter's own."""
    if os.read(permission, 1) != b"g":
        os._exit(1)  # The keeper has changed its mind, or is gone.
    os.setsid()
    die_with(keeper)
    fields = os.pread(launch, os.fstat(launch).st_size, 0).split(b"\0")
    make_files(permission, *fields[:8])
    for descriptor in (launch, permission):  # Closing the second says that it has begun.
        os.close(descriptor)
    interpreter, arguments = int(fields[8]), int(fields[9])
    command = [os.fsdecode(field) for field in fields[10:10 + arguments]]
    os.environ.clear()
    for variable in fields[10 + arguments:-1]:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    sys.orig_argv = command
    return command[interpreter:]


def renew(seeds):
    """Renews the state that a process that has just been started would not share with others."""
    seeds.renew()
    client = sys.modules.get("trainyard")
    if hasattr(client, "_begin_fork"):
        client._begin_fork()


def new_main(file):
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__, __file__=file, __cached__=None)
    if file is None:
        del main.__file__
    sys.modules["__main__"] = main
    return main.__dict__


def run(arguments):
    kind = arguments[0]
    name = os.path.basename(arguments[1] if kind in ("-m", "-c") and len(arguments) > 1 else kind)
    try:
        with open("/proc/self/comm", "w") as comm:  # The name in `ps` and `top`.
            comm.write(name)
    except OSError:
        pass
    new_main(None)  # The module that runpy leaves in place of its own.
    if kind == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c"] + arguments[2:]
        exec(compile(arguments[1], "<string>", "exec"), new_main(None))
    elif os.path.isdir(kind):
        sys.argv = arguments
        runpy.run_path(kind, run_name="__main__")
    else:
        sys.argv = arguments
        try:
            with io.open_code(os.path.abspath(kind)) as file:
                text = file.read()
        except OSError as error:
            print("%s: can't open file %r: [Errno %d] %s" % (
                sys.executable, os.path.abspath(kind), error.errno, error.strerror), file=sys.stderr)
            sys.exit(2)
        exec(compile(text, kind, "exec"), new_main(kind))


def exit_code(error):
    """The exit code of a script's end; reports errors as the interpreter does."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 255
        print(error.code, file=sys.stderr)
        return 1
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename in (_OURS, "<frozen runpy>", runpy.__file__):
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    return 1


def flush_files():
    """Flushes files that a script left open. Text files first: they write to the others."""
    files = [thing for thing in gc.get_objects() if isinstance(thing, io.IOBase)]
    for file in sorted(files, key=lambda file: not isinstance(file, io.TextIOBase)):
        try:
            file.flush()
        except (OSError, ValueError):
            pass  # Closed, or not to be written to.


def leave(code, interrupted, modules_before):
    """Ends as the interpreter would, but for taking apart what is shared: that would first copy it,
    and take most of the time of a short task."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()  # Waits for threads that are no daemons.
        atexit._run_exitfuncs()
        flush_files()
        # So that the finalizers of objects run.
        main_module = sys.modules["__main__"].__dict__
        if main_module is not globals():  # It is when the script has not begun.
            main_module.clear()
        for name in list(sys.modules):
            if name not in modules_before:
                getattr(sys.modules[name], "__dict__", {}).clear()
        gc.collect()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in sys.stdout, sys.stderr:
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            code = code or 120  # As the interpreter does, when what was printed is lost.
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)


def in_a_line(error):
    """Its name and the first line of its text; notes come after that. A SyntaxError has its message in
    the last line."""
    lines = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    if not lines:
        return type(error).__name__
    return lines[-1] if isinstance(error, SyntaxError) else lines[0]


def main():
    os.set_inheritable(3, False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    keeper, keeper_process = socket.socket(fileno=3), os.getppid()
    seeds = Seeds()
    try:
        notes = import_all(sys.argv[1], sys.argv[2:], seeds)
    except BaseException as error:
        answer(keeper, -1, in_a_line(error))
        raise
    answer(keeper, 0, "\n".join(notes))
    arguments = become_task(keeper_process, *serve(keeper))
    modules_before = set(sys.modules)
    code, interrupted = 0, False
    try:
        renew(seeds)
        run(arguments)
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        code = exit_code(error)
    leave(code, interrupted, modules_before)


main()
