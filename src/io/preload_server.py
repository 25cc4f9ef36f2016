"""Imports modules once, and forks off tasks that have them. In a process of the keeper's.

    python3 -c "exec(...)" path module...

Descriptor 0 is this text, 3 a socket to the keeper, who sends for each task one byte with four
descriptors: what is to run, its standard output and error, and a socket to wait at until the keeper
knows it. The answer is the number of the task's process, or the errno of what went wrong, negative.
A first answer of 0 says that everything is imported.

A task is forked twice, so that the keeper, as the subreaper of all that it starts, is its parent,
and it outlives this process.
"""
import array
import atexit
import gc
import importlib
import io
import os
import runpy
import signal
import socket
import struct
import sys
import types

try:
    import ctypes
except ImportError:
    ctypes = None

_ANSWER = struct.Struct("=q")
_OURS = "trainyard-preload"  # The name that this text is compiled under.


def answer(keeper, number):
    keeper.sendall(_ANSWER.pack(number))


def import_all(path, modules):
    if sys.path and sys.path[0] == "":  # Not so when it is to look at nothing but what is installed.
        sys.path[0] = path
    sys.argv = [""]
    for name in modules:
        importlib.import_module(name)
    try:
        importlib.import_module("trainyard")  # Its client, where the tasks have it.
    except ImportError:
        pass
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        sys.exit("ImportError: importing has initialised CUDA, which does not work in forks")
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        print("trainyard: importing has left %d threads, which are not there in the tasks" % threads,
              file=sys.stderr)
    # What is there now stays where it is, shared by all.
    gc.collect()
    gc.freeze()


def receive(keeper):
    """The descriptors of the next task, or nothing when the keeper wants no more."""
    room = socket.CMSG_SPACE(4 * array.array("i").itemsize)
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
            os.write(writer, _ANSWER.pack(-error.errno))
            os._exit(0)
        if grandchild != 0:
            os._exit(0)
        os.write(writer, _ANSWER.pack(os.getpid()))
        os.close(reader)
        os.close(writer)
        return 0
    os.close(writer)
    told = os.read(reader, _ANSWER.size)
    os.close(reader)
    os.waitpid(child, 0)
    return _ANSWER.unpack(told)[0] if len(told) == _ANSWER.size else -11  # EAGAIN


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
    """The keeper is the only one who could see that this goes on without a yard."""
    if ctypes is not None:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != keeper:
        os._exit(1)


def become_task(keeper, launch, out, err, permission):
    """Returns the arguments that come after the interpreter's own."""
    if os.read(permission, 1) != b"g":
        os._exit(1)  # The keeper has changed its mind, or is gone.
    os.setsid()
    die_with(keeper)
    os.write(permission, b"s")
    os.dup2(out, 1)
    os.dup2(err, 2)
    text = os.pread(launch, os.fstat(launch).st_size, 0)
    for descriptor in (launch, out, err, permission):
        os.close(descriptor)
    fields = text.split(b"\0")
    directory, interpreter, arguments = fields[0], int(fields[1]), int(fields[2])
    command = [os.fsdecode(field) for field in fields[3:3 + arguments]]
    os.chdir(directory)
    os.environ.clear()
    for variable in fields[3 + arguments:-1]:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    sys.orig_argv = command
    return command[interpreter:]


def renew():
    """What a process that has just been started would not have in common with all others."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    client = sys.modules.get("trainyard")
    if hasattr(client, "_connect"):
        client._connect()


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
        with open("/proc/self/comm", "w") as comm:  # What `ps` and `top` call it.
            comm.write(name)
    except OSError:
        pass
    new_main(None)  # What runpy leaves behind in the place of its own.
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
    """What a script's end comes to, told as the interpreter does."""
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
    """What a script has written to files that nobody closes. Texts first: they write to the others."""
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
        # So that objects are told that they go.
        sys.modules["__main__"].__dict__.clear()
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


def main():
    os.set_inheritable(3, False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    keeper, keeper_process = socket.socket(fileno=3), os.getppid()
    import_all(sys.argv[1], sys.argv[2:])
    answer(keeper, 0)
    arguments = become_task(keeper_process, *serve(keeper))
    modules_before = set(sys.modules)
    code, interrupted = 0, False
    try:
        renew()
        run(arguments)
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        code = exit_code(error)
    leave(code, interrupted, modules_before)


main()
