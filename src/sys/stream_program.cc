#include "sys/stream_program.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <expected>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/fork.h"
#include "sys/passing.h"
#include "sys/pidfd.h"
#include "sys/this_process.h"

namespace trainyard::sys {
namespace {

constexpr std::size_t kErrorsMax = 4096;
constexpr int kNoSuchProgram = 127;
constexpr int kBySignal = 128;

/// In the fork.
[[noreturn]] void become_on_stream(const std::vector<std::string>& arguments, int stream,
                                   int errors, pid_t parent) {
  make_signals_default();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // A parent that exited before prctl() causes no signal.
  if (::getppid() != parent) ::_exit(kNoSuchProgram);
  ::setsid();
  ::dup2(stream, STDIN_FILENO);
  ::dup2(stream, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  const std::string why = become(arguments).message + "\n";
  static_cast<void>(::write(STDERR_FILENO, why.data(), why.size()));
  ::_exit(kNoSuchProgram);
}

int as_exit_code(int status) {
  return WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Result<StreamProgram> StreamProgram::start(const std::vector<std::string>& arguments) {
  auto ends = socket_pair();
  if (!ends) return std::unexpected(std::move(ends.error()));
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return std::unexpected(system_error("cannot make a pipe", errno));
  }
  Descriptor errors(pipe[0]);
  const Descriptor said(pipe[1]);
  ::fcntl(errors.get(), F_SETFL, O_NONBLOCK);
  const pid_t own = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    return std::unexpected(
        system_error(fmt::format("cannot start '{}'", arguments.front()), errno));
  }
  if (child == 0) become_on_stream(arguments, ends->second.get(), said.get(), own);
  return StreamProgram(child, std::move(ends->first), std::move(errors));
}

StreamProgram::~StreamProgram() {
  // A moved-from object has no descriptors, and the child is not its own.
  if (!errors_.is_open() || exit_code()) return;
  // A killed rsync leaves the ssh that it has started, which may wait for its network.
  ::kill(static_cast<pid_t>(-pid_), SIGKILL);
  // It may not have made its session yet.
  ::kill(static_cast<pid_t>(pid_), SIGKILL);
  while (::waitpid(static_cast<pid_t>(pid_), nullptr, 0) < 0 && errno == EINTR) {
  }
}

void StreamProgram::terminate() const {
  if (!exit_code_) ::kill(static_cast<pid_t>(pid_), SIGTERM);
}

std::string StreamProgram::last_errors() {
  std::array<char, kErrorsMax> buffer{};
  for (;;) {
    const ssize_t got = ::read(errors_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    said_.append(buffer.data(), static_cast<std::size_t>(got));
    if (said_.size() > kErrorsMax) said_.erase(0, said_.size() - kErrorsMax);
  }
  return said_;
}

std::optional<int> StreamProgram::exit_code(Duration patience) {
  if (exit_code_) return exit_code_;
  if (patience > Duration{0}) static_cast<void>(wait_until_ended(open_pidfd(pid_), patience));
  int status = 0;
  if (::waitpid(static_cast<pid_t>(pid_), &status, WNOHANG) > 0) exit_code_ = as_exit_code(status);
  return exit_code_;
}

}  // namespace trainyard::sys
