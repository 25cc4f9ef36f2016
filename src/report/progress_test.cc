// The output of the progress line for a sequence of turns, letter by letter.
#include "report/progress.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/resources.h"
#include "report/terminal_text.h"

namespace trainyard::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// A group, and how many of its tasks had finished before.
struct TestGroup {
  std::string name;
  int tasks = 0;
  int finished = 0;
};

model::BatchAdded batch(std::uint32_t number, const std::vector<TestGroup>& groups) {
  auto plan = std::make_shared<model::Plan>();
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    plan->groups.push_back({.name = groups[i].name});
    plan->shapes.push_back({.group = {i}});
    for (int task = 0; task < groups[i].tasks; ++task) {
      plan->tasks.push_back(
          {.shape = {i},
           .before = task < groups[i].finished ? model::Verdict::Finished : model::Verdict::None});
    }
  }
  return {.number = number, .plan = std::move(plan)};
}

/// The task that prints nothing.
constexpr std::uint32_t kPrintsNothing = 7;

/// A line, with its output since the last call, and turns made of few words. Its first turn
/// contains its groups.
class Line {
 public:
  explicit Line(const std::vector<TestGroup>& groups, bool terminal = false, int width = 200)
      : Line(batch(1, groups), terminal, width) {}
  explicit Line(model::BatchAdded first, bool terminal = false, int width = 200)
      : first_(std::move(first)),
        line_({.name_of = [](model::TaskIndex task) { return fmt::format("train/{}", task.value); },
               .log_of = [](model::AttemptKey key) -> std::optional<std::string> {
                 if (key.task.value == kPrintsNothing) return std::nullopt;
                 return fmt::format("runs/x/train/{}/stderr.log", key.task.value);
               },
               .terminal = terminal,
               .width = [width] { return width; },
               .write = [this](std::string_view text) { written_ += text; }}) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  std::string begin() { return turn(0, {}); }

  std::string turn(std::int64_t at, model::Decision decision,
                   model::What what = model::TimePassed{}) {
    model::Turn turn;
    if (first_) {
      turn.events.push_back({.at = Instant{Duration{at}}, .what = std::move(*first_)});
      first_.reset();
      turn.decisions.emplace_back();
    }
    turn.events.push_back({.at = Instant{Duration{at}}, .what = std::move(what)});
    turn.decisions.push_back(std::move(decision));
    line_.on(turn);
    return std::exchange(written_, {});
  }

  std::string start(std::int64_t at, std::uint32_t task, std::uint32_t attempt = 1) {
    const model::AttemptKey key{.task = {task}, .attempt = attempt};
    model::Decision decision;
    decision.changes.emplace_back(model::TaskChanged{.key = key, .status = Status::Available});
    decision.changes.emplace_back(model::TaskChanged{.key = key, .status = Status::Training});
    decision.commands.emplace_back(model::StartAttempt{.key = key, .promise = {.memory = gb(1)}});
    return turn(at, decision);
  }

  std::string finish_task(std::int64_t at, std::uint32_t task) {
    return turn(at, {.changes = {model::TaskChanged{.key = {.task = {task}},
                                                    .status = Status::Exited,
                                                    .verdict = model::Verdict::Finished}}});
  }

  std::string fail(std::int64_t at, std::uint32_t task, const std::string& message = "out of it") {
    return turn(at, {.changes = {model::TaskChanged{.key = {.task = {task}},
                                                    .status = Status::Exception,
                                                    .verdict = model::Verdict::Failed,
                                                    .failure = model::Failure::OutOfMemory,
                                                    .message = message}}});
  }

  std::string finish() {
    line_.finish();
    return std::exchange(written_, {});
  }

  std::string note(std::string_view text) {
    line_.note(text);
    return std::exchange(written_, {});
  }

 private:
  std::optional<model::BatchAdded> first_;
  std::string written_;
  ProgressLine line_;
};

model::Sampled sampled(std::vector<Bytes> used) {
  model::Sampled sampled;
  for (std::size_t i = 0; i < used.size(); ++i) {
    sampled.tasks.push_back({.key = {.task = {static_cast<std::uint32_t>(i)}}, .memory = used[i]});
  }
  return sampled;
}

TEST(ProgressLine, SaysHowFarTasksSayThatTheyAre) {
  Line line({{.name = "train", .tasks = 3}}, true);
  line.begin();
  line.start(1000, 0);
  line.start(1100, 1);
  EXPECT_EQ(line.turn(2000, {}, model::Progressed{.key = {.task = {0}}, .fraction = 0.4}),
            "\r0/3 done, 2 running (40 %), 1 waiting, memory 2 GB reserved\x1b[K");
  line.turn(2050, {}, model::Progressed{.key = {.task = {0}, .attempt = 7}, .fraction = 0.9});
  EXPECT_EQ(line.turn(3000, {}, model::Progressed{.key = {.task = {1}}, .fraction = 0.55}),
            "\r0/3 done, 2 running (40 %, 55 %), 1 waiting, memory 2 GB reserved\x1b[K");
}

TEST(ProgressLine, DrawsOneLineOverAndOverInATerminal) {
  Line line({{.name = "train", .tasks = 3}}, true);
  EXPECT_EQ(line.begin(), "\r0/3 done, 3 waiting\x1b[K");
  EXPECT_EQ(line.start(1000, 0), "\r0/3 done, 1 running, 2 waiting, memory 1 GB reserved\x1b[K");
  EXPECT_EQ(line.turn(2000, {}, sampled({mb(310)})),
            "\r0/3 done, 1 running, 2 waiting, memory 310 MB used, 1 GB reserved\x1b[K");
  EXPECT_EQ(line.finish_task(11'000, 0), "\r1/3 done, 2 waiting, ETA 20 s\x1b[K");
  EXPECT_EQ(line.start(12'000, 1),
            "\r1/3 done, 1 running, 1 waiting, ETA 20 s, memory 310 MB used, 1 GB reserved\x1b[K");
  EXPECT_EQ(line.fail(13'000, 1),
            "\r\x1b[Ktrain/1: FAILED OUT_OF_MEMORY after 1.0 s: out of it, see "
            "runs/x/train/1/stderr.log\n"
            "\r1/3 done, 1 waiting, 1 failed, ETA 10 s\x1b[K");
  EXPECT_EQ(line.finish(), "\r\x1b[K");
  EXPECT_THAT(line.start(14'000, 2), IsEmpty());
}

TEST(ProgressLine, DrawsAtMostTenTimesASecond) {
  Line line({{.name = "train", .tasks = 1000}}, true);
  line.begin();
  int drawings = 0;
  for (int i = 1; i <= 1000; ++i) {
    const auto task = static_cast<std::uint32_t>((i - 1) / 2);
    const std::string text = i % 2 == 1 ? line.start(i, task) : line.finish_task(i, task);
    drawings += text.empty() ? 0 : 1;
  }
  EXPECT_EQ(drawings, 10);
}

TEST(ProgressLine, IsNeverWiderThanTheTerminalAndCutsNoLetter) {
  for (int width = 1; width < 120; ++width) {
    Line line({{.name = "train", .tasks = 3}}, true, width);
    const model::Decision waits{
        .changes = {model::ReasonChanged{
            .shape = {0},
            .reason = {.cause = model::Cause::Group, .groups = "'記憶體 für ähnliches'"}}}};
    std::string text = line.turn(0, waits);
    ASSERT_THAT(text, StartsWith("\r"));
    text = text.substr(1, text.size() - 1 - std::string_view("\x1b[K").size());
    ASSERT_LE(columns_of(text), width);
    ASSERT_THAT(plain(text), Not(HasSubstr("\xEF\xBF\xBD")));
  }
}

TEST(ProgressLine, CountsTasksOnHoldApartAndForecastsTheOthers) {
  Line line({{.name = "train", .tasks = 3}}, true);
  line.begin();
  line.start(1000, 0);
  line.finish_task(11'000, 0);
  const auto said = [](bool on_hold) {
    return model::Decision{.changes = {model::SaidOfTask{.task = {2}, .on_hold = on_hold}}};
  };
  EXPECT_EQ(line.turn(12'000, said(true)),
            "\r1/3 done, 1 waiting, 1 on hold until 'trainyard release', ETA 10 s\x1b[K");
  line.start(13'000, 1);
  const std::string rest = "\r2/3 done, 1 on hold until 'trainyard release'\x1b[K";
  EXPECT_EQ(line.finish_task(23'000, 1), rest);
  const model::Reason held{.cause = model::Cause::Held};
  EXPECT_EQ(line.turn(24'000, {.changes = {model::ReasonChanged{.shape = {0}, .reason = held}}}),
            rest);
  EXPECT_EQ(line.turn(25'000, said(false)), "\r2/3 done, 1 waiting, ETA 10 s\x1b[K");
}

TEST(ProgressLine, SaysOfARunThatIsResumedWhatIsOnHold) {
  model::BatchAdded resumed = batch(1, {{.name = "train", .tasks = 2}});
  auto plan = std::make_shared<model::Plan>(*resumed.plan);
  plan->said = {{.task = {1}, .on_hold = true}};
  resumed.plan = std::move(plan);
  Line line(std::move(resumed));
  EXPECT_EQ(line.begin(), "2 tasks in 1 group: 2 of train\n");
  line.start(1000, 0);
  EXPECT_EQ(line.finish_task(2000, 0), "[2.0 s] 1/2 done, 1 on hold until 'trainyard release'\n");
}

TEST(ProgressLine, CountsATaskThatARetrySelectsAtTheStartAsSelected) {
  model::BatchAdded resumed = batch(1, {{.name = "train", .tasks = 3, .finished = 1}});
  auto plan = std::make_shared<model::Plan>(*resumed.plan);
  plan->tasks[1].before = plan->tasks[2].before = model::Verdict::NotSelected;
  resumed.plan = std::move(plan);
  Line line(std::move(resumed));
  EXPECT_EQ(
      line.turn(0, {.changes = {model::TaskChanged{.key = {.task = {1}}, .status = Status::Init}}},
                model::RetryAsked{.task = {1}}),
      "3 tasks in 1 group: 3 of train; 1 finished before; 1 not selected\n");
}

TEST(ProgressLine, WritesFewPlainLinesWhenItIsNoTerminal) {
  Line line({{.name = "prepare", .tasks = 1, .finished = 1}, {.name = "train", .tasks = 4}});
  EXPECT_EQ(line.begin(), "5 tasks in 2 groups: 1 of prepare, 4 of train; 1 finished before\n");
  EXPECT_EQ(line.start(1000, 1), "");
  EXPECT_EQ(line.start(1000, 2), "");
  EXPECT_EQ(line.turn(9999, {}), "");
  EXPECT_EQ(line.turn(10'000, {}),
            "[10.0 s] 1/5 done, 2 running, 2 waiting, memory 2 GB reserved\n");
  EXPECT_EQ(line.turn(65'000, {}), "");
  EXPECT_EQ(line.turn(70'000, {}),
            "[1m10s] 1/5 done, 2 running, 2 waiting, memory 2 GB reserved\n");
  EXPECT_EQ(line.finish_task(71'000, 1),
            "[1m11s] 2/5 done, 1 running, 2 waiting, ETA 1m10s, memory 1 GB reserved\n");
  EXPECT_EQ(line.fail(72'000, 2),
            "train/2: FAILED OUT_OF_MEMORY after 1m11s: out of it, see runs/x/train/2/stderr.log\n"
            "[1m12s] 2/5 done, 2 waiting, 1 failed, ETA 2m20s\n");
  EXPECT_EQ(line.start(73'000, 3), "");
  EXPECT_EQ(line.finish(),
            "[1m13s] 2/5 done, 1 running, 1 waiting, 1 failed, ETA 2m20s, memory 1 GB "
            "reserved\n");
}

TEST(ProgressLine, WritesAtMostOnePlainLineATenthOfTheTasks) {
  Line line({{.name = "train", .tasks = 10'000}});
  line.begin();
  int lines = 0;
  for (std::uint32_t task = 0; task < 10'000; ++task) {
    line.start(1, task);
    lines += line.finish_task(1, task).empty() ? 0 : 1;
  }
  EXPECT_EQ(lines, 10);
  EXPECT_EQ(line.finish(), "");
}

TEST(ProgressLine, NamesNoLogOfATaskThatPrintedNothing) {
  Line line({{.name = "train", .tasks = 8}}, true);
  line.begin();
  line.start(1000, kPrintsNothing);
  EXPECT_THAT(
      line.fail(2000, kPrintsNothing),
      StartsWith("\r\x1b[Ktrain/7: FAILED OUT_OF_MEMORY after 1.0 s: out of it, no output\n"));
}

TEST(ProgressLine, TellsABoundedNumberOfTroubles) {
  Line line({{.name = "train", .tasks = 1000}}, true);
  line.begin();
  std::string all;
  for (std::uint32_t task = 0; task < 1000; ++task) all += line.fail(1, task);
  EXPECT_EQ(std::ranges::count(all, '\n'), ProgressLine::kTroubleLinesMax + 1);
  EXPECT_THAT(all, HasSubstr("\r\x1b[Kmore than 100 tasks failed, ran out of memory or left a "
                             "result missing or changed: 'trainyard status' shows the others\n"));
}

TEST(ProgressLine, TellsWhatWasWrongWithAResult) {
  Line line({{.name = "train", .tasks = 1000}}, true);
  line.begin();
  const auto end = [&line](std::uint32_t task) {
    return line.turn(1, {},
                     model::AttemptEnded{.key = {.task = {task}, .attempt = 1},
                                         .end = model::ExitedWith{0},
                                         .warning = "the result is not\nJSON"});
  };
  std::string all = end(7);
  EXPECT_THAT(all, StartsWith("\r\x1b[Ktrain/7: warning: the result is not JSON\n"));
  for (std::uint32_t task = 0; task < 500; ++task) all += end(task);
  EXPECT_EQ(std::ranges::count(all, '\n'), ProgressLine::kTroubleLinesMax + 1);
}

TEST(ProgressLine, CountsARetryingTaskApart) {
  Line line({{.name = "train", .tasks = 2}}, true);
  line.begin();
  line.start(1000, 0);
  EXPECT_EQ(
      line.turn(2000, {.changes = {model::TaskChanged{.key = {.task = {0}},
                                                      .status = Status::Interrupt,
                                                      .failure = model::Failure::OutOfMemory,
                                                      .message = "out of it, has 2 GB next"}}}),
      "\r\x1b[Ktrain/0: RETRYING after 1.0 s: out of it, has 2 GB next\n"
      "\r0/2 done, 1 retrying, 1 waiting\x1b[K");
  EXPECT_EQ(line.start(3000, 0, 2), "\r0/2 done, 1 running, 1 waiting, memory 1 GB reserved\x1b[K");
  // The time of the attempt that succeeded is what counts.
  EXPECT_EQ(line.finish_task(5000, 0), "\r1/2 done, 1 waiting, ETA 2 s\x1b[K");
}

TEST(ProgressLine, HasTheTimeOfAnAttemptFromItsProcessAsTheJournalHas) {
  Line line({{.name = "train", .tasks = 1}});
  line.begin();
  line.start(1000, 0);
  const model::AttemptKey key{.task = {0}, .attempt = 1};
  line.turn(9000, {}, model::AttemptStarted{.key = key, .began = Instant{Duration{3000}}});
  line.turn(9000, {}, model::AttemptEnded{.key = key, .ended = Instant{Duration{8000}}});
  EXPECT_THAT(line.fail(9000, 0),
              StartsWith("train/0: FAILED OUT_OF_MEMORY after 5.0 s: out of it, see "));
}

TEST(ProgressLine, CountsNoDelayOfARetryIntoTheTimeOfAKilledTask) {
  Line line({{.name = "train", .tasks = 1}});
  line.begin();
  line.start(1000, 0);
  line.turn(2000, {.changes = {model::TaskChanged{.key = {.task = {0}},
                                                  .status = Status::Interrupt,
                                                  .failure = model::Failure::Exit,
                                                  .exit_code = 3}}});
  EXPECT_THAT(line.turn(5000, {.changes = {model::TaskChanged{.key = {.task = {0}},
                                                              .status = Status::Exception,
                                                              .verdict = model::Verdict::Failed,
                                                              .failure = model::Failure::Killed}}}),
              StartsWith("train/0: FAILED KILLED after 1.0 s, see runs/x/train/0/stderr.log\n"));
}

TEST(ProgressLine, CountsATaskAsWaitingThatHasLoadedAndWaitsForADevice) {
  Line line({{.name = "train", .tasks = 2}}, true);
  line.begin();
  line.start(1000, 0);
  const model::AttemptKey key{.task = {0}};
  const auto enters = [&](std::int64_t when, Status status) {
    return line.turn(when, {.changes = {model::TaskChanged{.key = key, .status = status}}});
  };
  EXPECT_EQ(enters(2000, Status::Waiting), "\r0/2 done, 2 waiting, memory 1 GB reserved\x1b[K");
  EXPECT_EQ(
      line.turn(3000, {.changes = {model::TaskChanged{.key = key, .status = Status::Training}},
                       .commands = {model::GrantDevice{.key = key, .promise = {.memory = gb(2)}}}}),
      "\r0/2 done, 1 running, 1 waiting, memory 2 GB reserved\x1b[K");
}

TEST(ProgressLine, SaysWhatWouldHelpThem) {
  Line line({{.name = "train", .tasks = 2}}, true);
  line.begin();
  line.start(1000, 0);
  const model::Decision waits{
      .changes = {model::ReasonChanged{
          .shape = {0}, .reason = {.cause = model::Cause::Parallel, .parallel_max = 1}}}};
  line.turn(2000, waits);
  EXPECT_EQ(line.turn(6000, {}),
            "\r0/2 done, 1 running, 1 waiting, memory 1 GB reserved, waits: max-parallel "
            "allows 1 task of its group at once (job file: 'max-parallel: 2')\x1b[K");
}

TEST(ProgressLine, NamesNoKeyOfAFileForWhatWasSubmitted) {
  Line line({{.name = "train", .tasks = 1}}, true);
  line.begin();
  line.start(1000, 0);
  line.turn(2000, {}, batch(2, {{.name = "eval", .tasks = 1}}));
  const model::Decision waits{
      .changes = {model::ReasonChanged{
          .shape = {1}, .reason = {.cause = model::Cause::Parallel, .parallel_max = 1}}}};
  line.turn(2500, waits);
  EXPECT_EQ(line.turn(7000, {}),
            "\r0/2 done, 1 running, 1 waiting, memory 1 GB reserved, waits: max-parallel "
            "allows 1 task of its group at once\x1b[K");
}

TEST(ProgressLine, SaysOnWhichOfSeveralMachinesRoomIsLacking) {
  Line line({{.name = "train", .tasks = 2}}, true);
  line.begin();
  line.start(1000, 0);
  line.turn(1100, {}, model::MachineJoined{.machine = {0}, .name = "lab1"});
  line.turn(1200, {}, model::MachineJoined{.machine = {1}, .name = "lab2"});
  line.turn(1300, {}, model::Sampled{.tasks = {{.key = {{0}, 1}, .memory = mb(200)}}});
  line.turn(1400, {}, model::Sampled{.machine = {1}});
  const model::Reason reason{
      .cause = model::Cause::Memory, .needs = {.memory = gb(6)}, .machine = {0}};
  line.turn(2000, {.changes = {model::ReasonChanged{.shape = {0}, .reason = reason},
                               model::HeadroomSeen{{.memory_free = gb(3)}},
                               model::HeadroomSeen{{.memory_free = gb(2)}, {1}}}});
  EXPECT_EQ(line.turn(7000, {}),
            "\r0/2 done, 1 running, 1 waiting, memory 200 MB used, 1 GB reserved, waits: on lab1: "
            "needs 6 GB of memory, 3 GB available\x1b[K");
}

TEST(ProgressLine, SaysSoonAndOnceInALogWhyNoTaskRuns) {
  Line line({{.name = "train", .tasks = 1}});
  EXPECT_EQ(line.begin(), "1 task in 1 group: 1 of train\n");
  const model::Reason reason{.cause = model::Cause::Cpus, .needs = {.cpus = model::cpus(1)}};
  const model::Decision waits{.changes = {model::ReasonChanged{.shape = {0}, .reason = reason},
                                          model::HeadroomSeen{{.cpus = model::cpus(2)}}}};
  EXPECT_EQ(line.turn(1000, waits), "");
  EXPECT_EQ(line.turn(5000, {}),
            "[5.0 s] 0/1 done, 1 waiting, waits: needs 1 CPU: 0 of 2 CPUs free\n");
  EXPECT_EQ(line.turn(20'000, {}), "");
}

TEST(ProgressLine, SaysWhyTasksRunOneAtATimeHoweverOftenOneStarts) {
  const auto shown_with = [](std::uint32_t at_once) {
    Line line({{.name = "train", .tasks = 9}}, true);
    line.begin();
    for (std::uint32_t task = 0; task < at_once; ++task) line.start(1000 + 100 * task, task);
    const model::Reason reason{.cause = model::Cause::Cpus, .needs = {.cpus = model::cpus(2)}};
    line.turn(2000, {.changes = {model::ReasonChanged{.shape = {0}, .reason = reason},
                                 model::HeadroomSeen{{.cpus = model::cpus(2), .cpu_holders = 1}}}});
    line.finish_task(5000, 0);
    return line.start(7000, at_once);
  };
  EXPECT_THAT(shown_with(1), HasSubstr(", waits: needs 2 CPUs: both CPUs are reserved by 1 task"));
  EXPECT_THAT(shown_with(2), Not(HasSubstr("waits")));
}

TEST(ProgressLine, TakesBackTheReasonAtOnceWhenTheLastTaskThatWaitedStarts) {
  Line line({{.name = "train", .tasks = 2}}, true);
  line.begin();
  line.start(1000, 0);
  const model::Reason reason{.cause = model::Cause::Cpus, .needs = {.cpus = model::cpus(2)}};
  line.turn(2000, {.changes = {model::ReasonChanged{.shape = {0}, .reason = reason},
                               model::HeadroomSeen{{.cpus = model::cpus(2), .cpu_holders = 1}}}});
  EXPECT_THAT(line.turn(7000, {}), HasSubstr(", 1 waiting, memory 1 GB reserved, waits: needs 2"));
  EXPECT_EQ(line.start(7010, 1), "\r0/2 done, 2 running, memory 2 GB reserved\x1b[K");
  EXPECT_EQ(line.turn(7020, {}), "") << "the line is drawn ten times a second";
}

TEST(ProgressLine, SaysWaitsOnceOfTasksThatWaitForAGroup) {
  Line line({{.name = "train", .tasks = 1}, {.name = "eval", .tasks = 1}}, true);
  line.begin();
  line.start(1000, 0);
  const model::Reason reason{.cause = model::Cause::Group, .groups = "'train'"};
  EXPECT_EQ(
      line.turn(7000, {.changes = {model::ReasonChanged{.shape = {1}, .reason = reason}}}),
      "\r0/2 done, 1 running, 1 waiting, memory 1 GB reserved, waits for group 'train'\x1b[K");
}

TEST(ProgressLine, SaysWhyTasksWaitOnceNothingStarts) {
  Line line({{.name = "train", .tasks = 2}, {.name = "eval"}}, true);
  line.begin();
  line.start(1000, 0);
  const model::Decision waits{
      .changes = {
          model::ReasonChanged{.shape = {1}, .reason = {.cause = model::Cause::Queued}},
          model::ReasonChanged{
              .shape = {0}, .reason = {.cause = model::Cause::Memory, .needs = {.memory = gb(6)}}},
          model::HeadroomSeen{{.memory_free = gb(3), .memory_held = gb(1), .holders = 1}}}};
  const std::string counts = "\r0/2 done, 1 running, 1 waiting, memory 1 GB reserved";
  EXPECT_EQ(line.turn(2000, waits), counts + "\x1b[K");
  EXPECT_EQ(
      line.turn(6000, {}),
      counts +
          ", waits: needs 6 GB of memory, 3 GB available, 1 GB reserved or used by 1 task\x1b[K");
  EXPECT_EQ(
      line.turn(6500, {.changes = {model::HeadroomSeen{
                           {.memory_free = gb(2), .memory_held = gb(1), .holders = 1}}}}),
      counts +
          ", waits: needs 6 GB of memory, 2 GB available, 1 GB reserved or used by 1 task\x1b[K")
      << "the numbers of the last reading";
  EXPECT_EQ(line.turn(7000, {.changes = {model::ReasonChanged{.shape = {0}}}}),
            counts + ", waits: older tasks are considered first\x1b[K");
  EXPECT_EQ(line.turn(8000, {.changes = {model::ReasonChanged{.shape = {1}}}}), counts + "\x1b[K");
}

TEST(ProgressLine, SaysWhatIsReservedBecauseOfWhatOtherTasksTookAtMostTwentyTimes) {
  Line line({{.name = "data", .tasks = 1}, {.name = "train", .tasks = 2}});
  line.begin();
  const auto learned = [&](const model::Learned& change) {
    return line.turn(1000, {.changes = {change, model::Reached{.task = {0}, .memory = gb(9)}}});
  };
  EXPECT_EQ(learned({.shape = {1}, .memory = gb(2), .tasks = 3}),
            "train: reserving 2 GB of memory from now on, learned in this run from 3 tasks that "
            "succeeded\n");
  EXPECT_EQ(learned({.shape = {1}, .memory = gb(2), .gpu_memory = gb(5), .tasks = 1}),
            "train: reserving 2 GB of memory and 5 GB of GPU memory from now on, learned in this "
            "run from 1 task that succeeded\n");
  EXPECT_EQ(
      learned({.shape = {0}, .gpu_memory = gb(5), .tasks = 0}),
      "data: reserving 5 GB of GPU memory from now on, learned in this run from other tasks of "
      "its group\n");
  for (int told = 4; told <= ProgressLine::kLearnedLinesMax; ++told) {
    EXPECT_EQ(learned({.shape = {0}, .memory = gb(told), .tasks = 1})
                  .contains("further lines like this are not shown"),
              told == ProgressLine::kLearnedLinesMax);
  }
  EXPECT_EQ(learned({.shape = {0}, .memory = gb(99), .tasks = 1}), "");
}

TEST(ProgressLine, SaysThatTheRunWasInterrupted) {
  Line line({{.name = "train", .tasks = 2}}, true);
  line.begin();
  line.start(1000, 0);
  EXPECT_THAT(line.turn(2000, {}, model::InterruptAsked{}),
              StartsWith("\r\x1b[Kinterrupted: no new tasks start, stopping 1 running task; Ctrl-C "
                         "or TERM again kills all at once\n\r0/2 done"));
  EXPECT_THAT(line.turn(2001, {}, model::InterruptAsked{}),
              StartsWith("\r\x1b[Kinterrupted again: 1 running task killed\n"));
  EXPECT_THAT(line.turn(2002, {}, model::InterruptAsked{}), IsEmpty());
}

TEST(ProgressLine, SaysWhatEndsTheRunWhereNobodyAskedForIt) {
  Line line({{.name = "train", .tasks = 2}}, true);
  line.begin();
  line.start(1000, 0);
  EXPECT_THAT(line.turn(2000, {}, model::InterruptAsked{.why = "the keeper died"}),
              StartsWith("\r\x1b[Kthe keeper died: no new tasks start\n\r0/2 done"));
}

TEST(ProgressLine, SaysThatNothingWasRunningWhenItWasInterrupted) {
  Line line({{.name = "train", .tasks = 2}}, true);
  line.begin();
  EXPECT_THAT(line.turn(2000, {}, model::InterruptAsked{}),
              StartsWith("\r\x1b[Kinterrupted: no new tasks start, no task was running\n"));
  EXPECT_THAT(line.turn(2001, {}, model::InterruptAsked{}),
              StartsWith("\r\x1b[Kinterrupted again: no task was running\n"));
}

TEST(ProgressLine, SaysWhichGroupWasSkippedAndWhy) {
  Line line({{.name = "train", .tasks = 1}, {.name = "eval", .tasks = 1}});
  line.begin();
  EXPECT_EQ(line.turn(1, {.changes = {model::GroupChanged{.group = {1},
                                                          .phase = model::GroupPhase::Skipped,
                                                          .message = "it needs 'train'"}}}),
            "eval: SKIPPED: it needs 'train'\n");
  EXPECT_EQ(
      line.turn(
          2, {.changes = {model::GroupChanged{.group = {0}, .phase = model::GroupPhase::Skipped}}}),
      "train: SKIPPED\n")
      << "each of its tasks has a cause of its own";
}

TEST(ProgressLine, ForecastsAtLeastWhatIsKnown) {
  Line line({{.name = "train", .tasks = 4}, {.name = "eval", .tasks = 2}}, true);
  line.begin();
  line.start(0, 0);
  line.start(0, 1);
  EXPECT_THAT(line.finish_task(100'000, 0), HasSubstr(", ETA at least 1m40s"));
  line.start(100'000, 2);
  line.start(100'000, 3);
  EXPECT_EQ(line.turn(300'000, {}), "\r1/6 done, 3 running, 2 waiting, memory 3 GB reserved\x1b[K")
      << "all that have been timed are late";
}

TEST(ProgressLine, KeepsANoteAboveTheLineInOneLine) {
  Line line({{.name = "train", .tasks = 1}}, true);
  line.begin();
  EXPECT_EQ(line.note("the disk\nis full\x1b[2J"), "\r\x1b[Kthe disk is full[2J\n");
  EXPECT_EQ(line.turn(1, {}), "\r0/1 done, 1 waiting\x1b[K");
}

TEST(ProgressLine, NamesTheFirstGroupsOfARunThatHasManyInAllItsBatches) {
  Line line({{.name = "a", .tasks = 1}, {.name = "b", .tasks = 2}, {.name = "c", .tasks = 1}});
  EXPECT_EQ(line.turn(0, {},
                      batch(2, {{.name = "d", .tasks = 1},
                                {.name = "e", .tasks = 1},
                                {.name = "f", .tasks = 1},
                                {.name = "g", .tasks = 1}})),
            "8 tasks in 7 groups: 1 of a, 2 of b, 1 of c, 1 of d, 1 of e, and 2 more\n");
}

TEST(ProgressLine, TellsWhatIsSubmittedAndCountsIt) {
  Line line({{.name = "train", .tasks = 1}});
  EXPECT_EQ(line.begin(), "1 task in 1 group: 1 of train\n");
  line.start(1000, 0);
  EXPECT_EQ(line.turn(2000, {}, batch(2, {{.name = "eval", .tasks = 2}})),
            "submission 2: 2 tasks in 1 group: 2 of eval\n");
  line.finish_task(3000, 0);
  line.start(4000, 1);
  EXPECT_THAT(line.finish_task(15'000, 1), HasSubstr("2/3 done, 1 waiting"));
}

TEST(ProgressLine, QuotesAGroupNameThatEndsInACount) {
  Line line({{.name = "train", .tasks = 1}});
  EXPECT_EQ(line.begin(), "1 task in 1 group: 1 of train\n");
  line.start(1000, 0);
  EXPECT_EQ(line.turn(2000, {}, batch(4, {{.name = "train (4)", .tasks = 8}})),
            "submission 4: 8 tasks in 1 group: 8 of 'train (4)'\n");
}

}  // namespace
}  // namespace trainyard::report
