#include "model/code.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

TEST(Code, IsCalledByItsCommitAndByWhatIsChangedSince) {
  const Code clean{.root = "/w", .commit = "a1b2c3d4e5f60718"};
  EXPECT_EQ(to_text(clean), "a1b2c3d");
  Code changed = clean;
  changed.changes = "9f3e21aa00112233";
  EXPECT_EQ(to_text(changed), "a1b2c3d+9f3e21");
  EXPECT_NE(clean, changed);
}

}  // namespace
}  // namespace trainyard::model
