#include "sys/logind.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::sys {
namespace {

class Logind : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(make_directories(std::filesystem::path(root_ / name).parent_path().string()));
    ASSERT_TRUE(replace_file(root_ / name, text));
  }
  [[nodiscard]] bool ends() const { return ends_at_logout(root_.path(), "me"); }

  TemporaryDirectory root_;
};

TEST_F(Logind, EndsNothingUnlessItIsTold) {
  EXPECT_FALSE(ends());
  write("etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\n");
  EXPECT_FALSE(ends());
  write("etc/systemd/logind.conf", "[Login]\nKillUserProcesses=yes\n");
  EXPECT_TRUE(ends());
}

TEST_F(Logind, TakesTheLastWordOfItsFiles) {
  write("usr/lib/systemd/logind.conf", "KillUserProcesses=yes\n");
  write("etc/systemd/logind.conf", "KillUserProcesses=no\n");
  EXPECT_FALSE(ends());
  write("usr/lib/systemd/logind.conf.d/10-kill.conf", "KillUserProcesses=true\n");
  EXPECT_TRUE(ends());
  write("etc/systemd/logind.conf.d/20-keep.conf", "KillUserProcesses=no\n");
  write("etc/systemd/logind.conf.d/30-kill.other", "KillUserProcesses=yes\n");
  EXPECT_FALSE(ends());
}

TEST_F(Logind, LeavesAloneWhoLingers) {
  write("etc/systemd/logind.conf", "KillUserProcesses=yes\n");
  write("var/lib/systemd/linger/me", "");
  EXPECT_FALSE(ends());
  EXPECT_TRUE(ends_at_logout(root_.path(), "you"));
  EXPECT_TRUE(ends_at_logout(root_.path(), ""));
}

}  // namespace
}  // namespace trainyard::sys
