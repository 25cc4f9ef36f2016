#include "job/learned.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/learned_notes.h"
#include "job/test_job.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/terms.h"
#include "sys/test_directory.h"

namespace trainyard::job {
namespace {

StayOnGpus on(std::string_view gpus, std::int64_t from_s, std::int64_t until_s) {
  return {.gpus = gpus,
          .from = Instant{Duration{from_s * 1000}},
          .until = Instant{Duration{until_s * 1000}}};
}

using Bounds = TimeAlone::Bounds;

constexpr WorkTogether kNobodyKnows{};

Bounds exactly(std::int64_t milliseconds) {
  return {.least = Duration{milliseconds}, .most = Duration{milliseconds}};
}

TEST(TimeAlone, IsAllOfItWhereNobodyElseWas) {
  TimeAlone times;
  times.add(on("0", 0, 10));
  times.add(on("0", 10, 20));
  times.add(on("1", 0, 20));
  EXPECT_EQ(times.of(on("0", 0, 10), kNobodyKnows), exactly(10'000));
  EXPECT_EQ(times.of(on("0", 10, 20), kNobodyKnows), exactly(10'000));
}

TEST(TimeAlone, IsTheShareThatEachHadOfWhatAllDidTogether) {
  TimeAlone times;
  for (int task = 0; task < 4; ++task) times.add(on("0", 0, 12));
  const StayOnGpus stay = on("0", 0, 12);
  EXPECT_EQ(times.of(stay, {.best = 4, .factor = 2}), exactly(6'000)) << "four do the work of two";
  EXPECT_EQ(times.of(stay, {.best = 4, .factor = 6}), exactly(12'000)) << "never more than it took";
  EXPECT_EQ(times.of(stay, {.best = 7, .factor = 3}), exactly(6'000)) << "in a straight line";
}

TEST(TimeAlone, IsBetweenWhatSharingMayHaveCostWhereNobodyMeasuredIt) {
  TimeAlone times;
  for (int task = 0; task < 4; ++task) times.add(on("0", 0, 12));
  EXPECT_EQ(times.of(on("0", 0, 12), kNobodyKnows),
            (Bounds{.least = Duration{3'000}, .most = Duration{12'000}}));
  EXPECT_EQ(times.of(on("0", 0, 12), {.best = 2, .factor = 1.5}),
            (Bounds{.least = Duration{1'500}, .most = Duration{4'500}}))
      << "more than two do no more than they, and maybe less";
  EXPECT_EQ(times.of(on("0", 0, 12), {.best = 1, .factor = 1}),
            (Bounds{.least = Duration{1'500}, .most = Duration{3'000}}));
}

TEST(TimeAlone, CountsEachMomentByThoseWhoWereThere) {
  TimeAlone times;
  times.add(on("0", 0, 10));
  times.add(on("0", 4, 8));
  times.add(on("0", 6, 8));
  // 4 s alone, 2 s of two, 2 s of three, 2 s alone.
  EXPECT_EQ(times.of(on("0", 0, 10), {.best = 3, .factor = 1}),
            exactly(4'000 + 1'000 + 667 + 2'000));
}

TEST(TimeAlone, GoesByTheFullestOfSeveralGpus) {
  TimeAlone times;
  times.add(on("0,1", 0, 6));
  times.add(on("1", 0, 6));
  times.add(on("1", 0, 6));
  times.add(on("0", 0, 6));
  EXPECT_EQ(times.of(on("0,1", 0, 6), {.best = 3, .factor = 1}), exactly(2'000));
}

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::StartsWith;

LearnedTask took(Bytes memory, int train_s, int load_s = 0) {
  return {.memory = memory, .load = Duration{load_s * 1000}, .train = Duration{train_s * 1000}};
}

const LearnedFor kHere{.host = "lab2", .gpus = {"NVIDIA A100"}};

LearnedFrom run_on(std::string host, std::string gpu = {}, std::int64_t started = 1'000) {
  return {.run = "runs/" + host,
          .started_unix_ms = started,
          .host = std::move(host),
          .gpu = std::move(gpu)};
}

/// The expected numbers, without where they are known from.
LearnedTask expected_of(const Learned& learned, std::string_view group, std::string_view id) {
  const ExpectedTask expected = learned.expected(group, id, kHere);
  return {.memory = expected.memory.value,
          .memory_at_least = expected.memory.at_least,
          .gpu_memory = expected.gpu_memory.value,
          .load = expected.load.value,
          .train = expected.train.value};
}

LearnedTask taken_by(const Learned& learned, std::string_view group, std::string_view id) {
  return learned.taken(group, id).value_or(Learned::Taken{}).task;
}

TEST(Learned, KeepsWhatItWasTold) {
  Learned learned;
  learned.add("train", "a=1", took(gb(2), 60, 5), run_on("lab1", "NVIDIA H100"));
  learned.add("train", "a=\"2\"", {.memory_at_least = true, .gpu_memory = gb(3)});
  const auto again = Learned::parse(learned.to_json());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->to_json(), learned.to_json());
  EXPECT_EQ(taken_by(*again, "train", "a=1"), took(gb(2), 60, 5));
  EXPECT_EQ(again->taken("train", "a=1")->from, run_on("lab1", "NVIDIA H100"));
  EXPECT_EQ(taken_by(*again, "train", "a=\"2\""),
            (LearnedTask{.memory_at_least = true, .gpu_memory = gb(3)}));
  EXPECT_EQ(again->taken("train", "a=\"2\"")->from, LearnedFrom{});
  EXPECT_FALSE(again->taken("train", "b"));
  EXPECT_TRUE(again->knows("train"));
  EXPECT_FALSE(again->knows("other"));
}

TEST(Learned, KeepsWhatWasKnownOfAGpuWhereNobodySawThatNow) {
  Learned learned;
  learned.add("g", "a", {.memory = gb(1), .gpu_memory = gb(5)}, run_on("lab1", "NVIDIA H100"));
  learned.add("g", "a", {.memory = gb(2)}, run_on("lab2", "NVIDIA A100"));
  const auto again = Learned::parse(learned.to_json());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->to_json(), learned.to_json());
  const Learned::Taken taken = again->taken("g", "a").value_or(Learned::Taken{});
  EXPECT_EQ(taken.task, (LearnedTask{.memory = gb(2), .gpu_memory = gb(5)}));
  EXPECT_EQ(taken.from.host, "lab2");
  EXPECT_EQ(taken.gpu_from.host, "lab1");
}

TEST(Learned, KeepsWithTheNumbersOfATaskTheCommandThatTookThem) {
  Learned learned;
  learned.add("g", "a", {.memory = gb(1), .gpu_memory = gb(5)}, run_on("lab1"), 7);
  learned.add("g", "a", {.memory = gb(2)}, run_on("lab2"), 7);
  const auto again = Learned::parse(learned.to_json());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->to_json(), learned.to_json());
  EXPECT_EQ(again->taken("g", "a")->command, 7);
  EXPECT_EQ(again->taken("g", "a")->gpu_from.host, "lab1");
  learned.add("g", "a", {.memory = gb(3)}, run_on("lab2"), 8);
  EXPECT_EQ(taken_by(learned, "g", "a"), LearnedTask{.memory = gb(3)})
      << "what another command took of a GPU says nothing of this one";
}

TEST(Learned, OfAnotherCommandCountsWhereNothingIsKnownOfThoseOfNow) {
  Learned learned;
  learned.add("g", "a", took(mb(60), 1), {}, 7);
  learned.add("g", "b", took(mb(60), 1), {}, 7);
  learned.set_commands("g", {8});
  for (const char* const id : {"a", "new"}) {
    const ExpectedTask expected = learned.expected("g", id, kHere, 8);
    EXPECT_TRUE(expected.other_command) << id;
    EXPECT_EQ(expected.memory.value, mb(66)) << id;
    EXPECT_EQ(expected.train.value, Duration{1'000}) << "times are forecasts alone";
  }
  learned.add("g", "a", took(gb(3), 9), {}, 8);
  for (const char* const id : {"a", "b", "new"}) {
    const ExpectedTask expected = learned.expected("g", id, kHere, 8);
    EXPECT_FALSE(expected.other_command) << id;
    EXPECT_EQ(expected.memory.value, mb(3'300)) << id << ": 60 MB are of another command";
  }
  learned.set_commands("g", {8, 9});
  EXPECT_TRUE(learned.expected("g", "c", kHere, 9).other_command)
      << "of a task with a command of its own, in a group of which others are known";
  EXPECT_FALSE(learned.expected("g", "a", kHere, 8).other_command);
}

LearnedTask beside_others(int least_s, int most_s) {
  return {
      .memory = gb(1), .train = Duration{most_s * 1000}, .train_least = Duration{least_s * 1000}};
}

TEST(Learned, KeepsWhatSharingWasMeasuredToCostWithItsGroup) {
  Learned learned;
  const LearnedSharing cost{.to_a_gpu = 4,
                            .factor = 1.25,
                            .tasks = 6,
                            .to_a_gpu_max = 5,
                            .from = run_on("lab1", "NVIDIA A100")};
  learned.set_sharing("g", cost);
  EXPECT_FALSE(learned.sharing("g", kHere)) << "of a group of which nothing is known";
  learned.add("g", "a", beside_others(3, 12));
  learned.set_sharing("g", cost);
  auto again = Learned::parse(learned.to_json());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->sharing("g", kHere), cost) << "a card like the one here";
  EXPECT_FALSE(again->sharing("g", {.host = "lab3"})) << "another machine";
  EXPECT_EQ(taken_by(*again, "g", "a"), beside_others(3, 12));
  EXPECT_EQ(again->to_json(), learned.to_json());
  again->forget("g");
  EXPECT_FALSE(again->sharing("g", kHere));
}

TEST(Learned, TakesForUsualWhatThoseTookThatWereAlone) {
  Learned learned;
  learned.add("g", "a", took(gb(1), 3));
  learned.add("g", "b", took(gb(1), 3));
  learned.add("g", "c", beside_others(2, 12));
  learned.add("g", "d", beside_others(3, 13));
  for (const char* const id : {"a", "b", "c", "d", "new"}) {
    EXPECT_EQ(expected_of(learned, "g", id).train, Duration{3'000}) << id;
  }
  learned.add("g", "long", beside_others(10, 20));
  EXPECT_EQ(expected_of(learned, "g", "long").train, Duration{10'000})
      << "however much the others cost it, it took so long";
  learned.add("g", "short", beside_others(1, 2));
  EXPECT_EQ(expected_of(learned, "g", "short").train, Duration{2'000});
}

TEST(Learned, TakesForUsualTheSmallestWhereNobodyWasAlone) {
  Learned learned;
  learned.add("g", "a", beside_others(3, 12));
  learned.add("g", "b", beside_others(3, 6));
  EXPECT_EQ(expected_of(learned, "g", "a").train, Duration{6'000});
  EXPECT_EQ(expected_of(learned, "g", "b").train, Duration{6'000});
}

TEST(Learned, KeepsWhatATaskTookAloneUntilItIsAnother) {
  Learned learned;
  learned.add("g", "a", took(gb(1), 5), run_on("lab2"));
  learned.add("g", "a", beside_others(3, 12), run_on("lab2"));
  EXPECT_EQ(taken_by(learned, "g", "a"), took(gb(1), 5));
  learned.add("g", "a", beside_others(6, 12), run_on("lab2"));
  EXPECT_EQ(taken_by(learned, "g", "a"), beside_others(6, 12)) << "it takes longer now";
}

TEST(Learned, ForgetsAllAGroupOrOneTask) {
  const auto filled = [] {
    Learned learned;
    learned.add("g", "a", took(gb(1), 1));
    learned.add("g", "b", took(gb(2), 1));
    learned.add("h", "a", took(gb(3), 1));
    return learned;
  };
  Learned learned = filled();
  EXPECT_EQ(learned.forget("g", "a"), 1U);
  EXPECT_EQ(learned.forget("g", "a"), 0U);
  EXPECT_FALSE(learned.taken("g", "a"));
  EXPECT_EQ(expected_of(learned, "g", "a").memory, mb(2200)) << "it is one of its group still";
  EXPECT_EQ(learned.forget("g", "b"), 1U);
  EXPECT_FALSE(learned.knows("g"));
  EXPECT_EQ(learned.forget("g"), 0U);
  EXPECT_EQ(learned.forget("h"), 1U);
  EXPECT_TRUE(learned.empty());
  learned = filled();
  EXPECT_EQ(learned.forget(), 3U);
  EXPECT_TRUE(learned.empty());
}

TEST(Learned, UsesNoTimeOfAMachineThatIsNotLikeThisOne) {
  Learned learned;
  learned.add("g", "a", took(gb(1), 60), run_on("lab1", "NVIDIA H100"));
  EXPECT_EQ(expected_of(learned, "g", "a"), took(mb(1100), 0)) << "memory is memory";
  learned.add("g", "b", took(gb(1), 40), run_on("lab1", "NVIDIA A100"));
  EXPECT_EQ(expected_of(learned, "g", "a"), took(mb(1100), 40)) << "a card like the one here";
  learned.add("g", "c", took(gb(1), 20), run_on("lab2"));
  EXPECT_EQ(expected_of(learned, "g", "a"), took(mb(1100), 30)) << "and this host";
}

TEST(Learned, SaysWhereItIsKnownFrom) {
  Learned learned;
  learned.add("g", "a", took(gb(1), 60), run_on("lab2", "NVIDIA A100", 1'763'700'000'000));
  learned.add("g", "b", took(gb(1), 60), run_on("lab1", "NVIDIA H100", 1'763'800'000'000));
  const ExpectedTask expected = learned.expected("g", "new", kHere);
  EXPECT_EQ(to_text(expected.memory.from, kHere), "runs/lab1 of 2025-11-22 on lab1, NVIDIA H100")
      << "the last one of its group";
  EXPECT_EQ(to_text(expected.train.from, kHere), "runs/lab2 of 2025-11-21")
      << "of the times only what is used";
  EXPECT_EQ(to_text(run_on("lab2", "NVIDIA H100", 0), kHere), "runs/lab2 on NVIDIA H100");
}

TEST(Learned, SaysWhereANumberMayBeMore) {
  Learned learned;
  for (int i = 0; i < 9; ++i) learned.add("g", std::to_string(i), took(gb(10), 1));
  learned.add("g", "small", {.memory = gb(1), .memory_at_least = true});
  EXPECT_FALSE(expected_of(learned, "g", "new").memory_at_least);
  EXPECT_TRUE(expected_of(learned, "g", "small").memory_at_least);
  learned.add("g", "large", {.memory = gb(11), .memory_at_least = true});
  EXPECT_TRUE(expected_of(learned, "g", "new").memory_at_least);
}

TEST(Learned, ExpectsOfANewTaskWhatItsGroupTook) {
  Learned learned;
  for (int i = 0; i < 4; ++i) learned.add("g", std::to_string(i), took(gb(10), 100));
  EXPECT_EQ(expected_of(learned, "g", "new"), took(gb(11), 100));
  EXPECT_EQ(expected_of(learned, "nobody", "new"), LearnedTask{});
}

TEST(Learned, ExpectsOfATaskThatWasClearlyDifferentWhatItTookItself) {
  Learned learned;
  for (int i = 0; i < 9; ++i) learned.add("g", std::to_string(i), took(gb(10), 100));
  learned.add("g", "small", took(mb(1234), 12));
  learned.add("g", "alike", took(mb(9500), 90));
  EXPECT_EQ(expected_of(learned, "g", "small").memory, mb(1430)) << "1.3 GB and a tenth";
  EXPECT_EQ(expected_of(learned, "g", "small").train, Duration{12'000});
  EXPECT_EQ(expected_of(learned, "g", "alike"), expected_of(learned, "g", "0"));
}

TEST(Learned, IsNotReadFromWhatSomebodyElseWrote) {
  for (const char* const text :
       {"",
        "{}",
        "[]",
        R"({"version": 3, "groups": {}})",
        R"({"version": 1, "groups": {"g": {"t": {"memory": 2000000000}}}})",
        R"({"version": 0, "groups": {}})",
        R"({"version": 2})",
        R"({"version": 2, "groups": {"g": {"t": {"from": 0}}}})",
        R"({"version": 2, "sources": [{}], "groups": {"g": {"t": {"from": 1}}}})",
        R"({"version": 2, "sources": [{"host": 7}], "groups": {}})",
        R"({"version": 2, "sources": {}, "groups": {}})",
        R"({"version": 2, "groups": {"g": {"t": {"memory_at_least": 1}}}})",
        R"({"version": 2, "groups": {"g": {"t": {"command": -1}}}})",
        R"({"version": 2, "groups": {"g": {"t": {"memory": 18446744073709551615}}}})",
        R"({"version": 2, "groups": {"g": {"t": {"memory": -1}}}})",
        R"({"version": 2, "groups": {"g": {"t": {"train_ms": 1.5}}}})",
        R"({"version": 2, "groups": {"g": {"t": {"train_ms": 1, "train_least_ms": 2}}}})",
        R"({"version": 2, "groups": {}, "sharing": {"g": {"to_a_gpu": 2}}})",
        R"({"version": 2, "groups": {}, "sharing": {"g": {"to_a_gpu": 2, "factor": -1}}})",
        R"({"version": 2, "groups": {}, "sharing": []})",
        R"({"version": 2, "groups": {"g": []}})"}) {
    EXPECT_FALSE(Learned::parse(text)) << text;
  }
}

TEST(Learned, HasABound) {
  Learned learned;
  for (std::size_t i = 0; i <= Learned::kTasksMax; ++i) {
    learned.add("g", std::to_string(i), took(gb(1), 1));
  }
  learned.add("h", "one more", took(gb(1), 1));
  EXPECT_FALSE(learned.knows("h"));
  learned.add("g", "0", took(gb(9), 1));
  EXPECT_EQ(taken_by(learned, "g", "0").memory, gb(9));
}

TEST(Learned, IsUsedWhereTheJobFileSaysNothing) {
  const sys::TemporaryDirectory directory;
  directory.write("sweep.yaml",
                  "groups:\n"
                  "- {name: g, matrix: {n: [1, 2]}, tasks: [{id: \"{n}\", command: x}]}\n"
                  "- {name: h, memory: 4GB, duration: 1m, tasks: [{id: a, command: x}]}\n");
  Learned learned;
  learned.add("g", "1", took(mb(100), 60, 5));
  learned.add("g", "2", took(gb(1), 600, 5));
  learned.add("h", "a", took(gb(1), 600));
  LoadOptions options{.job_file = "sweep.yaml", .current_directory = directory.path()};
  const auto before = Job::load(options, small_machine());
  ASSERT_TRUE(before);
  directory.make(".trainyard");
  directory.write(".trainyard/sweep.yaml.learned.json", measured_from(*before, learned).to_json());
  const auto job = Job::load(options, small_machine());
  ASSERT_TRUE(job);
  const auto shape = [&](std::uint32_t task) -> const model::Shape& {
    return job->plan().shape_of(model::TaskIndex{task});
  };
  EXPECT_EQ(shape(0).terms.request.memory, mb(110));
  EXPECT_EQ(shape(1).terms.request.memory, mb(1100));
  EXPECT_EQ(shape(0).terms.train_expected, Duration{60'000});
  EXPECT_EQ(shape(1).terms.train_expected, Duration{600'000});
  EXPECT_EQ(shape(2).terms.request.memory, gb(4)) << "what is written counts";
  EXPECT_EQ(shape(2).terms.train_expected, Duration{600'000}) << "off by more than a quarter";
  EXPECT_THAT(job->notes(),
              ElementsAre("group 'g': memory 110 MB to 1.1 GB, duration 1m to "
                          "10m, as learned from an earlier run",
                          "group 'h': memory is set to 4 GB; tasks used at most 1 GB last time",
                          "group 'h': duration is set to 1m; tasks took 10m last time; "
                          "expecting that"));
  options.settings = {"scheduler.auto-adjust=false"};
  const auto off = Job::load(options, small_machine());
  ASSERT_TRUE(off);
  EXPECT_THAT(off->notes(), IsEmpty());
  EXPECT_EQ(off->plan().shapes[0].terms.train_expected, Duration{0});
}

TEST(Learned, OfADurationCountsWhereWhatIsWrittenIsOffByMoreThanAQuarter) {
  const auto expected = [](std::string_view written, const LearnedTask& task) {
    Learned learned;
    learned.add("g", "a", task);
    const Job job = taught_job(
        fmt::format("groups: [{{name: g, duration: {}, tasks: [{{id: a, command: x}}]}}]", written),
        learned.to_json(), {});
    EXPECT_EQ(job.learned_numbers({0}).duration.has_value(),
              job.plan().shapes[0].terms.train_expected == task.train);
    return job.plan().shapes[0].terms.train_expected;
  };
  EXPECT_EQ(expected("80s", took(gb(1), 100)), Duration{80'000});
  EXPECT_EQ(expected("79s", took(gb(1), 100)), Duration{100'000});
  EXPECT_EQ(expected("130s", took(gb(1), 100)), Duration{130'000});
  EXPECT_EQ(expected("134s", took(gb(1), 100)), Duration{100'000});
  LearnedTask shared = took(gb(1), 100);
  shared.train_least = Duration{20'000};
  EXPECT_EQ(expected("20s", shared), Duration{20'000}) << "nobody measured it alone on its GPU";
}

TEST(Learned, OfAnotherMachineIsToldAndUsedWithCare) {
  const sys::TemporaryDirectory directory;
  directory.write("sweep.yaml",
                  "groups:\n"
                  "- {name: fits, gpu-memory: auto, tasks: [{id: a, command: x}]}\n"
                  "- {name: large, gpu-memory: auto, tasks: [{id: a, command: x}]}\n"
                  "- {name: known, duration: 1m, tasks: [{id: a, command: x}]}\n");
  Learned learned;
  const LearnedFrom elsewhere = run_on("lab1", "NVIDIA H100", 1'763'800'000'000);
  learned.add("fits", "a", {.gpu_memory = gb(4), .train = Duration{60'000}}, elsewhere);
  learned.add("large", "a", {.gpu_memory = gb(40), .train = Duration{60'000}}, elsewhere);
  learned.add("known", "a", took(gb(1), 9), elsewhere);
  model::Capacity machine = small_machine();
  machine.gpus = {{.number = 0, .name = "NVIDIA A100", .memory = gb(8)}};
  const LoadOptions options{
      .job_file = "sweep.yaml", .current_directory = directory.path(), .host = "lab2"};
  const auto before = Job::load(options, machine);
  ASSERT_TRUE(before);
  directory.make(".trainyard");
  directory.write(".trainyard/sweep.yaml.learned.json", measured_from(*before, learned).to_json());
  const auto job = Job::load(options, machine);
  ASSERT_TRUE(job);
  const auto terms = [&](std::uint32_t task) {
    return job->plan().shape_of(model::TaskIndex{task}).terms;
  };
  EXPECT_EQ(terms(0).request.gpu_memory, mb(4400));
  EXPECT_EQ(terms(1).request.gpu_memory, Bytes{}) << "of its own, until it is known here";
  EXPECT_EQ(terms(0).train_expected, Duration{0});
  EXPECT_EQ(terms(2).train_expected, Duration{60'000});
  const std::string from = "runs/lab1 of 2025-11-22 on lab1, NVIDIA H100";
  EXPECT_THAT(
      job->notes(),
      ElementsAre(
          "group 'fits': gpu-memory 4.4 GB, as learned from " + from,
          "group 'fits': durations are known only from " + from + ", and are not used here",
          "group 'known': memory 1.1 GB, as learned from " + from,
          "group 'large': gpu-memory 44 GB, as learned from " + from +
              ", is more than a GPU here has; trainyard learns it again",
          "group 'large': durations are known only from " + from + ", and are not used here"));
  const Job::LearnedNumbers numbers = job->learned_numbers(model::TaskIndex{0});
  ASSERT_TRUE(numbers.gpu_memory);
  EXPECT_EQ(numbers.gpu_memory->value, mb(4400));
  EXPECT_EQ(numbers.gpu_memory->from, elsewhere);
  EXPECT_FALSE(numbers.memory);
  EXPECT_FALSE(numbers.duration);
}

TEST(Learned, OfAnotherCommandRaisesAReservationAndLowersNone) {
  const auto text = [](std::string_view command) {
    return fmt::format(
        "groups:\n"
        "- {{name: small, tasks: [{{id: a, command: '{0}'}}]}}\n"
        "- {{name: large, tasks: [{{id: a, command: '{0}'}}]}}\n"
        "- {{name: card, gpu-memory: auto, tasks: [{{id: a, command: '{0}'}}]}}\n",
        command);
  };
  const sys::TemporaryDirectory directory;
  const LoadOptions options{
      .job_file = "sweep.yaml", .current_directory = directory.path(), .host = "lab2"};
  model::Capacity machine = small_machine();
  machine.gpus = {{.number = 0, .name = "NVIDIA A100", .memory = gb(8)}};
  Learned learned;
  const LearnedFrom smoke = run_on("lab2", "NVIDIA A100", 1'763'800'000'000);
  learned.add("small", "a", took(mb(60), 60), smoke);
  learned.add("large", "a", took(gb(5), 60), smoke);
  learned.add("card", "a", {.gpu_memory = gb(2)}, smoke);
  const Job before = job_of(text("train --epochs 1"), options, machine);
  const auto request = [](const Job& job, std::uint32_t task) {
    return job.plan().shape_of(model::TaskIndex{task}).terms.request;
  };
  directory.make(".trainyard");
  directory.write(".trainyard/sweep.yaml.learned.json", measured_from(before, learned).to_json());
  const Job same = job_of(text("train --epochs 1"), options, machine);
  EXPECT_EQ(request(same, 0).memory, mb(66));
  EXPECT_EQ(request(same, 2).gpu_memory, mb(2'200));

  const Job other = job_of(text("train"), options, machine);
  EXPECT_EQ(request(other, 0).memory, request(before, 0).memory);
  EXPECT_EQ(request(other, 1).memory, mb(5'500));
  EXPECT_EQ(request(other, 2).gpu_memory, Bytes{}) << "a whole one";
  EXPECT_EQ(other.plan().shapes[0].terms.train_expected, Duration{60'000});
  const std::string run = "runs/lab2 of 2025-11-22";
  const std::string from = ", as learned from " + run;
  EXPECT_THAT(
      other.notes(),
      ElementsAre(
          "group 'card': " + run +
              " used 2.2 GB of gpu-memory, but with another command: reserving a whole GPU",
          "group 'large': memory 5.5 GB, duration 1m" + from, "group 'small': duration 1m" + from,
          "group 'small': " + run + " used 66 MB of memory, but with another command: reserving " +
              trainyard::to_text(request(before, 0).memory)));
  EXPECT_FALSE(other.learned_numbers({0}).memory);

  directory.write(".trainyard/sweep.yaml.learned.json", learned.to_json());
  EXPECT_EQ(job_of(text("train"), options, machine).plan(), other.plan())
      << "the same where the file does not say which command";
}

TEST(Learned, SaysWhichTasksOfAGroupReserveWhatWasLearnedAndWhichDoNot) {
  LearnedNotes notes(kHere);
  const ExpectedTask expected{.memory = {.value = mb(66), .from = run_on("lab2", "", 1)}};
  const model::Terms same{.request = {.memory = mb(66)}};
  const model::Terms edited{.request = {.memory = gb(2)}};
  notes.see("g", {.terms = edited, .expected = expected, .use = {.memory_kept = true}});
  EXPECT_THAT(
      notes.notes(),
      ElementsAre(EndsWith(" used 66 MB of memory, but with another command: reserving 2 GB")));
  notes.see("g", {.terms = same, .expected = expected, .use = {.memory = true}});
  EXPECT_THAT(notes.notes(),
              ElementsAre(StartsWith("group 'g': memory 66 MB, as learned from "),
                          EndsWith(" used 66 MB of memory, but with another command: "
                                   "tasks with the new command reserve 2 GB")));
}

TEST(Learned, IsToldOfTenGroups) {
  LearnedNotes notes(kHere);
  const model::Terms terms{.request = {.memory = gb(1)}};
  const ExpectedTask expected;
  const auto see = [&](int group) {
    notes.see(std::to_string(group),
              {.terms = terms, .expected = expected, .use = {.memory = true}});
  };
  for (int group = 0; group < 11; ++group) see(group);
  ASSERT_EQ(notes.notes().size(), LearnedNotes::kGroupsMax + 1);
  EXPECT_EQ(notes.notes().back(),
            "numbers of 1 more group are learned: 'trainyard learned' shows them");
  see(11);
  EXPECT_EQ(notes.notes().back(),
            "numbers of 2 more groups are learned: 'trainyard learned' shows them");
}

TEST(Learned, RaisesANumberThatMayGrowAndMakesNoneSmaller) {
  const sys::TemporaryDirectory directory;
  directory.write("sweep.yaml",
                  "groups:\n"
                  "- name: g\n"
                  "  memory: at least 2GB\n"
                  "  gpu-memory: at least 3GB\n"
                  "  tasks: [{id: small, command: x}, {id: large, command: x}]\n");
  Learned learned;
  learned.add("g", "small", {.memory = gb(1), .gpu_memory = gb(1)});
  learned.add("g", "large", {.memory = gb(3), .gpu_memory = gb(6)});
  directory.make(".trainyard");
  directory.write(".trainyard/sweep.yaml.learned.json", learned.to_json());
  model::Capacity machine = small_machine();
  machine.gpus = {{.number = 0, .memory = gb(8)}};
  const auto job =
      Job::load({.job_file = "sweep.yaml", .current_directory = directory.path()}, machine);
  ASSERT_TRUE(job);
  const auto request = [&](std::uint32_t task) {
    return job->plan().shape_of(model::TaskIndex{task}).terms.request;
  };
  EXPECT_EQ(request(0).memory, gb(2));
  EXPECT_EQ(request(0).gpu_memory, gb(3));
  EXPECT_EQ(request(1).memory, mb(3300));
  EXPECT_EQ(request(1).gpu_memory, mb(6600));
  EXPECT_THAT(job->notes(), ElementsAre("group 'g': memory 3.3 GB, gpu-memory 6.6 GB, as learned "
                                        "from an earlier run"))
      << "nothing of what is written and taken: it may grow";
}

TEST(Learned, IsSharedByTheRunsOfCommandsOfOneName) {
  const std::string shared = "/home/ada/runs/.trainyard/tr.learned.json";
  EXPECT_EQ(learned_path("/home/ada/runs/tr/trainyard.job.yaml", "tr"), shared);
  EXPECT_EQ(learned_path("/home/ada/runs/tr-2/trainyard.job.yaml", "tr"), shared);
  EXPECT_EQ(learned_path("/home/ada/runs/tr-2/trainyard.job.yaml", "tr-2"),
            "/home/ada/runs/.trainyard/tr-2.learned.json");
  EXPECT_EQ(learned_path("/home/ada/first/trainyard.job.yaml", "tr"),
            "/home/ada/first/.trainyard/trainyard.job.yaml.learned.json")
      << "a directory that is not called after the command";
  EXPECT_EQ(learned_path("/home/ada/tr/tr.yaml", "tr"),
            "/home/ada/tr/.trainyard/tr.yaml.learned.json");
}

TEST(Learned, IsUsedByTheNextCommandOfTheNameAndNotReducedByAnotherCommand) {
  const sys::TemporaryDirectory directory;
  const auto text = [](std::string_view command) {
    return fmt::format(
        "name: tr\ngroups:\n  - name: tr\n    gpu-memory: auto\n    tasks:\n"
        "      - {{id: tr, command: {}}}\n",
        command);
  };
  model::Capacity machine = small_machine();
  machine.gpus = {{.number = 0, .memory = gb(8)}};
  const LoadOptions typed{
      .job_file = "command.yaml", .current_directory = directory.path(), .line_names = {"--name"}};
  const LoadOptions second{.job_file = "runs/tr-2/trainyard.job.yaml",
                           .run_directory = "runs/tr-2",
                           .current_directory = directory.path()};
  Learned learned;
  learned.add("tr", "tr", {.memory = gb(1), .gpu_memory = gb(2)});
  const Learned measured = measured_from(job_of(text("x"), second, machine), learned);
  directory.make("runs");
  directory.make("runs/.trainyard");
  directory.write("runs/.trainyard/tr.learned.json", measured.to_json());
  for (const LoadOptions& options : {typed, second}) {
    const Job same = job_of(text("x"), options, machine);
    EXPECT_EQ(same.paths().learned, directory.path() + "/runs/.trainyard/tr.learned.json");
    const auto request = [](const Job& job) { return job.plan().shape_of({0}).terms.request; };
    EXPECT_EQ(request(same).gpu_memory, mb(2200));
    const Job another = job_of(text("y"), options, machine);
    EXPECT_EQ(request(another).gpu_memory, Bytes{}) << "a whole GPU";
  }
}

TEST(Learned, IsLeftAloneWhereItIsBroken) {
  const sys::TemporaryDirectory directory;
  directory.write("sweep.yaml", "groups: [{name: g, tasks: [{command: x}]}]\n");
  directory.make(".trainyard");
  for (const char* const text : {"{", R"({"version": 1, "groups": {}})"}) {
    directory.write(".trainyard/sweep.yaml.learned.json", text);
    const auto job = Job::load({.job_file = "sweep.yaml", .current_directory = directory.path()},
                               small_machine());
    ASSERT_TRUE(job);
    EXPECT_THAT(job->notes(),
                ElementsAre("'" + directory.path() +
                            "/.trainyard/sweep.yaml.learned.json' is not used: it is damaged, or "
                            "from another version of trainyard"))
        << text;
  }
}

}  // namespace

}  // namespace trainyard::job
