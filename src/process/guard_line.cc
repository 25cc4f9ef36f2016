#include "process/guard_line.h"

#include <csignal>
#include <expected>
#include <utility>

#include <sys/wait.h>

#include "sys/pidfd.h"

namespace trainyard::process {

GuardLine::GuardLine(Guarded guarded)
    : guard_(guarded.guard),
      words_(std::move(guarded.words)),
      ended_(sys::open_pidfd(guarded.guard)),
      board_(std::move(guarded.board)) {}

Result<GuardLine::Made> GuardLine::make(const GuardOptions& options, const KeeperBody& keeper) {
  Result<Guarded> guarded = fork_guarded(options, keeper);
  if (!guarded) return std::unexpected(std::move(guarded.error()));
  GuardLine line(std::move(*guarded));
  Heard<FromGuard> heard = hear_guard(line.words_, /*waits=*/true);
  if (heard.word && heard.word->keeper) {
    return Made{.line = std::move(line), .first = *std::move(heard.word)};
  }
  line.let_go();
  static_cast<void>(::waitpid(line.guard_, nullptr, 0));
  if (heard.word && heard.word->error != 0) {
    return std::unexpected(sys::system_error("cannot fork the keeper", heard.word->error));
  }
  Error killed{"cannot fork the keeper: its guard was killed"};
  killed.of_machine = true;  // As by a kernel that is out of memory: a later start may succeed.
  return std::unexpected(std::move(killed));
}

std::optional<FromGuard> GuardLine::hear() {
  if (!words_.is_open() || closed_) return std::nullopt;
  Heard<FromGuard> heard = hear_guard(words_);
  closed_ = heard.closed;
  return std::move(heard.word);
}

void GuardLine::remove_at_end(const std::string& path) {
  send_word(words_, ToGuard{.kind = ToGuard::Kind::RemoveAtEnd, .path = path});
}

void GuardLine::enter(const std::string& directory) {
  send_word(words_, ToGuard{.kind = ToGuard::Kind::Enter, .path = directory});
}

std::optional<int> GuardLine::wait_until_ended(Duration most) {
  if (signal_) return signal_;
  if (!sys::wait_until_ended(ended_, most)) return std::nullopt;
  int status = 0;
  if (::waitpid(guard_, &status, WNOHANG) == 0) return std::nullopt;
  signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return signal_;
}

void GuardLine::send_signal(int signal) const {
  if (!signal_) sys::send_signal(ended_, signal);
}

std::vector<FoundExit> GuardLine::exits_left(std::span<const pid_t> unreaped) const {
  if (!board_ || !signal_) return {};
  return board_->find_ended(unreaped);
}

}  // namespace trainyard::process
