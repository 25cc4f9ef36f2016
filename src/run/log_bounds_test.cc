#include "run/log_bounds.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;

class LogsOfAttempts : public ::testing::Test {
 protected:
  void write(const std::string& name, Bytes bytes) {
    std::ofstream(place_ / name, std::ios::app)
        << std::string(static_cast<std::size_t>(bytes.count), 'x');
  }
  sys::TemporaryDirectory place_;
  std::vector<std::string> notes_;
  LogBounds::OnNote on_note_ = [this](const std::string& note) { notes_.push_back(note); };
};

TEST_F(LogsOfAttempts, AreBoundedEachTimeAndToldOfOnce) {
  LogBounds bounds(mib(1));
  const std::vector<std::string> logs{place_ / "stderr.log", place_ / "stdout.log"};
  for (int round = 0; round < 3; ++round) {
    write("stdout.log", mib(2));
    write("stderr.log", kib(2));
    bounds.look(logs, on_note_);
  }
  EXPECT_THAT(notes_, ElementsAre("'" + logs[1] +
                                  "' has more than 1 MB: its beginning and its end are kept "
                                  "(limits.log)"));
}

TEST_F(LogsOfAttempts, MayTakeAnyAmountWhereNothingIsSaid) {
  LogBounds bounds(Bytes{});
  write("stdout.log", mib(2));
  bounds.look({place_ / "stdout.log"}, on_note_);
  EXPECT_THAT(notes_, ElementsAre());
}

TEST_F(LogsOfAttempts, AreThoseOfItsRanksAndEachIsOne) {
  model::Launch launch;
  launch.stdout_path = "/t/stdout.log";
  launch.stderr_path = "/t/stdout.log";
  launch.own_ranks = model::OwnRanks{.gpus = 0, .log_paths = {"/t/rank-1.log"}};
  EXPECT_THAT(logs_of(launch), ElementsAre("/t/stdout.log", "/t/rank-1.log"));
  EXPECT_THAT(logs_of(model::Launch{}), ElementsAre());
}

}  // namespace
}  // namespace trainyard::run
