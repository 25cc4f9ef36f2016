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

using testing::ElementsAre;
using testing::IsEmpty;

constexpr model::AttemptKey kPrints{.task = {1}, .attempt = 1};
constexpr model::AttemptKey kOther{.task = {2}, .attempt = 1};

class Feed : public testing::Test {
 protected:
  void print(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::app) << text;
  }
  std::vector<wire::AgentLog> look(int room = 100) {
    std::vector<wire::AgentLog> told;
    feed_.look([&] { return static_cast<int>(told.size()) < room; },
               [&](wire::AgentLog log) { told.push_back(std::move(log)); });
    return told;
  }
  [[nodiscard]] wire::AgentLog piece(const std::string& name, bool anew,
                                     const std::string& bytes) const {
    return {.path = directory_ / name, .anew = anew, .bytes = bytes};
  }

  sys::TemporaryDirectory directory_;
  LogFeed feed_;
};

TEST_F(Feed, TellsWhatIsNew) {
  feed_.add(kPrints, {directory_ / "out", directory_ / "err"});
  EXPECT_THAT(look(), IsEmpty()) << "they are not there yet";
  print("out", "1\n");
  EXPECT_THAT(look(), ElementsAre(piece("out", true, "1\n")));
  print("out", "2\n");
  print("err", "\xff");
  EXPECT_THAT(look(), ElementsAre(piece("out", false, "2\n"), piece("err", true, "\xff")));
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(Feed, TellsNoMoreOfAttemptsThatHaveEnded) {
  feed_.add(kPrints, {directory_ / "a"});
  feed_.add(kOther, {directory_ / "b"});
  print("a", "1");
  print("b", "2");
  feed_.remove(kPrints);
  EXPECT_THAT(look(), ElementsAre(piece("b", true, "2")));
}

TEST_F(Feed, WaitsForRoomAndLosesNothing) {
  feed_.add(kPrints, {directory_ / "out"});
  const std::string much(300'000, 'x');
  print("out", much);
  EXPECT_THAT(look(0), IsEmpty());
  std::string all;
  for (int looks = 0; all.size() < much.size() && looks < 10; ++looks) {
    for (const wire::AgentLog& log : look(1)) all += log.bytes;
  }
  EXPECT_EQ(all, much);
}

TEST_F(Feed, TellsABoundedPartOfALogAtOnce) {
  feed_.add(kPrints, {directory_ / "out"});
  print("out", std::string(1'000'000, 'x'));
  EXPECT_EQ(look().size(), static_cast<std::size_t>(LogFeed::kPiecesMax));
}

}  // namespace

}  // namespace trainyard::run
