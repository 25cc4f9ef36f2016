// The machine we are on, with a real keeper and real processes.
#include "run/local_machine.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <ostream>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/fake_gpus.h"
#include "process/end_notes.h"
#include "sys/descriptor.h"
#include "sys/pidfd.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "wire/metric_line.h"

namespace trainyard::run {
namespace {

constexpr Duration kLongEnough{30'000};
const model::Capacity kCapacity{.memory = gb(4), .cpus = model::cpus(2)};
constexpr model::AttemptKey kFirst{.task = {0}, .attempt = 1};

/// A yard that starts one shell command, which leaves its result as a task does.
class LocalMachineTest : public ::testing::Test {
 protected:
  explicit LocalMachineTest(bool adopts_orphans = false)
      : keeper_(process::Keeper::fork({.stop_grace = kLongEnough,
                                       .unguarded_grace = kLongEnough,
                                       .adopts_orphans = adopts_orphans})
                    .value()) {}

  LocalMachine machine(std::string command, Duration sample_every,
                       hardware::GpuWatch* gpus = nullptr,
                       LocalMachine::PatternOf pattern_of = nullptr) {
    return {
        loop_, keeper_,
        LocalMachine::Options{
            .begins = {Duration{5'000}},
            .sample_every = sample_every,
            .joins = model::MachineJoined{.machine = {}, .name = "lab1", .capacity = kCapacity},
            .launch =
                [this, command = std::move(command)](model::AttemptKey, const model::Grant& grant) {
                  gpus_answer_ = grant.gpus_answer;
                  return model::Launch{
                      .arguments = {"/bin/sh", "-c", command},
                      .environment = {fmt::format("TRAINYARD_ATTEMPT={}", attempt_)},
                      .working_directory = place_,
                      .task_directory = place_ + "/task",
                      .stdout_path = place_ + "/task/stdout.log",
                      .stderr_path = place_ + "/task/stderr.log",
                      .result_path = place_ + "/task/result.json",
                      .journal_number = kJournalNumber};
                },
            .pattern_of = std::move(pattern_of),
            .gpus = gpus,
            .notes = notes_}};
  }

  /// The events until the attempt has ended; empty when it did not in time.
  static std::vector<model::Event> until_the_end(LocalMachine& machine) {
    std::vector<model::Event> all;
    const Duration end = sys::EventLoop::now() + kLongEnough;
    while (sys::EventLoop::now() < end) {
      for (model::Event& event : machine.wait(std::nullopt)) {
        all.push_back(event);
        if (std::holds_alternative<model::AttemptEnded>(event.what)) return all;
      }
    }
    return {};
  }

  /// Starts the attempt, calls `then` once it runs, and returns how it has ended.
  template <class Then>
  static model::AttemptEnded end_after(LocalMachine& machine, Then then) {
    machine.carry_out(model::StartAttempt{.key = kFirst, .promise = {}});
    const Duration end = sys::EventLoop::now() + kLongEnough;
    while (sys::EventLoop::now() < end) {
      for (const model::Event& event : machine.wait(std::nullopt)) {
        if (std::holds_alternative<model::AttemptStarted>(event.what)) then();
        const auto* const ended = std::get_if<model::AttemptEnded>(&event.what);
        if (ended != nullptr) return *ended;
      }
    }
    ADD_FAILURE() << "it has not ended";
    return {};
  }
  /// The keeper's note about an attempt that exited with 3.
  [[nodiscard]] process::EndNote some_note() const {
    return {.of = notes_,
            .attempt = {.journal_number = kJournalNumber},
            .ended = {.key = kFirst, .end = model::ExitedWith{3}, .told_to_end = false}};
  }
  void put(const process::EndNote& note) const {
    process::add_end_note(notes_.path,
                          process::end_note_record(process::end_note_head(note), note.ended.left));
  }

  static constexpr std::uint32_t kJournalNumber = 7;

  sys::EventLoop loop_;
  process::Keeper keeper_;
  sys::TemporaryDirectory directory_;
  const std::string& place_ = directory_.path();
  int attempt_ = 1;           ///< Set by the launches.
  bool gpus_answer_ = false;  ///< Set by the last grant.
  process::EndNotes notes_{.path = place_ + "/trainyard.ends", .execution = 2};
};

TEST_F(LocalMachineTest, TellsOfAnAttemptInTheTimeOfTheRun) {
  LocalMachine yard = machine("echo '{\"x\": 1}' > task/result.json; exit 3", Duration{1000});
  const std::vector<model::Event> first = yard.wait(std::nullopt);
  ASSERT_EQ(first.size(), 2U);
  const auto& joined = std::get<model::MachineJoined>(first.front().what);
  EXPECT_EQ(joined.machine, model::MachineIndex{});
  EXPECT_EQ(joined.name, "lab1");
  EXPECT_EQ(joined.capacity, kCapacity);
  EXPECT_TRUE(std::holds_alternative<model::Sampled>(first.back().what));
  EXPECT_GE(first.front().at, Instant{Duration{5'000}}) << "a resumed run goes on counting";
  yard.carry_out(model::StartAttempt{.key = kFirst, .promise = {}});
  const std::vector<model::Event> events = until_the_end(yard);
  ASSERT_GE(events.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<model::AttemptStarted>(events.front().what));
  const auto& ended = std::get<model::AttemptEnded>(events.back().what);
  EXPECT_EQ(ended.key, kFirst);
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{3}));
  EXPECT_EQ(ended.result, R"({"x":1})");
  for (std::size_t i = 1; i < events.size(); ++i) EXPECT_LE(events[i - 1].at, events[i].at);
}

TEST_F(LocalMachineTest, TellsWhatAnAttemptPrintsOfItselfBeforeItsEnd) {
  LocalMachine yard =
      machine("echo '::metric loss=2'; echo '::metric fraction=0.5 loss=1' >&2", kLongEnough);
  static_cast<void>(yard.wait(std::nullopt));
  yard.carry_out(model::StartAttempt{.key = kFirst, .promise = {}});
  const std::vector<model::Event> events = until_the_end(yard);
  ASSERT_EQ(events.size(), 3U);
  const auto& told = std::get<model::Progressed>(events[1].what);
  EXPECT_EQ(told.key, kFirst);
  EXPECT_EQ(told.fraction, 0.5);
  EXPECT_EQ(told.values, R"({"loss":1})");
  EXPECT_EQ(std::get<model::AttemptEnded>(events[2].what).result, R"({"loss":1})")
      << "it left no other";
}

TEST_F(LocalMachineTest, WarnsOfAMetricThatIsNaNAtTheEnd) {
  LocalMachine yard =
      machine("echo '::metric loss=1 acc=nan'; echo '::metric loss=nan acc=1'", kLongEnough);
  static_cast<void>(yard.wait(std::nullopt));
  const model::AttemptEnded ended = end_after(yard, [] {});
  EXPECT_EQ(ended.result, R"({"acc":1,"loss":null})");
  EXPECT_EQ(ended.warning, "metric 'loss' was NaN: kept as null");
}

TEST_F(LocalMachineTest, TakesTheLastMetricsForTheResultInPlaceOfADiscardedOne) {
  LocalMachine yard = machine("echo '::metric acc=0.5'; : > task/result.json", kLongEnough);
  static_cast<void>(yard.wait(std::nullopt));
  const model::AttemptEnded ended = end_after(yard, [] {});
  EXPECT_EQ(ended.result, R"({"acc":0.5})");
  EXPECT_EQ(ended.warning, "result.1.json: is empty: result discarded");
}

TEST_F(LocalMachineTest, WarnsOfPrintedMetricsThatAreLost) {
  const auto finds_none = [](std::string_view /*line*/) { return wire::MetricLine(); };
  LocalMachine yard =
      machine("echo '::metric acc=87%'; echo no JSON > task/result.json", kLongEnough, nullptr,
              [&](model::TaskIndex) { return LinePattern(finds_none); });
  static_cast<void>(yard.wait(std::nullopt));
  EXPECT_THAT(end_after(yard, [] {}).warning,
              ::testing::MatchesRegex("result.1.json: .*: result discarded; printed metric "
                                      "'acc=87%' is not valid: write NAME=NUMBER; the pattern of "
                                      "'metrics' found no number in the output"));
}

/// Prints one metric and one other line, and has a result.
constexpr const char* kHasMetricAndResult =
    "echo '::metric loss=2'; echo any line; echo '{\"acc\": 1}' > task/result.json";

TEST_F(LocalMachineTest, AddsNoMetricToTheResultOfATaskWithoutAPattern) {
  LocalMachine yard = machine(kHasMetricAndResult, kLongEnough);
  static_cast<void>(yard.wait(std::nullopt));
  EXPECT_EQ(end_after(yard, [] {}).result, R"({"acc":1})");
}

TEST_F(LocalMachineTest, AddsMetricsToTheResultOfATaskWithAPattern) {
  const auto find_lines = [](std::string_view /*line*/) {
    return wire::MetricLine{.metrics = {{.name = "lines", .number = 1, .whole = 1}}};
  };
  LocalMachine yard = machine(kHasMetricAndResult, kLongEnough, nullptr,
                              [&](model::TaskIndex) { return LinePattern(find_lines); });
  static_cast<void>(yard.wait(std::nullopt));
  EXPECT_EQ(end_after(yard, [] {}).result, R"({"acc":1,"lines":1,"loss":2})");
}

TEST_F(LocalMachineTest, ReadsSoMuchOfWhatAllPrintInOneTurn) {
  constexpr std::uint32_t kAttempts = 6;
  ASSERT_EQ(::mkfifo((place_ + "/gate").c_str(), 0600), 0);
  const auto log = [this](std::uint32_t task) { return fmt::format("{}/{}.log", place_, task); };
  LocalMachine yard(
      loop_, keeper_,
      {.begins = {},
       .sample_every = Duration{200},
       .joins = model::MachineJoined{},
       .launch = [&](model::AttemptKey key, const auto&) {
         return model::Launch{
             .arguments = {"/bin/sh", "-c",
                           "read x < gate; head -c 1000000 /dev/zero | tr '\\0' '\\n'; echo "
                           "'::metric n=1'; exec sleep 1000"},
             .environment = {},
             .working_directory = place_,
             .task_directory = place_ + "/task",
             .stdout_path = log(key.task.value),
             .stderr_path = log(key.task.value),
             .result_path = {}};
       }});
  static_cast<void>(yard.wait(std::nullopt));
  for (std::uint32_t task = 0; task < kAttempts; ++task) {
    yard.carry_out(model::StartAttempt{.key = {{task}, 1}, .promise = {}});
  }
  const Duration end = sys::EventLoop::now() + kLongEnough;
  for (std::uint32_t started = 0; started < kAttempts && sys::EventLoop::now() < end;) {
    for (const model::Event& event : yard.wait(std::nullopt)) {
      started += std::holds_alternative<model::AttemptStarted>(event.what) ? 1U : 0U;
    }
  }
  // A process that holds both ends does not block.
  std::fstream gate(place_ + "/gate", std::ios::in | std::ios::out);
  gate << std::string(kAttempts, '\n') << std::flush;
  const auto size_of = [](const std::string& path) {
    std::error_code none;
    const auto size = std::filesystem::file_size(path, none);
    return none ? 0 : size;
  };
  for (std::uint32_t task = 0; task < kAttempts; ++task) {
    while (size_of(log(task)) < 1'000'013 && sys::EventLoop::now() < end) continue;
  }
  std::vector<std::size_t> told;  // In each turn.
  std::size_t all = 0;
  while (all < kAttempts && sys::EventLoop::now() < end) {
    const std::vector<model::Event> turn = yard.wait(std::nullopt);
    const auto now = std::ranges::count_if(turn, [](const model::Event& event) {
      return std::holds_alternative<model::Progressed>(event.what);
    });
    if (now > 0) told.push_back(static_cast<std::size_t>(now));
    all += static_cast<std::size_t>(now);
  }
  EXPECT_THAT(told, ::testing::ElementsAre(4U, 2U)) << "those that were left out come next";
}

TEST_F(LocalMachineTest, TellsThatWhatRanHasVanishedBeforeAnotherKeeperAnswers) {
  LocalMachine yard = machine("test $TRAINYARD_ATTEMPT = 2 || sleep 1000; exit 3", Duration{1000});
  yard.carry_out(model::StartAttempt{.key = kFirst, .promise = {}});
  const auto until = [&yard](auto holds) {
    std::vector<model::What> seen;
    const Duration end = sys::EventLoop::now() + kLongEnough;
    while (sys::EventLoop::now() < end) {
      for (model::Event& event : yard.wait(std::nullopt)) {
        const bool look = std::holds_alternative<model::Sampled>(event.what);
        if (!look) seen.push_back(std::move(event.what));
      }
      if (!seen.empty() && holds(seen.back())) break;
    }
    return seen;
  };
  until([](const model::What& it) { return std::holds_alternative<model::AttemptStarted>(it); });
  const std::int64_t keeper = keeper_.pid();
  ::kill(static_cast<pid_t>(keeper), SIGKILL);
  const std::vector<model::What> told = until([](const model::What& it) {
    const auto* const silent = std::get_if<model::KeeperSilent>(&it);
    return silent != nullptr && !silent->silent;
  });
  ASSERT_EQ(told.size(), 3U);
  EXPECT_TRUE(std::get<model::KeeperSilent>(told[0]).silent);
  const auto& ended = std::get<model::AttemptEnded>(told[1]);
  EXPECT_EQ(ended.key, kFirst);
  EXPECT_EQ(ended.end, model::End(model::Vanished{
                           fmt::format("the keeper (process {}) was killed by signal 9", keeper)}));
  EXPECT_FALSE(ended.ended) << "nobody saw when";
  EXPECT_EQ(std::get<model::KeeperSilent>(told[2]).another, keeper_.pid());
  EXPECT_FALSE(yard.keeper_gone());

  attempt_ = 2;
  yard.carry_out(model::StartAttempt{.key = {.task = kFirst.task, .attempt = 2}, .promise = {}});
  const std::vector<model::Event> again = until_the_end(yard);
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(std::get<model::AttemptEnded>(again.back().what).end, model::End(model::ExitedWith{3}));
}

TEST_F(LocalMachineTest, ReadsWhatADeadKeeperNotedBeforeAnAttemptCountsAsLost) {
  LocalMachine yard = machine("exec sleep 1000", Duration{1000});
  const model::AttemptEnded ended = end_after(yard, [this] {
    put(some_note());
    ::kill(static_cast<pid_t>(keeper_.pid()), SIGKILL);
  });
  EXPECT_EQ(ended.key, kFirst);
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{3}));
}

TEST_F(LocalMachineTest, KnowsOfATaskThatHadFinishedThoughItsKeeperDiedBeforeItKnew) {
  LocalMachine yard = machine(
      "echo $$ > pid; until test -e go; do sleep 0.01; done; echo '{\"x\": 1}' > task/result.json",
      Duration{1000});
  const model::AttemptEnded ended = end_after(yard, [this] {
    const std::string pid = directory_ / "pid";
    ASSERT_TRUE(sys::eventually([&pid] { return sys::content_of(pid).ends_with('\n'); }));
    const sys::Descriptor task = sys::open_pidfd(std::stoll(sys::content_of(pid)));
    ::kill(static_cast<pid_t>(keeper_.pid()), SIGSTOP);
    directory_.write("go", "");
    ASSERT_TRUE(sys::wait_until_ended(task, kLongEnough));
    ::kill(static_cast<pid_t>(keeper_.pid()), SIGKILL);
  });
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{0}));
  EXPECT_EQ(ended.result, R"({"x":1})");
}

/// A yard that adopts orphans, as this process does no more when the test is over.
class AdoptingMachineTest : public LocalMachineTest {
 protected:
  AdoptingMachineTest() : LocalMachineTest(true) {}
  ~AdoptingMachineTest() override {
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
};

TEST_F(AdoptingMachineTest, KnowsThatATaskHadFinishedBeforeItIsInterruptedForADeadGuardAndKeeper) {
  LocalMachine yard =
      machine("echo $$ > pid; until test -e go; do sleep 0.01; done", Duration{1000});
  yard.carry_out(model::StartAttempt{.key = kFirst, .promise = {}});
  ASSERT_TRUE(sys::eventually([&yard] {
    return std::ranges::any_of(yard.wait(std::nullopt), [](const model::Event& it) {
      return std::holds_alternative<model::AttemptStarted>(it.what);
    });
  }));
  const std::string pid = directory_ / "pid";
  ASSERT_TRUE(sys::eventually([&pid] { return sys::content_of(pid).ends_with('\n'); }));
  const sys::Descriptor task = sys::open_pidfd(std::stoll(sys::content_of(pid)));
  ::kill(static_cast<pid_t>(keeper_.pid()), SIGSTOP);
  directory_.write("go", "");
  ASSERT_TRUE(sys::wait_until_ended(task, kLongEnough));
  ::kill(static_cast<pid_t>(keeper_.guard_pid()), SIGKILL);
  ::kill(static_cast<pid_t>(keeper_.pid()), SIGKILL);
  const std::vector<model::Event> events = until_the_end(yard);
  const auto interrupt = std::ranges::find_if(events, [](const model::Event& it) {
    return std::holds_alternative<model::InterruptAsked>(it.what);
  });
  ASSERT_NE(interrupt, events.end());
  const auto& ended = std::get<model::AttemptEnded>(events.back().what);
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{0}));
  ASSERT_TRUE(ended.ended);
  EXPECT_LT(*ended.ended, interrupt->at) << "the scheduler compares the two";
  EXPECT_FALSE(ended.told_to_end) << "an earlier interrupt has not reached it, either";
}

TEST_F(LocalMachineTest, TakesNoNoteOfSomethingElseForTheEndOfAnAttempt) {
  LocalMachine yard = machine("exec sleep 1000", Duration{1000});
  const model::AttemptEnded ended = end_after(yard, [this] {
    process::EndNote other = some_note();
    other.of.execution = 1;
    put(other);
    other = some_note();
    other.ended.key.attempt = 2;
    put(other);
    other = some_note();
    other.attempt.journal_number = 8;
    put(other);
    // An attempt that was told to end because there is no guard says nothing about the task.
    other = some_note();
    other.ended.told_to_end = true;
    put(other);
    ::kill(static_cast<pid_t>(keeper_.pid()), SIGKILL);
  });
  EXPECT_TRUE(std::holds_alternative<model::Vanished>(ended.end));
}

TEST_F(LocalMachineTest, KnowsHowATaskEndedThatSavedItsResultAfterTheGuardWasKilled) {
  LocalMachine yard = machine(
      "trap 'echo \"{\\\"x\\\": 1}\" > task/result.json; exit 0' TERM; : > ready; "
      "while :; do sleep 0.01; done",
      Duration{1000});
  const model::AttemptEnded ended = end_after(yard, [this] {
    ASSERT_TRUE(sys::eventually([this] { return std::filesystem::exists(place_ + "/ready"); }));
    ::kill(static_cast<pid_t>(keeper_.guard_pid()), SIGKILL);
  });
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{0}));
  EXPECT_EQ(ended.result, R"({"x":1})");
  EXPECT_TRUE(yard.keeper_gone());
}

TEST_F(LocalMachineTest, TellsOfTheMachineBeforeWhatIsToBeRunThere) {
  LocalMachine yard = machine("exit 0", Duration{1000});
  yard.add({.number = 1, .plan = std::make_shared<model::Plan>()});
  const std::vector<model::Event> first = yard.wait(std::nullopt);
  ASSERT_EQ(first.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<model::MachineJoined>(first[0].what));
  EXPECT_TRUE(std::holds_alternative<model::Sampled>(first[1].what));
  EXPECT_EQ(std::get<model::BatchAdded>(first[2].what).number, 1U);
  EXPECT_LE(first[0].at, first[1].at);
  EXPECT_LE(first[1].at, first[2].at);
}

TEST_F(LocalMachineTest, HearsOfEndsThoughALookAtTheMachineIsAlwaysDue) {
  LocalMachine yard = machine("exit 0", Duration{0});
  static_cast<void>(yard.wait(std::nullopt));
  yard.carry_out(model::StartAttempt{.key = kFirst, .promise = {}});
  EXPECT_FALSE(until_the_end(yard).empty());
}

/// The usage of an attempt that was never sampled with the machine.
model::Usage usage_at_end(const std::vector<model::Event>& events) {
  if (events.empty()) return {};
  return std::get<model::AttemptEnded>(events.back().what).usage;
}

TEST_F(LocalMachineTest, KnowsThePeakOfAnAttemptThatWasOverBeforeAnyLook) {
  LocalMachine yard =
      machine("dd if=/dev/zero of=/dev/null bs=100MB count=1 && : > over", kLongEnough);
  static_cast<void>(yard.wait(std::nullopt));
  yard.carry_out(model::StartAttempt{.key = kFirst, .promise = {}});
  static_cast<void>(yard.wait(Instant{}));
  // It is told to begin by now. There is no sampling while no call waits: a later sample is small.
  ASSERT_TRUE(sys::eventually([this] { return std::filesystem::exists(place_ + "/over"); }));
  const model::Usage usage = usage_at_end(until_the_end(yard));
  // Less what the keeper had when it forked, which is more with sanitizers.
  EXPECT_GE(usage.memory_peak, mb(70));
  EXPECT_LE(usage.memory_peak, mb(110));
  EXPECT_TRUE(usage.memory_at_least) << "that of one process";
}

TEST_F(LocalMachineTest, LooksAtAFreshAttemptBeforeTheNextLookAtTheMachine) {
  for (const char* const pipe : {"/gate", "/ready"}) {
    ASSERT_EQ(::mkfifo((place_ + pipe).c_str(), 0600), 0);
  }
  LocalMachine yard = machine(
      "hold='$x = \"x\"; $x x= 50_000_000; open(R, \">\", \"ready\"); syswrite(R, \"it\\n\"); "
      "open(G, \"<\", \"gate\")'; perl -e \"$hold\" & perl -e \"$hold\"; wait",
      kLongEnough);
  static_cast<void>(yard.wait(std::nullopt));
  yard.carry_out(model::StartAttempt{.key = kFirst, .promise = {}});
  static_cast<void>(yard.wait(std::nullopt));
  // A process that holds both ends waits for a writer, and for a line of each.
  std::fstream ready(place_ + "/ready", std::ios::in | std::ios::out);
  std::string line;
  ASSERT_TRUE(std::getline(ready, line) && std::getline(ready, line));
  // All of its looks have been when this time has passed.
  const Instant looked = yard.wait(Instant{}).back().at + Duration{1'000};
  while (yard.wait(looked).back().at < looked) {
  }
  const std::fstream gate(place_ + "/gate", std::ios::in | std::ios::out);
  const model::Usage usage = usage_at_end(until_the_end(yard));
  EXPECT_GE(usage.memory_peak, mb(100)) << "both of its processes";
  EXPECT_LE(usage.memory_peak, mb(150));
  EXPECT_FALSE(usage.memory_at_least);
}

TEST_F(LocalMachineTest, SaysNothingOfAProcessThatWasSmallerThanItsKeeper) {
  LocalMachine yard = machine("exit 0", kLongEnough);
  static_cast<void>(yard.wait(std::nullopt));
  yard.carry_out(model::StartAttempt{.key = kFirst, .promise = {}});
  EXPECT_EQ(usage_at_end(until_the_end(yard)).memory_peak, Bytes{});
}

TEST_F(LocalMachineTest, CountsWhatRanksShareOnceAndKnowsWhichOneTookMost) {
  const std::string shared = fmt::format("/dev/shm/trainyard-test-{}", ::getpid());
  model::Launch launch{
      .arguments = {"/usr/bin/python3", "-c",
                    "import mmap, os, sys, time\n"
                    "size = 40_000_000\n"
                    "file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
                    "os.ftruncate(file, size)\n"
                    "arena = mmap.mmap(file, size)\n"
                    "for at in range(0, size, 4096): arena[at] = 1\n"
                    "rank = os.environ['RANK']\n"
                    "own = bytearray(b'x' * 20_000_000) if rank == '1' else 0\n"
                    "open('ready' + rank, 'w').write('yes\\n')\n"
                    "time.sleep(1000)\n",
                    shared},
      .environment = {},
      .working_directory = place_,
      .task_directory = place_ + "/task",
      .stdout_path = place_ + "/task/stdout.log",
      .stderr_path = place_ + "/task/stderr.log",
      .ranks = 2,
      .own_ranks = model::OwnRanks{.gpus = 0, .log_paths = {place_ + "/task/rank-1.log"}},
      .result_path = {}};
  LocalMachine yard(loop_, keeper_,
                    {.begins = {},
                     .sample_every = Duration{50},
                     .joins = model::MachineJoined{},
                     .launch = [&](auto, const auto&) { return launch; }});
  static_cast<void>(yard.wait(std::nullopt));
  yard.carry_out(model::StartAttempt{.key = kFirst, .promise = {}});
  const auto is_ready = [this](const char* name) {
    return sys::content_of(place_ + "/" + name) == "yes\n";
  };
  const Duration end = sys::EventLoop::now() + kLongEnough;
  while (!(is_ready("ready0") && is_ready("ready1")) && sys::EventLoop::now() < end) {
    static_cast<void>(yard.wait(std::nullopt));
  }
  // A sample from before all processes were there has been reported already.
  Bytes memory;
  while (memory < mb(60) && sys::EventLoop::now() < end) {
    for (const model::Event& event : yard.wait(std::nullopt)) {
      const auto* const sampled = std::get_if<model::Sampled>(&event.what);
      if (sampled != nullptr && !sampled->tasks.empty()) memory = sampled->tasks[0].memory;
    }
  }
  std::filesystem::remove(shared);
  EXPECT_GE(memory, mb(60));
  EXPECT_LE(memory, mb(95)) << "40 MB of it twice would be more";
  yard.carry_out(model::StopAttempt{.key = kFirst, .kill = true});
  const std::vector<model::Event> events = until_the_end(yard);
  ASSERT_FALSE(events.empty());
  const auto& ended = std::get<model::AttemptEnded>(events.back().what);
  EXPECT_EQ(ended.ranks.largest, 1);
  EXPECT_GE(ended.ranks.largest_memory, mb(60));
}

TEST_F(LocalMachineTest, ReportsAFailureOnAGpuAfterASampleHoweverLateTheDriverAnswers) {
  const hardware::FakeGpus driver;
  driver.show_two();
  auto watch = hardware::GpuWatch::start({.nvml = TRAINYARD_FAKE_NVML_LIBRARY, .sys = "/none"},
                                         {.look = Duration{1'500}, .late = kLongEnough});
  ASSERT_TRUE(watch);
  LocalMachine yard = machine("exit 3", Duration{100}, &*watch);
  static_cast<void>(yard.wait(std::nullopt));
  driver.show_two(R"(, "hang_s": 1000)");
  yard.carry_out(model::StartAttempt{.key = kFirst, .promise = {}, .site = {.gpus = {{0}}}});
  const std::vector<model::Event> events = until_the_end(yard);
  ASSERT_GE(events.size(), 2U);
  const auto* const seen = std::get_if<model::GpusSampled>(&events.at(events.size() - 2).what);
  ASSERT_NE(seen, nullptr);
  EXPECT_TRUE(seen->ends_follow);
}

TEST_F(LocalMachineTest, StartsTasksWithWhetherAllGpusAnswer) {
  const hardware::FakeGpus driver;
  driver.show_two();
  auto watch = hardware::GpuWatch::start({.nvml = TRAINYARD_FAKE_NVML_LIBRARY, .sys = "/none"});
  ASSERT_TRUE(watch);
  LocalMachine yard = machine("exit 0", Duration{50}, &*watch);
  const auto start = [&yard](std::uint32_t attempt) {
    yard.carry_out(model::StartAttempt{
        .key = {.task = {0}, .attempt = attempt}, .promise = {}, .site = {.gpus = {{0}}}});
    return !until_the_end(yard).empty();
  };
  const auto is_lost = [](const model::Event& event) {
    const auto* const seen = std::get_if<model::GpusSampled>(&event.what);
    return seen != nullptr && !seen->gpus.at(1).present;
  };
  static_cast<void>(yard.wait(std::nullopt));
  EXPECT_TRUE(start(1));
  EXPECT_TRUE(gpus_answer_);
  driver.show_two({}, R"(, "lost": true)");
  const Duration end = sys::EventLoop::now() + kLongEnough;
  while (std::ranges::none_of(yard.wait(std::nullopt), is_lost)) {
    ASSERT_LT(sys::EventLoop::now(), end);
  }
  EXPECT_TRUE(start(2));
  EXPECT_FALSE(gpus_answer_) << "the number of GPU 0 may be that of another one for CUDA";
}

TEST_F(LocalMachineTest, LooksOnceAfterALongPause) {
  constexpr Duration kEvery{50};
  LocalMachine yard = machine("exit 0", kEvery);
  const Instant before = yard.wait(std::nullopt).front().at;
  // The time passes as it does for a machine that sleeps: nobody asks.
  const Duration woken = sys::EventLoop::now() + 10 * kEvery;
  while (sys::EventLoop::now() < woken) continue;
  const Instant first = yard.wait(std::nullopt).front().at;
  EXPECT_GE(first - before, 10 * kEvery);
  EXPECT_GE(yard.wait(std::nullopt).front().at - first, kEvery);
}

TEST_F(LocalMachineTest, AnswersAKillRequestOnceItIsDecided) {
  LocalMachine yard = machine("exit 0", Duration{1000});
  static_cast<void>(yard.wait(std::nullopt));
  std::vector<bool> answers;
  loop_.post([&] {
    yard.ask(model::KillAsked{.task = {7}}, [&](bool done) { answers.push_back(done); });
  });
  const std::vector<model::Event> events = yard.wait(std::nullopt);
  const auto& asked = std::get<model::KillAsked>(events.back().what);
  EXPECT_EQ(asked.task, model::TaskIndex{7});
  EXPECT_THAT(answers, ::testing::IsEmpty());
  yard.carry_out(model::Answer{.request = asked.request, .done = true});
  yard.carry_out(model::Answer{.request = asked.request, .done = true});
  EXPECT_THAT(answers, ::testing::ElementsAre(true)) << "once";
}

}  // namespace
}  // namespace trainyard::run
