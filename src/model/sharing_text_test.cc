#include "model/sharing_text.h"

#include <gtest/gtest.h>

#include "model/command.h"

namespace trainyard::model {
namespace {

TEST(SharingText, SaysWhatSharingGainsAndWhereItEnds) {
  EXPECT_EQ(sharing_text({.to_a_gpu = 3, .factor = 1.72, .tasks = 9}),
            "3 tasks per GPU do 1.7 times the work of 1 (measured on 9 tasks)");
  EXPECT_EQ(sharing_text({.to_a_gpu = 2, .factor = 1.25, .tasks = 4, .to_a_gpu_max = 2}),
            "2 tasks per GPU do 1.2 times the work of 1 (measured on 4 tasks); at most 2 per GPU, "
            "as more gain nothing");
  EXPECT_EQ(sharing_text({.to_a_gpu_max = 1}), "at most 1 per GPU, as more gain nothing");
}

}  // namespace
}  // namespace trainyard::model
