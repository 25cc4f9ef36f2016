// For the tests of the library: a task that does what a test says, and a yard in a directory of its
// own. Who includes it has <nlohmann/json.hpp>.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sys/test_directory.h"
#include "trainyard/trainyard.h"

namespace trainyard::library {

/// A variable of the environment, empty where it is not there. Of a test or its task, which have
/// one thread.
inline std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string() : std::string(value);
}

/// A task that does what the test says.
class Made : public Task {
 public:
  using Load = std::function<void(Made&)>;
  using Train = std::function<Json(Made&, const Device&)>;
  Made(std::string id, Train train, Load load = nullptr)
      : Task({.id = std::move(id), .memory = 20_MB, .cpus = 0}),
        train_(std::move(train)),
        load_(std::move(load)) {}

  void load() override {
    if (load_) load_(*this);
  }
  Json train(const Device& device) override { return train_(*this, device); }

  using Task::progress;
  using Task::rank;
  using Task::ranks;
  using Task::report;
  using Task::send;
  int count = 0;

 private:
  Train train_;
  Load load_;
};

class YardTest : public ::testing::Test {
 public:
  YardOptions options(Fork fork = Fork::OneThread) {
    return {
        .name = "test", .directory = place, .fork = fork, .note = [this](std::string_view text) {
          notes.emplace_back(text);
        }};
  }
  static Config config() {
    Config config;
    // CPU usage of other tests must not delay this yard.
    EXPECT_TRUE(config.set("utilization-limit.cpu", "100%"));
    return config;
  }
  RunSummary run(TaskGroup& group) {
    Yard yard(config(), options());
    const Result<RunSummary> done = yard.run(group);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return done.value_or(RunSummary{});
  }

  sys::TemporaryDirectory directory;
  /// Within it, so that what is learned, which is kept beside the run, goes with the test.
  std::string place = directory / "run";
  std::vector<std::string> notes;
};

}  // namespace trainyard::library
