#include "model/stages_of_ranks.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

/// Says all of them; whether each is news.
std::vector<bool> news(SpokenWords& words, const std::vector<Said>& said) {
  std::vector<bool> heard;
  heard.reserve(said.size());
  for (const Said each : said) heard.push_back(words.hear(each));
  return heard;
}

const std::vector<Said> kAll{Said::Loading, Said::Loaded, Said::Training};

TEST(SpokenWords, AreAllNewsOnOneConnection) {
  SpokenWords words;
  words.connects();
  EXPECT_EQ(news(words, {Said::Loading, Said::Loading, Said::Loaded, Said::Loaded}),
            (std::vector{true, true, true, true}));
}

TEST(SpokenWords, AreNoNewsThatWereSaidOnAnEarlierOne) {
  SpokenWords words;
  words.connects();
  static_cast<void>(news(words, {Said::Loading, Said::Loaded}));
  words.connects();
  EXPECT_EQ(news(words, kAll), (std::vector{false, false, true}));
  words.connects();
  EXPECT_EQ(news(words, kAll), (std::vector{false, false, false}));
  EXPECT_EQ(news(words, {Said::Trained, Said::Failed, Said::Nonsense}),
            (std::vector{true, true, true}));
}

TEST(SpokenWords, AreNewsAgainAfterOutOfMemoryFromTheTrainingOn) {
  SpokenWords words;
  words.connects();
  static_cast<void>(news(words, kAll));
  words.grant_device();
  words.connects();
  EXPECT_TRUE(words.hear(Said::OutOfMemory));
  EXPECT_EQ(news(words, kAll), (std::vector{false, false, true}));
}

TEST(SpokenWords, OfOutOfMemoryAreNewsOnceForEachOrder) {
  SpokenWords words;
  words.connects();
  static_cast<void>(news(words, {Said::Loading, Said::Loaded}));
  words.grant_device();
  EXPECT_TRUE(words.hear(Said::OutOfMemory));
  words.connects();
  EXPECT_FALSE(words.hear(Said::OutOfMemory));
  words.grant_device();
  EXPECT_TRUE(words.hear(Said::OutOfMemory));
}

/// Three ranks that have loaded, and were told to train.
StagesOfRanks training() {
  StagesOfRanks stages(3);
  for (int rank = 0; rank < 3; ++rank) {
    stages.hear(rank, Said::Loading);
    stages.hear(rank, Said::Loaded);
  }
  stages.told_to_train();
  return stages;
}

TEST(StagesOfRanks, LoadWithTheFirstAndHaveLoadedWithTheLast) {
  StagesOfRanks stages(3);
  EXPECT_EQ(stages.ranks(), 3);
  EXPECT_EQ(stages.hear(1, Said::Loading), Said::Loading);
  EXPECT_EQ(stages.hear(1, Said::Loaded), std::nullopt);
  EXPECT_EQ(stages.hear(0, Said::Loading), std::nullopt);
  EXPECT_EQ(stages.hear(2, Said::Loading), std::nullopt);
  EXPECT_EQ(stages.hear(2, Said::Loaded), std::nullopt);
  EXPECT_EQ(stages.hear(0, Said::Loaded), Said::Loaded);
}

TEST(StagesOfRanks, HaveTrainedWithTheLast) {
  StagesOfRanks stages = training();
  EXPECT_EQ(stages.hear(2, Said::Trained), std::nullopt);
  EXPECT_EQ(stages.hear(0, Said::Trained), std::nullopt);
  EXPECT_EQ(stages.hear(1, Said::Trained), Said::Trained);
}

TEST(StagesOfRanks, LeaveItToTheirEndWhenOneOfThemDoes) {
  StagesOfRanks stages = training();
  EXPECT_EQ(stages.hear(1, Said::Training), Said::Training);
  EXPECT_EQ(stages.hear(2, Said::Training), std::nullopt);
  EXPECT_EQ(stages.hear(0, Said::Trained), std::nullopt);
}

TEST(StagesOfRanks, FailWithTheFirstThatDoesAndSayNothingAfterIt) {
  for (const Said said : {Said::Failed, Said::OutOfMemory, Said::Nonsense}) {
    StagesOfRanks stages = training();
    EXPECT_EQ(stages.hear(1, said), said) << to_text(said);
    EXPECT_EQ(stages.hear(0, Said::Failed), std::nullopt);
    EXPECT_EQ(stages.hear(2, Said::Trained), std::nullopt);
  }
}

TEST(StagesOfRanks, MayFailBeforeTheyHaveSaidAnythingElse) {
  StagesOfRanks stages(2);
  EXPECT_EQ(stages.hear(0, Said::OutOfMemory), Said::OutOfMemory);
}

TEST(StagesOfRanks, TalkNonsenseWhenOneSpeaksOutOfTurn) {
  StagesOfRanks early(2);
  EXPECT_EQ(early.hear(0, Said::Loaded), Said::Nonsense);
  EXPECT_EQ(early.hear(1, Said::Loading), std::nullopt);

  StagesOfRanks twice(2);
  EXPECT_EQ(twice.hear(0, Said::Loading), Said::Loading);
  EXPECT_EQ(twice.hear(0, Said::Loading), Said::Nonsense);

  for (const Said said : {Said::Training, Said::Trained}) {
    StagesOfRanks untold(1);
    untold.hear(0, Said::Loading);
    untold.hear(0, Said::Loaded);
    EXPECT_EQ(untold.hear(0, said), Said::Nonsense) << to_text(said);
  }

  StagesOfRanks again = training();
  EXPECT_EQ(again.hear(0, Said::Trained), std::nullopt);
  EXPECT_EQ(again.hear(0, Said::Trained), Said::Nonsense);
}

}  // namespace

}  // namespace trainyard::model
