#include "model/rank_environment.h"

#include <cstddef>
#include <cstdint>

#include <gmock/gmock.h>
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

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(RankEnvironment, SaysWhichOneItIsOfHowMany) {
  EXPECT_THAT(rank_environment({.rank = 3, .local_rank = 1, .ranks = 4}),
              ElementsAre("TRAINYARD_RANK=3", "RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=4"));
}

TEST(RankEnvironment, TakesOutWhatSaysAnotherRankAndNamesWhereTheyMeet) {
  EXPECT_THAT(common_rank_environment(4, 20'003),
              ElementsAreArray({"TRAINYARD_RANK", "RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK",
                                "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_RANK",
                                "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_LOCALID",
                                "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=4", "GROUP_RANK=0",
                                "MASTER_ADDR=127.0.0.1", "MASTER_PORT=20003"}));
  EXPECT_EQ(common_rank_environment(4, 0).back(), "MASTER_PORT");
}

TEST(RankEnvironment, CountsTheGpusThatAProcessSees) {
  EXPECT_EQ(gpus_in("0,2,5"), 3);
  EXPECT_EQ(gpus_in("GPU-8a5f"), 1);
  EXPECT_EQ(gpus_in("-1"), 0);
  EXPECT_EQ(gpus_in(""), 0);
}

}  // namespace

}  // namespace trainyard::model
