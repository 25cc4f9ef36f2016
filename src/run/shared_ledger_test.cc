// Two ledgers of one machine, on a board that is a list in memory.
#include "run/shared_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const model::Capacity kLedgersMachine{
    .memory = gb(10), .cpus = model::cpus(8), .gpus = {{.uuid = "GPU-0", .memory = gb(10)}}};

class Ledgers : public ::testing::Test {
 protected:
  SharedLedger make(const std::string& ticket) {
    return {{.write =
                 [this, ticket](const model::Promises& promises) {
                   files_[ticket] = promises;
                   ++writes_;
                 },
             .read =
                 [this, ticket] {
                   std::vector<model::Neighbour> others;
                   for (const auto& [name, its] : files_) {
                     if (name != ticket) others.push_back({.user = 1001, .its = its});
                   }
                   return others;
                 },
             .pause =
                 [this] {
                   ++pauses_;
                   if (while_paused_) while_paused_();
                 },
             .unix_s = [this] { return now_; },
             .note = [this](const std::string& text) { notes_.push_back(text); }},
            kLedgersMachine,
            {.ticket = ticket, .run = 7, .numbering = "home-a", .name = "sweep"}};
  }

  /// A start of 6 GB, as decided by a scheduler that knows of no neighbour.
  std::optional<model::ClaimRefused> claim(SharedLedger& ledger, int round = 1) {
    const model::Decision decided{
        .commands = {model::StartAttempt{.key = {}, .promise = {.memory = gb(6)}}}};
    return ledger.claim({.decided = decided,
                         .left = [] { return model::Headroom{.memory_free = gb(4)}; },
                         .at = {},
                         .round = round});
  }

  std::map<std::string, model::Promises> files_;
  std::vector<std::string> notes_;
  std::function<void()> while_paused_;
  std::int64_t now_ = 100;
  int writes_ = 0;
  int pauses_ = 0;
};

TEST_F(Ledgers, AFileSaysWhoseItIsFromTheBeginning) {
  const SharedLedger ledger = make("1");
  EXPECT_EQ(files_.at("1"), (model::Promises{.ticket = "1",
                                             .run = 7,
                                             .numbering = "home-a",
                                             .name = "sweep",
                                             .memory_total = gb(10),
                                             .cpus_total = model::cpus(8)}));
}

TEST_F(Ledgers, WhatIsFreeIsHeldAndTheOtherIsRefusedIt) {
  SharedLedger one = make("1");
  SharedLedger other = make("2");
  EXPECT_EQ(claim(one), std::nullopt);
  EXPECT_EQ(files_.at("1").held.memory, gb(6));
  EXPECT_EQ(files_.at("1").claimed, model::HeldPromise{});
  const std::optional<model::ClaimRefused> refused = claim(other);
  ASSERT_TRUE(refused.has_value());
  EXPECT_THAT(refused->attempts, ElementsAre(model::AttemptKey{}));
  ASSERT_THAT(refused->neighbours, SizeIs(1));
  EXPECT_EQ(refused->neighbours.front().its, files_.at("1"));
  EXPECT_FALSE(refused->no_more);
  EXPECT_EQ(files_.at("2").held, model::HeldPromise{});
  EXPECT_EQ(files_.at("2").claimed, model::HeldPromise{});
  EXPECT_TRUE(claim(other, Machine::kClaimRoundsMax)->no_more);
}

TEST_F(Ledgers, WhoClaimsBesideAnOlderOneLetsGoAtOnce) {
  SharedLedger ledger = make("2");
  files_["1"] = {.ticket = "1", .claimed = {.memory = gb(6), .tasks = 1}};
  EXPECT_TRUE(claim(ledger).has_value());
  EXPECT_EQ(pauses_, 0);
}

TEST_F(Ledgers, WhoClaimsBesideAYoungerOneWaitsForItToLetGo) {
  SharedLedger ledger = make("1");
  files_["2"] = {.ticket = "2", .claimed = {.memory = gb(6), .tasks = 1}};
  while_paused_ = [this] {
    if (pauses_ == 3) files_["2"].claimed = {};
  };
  EXPECT_EQ(claim(ledger), std::nullopt);
  EXPECT_EQ(pauses_, 3);
}

TEST_F(Ledgers, AYoungerOneThatIsStoppedInTheMiddleIsNotWaitedForLong) {
  SharedLedger ledger = make("1");
  files_["2"] = {.ticket = "2", .claimed = {.memory = gb(6), .tasks = 1}};
  const std::optional<model::ClaimRefused> refused = claim(ledger);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(pauses_, SharedLedger::kLooksMax - 1);
  EXPECT_EQ(refused->neighbours.front().its.claimed.memory, gb(6)) << "it counts as held";
}

TEST_F(Ledgers, TheOthersAreToldOfOnceAndAgainWhereSomethingMattersThatIsNew) {
  SharedLedger ledger = make("1");
  EXPECT_EQ(ledger.look({.thorough = true}), std::nullopt) << "nobody is there";
  files_["2"] = {.ticket = "2", .held = {.memory = gb(6), .unused = gb(6), .tasks = 1}};
  EXPECT_THAT(ledger.look({.thorough = true})->neighbours, SizeIs(1));
  EXPECT_EQ(ledger.look({.thorough = true}), std::nullopt);
  files_["2"].held.unused = gb(1);
  EXPECT_EQ(ledger.look({.thorough = false}), std::nullopt) << "that is for the next reading";
  EXPECT_TRUE(ledger.look({.thorough = true}).has_value());
  files_["2"].held.memory = gb(5);
  EXPECT_TRUE(ledger.look({.thorough = false}).has_value());
  files_.erase("2");
  EXPECT_THAT(ledger.look({.thorough = false})->neighbours, IsEmpty());
}

TEST_F(Ledgers, MoreThanTheMachineHasIsNotBelievedAndSaidOnceForEachUser) {
  SharedLedger ledger = make("1");
  const Bytes much{std::int64_t{1} << 53U};
  model::HeldPromise held{.memory = much, .unused = much, .cpus = model::cpus(9), .tasks = 1};
  held.cards = {{.uuid = "GPU-0", .memory = much, .unused = much, .tasks = 1},
                {.uuid = "GPU-unknown", .memory = much, .tasks = 1}};
  files_["2"] = {.ticket = "2", .held = held, .claimed = held};
  files_["3"] = files_["2"];
  const std::vector<model::Neighbour> seen = ledger.look({.thorough = true})->neighbours;
  ASSERT_THAT(seen, SizeIs(2));
  held.memory = held.unused = gb(10);
  held.cpus = model::cpus(8);
  held.cards.front().memory = held.cards.front().unused = gb(10);
  EXPECT_EQ(seen.front().its.held, held);
  EXPECT_EQ(seen.front().its.claimed, held);
  static_cast<void>(ledger.look({.thorough = true}));
  EXPECT_THAT(
      notes_,
      ElementsAre("a reservation of user 1001 is too large and was cut: 9007 TB of GPU 0, which "
                  "has 10 GB"));
}

TEST_F(Ledgers, ARunReservesNoMoreThanTheMachineHasThoughItsTasksTakeMore) {
  SharedLedger ledger = make("1");
  EXPECT_EQ(claim(ledger), std::nullopt);
  model::Turn turn;
  turn.events.push_back(
      {.at = {}, .what = model::Sampled{.tasks = {{.key = {}, .memory = gb(11)}}}});
  turn.decisions.emplace_back();
  ledger.see(turn);
  EXPECT_EQ(files_.at("1").held.memory, gb(10));
  static_cast<void>(make("2").look({.thorough = true}));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(Ledgers, ARunThatMayHaveMoreOfTheMachineIsBelieved) {
  SharedLedger ledger = make("1");
  const model::HeldPromise held{.memory = gb(20), .cpus = model::cpus(9), .tasks = 1};
  files_["2"] = {
      .ticket = "2", .memory_total = gb(64), .cpus_total = model::cpus(16), .held = held};
  EXPECT_EQ(ledger.look({.thorough = true})->neighbours.front().its.held, held);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(Ledgers, HowLongOneWaitsIsToldAndWhetherItGoesFirst) {
  SharedLedger ledger = make("2");
  files_["1"] = {.ticket = "1", .want = model::Want{.gpus = 1, .since_unix_s = 40}};
  std::vector<model::Neighbour> seen = ledger.look({.thorough = true})->neighbours;
  EXPECT_EQ(seen.front().waits, Duration{60'000});
  EXPECT_TRUE(seen.front().goes_first) << "we want nothing";
  EXPECT_EQ(seen.front().we_wait, Duration{0});
  EXPECT_FALSE(ledger.is_worth_a_look());

  model::Turn turn;
  turn.events.push_back({.at = {}, .what = model::TimePassed{}});
  turn.decisions.push_back({.changes = {model::ReasonChanged{
                                .reason = {.cause = model::Cause::Gpus, .needs = {.gpus = 1}}}}});
  now_ = 40;
  ledger.see(turn);
  EXPECT_EQ(files_.at("2").want, (model::Want{.gpus = 1, .since_unix_s = 40}));
  EXPECT_TRUE(ledger.is_worth_a_look());
  seen = ledger.look({.thorough = true})->neighbours;
  EXPECT_TRUE(seen.front().goes_first) << "as long, and older";
  files_["1"].want->since_unix_s = 41;
  now_ = 100;
  seen = ledger.look({.thorough = true})->neighbours;
  EXPECT_FALSE(seen.front().goes_first);
  EXPECT_EQ(seen.front().we_wait, Duration{60'000});
  files_["1"].want = model::Want{.cpus = model::cpus(1), .since_unix_s = 41};
  EXPECT_EQ(ledger.look({.thorough = true})->neighbours.front().we_wait, Duration{0})
      << "it waits for something else";
}

TEST_F(Ledgers, AFileNamesTheGpusThatHaveDroppedOut) {
  SharedLedger ledger = make("1");
  model::Turn turn;
  turn.events.push_back({.at = {}, .what = model::GpusSampled{.gpus = {{.present = false}}}});
  turn.decisions.emplace_back();
  ledger.see(turn);
  EXPECT_THAT(files_.at("1").drop_outs, ElementsAre(model::DropOuts{.uuid = "GPU-0", .times = 1}));
}

TEST_F(Ledgers, DropOutsThatOthersHaveSeenAreNoNews) {
  SharedLedger ledger = make("1");
  files_["2"] = {.ticket = "2"};
  EXPECT_TRUE(ledger.look({.thorough = true}).has_value());
  files_["2"].drop_outs = {{.uuid = "GPU-0", .times = 1}};
  EXPECT_FALSE(ledger.look({.thorough = true}).has_value());
}

TEST_F(Ledgers, WhatHasEndedIsFreeToOthersOnceThatIsWrittenDown) {
  SharedLedger ledger = make("1");
  EXPECT_EQ(claim(ledger), std::nullopt);
  model::Turn turn;
  turn.events.push_back({.at = {}, .what = model::AttemptEnded{.key = {}}});
  turn.decisions.emplace_back();
  ledger.see(turn);
  EXPECT_EQ(files_.at("1").held, model::HeldPromise{});
  const int before = writes_;
  turn.events = {{.at = {}, .what = model::TimePassed{}}};
  ledger.see(turn);
  EXPECT_EQ(writes_, before) << "what has not changed is not written again";
}

}  // namespace
}  // namespace trainyard::run
