#include "job/learned.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "job/job.h"
#include "job/test_job.h"
#include "model/ids.h"
#include "model/plan.h"
#include "sys/test_directory.h"

namespace trainyard::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

LearnedTask took(Bytes memory, int train_s, int load_s = 0) {
  return {.memory = memory, .load = Duration{load_s * 1000}, .train = Duration{train_s * 1000}};
}

TEST(Learned, KeepsWhatItWasTold) {
  Learned learned;
  learned.add("train", "a=1", took(gb(2), 60, 5));
  learned.add("train", "a=\"2\"", {.gpu_memory = gb(3)});
  const auto again = Learned::parse(learned.to_json());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->to_json(), learned.to_json());
  EXPECT_EQ(again->taken("train", "a=1"), took(gb(2), 60, 5));
  EXPECT_EQ(again->taken("train", "a=\"2\""), (LearnedTask{.gpu_memory = gb(3)}));
  EXPECT_EQ(again->taken("train", "b"), LearnedTask{});
  EXPECT_TRUE(again->knows("train"));
  EXPECT_FALSE(again->knows("other"));
}

TEST(Learned, ExpectsOfANewTaskWhatItsGroupTook) {
  Learned learned;
  for (int i = 0; i < 4; ++i) learned.add("g", std::to_string(i), took(gb(10), 100));
  EXPECT_EQ(learned.expected("g", "new"), took(gb(11), 100));
  EXPECT_EQ(learned.expected("nobody", "new"), LearnedTask{});
}

TEST(Learned, ExpectsOfATaskThatWasClearlyDifferentWhatItTookItself) {
  Learned learned;
  for (int i = 0; i < 9; ++i) learned.add("g", std::to_string(i), took(gb(10), 100));
  learned.add("g", "small", took(mb(1234), 12));
  learned.add("g", "alike", took(mb(9500), 90));
  EXPECT_EQ(learned.expected("g", "small").memory, mb(1430)) << "1.3 GB and a tenth";
  EXPECT_EQ(learned.expected("g", "small").train, Duration{12'000});
  EXPECT_EQ(learned.expected("g", "alike"), learned.expected("g", "0"));
}

TEST(Learned, IsNotReadFromWhatSomebodyElseWrote) {
  for (const char* const text :
       {"", "{}", "[]", R"({"version": 2, "groups": {}})", R"({"version": 1})",
        R"({"version": 1, "groups": {"g": {"t": {"memory": -1}}}})",
        R"({"version": 1, "groups": {"g": {"t": {"train_ms": 1.5}}}})",
        R"({"version": 1, "groups": {"g": []}})"}) {
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
  EXPECT_EQ(learned.taken("g", "0").memory, gb(9));
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
  directory.make(".trainyard");
  directory.write(".trainyard/sweep.yaml.learned.json", learned.to_json());
  LoadOptions options{.job_file = "sweep.yaml", .current_directory = directory.path()};
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
  EXPECT_EQ(shape(2).terms.train_expected, Duration{60'000});
  EXPECT_THAT(job->notes(), ElementsAre("group 'h': memory is 4 GB as written; tasks that say "
                                        "so took at most 1 GB the last time"));
  options.settings = {"scheduler.auto-adjust=false"};
  const auto off = Job::load(options, small_machine());
  ASSERT_TRUE(off);
  EXPECT_THAT(off->notes(), IsEmpty());
  EXPECT_EQ(off->plan().shapes[0].terms.train_expected, Duration{0});
}

TEST(Learned, IsLeftAloneWhereItIsBroken) {
  const sys::TemporaryDirectory directory;
  directory.write("sweep.yaml", "groups: [{name: g, tasks: [{command: x}]}]\n");
  directory.make(".trainyard");
  directory.write(".trainyard/sweep.yaml.learned.json", "{");
  const auto job =
      Job::load({.job_file = "sweep.yaml", .current_directory = directory.path()}, small_machine());
  ASSERT_TRUE(job);
  EXPECT_THAT(job->notes(), ElementsAre("'" + directory.path() +
                                        "/.trainyard/sweep.yaml.learned.json' is not used: it is "
                                        "not what trainyard wrote there"));
}

}  // namespace
}  // namespace trainyard::job
