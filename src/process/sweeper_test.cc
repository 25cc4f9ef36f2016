// Directories are emptied by a process of its own, one after the other.
#include "process/sweeper.h"

#include <filesystem>
#include <fstream>

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/process_scan.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

bool is_log(std::string_view name) { return name.ends_with(".log"); }

/// A run directory with tasks that each left a model of five bytes and a log.
void make_tasks(const sys::TemporaryDirectory& run, std::uint32_t tasks) {
  for (std::uint32_t task = 0; task < tasks; ++task) {
    const std::string name = std::to_string(task);
    run.make(name);
    run.write(name + "/model.pt", "12345");
    run.write(name + "/stdout.log", "kept");
  }
}

std::vector<Sweeper::Swept> wait_for_all(Sweeper& sweeper) {
  std::vector<Sweeper::Swept> all;
  while (!sweeper.is_idle()) {
    std::vector<Sweeper::Swept> some = sweeper.wait(sys::kLongEnough);
    if (some.empty()) break;
    for (Sweeper::Swept& each : some) all.push_back(std::move(each));
  }
  return all;
}

TEST(Sweeper, EmptiesDirectoriesInTheirOrderAndLeavesWhatIsKept) {
  const sys::TemporaryDirectory run;
  make_tasks(run, Sweeper::kAskedMax);
  Sweeper sweeper({.root = run.path(), .kept = is_log});
  for (std::uint32_t task = 0; task < Sweeper::kAskedMax; ++task) {
    ASSERT_TRUE(sweeper.has_room()) << task;
    sweeper.sweep(task, std::to_string(task));
  }
  EXPECT_FALSE(sweeper.has_room()) << "so many may be asked for at a time";
  const std::vector<Sweeper::Swept> swept = wait_for_all(sweeper);
  ASSERT_EQ(swept.size(), Sweeper::kAskedMax);
  for (std::uint32_t task = 0; task < Sweeper::kAskedMax; ++task) {
    EXPECT_EQ(swept[task].number, task);
    EXPECT_EQ(swept[task].bytes, Bytes{5});
    EXPECT_THAT(swept[task].failed, IsEmpty());
    EXPECT_THAT(sys::names_in(run / std::to_string(task)), ElementsAre("stdout.log"));
  }
  EXPECT_TRUE(sweeper.has_room());
}

TEST(Sweeper, StartsNoProcessBeforeThereIsSomethingToDoAndLeavesNone) {
  const sys::TemporaryDirectory run;
  make_tasks(run, 1);
  sys::ChildList children;
  const auto before = children.read();
  {
    Sweeper sweeper({.root = run.path(), .kept = is_log});
    EXPECT_EQ(children.read(), before);
    EXPECT_THAT(sweeper.hear(), IsEmpty());
    sweeper.sweep(0, "0");
    EXPECT_EQ(children.read().size(), before.size() + 1);
    EXPECT_EQ(wait_for_all(sweeper).size(), 1U);
  }
}

TEST(Sweeper, DeletesNothingInAnotherRunInThePlaceOfItsDirectory) {
  const sys::TemporaryDirectory place;
  for (const char* const run : {"run", "other"}) {
    std::filesystem::create_directories(place / run + "/0");
    place.write(fmt::format("{}/0/model.pt", run), "12345");
  }
  Sweeper sweeper({.root = place / "run", .kept = is_log});
  std::filesystem::rename(place / "run", place / "run.x");
  std::filesystem::create_symlink(place / "other", place / "run");
  sweeper.sweep(0, "0");
  const std::vector<Sweeper::Swept> swept = wait_for_all(sweeper);
  ASSERT_EQ(swept.size(), 1U);
  EXPECT_EQ(swept[0].bytes, Bytes{5});
  EXPECT_THAT(sys::names_in(place / "other/0"), ElementsAre("model.pt"));
  EXPECT_THAT(sys::names_in(place / "run.x/0"), IsEmpty());
}

TEST(Sweeper, SaysThatTheRunDirectoryCannotBeEntered) {
  const sys::TemporaryDirectory place;
  Sweeper sweeper({.root = place / "gone", .kept = is_log});
  sweeper.sweep(0, "0");
  sweeper.sweep(1, "1");
  const std::vector<Sweeper::Swept> swept = wait_for_all(sweeper);
  ASSERT_EQ(swept.size(), 2U);
  for (const std::uint32_t task : {0U, 1U}) {
    EXPECT_EQ(swept[task].number, task);
    EXPECT_THAT(swept[task].failed,
                ElementsAre(fmt::format("'{}/{}': the run directory cannot be entered",
                                        place / "gone", task)));
  }
}

TEST(Sweeper, GoesOnWithAnotherProcessWhenOneWasKilled) {
  const sys::TemporaryDirectory run;
  make_tasks(run, 3);
  // The fifo has no writer: the process that asks what is kept waits for ever in the first one.
  const std::string fifo = run / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  sys::ChildList children;
  const auto before = children.read();
  Sweeper sweeper({.root = run.path(), .kept = [&](std::string_view name) {
                     if (name == "stuck") std::ifstream(fifo).get();
                     return is_log(name);
                   }});
  run.write("0/stuck", "");
  for (std::uint32_t task = 0; task < 3; ++task) sweeper.sweep(task, std::to_string(task));
  EXPECT_THAT(sweeper.wait(Duration{1}), IsEmpty()) << "nobody waits for a disk that hangs";
  for (const pid_t child : children.read()) {
    if (std::ranges::find(before, child) == before.end()) ::kill(child, SIGKILL);
  }
  const std::vector<Sweeper::Swept> swept = wait_for_all(sweeper);
  ASSERT_EQ(swept.size(), 3U);
  EXPECT_THAT(swept[0].failed,
              ElementsAre(HasSubstr("/0': the process that deletes it was killed")));
  EXPECT_TRUE(std::filesystem::exists(run / "0/stdout.log"));
  for (const std::size_t task : {1U, 2U}) {
    EXPECT_EQ(swept[task].bytes, Bytes{5});
    EXPECT_THAT(swept[task].failed, IsEmpty());
  }
}

}  // namespace
}  // namespace trainyard::process
