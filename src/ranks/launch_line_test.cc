#include "ranks/launch_line.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/rank_environment.h"

namespace trainyard::ranks {
namespace {

Result<RankNumber> number(const std::map<std::string, std::string>& environment) {
  return rank_number([&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(RankNumber, IsTheFirstThatSomebodySays) {
  const RankNumber second{.rank = 1, .local_rank = 1, .ranks = 4};
  EXPECT_EQ(number({{"TRAINYARD_RANK", "1"}, {"RANK", "2"}, {"WORLD_SIZE", "4"}}).value(), second);
  EXPECT_EQ(number({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}}).value(),
            second);
  EXPECT_EQ(number({{"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_SIZE", "4"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                    {"PMIX_RANK", "2"}})
                .value(),
            second);
  EXPECT_EQ(number({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}).value(), second);
  EXPECT_EQ(number({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}}).value(),
            (RankNumber{.rank = 3, .local_rank = 1, .ranks = 4}));
}

TEST(RankNumber, IsZeroWhereNothingSpeaksOfRanks) {
  EXPECT_EQ(number({}).value(), RankNumber{});
  EXPECT_EQ(number({{"RANK", ""}, {"WORLD_SIZE", ""}}).value(), RankNumber{});
  // Every job of Slurm has these.
  EXPECT_EQ(number({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).value(), RankNumber{});
}

TEST(RankNumber, IsMissingWhereSomethingSaysThatThereAreSeveral) {
  EXPECT_EQ(number({{"WORLD_SIZE", "4"}}).error().message,
            "WORLD_SIZE is 4, and nothing says which rank this is (RANK, OMPI_COMM_WORLD_RANK, "
            "PMIX_RANK, PMI_RANK, SLURM_PROCID)");
}

TEST(RankNumber, MustBeOneOfThoseThatThereAre) {
  EXPECT_TRUE(check_rank({.rank = 3, .local_rank = 0, .ranks = 4}, 4).has_value());
  EXPECT_TRUE(check_rank({.rank = 0, .local_rank = 0, .ranks = {}}, 1).has_value());
  EXPECT_EQ(check_rank({.rank = 0, .local_rank = 0, .ranks = 3}, 4).error().message,
            "rank 0 was started as one of 3, and there must be 4");
  EXPECT_EQ(check_rank({.rank = 4, .local_rank = 0, .ranks = {}}, 4).error().message,
            "rank 4 is there, and the last of 4 is 3");
}

TEST(RankNumber, IsFoundAgainInTheEnvironmentItIsWrittenTo) {
  std::map<std::string, std::string> environment;
  for (const std::string& each :
       model::rank_environment({.rank = 3, .local_rank = 1, .ranks = 4})) {
    environment.emplace(each.substr(0, each.find('=')), each.substr(each.find('=') + 1));
  }
  EXPECT_EQ(number(environment), (RankNumber{.rank = 3, .local_rank = 1, .ranks = 4}));
}

TEST(RankNumber, MustBeANumber) {
  for (const char* const text : {"-1", "one", "1.5", "99999999999", "1 "}) {
    EXPECT_EQ(number({{"RANK", text}}).error().message,
              "RANK='" + std::string(text) + "' is not a number of a rank");
  }
}

}  // namespace
}  // namespace trainyard::ranks
