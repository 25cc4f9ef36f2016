#include "run/machine_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::run {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(MachineKeys, AreReadAsTheyWereWritten) {
  const sys::TemporaryDirectory directory;
  const std::string& path = directory.path();
  EXPECT_THAT(read_machine_keys(path), IsEmpty());
  ASSERT_TRUE(write_machine_keys(path, {{"lab1", "a0"}, {"me@lab 2", "b1"}}));
  EXPECT_THAT(read_machine_keys(path),
              UnorderedElementsAre(Pair("lab1", "a0"), Pair("me@lab 2", "b1")));
  remove_machine_keys(path);
  EXPECT_THAT(read_machine_keys(path), IsEmpty());
}

TEST(MachineKeys, OfSomebodyElseAreNone) {
  const sys::TemporaryDirectory directory;
  const std::string& path = directory.path();
  for (const char* const text : {"a0;reboot lab1\n", "a0\n", " lab1\n", "a0 lab1\n$(x) lab2\n"}) {
    directory.write("machines.keys", text);
    EXPECT_THAT(read_machine_keys(path), IsEmpty()) << text;
  }
  EXPECT_TRUE(is_machine_key(std::string(kMachineKeyMax, 'a')));
  EXPECT_FALSE(is_machine_key(std::string(kMachineKeyMax + 1, 'a')));
}

}  // namespace
}  // namespace trainyard::run
