// A parallel run, continued: the other machines that have workers of it.
#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sys/files.h"
#include "sys/token.h"
#include "workers/parallel_run.h"

namespace trainyard::workers {
namespace {

/// Maximum wait for the last messages to reach other machines, if all end before their time.
constexpr Duration kLeaveWithin{5'000};
/// After this time a note names the workers of other machines that have not come.
constexpr Duration kOthersNote{5'000};
constexpr Duration kTryServersEvery{200};
constexpr Duration kLookAtOthersEvery{500};

MachineId random_id() {
  constexpr int kHexadecimal = 16;
  const MachineId id = std::stoull(sys::random_token().substr(0, 16), nullptr, kHexadecimal);
  return id == 0 ? 1 : id;
}

}  // namespace

Result<void> ParallelRun::attach() {
  auto servers = plan_servers(options_);
  if (!servers) return std::unexpected(std::move(servers.error()));
  if (servers->empty()) {
    make_router(nullptr);
    return {};
  }
  MachineEntry own{.id = random_id(), .host = sys::host_name()};
  for (const Life& life : lives_) {
    own.nodes.push_back({.node = life.plan.node, .roles = life.plan.roles});
  }
  auto bridge = wait_for_servers({.servers = *std::move(servers),
                                  .nats = options_.nats,
                                  .run = options_.run,
                                  .own = own.id,
                                  .is_hub = !options_.joins});
  if (!bridge) return std::unexpected(Error{std::move(bridge.error().why)});
  machines_ = std::make_unique<Machines>(
      loop_, std::move(*bridge),
      Machines::Options{.own = std::move(own),
                        .topology = std::string(to_text(options_.topology)),
                        .when_full = std::string(to_text(options_.queue.when_full)),
                        .run = options_.run,
                        .joins = options_.joins,
                        .elsewhere = options_.workers_elsewhere,
                        .lost_after = Duration(options_.nats.lost_after.count()),
                        .ask_every = periods_.ask_every,
                        .note = [this](const std::string& what) { note(what); },
                        .on_joined = [this](const MachineWelcome& it) { welcome_ = it; },
                        .on_broken = [this](const std::string& why) { is_cut_off(why); },
                        .on_end = [this](const MachineEnd& it) { ended_elsewhere(it); }});
  if (!options_.joins) {
    Router::Options::Elsewhere others = elsewhere();
    others.unknown = options_.workers_elsewhere;
    make_router(std::make_unique<const Router::Options::Elsewhere>(std::move(others)));
    machines_->set_router(*router_);
  }
  machines_->start();
  if (!options_.joins) wait_until_begun();
  return {};
}

void ParallelRun::wait_until_begun() {
  while (!machines_->has_begun() && !ending_ && broken_.empty()) loop_.run_once(std::nullopt);
}

std::expected<std::unique_ptr<Bridge>, NoNats> ParallelRun::wait_for_servers(
    const NatsBridgeOptions& servers) {
  const Duration until = sys::EventLoop::now() + Duration(options_.nats.lost_after.count());
  bool is_told = false;
  while (true) {
    auto bridge = connect_nats(loop_, servers, [this] { return ending_; });
    if (bridge || !bridge.error().may_come || sys::EventLoop::now() >= until) return bridge;
    if (!std::exchange(is_told, true)) {
      note(fmt::format("{}; waiting up to {:g} s for it", bridge.error().why,
                       std::chrono::duration<double>(options_.nats.lost_after).count()));
    }
    bool is_time = false;
    const auto timer = loop_.after(kTryServersEvery, [&is_time] { is_time = true; });
    while (!is_time && !ending_) loop_.run_once(std::nullopt);
    if (is_time) continue;
    loop_.cancel(timer);
    return bridge;
  }
}

Router::Options::Elsewhere ParallelRun::elsewhere() {
  return {.joins = options_.joins,
          .first_node = lives_.front().plan.node,
          .unknown = 0,
          .on_came = [this](const CameWord& word) { machines_->came(word); },
          .on_left = [this](int number, const std::string& why) { machines_->left(number, why); },
          .on_failed = [this](int node, const std::string& why) { failed_elsewhere(node, why); }};
}

void ParallelRun::make_router(std::unique_ptr<const Router::Options::Elsewhere> others) {
  std::map<int, std::vector<std::string>> nodes;
  for (const Life& life : lives_) nodes[life.plan.node] = life.plan.roles;
  router_ = std::make_unique<Router>(
      loop_,
      Router::Options{
          .topology = options_.topology,
          .queue = options_.queue,
          .nodes = std::move(nodes),
          .on_begin =
              [this](int node) {
                Life* const life = life_of_node(node);
                if (life == nullptr) return;
                life->in_pipeline = true;
                life->finish.reset();
              },
          .on_finish =
              [this](int node, const wire::FinishWord& word) {
                Life* const life = life_of_node(node);
                if (life == nullptr) return;
                life->in_pipeline = false;
                life->finish = word;
              },
          .on_refused = [this](int node, const std::string& why) { cut_off_worker(node, why); },
          .note = [this](const std::string& what) { note(what); },
          .on_wait = [this](int node, const Wait& wait) { waits_.waited(node, wait); },
          .elsewhere = std::move(others)});
}

void ParallelRun::join_others() {
  if (!machines_ || !options_.joins) return;
  while (!welcome_ && !ending_ && broken_.empty()) loop_.run_once(std::nullopt);
  if (!welcome_) return;
  Router::Options::Elsewhere others = elsewhere();
  others.first_node = welcome_->machines.front().nodes.front().node;
  others.unknown = welcome_->awaited;
  make_router(std::make_unique<const Router::Options::Elsewhere>(std::move(others)));
  machines_->set_router(*router_);
}

bool ParallelRun::waits_for_others() const {
  // The machine that has begun the run counts for the others until they have ended, too.
  if (!machines_ || !router_ || options_.joins || !cut_off_.empty() || gave_up_on_others_) {
    return false;
  }
  return router_->is_anybody_elsewhere() || (!ending_ && router_->awaited() > 0);
}

void ParallelRun::limit_the_wait_for_others() {
  if (!machines_ || options_.joins) return;
  const auto within = options_.nats.lost_after;
  const auto missing = [this] {
    return fmt::format("{} of {} workers of other machines", router_->awaited(),
                       options_.workers_elsewhere);
  };
  loop_.after(std::min(kOthersNote, Duration(within.count()) / 2), [this, missing] {
    if (ending_ || router_->awaited() == 0) return;
    note(fmt::format("NATS: waiting for {}: start them with --join --run {}", missing(),
                     options_.run));
  });
  loop_.after(Duration(within.count()), [this, missing, within] {
    if (ending_ || router_->awaited() == 0) return;
    const std::string why = fmt::format("NATS: {} have not come in {:g} s", missing(),
                                        std::chrono::duration<double>(within).count());
    // First, so that machines that have come hear the reason and not how the workers here ended.
    machines_->leave(why);
    is_cut_off(why);
  });
}

void ParallelRun::give_up_on_silent_others() {
  if (!waits_for_others()) return;
  if (machines_->is_any_responding(periods_.others_within)) {
    loop_.after(kLookAtOthersEvery, [this] { give_up_on_silent_others(); });
    return;
  }
  note("the other machines do not answer, and are not waited for");
  gave_up_on_others_ = true;
}

void ParallelRun::leave_others() {
  if (!machines_) return;
  const std::string why = broken_.empty() ? cut_off_ : broken_;
  bool is_late = false;
  std::optional<sys::EventLoop::TimerId> timer;
  // Whatever was sent is to arrive. That ends, too: by a machine or a server that is lost.
  const auto may_leave = [&] { return !router_ || !why.empty() || router_->has_all_gone(); };
  while (!(may_leave() && machines_->leave(why)) && !is_late && !gave_up_on_others_) {
    if ((ending_ || !broken_.empty()) && !timer) {
      timer = loop_.after(kLeaveWithin, [&] { is_late = true; });
    }
    loop_.run_once(std::nullopt);
  }
  if (timer) loop_.cancel(*timer);
  if (is_late || gave_up_on_others_) machines_->leave_at_once();
}

void ParallelRun::is_cut_off(const std::string& why) {
  if (!cut_off_.empty()) return;
  // A run that somebody has stopped ends as stopped, whatever happens to the servers meanwhile.
  if (result_.stopped) {
    gave_up_on_others_ = true;
    return note(why);
  }
  cut_off_ = why;
  end_all(why);
}

void ParallelRun::end_others(const std::string& why) {
  if (!machines_) return;
  if (result_.stopped) return machines_->end({.node = std::nullopt, .why = why});
  // A machine that is cut off reaches no other one, or says why when it leaves.
  if (result_.failures.empty()) return;
  machines_->end({.node = result_.failures.front().node, .why = result_.failures.front().what});
}

void ParallelRun::ended_elsewhere(const MachineEnd& end) {
  if (end.node) return failed_elsewhere(*end.node, end.why);
  // Also where a worker has failed at the same time. Each machine waits until it knows the ends of
  // all others, so the run has this outcome on all of them.
  if (std::exchange(result_.stopped, true)) return;
  note(fmt::format("another machine ends the run: {}", end.why));
  end_all(end.why);
}

void ParallelRun::failed_elsewhere(int node, const std::string& why) {
  // One that ends because another one has failed, or as the run is stopped, is none.
  if (ending_ || result_.stopped) return;
  result_.failures.push_back({.node = node, .what = why});
  end_all(fmt::format("worker {} failed: {}", node, why));
}

}  // namespace trainyard::workers
