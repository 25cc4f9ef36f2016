// The choice of the control group in which we may make others, from made-up files. A real kernel is
// tested in tests/e2e/test_memory_limit.py.
#include "process/memory_group.h"

#include <filesystem>
#include <fstream>
#include <ostream>

#include <sys/xattr.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::process {
namespace {

using ::testing::HasSubstr;

class DelegatedGroupTest : public ::testing::Test {
 protected:
  /// A group that its processes may change, as far as files can be like one.
  std::string put_group(const std::string& name,
                        const std::string& controllers = "cpu memory pids") {
    const std::string path = place_ / name;
    std::filesystem::create_directories(path);
    put(path + "/cgroup.controllers", controllers + "\n");
    put(path + "/cgroup.type", "domain\n");
    put(path + "/cgroup.procs", "");
    put(path + "/cgroup.subtree_control", "");
    return path;
  }
  static void put(const std::string& path, const std::string& text) {
    std::ofstream(path) << text << std::flush;
  }

  sys::TemporaryDirectory place_;
};

TEST_F(DelegatedGroupTest, IsOursWhereWeMayMakeGroups) {
  const std::string own = put_group("container");
  const DelegatedGroup found = find_delegated_group({.unified = {own, place_.path()}});
  EXPECT_EQ(found.path, own);
  EXPECT_FALSE(found.is_open);
  EXPECT_EQ(found.why_not, "");
}

TEST_F(DelegatedGroupTest, IsNoneWithoutVersionTwoOrWithoutASayInMemory) {
  EXPECT_EQ(find_delegated_group({}).why_not, "cgroup v2 is not available");
  EXPECT_EQ(find_delegated_group({.memory = {"/v1"}}).why_not, "only cgroup v1 is available");
  const std::string own = put_group("own", "hugetlb");
  EXPECT_EQ(find_delegated_group({.unified = {own}, .memory = {"/v1"}}).why_not,
            "the memory controller is in cgroup v1");
  const DelegatedGroup alone = find_delegated_group({.unified = {own}});
  EXPECT_EQ(alone.path, "");
  EXPECT_EQ(alone.why_not, "the control group '" + own + "' does not control memory");
}

TEST_F(DelegatedGroupTest, IsNoneInTheRootOfTheMachine) {
  const std::string root = put_group("root");
  std::filesystem::remove(root + "/cgroup.type");
  EXPECT_EQ(find_delegated_group({.unified = {root}}).why_not,
            "there is no control group below that of the machine");
}

TEST_F(DelegatedGroupTest, IsNoneOfThoseThatSystemdKeepsForItself) {
  const std::string own = put_group("session-3.scope");
  const DelegatedGroup kept = find_delegated_group({.unified = {own}});
  EXPECT_EQ(kept.path, "");
  EXPECT_THAT(kept.why_not, HasSubstr("is systemd's; start it with 'systemd-run --user --scope -p "
                                      "Delegate=yes trainyard run ...'"));
  if (::setxattr(own.c_str(), "user.delegate", "1", 1, 0) != 0) {
    GTEST_SKIP() << "no attributes on files here";
  }
  EXPECT_EQ(find_delegated_group({.unified = {own}}).path, own);
  ASSERT_EQ(::setxattr(own.c_str(), "user.delegate", "0", 1, 0), 0);
  EXPECT_EQ(find_delegated_group({.unified = {own}}).path, "");
}

TEST_F(DelegatedGroupTest, IsTheOneAboveForWhoeverIsInItsLeaf) {
  const std::string above = put_group("job");
  const std::string leaf = put_group("job/trainyard");
  put(above + "/cgroup.subtree_control", "cpu memory\n");
  const DelegatedGroup found = find_delegated_group({.unified = {leaf, above, place_.path()}});
  EXPECT_EQ(found.path, above);
  EXPECT_TRUE(found.is_open);
  // A group that only has the name is like any other.
  put(above + "/cgroup.subtree_control", "cpu\n");
  EXPECT_EQ(find_delegated_group({.unified = {leaf, above, place_.path()}}).path, leaf);
}

TEST_F(DelegatedGroupTest, OpensByMovingAllThatIsInItIntoALeaf) {
  // A made-up file does not let its processes go: it is read a bounded number of times.
  DelegatedGroup group = find_delegated_group({.unified = {put_group("own")}});
  put_group("own/trainyard");
  put(group.path + "/cgroup.procs", "17\n18\n");
  ASSERT_TRUE(open_delegated_group(group).has_value());
  EXPECT_TRUE(group.is_open);
  EXPECT_EQ(sys::content_of(group.path + "/cgroup.subtree_control"), "+memory");
  EXPECT_EQ(sys::content_of(group.path + "/trainyard/cgroup.procs"), "18");
}

TEST_F(DelegatedGroupTest, HasGpuMemoryWhereTheKernelHasIt) {
  DelegatedGroup group =
      find_delegated_group({.unified = {put_group("own", "cpu memory pids dmem")}});
  put_group("own/trainyard");
  ASSERT_TRUE(open_delegated_group(group).has_value());
  EXPECT_TRUE(group.has_regions);
  EXPECT_EQ(sys::content_of(group.path + "/cgroup.subtree_control"), "+dmemry")
      << "+memory, and +dmem over it, as this is a plain file";

  const std::string above = put_group("above");
  put(above + "/cgroup.subtree_control", "memory dmem\n");
  DelegatedGroup open = find_delegated_group({.unified = {put_group("above/trainyard"), above}});
  ASSERT_TRUE(open_delegated_group(open).has_value());
  EXPECT_TRUE(open.has_regions) << "who is started beside us has opened it";

  put_group("none/trainyard");
  DelegatedGroup none = find_delegated_group({.unified = {put_group("none")}});
  ASSERT_TRUE(open_delegated_group(none).has_value());
  EXPECT_FALSE(none.has_regions);
}

TEST_F(DelegatedGroupTest, SaysWhatKeepsItFromOpening) {
  DelegatedGroup group = find_delegated_group({.unified = {put_group("own")}});
  put(group.path + "/cgroup.procs", "17\n");
  const Result<void> opened = open_delegated_group(group);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().message,
            "cannot write '" + group.path + "/trainyard/cgroup.procs': no such file or directory");
  EXPECT_FALSE(group.is_open);
}

}  // namespace
}  // namespace trainyard::process
