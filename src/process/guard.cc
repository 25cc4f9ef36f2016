#include "process/guard.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <expected>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/event.h"
#include "model/ids.h"
#include "process/end_notes.h"
#include "process/guard_words.h"
#include "process/keeper_patience.h"
#include "process/kept_descriptors.h"
#include "process/start.h"
#include "sys/event_loop.h"
#include "sys/passing.h"
#include "sys/pidfd.h"
#include "sys/process_scan.h"
#include "sys/this_process.h"

namespace trainyard::process {
namespace {

/// The time between two looks while some processes have not exited.
constexpr timespec kLookAgain{.tv_sec = 0, .tv_nsec = 50'000'000};
/// The maximum wait for them before another keeper is forked alongside.
constexpr Duration kRemainsMax{5'000};
/// The maximum wait for the notes of exits.
constexpr Duration kNotesMax{5'000};
/// The last wait, when nothing else is left to do.
constexpr Duration kForEver{std::numeric_limits<std::int64_t>::max() / 2};
/// The longest time that poll(2) is given.
constexpr Duration kPollMax{3'600'000};
/// A keeper that has lived for this number of looks did not end at once.
constexpr int kSettled = 10;

void take_signals_of_a_guard() {
  for (int signal = 1; signal < SIGRTMIN; ++signal) ::signal(signal, SIG_DFL);
  for (const int signal : kIgnoredByKeeper) ::signal(signal, SIG_IGN);
  sigset_t blocked{};
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGCHLD);
  ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

/// Its process, from its birth to its end.
class Guard {
 public:
  Guard(GuardOptions options, KeeperBody body, sys::Descriptor words, pid_t yard, ExitBoard& board)
      : options_(std::move(options)),
        body_(std::move(body)),
        words_(std::move(words)),
        board_(board) {
    // The yard may have died before it is watched, and its number may belong to another process.
    sys::Descriptor ended = sys::open_pidfd(yard);
    if (::getppid() != yard) ended.close();
    yard_.watch(std::move(ended));
    command_line_ = sys::rename_process(std::string(kGuardName));
  }

  void run();

 private:
  int fork_keeper(std::optional<int> died, const std::vector<UnreportedExit>& exits);
  int wait_for_its_end();
  void hear();
  void look();
  void look_when_it_should_end();
  [[nodiscard]] std::optional<sys::ProcessStat> see_keeper() const;
  [[nodiscard]] bool should_end() const;
  [[nodiscard]] bool looks() const;
  void note(std::span<const FoundExit> exits);
  bool end_what_is_left();
  void end_what_is_left(Duration most);
  void count_what_died();
  void wait_for_the_end_of_the_yard();

  GuardOptions options_;
  KeeperBody body_;
  sys::Descriptor words_;     ///< Closed when the yard has let go of it.
  SocketRemains yard_;        ///< Its sockets, and whether it has ended.
  std::string command_line_;  ///< As the program has it, for the keepers.
  sys::ChildList children_;
  sys::ProcessScan scan_;
  ExitBoard& board_;  ///< Shared with each keeper, and with the yard.

  pid_t keeper_ = 0;  ///< 0: there is none.
  sys::Descriptor keeper_ended_;
  Duration born_{0};
  KeeperPatience patience_;
  int ended_in_a_row_ = 0;
  bool no_more_ = false;     ///< The yard wants no other.
  bool was_silent_ = false;  ///< The keeper, for so long that it was ended.
  bool some_left_ = false;   ///< Of a dead keeper, and not exiting.
  Duration looked_at_{0};
  std::int64_t looks_since_gone_ = 0;
};

/// Returns an errno, or 0 when there is one. The yard has been handed its end then.
int Guard::fork_keeper(std::optional<int> died, const std::vector<UnreportedExit>& exits) {
  auto ends = sys::socket_pair();
  if (!ends) return errno;
  const pid_t guard = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    sys::restore_command_line(command_line_);
    words_.close();
    ends->first.close();
    body_(std::move(ends->second), guard, board_);
    ::_exit(EXIT_SUCCESS);
  }
  keeper_ = pid;
  keeper_ended_ = sys::open_pidfd(pid);
  born_ = looked_at_ = sys::EventLoop::now();
  patience_.has_answered();
  // As late as possible: the yard has the exits from the board if this process is killed before.
  board_.clear();
  send_word(words_, FromGuard{.keeper = pid,
                              .socket = std::move(ends->first),
                              .died = died,
                              .exits = exits,
                              .was_silent = std::exchange(was_silent_, false)});
  return 0;
}

/// The keeper has no user any more.
bool Guard::should_end() const { return !words_.is_open() || yard_.yard_has_ended(); }

/// True if the guard has to wake by itself.
bool Guard::looks() const { return some_left_ || patience_.is_silent() || should_end(); }

void Guard::hear() {
  while (words_.is_open()) {
    Heard<ToGuard> heard = hear_yard(words_);
    if (heard.closed) return words_.close();
    if (!heard.word) return;
    switch (heard.word->kind) {
      case ToGuard::Kind::Silent:
        patience_.falls_silent();
        break;
      case ToGuard::Kind::Answers:
        patience_.has_answered();
        break;
      case ToGuard::Kind::NoMore:
        no_more_ = true;
        break;
      case ToGuard::Kind::RemoveAtEnd:
        yard_.add(std::move(heard.word->path));
        break;
      case ToGuard::Kind::Enter:
        static_cast<void>(::chdir(heard.word->path.c_str()));
        break;
    }
  }
}

std::optional<sys::ProcessStat> Guard::see_keeper() const { return scan_.read(keeper_); }

void Guard::look() {
  if (some_left_) some_left_ = !end_what_is_left();
  if (should_end()) return look_when_it_should_end();
  std::optional<KeeperPatience::Seen> seen;
  if (const auto keeper = see_keeper()) {
    seen = {.state = keeper->state, .major_faults = keeper->major_faults};
  }
  switch (patience_.look(seen)) {
    case KeeperPatience::Step::Wait:
      break;
    case KeeperPatience::Step::Wake:
      ::kill(keeper_, SIGCONT);
      break;
    case KeeperPatience::Step::Kill:
      was_silent_ = true;
      ::kill(keeper_, SIGKILL);
      break;
  }
}

/// A stopped keeper does not notice that its yard is gone.
void Guard::look_when_it_should_end() {
  const auto keeper = see_keeper();
  if (keeper && keeper->state == 'T') ::kill(keeper_, SIGCONT);
  const Duration had{++looks_since_gone_ * options_.look_every.count()};
  if (had >= options_.patience) ::kill(keeper_, SIGKILL);
}

/// Returns how, as waitpid(2) says it.
int Guard::wait_for_its_end() {
  for (;;) {
    std::array<pollfd, 3> ends{{{.fd = keeper_ended_.get(), .events = POLLIN, .revents = 0},
                                {.fd = words_.get(), .events = POLLIN, .revents = 0},
                                {.fd = yard_.yard(), .events = POLLIN, .revents = 0}}};
    // A known end must not wake the guard again.
    if (yard_.yard_has_ended()) ends[2].fd = -1;
    int timeout = -1;
    if (looks()) {
      const Duration left = looked_at_ + options_.look_every - sys::EventLoop::now();
      timeout =
          static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, options_.look_every.count()));
    } else {
      looked_at_ = sys::EventLoop::now();
    }
    static_cast<void>(::poll(ends.data(), ends.size(), timeout));
    if (ends[0].revents != 0 || !keeper_ended_.is_open()) break;
    hear();
    // However long the machine was asleep, it is one look.
    if (!looks() || sys::EventLoop::now() - looked_at_ < options_.look_every) continue;
    looked_at_ = sys::EventLoop::now();
    look();
  }
  // A keeper that could not be watched is of no use.
  if (!keeper_ended_.is_open()) ::kill(keeper_, SIGKILL);
  int status = 0;
  while (::waitpid(keeper_, &status, 0) < 0 && errno == EINTR) {
  }
  keeper_ = 0;
  return status;
}

/// Kills children that are not the keeper: with each that dies its own children become ours. True:
/// there are none.
bool Guard::end_what_is_left() {
  bool none = true;
  for (const pid_t child : children_.read()) {
    if (child == keeper_) continue;
    none = false;
    ::kill(child, SIGKILL);
    static_cast<void>(::waitpid(child, nullptr, WNOHANG));
  }
  return none;
}

/// In a process of its own, as the disk may not answer.
void Guard::note(std::span<const FoundExit> exits) {
  const bool has_orders =
      std::ranges::any_of(exits, [](const FoundExit& it) { return !it.note_order.empty(); });
  const pid_t noter = has_orders ? ::fork() : -1;
  if (noter == 0) {
    ::close_range(0, ~0U, 0);
    note_exits(exits);
    ::_exit(EXIT_SUCCESS);
  }
  if (noter < 0) return;
  if (sys::wait_until_ended(sys::open_pidfd(noter), kNotesMax)) {
    ::waitpid(noter, nullptr, 0);
  } else {
    some_left_ = true;
  }
}

/// Before there is another keeper.
void Guard::end_what_is_left(Duration most) {
  sigset_t ended{};
  ::sigemptyset(&ended);
  ::sigaddset(&ended, SIGCHLD);
  const Duration end = sys::EventLoop::now() + most;
  some_left_ = true;
  while (!end_what_is_left()) {
    if (sys::EventLoop::now() >= end) return;
    ::sigtimedwait(&ended, nullptr, &kLookAgain);
  }
  some_left_ = false;
}

void Guard::count_what_died() {
  const bool at_once = sys::EventLoop::now() - born_ < kSettled * options_.look_every;
  ended_in_a_row_ = at_once ? ended_in_a_row_ + 1 : 1;
}

/// A killed process closes its descriptors a moment before it has ended. A living yard says that it
/// wants no other keeper.
void Guard::wait_for_the_end_of_the_yard() {
  const Duration end = sys::EventLoop::now() + options_.yard_dies_within;
  for (hear(); !yard_.is_empty() && !no_more_ && !yard_.yard_has_ended(); hear()) {
    const Duration left = end - sys::EventLoop::now();
    if (left <= Duration{0}) return;
    std::array<pollfd, 2> ends{{{.fd = words_.get(), .events = POLLIN, .revents = 0},
                                {.fd = yard_.yard(), .events = POLLIN, .revents = 0}}};
    static_cast<void>(
        ::poll(ends.data(), ends.size(), static_cast<int>(std::min(left, kPollMax).count())));
  }
}

void Guard::run() {
  std::optional<int> died;
  std::vector<UnreportedExit> exits;
  for (;;) {
    if (const int error = fork_keeper(died, exits); error != 0) {
      // A machine that has no process to spare may have one in a moment.
      if (died && ++ended_in_a_row_ <= options_.replacements_max) {
        static_cast<void>(::poll(nullptr, 0, static_cast<int>(options_.look_every.count())));
        continue;
      }
      send_word(words_,
                FromGuard{.died = died, .exits = exits, .was_silent = was_silent_, .error = error});
      break;
    }
    died = wait_for_its_end();
    hear();
    if (WIFEXITED(*died) && WEXITSTATUS(*died) == EXIT_SUCCESS) break;
    count_what_died();
    // Processes that the keeper had not reaped are our children now. Of these only an exit with 0
    // counts: the end of the keeper may have killed the rest.
    const std::vector<FoundExit> found = board_.find_ended(exited_well(children_.read()));
    // First: the rest may be a while in going, and who knows the exits may be killed meanwhile.
    end_what_is_left();
    note(found);
    // The next news for the yard is that the end of the tasks is over, too.
    end_what_is_left(kRemainsMax);
    exits.clear();
    for (const FoundExit& it : found) exits.push_back(it.exit);
    const bool too_many = ended_in_a_row_ > options_.replacements_max;
    if (too_many || no_more_ || should_end()) {
      send_word(words_, FromGuard{.died = died,
                                  .exits = exits,
                                  .was_silent = was_silent_,
                                  .in_a_row = too_many ? ended_in_a_row_ : 0});
      break;
    }
  }
  // Nothing whose end somebody could wait for stays open while processes are left. Words of the
  // yard are still received.
  ::shutdown(words_.get(), SHUT_WR);
  let_go_of_streams();
  if (options_.inherited) {
    for (const int number : *options_.inherited) ::close(number);
  }
  end_what_is_left(kForEver);
  wait_for_the_end_of_the_yard();
  yard_.remove();
}

[[noreturn]] void become_guard(const GuardOptions& options, const KeeperBody& body,
                               sys::Descriptor words, pid_t yard, ExitBoard& board) {
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Stays out of directories that a user may want to unmount, and every keeper with it.
  static_cast<void>(::chdir("/"));
  take_signals_of_a_guard();
  Guard(options, body,
        keep_only(std::move(words), {.streams = options.keeps_streams,
                                     .held = options.held,
                                     .inherited = options.inherited}),
        yard, board)
      .run();
  ::_exit(EXIT_SUCCESS);
}

}  // namespace

Result<Guarded> fork_guarded(const GuardOptions& options, const KeeperBody& keeper) {
  auto ends = sys::packet_pair();
  if (!ends) return std::unexpected(std::move(ends.error()).in("cannot fork the keeper"));
  auto board = std::make_unique<ExitBoard>();
  if (options.adopts) {
    // The kernel would reap all children of a process that ignores it.
    ::signal(SIGCHLD, SIG_DFL);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  const pid_t yard = ::getpid();
  const pid_t guard = ::fork();
  if (guard < 0) return std::unexpected(sys::system_error("cannot fork the keeper", errno));
  if (guard == 0) {
    ends->first.close();
    become_guard(options, keeper, std::move(ends->second), yard, *board);
  }
  if (!options.adopts) board.reset();
  if (board) board->keep_from_children();
  return Guarded{.guard = guard, .words = std::move(ends->first), .board = std::move(board)};
}

}  // namespace trainyard::process
