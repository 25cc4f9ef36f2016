#include "sys/stoppable_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <expected>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/fork.h"
#include "sys/pidfd.h"
#include "sys/this_process.h"

namespace trainyard::sys {
namespace {

/// Ours, less those that the command has.
std::vector<char*> environment_of(const StoppableCommand& command) {
  std::vector<char*> environment = pointers_to(command.environment);
  environment.pop_back();
  const auto name_of = [](std::string_view variable) {
    return variable.substr(0, variable.find('='));
  };
  for (char** each = environ; *each != nullptr; ++each) {
    const bool is_said = std::ranges::any_of(command.environment, [&](std::string_view variable) {
      return name_of(variable) == name_of(*each);
    });
    // A shell takes the last of two variables with one name.
    if (!is_said) environment.push_back(*each);
  }
  environment.push_back(nullptr);
  return environment;
}

Result<pid_t> spawn_apart(const StoppableCommand& command) {
  Result<Descriptor> output =
      command.output.empty() ? Result<Descriptor>() : open_log(command.output, IfThere::Empty);
  if (!output) return std::unexpected(std::move(output).error());
  const std::vector<char*> arguments = pointers_to(command.arguments);
  std::vector<char*> environment = environment_of(command);
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  if (output->is_open()) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output->get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  if (!command.directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions, command.directory.c_str());
  }
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
  const int error = ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(),
                                   environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  return std::unexpected(system_error(fmt::format("cannot run '{}'", command.arguments[0]), error));
}

using Clock = std::chrono::steady_clock;

/// -1 for what never comes.
int milliseconds_until(std::optional<Clock::time_point> when) {
  if (!when) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*when - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

/// Waits for the end of a command and has it stop where it is asked to; what is left to be said of
/// the end is how the process ended.
CommandEnd wait_for_end(const StoppableCommand& command, pid_t pid, const Descriptor& ended,
                        std::array<pollfd, 3> waiting, const HeldSignals& signals) {
  CommandEnd end;
  std::optional<Clock::time_point> until;
  if (command.deadline) until = Clock::now() + *command.deadline;
  bool asked = false;
  waiting[0] = {.fd = ended.get(), .events = POLLIN, .revents = 0};
  while (true) {
    const int ready = ::poll(waiting.data(), waiting.size(), milliseconds_until(until));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || waiting[0].revents != 0) return end;
    if (asked) {
      ::kill(-pid, SIGKILL);
      until.reset();
      continue;
    }
    if (ready == 0 && milliseconds_until(until) > 0) continue;
    asked = true;
    end.late = ready == 0;
    if (waiting[2].revents != 0) end.asked_by = signals.take();
    ::kill(-pid, SIGTERM);
    until = Clock::now() + command.grace;
    waiting[1].fd = -1;
    waiting[2].fd = -1;
  }
}

}  // namespace

HeldSignals::HeldSignals(const std::vector<int>& signals) {
  if (signals.empty()) return;
  sigset_t set{};
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  held_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

HeldSignals::~HeldSignals() {
  if (held_.is_open()) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int HeldSignals::take() const {
  signalfd_siginfo which{};
  if (!held_.is_open()) return 0;
  const ssize_t got = ::read(held_.get(), &which, sizeof which);
  return got == ssize_t{sizeof which} ? static_cast<int>(which.ssi_signo) : 0;
}

Result<CommandEnd> run_stoppable(const StoppableCommand& command, const std::stop_token& stop) {
  const HeldSignals signals(command.stops_on_signals ? std::vector<int>{SIGINT, SIGTERM}
                                                     : std::vector<int>{});
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
  CommandEnd end = wait_for_end(command, pid, ended,
                                {{{},
                                  {.fd = stopped.get(), .events = POLLIN, .revents = 0},
                                  {.fd = signals.descriptor(), .events = POLLIN, .revents = 0}}},
                                signals);
  int status = 0;
  ::waitpid(pid, &status, 0);
  // Kills the processes that it has left behind in its group.
  ::kill(-pid, SIGKILL);
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  return end;
}

}  // namespace trainyard::sys
