#include "process/guard.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <expected>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/result.h"
#include "base/time.h"
#include "sys/children.h"
#include "sys/descriptor.h"
#include "sys/pidfd.h"
#include "sys/this_process.h"

namespace trainyard::process {
namespace {

/// The exit code of a guard whose keeper was killed by a signal is this and the signal.
constexpr int kKilled = 128;
/// Who it works for, and how long the keeper has to end everything when that is gone.
struct Yard {
  pid_t pid = 0;
  Duration patience{0};
};
/// How often it looks again while something is left that does not end.
constexpr timespec kLookAgain{.tv_sec = 0, .tv_nsec = 50'000'000};

void take_signals_of_a_guard() {
  for (int signal = 1; signal < SIGRTMIN; ++signal) ::signal(signal, SIG_DFL);
  // What ends the yard does not end the guard, which goes after the keeper.
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  sigset_t blocked{};
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGCHLD);
  ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

/// Keeps nothing that anybody could wait for the end of.
void close_everything() {
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (int standard = 0; nowhere >= 0 && standard <= STDERR_FILENO; ++standard) {
    ::dup2(nowhere, standard);
  }
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
}

/// Waits for the end of the keeper, and sees to it that it comes: one that is stopped would not
/// hear that its yard is gone. Returns the exit code that tells how it ended.
int wait_for(pid_t keeper, const Yard& yard) {
  const sys::Descriptor keeper_ended = sys::open_pidfd(keeper);
  const sys::Descriptor yard_ended = sys::open_pidfd(yard.pid);
  std::array<pollfd, 2> ends{{{.fd = keeper_ended.get(), .events = POLLIN, .revents = 0},
                              {.fd = yard_ended.get(), .events = POLLIN, .revents = 0}}};
  while (::poll(ends.data(), ends.size(), -1) < 0 && errno == EINTR) {
  }
  if (ends[0].revents == 0 && !sys::wait_until_ended(keeper_ended, yard.patience)) {
    ::kill(keeper, SIGKILL);
  }
  int status = 0;
  while (::waitpid(keeper, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? kKilled + WTERMSIG(status) : 0;
}

/// Kills children until there are none: with each that dies its own children become ours.
void end_all_children() {
  sys::ChildList children;
  sigset_t ended{};
  ::sigemptyset(&ended);
  ::sigaddset(&ended, SIGCHLD);
  for (;;) {
    // NOLINTNEXTLINE(misc-include-cleaner): sys/types.h has it.
    for (const pid_t child : children.read()) ::kill(child, SIGKILL);
    pid_t reaped = 0;
    do {
      reaped = ::waitpid(-1, nullptr, WNOHANG);
    } while (reaped > 0);
    if (reaped < 0 && errno == ECHILD) return;
    ::sigtimedwait(&ended, nullptr, &kLookAgain);
  }
}

[[noreturn]] void become_guard(sys::Descriptor socket, sys::Descriptor tell, const Yard& yard,
                               const KeeperBody& body) {
  const pid_t guard = ::getpid();
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Stays out of directories that somebody may want to unmount.
  static_cast<void>(::chdir("/"));
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    tell.close();
    body(std::move(socket), guard);
    ::_exit(0);
  }
  sys::rename_process(std::string(kGuardName));
  take_signals_of_a_guard();
  const pid_t told = keeper < 0 ? -errno : keeper;
  static_cast<void>(::write(tell.get(), &told, sizeof(told)));
  static_cast<void>(socket.release());
  static_cast<void>(tell.release());
  close_everything();
  if (keeper < 0) ::_exit(0);
  const int code = wait_for(keeper, yard);
  end_all_children();
  ::_exit(code);
}

Error cannot_start(int error) { return sys::system_error("cannot fork the keeper", error); }

}  // namespace

Result<Guarded> fork_guarded(sys::Descriptor socket, Duration patience, const KeeperBody& keeper) {
  const Yard yard{.pid = ::getpid(), .patience = patience};
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::unexpected(cannot_start(errno));
  const sys::Descriptor told(ends[0]);
  sys::Descriptor tell(ends[1]);
  const pid_t guard = ::fork();
  if (guard < 0) return std::unexpected(cannot_start(errno));
  if (guard == 0) become_guard(std::move(socket), std::move(tell), yard, keeper);
  tell.close();
  pid_t answer = 0;
  ssize_t got = 0;
  do {
    got = ::read(told.get(), &answer, sizeof(answer));
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(answer) && answer > 0) return Guarded{.guard = guard, .keeper = answer};
  static_cast<void>(::waitpid(guard, nullptr, 0));
  return std::unexpected(cannot_start(answer < 0 ? -answer : ECHILD));
}

std::optional<int> signal_of_keeper(int guard_status) {
  if (!WIFEXITED(guard_status) || WEXITSTATUS(guard_status) <= kKilled) return std::nullopt;
  return WEXITSTATUS(guard_status) - kKilled;
}

}  // namespace trainyard::process
