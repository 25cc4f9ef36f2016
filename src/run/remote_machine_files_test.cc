// Attempts on a machine that shares no disk: what stands in the place of rsync waits for the test.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <variant>

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "run/file_mover.h"
#include "run/remote_machine.h"
#include "run/test_agent.h"
#include "run/unshared_files.h"
#include "wire/agent.h"

namespace trainyard::run {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class RemoteFiles : public TestAgent {
 public:
  RemoteFiles() {
    hello_->home = "/home/me";
    hello_->path = "/opt/trainyard";
    directory_.make("run");
    // It says that it is at work, and is so until the test says that it is over, and how.
    directory_.write("rsync", fmt::format("#!/bin/sh\necho \"$@\" >> {0}/moves\n"
                                          "read code < {0}/gate\n"
                                          "[ $code = 0 ] || echo no room >&2\nexit $code\n",
                                          directory_.path()));
    std::filesystem::permissions(directory_ / "rsync", std::filesystem::perms::owner_all);
    ::mkfifo((directory_ / "gate").c_str(), 0600);
    unshared_ = UnsharedFiles::Options{.rsync = {directory_ / "rsync"},
                                       .host = "lab1",
                                       .directory = "proj",
                                       .here = "/proj",
                                       .again_after = Duration(10)};
  }

 protected:
  void join_with_files() {
    make();
    wait_until([this] { return machine_->hello() != nullptr; });
    machine_->begin({.run_directory = directory_ / "run", .proof = "x", .token = "y"});
    wait_until([this] { return machine_->is_ready(); });
    machine_->join({2}, ears());
  }
  void start_one() {
    model::Launch launch{.arguments = {"true"}};
    launch.task_directory = begin_->run_directory + "/train/1";
    launch.needed_directories = {directory_ / "run/made"};
    start(kOne, launch);
  }
  void run_one_to_its_end() {
    start_one();
    wait_until([this] { return heard_lines_.size() == 1; });
    tell(model::AttemptStarted{.key = kOne, .pid = 7});
    tell(model::AttemptEnded{.key = kOne, .end = model::ExitedWith{0}});
  }
  void fail_as_often_as_is_tried(int code) {
    for (int tries = 1; tries <= FileMover::kTriesMax; ++tries) {
      wait_for_moves(tries);
      end_move(code);
    }
  }
  /// Waits until this number of programs has begun.
  void wait_for_moves(int count) {
    wait_until([this, count] {
      return std::ranges::count(sys::content_of(directory_ / "moves"), '\n') == count;
    });
  }
  void end_move(int code) { std::ofstream(directory_ / "gate") << code << "\n"; }
};

TEST_F(RemoteFiles, HaveTheNamesOfThere) {
  join_with_files();
  EXPECT_EQ(begin_->work_directory, "/home/me/proj");
  EXPECT_THAT(begin_->run_directory, HasSubstr("/home/me/proj/.trainyard/run-"));
  EXPECT_EQ(begin_->proof, begin_->run_directory + "/machines.proof");
  const model::Grant grant = machine_->grant();
  EXPECT_EQ(grant.program, "/opt/trainyard");
  EXPECT_EQ(grant.elsewhere.place_of("/proj/x"), "/home/me/proj/x");
  EXPECT_EQ(grant.elsewhere.place_of(directory_ / "run"), begin_->run_directory);
}

TEST_F(RemoteFiles, AreThereBeforeAnythingIsSaidOfAnAttempt) {
  join_with_files();
  directory_.make("run/made");
  directory_.write("run/made/model", "x");
  start_one();
  machine_->carry_out(model::SignalAttempt{.key = kOne, .signal = 10});
  wait_for_moves(1);
  EXPECT_THAT(heard_lines_, IsEmpty());
  end_move(0);
  wait_until([this] { return heard_lines_.size() == 2; });
  EXPECT_THAT(heard_lines_[0], HasSubstr(R"("start":)"));
  EXPECT_THAT(heard_lines_[0], testing::Not(HasSubstr("needed_directories")));
  EXPECT_THAT(heard_lines_[1], HasSubstr("signal"));
}

TEST_F(RemoteFiles, OfAnAttemptThatIsToEndBeforeItBeganAreWaitedForNoMore) {
  join_with_files();
  directory_.make("run/made");
  directory_.write("run/made/model", "x");
  start_one();
  wait_for_moves(1);
  machine_->carry_out(model::StopAttempt{.key = kOne});
  ASSERT_EQ(count<model::AttemptEnded>(), 1U);
  EXPECT_EQ(std::get<model::NotStarted>(std::get<model::AttemptEnded>(told_.back()).end).why,
            "it was to end before its files were copied");
  EXPECT_FALSE(machine_->runs(kOne));
  constexpr model::AttemptKey kNext{.task = {1}, .attempt = 2};
  model::Launch launch{.arguments = {"true"}};
  launch.task_directory = begin_->run_directory + "/train/1";
  start(kNext, launch);
  end_move(0);
  wait_until([this] { return heard_lines_.size() == 1; });
  EXPECT_THAT(heard_lines_, testing::ElementsAre(HasSubstr(R"("attempt":2)")));
  EXPECT_EQ(count<model::AttemptEnded>(), 1U);
}

TEST_F(RemoteFiles, OfAnotherAttemptGoThereThoughSomebodyIsKilledWhoseOwnHang) {
  join_with_files();
  run_one_to_its_end();
  wait_for_moves(1);
  constexpr model::AttemptKey kSecond{.task = {2}, .attempt = 1};
  directory_.make("run/made");
  directory_.write("run/made/model", "x");
  model::Launch launch{.arguments = {"true"}};
  launch.task_directory = begin_->run_directory + "/train/2";
  launch.needed_directories = {directory_ / "run/made"};
  start(kSecond, launch);
  machine_->carry_out(model::StopAttempt{.key = kOne, .kill = true});
  EXPECT_EQ(count<model::AttemptEnded>(), 1U);
  wait_for_moves(2);
  end_move(0);
  wait_until([this] {
    return std::ranges::any_of(heard_lines_, [](const std::string& line) {
      return line.contains(R"("start")") && line.contains(R"("task":2)");
    });
  });
}

TEST_F(RemoteFiles, ThatCannotBeBroughtLetNoAttemptBegin) {
  join_with_files();
  directory_.make("run/made");
  directory_.write("run/made/model", "x");
  start_one();
  fail_as_often_as_is_tried(1);
  wait_until([this] { return count<model::AttemptEnded>() == 1; });
  const auto& ended = std::get<model::AttemptEnded>(told_.back());
  EXPECT_EQ(std::get<model::NotStarted>(ended.end).why, "cannot copy its files to lab1: no room");
  EXPECT_FALSE(machine_->runs(kOne));
  EXPECT_THAT(heard_lines_, IsEmpty());
}

TEST_F(RemoteFiles, AreHereBeforeAnEndIsTold) {
  join_with_files();
  run_one_to_its_end();
  wait_for_moves(1);
  EXPECT_EQ(count<model::AttemptEnded>(), 0U);
  EXPECT_TRUE(machine_->runs(kOne));
  end_move(0);
  wait_until([this] { return count<model::AttemptEnded>() == 1; });
  EXPECT_EQ(std::get<model::AttemptEnded>(told_.back()).warning, "");
  EXPECT_FALSE(machine_->runs(kOne));
}

TEST_F(RemoteFiles, ThatStayThereAreAWarningAndNothingIsForgotten) {
  join_with_files();
  run_one_to_its_end();
  constexpr int kSomeCannotBe = 23;
  fail_as_often_as_is_tried(kSomeCannotBe);
  wait_until([this] { return count<model::AttemptEnded>() == 1; });
  EXPECT_EQ(std::get<model::AttemptEnded>(told_.back()).warning,
            "its files are still on lab1: no room");
  EXPECT_EQ(machine_->left(), "no room");
  machine_->bring_the_rest();
  EXPECT_FALSE(machine_->is_bringing());
  EXPECT_THAT(notes_, HasSubstr("lab1: files are left there, in /home/me/proj/.trainyard/run-"));
}

TEST_F(RemoteFiles, AreTriedAgainUntilTheyComeOrSomebodyKillsWhatTheyAreOf) {
  join_with_files();
  run_one_to_its_end();
  constexpr int kNoSpace = 11;
  fail_as_often_as_is_tried(kNoSpace);
  wait_for_moves(FileMover::kTriesMax + 1);
  EXPECT_EQ(count<model::AttemptEnded>(), 0U);
  EXPECT_THAT(notes_, HasSubstr("lab1: cannot copy the files yet: no room; trainyard will retry"));
  machine_->carry_out(model::StopAttempt{.key = kOne});
  EXPECT_EQ(count<model::AttemptEnded>(), 0U) << "TERM is for what runs";
  machine_->carry_out(model::StopAttempt{.key = kOne, .kill = true});
  ASSERT_EQ(count<model::AttemptEnded>(), 1U);
  const auto& ended = std::get<model::AttemptEnded>(told_.back());
  EXPECT_TRUE(ended.end == model::End(model::ExitedWith{0}));
  EXPECT_EQ(ended.warning, "its files are still on lab1: it was not waited for");
}

TEST_F(RemoteFiles, OfAMachineThatIsLostAreWaitedForNoMore) {
  join_with_files();
  run_one_to_its_end();
  wait_for_moves(1);
  machine_->lose("it is gone");
  EXPECT_EQ(count<model::AttemptEnded>(), 1U);
  EXPECT_EQ(count<model::MachineGone>(), 1U);
  loop_.run_once(Duration(0));
  EXPECT_EQ(count<model::AttemptEnded>(), 1U) << "once";
}

}  // namespace
}  // namespace trainyard::run
