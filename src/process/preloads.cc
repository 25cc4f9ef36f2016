#include "process/preloads.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "process/start.h"
#include "process/start_failure.h"

namespace trainyard::process {
namespace {

/// The maximum number of importing processes that may die while they have a launch.
constexpr int kTriesMax = 2;

bool alike(const model::Launch& one, const model::Launch& other) {
  const model::Preload& its = other.preload;
  return one.preload.modules == its.modules && one.preload.path == its.path &&
         one.preload.environment == its.environment && one.preload.interpreter == its.interpreter &&
         one.working_directory == other.working_directory &&
         std::equal(one.arguments.begin(),
                    one.arguments.begin() + static_cast<std::ptrdiff_t>(its.interpreter),
                    other.arguments.begin());
}

}  // namespace

Preloads::Servers::iterator Preloads::find(const model::Launch& launch) {
  return std::ranges::find_if(servers_, [&launch](const Server& server) {
    return !server.ending && alike(server.pattern, launch);
  });
}

/// Makes room for one more. Processes that only wait to be used again give way to it.
bool Preloads::make_room() {
  const auto counts = std::ranges::count_if(servers_, [](const Server& it) { return !it.ending; });
  if (std::cmp_less(counts, kServersMax)) return true;
  Server* longest = nullptr;
  Clock::time_point since = Clock::time_point::max();
  for (Server& server : servers_) {
    const Clock::time_point idle = server.idle_since.value_or(since);
    if (server.ending || idle >= since) continue;
    longest = &server;
    since = idle;
  }
  if (longest == nullptr) return false;
  end(*longest);
  return true;
}

void Preloads::end(Server& server) {
  server.ending = true;
  server.idle_since.reset();
  if (server.process) server.process->kill();
}

bool Preloads::take(model::AttemptKey key, const model::Launch& launch) {
  auto found = find(launch);
  if (found == servers_.end()) {
    if (!make_room()) return false;
    found = servers_.insert(servers_.end(),
                            Server{.number = ++last_number_, .pattern = launch, .process = {}});
  }
  Server& server = *found;
  server.idle_since.reset();
  server.waiting.push_back({.key = key, .launch = launch});
  if (!server.process) {
    start(server);
  } else if (!server.killed) {
    ask(server);
  }
  rest(server, Clock::now());
  erase_if_done(found);
  return true;
}

void Preloads::erase_if_done(Servers::iterator server) {
  if (!server->process && server->waiting.empty()) servers_.erase(server);
}

void Preloads::start(Server& server) {
  Result<PreloadServer> started = PreloadServer::start(spawner_, server.pattern);
  if (!started) return refuse_all(server, started.error());
  server.process = std::make_unique<PreloadServer>(std::move(*started));
  server.late_at = Clock::now() + options_.late_after;
  options_.session(server.process->pid(), true);
  const std::uint64_t event = kEvents | server.number;
  if (options_.watch(server.process->socket(), event) &&
      options_.watch(server.process->pidfd(), event)) {
    return;
  }
  // A process that is not watched cannot be waited for.
  options_.session(server.process->pid(), false);
  server.process->abandon();
  server.process.reset();
  refuse_all(server, Error{"cannot watch the process that imports beforehand"});
}

void Preloads::ask(Server& server) {
  while (server.process && server.process->is_ready() && !server.process->is_busy() &&
         !server.waiting.empty()) {
    const Result<void> asked = server.process->launch(spawner_, server.waiting.front().launch);
    if (asked) {
      server.answer_by = Clock::now() + options_.answer_max;
    } else {
      finish(server, std::unexpected(model::End(not_started(asked.error()))));
    }
  }
}

void Preloads::finish(Server& server, std::expected<Spawned, model::End> process) {
  server.answer_by.reset();
  Waiting first = std::move(server.waiting.front());
  server.waiting.pop_front();
  if (process) {
    ++server.users;
    server_of_[first.key] = server.number;
  }
  outcomes_.push_back({.key = first.key, .process = std::move(process), .signal = first.signal});
}

bool Preloads::signal(const SignalMessage& message) {
  for (Server& server : servers_) {
    const auto found = std::ranges::find(server.waiting, message.key, &Waiting::key);
    if (found == server.waiting.end()) continue;
    const bool asked_for =
        found == server.waiting.begin() && server.process && server.process->is_busy();
    if (asked_for && message.signal != SIGKILL) {
      found->signal = message;
      return true;
    }
    if (asked_for) {
      // Its process may be anywhere on its way; none of the others is to blame.
      server.killed = true;
      server.answer_by.reset();
      server.process->kill();
    }
    outcomes_.push_back(
        {.key = found->key,
         .process = std::unexpected(model::End(model::KilledBy{.signal = message.signal})),
         .signal = {}});
    server.waiting.erase(found);
    rest(server, Clock::now());
    return true;
  }
  return false;
}

void Preloads::forget(model::AttemptKey key) {
  const auto mine = server_of_.extract(key);
  if (mine.empty()) return;
  const auto server = std::ranges::find(servers_, mine.mapped(), &Server::number);
  if (server == servers_.end()) return;
  --server->users;
  rest(*server, Clock::now());
}

void Preloads::rest(Server& server, Clock::time_point now) {
  const bool unused = server.users == 0 && server.waiting.empty() && !server.ending;
  if (unused && !server.idle_since) server.idle_since = now;
}

void Preloads::about(std::uint64_t number, Clock::time_point now) {
  const auto found = std::ranges::find(servers_, number & ~kEvents, &Server::number);
  if (found == servers_.end() || !found->process) return;
  Server& server = *found;
  // A process that is to end may have forked a task for no launch, which ends without its
  // permission to go on.
  const bool deaf = server.ending || server.killed;
  const bool ready_before = server.process->is_ready();
  if (auto told = deaf ? std::nullopt : server.process->hear()) {
    if (*told) {
      finish(server, std::move(**told));
    } else {
      finish(server, std::unexpected(model::End(not_started(std::move(*told).error()))));
    }
  }
  if (server.process->is_ready() && !ready_before) {
    for (const std::string& note : server.process->notes()) notes_.push_back("preload: " + note);
  }
  if (!deaf) ask(server);
  if (server.process->has_ended()) {
    has_ended(server);
    erase_if_done(found);
  } else {
    rest(server, now);
  }
}

void Preloads::has_ended(Server& server) {
  const bool was_busy = server.process->is_busy();
  const PreloadServer::Ended ended = server.process->bury();
  options_.session(server.process->pid(), false);
  server.process.reset();
  server.answer_by.reset();
  if (server.ending || server.waiting.empty()) return;
  if (!std::exchange(server.killed, false)) {
    for (Waiting& each : server.waiting) {
      ++each.tries;
      if (was_busy) break;  // That launch alone was to blame.
    }
  }
  if (!ended.cured) return refuse_all(server, Error{ended.why});
  while (!server.waiting.empty() && server.waiting.front().tries >= kTriesMax) {
    finish(server, std::unexpected(model::End(model::NotStarted{.why = ended.why})));
  }
  if (!server.waiting.empty()) start(server);
}

void Preloads::refuse_all(Server& server, const Error& why) {
  while (!server.waiting.empty()) finish(server, std::unexpected(model::End(not_started(why))));
}

std::vector<Preloads::Outcome> Preloads::take_outcomes() { return std::exchange(outcomes_, {}); }
std::vector<std::string> Preloads::take_notes() { return std::exchange(notes_, {}); }

void Preloads::look_at_the_clock(Clock::time_point now) {
  for (Server& server : servers_) {
    if (server.idle_since && now >= *server.idle_since + options_.idle_max) end(server);
    if (server.late_at && now >= *server.late_at) {
      server.late_at.reset();
      std::string why =
          server.process ? server.process->why_late(options_.late_after) : std::string();
      if (!why.empty()) notes_.push_back("preload: " + std::move(why));
    }
    if (!server.answer_by || now < *server.answer_by) continue;
    server.answer_by.reset();
    if (server.process) server.process->kill();
  }
}

void Preloads::wait_longer(Clock::duration away) {
  for (Server& server : servers_) {
    if (server.answer_by) *server.answer_by += away;
    if (server.late_at) *server.late_at += away;
  }
}

std::optional<Preloads::Clock::time_point> Preloads::wake_at() const {
  std::optional<Clock::time_point> at;
  const auto sooner = [&at](Clock::time_point other) { at = at ? std::min(*at, other) : other; };
  for (const Server& server : servers_) {
    if (server.idle_since) sooner(*server.idle_since + options_.idle_max);
    if (server.answer_by) sooner(*server.answer_by);
    if (server.late_at) sooner(*server.late_at);
  }
  return at;
}

void Preloads::end_all() {
  for (Server& server : servers_) {
    server.waiting.clear();
    end(server);
  }
}

}  // namespace trainyard::process
