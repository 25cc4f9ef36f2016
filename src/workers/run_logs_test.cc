#include "workers/run_logs.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"
#include "wire/parallel_record.h"

namespace trainyard::workers {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

std::string record_of(const std::vector<int>& nodes) {
  wire::ParallelRecord record;
  for (const int node : nodes) record.workers.push_back({.node = node});
  return to_text(record);
}

TEST(RunLogs, AreThoseOfOneRunAtATime) {
  const sys::TemporaryDirectory directory;
  {
    const auto first = RunLogs::take(directory.path());
    ASSERT_TRUE(first) << first.error().message;
    const auto second = RunLogs::take(directory.path());
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("is in use by process "));
    EXPECT_THAT(second.error().message,
                HasSubstr(": each parallel run needs a directory of its own for its logs; choose "
                          "another directory (--logs)"));
  }
  EXPECT_TRUE(RunLogs::take(directory.path())) << "when that one has ended";
}

TEST(RunLogs, OfTheRunBeforeGoAndNothingElse) {
  const sys::TemporaryDirectory directory;
  const std::vector<std::string> mine{"worker-.log",  "worker-a.log", "worker-1.2.3.log",
                                      "worker-1.txt", "my.log",       "worker-one.log",
                                      "notes"};
  for (const std::string& name : mine) std::ofstream(directory / name) << "mine";
  for (const char* const name : {"worker-0.log", "worker-17.log", "worker-3.12.log"}) {
    std::ofstream(directory / name) << "old";
  }
  std::ofstream(directory / "workers.json") << record_of({0, 3, 17});
  const auto logs = RunLogs::take(directory.path());
  ASSERT_TRUE(logs) << logs.error().message;
  std::vector<std::string> expected = mine;
  expected.emplace_back(".workers.lock");
  EXPECT_THAT(sys::names_in(directory.path()), UnorderedElementsAreArray(expected));
}

TEST(RunLogs, KeepTheRecordAsLongAsALogOfItIsThere) {
  const sys::TemporaryDirectory directory;
  std::ofstream(directory / "workers.json") << record_of({0, 1});
  std::ofstream(directory / "worker-0.log") << "old";
  // It cannot be removed.
  std::filesystem::create_directory(directory / "worker-1.log");
  std::ofstream(directory / "worker-1.log/file") << "x";
  for (int i = 0; i < 2; ++i) {
    const auto logs = RunLogs::take(directory.path());
    ASSERT_TRUE(logs) << logs.error().message;
    EXPECT_THAT(sys::names_in(directory.path()),
                UnorderedElementsAre(".workers.lock", "worker-1.log", "workers.json"));
  }
}

TEST(RunLogs, AreNotTakenWhereAFileOfSomethingElseWouldBeLost) {
  const auto refused = [](const std::string& name, const std::string& record) {
    const sys::TemporaryDirectory directory;
    if (!record.empty()) std::ofstream(directory / "workers.json") << record;
    std::ofstream(directory / "worker-0.log") << "mine";
    if (!name.empty()) std::ofstream(directory / name) << "mine";
    const std::vector<std::string> before = sys::names_in(directory.path());
    const auto logs = RunLogs::take(directory.path());
    EXPECT_THAT(sys::names_in(directory.path()), IsSupersetOf(before));
    return logs ? "" : logs.error().message.substr(directory.path().size() + 2);
  };
  const std::string why =
      "' is not of a former parallel run and would be lost: choose another directory (--logs), or "
      "move the file";
  EXPECT_EQ(refused("", ""), "worker-0.log" + why);
  EXPECT_EQ(refused("worker-1.log", record_of({0})), "worker-1.log" + why);
  EXPECT_EQ(refused("worker-00.log", record_of({0})), "worker-00.log" + why);
  EXPECT_THAT(refused("", R"({"workers": 4})"), HasSubstr(why));
}

TEST(RunLogs, OfALaterLifeHaveItsNumber) {
  const RunLogs logs = RunLogs::in_private("/tmp/logs");
  EXPECT_EQ(logs.path_of(7, 1), "/tmp/logs/worker-7.log");
  EXPECT_EQ(logs.path_of(7, 2), "/tmp/logs/worker-7.2.log");
}

}  // namespace
}  // namespace trainyard::workers
