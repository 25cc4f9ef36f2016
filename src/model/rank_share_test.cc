#include "model/rank_share.h"

#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

/// The share of a rank in the first `count` GPUs.
std::string share(int rank, int ranks, std::size_t count) {
  std::vector<GpuIndex> gpus;
  for (std::uint32_t i = 0; i < count; ++i) gpus.push_back({i});
  return device_names(share_of_rank(rank, ranks, gpus));
}

TEST(ShareOfRank, IsAGpuForEachWhereThereAreSoMany) {
  EXPECT_EQ(share(0, 4, 4), "cuda:0");
  EXPECT_EQ(share(3, 4, 4), "cuda:3");
}

TEST(ShareOfRank, IsSeveralWhereThereAreMore) {
  EXPECT_EQ(share(0, 2, 4), "cuda:0,cuda:1");
  EXPECT_EQ(share(1, 2, 4), "cuda:2,cuda:3");
  EXPECT_EQ(share(1, 2, 5), "cuda:2,cuda:3");
}

TEST(ShareOfRank, IsOneWithOthersOnItWhereThereAreFewer) {
  EXPECT_EQ(share(0, 4, 2), "cuda:0");
  EXPECT_EQ(share(1, 4, 2), "cuda:1");
  EXPECT_EQ(share(2, 4, 2), "cuda:0");
}

TEST(ShareOfRank, IsNothingWhereThereAreNone) { EXPECT_EQ(share(1, 4, 0), ""); }

TEST(ShareOfRank, NamesTheGpusThatWereChosen) {
  EXPECT_EQ(device_names(share_of_rank(1, 2, {{5}, {3}})), "cuda:3");
}

}  // namespace
}  // namespace trainyard::model
