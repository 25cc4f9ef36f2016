#include "workers/run_logs.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::workers {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

TEST(RunLogs, AreThoseOfOneRunAtATime) {
  const sys::TemporaryDirectory directory;
  {
    const auto first = RunLogs::take(directory.path());
    ASSERT_TRUE(first) << first.error().message;
    const auto second = RunLogs::take(directory.path());
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("is in use by process "));
    EXPECT_THAT(second.error().message,
                HasSubstr(": each parallel run needs a directory of its own for its logs"));
  }
  EXPECT_TRUE(RunLogs::take(directory.path())) << "when that one has ended";
}

TEST(RunLogs, OfTheRunBeforeGoAndNothingElse) {
  const sys::TemporaryDirectory directory;
  const std::vector<std::string> mine{"worker-.log",  "worker-a.log", "worker-1.2.3.log",
                                      "worker-1.txt", "my.log",       "worker-one.log",
                                      "notes"};
  for (const std::string& name : mine) std::ofstream(directory / name) << "mine";
  for (const char* const name :
       {"worker-0.log", "worker-17.log", "worker-3.12.log", "workers.json"}) {
    std::ofstream(directory / name) << "old";
  }
  const auto logs = RunLogs::take(directory.path());
  ASSERT_TRUE(logs) << logs.error().message;
  std::vector<std::string> expected = mine;
  expected.emplace_back(".workers.lock");
  EXPECT_THAT(sys::names_in(directory.path()), UnorderedElementsAreArray(expected));
}

TEST(RunLogs, OfALaterLifeHaveItsNumber) {
  const RunLogs logs = RunLogs::in_private("/tmp/logs");
  EXPECT_EQ(logs.path_of(7, 1), "/tmp/logs/worker-7.log");
  EXPECT_EQ(logs.path_of(7, 2), "/tmp/logs/worker-7.2.log");
}

}  // namespace
}  // namespace trainyard::workers
