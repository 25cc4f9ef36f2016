#include "model/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

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
