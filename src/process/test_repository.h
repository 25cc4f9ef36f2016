// For tests alone: a repository of git with one file that it knows, until the end of the test.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "sys/helper_command.h"
#include "sys/test_directory.h"

namespace trainyard::process {

/// git with settings of its own: the machine's may be missing.
inline constexpr std::string_view kGit =
    "git -c user.name=me -c user.email=me@here -c init.defaultBranch=main ";

inline void git(const std::string& directory, const std::string& words) {
  const auto done = sys::run_helper(
      {.arguments = {"sh", "-c", std::string(kGit) + words}, .directory = directory});
  ASSERT_TRUE(done.has_value());
  ASSERT_EQ(done->exit_code, 0) << words;
}

/// The output of git there.
inline std::string git_says(const std::string& directory, const std::string& words) {
  const auto done = sys::run_helper(
      {.arguments = {"sh", "-c", std::string(kGit) + words + " 2>&1"}, .directory = directory});
  return done ? done->text : done.error().message;
}

class Repository {
 public:
  Repository() {
    directory_.write("train.py", "lr = 1\n");
    git(path(), "init -q && git add train.py");
    commit();
  }
  /// Without links on the way.
  [[nodiscard]] std::string path() const {
    return std::filesystem::canonical(directory_.path()).string();
  }
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return path() + "/" + std::string(name);
  }
  /// Makes the directories on the way, too.
  void write(std::string_view name, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    directory_.write(name, text);
  }
  void commit() const { git(path(), "commit -qam 'what there is'"); }

 private:
  sys::TemporaryDirectory directory_;
};

}  // namespace trainyard::process
