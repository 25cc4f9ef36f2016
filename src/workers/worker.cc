#include "trainyard/worker.h"

#include <algorithm>
#include <expected>
#include <iostream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/time.h"
#include "base/utf8.h"
#include "link/conversation.h"
#include "link/frame_socket.h"
#include "pipeline/bus_remote.h"
#include "ranks/shared_arenas.h"
#include "sys/environment.h"
#include "sys/this_process.h"
#include "wire/hello.h"
#include "workers/worker_state.h"

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;

constexpr const char* kParent = "the parent of this worker";
/// The router answers at once, unless what this worker emits waits for others.
constexpr auto kStatusWithin = 60s;

/// By the clock of the router's event loop.
std::int64_t monotonic_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

PeerChange::What what_of(const std::string& change) {
  if (change == "again") return PeerChange::What::Again;
  if (change == "finished") return PeerChange::What::Finished;
  if (change == "lost") return PeerChange::What::Lost;
  if (change == "failed") return PeerChange::What::Failed;
  return PeerChange::What::Ready;
}

}  // namespace

WorkerState::WorkerState(Place its_place) : place(std::move(its_place)) {
  for (const std::string& role : place.roles) roles.push_back(Role{role});
}

WorkerState::~WorkerState() {
  if (channel) channel->close();
}

Worker WorkerState::handle_to(std::shared_ptr<WorkerState> state) {
  WorkerState* const it = state.get();
  return Worker(std::shared_ptr<WorkerState>(it, [held = std::move(state)](WorkerState* worker) {
    if (worker->channel) worker->channel->close();
  }));
}

Result<Worker> WorkerState::join(Place place) {
  auto state = std::make_shared<WorkerState>(std::move(place));
  if (state->place.socket.empty()) return handle_to(std::move(state));
  link::Conversation conversation(
      {.with = kParent, .within = Duration(30'000), .limits = wire::kWorkerLimits});
  Result<void> there = conversation.connect(state->place.socket);
  if (!there) return std::unexpected(std::move(there.error()));
  // The router may say something together with its welcome.
  link::FrameSocket socket(conversation.take_socket(), wire::kWorkerLimits);
  there = link::greet(socket,
                      {.role = wire::Role::Worker,
                       .version = 1,
                       .program = "trainyard worker",
                       .token = std::exchange(state->place.token, {}),
                       .rank = state->place.node,
                       .ranks = state->place.count},
                      kParent);
  if (!there) return std::unexpected(std::move(there.error()));
  const std::weak_ptr<WorkerState> weak = state;
  const auto with = [weak](auto act) {
    if (const auto alive = weak.lock()) act(*alive);
  };
  state->channel = Channel::start(
      std::move(socket),
      {.node = state->place.node,
       .life = state->place.life,
       .on_peer =
           [with](const wire::PeerWord& it) { with([&](auto& me) { me.peer_changed(it); }); },
       .on_roll =
           [with](const wire::RollWord& it) { with([&](auto& me) { me.roll_changed(it); }); },
       .on_lost = [with](const wire::LostWord& it) { with([&](auto& me) { me.lost(it); }); },
       .on_end = [with](const wire::EndWord& it) { with([&](auto& me) { me.end(it); }); },
       .on_refused = [with](const std::string& why) { with([&](auto& me) { me.refused(why); }); },
       .on_bus_gone =
           [with](const detail::BusState& bus) { with([&](auto& me) { me.bus_gone(bus); }); }});
  return handle_to(std::move(state));
}

bool WorkerState::connect(EventBus& bus, PipelineBase* loop, Follow follow) {
  auto state = detail::BusAccess::state_of(bus);
  {
    const std::scoped_lock lock(mutex_);
    const auto known = std::ranges::find(connected_, state, &Connected::bus);
    if (known != connected_.end()) {
      if (loop == nullptr) return false;
      known->follow = follow;
      known->finish = loop->finisher();
      return std::exchange(known->loop, loop) == nullptr;
    }
    connected_.push_back({.bus = state,
                          .loop = loop,
                          .finish = loop == nullptr ? nullptr : loop->finisher(),
                          .follow = follow});
  }
  channel->connect(state);
  return true;
}

void WorkerState::connect(PipelineBase& loop, Follow follow) {
  if (!channel) return;
  if (!connect(loop.events(), &loop, follow)) return;
  const std::weak_ptr<WorkerState> weak = weak_from_this();
  loop.around_runs(
      [weak, &loop] {
        if (const auto alive = weak.lock()) alive->run_begins(loop);
      },
      [weak](const RunResult& result) {
        if (const auto alive = weak.lock()) alive->finish(result.outcome, result.why);
      });
}

void WorkerState::bus_gone(const detail::BusState& bus) {
  std::vector<Connected> gone;  // Destroyed without the lock.
  const std::scoped_lock lock(mutex_);
  const auto rest =
      std::ranges::partition(connected_, [&](const Connected& it) { return it.bus.get() != &bus; });
  std::ranges::move(rest, std::back_inserter(gone));
  connected_.erase(rest.begin(), rest.end());
}

void WorkerState::finish(Outcome outcome, const std::string& why) {
  if (!channel) return;
  if (outcome == Outcome::Failed && !failed_.exchange(true)) channel->begin_to_fail();
  const std::string text = valid_utf8(why);
  channel->report(
      wire::FinishWord{.outcome = std::string(to_text(outcome)),
                       .why = std::string(utf8_prefix(text, wire::kFinishWhyBytesMax))});
  const Result<void> said = channel->flush();
  if (said) return;
  std::cerr << fmt::format("trainyard: worker {} has {}: {}\n  the run was not told: {}\n",
                           place.node, to_text(outcome), text, said.error().message)
            << std::flush;
}

template <class P>
void WorkerState::tell(const Event<P>& event, const P& payload) {
  const auto connected = [this] {
    const std::scoped_lock lock(mutex_);
    return connected_;
  };
  for (const Connected& each : connected()) {
    each.bus->notify({.name = event.name, .type = detail::kPayloadType<P>, .payload = &payload});
  }
}

bool WorkerState::is_followed(const Follow& follow, const wire::PeerWord& word) const {
  switch (follow.whom) {
    case Follow::Whom::All:
      return true;
    case Follow::Whom::Role:
      return std::ranges::find(word.roles, follow.role.name) != word.roles.end();
    case Follow::Whom::Nobody:
      return false;
    case Follow::Whom::UntilAll:
      return static_cast<int>(over_.size()) >= place.count - 1;
  }
  return false;
}

void WorkerState::peer_changed(const wire::PeerWord& word) {
  const PeerChange change{.node = word.node,
                          .what = what_of(word.change),
                          .outcome = word.outcome,
                          .why = word.why,
                          .roles = word.roles};
  Endings endings;
  if (change.what == PeerChange::What::Finished) {
    const std::scoped_lock lock(mutex_);
    over_[word.node] = word;
    for (const Connected& each : connected_) follow(each, word, endings);
  }
  end_all(endings);
  tell_watchers(&change);
  tell(kPeerChange, change);
}

void WorkerState::roll_changed(const wire::RollWord& word) {
  {
    const std::scoped_lock lock(mutex_);
    roll_ = word;
  }
  tell_watchers(nullptr);
}

Senders WorkerState::senders(Role role) {
  const std::scoped_lock lock(mutex_);
  return roll_ ? senders_of(*roll_, over_, place.node, role.name) : Senders{};
}

void WorkerState::watch_senders(const std::shared_ptr<const Watcher>& watcher) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(watchers_, [](const auto& it) { return it.expired(); });
  watchers_.push_back(watcher);
}

void WorkerState::tell_watchers(const PeerChange* change) {
  const auto watchers = [this] {
    const std::scoped_lock lock(mutex_);
    return watchers_;
  };
  for (const auto& each : watchers()) {
    if (const auto alive = each.lock()) (*alive)(change);
  }
}

void WorkerState::follow(const Connected& connected, const wire::PeerWord& word,
                         Endings& endings) const {
  if (connected.loop == nullptr || !is_followed(connected.follow, word)) return;
  endings.push_back(
      {.finish = connected.finish,
       .why = fmt::format("worker {} has ended ({}){}{}", word.node, word.outcome,
                          word.why.empty() ? "" : ": ", word.why),
       .outcome = word.outcome == to_text(Outcome::Failed) ? Outcome::Failed : Outcome::Finished});
}

void WorkerState::end_all(const Endings& endings) {
  for (const auto& [finish, why, outcome] : endings) finish(why, outcome);
}

void WorkerState::run_begins(const PipelineBase& loop) {
  if (failed_.exchange(false)) channel->has_failed();
  channel->settle();
  channel->report(wire::BeginWord{});
  static_cast<void>(channel->flush());
  // An end that came before this run ends it, too: that of the whole run, or of one worker that
  // sends nothing any more.
  Endings endings;
  {
    const std::scoped_lock lock(mutex_);
    for (const Connected& each : connected_) {
      if (each.loop != &loop) continue;
      if (end_) endings.push_back(ending_by(*end_, each));
      for (const auto& [node, word] : over_) follow(each, word, endings);
    }
  }
  end_all(endings);
}

void WorkerState::lost(const wire::LostWord& word) {
  if (!word.refused) {
    return tell(kEventsLost,
                EventsLost{.event = word.name, .node = word.node, .count = word.count});
  }
  const auto connected = [this] {
    const std::scoped_lock lock(mutex_);
    return connected_;
  };
  for (const Connected& each : connected()) {
    each.bus->tell(word.name,
                   fmt::format("did not reach worker {} {} times: {}", word.node, word.count,
                               word.why.empty() ? "its queue was full" : word.why));
  }
}

WorkerState::Ending WorkerState::ending_by(const wire::EndWord& word, const Connected& connected) {
  return {.finish = connected.finish,
          .why = word.why,
          .outcome = word.stopped ? Outcome::Stopped : Outcome::Failed};
}

void WorkerState::end(const wire::EndWord& word) {
  Endings endings;
  {
    const std::scoped_lock lock(mutex_);
    end_ = word;
    for (const Connected& each : connected_) {
      if (each.loop != nullptr) endings.push_back(ending_by(word, each));
    }
  }
  end_all(endings);
  ending.request_stop();
}

void WorkerState::refused(const std::string& why) {
  const auto connected = [this] {
    const std::scoped_lock lock(mutex_);
    return connected_;
  };
  // It fails its pipeline: what it emitted last may have come to nobody.
  for (const Connected& each : connected()) each.bus->tell("trainyard.worker", why);
  end({.why = why});
}

Result<wire::WorkerReply> WorkerState::ask(const wire::WorkerRequest& request, Timeout within,
                                           const std::stop_token& stop) {
  if (!channel) return wire::WorkerReply{};
  auto reply = channel->ask(request, within, stop);
  if (reply && !reply->error.empty()) return std::unexpected(Error{reply->error});
  return reply;
}

Result<void> WorkerState::meet(const wire::WorkerRequest& request, Timeout within,
                               const std::stop_token& stop) {
  std::stop_source either;
  const std::stop_callback at_stop(stop, [&either] { either.request_stop(); });
  const std::stop_callback at_end(ending.get_token(), [&either] { either.request_stop(); });
  const auto reply = ask(request, within, either.get_token());
  if (reply) return {};
  // The end of the run came first, so it counts, and not the outcome of the meeting.
  if (!ending.stop_requested()) return std::unexpected(reply.error());
  const std::scoped_lock lock(mutex_);
  return std::unexpected(end_ ? Error{"the run ends: " + end_->why} : reply.error());
}

}  // namespace trainyard::workers

namespace trainyard {

Result<Worker> Worker::from_environment() {
  const auto text = sys::variable(workers::kPlaceVariable);
  const auto token = sys::variable(workers::kTokenVariable);
  // A fact of the process, as its environment is. A fork of it is another process.
  static std::atomic<std::int64_t> worker_process = 0;
  const std::int64_t process = sys::own_pid();
  if (!text && worker_process == process) {
    return std::unexpected(
        Error{"Worker::from_environment() was called already in this process, which is one worker: "
              "keep what it returned, or use Worker::alone()"});
  }
  if (!text) return workers::WorkerState::join({});
  worker_process = process;
  // A process that this one starts is no worker.
  for (const char* const name : {workers::kPlaceVariable, workers::kTokenVariable}) {
    sys::set_variable(std::string(name) + "=");
  }
  auto place = workers::read_place(*text);
  if (!place) return std::unexpected(std::move(place.error()));
  place->token = token.value_or("");
  return workers::WorkerState::join(*std::move(place));
}

Worker Worker::alone() { return workers::WorkerState::join({}).value(); }

int Worker::node() const { return state_->place.node; }
int Worker::count() const { return state_->place.count; }
int Worker::index() const { return state_->place.index; }
int Worker::life() const { return static_cast<int>(state_->place.life); }
int Worker::port() const { return state_->place.port; }
bool Worker::is_alone() const { return state_->channel == nullptr; }
const std::vector<std::string>& Worker::labels() const { return state_->place.labels; }
const std::vector<Role>& Worker::roles() const { return state_->roles; }

bool Worker::has_role(Role role) const {
  return roles().empty() || std::ranges::find(roles(), role) != roles().end();
}

PipelineOptions Worker::pipeline(PipelineOptions options) const {
  if (!is_alone()) options.node = node();
  options.labels.insert(options.labels.end(), labels().begin(), labels().end());
  options.roles.insert(options.roles.end(), roles().begin(), roles().end());
  return options;
}

void Worker::connect(EventBus& bus) const {
  if (!is_alone()) state_->connect(bus, nullptr, follow_nobody);
}
void Worker::connect(PipelineBase& loop, Follow follow) const { state_->connect(loop, follow); }

Result<void> Worker::ready(int workers, Timeout within, const std::stop_token& stop) const {
  if (workers < 0 || workers >= wire::kNodesMax) {
    return std::unexpected(Error{fmt::format("there are no {} workers to wait for", workers)});
  }
  return state_->meet(wire::ReadyRequest{.workers = workers,
                                         .within_ms = within.milliseconds().count(),
                                         .asked_ms = workers::monotonic_ms()},
                      within, stop);
}

Result<void> Worker::barrier(std::string_view name, Timeout within, const std::vector<Role>& roles,
                             const std::stop_token& stop) const {
  if (name.empty() || name.size() > wire::kEventNameBytesMax) {
    return std::unexpected(Error{fmt::format("the name of a barrier has 1 to {} bytes, not {}",
                                             wire::kEventNameBytesMax, name.size())});
  }
  wire::BarrierRequest request{.name = std::string(name),
                               .within_ms = within.milliseconds().count(),
                               .asked_ms = workers::monotonic_ms()};
  for (const Role role : roles) request.roles.emplace_back(role.name);
  return state_->meet(request, within, stop);
}

Result<Buffer> Worker::alloc(DType type, Dimensions shape) const {
  if (is_alone()) return ranks::alloc_own(type, std::move(shape));
  return state_->channel->arenas().alloc(type, std::move(shape));
}

std::stop_token Worker::ending() const { return state_->ending.get_token(); }

Result<std::string> Worker::status() const {
  if (is_alone()) return "{}";
  auto reply = state_->ask(wire::StatusRequest{}, workers::kStatusWithin, {});
  if (!reply) return std::unexpected(std::move(reply.error()));
  return std::move(reply->status);
}

}  // namespace trainyard
