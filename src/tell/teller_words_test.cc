#include <optional>

#include <gtest/gtest.h>

#include "tell/teller_process.h"

namespace trainyard::tell {
namespace {

template <class Word>
Word there_and_back(const Word& word) {
  return std::get<Word>(unpack(pack(word)));
}

TEST(TellerWords, ComeOutAsTheyWentIn) {
  const auto begin = there_and_back(
      BeginWord{.run = {.job = "digits", .number = 46, .directory = "/r/d", .host = "gpu1"},
                .if_it_dies = "{\"text\": \"x\"}"});
  EXPECT_EQ(begin.run.job, "digits");
  EXPECT_EQ(begin.run.number, 46U);
  EXPECT_EQ(begin.run.directory, "/r/d");
  EXPECT_EQ(begin.run.host, "gpu1");
  EXPECT_EQ(begin.if_it_dies, "{\"text\": \"x\"}");
  EXPECT_EQ(there_and_back(BeginWord{}).run.number, std::nullopt);
  EXPECT_EQ(there_and_back(PostWord{.what = "a", .body = "b"}).what, "a");
  EXPECT_EQ(there_and_back(PostWord{.what = "a", .body = "b"}).body, "b");
  EXPECT_EQ(there_and_back(MailWord{.group = {70'000}}).group.value, 70'000U);
  EXPECT_EQ(there_and_back(FinishWord{.what = "c", .body = "d"}).what, "c");
  EXPECT_EQ(there_and_back(FinishWord{.what = "c", .body = "d"}).body, "d");
}

}  // namespace
}  // namespace trainyard::tell
