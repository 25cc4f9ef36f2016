// The directories of one job's runs have numbers, and the next is the first that is free.
#include "run/run_directory.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/files.h"

namespace trainyard::run {
namespace {

using ::testing::UnorderedElementsAre;

TEST(RunDirectory, IsTheFirstThatIsFree) {
  const std::string place = sys::make_private_directory("trainyard-test-").value();
  const std::string first = place + "/digits";
  EXPECT_EQ(free_run_directory(first), first);
  std::filesystem::create_directory(first);
  EXPECT_EQ(free_run_directory(first), first) << "an empty one is free";
  std::ofstream(first + "/lock").put('x');
  EXPECT_EQ(free_run_directory(first), first + "-2");
  std::ofstream(first + "-2").put('x');
  EXPECT_EQ(free_run_directory(first), first + "-3") << "a file is in the place of the second";
  std::filesystem::remove_all(place);
}

TEST(RunDirectory, IsOneThatCannotBeMadeRatherThanNone) {
  const std::string place = sys::make_private_directory("trainyard-test-").value();
  const std::string longest = place + "/" + std::string(255, 'x');
  std::ofstream(longest).put('x');
  EXPECT_EQ(free_run_directory(longest), longest + "-2") << "a name that no file system takes";
  std::filesystem::create_symlink("loop", place + "/loop");
  EXPECT_EQ(free_run_directory(place + "/loop/digits"), place + "/loop/digits");
  std::filesystem::remove_all(place);
}

TEST(RunDirectory, HasItsFilesAtTheSamePlaceAfterItsProjectHasMoved) {
  const RunMove copied{.was = "/nowhere/orig/runs/m", .is = "/nowhere/copy/runs/m"};
  EXPECT_EQ(path_after_move("/nowhere/orig/m.yaml", copied), "/nowhere/copy/m.yaml");
  EXPECT_EQ(path_after_move("/nowhere/orig/runs/m/trainyard.job.yaml", copied),
            "/nowhere/copy/runs/m/trainyard.job.yaml");
  EXPECT_EQ(path_after_move("/nowhere/orig/conf/a.yaml", {.was = copied.was, .is = "/else/m"}),
            "/conf/a.yaml");
  EXPECT_EQ(path_after_move("", copied), "");
  EXPECT_EQ(path_after_move("/a/m.yaml", {.was = "", .is = "/b/runs/m"}), "/a/m.yaml");
  EXPECT_EQ(path_after_move("/a/m.yaml", {.was = "/a/runs/m", .is = "/a/runs/m"}), "/a/m.yaml");
}

TEST(RunDirectory, WasBelowADirectoryThatHasMovedWithIt) {
  const RunMove copied{.was = "/nowhere/orig/runs/m", .is = "/nowhere/copy/runs/m"};
  EXPECT_EQ(directory_after_move("/nowhere/orig", copied), "/nowhere/copy");
  EXPECT_EQ(directory_after_move("/nowhere/orig/sub", copied), "/nowhere/copy/sub");
  EXPECT_EQ(directory_after_move("/nowhere/orig/runs/m/x", copied), "/nowhere/copy/runs/m/x");
  EXPECT_EQ(directory_after_move("/nowhere/data", copied), "/nowhere/data");
  EXPECT_EQ(directory_after_move("/data", copied), "/data");
  EXPECT_EQ(directory_after_move("/", copied), "/");
  // The run directory alone has moved: in its project, and out of it.
  EXPECT_EQ(
      directory_after_move("/nowhere/orig", {.was = copied.was, .is = "/nowhere/orig/runs/n"}),
      "/nowhere/orig");
  EXPECT_EQ(directory_after_move("/nowhere/orig", {.was = copied.was, .is = "/else/m"}),
            "/nowhere/orig");
  EXPECT_EQ(directory_after_move("/data", {.was = copied.was, .is = "/disk/nowhere/orig/runs/m"}),
            "/data");
  EXPECT_EQ(directory_after_move("", copied), "");
  EXPECT_EQ(directory_after_move("/a", {.was = "", .is = "/b/runs/m"}), "/a");
  EXPECT_EQ(directory_after_move("/a", {.was = "/a/runs/m", .is = "/a/runs/m"}), "/a");
}

TEST(RunDirectory, HasNotMovedWhereAnotherPathLeadsToIt) {
  const std::string place = sys::make_private_directory("trainyard-test-").value();
  std::filesystem::create_directories(place + "/orig/runs/m");
  std::filesystem::create_directory_symlink(place + "/orig", place + "/link");
  EXPECT_EQ(path_after_move(place + "/orig/m.yaml",
                            {.was = place + "/orig/runs/m", .is = place + "/link/runs/m"}),
            place + "/orig/m.yaml");
  // A job file by a path with a link was in the project all the same.
  EXPECT_EQ(path_after_move(place + "/link/m.yaml", {.was = real_directory(place + "/orig/runs/m"),
                                                     .is = real_directory(place + "/copy/runs/m")}),
            real_directory(place + "/copy/m.yaml"));
  std::filesystem::remove_all(place);
}

TEST(RunDirectory, KnowsThoseOfTheSameJob) {
  const std::string place = sys::make_private_directory("trainyard-test-").value();
  const std::string first = place + "/digits";
  for (const char* const name : {"digits", "digits-2", "digits-13", "digits-02", "digits-a",
                                 "digits-", "digit", "digits2"}) {
    std::filesystem::create_directory(place + "/" + name);
  }
  EXPECT_THAT(run_directories_like(first),
              UnorderedElementsAre(first, first + "-2", first + "-13"));
  EXPECT_TRUE(run_directories_like(place + "/nowhere/digits").empty());
  std::filesystem::remove_all(place);
}

TEST(RunDirectory, HasATasksFilesBelowItsGroup) {
  EXPECT_EQ(group_directory(1, "train", true), "train");
  EXPECT_EQ(task_directory(group_directory(1, "train", true), "lr=1"), "train/lr=1");
  EXPECT_EQ(task_directory(group_directory(1, "train", false), "lr=1"), "lr=1");
}

TEST(RunDirectory, LetsNoTwoSubmissionsShareADirectory) {
  EXPECT_EQ(task_directory(group_directory(2, "train", true), "lr=1"), "submissions/2/train/lr=1");
  EXPECT_EQ(task_directory(group_directory(3, "train", false), "lr=1"), "submissions/3/lr=1");
  EXPECT_TRUE(taken_in_run_directory("submissions")) << "no group of the job file has that name";
}

TEST(RunDirectory, KeepsTheNamesOfItsOwnFilesToItself) {
  for (const char* name : {"reports", "lock", "socket", "journal.db", "journal.db-wal",
                           ".trainyard", "trainyard.preload.log"}) {
    EXPECT_TRUE(taken_in_run_directory(name)) << name;
  }
  EXPECT_FALSE(taken_in_run_directory("train"));
  EXPECT_FALSE(taken_in_run_directory("report"));
}

TEST(RunDirectory, KnowsTheJobFileOfACommandByItsPath) {
  EXPECT_TRUE(is_kept_job_path(kept_job_path("/home/me/runs/tr")));
  EXPECT_FALSE(is_kept_job_path("/home/me/job.yaml"));
  EXPECT_FALSE(is_kept_job_path("/home/me/trainyard.job.yaml/job.yaml"));
  EXPECT_FALSE(is_kept_job_path("/home/me/my-trainyard.job.yaml"));
}

TEST(RunDirectory, NamesTheLogThatHasText) {
  const auto size_of = [](const std::string& path) -> std::optional<Bytes> {
    if (path.starts_with("empty")) return Bytes{0};
    if (path.starts_with("text")) return Bytes{5};
    return std::nullopt;
  };
  const auto named = [&](std::string out, std::string err) {
    return log_with_text({.stdout_path = std::move(out), .stderr_path = std::move(err)}, size_of);
  };
  EXPECT_EQ(named("text.out", "empty.err"), "text.out");
  EXPECT_EQ(named("text.out", "text.err"), "text.err");
  EXPECT_EQ(named("empty.out", "empty.err"), std::nullopt);
  EXPECT_EQ(named("gone.out", "empty.err"), "empty.err");
  EXPECT_EQ(named("text.out", "gone.err"), "gone.err");
}

TEST(RunDirectory, NamesTheFilesOfAnAttemptByItsNumber) {
  EXPECT_EQ(log_name("stderr", 1), "stderr.log");
  EXPECT_EQ(log_name("stdout", 2), "stdout.2.log");
  EXPECT_EQ(result_name(1), "result.1.json");
  EXPECT_EQ(result_name(3), "result.3.json");
  EXPECT_EQ(workers_directory("/run/t", 1), "/run/t");
  EXPECT_EQ(workers_directory("/run/t", 2), "/run/t/workers.2");
}

TEST(RunDirectory, KeepsAReportInItsDirectory) {
  EXPECT_EQ(report_name("train"), "train");
  EXPECT_EQ(report_name("../../etc/x"), "_.._.._etc_x");
  EXPECT_EQ(report_name(""), "_");
}

}  // namespace
}  // namespace trainyard::run
