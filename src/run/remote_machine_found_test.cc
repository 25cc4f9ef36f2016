// The remains of an execution that has died: a yard that resumes it receives them, and confirms the
// lines that it has committed.
#include <cstdint>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "run/remote_machine.h"
#include "run/test_agent.h"
#include "wire/agent.h"

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr model::AttemptKey kThird{.task = {2}, .attempt = 3};

wire::AgentRun run_of(model::AttemptKey key) {
  return {.command = {.key = key,
                      .promise = {.memory = gb(2)},
                      .site = {.machine = {7}, .gpus = {}},
                      .gpu_memory_max = gb(1)},
          .journal_number = 5,
          .started = model::AttemptStarted{.key = key, .pid = 7, .began = Instant{Duration(900)}}};
}

class FoundMachines : public TestAgent {
 protected:
  /// The agent worked for another yard, which has received its first four lines and sent two.
  void reach() {
    hello_->begun = true;
    hello_->acknowledged = said_ = 4;
    heard_ = 2;
    gets_ready_ = false;
    make();
    wait_until([this] { return machine_->hello() != nullptr; });
  }
  void begin() {
    machine_->begin({.run_directory = "/run"});
    wait_until([this] { return begin_.has_value(); });
  }
  void is_ready(const std::vector<wire::AgentRun>& runs) {
    say(wire::AgentReady{.found = true, .runs = runs}, /*numbered=*/true);
    wait_until([this] { return machine_->is_ready(); });
  }
};

TEST_F(FoundMachines, TellWhatGoesOnBehindTheBatches) {
  reach();
  tell(model::AttemptEnded{.key = kThird, .end = model::ExitedWith{3}});
  tell(model::Sampled{.memory_available = gb(1)});
  begin();
  EXPECT_EQ(heard_, 3U) << "it goes on with the numbers of the yard before";
  EXPECT_FALSE(begin_->keeps);
  is_ready({run_of(kOne), run_of(kThird)});
  EXPECT_EQ(machine_->found().size(), 2U);
  machine_->keep({kThird});
  EXPECT_FALSE(machine_->is_ready()) << "the others end first";
  wait_until([this] { return begin_->keeps.has_value(); });
  EXPECT_THAT(*begin_->keeps, ElementsAre(kThird));
  is_ready({run_of(kThird)});
  machine_->join({2}, ears());
  ASSERT_EQ(told_.size(), 2U) << "that it joins, and a reading: of attempts nobody knows yet";
  EXPECT_EQ(count<model::Sampled>(), 1U);
  machine_->tell_what_goes_on(/*more_follow=*/true);
  ASSERT_EQ(told_.size(), 3U);
  EXPECT_FALSE(machine_->has_started_before(kOne));
  machine_->tell_what_became_of_it();
  ASSERT_EQ(told_.size(), 5U);
  EXPECT_TRUE(machine_->has_started_before(kThird)) << "though it has ended";
  const auto& found = std::get<model::AttemptFound>(told_[2]);
  EXPECT_EQ(found.key, kThird);
  EXPECT_EQ(found.promise.memory, gb(2));
  EXPECT_EQ(found.site, (model::Site{.machine = {2}, .gpus = {}})) << "as which it is there now";
  EXPECT_EQ(found.gpu_memory_max, gb(1));
  EXPECT_TRUE(found.more_follow);
  EXPECT_EQ(std::get<model::AttemptStarted>(told_[3]).began, found.since);
  EXPECT_EQ(std::get<model::AttemptEnded>(told_[4]).key, kThird);
  EXPECT_THAT(machine_->found(), IsEmpty());
}

TEST_F(FoundMachines, AreLeftAloneByAYardThatNeverComesToBeAtWork) {
  reach();
  begin();
  is_ready({run_of(kOne)});
  machine_->leave();
  wait_until([this] { return stream_ == nullptr; });
  EXPECT_THAT(heard_lines_, IsEmpty());
  EXPECT_TRUE(machine_->has_left());
}

/// The agent repeats no line that this yard has confirmed, not even for another yard.
TEST_F(FoundMachines, AreToldThatAnythingWasHeardWhenItIsWrittenDown) {
  make(Duration(6'000));  // The pulse that says it comes each second.
  wait_until([this] { return machine_->hello() != nullptr; });
  begin_and_join();
  start(kOne);
  tell(model::AttemptStarted{.key = kOne, .pid = 7});
  wait_until([this] { return count<model::AttemptStarted>() == 1; });
  const std::uint64_t before = last_heard_;
  EXPECT_LT(before, said_);
  stream_.reset();
  wait_until([this] { return count<model::KeeperSilent>() == 2; });
  EXPECT_EQ(last_heard_, before) << "the next stream says the same";
  machine_->is_written();
  wait_until([this] { return last_heard_ == said_; });
}

}  // namespace
}  // namespace trainyard::run
