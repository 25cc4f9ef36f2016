// The library as a user has it: tasks as classes, in processes of their own, on this machine.
#include "trainyard/yard.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <stdexcept>
#include <utility>

#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "library/test_yard.h"
#include "model/set_variables.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/test_wait.h"
#include "trainyard/trainyard.h"

namespace trainyard::library {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Does what a function says, on terms that a test says.
struct OnTerms : Task {
  OnTerms(TaskOptions options, std::function<Json()> train)
      : Task(std::move(options)), work(std::move(train)) {}
  Json train(const Device&) override { return work(); }
  std::function<Json()> work;
};

TEST_F(YardTest, EndsATaskAtItsTimeLimit) {
  TaskGroup group("g", {.memory = 20_MB, .cpus = 0, .time_limit = std::chrono::milliseconds(100)});
  auto& endless = group.add<OnTerms>(TaskOptions{.id = "endless"}, []() -> Json {
    while (true) ::pause();
  });
  group.add<OnTerms>(TaskOptions{.id = "longer", .time_limit = std::chrono::hours(1)},
                     [] { return Json{{"ok", 1}}; });
  Yard yard(config(), options());
  const Result<RunSummary> done = yard.run(group);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->failed, 1);
  EXPECT_EQ(done->finished, 1);
  EXPECT_THAT(endless.message(), HasSubstr("time limit"));
}

TEST_F(YardTest, TriesATaskAgainAsOftenAsItSays) {
  TaskGroup group("g", {.memory = 20_MB, .cpus = 0, .retries = 2});
  auto& flaky = group.add<OnTerms>(TaskOptions{.id = "flaky"}, []() -> Json {
    if (variable("TRAINYARD_ATTEMPT") != "3") throw std::runtime_error("no");
    return {{"attempt", 3}};
  });
  auto& once = group.add<OnTerms>(TaskOptions{.id = "once", .retries = 0},
                                  []() -> Json { throw std::runtime_error("never"); });
  Yard yard(config(), options());
  ASSERT_TRUE(yard.run(group).has_value());
  EXPECT_EQ(flaky.result(), (Json{{"attempt", 3}}));
  EXPECT_EQ(once.train_numbers(), 1);
  EXPECT_EQ(once.message(), "std::runtime_error: never");
}

TEST_F(YardTest, StartsNoTaskBeforeItsTime) {
  using std::chrono::steady_clock;
  // The clock is that of all processes.
  const auto begins = [] {
    return Json{{"at", std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count()}};
  };
  TaskGroup group("g", {.memory = 20_MB, .cpus = 0, .start_after = std::chrono::milliseconds(300)});
  auto& later = group.add<OnTerms>(TaskOptions{.id = "later"}, begins);
  auto& now = group.add<OnTerms>(
      TaskOptions{.id = "now", .start_after = std::chrono::milliseconds(0)}, begins);
  const auto began = steady_clock::now();
  Yard yard(config(), options());
  const Result<RunSummary> done = yard.run(group);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->finished, 2);
  const auto after = [](const OnTerms& task) {
    return std::chrono::nanoseconds(task.result().at("at").get<std::int64_t>());
  };
  EXPECT_GE(after(later) - began.time_since_epoch(), std::chrono::milliseconds(300));
  EXPECT_LT(after(now), after(later));
}

TEST_F(YardTest, TriesOneTaskBeforeTheOthersStart) {
  TaskGroup group("g", {.cpus = 0}, {.try_first = true});
  auto& small =
      group.add<OnTerms>(TaskOptions{.id = "small", .memory = 20_MB}, [] { return Json(); });
  auto& large = group.add<OnTerms>(TaskOptions{.id = "large", .memory = 40_MB},
                                   []() -> Json { throw std::runtime_error("a typo"); });
  Yard yard(config(), options());
  const Result<RunSummary> done = yard.run(group);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->failed, 1);
  EXPECT_EQ(done->skipped, 1);
  EXPECT_EQ(large.message(), "std::runtime_error: a typo");
  EXPECT_EQ(small.message(),
            "the task that 'try-first' ran first failed: std::runtime_error: a typo");
}

TEST_F(YardTest, TasksReadAndWriteTheFilesThatTheProgramHasOpen) {
  directory.write("data", "a line\n");
  std::ifstream data(directory / "data");
  std::ofstream log(directory / "log");
  log << "program\n" << std::flush;
  TaskGroup group("g", {.memory = 20_MB, .cpus = 0});
  auto& task = group.add<OnTerms>(TaskOptions{.id = "t"}, [&data, &log] {
    std::string line;
    std::getline(data, line);
    log << "task\n" << std::flush;
    return Json{{"line", line}, {"log is good", log.good()}};
  });
  Yard yard(config(), options());
  ASSERT_EQ(yard.run(group).value().finished, 1);
  EXPECT_EQ(task.result(), (Json{{"line", "a line"}, {"log is good", true}}));
  EXPECT_EQ(sys::content_of(directory / "log"), "program\ntask\n");
}

TEST_F(YardTest, GivesATaskWhatItsOptionsSayInItsEnvironment) {
  TaskGroup group("g", {.memory = 20_MB, .cpus = 0, .environment = {{"A", "group"}, {"B", "b"}}});
  auto& task = group.add<OnTerms>(TaskOptions{.id = "t", .environment = {{"A", "task"}}},
                                  [] { return Json{{"A", variable("A")}, {"B", variable("B")}}; });
  Yard yard(config(), options());
  ASSERT_TRUE(yard.run(group).has_value());
  EXPECT_EQ(task.result(), (Json{{"A", "task"}, {"B", "b"}}));
}

TEST_F(YardTest, GivesATaskNothingOfATaskThatItsProgramIs) {
  const std::vector<std::string_view> now{"RANK=3", "OMP_NUM_THREADS=7"};
  sys::set_variable("RANK=3");
  sys::set_variable("OMP_NUM_THREADS=7");
  sys::set_variable("TRAINYARD_SET=" + model::set_variables({}, now));
  TaskGroup group("g", {.memory = 20_MB, .cpus = 0});
  auto& task = group.add<OnTerms>(TaskOptions{.id = "t"}, [] {
    return Json{{"rank", variable("RANK")}, {"threads", variable("OMP_NUM_THREADS")}};
  });
  Yard yard(config(), options());
  ASSERT_TRUE(yard.run(group).has_value());
  EXPECT_EQ(task.result(), (Json{{"rank", ""}, {"threads", "1"}}));
  EXPECT_EQ(variable("RANK"), "3") << "the program is that task again";
  for (const char* const name : {"RANK=", "OMP_NUM_THREADS=", "TRAINYARD_SET="}) {
    sys::set_variable(name);
  }
}

TEST_F(YardTest, RunsTasksThatLoadAndTrainAndBringsTheirResultsBack) {
  TaskGroup group("folds");
  const std::string shared = "loaded before";
  for (int k = 0; k < 4; ++k) {
    group.add<Made>(
        "fold-" + std::to_string(k),
        [&shared, k](Made& task, const Device& device) {
          return Json{{"k", k}, {"device", device.name}, {"loads", task.count}, {"saw", shared}};
        },
        [](Made& task) { ++task.count; });
  }
  const RunSummary done = run(group);
  EXPECT_EQ(done.finished, 4);
  EXPECT_EQ(done.failed + done.skipped + done.stopped, 0);
  EXPECT_TRUE(group.finished());
  int k = 0;
  for (const Task& task : group.tasks()) {
    EXPECT_EQ(task.status(), Status::Exited);
    EXPECT_EQ(task.result(), (Json{{"k", k}, {"device", "cpu"}, {"loads", 1}, {"saw", shared}}));
    EXPECT_EQ(task.load_numbers(), 1);
    EXPECT_EQ(task.train_numbers(), 1);
    EXPECT_TRUE(task.load_time());
    EXPECT_TRUE(task.train_time());
    EXPECT_EQ(task.task_dir(), place + "/folds/" + task.id());
    ++k;
  }
  EXPECT_TRUE(std::filesystem::exists(place + "/reports/folds.html"));
  EXPECT_THAT(notes, IsEmpty());
}

TEST_F(YardTest, KeepsWhatATaskChangesInItselfInItsOwnProcess) {
  TaskGroup group("g");
  auto& task = group.add<Made>("a", [](Made& it, const Device&) {
    it.count = 7;
    std::ofstream("here") << ::getpid();
    return Json::object();
  });
  run(group);
  EXPECT_EQ(task.count, 0);
  EXPECT_EQ(task.result(), Json::object());
  EXPECT_TRUE(std::filesystem::exists(place + "/g/a/here"));
}

TEST_F(YardTest, TakesNoProcessThatATaskHasForkedForTheTask) {
  const auto forks = [](bool throws) {
    return [throws](Made&, const Device&) -> Json {
      const pid_t child = ::fork();
      if (child == 0 && throws) throw std::bad_alloc();
      if (child == 0) return {{"who", "child"}};
      int status = 0;
      ::waitpid(child, &status, 0);
      return {{"who", "task"}, {"child", WEXITSTATUS(status)}};
    };
  };
  TaskGroup group("g");
  group.add<Made>("returns", forks(false));
  group.add<Made>("throws", forks(true));
  EXPECT_EQ(run(group).finished, 2);
  for (const Task& task : group.tasks()) {
    EXPECT_EQ(task.result(), (Json{{"who", "task"}, {"child", 1}})) << task.id();
    EXPECT_EQ(task.train_numbers(), 1) << task.id();
    EXPECT_THAT(sys::read_file(task.task_dir() + "/stderr.log", mib(1)).value(),
                HasSubstr("a process that the task has forked came back from it"));
  }
}

TEST_F(YardTest, TellsWhatWentWrongInWhichStageAndTheOthersFinish) {
  TaskGroup group("g");
  const auto fine = [](Made&, const Device&) { return Json{{"ok", true}}; };
  auto& loads =
      group.add<Made>("loads", fine, [](Made&) { throw std::runtime_error("no such data"); });
  auto& number = group.add<Made>("number", [](Made&, const Device&) -> Json { throw 7; });
  auto& leaves = group.add<Made>("leaves", fine, [](Made&) { std::_Exit(0); });
  auto& dies = group.add<Made>("dies", [](Made&, const Device&) -> Json {
    std::raise(SIGSEGV);
    return {};
  });
  auto& odd = group.add<Made>("odd", [](Made&, const Device&) { return Json{1, 2}; });
  auto& good = group.add<Made>("good", fine);
  const RunSummary done = run(group);
  EXPECT_EQ(done.finished, 2);
  EXPECT_EQ(done.failed, 4);
  EXPECT_EQ(loads.status(), Status::Exception);
  EXPECT_EQ(loads.failed_in(), Stage::Load);
  EXPECT_EQ(loads.message(), "std::runtime_error: no such data");
  EXPECT_EQ(loads.traceback(), "std::runtime_error: no such data\n");
  EXPECT_EQ(number.failed_in(), Stage::Train);
  EXPECT_EQ(number.message(), "something that is no std::exception was thrown: int");
  EXPECT_THAT(leaves.message(), HasSubstr("exited without reporting 'trained'"));
  EXPECT_EQ(dies.message(), "crashed with SIGSEGV (segmentation fault)");
  EXPECT_EQ(odd.result(), Json::object());
  EXPECT_THAT(notes,
              ElementsAre("task 'odd': result.1.json: is a list, not an object: result discarded"));
  EXPECT_EQ(good.result(), (Json{{"ok", true}}));
}

TEST_F(YardTest, TrainsAgainInTheSameProcessAfterOutOfMemory) {
  TaskGroup group("g");
  auto& task = group.add<Made>("a", [](Made& it, const Device&) -> Json {
    if (++it.count < 3) throw std::bad_alloc();
    return {{"tries", it.count}};
  });
  run(group);
  EXPECT_EQ(task.status(), Status::Exited);
  EXPECT_EQ(task.result(), (Json{{"tries", 3}}));
  EXPECT_EQ(task.load_numbers(), 1);
  EXPECT_EQ(task.train_numbers(), 3);
}

TEST_F(YardTest, LoadsAgainInANewProcessAfterOutOfMemoryAndGivesUpAfterThreeTries) {
  TaskGroup group("g");
  const auto fine = [](Made&, const Device&) { return Json::object(); };
  auto& again = group.add<Made>("again", fine, [](Made&) {
    if (variable("TRAINYARD_ATTEMPT") == "1") throw std::bad_alloc();
  });
  auto& never = group.add<Made>("never", fine, [](Made&) { throw std::bad_alloc(); });
  run(group);
  EXPECT_EQ(again.status(), Status::Exited);
  EXPECT_EQ(again.load_numbers(), 2);
  EXPECT_EQ(never.status(), Status::Exception);
  EXPECT_EQ(never.failed_in(), Stage::Load);
  EXPECT_THAT(never.message(), ::testing::AllOf(HasSubstr("out of memory while loading, with "),
                                                HasSubstr(" (retry 2 of 2)")));
}

TEST_F(YardTest, KeepsWhatWasReportedBeforeATaskFailed) {
  TaskGroup group("g");
  auto& fails = group.add<Made>("fails", [](Made& it, const Device&) -> Json {
    it.report("best", 0.5);
    it.progress(0.5, {{"loss", 1}});
    throw std::runtime_error("diverged");
  });
  auto& ends = group.add<Made>("ends", [](Made& it, const Device&) -> Json {
    it.report("best", 0.5);
    return {{"last", 0.25}};
  });
  run(group);
  EXPECT_EQ(fails.result(), (Json{{"best", 0.5}}));
  EXPECT_EQ(ends.result(), (Json{{"best", 0.5}, {"last", 0.25}}));
}

TEST_F(YardTest, HandsMessagesToTheHandlerOfTheirSourceElseToTheDefaultOne) {
  Yard yard(config(), options());
  std::vector<std::string> heard;
  const auto listen = [&heard](std::string who) {
    return [&heard, who = std::move(who)](const Message& message) {
      heard.push_back(who + " hears " + message.command + " " + message.data.dump());
    };
  };
  EXPECT_TRUE(yard.on_message("a", listen("first")));
  EXPECT_FALSE(yard.on_message("a", listen("second")));
  EXPECT_TRUE(yard.on_message("b", [](const Message&) { throw std::runtime_error("no"); }));
  yard.on_any_message(listen("default"));
  yard.on_any_message(nullptr);
  TaskGroup group("g", {}, {.parallel_max = 1});
  for (const std::string id : {"a", "b", "c"}) {
    group.add<Made>(id, [](Made& it, const Device&) {
      static_cast<void>(it.send("update", {{"from", it.id()}}));
      static_cast<void>(it.send("again", nullptr));
      return Json::object();
    });
  }
  EXPECT_EQ(yard.run(group).value().finished, 3);
  EXPECT_THAT(heard,
              ElementsAre(R"(first hears update {"from":"a"})", "first hears again null",
                          R"(default hears update {"from":"c"})", "default hears again null"));
  EXPECT_THAT(notes, ElementsAre("what 'a' sends has a handler, which stays",
                                 "the handler for other messages is empty",
                                 "the handler of what 'b' sends: std::runtime_error: no",
                                 "the handler of what 'b' sends: std::runtime_error: no"));
}

TEST_F(YardTest, HandsABufferOfAnySizeToTheHandlerOfAMessage) {
  Yard yard(config(), options());
  std::vector<std::size_t> sizes;
  std::vector<bool> whole;
  yard.on_any_message([&](const Message& message) {
    const auto first = static_cast<std::byte>(message.data.at("first").get<int>());
    sizes.push_back(message.buffer.size());
    whole.push_back(
        std::ranges::all_of(message.buffer, [first](std::byte each) { return each == first; }));
  });
  // Some go within the frame, the others by memory that is shared and used again; more of these
  // than can be on their way at once, and ever larger ones.
  const std::vector<std::size_t> sent{
      0,        10,     std::size_t{1} << 20, (1 << 20) + 1, 3 << 20, 3 << 20, 3 << 20, 9 << 20,
      20 << 20, 3 << 20};
  TaskGroup group("g");
  group.add<Made>("a", [&sent](Made& it, const Device&) {
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const std::vector<std::byte> buffer(sent[i], static_cast<std::byte>(i));
      static_cast<void>(it.send("weights", {{"first", i}}, buffer));
    }
    return Json::object();
  });
  EXPECT_EQ(yard.run(group).value().finished, 1);
  EXPECT_EQ(sizes, sent);
  EXPECT_EQ(whole, std::vector<bool>(sent.size(), true));
}

TEST_F(YardTest, RunsGroupsInOrderWhateverBecomesOfTheirTasks) {
  Yard yard(config(), options());
  TaskGroup first;
  TaskGroup second;
  first.add<Made>("a", [](Made&, const Device&) -> Json { throw std::runtime_error("x"); });
  second.add<Made>("a", [](Made&, const Device&) { return Json::object(); });
  yard.add(first);
  yard.add(second);
  const RunSummary done = yard.run().value();
  EXPECT_EQ(done.finished, 1);
  EXPECT_EQ(done.failed, 1);
  EXPECT_EQ(first.name(), "group-1");
  EXPECT_EQ(second.name(), "group-2");
  TaskGroup other("group-1");
  other.add<Made>("a", [](Made&, const Device&) { return Json::object(); });
  EXPECT_EQ(yard.run(other).error().message, "a group 'group-1' has run in this yard already");
}

TEST_F(YardTest, RunsOneTaskInAGroupOfItsOwn) {
  Yard yard(config(), options());
  Made one("a", [](Made& it, const Device&) { return Json{{"dir", it.task_dir()}}; });
  Made two("a", [](Made&, const Device&) { return Json::object(); });
  EXPECT_FALSE(one.is_alive());
  EXPECT_EQ(yard.run(one).value().finished, 1);
  EXPECT_EQ(yard.run(two).value().finished, 1);
  EXPECT_EQ(one.result().at("dir"), yard.directory() + "/default/a");
  EXPECT_EQ(two.task_dir(), yard.directory() + "/default-2/a");
  EXPECT_FALSE(one.is_alive());
  std::ifstream page(yard.directory() + "/reports/index.html");
  const std::string index{std::istreambuf_iterator<char>(page), {}};
  EXPECT_THAT(index, HasSubstr("<a href=\"default.html\">default</a>"));
  EXPECT_THAT(index, HasSubstr("<a href=\"default-2.html\">default-2</a>"));
}

/// Counters that this process and all its forks see.
struct Shared {
  std::atomic<int> ready = 0;
  std::atomic<int> done = 0;
  std::array<std::atomic<std::int64_t>, 11> kib{};
  std::atomic<int> terms = 0;
};

Shared& shared_by_forks() {
  void* const place =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *new (place) Shared;
}

pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  pid_t parent = 0;
  while (file >> word) {
    if (word == "PPid:" && file >> parent) return parent;
  }
  return 0;
}

std::int64_t pss_kib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  std::string word;
  while (file >> word) {
    std::int64_t kib = 0;
    if (word == "Pss:" && file >> kib) return kib;
  }
  return 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

TEST_F(YardTest, SharesWhatWasLoadedBeforeAmongAllTasks) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has memory of its own in each process";
  constexpr int kTasks = 8;
  const std::vector<char> data(std::size_t{1} << 29, 'x');
  Shared& shared = shared_by_forks();
  const pid_t program = ::getpid();
  TaskGroup group("g");
  for (int k = 0; k < kTasks; ++k) {
    group.add<Made>(std::to_string(k), [&, k, program](Made&, const Device&) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < data.size(); i += 4096) sum += data[i];
      ++shared.ready;
      sys::eventually([&] { return shared.ready == kTasks; });
      shared.kib.at(static_cast<std::size_t>(k)) = pss_kib(::getpid());
      if (k == 0) shared.kib[8] = pss_kib(program);
      const pid_t keeper = ::getppid();
      if (k == 0) shared.kib[9] = pss_kib(keeper);
      if (k == 0) shared.kib[10] = pss_kib(parent_of(keeper));
      ++shared.done;
      sys::eventually([&] { return shared.done == kTasks; });
      return Json{{"sum", sum}};
    });
  }
  EXPECT_EQ(run(group).finished, kTasks);
  std::int64_t all = 0;
  for (const auto& kib : shared.kib) {
    EXPECT_GT(kib, 0);
    all += kib;
  }
  EXPECT_GT(all, 512 * 1'024);
  EXPECT_LT(all, 512 * 1'024 * 13 / 10) << "KiB, over all processes";
  for (const Task& task : group.tasks()) EXPECT_EQ(task.result(), (Json{{"sum", 'x' * 131'072}}));
}

TEST_F(YardTest, KillsItsTasksWithoutTermWhenTheProgramDies) {
  Shared& shared = shared_by_forks();
  const pid_t program = ::fork();
  ASSERT_GE(program, 0);
  if (program == 0) {
    TaskGroup group("g");
    group.add<Made>("a", [&shared](Made&, const Device&) -> Json {
      sigset_t term{};
      ::sigemptyset(&term);
      ::sigaddset(&term, SIGTERM);
      ::pthread_sigmask(SIG_BLOCK, &term, nullptr);
      shared.kib[0] = ::getpid();
      for (int signal = 0; ::sigwait(&term, &signal) == 0;) ++shared.terms;
      return {};
    });
    run(group);
    std::_Exit(1);
  }
  ASSERT_TRUE(sys::eventually([&] { return shared.kib[0] != 0; }));
  const auto task = static_cast<pid_t>(shared.kib[0].load());
  ::kill(program, SIGKILL);
  ASSERT_EQ(::waitpid(program, nullptr, 0), program);
  EXPECT_TRUE(sys::eventually([task] { return ::kill(task, 0) != 0 && errno == ESRCH; }));
  EXPECT_EQ(shared.terms, 0);
}

TEST(TaskIds, AreUuidsWhereNoneIsGiven) {
  struct Plain : Task {
    Json train(const Device&) override { return {}; }
  };
  const Plain first;
  const Plain second;
  EXPECT_EQ(first.id().size(), 36U);
  EXPECT_EQ(first.id()[14], '4');
  EXPECT_NE(first.id(), second.id());
  EXPECT_EQ(first.status(), Status::Init);
  EXPECT_EQ(first.result(), Json::object());
  EXPECT_FALSE(first.load_time());
}

}  // namespace
}  // namespace trainyard::library
