#include "tell/outbox.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::tell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Instant at(int seconds) { return {Duration{1000} * seconds}; }

Letter letter(const std::string& to, const std::string& what = "the end") {
  return {.to = to, .what = what, .address = 0, .body = "{}", .mail = nullptr};
}

/// The letters to try now.
std::vector<std::string> tried(Outbox& outbox, Instant now,
                               std::vector<std::uint64_t>* ids = nullptr) {
  std::vector<std::string> names;
  for (const Outbox::Due& due : outbox.take_due(now)) {
    names.push_back(due.letter->to);
    if (ids != nullptr) ids->push_back(due.id);
  }
  return names;
}

/// "! a: the end: sent" of one that people should know.
std::vector<std::string> lines_of(Outbox& outbox) {
  std::vector<std::string> lines;
  for (const Outbox::Line& line : outbox.take_lines()) {
    lines.push_back((line.trouble ? "! " : "") + line.text);
  }
  return lines;
}

TEST(Outbox, SendsALetterOnceAndSaysSoInTheLogAlone) {
  Outbox outbox;
  outbox.add(letter("a"), at(0));
  EXPECT_EQ(outbox.next(), at(0));
  std::vector<std::uint64_t> ids;
  EXPECT_THAT(tried(outbox, at(0), &ids), ElementsAre("a"));
  EXPECT_THAT(tried(outbox, at(100)), IsEmpty());
  EXPECT_EQ(outbox.next(), std::nullopt);
  outbox.answer({.id = ids[0], .answer = Answer::Taken, .how = {}}, at(101));
  EXPECT_TRUE(outbox.empty());
  EXPECT_THAT(lines_of(outbox), ElementsAre("a: the end: sent"));
}

TEST(Outbox, TriesAgainLaterAndGivesUpInTheEnd) {
  Outbox outbox;
  outbox.add(letter("a"), at(0));
  std::vector<int> when;
  int now = 0;
  for (; !outbox.empty(); ++now) {
    std::vector<std::uint64_t> ids;
    if (tried(outbox, at(now), &ids).empty()) continue;
    when.push_back(now);
    outbox.answer({.id = ids[0], .answer = Answer::NotNow, .how = "answers 500"}, at(now));
  }
  EXPECT_THAT(when, ElementsAre(0, 5, 35, 155, 755));
  EXPECT_THAT(lines_of(outbox),
              ElementsAre("! a: the end: not sent yet: answers 500; next attempt in 5.0 s",
                          "a: the end: not sent yet: answers 500; next attempt in 30.0 s",
                          "a: the end: not sent yet: answers 500; next attempt in 2m",
                          "a: the end: not sent yet: answers 500; next attempt in 10m",
                          "! a: the end: not sent after 5 attempts: answers 500"));
}

TEST(Outbox, DoesNotTryAgainWhatWasRefused) {
  Outbox outbox;
  outbox.add(letter("a"), at(0));
  std::vector<std::uint64_t> ids;
  tried(outbox, at(0), &ids);
  outbox.answer({.id = ids[0], .answer = Answer::Refused, .how = "answers 404"}, at(1));
  EXPECT_TRUE(outbox.empty());
  EXPECT_THAT(lines_of(outbox), ElementsAre("! a: the end: not sent: answers 404"));
}

TEST(Outbox, HoldsNoLetterUpBecauseOfAnother) {
  Outbox outbox;
  outbox.add(letter("dead"), at(0));
  EXPECT_THAT(tried(outbox, at(0)), ElementsAre("dead"));
  outbox.add(letter("well"), at(1));
  EXPECT_THAT(tried(outbox, at(1)), ElementsAre("well"));
}

TEST(Outbox, TriesAtOnceAndOftenWhenTheRunIsOver) {
  Outbox outbox(Duration{1'000});
  outbox.add(letter("a"), at(0));
  std::vector<std::uint64_t> ids;
  tried(outbox, at(0), &ids);
  outbox.answer({.id = ids[0], .answer = Answer::NotNow, .how = "x"}, at(0));
  outbox.hurry(at(2));
  EXPECT_EQ(outbox.next(), at(2));
  EXPECT_THAT(tried(outbox, at(2)), ElementsAre("a"));
  outbox.answer({.id = ids[0], .answer = Answer::NotNow, .how = "x"}, at(2));
  EXPECT_EQ(outbox.next(), at(3));
  outbox.give_up();
  EXPECT_TRUE(outbox.empty());
  EXPECT_EQ(lines_of(outbox).back(),
            "! a: the end: given up: it was not taken in time, and the run is over");
}

TEST(Outbox, HasABoundAndGivesUpTheOldestThatWaits) {
  Outbox outbox;
  outbox.add(letter("under way"), at(0));
  tried(outbox, at(0));
  for (std::size_t i = 1; i < Outbox::kLettersMax; ++i) {
    outbox.add(letter(fmt::format("{}", i)), at(10));
  }
  EXPECT_THAT(lines_of(outbox), IsEmpty());
  outbox.add(letter("one more"), at(10));
  EXPECT_THAT(lines_of(outbox), ElementsAre("! 1: the end: given up: too much waits to be sent"));
  EXPECT_THAT(tried(outbox, at(10)), SizeIs(Outbox::kLettersMax - 1));
  // All are under way: nothing of them can be taken back.
  outbox.add(letter("too many"), at(10));
  EXPECT_THAT(lines_of(outbox),
              ElementsAre("! too many: the end: not sent: too much is on its way"));
}

TEST(Outbox, KnowsWhetherAMailIsOnItsWay) {
  Outbox outbox;
  outbox.add(letter("a"), at(0));
  EXPECT_FALSE(outbox.has_mail());
  Letter mail = letter("m");
  mail.mail = std::make_shared<const Mail>();
  outbox.add(mail, at(0));
  EXPECT_TRUE(outbox.has_mail());
}

}  // namespace
}  // namespace trainyard::tell
