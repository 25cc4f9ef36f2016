// The thread of a pool of processes: how children begin, what they say, and how they end.
#include <algorithm>
#include <csignal>
#include <expected>
#include <iostream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/match.h"
#include "ranks/group.h"
#include "ranks/log_end.h"
#include "sys/token.h"
#include "workers/pool_processes.h"

namespace trainyard::workers {
namespace {

constexpr std::size_t kErrorLinesOfChild = 20;
constexpr Duration kShowErrorsEvery{100};
/// Pieces of 64 KiB that are read at once: a child that prints without end holds up nothing else.
constexpr int kPiecesAtOnce = 64;
/// A child that has closed its connection is about to end by itself.
constexpr Duration kEndsByItself{1'000};
/// How long the kernel may take to end what was killed.
constexpr Duration kKilledWithin{5'000};
/// Reads from a child that has ended: more than a socket holds.
constexpr int kReadsToCatchUp = 1'024;

}  // namespace

void PoolProcesses::run() {
  if (home_->is_private()) show_errors();
  while (!over_) loop_.run_once(std::nullopt);
  with_lock([this] {
    for (const auto& child : children_) {
      disconnect(*child);
      child->state = State::Down;
    }
  });
  server_.reset();
  // Here, as it belongs to this thread.
  home_->end_keeper();
}

/// Does what other threads have asked for.
void PoolProcesses::look_around() {
  for (const auto& child : children_) {
    if (!std::exchange(child->to_end, false)) continue;
    if (child->running) {
      end(*child, Duration(options_.stop_grace.count()));
    } else {
      start_child(*child);
    }
  }
  for (const PoolReleases::Release& each : releases_->take()) {
    const auto child = std::ranges::find_if(
        children_, [&](const auto& it) { return it->connection == each.connection; });
    if (child != children_.end()) (*child)->link->release(each);
  }
  for (const auto& child : children_) watch_writing(*child);
  if (shut_down_ && !ends_) end_all(*shut_down_);
}

void PoolProcesses::start_child(Child& child) {
  child.again = false;
  child.to_end = false;
  child.busy = false;
  child.running = true;
  ++child.life;
  child.not_made.reset();
  child.fault.clear();
  child.errors = std::make_unique<sys::Tail>(log_of(child));
  child.state = State::Starting;
  if (!broken_.empty()) return has_ended(child, model::Vanished{.why = broken_});
  child.token = sys::random_token();
  home_->keeper().start(key_of(child), {.arguments = {server_->path(), child.token},
                                        .working_directory = home_->directory(),
                                        .task_directory = home_->directory(),
                                        .stderr_path = log_of(child),
                                        .forked = true});
}

Result<void> PoolProcesses::admit(link::ConnectionId connection, const wire::Hello& hello) {
  const auto child = std::ranges::find_if(children_, [&](const auto& it) {
    return !it->token.empty() && sys::same_token(it->token, hello.token);
  });
  if (child == children_.end()) {
    const bool has_ended = std::erase_if(unused_tokens_, [&](const std::string& it) {
                             return sys::same_token(it, hello.token);
                           }) > 0;
    // welcomed() does not know it, and its connection ends with it.
    if (has_ended) return {};
    return std::unexpected(Error{"it has no token of this pool, or that has been used"});
  }
  (*child)->token.clear();
  (*child)->connection = connection;
  return {};
}

void PoolProcesses::welcomed(link::ConnectionId connection) {
  const auto found =
      std::ranges::find_if(children_, [&](const auto& it) { return it->connection == connection; });
  if (found == children_.end()) return;
  Child& child = **found;
  auto socket = server_->hand_over(connection);
  if (!socket) {
    return kill_after(Duration(0), child, socket.error().message);
  }
  child.link->connect(std::move(*socket), connection);
  if (child.state == State::Ending) child.link->shut_down();
  loop_.watch_readable(child.link->descriptor(),
                       [this, &child] { with_lock([&] { read(child); }); });
}

void PoolProcesses::read(Child& child) {
  const Result<bool> goes_on = child.link->read();
  std::ranges::move(child.link->take_settled(), std::back_inserter(settled_));
  if (const auto made = child.link->take_made()) {
    if (!*made) {
      child.not_made = made->error();
    } else if (child.state == State::Starting) {
      child.state = State::Up;
      child.link->open();
      watch_writing(child);
    }
  }
  if (goes_on && *goes_on) return;
  disconnect(child);
  if (!goes_on) {
    kill_after(Duration(0), child, goes_on.error().message);
  } else if (child.state != State::Ending) {
    kill_after(kEndsByItself, child, "it had closed its connection");
  }
}

void PoolProcesses::watch_writing(Child& child) {
  if (child.writes || !child.link->has_unsent()) return;
  child.writes = true;
  loop_.when_writable(child.link->descriptor(), [this, &child] {
    with_lock([&] {
      child.writes = false;
      child.link->write_some();
      watch_writing(child);
    });
  });
}

void PoolProcesses::disconnect(Child& child) {
  if (!child.link->is_connected()) return;
  loop_.unwatch(child.link->descriptor());
  child.link->close();
  child.connection.reset();
  child.writes = false;
}

void PoolProcesses::take_news(const process::KeeperNews& news) {
  match(
      news, [](const process::ProcessStarted&) {}, [](const process::RankFailed&) {},
      [](const process::KeeperHeard&) {}, [](const process::KeeperDied&) {},
      [this](const process::KeeperNote& it) { notes_.push_back(it.text); },
      [this](const process::ProcessEnded& it) {
        Child& child = *children_.at(it.key.task.value);
        if (child.running && child.life == it.key.attempt) has_ended(child, it.end);
      },
      // All that it had started is gone.
      [this](const process::KeeperReplaced& it) { all_have_ended(it.why); },
      [this](const process::KeeperGone& it) {
        broken_ = it.why;
        all_have_ended(it.why);
      });
}

void PoolProcesses::all_have_ended(const std::string& why) {
  for (const auto& child : children_) {
    if (child->running) has_ended(*child, model::Vanished{.why = why});
  }
}

void PoolProcesses::has_ended(Child& child, const model::End& end) {
  // Its last words are in its socket.
  for (int i = 0; i < kReadsToCatchUp && child.link->is_connected(); ++i) read(child);
  disconnect(child);
  if (!child.token.empty()) unused_tokens_.push_back(std::exchange(child.token, {}));
  child.running = false;
  if (home_->is_private()) prints_ += unread_errors(child);
  if (child.again && broken_.empty() && !shut_down_) return start_child(child);
  if (child.not_made) {
    child.down = *child.not_made;
  } else {
    child.down = {
        .kind = CallError::Kind::Died, .child = child.index, .message = ranks::end_text(end)};
    if (!child.fault.empty()) child.down.message += " (" + child.fault + ")";
  }
  child.down.stderr_end = ranks::end_of_log(log_of(child), kErrorLinesOfChild);
  child.state = State::Down;
  fail_open(child, child.down);
  over_ = over_ || (ends_ && none_runs());
}

void PoolProcesses::end(Child& child, Duration grace) {
  child.state = State::Ending;
  // One that waits for a call ends by itself, and its object in good order.
  child.link->shut_down();
  if (child.busy) home_->keeper().signal(key_of(child), SIGTERM, grace);
  kill_after(grace, child, {});
}

bool PoolProcesses::none_runs() const {
  return std::ranges::none_of(children_, [](const auto& it) { return it->running; });
}

void PoolProcesses::kill_after(Duration delay, Child& child, std::string why) {
  loop_.after(delay, [this, &child, life = child.life, why = std::move(why)] {
    with_lock([&] {
      if (!child.running || child.life != life) return;
      if (child.fault.empty()) child.fault = why;
      home_->keeper().signal(key_of(child), SIGKILL);
    });
  });
}

void PoolProcesses::end_all(Duration grace) {
  ends_ = true;
  for (const auto& child : children_) {
    if (child->running) end(*child, grace);
  }
  over_ = none_runs();
  // A process that the kernel itself cannot end is left to the keeper.
  loop_.after(grace + kKilledWithin, [this] { over_ = true; });
}

std::string PoolProcesses::unread_errors(Child& child) {
  std::string text;
  for (int i = 0; i < kPiecesAtOnce; ++i) {
    const auto more = child.errors->read_more();
    if (!more || more->empty()) break;
    text += *more;
  }
  return text;
}

/// Without the lock: whoever reads standard error may be slow.
void PoolProcesses::show_errors() {
  for (const auto& child : children_) {
    const std::string more = unread_errors(*child);
    if (!more.empty()) std::cerr << more << std::flush;
  }
  loop_.after(kShowErrorsEvery, [this] { show_errors(); });
}

std::string PoolProcesses::log_of(const Child& child) const {
  if (child.life > 1)
    return fmt::format("{}/child-{}.{}.log", home_->directory(), child.index, child.life);
  return fmt::format("{}/child-{}.log", home_->directory(), child.index);
}

model::AttemptKey PoolProcesses::key_of(const Child& child) {
  return {.task = model::TaskIndex(static_cast<std::uint32_t>(child.index)), .attempt = child.life};
}

void PoolProcesses::note(const std::string& what) const {
  if (options_.note) return options_.note(what);
  std::cerr << "trainyard: " << what << '\n' << std::flush;
}

}  // namespace trainyard::workers
