#include "sys/helper_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <expected>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/descriptor.h"
#include "sys/fork.h"
#include "sys/pidfd.h"

namespace trainyard::sys {
namespace {

using Clock = std::chrono::steady_clock;

Result<pid_t> spawn(const HelperCommand& command, const Descriptor& output) {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  if (!command.directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions, command.directory.c_str());
  }
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  // A group of its own, so that it can be killed with what it has started.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);

  const std::vector<char*> arguments = pointers_to(command.arguments);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return std::unexpected(
        system_error(fmt::format("cannot run '{}'", command.arguments[0]), error));
  }
  return pid;
}

struct Gathered {
  std::string text;
  bool cut = false;
  bool late = false;
};

std::chrono::milliseconds time_until(Clock::time_point end) {
  return std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
}

Gathered gather(const Descriptor& input, Bytes output_max, Clock::time_point end) {
  const auto most = static_cast<std::size_t>(output_max.count);
  Gathered gathered;
  std::array<char, 16384> chunk{};
  for (;;) {
    const auto left = time_until(end);
    if (left.count() <= 0) {
      gathered.late = true;
      return gathered;
    }
    pollfd waiting{.fd = input.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t got = ::read(input.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return gathered;
    const std::size_t room = most - gathered.text.size();
    gathered.text.append(chunk.data(), std::min(static_cast<std::size_t>(got), room));
    if (static_cast<std::size_t>(got) > room) {
      gathered.cut = true;
      return gathered;
    }
  }
}

struct Ended {
  int exit_code = -1;
  bool late = false;
};

/// Waits for a process that has closed its output; kills one that lives on over the deadline, or
/// that is to be ended now.
Ended wait_for(pid_t pid, Clock::time_point end, bool kill_now) {
  const bool late = !kill_now && !wait_until_ended(open_pidfd(pid), time_until(end));
  if (kill_now || late) ::kill(-pid, SIGKILL);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  const bool exited = ended == pid && WIFEXITED(status);
  return {.exit_code = exited ? WEXITSTATUS(status) : -1, .late = late};
}

}  // namespace

Result<HelperOutput> run_helper(const HelperCommand& command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(
        system_error(fmt::format("cannot run '{}'", command.arguments.at(0)), errno));
  }
  const Descriptor input(ends[0]);
  Descriptor output(ends[1]);
  const Clock::time_point end = Clock::now() + command.deadline;
  const Result<pid_t> pid = spawn(command, output);
  if (!pid) return std::unexpected(pid.error());
  output.close();

  Gathered gathered = gather(input, command.output_max, end);
  const Ended ended = wait_for(*pid, end, gathered.cut || gathered.late);
  if (gathered.late || ended.late) {
    return std::unexpected(Error{fmt::format("'{}' did not end within {} ms", command.arguments[0],
                                             command.deadline.count())});
  }
  return HelperOutput{
      .text = std::move(gathered.text), .cut = gathered.cut, .exit_code = ended.exit_code};
}

}  // namespace trainyard::sys
