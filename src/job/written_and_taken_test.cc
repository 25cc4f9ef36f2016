// The measurements of tasks are compared with the keys of these tasks, and not with those of
// others.
#include "job/written_and_taken.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WrittenAndTaken, ComparesEachNumberWithThoseThatSayIt) {
  WrittenAndTaken seen;
  seen.see("g", "memory", gb(5), gb(4));
  seen.see("g", "memory", gb(12), gb(11));
  EXPECT_THAT(seen.notes(), IsEmpty()) << "what the big ones took is nothing to the small ones";
  seen.see("g", "memory", gb(5), gb(6));
  seen.see("g", "gpu-memory", gb(8), gb(3));
  seen.see("g", "gpu-memory", gb(8), gb(2));
  seen.see("g", "gpu-memory", gb(9), Bytes{});
  EXPECT_THAT(seen.notes(),
              ElementsAre("group 'g': gpu-memory is set to 8 GB; tasks used at most 3 GB last time",
                          "group 'g': memory is set to 5 GB; tasks used at most 6 GB last time"));
}

TEST(WrittenAndTaken, SaysOfANumberThatWasRaisedWhatIsReserved) {
  WrittenAndTaken seen;
  seen.see("g", "memory", gb(5), gb(8));
  seen.raised("g", "memory", gb(5), gb(6));
  EXPECT_THAT(seen.notes(), ElementsAre("group 'g': memory is set to 5 GB; tasks used at "
                                        "most 8 GB last time; reserving 6 GB"));
  seen.raised("g", "memory", gb(5), gb(7));
  EXPECT_THAT(seen.notes(), ElementsAre("group 'g': memory is set to 5 GB; tasks used at "
                                        "most 8 GB last time; reserving 6 GB to 7 GB"));
}

TEST(WrittenAndTaken, ReportsDurationsWithWhatIsExpectedInstead) {
  WrittenAndTaken seen;
  seen.see("g", Duration{3'600'000}, Duration{60'000});
  seen.see("h", Duration{3'600'000}, Duration{90'000});
  seen.see("h", Duration{3'600'000}, Duration{60'000});
  EXPECT_THAT(seen.notes(), ElementsAre("group 'g': duration is set to 1h; tasks took 1m last "
                                        "time; expecting that",
                                        "group 'h': duration is set to 1h; tasks took 1m to 1m30s "
                                        "last time; expecting that"));
}

TEST(WrittenAndTaken, TellsOnlyAFewOfAGroup) {
  WrittenAndTaken seen;
  for (int n = 1; n <= 5; ++n) seen.see("g", "memory", gb(n), gb(n + 1));
  ASSERT_EQ(seen.notes().size(), WrittenAndTaken::kNotesMax + 1);
  EXPECT_EQ(seen.notes().back(), "group 'g': the same holds for 2 other values of memory");
}

}  // namespace
}  // namespace trainyard::job
