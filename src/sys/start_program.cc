#include "sys/start_program.h"

#include <array>
#include <cerrno>
#include <expected>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/fork.h"
#include "sys/pidfd.h"
#include "sys/terminal.h"
#include "sys/this_process.h"

namespace trainyard::sys {
namespace {

/// Also where the file has been replaced since: by that path the kernel finds the one that runs.
constexpr const char* kOwnProgram = "/proc/self/exe";
constexpr int kRefused = 2;

[[noreturn]] void refuse(const std::string& what, int error) {
  write_standard_error(fmt::format("trainyard: {}\n", system_error(what, error).message));
  ::_exit(kRefused);
}

/// In the fork.
[[noreturn]] void become_program(const ProgramToStart& program, const Descriptor& log, int words) {
  make_signals_default();
  ::setsid();
  print_to(log);
  const int nowhere = ::open("/dev/null", O_RDONLY);
  if (nowhere >= 0) ::dup2(nowhere, STDIN_FILENO);
  if (words != kWordPlace) ::dup2(words, kWordPlace);
  if (words == kWordPlace) ::fcntl(words, F_SETFD, 0);
  ::close_range(kWordPlace + 1, ~0U, 0);
  ::umask(program.umask);
  take_limits(program.limits);
  if (::chdir(program.directory.c_str()) != 0) {
    refuse(fmt::format("cannot go to '{}', from where it was submitted", program.directory), errno);
  }
  std::vector<std::string> arguments{"trainyard"};
  arguments.insert(arguments.end(), program.arguments.begin(), program.arguments.end());
  ::execve(kOwnProgram, pointers_to(arguments).data(), pointers_to(program.environment).data());
  refuse("cannot start the run", errno);
}

}  // namespace

Result<StartedProgram> start_program(const ProgramToStart& program, const Descriptor& log) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(system_error("cannot make a pipe", errno));
  }
  Descriptor words(ends[0]);
  const Descriptor said(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return std::unexpected(system_error("cannot fork a run", errno));
  if (child == 0) become_program(program, log, said.get());
  return StartedProgram{.pid = child, .ended = open_pidfd(child), .words = std::move(words)};
}

std::optional<ProgramEnd> end_of_program(std::int64_t pid) {
  int status = 0;
  if (::waitpid(static_cast<pid_t>(pid), &status, WNOHANG) <= 0) return std::nullopt;
  if (WIFSIGNALED(status)) return ProgramEnd{.signal = WTERMSIG(status)};
  return ProgramEnd{.exit_code = WEXITSTATUS(status)};
}

std::uint32_t own_umask() {
  const mode_t now = ::umask(0);
  ::umask(now);
  return now;
}

}  // namespace trainyard::sys
