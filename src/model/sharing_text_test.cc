#include "model/sharing_text.h"

#include <gtest/gtest.h>

#include "model/command.h"

namespace trainyard::model {
namespace {

TEST(SharingText, SaysWhatSharingGainsAndWhereItEnds) {
  EXPECT_EQ(sharing_text({.to_a_gpu = 3, .factor = 1.72, .tasks = 9}),
            "3 to a GPU: 1.7 x one to a GPU, 9 tasks");
  EXPECT_EQ(
      sharing_text({.to_a_gpu = 2, .factor = 1.25, .tasks = 4, .to_a_gpu_max = 2}),
      "2 to a GPU: 1.2 x one to a GPU, 4 tasks; no more than 2 to a GPU, as more gain nothing");
  EXPECT_EQ(sharing_text({.to_a_gpu_max = 1}), "no more than 1 to a GPU, as more gain nothing");
}

}  // namespace
}  // namespace trainyard::model
