#!/usr/bin/python3
"""tools/layers.py, with files that break a rule and files that do not."""
import os
import pathlib
import shutil
import tempfile
import unittest

import layers


class Layers(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-layers-"))
        self.addCleanup(shutil.rmtree, self.place)

    def write(self, name, text):
        path = self.place / name
        path.write_text(text)
        return path


class Unreadable(Layers):
    def test_names_a_file_that_cannot_be_read_and_the_cause(self):
        path = self.place / "a.cc"
        path.write_bytes(b"// caf\xe9\n")
        self.assertRegex("".join(layers.unreadable(path)), rf"^{path}:1: cannot be read: 'utf-8' codec can't decode byte 0xe9 ")
        self.assertRegex("".join(layers.unreadable(self.place / "none.cc")), "^.*/none.cc:1: cannot be read: .*No such file or directory")
        self.assertRegex("".join(layers.unreadable(self.write("test_a.py", "a = 1\nb = (\n"))), "^.*/test_a.py:2: cannot be read: ")
        self.assertRegex("".join(layers.unreadable(self.write("test_a.py", "a\0"))), "^.*/test_a.py:1: cannot be read: ")

    def test_takes_an_empty_file(self):
        for name in ("a.cc", "a.h", "test_a.py"):
            self.assertEqual(list(layers.unreadable(self.write(name, ""))), [])


class Includes(Layers):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.place)
        for folder in ("src/schedule", "src/run", "src/journal", "src/sys", "tests/sim"):
            pathlib.Path(folder).mkdir(parents=True)
            pathlib.Path(folder, "there.h").touch()

    def faults(self, name, line):
        path = pathlib.Path(name)
        path.write_text(line + "\n")
        return [fault.partition(":1: ")[2] for fault in layers.faults(path)]

    def test_finds_a_folder_that_comes_after_however_its_header_is_included(self):
        for line in ('#include "run/there.h"', "#include <run/there.h>", "#include<run/there.h>", ' # include"run/there.h"'):
            with self.subTest(line):
                self.assertEqual(self.faults("src/journal/a.cc", line), ["journal/ may not use run/, which comes after it"])
                self.assertEqual(self.faults("src/run/a.cc", line), [])

    def test_finds_an_include_that_the_own_header_has(self):
        pathlib.Path("src/run/a.h").write_text("// A thing.\n#include <string>\n#include <vector>\n")
        for name in ("a.cc", "a_test.cc"):
            path = pathlib.Path("src/run", name)
            path.write_text('#include "run/a.h"\n\n#include <map>\n#include <vector>\n')
            self.assertEqual(list(layers.repeats(path)), [f"{path}:4: src/run/a.h includes <vector> already"])
        other = pathlib.Path("src/run/b.cc")
        other.write_text('#include "run/a.h"\n#include <vector>\n')
        self.assertEqual(list(layers.repeats(other)), [])
        self.assertEqual(list(layers.repeats(pathlib.Path("src/run/a.h"))), [])

    def test_finds_a_header_that_is_empty_or_does_not_say_what_it_is_for(self):
        pathlib.Path("src/run/a.h").touch()
        self.assertEqual(list(layers.faults(pathlib.Path("src/run/a.h"))), ["src/run/a.h:1: a header starts with what it is for"])
        self.assertEqual(self.faults("src/run/a.h", "#pragma once"), ["a header starts with what it is for"])
        self.assertEqual(self.faults("src/run/a.h", "// A thing."), [])

    def test_tells_headers_of_the_system_from_those_of_the_folder_sys(self):
        self.assertEqual(self.faults("src/schedule/a.cc", "#include <sys/there.h>"), ["schedule/ may not use sys/, which comes after it"])
        self.assertEqual(self.faults("src/schedule/a.cc", "#include <sys/stat.h>"), ["schedule/ is quiet and may not use <sys/stat.h>"])
        self.assertEqual(self.faults("src/run/a.cc", "#include <sys/stat.h>"), [])

    def test_tells_a_header_of_the_library_from_a_folder_of_its_name(self):
        pathlib.Path("src/queue").mkdir()
        self.assertEqual(self.faults("src/schedule/a.cc", "#include <queue>"), [])

    def test_finds_the_simulation_in_src(self):
        for name in ("src/run/a.cc", "src/run/a_test.cc"):
            for line in ('#include "sim/there.h"', "#include <sim/there.h>"):
                with self.subTest(name, line=line):
                    self.assertEqual(self.faults(name, line), ["run/ may not use sim/, which comes after it"])
        pathlib.Path("src/sim").mkdir()
        self.assertEqual(self.faults("src/sim/a.cc", ""), ["the folder sim/ has no place in the order of the layers"])

    def test_takes_the_simulation_for_a_quiet_folder(self):
        for line, fault in (('#include "sys/there.h"', "sim/ stands on its own and may not use sys/"),
                            ("#include <sys/stat.h>", "sim/ is quiet and may not use <sys/stat.h>"),
                            ("namespace trainyard::run {", "namespace trainyard::run is not trainyard::sim"),
                            ("::getpid();", "may not call the system: ::getpid("),
                            ("// See sim/gone.h and sim/there.h.", "there is no file sim/gone.h")):
            with self.subTest(line):
                self.assertEqual(self.faults("tests/sim/a.cc", line), [fault])
        self.assertEqual(self.faults("tests/sim/a.cc", '#include "run/there.h"'), [])

    def test_finds_a_name_that_a_quiet_folder_may_not_take_from_one_that_touches_the_machine(self):
        for folder in ("src/app", "src/plan", "src/queue/rules"):
            pathlib.Path(folder).mkdir(parents=True)
        for name, line, found in (("src/app/a.cc", "  return sys::exists(path);", "sys::exists"),
                                  ("src/app/a.cc", "  link::ControlClient client;", "link::ControlClient"),
                                  ("src/app/a.h", "using namespace sys;", "using namespace sys;"),
                                  ("src/app/a.h", "// A header.\nnamespace p = trainyard::process;", "namespace p = trainyard::process;"),
                                  ("src/plan/a.cc", "  const auto now = trainyard::sys::unix_milliseconds();", "sys::unix_milliseconds"),
                                  ("src/queue/rules/a.cc", "  if (is_short && sys::is_file(path)) return;", "sys::is_file")):
            with self.subTest(line):
                pathlib.Path(name).write_text(line + "\n")
                folder = os.path.dirname(name).removeprefix("src/")
                self.assertIn(f"{folder}/ is quiet and may not use {found}", "\n".join(layers.faults(pathlib.Path(name))))
        for name, line in (("src/app/a.cc", "  const std::optional<std::uint32_t> number = run::read_run_number(word);"),
                           ("src/app/a_test.cc", "  sys::TemporaryDirectory place;"),
                           ("src/queue/rules/a.cc", "  if (outcome.stage != run::RunOutcome::Stage::Over) return;"),
                           ("src/queue/rules/a.cc", "  return {};  // sys::is_file() would wait."),
                           ("src/queue/a.cc", "  if (is_short && sys::is_file(path)) return;"),
                           ("src/run/a.cc", "  const auto now = sys::unix_milliseconds();")):
            with self.subTest(line):
                self.assertEqual(self.faults(name, line), [])

    def test_takes_a_part_of_a_folder_for_quiet_and_apart_from_the_rest_of_it(self):
        pathlib.Path("src/queue/rules").mkdir(parents=True)
        for name in ("src/queue/there.h", "src/queue/rules/there.h"):
            pathlib.Path(name).touch()
        for line, found in (('#include "queue/there.h"', '"queue/there.h"'), ("#include <queue/there.h>", '"queue/there.h"'),
                            ("#include <filesystem>", "<filesystem>")):
            with self.subTest(line):
                self.assertEqual(self.faults("src/queue/rules/a.cc", line), [f"queue/rules/ is quiet and may not use {found}"])
                self.assertEqual(self.faults("src/queue/a.cc", line), [])
        for name in ("src/queue/a.cc", "src/queue/rules/a.cc"):
            self.assertEqual(self.faults(name, '#include "queue/rules/there.h"'), [])
            self.assertEqual(self.faults(name, "#include <queue>"), [])
        self.assertEqual(self.faults("src/queue/rules/a.cc", "namespace trainyard::queue {"), [])


class Opens(Layers):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.place)
        for folder in ("process", "sys"):
            pathlib.Path("src", folder).mkdir(parents=True)

    def faults(self, name, line):
        path = pathlib.Path(name)
        path.write_text(line + "\n")
        return [fault.partition(":1: ")[2] for fault in layers.faults(path)]

    def test_finds_each_way_to_open_a_file_that_is_not_the_one_for_it(self):
        for line, found in (("const int file = ::open(path.c_str(),", "::open("), ("Descriptor(::openat(directory, name,", "::openat("),
                            ("open(path_.c_str(), O_RDONLY)", "open(path_.c_str("), ("std::fopen(path, mode)", "fopen("),
                            ("std::freopen(path, mode, stdin)", "freopen("), ("std::ifstream file(path);", "std::ifstream"),
                            ("std::ofstream(path) << text;", "std::ofstream"), ("std::fstream file;", "std::fstream"),
                            ("sys::raw_call(SYS_openat, AT_FDCWD,", "SYS_openat"), ("creat(path, 0644)", "creat("),
                            ("::posix_spawn_file_actions_addopen(&actions,", "_addopen(")):
            with self.subTest(line):
                self.assertEqual(self.faults("src/process/a.cc", line), [f"may not open a file but by sys::open_file(): {found}"])
                for other in ("src/sys/a.cc", "src/process/a_test.cc", "src/process/start.cc"):
                    self.assertEqual(self.faults(other, line), [], other)

    def test_takes_the_function_for_it_and_what_opens_no_file(self):
        for line in ("sys::open_file(path, {.flags = O_WRONLY});", "PromiseBoard::open(directories)", "static Result<Table> open(Database& database);",
                     "Table Table::open(Database& database) {", "file.open(path)", "// ::open(2) would wait.", "file.is_open()", "::fdopen(file, mode)"):
            with self.subTest(line):
                self.assertEqual(self.faults("src/process/a.cc", line), [])


class Dropped(Layers):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.place)
        for folder in ("include", "src/process"):
            pathlib.Path(folder).mkdir(parents=True)

    def faults(self, name, line):
        path = pathlib.Path(name)
        path.write_text(f"// A header.\n{line}\n")
        return [fault.partition(":2: ")[2] for fault in layers.faults(path)]

    def test_finds_a_result_of_the_library_that_may_be_dropped(self):
        for line in ("  Result<void> check();", "static Result<Config> load(std::string file);", "  virtual Result<std::vector<T>> all(",
                     "Result<Json> to_json(const C& context) {"):
            with self.subTest(line):
                self.assertEqual(self.faults("include/a.h", line), ["a function that returns a Result is [[nodiscard]]"])
                self.assertEqual(self.faults("src/process/a.h", line), [])

    def test_takes_one_that_may_not_and_a_variable(self):
        for line in ("  [[nodiscard]] Result<void> check();", "  Result<void> well;", "  Result<Json> saved = to_json(context);"):
            with self.subTest(line):
                self.assertEqual(self.faults("include/a.h", line), [])


class Taken(Layers):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.place)
        pathlib.Path("src/run").mkdir(parents=True)
        pathlib.Path("src/sys").mkdir()

    def taken(self, declared, defined, header="src/run/a.h", source="src/run/b.cc"):
        pathlib.Path(header).write_text(f"// A thing.\nnamespace trainyard::run {{\n{declared}\n}}  // namespace trainyard::run\n")
        pathlib.Path(source).write_text(f"namespace trainyard::run {{\nnamespace {{\n\n{defined}\n\n}}  // namespace\n}}\n")
        return list(layers.taken([pathlib.Path(header), pathlib.Path(source)]))

    def test_finds_a_function_that_can_take_the_calls_of_one_in_a_header(self):
        for declared, defined in (("void note(std::string_view message);", "void note(const std::string& text) {"),
                                  ("std::optional<std::string> note(const char* name);", "bool note(std::string_view) {"),
                                  ("void note(const Error& error,\n          int code = 1);", "void note(Error it, const int number) {"),
                                  ("int note();", "int note() {"),
                                  ("void note(const std::map<int, int>& all);", "void note(std::map<int, int> all) {")):
            with self.subTest(defined):
                self.assertEqual(self.taken(declared, defined), ["src/run/b.cc: note stands in the unnamed namespace, and in src/run/a.h"])
        self.assertEqual(len(self.taken("int note(int a);", "int note(int a) {", "src/run/test_a.h", "src/run/a_test.cc")), 1)
        pathlib.Path("src/run/rules").mkdir()
        self.assertEqual(len(self.taken("int note(int a);", "int note(int a) {", source="src/run/rules/b.cc")), 1)

    def test_takes_one_that_cannot_and_one_that_is_not_seen_there(self):
        for defined in ("void notes(std::string text) {", "void note(const Row& row) {", "void note(std::string a, int b) {", "  note(text);"):
            with self.subTest(defined):
                self.assertEqual(self.taken("void note(std::string_view message);", defined), [])
        for header in ("src/run/test_a.h", "src/sys/a.h"):
            self.assertEqual(self.taken("int note(int a);", "int note(int a) {", header), [])


class Sleeps(Layers):
    def faults(self, name, line):
        return [fault.rpartition(":1: ")[2] for fault in layers.sleeps(self.write(name, line + "\n"))]

    def test_finds_each_way_in_which_a_cpp_test_sleeps(self):
        for line in ("std::this_thread::sleep_for(1s);", "namespace own = std::this_thread; own::sleep_until(then);",
                     "const auto nap = &std::this_thread::sleep_for<int, std::milli>;", "::usleep(1);", "::sleep(1);",
                     "sleep (1);", "using ::sleep;", "const auto nap = &::sleep;", "::thrd_sleep(&time, nullptr);", "::sigtimedwait(&none, nullptr, &time);", "::poll({}, 0, 10);",
                     "::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);", "::poll(nullptr, 0, 10);", "::poll(0, 0, 10);",
                     'std::system("sleep 1");', '::system("/bin/sleep 1");',
                     "::ppoll(nullptr, 0, &time, nullptr);", "::pselect(0, nullptr, NULL, 0, &time, nullptr);", "::select(0, nullptr, nullptr, nullptr, &time);"):
            with self.subTest(line):
                self.assertEqual(self.faults("a_test.cc", line), ["a test waits for what happens, and does not sleep"])

    def test_finds_no_sleep_in_what_waits_for_a_descriptor_or_is_no_test(self):
        self.assertEqual(self.faults("a_test.cc", "::poll(&waiting, 1, 100); ::select(4, &set, nullptr, nullptr, &time);"), [])
        self.assertEqual(self.faults("a.cc", "::poll(nullptr, 0, 10);"), [])

    def test_finds_no_sleep_in_the_texts_and_comments_of_a_cpp_test(self):
        for line in ('run("sleep 1000");', 'run("a \\" sleep 1");', "// sleep (1)", "/* sleep\n (1) */", 'system("sleepy");', 'R"(os.system("sleep 1"))"',
                     'R"(\nsleep 1\n)"', 'R"py(time.sleep(1))py";'):
            with self.subTest(line):
                self.assertEqual(self.faults("a_test.cc", line), [])
        self.assertEqual(len(self.faults("a_test.cc", "run(\"a\"); sleep(1); run(\"b\"); const char c = '\"'; sleep(2);")), 1)

    def test_finds_each_way_in_which_a_python_test_sleeps(self):
        for line in ("time.sleep(1)", "while time.monotonic() < 3: pass", "threading.Event().wait(1)", "Event().wait(timeout=1)",
                     "select.select([], [], [], 1)", "nap = time.sleep", "yard.time.sleep(1)", "await asyncio.sleep(1)",
                     "time.monotonic_ns()", "time.perf_counter()", "time.time()", "select.select((), (), (), 1)", "select.poll().poll(1)",
                     "subprocess.run(['sleep', '1'])", "subprocess.check_call(['/bin/sleep', '1'])", "os.system('sleep 1')",
                     "subprocess.run('sleep 1', shell=True)", "queue.Queue().get(timeout=1)", "signal.sigtimedwait([], 1)", "Condition().wait(1)",
                     "subprocess.run(args=['sleep', '1'])", "subprocess.Popen(['sleep', '1']).wait()", "Popen(args='sleep 1', shell=True).communicate()"):
            with self.subTest(line):
                self.assertRegex("".join(self.faults("test_a.py", line)), r"^a test waits for what happens, not for .*$")
        for line in ("from time import sleep", "import time as t", "import os, time as t", "from asyncio import gather, sleep as nap"):
            self.assertEqual(len(self.faults("test_a.py", line)), 1, line)
        self.assertEqual(self.faults("test_a.py", "from asyncio import gather"), [])

    def test_finds_no_sleep_in_what_waits_for_somebody_in_python_or_is_the_text_of_a_task(self):
        self.assertEqual(self.faults("test_a.py", "done.wait(1); select.select([pipe], [], [], 1); script = 'time.sleep(1)'"), [])
        self.assertEqual(self.faults("test_a.py", "other = subprocess.Popen(['sleep', '1000']); subprocess.run(['sh', '-c', 'sleepy'])"), [])


class Lost(Layers):
    def faults(self, name, text, lists):
        (self.place / "e2e").mkdir(exist_ok=True)
        self.write("CMakeLists.txt", lists)
        self.write("e2e/CMakeLists.txt", lists)
        return [fault.partition(":1: ")[2] for fault in layers.lost(self.write(name, text))]

    def test_finds_a_test_file_without_a_test(self):
        for text in ("// TEST(A, B)\n", "/*\nTEST(A, B) {}\n*/\n"):
            self.assertEqual(self.faults("a_test.cc", text, "TESTS a_test.cc)"), ["has no test"])
        self.assertEqual(self.faults("e2e/test_a.py", "class A(YardTest):\n    pass\n", "trainyard_e2e(a SLOW)"), ["has no test"])

    def test_finds_a_test_file_that_nobody_builds(self):
        for text in ("TEST(A, B) {}\n", "TEST_F(A, B) {}\n", "RC_GTEST_PROP(A, B, ()) {}\n"):
            self.assertEqual(self.faults("a_test.cc", text, "TESTS a_test.cc)"), [])
            for lists in ("TESTS of_a_test.cc)", "TESTS # a_test.cc\n"):
                self.assertEqual(self.faults("a_test.cc", text, lists), [f"no test runs: {self.place}/CMakeLists.txt has no 'a_test.cc'"])
        case = "class A(YardTest):\n    def test_b(self):\n        pass\n"
        self.assertEqual(self.faults("e2e/test_a.py", case, "trainyard_e2e(a)"), [])
        self.assertEqual(self.faults("e2e/test_a.py", case, "trainyard_e2e(a_b)"),
                         [f"no test runs: {self.place}/e2e/CMakeLists.txt has no 'trainyard_e2e(a'"])

    def test_finds_a_python_test_that_nobody_runs(self):
        case = "class A(TestCase):\n    def test_b(self):\n        pass\n"
        (self.place / "sweep").mkdir()
        for name, lists in (("a_test.py", "COMMAND python3 a_test.py)"), ("test_a.py", "COMMAND python3 -m unittest test_a)"),
                            ("a_test.py", "foreach(tool b a)\n  COMMAND python3 ${tool}_test.py)"),
                            ("sweep/a_test.py", "foreach(example sweep)\n  COMMAND python3 ${example}/a_test.py)")):
            self.assertEqual(self.faults(name, case, lists), [], lists)
            for none in ("", "COMMAND python3 of_a_test.py)", f"# {lists}", "COMMAND python3 other/a_test.py)" if "/" in name else ""):
                self.assertEqual(self.faults(name, case, none), [f"no test runs: {self.place}/CMakeLists.txt has no '{pathlib.Path(name).name}'"])

    def test_asks_nothing_of_what_is_no_test_file(self):
        self.assertEqual(self.faults("test_rank.py", "def method():\n    pass\n", ""), [])
        self.assertEqual(self.faults("test_yard.h", "// Helps tests.\n", ""), [])
        self.assertEqual(self.faults("e2e/yard.py", "", ""), [])


if __name__ == "__main__":
    unittest.main()
