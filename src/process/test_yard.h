// For tests of the keeper: a keeper whose news are collected.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <poll.h>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "process/keeper.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/pidfd.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {

/// Whether there is such a process that has not ended.
inline bool is_alive(std::int64_t pid) {
  const sys::Descriptor process = sys::open_pidfd(pid);
  return process.is_open() && !sys::wait_until_ended(process, Duration(0));
}

/// The pid that a process has written to a file, once it is there whole: with its newline.
inline std::int64_t pid_in(const std::string& path) {
  std::string text;
  EXPECT_TRUE(sys::eventually([&] {
    text = sys::read_file(path, mib(1)).value_or("");
    return text.ends_with('\n');
  })) << path;
  return std::strtoll(text.c_str(), nullptr, 10);
}

/// A keeper, and what it has said.
class TestYard {
 public:
  explicit TestYard(KeeperOptions options = {.stop_grace = Duration(5000)})
      : keeper(Keeper::fork(std::move(options)).value()) {
    keeper.listen(loop, [this](std::span<const KeeperNews> told) {
      news.insert(news.end(), told.begin(), told.end());
    });
  }

  /// A launch of attempt 1 of task `number`, in `directory`, with the usual places.
  [[nodiscard]] model::Launch launch(std::vector<std::string> arguments,
                                     std::uint32_t number = 0) const {
    const std::string own = directory / ("task" + std::to_string(number));
    return {.arguments = std::move(arguments),
            .environment = {"TRAINYARD_TASK_DIR=" + own, "TRAINYARD_ATTEMPT=1"},
            .working_directory = directory.path(),
            .task_directory = own,
            .stdout_path = own + "/stdout.log",
            .stderr_path = own + "/stderr.log",
            .result_path = own + "/result.json"};
  }
  [[nodiscard]] model::Launch shell(const std::string& text, std::uint32_t number = 0) const {
    return launch({"/bin/sh", "-c", text}, number);
  }
  static model::AttemptKey key(std::uint32_t number) { return {.task = {number}, .attempt = 1}; }

  /// Lets things happen until `holds` says so; false when it did not in time.
  bool wait(const std::function<bool()>& holds) {
    const Duration end = sys::EventLoop::now() + sys::kLongEnough;
    while (!holds()) {
      if (sys::EventLoop::now() > end) return false;
      loop.run_once(Duration(100));
    }
    return true;
  }

  [[nodiscard]] std::optional<std::int64_t> started(std::uint32_t number) const {
    for (const KeeperNews& it : news) {
      const auto* found = std::get_if<ProcessStarted>(&it);
      if (found != nullptr && found->key == key(number)) return found->pid;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<ProcessEnded> ended(std::uint32_t number) const {
    for (const KeeperNews& it : news) {
      const auto* found = std::get_if<ProcessEnded>(&it);
      if (found != nullptr && found->key == key(number)) return *found;
    }
    return std::nullopt;
  }
  std::int64_t wait_for_start(std::uint32_t number = 0) {
    EXPECT_TRUE(wait([&] { return started(number).has_value(); }));
    return started(number).value_or(0);
  }
  ProcessEnded wait_for_end(std::uint32_t number = 0) {
    EXPECT_TRUE(wait([&] { return ended(number).has_value(); }));
    return ended(number).value_or(ProcessEnded{});
  }
  /// The pid that a task has written to a file of its working directory.
  std::int64_t wait_for_pid(const std::string& file) {
    EXPECT_TRUE(wait([&] { return sys::content_of(directory / file).ends_with('\n'); })) << file;
    return pid_in(directory / file);
  }
  /// Starts one, waits for its end, and says how it was.
  model::End run(const model::Launch& what) {
    news.clear();
    keeper.start(key(0), what);
    return wait_for_end().end;
  }
  /// The error of a launch that cannot be started.
  std::string refusal(const model::Launch& what) {
    const model::End end = run(what);
    EXPECT_EQ(news.size(), 1U) << "it was said to have started";
    const auto* refused = std::get_if<model::NotStarted>(&end);
    return refused == nullptr ? "(it was started)" : refused->why;
  }

  sys::TemporaryDirectory directory;
  sys::EventLoop loop;
  std::vector<KeeperNews> news;
  Keeper keeper;
};

}  // namespace trainyard::process
