#include "schedule/claim.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/bytes.h"

namespace trainyard::schedule {
namespace {

model::HeldPromise on_card(Bytes memory, bool whole = false) {
  return {.memory = gb(1),
          .tasks = 1,
          .cards = {{.uuid = "GPU-0", .memory = memory, .tasks = 1, .whole = whole}}};
}

model::Neighbour yard(std::string ticket, model::HeldPromise held,
                      model::HeldPromise claimed = {}) {
  return {
      .its = {.ticket = std::move(ticket), .held = std::move(held), .claimed = std::move(claimed)}};
}

/// Judges our claim of 8 GB on a GPU of 10 GB.
ClaimVerdict judge(const std::vector<model::Neighbour>& now,
                   const std::vector<model::Neighbour>& then = {},
                   model::HeldPromise claim = on_card(gb(8))) {
  return judge_claim({.ticket = "5",
                      .claim = std::move(claim),
                      .left = {.memory_free = gb(4),
                               .cpus_free = model::cpus(1),
                               .gpus = {{.label = "0", .free = gb(2), .uuid = "GPU-0"}}},
                      .then = then,
                      .now = now});
}

TEST(Claim, IsKeptWhereNobodyHasTakenMoreThanIsLeft) {
  EXPECT_EQ(judge({}), ClaimVerdict::Keep);
  EXPECT_EQ(judge({yard("1", on_card(gb(2)))}), ClaimVerdict::Keep);
  EXPECT_EQ(judge({yard("1", on_card(gb(3)))}), ClaimVerdict::Withdraw);
}

TEST(Claim, WhatWasKnownWhenItWasDecidedIsInNobodysWay) {
  const std::vector<model::Neighbour> known{yard("1", on_card(gb(9)))};
  EXPECT_EQ(judge(known, known), ClaimVerdict::Keep);
  EXPECT_EQ(judge({yard("1", on_card(gb(12)))}, known), ClaimVerdict::Withdraw);
  EXPECT_EQ(judge({yard("1", on_card(gb(4))), yard("2", on_card(gb(4)))}, known),
            ClaimVerdict::Keep)
      << "one gave back what another took";
}

TEST(Claim, OfTwoThatOnlyClaimTheOlderLooksAgainAndTheYoungerLetsGo) {
  EXPECT_EQ(judge({yard("9", {}, on_card(gb(8)))}), ClaimVerdict::LookAgain);
  EXPECT_EQ(judge({yard("1", {}, on_card(gb(8)))}), ClaimVerdict::Withdraw);
  EXPECT_EQ(judge({yard("9", on_card(gb(3)), on_card(gb(8)))}), ClaimVerdict::Withdraw)
      << "what the younger holds is enough to be in the way";
}

TEST(Claim, AWholeCardSuffersNobodyThatHasComeSince) {
  const model::HeldPromise whole = on_card({}, true);
  EXPECT_EQ(judge({yard("1", on_card(gb(1)))}, {}, whole), ClaimVerdict::Withdraw);
  EXPECT_EQ(judge({yard("1", on_card({}, true))}), ClaimVerdict::Withdraw);
  EXPECT_EQ(judge({}, {}, whole), ClaimVerdict::Keep);
}

TEST(Claim, OneMoreTaskMattersWhereItIsSaidHowManyMayShare) {
  model::HeldPromise claim = on_card(gb(1));
  const std::vector<model::Neighbour> one_more{yard("1", on_card(gb(1)))};
  EXPECT_EQ(judge(one_more, {}, claim), ClaimVerdict::Keep);
  claim.cards.front().sharing.max_per_gpu = 1;
  EXPECT_EQ(judge(one_more, {}, claim), ClaimVerdict::Withdraw);
}

TEST(Claim, ACardThatWasIdleIsChosenAnewWhenAnotherYardHasTakenItMeanwhile) {
  const model::HeldPromise claim = on_card(gb(1));
  const auto judge_with = [&claim](int tasks, const std::vector<model::Neighbour>& now) {
    return judge_claim(
        {.ticket = "5",
         .claim = claim,
         .left = {.memory_free = gb(4), .gpus = {{.tasks = tasks, .free = gb(9), .uuid = "GPU-0"}}},
         .now = now});
  };
  EXPECT_EQ(judge_with(1, {yard("1", on_card(gb(1)))}), ClaimVerdict::Withdraw);
  EXPECT_EQ(judge_with(1, {yard("1", {}, on_card(gb(1)))}), ClaimVerdict::Withdraw);
  EXPECT_EQ(judge_with(1, {yard("9", {}, on_card(gb(1)))}), ClaimVerdict::LookAgain);
  EXPECT_EQ(judge_with(2, {yard("1", on_card(gb(1)))}), ClaimVerdict::Keep)
      << "a task of its own was there";
}

TEST(Claim, MemoryAndCpusOfTheHostCountAsWell) {
  const model::HeldPromise claim{.memory = gb(1), .cpus = model::cpus(1), .tasks = 1};
  EXPECT_EQ(judge({yard("1", {.memory = gb(4), .tasks = 1})}, {}, claim), ClaimVerdict::Keep);
  EXPECT_EQ(judge({yard("1", {.memory = gb(5), .tasks = 1})}, {}, claim), ClaimVerdict::Withdraw);
  EXPECT_EQ(judge({yard("1", {.cpus = model::cpus(2), .tasks = 1})}, {}, claim),
            ClaimVerdict::Withdraw);
  EXPECT_EQ(judge({yard("1", {.cpus = model::cpus(2), .tasks = 1})}, {}, {.memory = gb(1)}),
            ClaimVerdict::Keep)
      << "who claims no CPU does not mind";
}

TEST(Claim, WhatWasOverfullBeforeIsNobodysFaultNow) {
  const std::vector<model::Neighbour> known{yard("1", on_card(gb(9)))};
  EXPECT_EQ(judge_claim({.ticket = "5",
                         .claim = {.memory = gb(1), .tasks = 1},
                         .left = {.memory_free = Bytes{-5}},
                         .then = known,
                         .now = known}),
            ClaimVerdict::Keep);
}

/// Three yards that want the same card for themselves, each a step at a time: write the claim, read
/// and judge, write what came of it. Every order of their steps is played.
class EveryOrder {
 public:
  void play() {
    if (holders() > 1) ADD_FAILURE() << "two hold the card after " << story_;
    bool moved = false;
    for (std::size_t i = 0; i < yards_.size(); ++i) {
      if (yards_[i].at == At::Over) continue;
      moved = true;
      const Yard before = yards_[i];
      const std::size_t told = story_.size();
      step(i);
      // A yard that has to look again does so when another has moved.
      if (yards_[i].at != before.at || yards_[i].looks != before.looks) play();
      yards_[i] = before;
      story_.resize(told);
    }
    if (!moved) {
      ++ends;
      // A yard that has looked too often withdraws as well, and all of them claim again later.
      const bool one_gave_up =
          std::ranges::any_of(yards_, [](const Yard& yard) { return yard.looks == kLooksMax; });
      if (one_gave_up) return;
      ++ends_without_giving_up;
      if (holders() == 0) ADD_FAILURE() << "nobody holds the card after " << story_;
    }
  }

  int ends = 0;
  int ends_without_giving_up = 0;

 private:
  enum class At : std::uint8_t { Begins, Claims, Keeps, LetsGo, Over };
  struct Yard {
    At at = At::Begins;
    int looks = 0;
    model::HeldPromise held;
    model::HeldPromise claimed;
  };
  static constexpr int kLooksMax = 4;

  [[nodiscard]] int holders() const {
    int count = 0;
    for (const Yard& yard : yards_) count += yard.held.tasks;
    return count;
  }

  void step(std::size_t index) {
    Yard& self = yards_[index];
    story_ += fmt::format("{} ", index);
    if (self.at == At::Begins) {
      self.claimed = on_card({}, true);
      self.at = At::Claims;
      return;
    }
    if (self.at != At::Claims) {
      if (self.at == At::Keeps) self.held = self.claimed;
      self.claimed = {};
      self.at = At::Over;
      return;
    }
    std::vector<model::Neighbour> others;
    for (std::size_t i = 0; i < yards_.size(); ++i) {
      if (i != index) others.push_back(yard(std::to_string(i), yards_[i].held, yards_[i].claimed));
    }
    switch (judge_claim({.ticket = std::to_string(index),
                         .claim = self.claimed,
                         .left = {},
                         .then = {},
                         .now = others})) {
      case ClaimVerdict::Keep:
        self.at = At::Keeps;
        break;
      case ClaimVerdict::LookAgain:
        if (++self.looks == kLooksMax) self.at = At::LetsGo;
        break;
      case ClaimVerdict::Withdraw:
        self.at = At::LetsGo;
        break;
    }
  }

  std::array<Yard, 3> yards_;
  std::string story_;
};

TEST(Claim, InEveryOrderOfStepsOneHoldsWhatThreeWantAndNeverTwo) {
  EveryOrder every;
  every.play();
  EXPECT_GT(every.ends, 100);
  EXPECT_GT(every.ends_without_giving_up, 100);
}

}  // namespace
}  // namespace trainyard::schedule
