// The news for the yard: from its keeper, and from the guard if the keeper has died.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "process/exit_board.h"
#include "process/guard_line.h"
#include "process/guard_words.h"
#include "process/keeper.h"
#include "process/keeper_message.h"
#include "process/keeper_state.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/pidfd.h"

namespace trainyard::process {
namespace {

/// The number of looks, a second apart, for the guard's word about the replacement of a dead
/// keeper.
constexpr int kWaitsMax = 60;
constexpr Duration kWait{1'000};

}  // namespace

void Keeper::State::watch() {
  loop->watch_readable(socket.get(), [this] { read(); });
}

void Keeper::State::read() {
  std::vector<KeeperNews> news;
  if (!read_what_is_there(news)) has_died(news);
  tell(std::move(news));
}

bool Keeper::State::read_what_is_there(std::vector<KeeperNews>& news) {
  std::array<char, 65536> buffer;  // NOLINT(*-member-init): written by recv, and large.
  const auto take_message = [&news](KeeperMessage message) {
    return match(
        std::move(message),
        [&](ProcessStarted it) { return news.emplace_back(std::move(it)), true; },
        [&](RankFailed it) { return news.emplace_back(std::move(it)), true; },
        [&](ProcessEnded it) { return news.emplace_back(std::move(it)), true; },
        [&](KeeperNote it) { return news.emplace_back(std::move(it)), true; },
        [](Pulse) { return true; }, [](const auto&) { return false; });
  };
  for (;;) {
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    has_answered(news);
    reader.add({buffer.data(), static_cast<std::size_t>(got)});
    for (;;) {
      Result<std::optional<KeeperMessage>> message = reader.next();
      if (message) {
        std::optional<KeeperMessage>& whole = *message;
        if (!whole) break;
        if (take_message(std::move(*whole))) continue;
      }
      // The message is not valid, and the next ones would not be either: another keeper is to take
      // its place.
      sys::send_signal(ended, SIGKILL);
      return false;
    }
    if (got < static_cast<ssize_t>(buffer.size())) return true;
  }
}

/// Any message will do: it shows that the keeper is there.
void Keeper::State::has_answered(std::vector<KeeperNews>& news) {
  heard_at = sys::EventLoop::now();
  asked_at.reset();
  if (!std::exchange(silent, false)) return;
  guard.tell(ToGuard::Kind::Answers);
  news.emplace_back(KeeperHeard{.silent = false});
}

void Keeper::State::has_died(std::vector<KeeperNews>& news) {
  if (dead || gone) return;
  dead = true;
  loop->unwatch(socket.get());
  socket.close();
  reader = {};
  outgoing.clear();
  asked_at.reset();
  silent = false;
  news.emplace_back(KeeperDied{});
  waits_for_another = 0;
  wait_for_another();
}

/// The guard says at once what follows, unless it is stopped itself; a keeper without a guard exits
/// soon, unless it is stopped.
void Keeper::State::wait_for_another() {
  loop->after(kWait, [weak = std::weak_ptr(alive)] {
    const auto shared = weak.lock();
    if (shared == nullptr) return;
    State& state = **shared;
    if (!state.dead || state.gone) return;
    const bool unguarded = state.guard.is_closed();
    if (unguarded) {
      sys::send_signal(state.ended, SIGCONT);
    } else {
      state.guard.send_signal(SIGCONT);
    }
    if (++state.waits_for_another < kWaitsMax) return state.wait_for_another();
    std::vector<KeeperNews> news;
    state.be_gone(news, unguarded
                            ? state.how_guard_ended()
                            : fmt::format("the guard of the keeper (process {}) does not answer",
                                          state.guard.pid()));
    state.tell(std::move(news));
  });
}

void Keeper::State::hear_guard() {
  std::vector<KeeperNews> news;
  while (!gone) {
    std::optional<FromGuard> word = guard.hear();
    if (!word) break;
    // The last news of the previous keeper comes first.
    if (!dead) static_cast<void>(read_what_is_there(news));
    has_died(news);
    if (word->keeper) {
      take(*std::move(word), news);
    } else {
      be_gone(news, why_no_other(*word), std::move(word->exits));
    }
  }
  if (guard.is_closed() && !gone) {
    if (!dead) static_cast<void>(read_what_is_there(news));
    has_died(news);
    // Without that word it would wait for our end, to remove what we leave.
    guard.tell(ToGuard::Kind::NoMore);
    loop->unwatch(guard.words().get());
    wait_for_its_end(news);
  }
  tell(std::move(news));
}

/// A keeper without a guard ends its tasks, and notes how each of them has ended: until it has
/// exited, more ends may be noted.
void Keeper::State::wait_for_its_end(std::vector<KeeperNews>& news) {
  if (!ended.is_open() || sys::wait_until_ended(ended, Duration{0})) return both_have_ended(news);
  loop->watch_readable(ended.get(), [this] {
    std::vector<KeeperNews> last;
    both_have_ended(last);
    tell(std::move(last));
  });
}

/// The kernel hands the children of the two to a yard that adopts, before it reports their ends.
void Keeper::State::both_have_ended(std::vector<KeeperNews>& news) {
  std::string why = how_guard_ended();
  std::vector<UnreportedExit> exits;
  if (children) {
    ::waitid(P_PIDFD, static_cast<id_t>(ended.get()), nullptr, WEXITED | WNOHANG);
    for (const FoundExit& it : guard.exits_left(exited_well(children->read()))) {
      // A keeper without a guard tells everything to end: such an exit says nothing.
      if (!it.exit.was_signalled) exits.push_back(it.exit);
    }
  }
  be_gone(news, std::move(why), std::move(exits));
}

void Keeper::State::take(FromGuard word, std::vector<KeeperNews>& news) {
  std::string why = how_it_died(word);
  dead = false;
  keeper = word.keeper.value_or(0);
  ended = sys::open_pidfd(keeper);
  socket = std::move(word.socket);
  heard_at = sys::EventLoop::now();
  outgoing.insert(0, for_every_keeper + lease);
  watch();
  news.emplace_back(
      KeeperReplaced{.pid = keeper, .why = std::move(why), .exits = std::move(word.exits)});
  flush_planned = false;
  plan_flush();
}

void Keeper::State::be_gone(std::vector<KeeperNews>& news, std::string why,
                            std::vector<UnreportedExit> exits) {
  if (std::exchange(gone, true)) return;
  if (!dead) loop->unwatch(socket.get());
  loop->unwatch(guard.words().get());
  loop->unwatch(ended.get());
  outgoing.clear();
  news.emplace_back(KeeperGone{.why = std::move(why), .exits = std::move(exits)});
}

/// Empty where none has died.
std::string Keeper::State::how_it_died(const FromGuard& word) const {
  if (!word.died) return "";
  const int status = *word.died;
  if (word.was_silent) {
    return fmt::format("the keeper (process {}) did not respond for too long, and was killed",
                       keeper);
  }
  if (WIFSIGNALED(status)) {
    return fmt::format("the keeper (process {}) was killed by signal {}", keeper, WTERMSIG(status));
  }
  return fmt::format("the keeper (process {}) exited with code {}", keeper, WEXITSTATUS(status));
}

std::string Keeper::State::why_no_other(const FromGuard& last) const {
  std::string why = last.died ? how_it_died(last) : std::string("there is no keeper");
  if (last.error != 0) {
    return fmt::format("{}, and no other can be forked: {}", why, sys::error_text(last.error));
  }
  if (last.in_a_row > 0) why += fmt::format("; {} in a row have ended at once", last.in_a_row);
  return why;
}

std::string Keeper::State::how_guard_ended() {
  const std::optional<int> signal = guard.wait_until_ended(kWait);
  if (!signal) return fmt::format("the guard of the keeper (process {}) has left it", guard.pid());
  if (*signal == 0) return fmt::format("the keeper (process {}) exited", keeper);
  return fmt::format("the guard of the keeper (process {}) was killed by signal {}", guard.pid(),
                     *signal);
}

void Keeper::State::tell(std::vector<KeeperNews> news) {
  if (!news.empty()) listener(news);
}

void Keeper::State::tell_own_news() {
  // Waits until there is a listener.
  if (loop == nullptr) return;
  loop->post([weak = std::weak_ptr(alive)] {
    const auto shared = weak.lock();
    if (shared == nullptr) return;
    State& state = **shared;
    state.tell(std::exchange(state.own_news, {}));
  });
}

}  // namespace trainyard::process
