// A directory of its own for a test, gone with it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"

namespace trainyard::testing_only {

class TestDirectory {
 public:
  TestDirectory() {
    std::string name = "/tmp/trainyard-config-XXXXXX";
    // NOLINTNEXTLINE(misc-include-cleaner): cstdlib has it.
    check(::mkdtemp(name.data()) != nullptr, "a directory under /tmp");
    path_ = name;
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  ~TestDirectory() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }

  void make(std::string_view name) const {
    std::filesystem::create_directory(path_ + "/" + std::string(name));
  }
  void write(std::string_view name, std::string_view text) const {
    std::ofstream(path_ + "/" + std::string(name)) << text;
  }

 private:
  std::string path_;
};

}  // namespace trainyard::testing_only
