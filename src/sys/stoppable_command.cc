#include "sys/stoppable_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <expected>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "sys/descriptor.h"
#include "sys/pidfd.h"

namespace trainyard::sys {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  return pointers;
}

/// Ours, less those that the command has.
std::vector<char*> environment_of(const StoppableCommand& command) {
  std::vector<char*> environment = pointers_to(command.environment);
  const auto name_of = [](std::string_view variable) {
    return variable.substr(0, variable.find('='));
  };
  for (char** each = environ; *each != nullptr; ++each) {
    const bool is_said = std::ranges::any_of(command.environment, [&](std::string_view variable) {
      return name_of(variable) == name_of(*each);
    });
    // Of two with one name a shell takes the last.
    if (!is_said) environment.push_back(*each);
  }
  environment.push_back(nullptr);
  return environment;
}

Result<pid_t> spawn_apart(const StoppableCommand& command) {
  std::vector<char*> arguments = pointers_to(command.arguments);
  arguments.push_back(nullptr);
  std::vector<char*> environment = environment_of(command);
  posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  sigset_t all{};
  ::sigfillset(&all);
  sigset_t none{};
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments[0], nullptr, &attributes, arguments.data(),
                                   environment.data());
  ::posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  return std::unexpected(system_error(fmt::format("cannot run '{}'", command.arguments[0]), error));
}

}  // namespace

Result<CommandEnd> run_stoppable(const StoppableCommand& command, const std::stop_token& stop) {
  const Result<pid_t> started = spawn_apart(command);
  if (!started) return std::unexpected(started.error());
  const pid_t pid = *started;
  const Descriptor ended = open_pidfd(pid);
  if (!ended.is_open()) {
    const int error = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return std::unexpected(system_error("cannot watch a process", error));
  }
  const Descriptor stopped(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::stop_callback wake(stop, [&stopped] {
    const std::uint64_t one = 1;
    static_cast<void>(::write(stopped.get(), &one, sizeof one));
  });
  std::array<pollfd, 2> waiting{{{.fd = ended.get(), .events = POLLIN, .revents = 0},
                                 {.fd = stopped.get(), .events = POLLIN, .revents = 0}}};
  int timeout = -1;
  while (true) {
    const int ready = ::poll(waiting.data(), waiting.size(), timeout);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || waiting[0].revents != 0) break;
    const bool was_stopped = waiting[1].revents != 0;
    ::kill(-pid, was_stopped ? SIGTERM : SIGKILL);
    waiting[1].fd = -1;
    waiting[1].revents = 0;
    timeout = was_stopped ? static_cast<int>(command.grace.count()) : -1;
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  // What it has left behind in its group.
  ::kill(-pid, SIGKILL);
  if (WIFSIGNALED(status)) return CommandEnd{.exit_code = 0, .signal = WTERMSIG(status)};
  return CommandEnd{.exit_code = WEXITSTATUS(status), .signal = 0};
}

}  // namespace trainyard::sys
