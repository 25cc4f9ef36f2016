// A fixture for tests of the keeper's attempts without a keeper around them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "model/launch.h"
#include "process/exit_board.h"
#include "process/keeper_attempts.h"
#include "process/keeper_spawn.h"
#include "process/test_yard.h"
#include "sys/pidfd.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {

class KeeperAttemptsTest : public ::testing::Test {
 protected:
  using Clock = KeeperAttempts::Clock;
  using Number = KeeperAttempts::Number;

  [[nodiscard]] model::Launch launch_of(std::vector<std::string> arguments) const {
    return {.arguments = std::move(arguments),
            .working_directory = place_.path(),
            .task_directory = place_ / "task",
            .stdout_path = place_ / "task/stdout.log",
            .stderr_path = place_ / "task/stderr.log"};
  }
  /// Starts attempt 1 of the task, and returns the number of its process.
  Number start_launch(std::uint32_t task, model::Launch launch) {
    const Number process = attempts_.next_number();
    attempts_.add(TestYard::key(task), spawner_.start(std::move(launch)).value());
    return process;
  }
  Number start(std::uint32_t task, std::vector<std::string> arguments) {
    return start_launch(task, launch_of(std::move(arguments)));
  }
  [[nodiscard]] bool wait_for_exit(Number process) {
    return sys::wait_until_ended(*attempts_.process_of(process), sys::kLongEnough);
  }
  /// Reaps the process, which has exited.
  void reap(Number process) {
    const auto now = Clock::now();
    attempts_.leader_ended(process, {.now = now, .happened = now});
  }
  [[nodiscard]] std::vector<KeeperAttempts::Over> over_after_exit(Number process) {
    reap(process);
    return attempts_.clear_up(false, Clock::now() + sys::kLongEnough).over;
  }

  sys::TemporaryDirectory place_;
  Spawner spawner_;
  ExitBoard board_;
  KeeperAttempts attempts_{{.grace = sys::kLongEnough,
                            .late_after = sys::kLongEnough,
                            .oom_count_age = sys::kLongEnough},
                           board_};
};

}  // namespace trainyard::process
