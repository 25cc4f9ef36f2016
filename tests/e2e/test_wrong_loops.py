"""Training loops and yards that are wrong do not compile, and the compiler says why in few words; right ones compile without a warning."""
import pathlib
import shutil
import tempfile

from yard import YardTest, os, subprocess

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
COMPILERS = [one for one in (os.environ["CXX"], shutil.which("clang++-19")) if one]
LINES_MAX = 30  # In a compiler's answer to one program, on average.

HEADERS = "".join(f'#include "trainyard/{each.name}"\n' for each in sorted((INCLUDE / "trainyard").glob("*.h")))
BEGIN = """\
#include "trainyard/pipeline.h"
#include "trainyard/event_bus.h"
#include "trainyard/rank_executor.h"
#include "trainyard/yard.h"
using namespace trainyard;
struct Train : Context {
  int env_step = 0;
  int loss = 0;
  static constexpr auto kept = keep<&Train::env_step>;
};
struct Other : Context {
  int list = 0;
  static constexpr auto kept = keep<&Other::list>;
};
struct JobDone { int id = 0; };
inline constexpr Event<JobDone> kJobDone{"job.done"};
inline constexpr Resource kReplay{"replay"};
"""

# The error, as a sentence; the program; a text in the compilers' answer.
WRONG = (
    ("a step takes its context by value",
     "void add(Pipeline<Train>& loop) { loop.use([](Train c) { c.loss = 1; }); }",
     "a step is a function of a reference to the context"),
    ("a generic step takes its context by value",
     "void add(Pipeline<Train>& loop) { loop.use([](auto c) { c.loss = 1; }); }",
     "a step is a function of a reference to the context"),
    ("an event is emitted without what it carries",
     "void tell(EventBus& bus) { bus.emit(kJobDone); }",
     "this event carries something"),
    ("a member of another context is kept once",
     "void keep_it(Train& context) { keep_once<&Other::list>(context); }",
     "what is kept once is a member of this context"),
    ("a member of another context is touched",
     "void add(Pipeline<Train>& loop) { loop.use([](Train&) {}, {.writes = {&Other::list}}); }",
     "a step touches members of its own context"),
    ("a resource is a text that nobody has declared",
     'void add(Pipeline<Train>& loop) { loop.use([](Train&) {}, {.writes = {Touch<Train>("replya")}}); }',
     "deleted"),
    ("a resource is spelt wrong",
     "void add(Pipeline<Train>& loop) { loop.use([](Train&) {}, {.writes = {kReplya}}); }",
     "kReplya"),
    ("the options of a named step are those of another context",
     "void add(Pipeline<Train>& loop) { loop.use(named<Other>(\"n\", [](Train&) {}, {.reads = {&Other::list}})); }",
     "the options of the named step are those of another context"),
    ("a context loses what its base keeps",
     "struct More : Train { int best = 0; static constexpr auto kept = keep<&More::best>; };\n"
     "void make() { Pipeline<More> loop; }",
     "the context keeps less than what it builds on"),
    ("a context loses what the base of its base keeps",
     "struct Less : Train { static constexpr auto kept = Train::kept; int score = 0; };\n"
     "struct More : Less { static constexpr auto kept = keep<&More::score>; };\n"
     "void make() { Pipeline<More> loop; }",
     "the context keeps less than what it builds on"),
    ("a member is kept twice",
     "struct Twice : Context { int a = 0; static constexpr auto kept = keep<&Twice::a> + keep<&Twice::a>; };\n"
     "void make() { Pipeline<Twice> loop; }",
     "a member is kept twice"),
    ("a group whose address a yard keeps is moved",
     "TaskGroup move_it(TaskGroup& group) { return std::move(group); }",
     "deleted"),
    ("a group is copied",
     "void copy_it(TaskGroup& group) { auto copy = group; }",
     "deleted"),
    ("no task is added to a group",
     "void add(TaskGroup& group) { group.add(nullptr); }",
     "deleted"),
)

WARNED = (
    ("a subscription is dropped",
     "void hear(EventBus& bus) { bus.on(kJobDone, [](const JobDone&) {}); }",
     "dropped, it takes its listener off at once"),
    ("a subscription to JSON is dropped",
     'void hear(EventBus& bus) { bus.on("any.name", [](const Json&) {}); }',
     "dropped, it takes its listener off at once"),
    ("a yard is run and nobody asks whether it could be",
     "void run(Yard& yard, TaskGroup& group) { yard.run(group); }",
     "nodiscard"),
    ("a setting is set that there may not be",
     'void set(Config& config) { config.set("a", "b"); }',
     "nodiscard"),
    ("what a task sends may not arrive",
     'struct Fold : Task { void tell(const Json& data) { send("a", data); } };',
     "nodiscard"),
    ("nobody reads the reply of the ranks",
     'void train(RankExecutor& ranks, RankContext& context) { ranks.execute("train", {}, context); }',
     "nodiscard"),
    ("nobody asks whether an event was heard",
     'void fire(RankContext& context) { context.fire("done"); }',
     "nodiscard"),
)

RIGHT = "#include <nlohmann/json.hpp>\n" + HEADERS + """
struct More : Train { int best = 0; static constexpr auto kept = Train::kept + keep<&More::best>; };
void right(StepLock& mine, std::stop_token stop) {
  Pipeline<More> loop({.async = true});
  Pipeline<Train> plain({.labels = {"mine"}});
  plain.use(named<Train>("named", [](Train&) {}, {.lock = &mine}));
  loop.use("a", [](More& c) { keep_once<&More::loss>(c); }, {.reads = {&Train::env_step}, .writes = {&More::best, kReplay}})
      .use("b", [](auto& c) { c.loss = 2; }, {.where = {"standalone"}})
      .use("c", parallel(named("part", [](More&) {}), named<More>("other", [](More&) {}, {.writes = {nothing}})))
      .use("d", [](More&) -> Step { co_yield after; }, {.roles = {role::kLearner}})
      .use("save", CheckpointSaver<More>({.directory = "saved", .every = 3}))
      .use("end", finish_after<&More::env_step>(loop, 3));
  StepTimer timer({.every = 10});
  timer.watch(loop);
  const Subscription heard = loop.events().on(kJobDone, [](const JobDone&) {});
  loop.events().emit(kJobDone, {.id = 1});
  loop.events().emit(Event<>("done"));
  static_cast<void>(loop.events().wait_for(kJobDone, stop));
  static_cast<void>(loop.run({.max_steps = 1}, stop));
}
TaskOptions options() { return {.memory = std::nullopt, .gpus = 1}; }
YardOptions yard() { return {.name = "mine"}; }
RankExecutorOptions ranks() { return {.ranks = 2, .executor = "trainer"}; }
"""


class WrongLoops(YardTest):
    @classmethod
    def setUpClass(cls):
        """The beginning of all programs is compiled once for each compiler."""
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-loops-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        cls.begin = {}
        for number, compiler in enumerate(COMPILERS):
            header = cls.place / f"begin-{number}.h"
            header.write_text(BEGIN)
            # GCC looks for the compiled header under this name, Clang has to be told.
            compiled = f"{header}.{'pch' if 'clang' in compiler else 'gch'}"
            done = cls.run_compiler(compiler, "-x", "c++-header", header, "-o", compiled)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            cls.begin[compiler] = ["-include-pch", compiled] if "clang" in compiler else ["-Winvalid-pch", "-include", header]

    @staticmethod
    def run_compiler(compiler, *words, program=None):
        plain = ["-fno-color-diagnostics", "-ferror-limit=0"] if "clang" in compiler else ["-fdiagnostics-color=never"]
        return subprocess.run([compiler, "-std=c++23", "-Wall", "-Wextra", *plain, f"-I{INCLUDE}", *words],
                              input=program, capture_output=True, text=True)

    def compile(self, compiler, program):
        done = self.run_compiler(compiler, "-fsyntax-only", *self.begin[compiler], "-x", "c++", "-", program=program)
        return done.returncode, done.stderr

    def answer_to(self, compiler, programs, expect):
        """The compiler's answer to all these programs as one, in which each sentence is the name of a file."""
        whole = "".join(f'namespace n{number} {{\n#line 1 "{sentence}"\n{program}\n}}\n'
                        for number, (sentence, program, _) in enumerate(programs))
        code, answer = self.compile(compiler, whole)
        self.assertEqual(code, expect, answer)
        return answer

    def test_are_refused_in_few_words(self):
        for compiler in COMPILERS:
            answer = self.answer_to(compiler, WRONG, expect=1)
            self.assertLess(len(answer.splitlines()), LINES_MAX * len(WRONG), answer)
            for sentence, _, says in WRONG:
                with self.subTest(sentence, compiler=compiler):
                    # For an error in a header GCC names the program before it, and Clang in a note after it.
                    error, place = f" error: .*{says}.*", rf"{sentence}:\d+:\d+:"
                    self.assertRegex(answer, rf"(?m)^{place}{error}|^{place} +required from here\n.*{error}|"
                                             rf"{error}(?:\n(?!.* error: ).*)*\n{place} note: ")

    def test_that_only_warn_say_what_is_lost(self):
        for compiler in COMPILERS:
            answer = self.answer_to(compiler, WARNED, expect=0)
            for sentence, _, says in WARNED:
                with self.subTest(sentence, compiler=compiler):
                    self.assertRegex(answer, f"(?m)^{sentence}:1:\\d+: warning: .*{says}")

    def test_that_are_right_compile_without_a_warning_with_every_public_header(self):
        for compiler in COMPILERS:
            with self.subTest(compiler=compiler):
                self.assertEqual(self.compile(compiler, RIGHT), (0, ""))
