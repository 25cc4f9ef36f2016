#include "model/spoken_words.h"

#include <vector>

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

}  // namespace
}  // namespace trainyard::model
