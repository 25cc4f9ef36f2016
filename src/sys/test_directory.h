// For tests alone: a directory of a test's own, and what is in its files.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "sys/files.h"

namespace trainyard::sys {

/// An empty directory that goes with the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(make_private_directory("trainyard-test-").value()) {}
  explicit TemporaryDirectory(const std::string& parent)
      : path_(make_private_directory_in(parent, "trainyard-test-").value()) {}
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  /// One in memory where that can be had: for tests that would wait for the disk hundreds of times.
  /// Programs may run in it, which many containers do not allow in /dev/shm.
  static std::string in_memory() {
    struct statvfs about{};
    const bool is_usable = ::access("/dev/shm", W_OK) == 0 && ::statvfs("/dev/shm", &about) == 0 &&
                           (about.f_flag & ST_NOEXEC) == 0;
    return is_usable ? "/dev/shm" : std::filesystem::temp_directory_path().string();
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }
  void make(std::string_view name) const { std::filesystem::create_directory(*this / name); }
  void write(std::string_view name, std::string_view text) const {
    std::ofstream(*this / name) << text;
  }

 private:
  std::string path_;
};

inline std::string content_of(const std::string& path) {
  return read_file(path, mib(16)).value_or("(cannot be read)");
}

}  // namespace trainyard::sys
