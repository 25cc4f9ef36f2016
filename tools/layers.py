#!/usr/bin/python3
"""Checks the rules that no compiler checks: who may include whom, which library belongs to which
folder, that a folder which touches no machine names nothing that does, that a namespace is its folder's and a name in an unnamed one too, who may call the system and
who may open a file without the function for it, that a comment names no file that is not there, that no source repeats an include of its header, that no result of the library is dropped unseen, that no test sleeps, that each test file has tests
and is built, and that no work is left marked as urgent.

Sleeps that it cannot see: those of a script that a test starts, of a program or a duration in a variable, and a wait with a
bound for what never happens (`event.wait(1)`, `changed.wait_for(lock, 1s)`), which looks like a wait for what does.

The order of LAYERS is the architecture: a folder may include those before it, never those after.
"""
import ast
import collections
import os
import pathlib
import re
import sys

LAYERS = ["base", "model", "schedule", "wire", "sys", "hardware", "process", "link", "journal", "run", "queue",
          "text", "settings", "job", "plan", "pipeline", "ranks", "workers", "report", "tell", "library", "app", "cli", "sim"]
# The simulation is a library of tests. It comes last, so that nothing in src/ may use it.
ROOTS = dict.fromkeys(LAYERS, "src") | {"sim": "tests"}
# The folders that decide and do not touch the machine; "queue/rules" is a part of queue/.
QUIET = {"base", "model", "schedule", "wire", "plan", "app", "queue/rules", "sim"}
# Quiet folders that may include headers of the others, and all that they may name from them: values and pure functions,
# and for plan/ the loop, which a made-up machine drives.
TAKES = {
    "plan": {"journal::Recorder", "run::Machine", "run::Observer", "run::drive"},
    # Records and words of all of these; the machine itself is given to it as functions.
    "app": {"job", "journal", "queue", "report", "run", "settings", "text", "link::kAskedAtOnce"},
    "queue/rules": {"run::ExitCode", "run::RunOutcome", "run::kNotAllDone", "sys::ProcessLimits", "sys::ProgramEnd"},
}
# Libraries on their own, and all they may stand on.
ALONE = {
    "pipeline": {"base", "wire", "sys"},
    "ranks": {"base", "model", "wire", "sys", "process", "link", "text", "pipeline"},
    "workers": {"base", "model", "wire", "sys", "process", "link", "pipeline", "ranks"},
    "sim": {"base", "model", "schedule", "wire", "plan", "journal", "run"},
}
ONLY_HERE = {
    "boost/": {"sys"},
    "sqlite3.h": {"journal"},
    "yaml-cpp/": {"text"},
    "re2/": {"text"},
    "CLI/": {"cli"},
    "curl/": {"tell"},
    "nats/": {"workers"},
    "<thread>": {"sys", "hardware", "process", "link", "pipeline", "ranks", "workers", "library"},
}
# Who may call the system, and why those that are not of the machine's half may.
CALLS = {
    "sys": "", "hardware": "", "process": "", "link": "",
    "journal": "asks what kind of file system a run is on, and copies a journal it may not write beside",
    "tell": "no server that is told something may hold up or end a run: a process of its own does it",
    "ranks": "the threads of a group wake each other, and a rank whose parent is gone ends itself",
    "library": "a task is a fork of the program, and leads itself",
}
# Where only some files of such a folder may.
CALLING_FILES = {"tell": {"teller.cc", "teller_process.cc"},
                 "ranks": {"python_client.cc", "rank_group.cc", "rank_group_thread.cc", "rank_process.cc"}}
CALL = re.compile(
    r"(?<![\w>])::(?:accept4?|bind|chdir|chmod|close|connect|dup[23]?|epoll_\w+|exec\w+|_exit|fcntl|fork|fstat|fsync|ftruncate|"
    r"getpid|getppid|ioctl|kill|link|listen|lseek|memfd_create|mkdir|mkdtemp|mkfifo|mmap|munmap|open|openat|pidfd_\w+|pipe2?|"
    r"poll|ppoll|prctl|pread|pwrite|read|readlink|recv\w*|rename|rmdir|sched_\w+|send\w*|setenv|setpgid|setrlimit|"
    r"setsid|sigaction|signalfd|socket\w*|stat|statfs|symlink|syscall|timerfd_\w+|umask|unlink\w*|unsetenv|usleep|"
    r"waitid|waitpid|write|writev)\(")
# Who may open a file without sys::open_file(), and why nobody can have put a pipe or a link there, or why it does no harm.
OPENS = {
    "src/cli/host_programs.cc": "the program itself",
    "src/link/control_socket.cc": "a table of the kernel",
    "src/process/keeper_spawn.cc": "a file of a control group",
    "src/process/kept_descriptors.cc": "/dev/null",
    "src/process/memory_group.cc": "files of a control group",
    "src/process/start.cc": "a process that shares the keeper's memory makes raw calls alone; it checks what it opens as open_file() does",
    "src/text/text_file.cc": "files that the user names, which may be links; pipes are refused before, and so are links where a task may have made them",
}
OPEN = re.compile(r"(?<![\w>])::open(?:at2?)?\(|(?<![\w>.:])open(?:at2?)?\((?:\w+, )?[\w.>()-]+\.c_str\(|\b(?:f|fre)open\(|\bcreat\(|"
                  r"\bSYS_open\w*|\bstd::(?:basic_)?[io]?fstream\b|_addopen\(")
# What the quiet half may not have: the doors to the machine.
LOUD_HEADERS = re.compile(
    r"<(sys/|unistd\.h|fcntl\.h|signal\.h|csignal|spawn\.h|fstream|iostream|filesystem|thread|mutex|random|ctime|time\.h)")
# A name from a folder that is not quiet, or all of its names.
LOUD = "|".join(folder for folder in LAYERS if folder not in QUIET)
LOUD_NAME = re.compile(rf"\b(?:{LOUD})(?:::\w+)+|(?:using namespace|namespace \w+ =) (?:\w+::)*(?:{LOUD});")
HEAVY = re.compile(r"nlohmann/json\.hpp|boost/|CLI/|curl/|yaml-cpp/|sqlite3\.h")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<][^">]+[">])')
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{")
TYPE = re.compile(r"^(?:template <[^>]*> )?(?:class|struct|enum class|enum) (\w+)(?: final)?(?: :.*)? ?\{")
# A function or a constant at the beginning of a line; what has a class before it is in that class.
UNNAMED = re.compile(r"^(?!using |template|static_assert|TEST|RC_|INSTANTIATE)[\w\[][\w:<>,&*\[\] ]* [&*]?(\w+)(?:\(|(?: =|\{|\[\]| \{)[^;]*)")
# A function that begins a line, with its parameters.
FUNCTION = re.compile(r"^(?!using |template|static_assert|return |TEST|RC_)[\w\[][\w:<>,&*\[\] ]* [&*]?(\w+)\(([^()]*)\)", re.MULTILINE)
# What a parameter has besides its type, and the types that take each other's values.
BESIDE_TYPE = re.compile(r"\s*=.*|(?<=[\s&*>])\w+\s*(?==|$)|\bconst\b|&|\s")
STRING = re.compile(r"std::string(?:_view)?|char\*")
# A function of include/ that returns a Result without [[nodiscard]].
DROPPED = re.compile(r"^\s*(?:static |virtual |inline )*Result<.*> \w+\(")
# A file of ours in a comment: one of our folders, a name, an ending.
MENTION = re.compile(r"(?<![\w/.*-])((?:src/|include/|tools/|tests/|docs/)?(?:[\w-]+/)+[\w.-]+\.(?:h|cc|py|md|yaml|json))\b")
# Tests that sleep or read the machine's clock, and why. The others wait for what happens, with a bound.
TIMED = {
    "tests/chaos/scenario.py": "faults come at random moments, of which no process knows",
    "tests/e2e/yard.py": "the one place where e2e tests wait",
    "tests/fake_nvml/nvml.cc": "a driver that hangs, as a test asks for it",
    "tests/slurm.py": "waits for the daemons that it starts, with a bound",
    "src/ranks/test_components.cc": "executors that hang",
    "src/sys/test_wait.h": "the one place where C++ tests wait",
    "src/workers/parallel_queues_test.cc": "emits one event a millisecond, as the socket of one that does not read holds more",
}
SLEEP = re.compile(r"\b(?:sleep|sleep_for|sleep_until|usleep|(?:clock_)?nanosleep|thrd_sleep|sigtimedwait)\b|"
                   r"\bp?poll\((?:nullptr|NULL|0|\{\}), 0,|\bp?select\(0, (?:nullptr|NULL|0), (?:nullptr|NULL|0), (?:nullptr|NULL|0),")
# A text of C++ with which a shell sleeps.
SLEEP_COMMAND = re.compile(r'"(?:/\w+)*/?sleep\b')
# Texts and comments of C++, in which tests have the scripts of their tasks.
SAID = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
PYTHON_CLOCK = {"sleep", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time_ns", "clock_gettime"}
PYTHON_WAIT = re.compile(
    r"time\.time\(|(?:\w+\.)?(?:Event|Condition)\(\)\.wait\(|select\.select\((?:\[\]|\(\)), (?:\[\]|\(\)), (?:\[\]|\(\)),|"
    r"select\.e?poll\(\)\.poll\(|(?:\w+\.)?sigtimedwait\(|(?:\w+\.)?Queue\(\)\.get\(|"
    r"(?:(?:subprocess\.)?(?:run|call|check_call|check_output)|os\.system)\((?:args=)?\[?['\"](?:/\w+)*/?sleep\b|"
    r"(?:subprocess\.)?Popen\((?:args=)?\[?['\"](?:/\w+)*/?sleep\b.*\)\.(?:wait|communicate)\(")
TEST_CASE = re.compile(r"^(?:(?:TYPED_)?TEST(?:_F|_P)?|RC_GTEST_\w+)\(|^    def test_", re.MULTILINE)
SOURCES = ("src", "include", "tests", "bench", "fuzz", "examples")


def folder_of(path):
    """The folder of the layers that the file is in, also one of src/ that has no place there; '' for other files."""
    root, folder = (*path.parts, "")[:2]
    return folder if root == ROOTS.get(folder, "src") else ""


def quiet_folder(path):
    """The folder of QUIET that the file is in; '' for other files."""
    folder = folder_of(path)
    return next((place for place in ("/".join(path.parts[1:3]), folder) if folder and place in QUIET), "")


def is_test(path):
    return (path.stem.endswith("_test") or path.stem.startswith(("test_", "fake_")) or "planted" in path.parts or
            path.parts[0] == "tests" and not folder_of(path))


def includes(path):
    """The lines and targets of the includes of a file; none if there is no file."""
    lines = path.read_text().splitlines() if path else []
    return [(number, match[1]) for number, line in enumerate(lines, 1) if (match := INCLUDE.match(line))]


def own_header(path):
    """The header that a source or its test includes first and is named for; None if it has none."""
    own = includes(path)[0][1].strip('"') if path.suffix == ".cc" and includes(path) else ""
    if pathlib.Path(own).stem in (path.stem, path.stem.removesuffix("_test")):
        return next((there for top in SOURCES if (there := pathlib.Path(top, own)).is_file()), None)
    return None


def include_faults(path, folder, number, target):
    # The compiler finds our headers in angle brackets as well.
    if any(pathlib.Path(top, target[1:-1]).is_file() for top in ("src", "include", "tests")):
        target = f'"{target[1:-1]}"'
    if target.startswith('"') and ("/" not in target or "../" in target):
        yield f"{path}:{number}: includes are full paths from the root of the sources"
    used = target.strip('"').split("/")[0]
    if target.startswith('"') and folder in LAYERS and used in LAYERS and used != folder:
        if LAYERS.index(used) > LAYERS.index(folder):
            yield f"{path}:{number}: {folder}/ may not use {used}/, which comes after it"
        elif folder in ALONE and used not in ALONE[folder] and not is_test(path):
            yield f"{path}:{number}: {folder}/ stands on its own and may not use {used}/"
    quiet = quiet_folder(path)
    # A part of a folder may not use the rest of it.
    is_of_rest = quiet not in ("", folder) and used == folder and not target.startswith(f'"{quiet}/')
    if quiet and (LOUD_HEADERS.match(target) or is_of_rest) and not is_test(path):
        yield f"{path}:{number}: {quiet}/ is quiet and may not use {target}"
    if folder in LAYERS and path.suffix == ".h" and HEAVY.search(target):
        yield f"{path}:{number}: {target} is heavy: only .cc files include it"
    for library, homes in ONLY_HERE.items():
        if library in target and folder in LAYERS and folder not in homes:
            yield f"{path}:{number}: only {', '.join(sorted(homes))} may use {target}"


def namespace_faults(path, folder, number, name, is_public):
    """Internals are in the namespace of their folder; what include/ declares is in trainyard."""
    parts = name.split("::")
    if folder not in LAYERS or parts[0] != "trainyard" or folder == "base":
        return
    if is_public and (len(parts) == 1 or parts[1] == "detail"):
        return
    if len(parts) == 1 or parts[1] != folder:
        yield f"{path}:{number}: namespace {name} is not trainyard::{folder}"


def comment_faults(path, number, line):
    at = line.find("//")
    if at < 0 or "NOLINT" in line:
        return
    for mention in MENTION.findall(line[at:]):
        top = mention.split("/")[0]
        inside = pathlib.Path(ROOTS.get(top, "src"), mention)
        if top in LAYERS and not inside.exists() or top in ("src", "include", "tools", "tests", "docs") and not pathlib.Path(mention).exists():
            yield f"{path}:{number}: there is no file {mention}"


def faults(path):
    folder = folder_of(path)
    if path.parts[0] == "src" and folder not in LAYERS:
        yield f"{path}:1: the folder {path.parts[1]}/ has no place in the order of the layers"
    lines = path.read_text().splitlines()
    is_public = any(target.startswith('"trainyard/') for _, target in [*includes(path), *includes(own_header(path))])
    if path.suffix == ".h" and not (lines and lines[0].startswith("// ")):
        yield f"{path}:1: a header starts with what it is for"
    for number, line in enumerate(lines, 1):
        if "TODO(now)" in line:
            yield f"{path}:{number}: TODO(now) is for before the commit"
        if match := INCLUDE.match(line):
            yield from include_faults(path, folder, number, match[1])
        if match := NAMESPACE.match(line):
            yield from namespace_faults(path, folder, number, match[1], is_public)
        may_call = folder in CALLS and path.name in CALLING_FILES.get(folder, {path.name})
        if folder in LAYERS and not may_call and not is_test(path) and CALL.search(line):
            yield f"{path}:{number}: may not call the system: {CALL.search(line)[0]}"
        if folder in LAYERS and folder != "sys" and str(path) not in OPENS and not is_test(path) and OPEN.search(line.partition("//")[0]):
            yield f"{path}:{number}: may not open a file but by sys::open_file(): {OPEN.search(line)[0]}"
        if path.parts[0] == "include" and DROPPED.match(line):
            yield f"{path}:{number}: a function that returns a Result is [[nodiscard]]"
        takes = None if is_test(path) else TAKES.get(quiet_folder(path))
        for name in LOUD_NAME.findall(line.partition("//")[0]) if takes is not None else ():
            if not any(name == each or name.startswith(f"{each}::") for each in takes):
                yield f"{path}:{number}: {quiet_folder(path)}/ is quiet and may not use {name}"
        yield from comment_faults(path, number, line)


def repeats(path):
    """The includes of a source that its own header has already."""
    has = {target for _, target in includes(own_header(path))}
    for number, target in includes(path):
        if target in has:
            yield f"{path}:{number}: {own_header(path)} includes {target} already"


def types(path):
    """The types that a header defines, each with its namespace."""
    namespace = []
    for line in path.read_text().splitlines():
        if match := NAMESPACE.match(line):
            namespace.append(match[1])
        elif line.startswith("}  // namespace") and namespace:
            namespace.pop()
        elif match := TYPE.match(line):
            yield "::".join([*namespace, match[1]])


def twice(files):
    """A name that two headers define in one namespace: ill-formed, and no compiler says so."""
    homes = collections.defaultdict(list)
    for path in files:
        if path.suffix == ".h" and (folder_of(path) or path.parts[0] == "include"):
            for name in types(path):
                homes[name].append(path)
    for name, paths in homes.items():
        if len(paths) > 1:
            yield f"{paths[1]}: {name} is defined in {paths[0]}, too"


def unnamed(path):
    """The functions, constants and types that stand in the unnamed namespace of a source."""
    inside = False
    for line in path.read_text().splitlines():
        if line in ("namespace {", "}  // namespace"):
            inside = line == "namespace {"
        elif inside and (match := TYPE.match(line) or UNNAMED.match(line)):
            yield match[1]


def hidden(files):
    """Sources of a folder are compiled together: a name in the unnamed namespace of two of them is
    one name, and the overload that is taken may be the other's."""
    homes = collections.defaultdict(list)
    for path in files:
        if path.suffix == ".cc" and folder_of(path) and "planted" not in path.parts:
            for name in sorted(set(unnamed(path))):
                homes[folder_of(path), is_test(path), name].append(path)
    for (_, _, name), paths in homes.items():
        for path in paths[1:]:
            yield f"{path}: {name} stands in the unnamed namespace of {paths[0]}, too"


def functions(text):
    """The functions of a text: their names and types of parameters, where those of strings are one."""
    for name, parameters in FUNCTION.findall(text):
        yield name, tuple(STRING.sub("string", BESIDE_TYPE.sub("", each.strip())) for each in re.split(r",(?![^<]*>)", parameters))


def taken(files):
    """A function in the unnamed namespace of a source that can take the calls of one that a header of
    its folder declares: where sources are compiled together, those of other sources as well."""
    homes = collections.defaultdict(list)
    for path in files:
        if path.suffix == ".h" and folder_of(path):
            for function in functions(path.read_text()):
                homes[folder_of(path), function].append(path)
    for path in files:
        if path.suffix == ".cc" and folder_of(path):
            inside = "".join(re.findall(r"^namespace \{$.*?^\}  // namespace$", path.read_text(), re.MULTILINE | re.DOTALL))
            for function in functions(inside):
                for header in homes[folder_of(path), function]:
                    if is_test(path) or not is_test(header):
                        yield f"{path}: {function[0]} stands in the unnamed namespace, and in {header}"


def without_text(match):
    """The ends of the lines of a text or comment; a command of system() that sleeps stays."""
    is_sleep = match.string.endswith("system(", 0, match.start()) and SLEEP_COMMAND.match(match[0])
    return match[0] if is_sleep else "\n" * match[0].count("\n")


def sleeps(path):
    """Where a test sleeps or reads the machine's clock. Scripts of tasks are texts, and may."""
    if str(path) in TIMED:
        return
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module == "time" or PYTHON_CLOCK & {name.name for name in node.names}) or (
                    isinstance(node, ast.Import) and any(name.name == "time" and name.asname for name in node.names)):
                yield f"{path}:{node.lineno}: a module that waits is imported as a whole and time under its name, so that calls can be seen"
            if (isinstance(node, ast.Attribute) and node.attr in PYTHON_CLOCK or
                    isinstance(node, ast.Call) and PYTHON_WAIT.match(ast.unparse(node))):
                yield f"{path}:{node.lineno}: a test waits for what happens, not for {ast.unparse(node)}"
    elif is_test(path):
        for number, line in enumerate(SAID.sub(without_text, path.read_text()).splitlines(), 1):
            if SLEEP.search(line):
                yield f"{path}:{number}: a test waits for what happens, and does not sleep"


def is_named(name, text):
    return re.search(rf"(?<!\w){re.escape(name)}\b", text)


def lost(path):
    """A file of tests that has none, and a source that the CMakeLists.txt of its folder does not name."""
    text = path.read_text()
    if path.suffix == ".cc" and folder_of(path) or path.stem.endswith("_test") and path.suffix == ".cc":
        name = path.name
    elif path.stem.startswith("test_") and path.parent.name == "e2e":
        name = f"trainyard_e2e({path.stem.removeprefix('test_')}"
    elif path.suffix == ".py" and (path.stem.endswith("_test") or path.stem.startswith("test_") and TEST_CASE.search(text)):
        name = path.name
    else:
        return
    is_meant_as_test = path.stem.endswith("_test") or path.suffix == ".py"
    is_script = path.suffix == ".py" and name == path.name  # Some test without a framework.
    if is_meant_as_test and not is_script and not TEST_CASE.search(SAID.sub("", text) if path.suffix == ".cc" else text):
        yield f"{path}:1: has no test"
    lists = next(there for folder in path.parents if (there := folder / "CMakeLists.txt").exists())
    said = re.sub(r"#.*", "", lists.read_text())
    # A script is named as a file or a module, and a foreach() has its folder, or its name without the ending.
    names = [name, path.stem, path.stem.removesuffix("_test")] if is_script else [name]
    folders = path.parent.relative_to(lists.parent).parts if is_script else ()
    if not (any(is_named(each, said) for each in names) and all(is_named(each, said) for each in folders)):
        yield f"{path}:1: {'no test runs' if is_meant_as_test else 'nobody builds it'}: {lists} has no '{name}'"


def unreadable(path):
    """Why a file cannot be read as a source."""
    if path.exists() and not path.is_file():
        yield f"{path}:1: cannot be read: it is no plain file"
        return
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        yield f"{path}:{getattr(error, 'lineno', None) or 1}: cannot be read: {error}"


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    all_files = [p for top in SOURCES for p in sorted(pathlib.Path(top).rglob("*.[hc]*"))]
    files = [p for p in all_files if p.suffix in (".h", ".cc")]
    scripts = sorted({*pathlib.Path("tests").rglob("*.py"), *(p for top in (*SOURCES, "python", "tools", "scripts")
                                                              for name in ("test_*.py", "*_test.py") for p in pathlib.Path(top).rglob(name))})
    broken = {path: list(unreadable(path)) for path in [*files, *scripts]}
    files, scripts = ([path for path in paths if not broken[path]] for paths in (files, scripts))
    found = [fault for path in broken for fault in broken[path]]
    found += [f"{path}:1: sources are .cc and .h" for path in all_files if path.suffix in (".cpp", ".cxx", ".hpp")]
    found += [f"tools/layers.py: TIMED names {name}, which is not there" for name in TIMED if not pathlib.Path(name).exists()]
    found += [f"tools/layers.py: OPENS names {name}, which opens nothing" for name in OPENS
              if not (pathlib.Path(name).exists() and OPEN.search(pathlib.Path(name).read_text()))]
    found += [fault for path in files for fault in [*faults(path), *repeats(path)]] + [*twice(files), *hidden(files), *taken(files)]
    found += [fault for path in [*files, *scripts] for fault in [*sleeps(path), *lost(path)]]
    print("\n".join(found) if found else f"layers: ok, {len(files)} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
