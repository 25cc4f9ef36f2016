// The part of the keeper's process that ends everything: when the yard is gone, or the guard.
#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>
#include <variant>

#include <sys/epoll.h>

#include "base/result.h"
#include "base/time.h"
#include "process/keeper_message.h"
#include "process/keeper_process.h"
#include "sys/clock.h"

namespace trainyard::process {
namespace {

/// The time for tasks to exit after SIGKILL when the yard is gone.
constexpr Duration kGiveUpAfterKill{4000};

}  // namespace

void KeeperProcess::yard_has_gone() {
  yard_gone_ = true;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
  outgoing_.clear();
  flush_at_.reset();
  const bool at_once = options_.kills_when_yard_dies && !yard_has_left_;
  kill_at_ = Clock::now() + (at_once ? Duration{0} : options_.stop_grace);
  waiting_.clear();
  // A process may wait for the end of descriptors that the program had open.
  spawner_.close_inherited();
  preloads_.end_all();
  attempts_.end_those_on_their_way();
  // end_everything() sends the KILL, in this turn where it is due.
  if (!at_once) {
    attempts_.signal_everything(SIGTERM, options_.stop_grace, reader_of_ends_.pid());
  }
  look_ = true;
  note_again();
}

/// Its end is told of once: what ends because of it does not begin again. Without a timer nobody
/// could promise what the lease does.
void KeeperProcess::take_lease(Duration until) {
  if (!lease_) {
    Result<sys::BootAlarm> alarm = sys::BootAlarm::make();
    if (!alarm) return yard_has_gone();
    epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = kLeaseEvent}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, alarm->descriptor().get(), &event) != 0) {
      return yard_has_gone();
    }
    lease_ = std::move(*alarm);
  }
  lease_->set(until);
}

/// Nothing is started any more, but the last of it may be what has to be known at the end.
void KeeperProcess::hear_what_was_said() {
  do {
    for (;;) {
      Result<std::optional<KeeperMessage>> message = reader_.next();
      if (!message) break;
      std::optional<KeeperMessage>& whole = *message;
      if (!whole) break;
      const bool is_start = std::holds_alternative<StartMessage>(*whole);
      if (!is_start) take(*std::move(whole));
    }
    more_messages_ = false;
    read_socket();
  } while (more_messages_);
}

void KeeperProcess::guard_has_gone() {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, guard_.get(), nullptr);
  guard_.close();
  hear_what_was_said();
  options_.stop_grace = std::min(options_.stop_grace, options_.unguarded_grace);
  if (!yard_gone_) yard_has_gone();
  kill_at_ = std::min(kill_at_, Clock::now() + options_.stop_grace);
  // The yard must learn of this at once, so that it takes no task for one that failed.
  socket_.close();
}

void KeeperProcess::end_everything() {
  outgoing_.clear();
  flush_at_.reset();
  const Clock::time_point now = Clock::now();
  if (!killing_ && now >= kill_at_) {
    killing_ = true;
    give_up_at_ = now + kGiveUpAfterKill;
  }
  // Each time something ends, as it may have left something behind.
  if (killing_) attempts_.signal_everything(SIGKILL, {}, reader_of_ends_.pid());
}

}  // namespace trainyard::process
