// Learned estimates next to the values in the job file.
#include "job/learned_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/duration_text.h"
#include "job/test_job.h"
#include "model/resources.h"
#include "sys/test_directory.h"

namespace trainyard::job {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const LearnedFrom kLast{
    .run = "runs/sweep-2",
    .started_unix_ms = 1'763'800'000'000,
    .host = "lab1",
    .gpu = "NVIDIA H100",
};

LearnedFrom of_another_card() {
  LearnedFrom from = kLast;
  from.host = "lab2";
  from.gpu = "NVIDIA A40";
  return from;
}

/// A job with learned estimates, on a machine with an H100.
struct Known {
  Known(std::string text, const Learned& learned)
      : text_(std::move(text)), learned_(measured_from(job(), learned)) {
    directory_.make(".trainyard");
    directory_.write(".trainyard/sweep.yaml.learned.json", learned_.to_json());
  }

  /// Its commands become others.
  void edit(const std::string& text) { text_ = text; }

  [[nodiscard]] Job job() const {
    model::Capacity machine = small_machine();
    machine.gpus = {{.number = 0, .name = "NVIDIA H100", .memory = gb(80)}};
    return job_of(text_,
                  {.job_file = "sweep.yaml",
                   .current_directory = directory_.path(),
                   .host = "lab1",
                   .only_shown = true},
                  machine);
  }
  [[nodiscard]] LearnedView view() const { return view_learned(job(), learned_); }
  [[nodiscard]] std::vector<std::string> suggestions() const {
    const LearnedView known = view();
    std::vector<std::string> all;
    for (const LearnedNumber& number : known.groups.at(0).numbers) all.push_back(number.suggested);
    return all;
  }

 private:
  sys::TemporaryDirectory directory_;
  std::string text_;
  Learned learned_;
};

LearnedTask that_took(Bytes memory, Bytes gpu_memory = {}, int train_s = 0) {
  return {.memory = memory, .gpu_memory = gpu_memory, .train = Duration{train_s * 1000}};
}

/// The same is learned of both tasks of the group `g`.
Learned both(const LearnedTask& task, const LearnedFrom& from = kLast) {
  Learned learned;
  learned.add("g", "a", task, from);
  learned.add("g", "b", task, from);
  return learned;
}

constexpr std::string_view kTwo = "  tasks: [{id: a, command: x}, {id: b, command: x}]\n";

std::string group_g(std::string_view lines) {
  return "groups:\n- name: g\n" + std::string(lines) + std::string(kTwo);
}

TEST(LearnedView, HasWhatIsSaidAndTakenAndReservedByPlace) {
  Learned learned;
  learned.add("g", "a", that_took(gb(1), gb(4), 60), kLast);
  learned.add("g", "b", {.memory = gb(3), .memory_at_least = true}, kLast);
  learned.add("g", "gone", that_took(gb(9)));
  learned.add("old", "t", that_took(gb(9)));
  learned.add("old", "u", that_took(gb(9)));
  const LearnedView view = Known(
                               "groups:\n"
                               "- {name: new, tasks: [{command: x}]}\n"
                               "- name: g\n"
                               "  gpu-memory: auto\n"
                               "  tasks:\n"
                               "  - {id: a, memory: 2GB, command: x}\n"
                               "  - {id: b, memory: 4GB, command: x}\n"
                               "  - {id: c, command: x}\n",
                               learned)
                               .view();
  ASSERT_EQ(view.groups.size(), 1U) << "nothing is known of 'new'";
  EXPECT_THAT(view.gone, ElementsAre(Pair("g", 1U), Pair("old", 2U)));
  EXPECT_EQ(view.tasks, 5U);
  const LearnedGroup& group = view.groups.front();
  EXPECT_EQ(group.name, "g");
  EXPECT_EQ(group.tasks, 3U);
  ASSERT_EQ(group.numbers.size(), 5U);
  const auto expect = [&](std::size_t index, TaskKey key, std::string_view said, std::size_t tasks,
                          Bytes taken, Bytes reserved, bool at_least) {
    const LearnedNumber& number = group.numbers.at(index);
    EXPECT_EQ(number.key, key) << index;
    EXPECT_EQ(number.said ? number.said->text : "", said) << index;
    EXPECT_EQ(number.tasks, tasks) << index;
    EXPECT_EQ(Bytes{number.taken_most}, taken) << index;
    EXPECT_EQ(Bytes{number.reserved_most}, reserved) << index;
    EXPECT_EQ(number.at_least, at_least) << index;
  };
  expect(0, TaskKey::Memory, "", 1, {}, gb(9) + mb(900), false);
  expect(1, TaskKey::Memory, "2GB", 1, gb(1), gb(2), false);
  expect(2, TaskKey::Memory, "4GB", 1, gb(3), gb(4), true);
  expect(3, TaskKey::GpuMemory, "auto", 3, gb(4), gb(4) + mb(400), false);
  EXPECT_EQ(group.numbers.at(4).key, TaskKey::Duration);
  EXPECT_EQ(group.numbers.at(4).should_be, 60'000);
  EXPECT_EQ(group.numbers.at(1).from, kLast);
  ASSERT_EQ(group.cells.size(), 2U);
  EXPECT_EQ(group.cells.at(1).id, "b");
  EXPECT_EQ(group.cells.at(1).taken.task.memory, gb(3));
  EXPECT_TRUE(group.cells_differ());
}

TEST(LearnedView, SaysWhetherTheTasksOfAGroupDiffer) {
  const std::string text = group_g("  memory: 8GB\n  duration: 1h\n");
  const auto differ = [&](Bytes a, Bytes b) {
    Learned learned;
    learned.add("g", "a", that_took(a, {}, 60), kLast);
    learned.add("g", "b", that_took(b, {}, 90), kLast);
    return Known(text, learned).view().groups.at(0).cells_differ();
  };
  EXPECT_FALSE(differ(mb(800), gb(1))) << "and how long they take always differs somewhat";
  EXPECT_TRUE(differ(mb(700), gb(1)));
}

TEST(LearnedView, SuggestsNumbersForTheJobFile) {
  const Learned learned = both(that_took(gb(2), gb(6), 95));
  EXPECT_THAT(
      Known(group_g("  memory: 8GB\n  gpu-memory: 4GB\n  duration: 1h\n"), learned).suggestions(),
      ElementsAre("2.2GB", "6.6GB", "95s"));
  EXPECT_THAT(Known(group_g("  memory: 2GB\n  gpu-memory: 6.5GB\n  duration: 100s\n"), learned)
                  .suggestions(),
              Each(IsEmpty()))
      << "they are right to a tenth";
  EXPECT_THAT(Known(group_g("  gpu-memory: at least 4GB\n"), learned).suggestions(),
              ElementsAre("2.2GB", "at least 6.6GB", ""))
      << "it may grow still, and nothing is said of memory";
  EXPECT_THAT(Known(group_g("  gpu-memory: auto\n"), learned).suggestions(),
              ElementsAre("2.2GB", "6.6GB", ""));
}

TEST(LearnedView, SuggestsNoLessWhereItIsNotSure) {
  LearnedTask largest = that_took(gb(2));
  largest.memory_at_least = true;
  EXPECT_THAT(Known(group_g("  memory: 8GB\n"), both(largest)).suggestions(), ElementsAre(""))
      << "it may have taken 8 GB in all its processes";
  EXPECT_THAT(Known(group_g("  memory: 1GB\n"), both(largest)).suggestions(), ElementsAre("2.2GB"));

  const Learned other = both(that_took({}, gb(6)), of_another_card());
  EXPECT_THAT(Known(group_g("  gpu-memory: 40GB\n"), other).suggestions(), ElementsAre(""));
  EXPECT_THAT(Known(group_g("  gpu-memory: 4GB\n"), other).suggestions(), ElementsAre("6.6GB"));
  EXPECT_THAT(Known(group_g("  gpu-memory: auto\n"), other).suggestions(),
              ElementsAre("at least 6.6GB"));
  EXPECT_THAT(Known(group_g("  gpus: 1\n"), other).suggestions(), ElementsAre("at least 6.6GB"))
      << "nothing is said of GPU memory";
  EXPECT_THAT(Known(group_g(""), both(largest)).suggestions(), ElementsAre("at least 2.2GB"))
      << "nothing is said of memory";

  EXPECT_THAT(
      Known(group_g("  memory: 8GB\n  memory-limit: hard\n"), both(that_took(gb(2)))).suggestions(),
      ElementsAre(""));
}

TEST(LearnedView, SuggestsNoMemoryThatAnotherCommandTook) {
  Known known(group_g("  memory: 8GB\n  gpu-memory: auto\n"), both(that_took(gb(2), gb(6))));
  known.edit(
      "groups:\n- name: g\n  memory: 8GB\n  gpu-memory: auto\n"
      "  tasks: [{id: a, command: y}, {id: b, command: y}]\n");
  EXPECT_THAT(known.suggestions(), ElementsAre("", ""));
  const LearnedView view = known.view();
  const LearnedNumber& memory = view.groups.at(0).numbers.at(0);
  EXPECT_TRUE(memory.other_command);
  EXPECT_EQ(Bytes{memory.taken_most}, gb(2)) << "it is shown";
  EXPECT_EQ(memory.from, kLast);
}

TEST(LearnedView, SuggestsNothingForANumberOfTheMatrix) {
  Learned learned;
  for (const char* const id : {"m=1", "m=9"}) learned.add("g", id, that_took(gb(4)), kLast);
  EXPECT_THAT(Known("groups:\n- name: g\n  matrix: {m: [1, 9]}\n  memory: '{m}GB'\n"
                    "  tasks: [{command: x}]\n",
                    learned)
                  .suggestions(),
              ElementsAre(""));
}

TEST(LearnedView, HasNumbersAsAPersonWouldWriteThem) {
  using Sizes = std::vector<std::pair<Bytes, std::string>>;
  for (const auto& [size, text] : Sizes{{Bytes{1}, "1kB"},
                                        {Bytes{1'000}, "1kB"},
                                        {Bytes{999'001}, "1MB"},
                                        {mb(640), "640MB"},
                                        {Bytes{1'136'000'001}, "1.14GB"},
                                        {gb(10), "10GB"},
                                        {Bytes{123'400'000'000}, "124GB"},
                                        {Bytes{1'234'000'000'000}, "1240GB"}}) {
    EXPECT_EQ(size_to_write(size), text) << size.count;
    EXPECT_GE(parse_bytes(text)->count, size.count) << "never less";
  }
  using Times = std::vector<std::pair<int, std::string>>;
  for (const auto& [time, text] : Times{{1, "1ms"},
                                        {999, "999ms"},
                                        {1'000, "1s"},
                                        {3'569, "3.6s"},
                                        {9'999, "10s"},
                                        {10'001, "11s"},
                                        {599'000, "599s"},
                                        {600'000, "10m"},
                                        {3'540'001, "1h"},
                                        {9'000'000, "2h30m"}}) {
    EXPECT_EQ(time_to_write(Duration{time}), text) << time;
    EXPECT_GE(parse_duration(text)->count(), time) << "never less";
  }
}

}  // namespace
}  // namespace trainyard::job
