// A made-up NVIDIA driver for tests: the library of tests/fake_nvml and the file that says what it
// shows.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <fmt/format.h>

namespace trainyard::hardware {

class FakeGpus {
 public:
  FakeGpus() : path_(fmt::format("{}/fake-gpus-{}.json", testing_directory(), ::getpid())) {
    ::setenv("TRAINYARD_FAKE_NVML", path_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    show("{}");
  }
  FakeGpus(FakeGpus&&) = delete;
  FakeGpus& operator=(FakeGpus&&) = delete;
  ~FakeGpus() {
    ::unsetenv("TRAINYARD_FAKE_NVML");  // NOLINT(concurrency-mt-unsafe)
    std::filesystem::remove(path_);
  }

  /// Sets the readings that the driver shows from now on.
  void show(const std::string& json) const {
    std::ofstream(path_ + ".new") << json;
    std::filesystem::rename(path_ + ".new", path_);
  }

  /// Two cards of 8 GB. `first` and `second` are further fields of them, with a comma before each.
  void show_two(const std::string& first = {}, const std::string& second = {}) const {
    show(fmt::format(
        R"({{"devices": [{{"uuid": "GPU-aaaa", "name": "Fake A", "pci": "00000000:01:00.0",
        "memory": 8000000000{}}}, {{"uuid": "GPU-bbbb", "name": "Fake B",
        "pci": "00000000:02:00.0", "memory": 8000000000, "cores": 2000{}}}]}})",
        first, second));
  }

  /// A field for show_two(): this process has so much.
  static std::string used_by(std::int64_t pid, std::int64_t bytes) {
    return fmt::format(R"(, "processes": [{{"pid": {}, "memory": {}}}])", pid, bytes);
  }

 private:
  static std::string testing_directory() { return std::filesystem::temp_directory_path().string(); }

  std::string path_;
};

}  // namespace trainyard::hardware
