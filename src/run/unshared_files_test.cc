#include "run/unshared_files.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::run {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;

constexpr model::AttemptKey kTrains{.task = {1}, .attempt = 1};

class Unshared : public testing::Test {
 public:
  Unshared() {
    directory_.make("here");
    directory_.make("here/runs");
    directory_.make("here/runs/sweep");
    directory_.make("home");
    directory_.make("home/proj");
    directory_.write("ssh", "#!/bin/sh\nshift\nexec \"$@\"\n");
    std::filesystem::permissions(directory_ / "ssh", std::filesystem::perms::owner_all);
    begin_.run_directory = run();
    files_.know_home(directory_ / "home");
    files_.begin(begin_);
    std::filesystem::create_directories(begin_.run_directory);
  }

 protected:
  [[nodiscard]] std::string run() const { return directory_ / "here/runs/sweep"; }
  [[nodiscard]] std::string there(const std::string& path) const {
    return begin_.run_directory + "/" + path;
  }
  void make(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  FileMover::Done done() {
    return
        [this](const Result<void>& done) { done_.push_back(done ? "done" : done.error().message); };
  }
  void wait_for_done() {
    const Duration end = sys::EventLoop::now() + sys::kLongEnough;
    while (done_.empty() && sys::EventLoop::now() < end) loop_.run_once(Duration(20));
  }

  sys::TemporaryDirectory directory_;
  sys::EventLoop loop_;
  std::vector<std::string> notes_;
  std::vector<std::string> done_;
  wire::AgentBegin begin_;
  UnsharedFiles files_{
      loop_,
      {.rsync = {"rsync", "--recursive", "--links", "--perms", "--times", "--protect-args",
                 "--modify-window=-1", "--rsh=" + (directory_ / "ssh")},
       .host = "lab1",
       .directory = "proj",
       .here = directory_ / "here"},
      [this](const std::string& note) { notes_.push_back(note); }};
};

TEST_F(Unshared, HaveADirectoryOfTheirOwnBelowThatOfTheCode) {
  EXPECT_EQ(begin_.work_directory, directory_ / "home/proj");
  EXPECT_THAT(begin_.run_directory,
              MatchesRegex(directory_ / "home/proj/.trainyard/sweep-[0-9a-f]{8}"));
  EXPECT_EQ(begin_.proof, there("machines.proof"));
  EXPECT_EQ(files_.elsewhere().place_of(run() + "/train/1"), there("train/1"));
  EXPECT_EQ(files_.elsewhere().place_of(directory_ / "here/src"), directory_ / "home/proj/src");
  wire::AgentBegin other{.run_directory = run() + "-2"};
  UnsharedFiles same(loop_, {.rsync = {}, .host = "lab1", .directory = "/data", .here = "/x"}, {});
  same.know_home("/home/me");
  same.begin(other);
  EXPECT_THAT(other.run_directory, MatchesRegex("/data/.trainyard/sweep-2-[0-9a-f]{8}"));
}

TEST_F(Unshared, ComeBeforeAnAttemptAsFarAsTheyAreHere) {
  const std::vector<std::string> needed{run() + "/prepare/1", run() + "/prepare/none",
                                        "/elsewhere/x"};
  files_.bring_for(kTrains, there("train/1"), needed, done());
  EXPECT_THAT(done_, ElementsAre("done")) << "there is nothing to bring, and nobody waits";
  done_.clear();
  make(run() + "/train/1/checkpoints/1", "state");
  make(run() + "/prepare/1/data", "data");
  files_.bring_for(kTrains, there("train/1"), needed, done());
  wait_for_done();
  EXPECT_THAT(done_, ElementsAre("done"));
  EXPECT_EQ(sys::content_of(there("train/1/checkpoints/1")), "state");
  EXPECT_EQ(sys::content_of(there("prepare/1/data")), "data");
}

TEST_F(Unshared, ComeBackOnce) {
  files_.bring_for(kTrains, there("train/1"), {}, done());
  done_.clear();
  make(there("train/1/model"), "weights");
  files_.bring_back(kTrains, done());
  wait_for_done();
  EXPECT_EQ(sys::content_of(run() + "/train/1/model"), "weights");
  done_.clear();
  files_.bring_back(kTrains, done());
  EXPECT_THAT(done_, ElementsAre("done")) << "it is known that there is nothing more";
}

TEST_F(Unshared, AreLeftAsTheyAreWhereAnAttemptWasLostThereAndNoneHasRunSince) {
  make(run() + "/train/1/state", "came last");
  files_.bring_for(kTrains, there("train/1"), {}, done());
  wait_for_done();
  make(there("train/1/state"), "of the one that was lost");
  files_.forget();
  done_.clear();
  constexpr model::AttemptKey kNext{.task = {1}, .attempt = 2};
  files_.bring_for(kNext, there("train/1"), {}, done());
  wait_for_done();
  EXPECT_EQ(sys::content_of(there("train/1/state")), "of the one that was lost");
  files_.forget();
  done_.clear();
  constexpr model::AttemptKey kAfterAnother{.task = {1}, .attempt = 4};
  files_.bring_for(kAfterAnother, there("train/1"), {}, done());
  wait_for_done();
  EXPECT_EQ(sys::content_of(there("train/1/state")), "came last") << "attempt 3 ran elsewhere";
}

TEST_F(Unshared, OfADeadExecutionAreKeptWhereTheyAreNewer) {
  files_.found_something();
  make(run() + "/train/1/state", "came last");
  make(there("train/1/state"), "newer");
  std::filesystem::last_write_time(
      there("train/1/state"),
      std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  files_.bring_for(kTrains, there("train/1"), {}, done());
  wait_for_done();
  EXPECT_EQ(sys::content_of(there("train/1/state")), "newer");
}

TEST_F(Unshared, AreWaitedForNoMoreWhereSomebodyGivesUp) {
  files_.bring_for(kTrains, there("train/1"), {}, done());
  done_.clear();
  make(there("train/1/model"), "weights");
  files_.bring_back(kTrains, done());
  files_.give_up(kTrains);
  EXPECT_THAT(done_, ElementsAre("it was not waited for"));
  files_.give_up(kTrains);
  EXPECT_EQ(done_.size(), 1U) << "once";
}

TEST_F(Unshared, GrowAsTheyAreToldOf) {
  files_.add({.path = there("train/1/stdout.log"), .anew = true, .bytes = "1\n"});
  files_.add({.path = there("train/1/stdout.log"), .bytes = "2\n"});
  EXPECT_EQ(sys::content_of(run() + "/train/1/stdout.log"), "1\n2\n");
  files_.add({.path = there("train/1/stdout.log"), .anew = true, .bytes = "anew\n"});
  EXPECT_EQ(sys::content_of(run() + "/train/1/stdout.log"), "anew\n");
}

TEST_F(Unshared, AreWrittenNowhereElseWhateverAnAgentSays) {
  make(directory_ / "here/mine", "mine");
  for (const std::string& path :
       {directory_ / "here/mine", there("../../../../here/mine"), there(".."), there(""),
        begin_.run_directory, begin_.run_directory + "x/stdout.log", std::string("stdout.log"),
        std::string()}) {
    files_.add({.path = path, .bytes = "x"});
  }
  std::filesystem::create_symlink(directory_ / "here/mine", run() + "/stdout.log");
  files_.add({.path = there("stdout.log"), .bytes = "x"});
  EXPECT_EQ(sys::content_of(directory_ / "here/mine"), "mine");
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "here/runs/sweepx"));
}

TEST_F(Unshared, SayOnceThatTheyCannotGrow) {
  make(run() + "/train", "a file in the way");
  files_.add({.path = there("train/1/stdout.log"), .bytes = "1"});
  files_.add({.path = there("train/1/stdout.log"), .bytes = "2"});
  EXPECT_THAT(
      notes_,
      ElementsAre(testing::HasSubstr("output of tasks there is not visible before they end")));
}

TEST_F(Unshared, AreNamedInResultsAsTheyAreHere) {
  model::AttemptEnded ended{.key = kTrains, .end = model::ExitedWith{0}};
  ended.result = R"({"model":")" + there("train/1/model") + R"(","two":[")" + there("a") + R"("]})";
  files_.make_own(ended);
  EXPECT_EQ(ended.result,
            R"({"model":")" + run() + R"(/train/1/model","two":[")" + run() + R"(/a"]})");
}

}  // namespace
}  // namespace trainyard::run
