#include "run/allocation.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A shell stands where salloc does, and another one where squeue does.
class Allocations : public testing::Test {
 protected:
  void ask(const std::string& script) {
    allocation_ = std::make_unique<Allocation>(
        loop_,
        Allocation::Options{
            .ask = {"/bin/sh", "-c", script},
            .see_its_end =
                [this](const std::string& number) {
                  return std::vector<std::string>{
                      "/bin/sh", "-c",
                      fmt::format("while [ ! -e {}/gone ]; do sleep 0.01; done; echo over {}",
                                  directory_.path(), number)};
                }},
        Allocation::Ears{
            .granted = [this](const GrantedNodes& it) { told("granted " + it.allocation); },
            .ended = [this](const std::string& why) { told("ended: " + why); },
            .over = [this](const std::string& number) { told("over " + number); },
            .said = [this](const std::string& line) { told("said " + line); }});
    allocation_->ask();
  }
  void told(std::string what) { told_.push_back(std::move(what)); }
  void wait_until_told(std::size_t count) {
    const Duration end = sys::EventLoop::now() + sys::kLongEnough;
    while (told_.size() < count && sys::EventLoop::now() < end) loop_.run_once(Duration(10));
    ASSERT_EQ(told_.size(), count);
  }
  bool is_there(const std::string& name) const {
    return std::filesystem::exists(directory_ / name);
  }

  sys::TemporaryDirectory directory_;
  sys::EventLoop loop_;
  std::vector<std::string> told_;
  std::unique_ptr<Allocation> allocation_;
};

TEST_F(Allocations, AreHeldUntilTheyAreGivenBack) {
  ask(fmt::format("echo 7 1:00 n1 n2; cat > /dev/null; echo > {}", directory_ / "back"));
  wait_until_told(1);
  EXPECT_THAT(told_, ElementsAre("granted 7"));
  EXPECT_THAT(allocation_->nodes()->nodes, ElementsAre("n1", "n2"));
  EXPECT_FALSE(is_there("back"));
  allocation_.reset();
  EXPECT_TRUE(is_there("back"));
}

TEST_F(Allocations, AreOverWhenNothingOfThemRunsAnyMore) {
  ask(
      fmt::format("echo 7 1:00 n1; while [ ! -e {} ]; do sleep 0.01; done; "
                  "echo 'salloc: Job allocation 7 has been revoked.' >&2",
                  directory_ / "revoked"));
  wait_until_told(1);
  std::ofstream(directory_ / "revoked") << "";
  wait_until_told(2);
  EXPECT_EQ(told_[1], "ended: Job allocation 7 has been revoked.");
  EXPECT_FALSE(allocation_->is_over());
  std::ofstream(directory_ / "gone") << "";
  wait_until_told(3);
  EXPECT_EQ(told_[2], "over 7");
  EXPECT_TRUE(allocation_->is_over());
}

TEST_F(Allocations, SayWhyTheyAreRefused) {
  ask("echo \"salloc: unrecognized option '--nodse=9'\" >&2; echo 'Try --help' >&2; exit 1");
  wait_until_told(1);
  EXPECT_THAT(told_, ElementsAre("ended: unrecognized option '--nodse=9'; Try --help"));
  EXPECT_TRUE(allocation_->is_over());
}

TEST_F(Allocations, SayWhatTheyWaitForAndAreAskedForNoMoreWhenTheyAreNotNeeded) {
  ask(
      fmt::format("trap 'echo > {}; exit' TERM; echo 'salloc: job 7 queued' >&2; "
                  "while :; do sleep 0.01; done",
                  directory_ / "cancelled"));
  wait_until_told(1);
  EXPECT_THAT(told_, ElementsAre("said job 7 queued"));
  allocation_.reset();
  EXPECT_TRUE(is_there("cancelled"));
}

TEST_F(Allocations, AreNoneWhereWhatIsGrantedCannotBeRead) {
  ask("echo $((1+1)) ; cat > /dev/null");
  wait_until_told(1);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("'2' names no nodes")));
  ask("exec /nowhere/salloc");
  wait_until_told(2);
  EXPECT_THAT(told_[1], HasSubstr("/nowhere/salloc"));
}

}  // namespace
}  // namespace trainyard::run
