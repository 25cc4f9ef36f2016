// The directories of one job's runs have numbers, and the next is the first that is free.
#include "run/run_directory.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/files.h"

namespace trainyard {
namespace {

using ::testing::UnorderedElementsAre;

TEST(RunDirectory, IsTheFirstThatIsFree) {
  const std::string place = io::make_private_directory("trainyard-test-").value();
  const std::string first = place + "/digits";
  EXPECT_EQ(free_run_directory(first), first);
  std::filesystem::create_directory(first);
  EXPECT_EQ(free_run_directory(first), first) << "an empty one is free";
  std::ofstream(first + "/lock").put('x');
  EXPECT_EQ(free_run_directory(first), first + "-2");
  std::ofstream(first + "-2").put('x');
  EXPECT_EQ(free_run_directory(first), first + "-3") << "a file is in the place of the second";
  std::filesystem::remove_all(place);
}

TEST(RunDirectory, IsOneThatCannotBeMadeRatherThanNone) {
  const std::string place = io::make_private_directory("trainyard-test-").value();
  const std::string longest = place + "/" + std::string(255, 'x');
  std::ofstream(longest).put('x');
  EXPECT_EQ(free_run_directory(longest), longest + "-2") << "a name that no file system takes";
  std::filesystem::create_symlink("loop", place + "/loop");
  EXPECT_EQ(free_run_directory(place + "/loop/digits"), place + "/loop/digits");
  std::filesystem::remove_all(place);
}

TEST(RunDirectory, KnowsThoseOfTheSameJob) {
  const std::string place = io::make_private_directory("trainyard-test-").value();
  const std::string first = place + "/digits";
  for (const char* const name : {"digits", "digits-2", "digits-13", "digits-02", "digits-a",
                                 "digits-", "digit", "digits2"}) {
    std::filesystem::create_directory(place + "/" + name);
  }
  EXPECT_THAT(run_directories_like(first),
              UnorderedElementsAre(first, first + "-2", first + "-13"));
  EXPECT_TRUE(run_directories_like(place + "/nowhere/digits").empty());
  std::filesystem::remove_all(place);
}

}  // namespace
}  // namespace trainyard
