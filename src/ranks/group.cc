#include "ranks/group.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/duration_text.h"
#include "base/match.h"

namespace trainyard::ranks {
namespace {

/// The maximum wait for the end of a process when its connection has ended: the one follows the
/// other, unless it has closed its connection and lives.
constexpr Duration kCauseWait{500};
/// After KILL: what is there then cannot be ended (a dead network disk).
constexpr Duration kKillWait{5'000};

std::string limit_text(Duration limit, std::string_view name) {
  return fmt::format("within {} (limit '{}')", to_text(limit), name);
}

template <class Ranks>
std::string names_of(const Ranks& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

/// No rank may wait any longer for a rank that has ended its part like this.
bool breaks_off(ReturnCode code) {
  return code == ReturnCode::ExecutionException || code == ReturnCode::OutOfMemory ||
         code == ReturnCode::CommunicationError || code == ReturnCode::ExecutionResultError;
}

bool is_out_of_memory(const model::End& end) {
  const auto* const killed = std::get_if<model::KilledBy>(&end);
  return killed != nullptr && killed->out_of_memory;
}

}  // namespace

std::string end_text(const model::End& end) {
  return match(
      end, [](const model::ExitedWith& it) { return fmt::format("exited with code {}", it.code); },
      [](const model::KilledBy& it) {
        return fmt::format("was killed by signal {}{}", it.signal,
                           it.out_of_memory ? " (out of memory)" : "");
      },
      [](const model::NotStarted& it) { return fmt::format("was not started: {}", it.why); },
      [](const model::Vanished& it) { return fmt::format("has vanished: {}", it.why); });
}

Group::Group(Options options)
    : options_(options), members_(static_cast<std::size_t>(options.ranks)) {
  check(options.ranks > 0, "at least one rank");
}

std::vector<GroupCommand> Group::on(const GroupEvent& event, Duration now) {
  now_ = now;
  match(event, [this](const auto& it) { take(it); });
  return std::exchange(commands_, {});
}

std::optional<Duration> Group::wake_at() const {
  std::optional<Duration> at = deadline_;
  const auto also = [&at](Duration other) { at = at ? std::min(*at, other) : other; };
  if (suspect_) also(suspect_->until);
  for (const auto& [id, event] : events_) also(event.deadline);
  return at;
}

bool Group::has_processes() const {
  return launcher_ || std::ranges::any_of(members_, [](const Member& it) { return it.process; });
}

bool Group::waits_for_replies() const {
  return std::ranges::any_of(members_, [](const Member& it) { return it.waited_for; });
}

// --- up ---

void Group::take(const LaunchAsked&) {
  check(phase_ == Phase::Down, "a group that is down is launched");
  const bool own = options_.own_processes;
  members_.assign(members_.size(), Member{.process = own});
  launcher_ = !own;
  fault_.reset();
  phase_ = Phase::Launching;
  deadline_ = now_ + options_.limits.launch;
  commands_.emplace_back(StartProcesses{});
}

void Group::take(const RankJoined& it) {
  if (phase_ != Phase::Launching) return;
  members_.at(index(it.rank)).joined = true;
  if (std::ranges::all_of(members_, &Member::joined)) all_joined();
}

void Group::all_joined() {
  phase_ = Phase::Initialising;
  deadline_ = now_ + options_.limits.initialise;
  ask([](int rank) -> GroupCommand { return SendInitialise{rank}; });
}

/// Something that every rank replies to.
void Group::ask(GroupCommand (*command)(int rank)) {
  for (int rank = 0; rank < options_.ranks; ++rank) {
    Member& member = members_[index(rank)];
    member.waited_for = true;
    member.verdict.reset();
    commands_.push_back(command(rank));
  }
}

void Group::take(const RankRefused& it) {
  if (phase_ != Phase::Launching && phase_ != Phase::Initialising) return;
  fail({.code = ReturnCode::LaunchFailed, .why = it.why});
}

void Group::initialised() {
  phase_ = Phase::Ready;
  deadline_.reset();
  commands_.emplace_back(Launched{});
}

// --- executing ---

void Group::take(const ExecuteAsked& it) {
  check(phase_ == Phase::Ready, "a group that is ready executes");
  if (retried_ != it.id) tries_ = 0;
  execution_ = it.id;
  stopped_ = false;
  phase_ = Phase::Executing;
  deadline_.reset();
  if (options_.limits.execute) deadline_ = now_ + *options_.limits.execute;
  ask([](int rank) -> GroupCommand { return SendExecute{rank}; });
}

void Group::take(const RankReplied& it) {
  Member& member = members_.at(index(it.rank));
  if (!member.waited_for) return;
  member.waited_for = false;
  member.verdict = it.verdict;
  member.verdict->rank = it.rank;
  if (phase_ == Phase::Initialising && it.verdict.code != ReturnCode::Ok) {
    return fail({.code = ReturnCode::InitFailed, .why = it.verdict.why, .rank = it.rank});
  }
  if (phase_ == Phase::Ending) commands_.emplace_back(SendClose{it.rank});
  if (phase_ == Phase::Executing && !stopped_ && breaks_off(it.verdict.code) &&
      waits_for_replies()) {
    return settle(*member.verdict);
  }
  if (waits_for_replies()) return;
  if (phase_ == Phase::Initialising) initialised();
  if (phase_ == Phase::Executing) executed();
  if (phase_ == Phase::Settling) {
    phase_ = Phase::Ready;
    deadline_.reset();
  }
}

void Group::executed() {
  phase_ = Phase::Ready;
  deadline_.reset();
  if (stopped_) {
    return answer({.code = ReturnCode::TaskAborted, .why = stop_reason_});
  }
  for (const Member& member : members_) {
    if (member.verdict && member.verdict->code != ReturnCode::Ok) return answer(*member.verdict);
  }
  answer({});
}

void Group::answer(Verdict verdict) {
  if (!execution_) return;
  const std::uint64_t id = *execution_;
  execution_.reset();
  commands_.emplace_back(Executed{.id = id, .verdict = std::move(verdict)});
}

/// The execution has ended; ranks that are still at it are asked to stop, and have some time for
/// it.
void Group::settle(Verdict verdict) {
  const std::string reason = verdict.why;
  answer(std::move(verdict));
  phase_ = Phase::Settling;
  deadline_ = now_ + (options_.limits.stop / 2);
  tell_all_to_stop(reason);
}

void Group::tell_all_to_stop(const std::string& reason) {
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const Member& member = members_[index(rank)];
    if (member.joined && !member.gone && member.waited_for) {
      commands_.emplace_back(SendStop{.rank = rank, .reason = reason});
    }
  }
}

void Group::take(const StopAsked& it) {
  if (phase_ == Phase::Launching || phase_ == Phase::Initialising) {
    return fail({.code = ReturnCode::TaskAborted, .why = it.reason});
  }
  if (phase_ != Phase::Executing || std::exchange(stopped_, true)) return;
  stop_reason_ = it.reason;
  deadline_ = now_ + (options_.limits.stop / 2);
  tell_all_to_stop(it.reason);
}

// --- events ---

void Group::take(const EventAsked& it) {
  PendingEvent pending{.deadline = now_ + options_.limits.event};
  const bool up = phase_ == Phase::Ready || phase_ == Phase::Executing || phase_ == Phase::Settling;
  for (const int rank : it.ranks) {
    if (up && !members_.at(index(rank)).gone) pending.missing.insert(rank);
  }
  if (pending.missing.empty()) {
    commands_.emplace_back(EventOver{.id = it.id});
  } else {
    events_.emplace(it.id, std::move(pending));
  }
}

void Group::take(const EventHeard& it) {
  const auto event = events_.find(it.id);
  if (event == events_.end()) return;
  event->second.missing.erase(it.rank);
  if (!event->second.missing.empty()) return;
  events_.erase(event);
  commands_.emplace_back(EventOver{.id = it.id});
}

void Group::end_events(const Verdict& verdict) {
  for (const auto& [id, event] : std::exchange(events_, {})) {
    commands_.emplace_back(EventOver{.id = id, .verdict = verdict});
  }
}

// --- what goes wrong ---

void Group::take(const RankGone& it) {
  Member& member = members_.at(index(it.rank));
  if (phase_ == Phase::Down || std::exchange(member.gone, true) || phase_ == Phase::Ending) return;
  if (suspect_) return;
  // The end of the process has the reason, or that of the launcher, which ends with the first that
  // fails.
  if (member.process || launcher_) {
    suspect_ = Suspect{.rank = it.rank, .why = it.why, .until = now_ + kCauseWait};
    return;
  }
  fail({.code = ReturnCode::RankDied,
        .why = fmt::format("rank {} is gone: {}", it.rank, it.why),
        .rank = it.rank});
}

void Group::take(const RankSpokeNonsense& it) {
  // This holds also for a rank that has closed its other connection and is suspected to have died.
  members_.at(index(it.rank)).gone = true;
  if (phase_ == Phase::Down || phase_ == Phase::Ending) return;
  fail({.code = ReturnCode::CommunicationError,
        .why = fmt::format("rank {} speaks nonsense: {}", it.rank, it.what),
        .rank = it.rank});
}

void Group::take(const ProcessEnd& it) {
  if (it.rank) {
    members_.at(index(*it.rank)).process = false;
    members_.at(index(*it.rank)).gone = true;
  } else {
    launcher_ = false;
  }
  if (phase_ == Phase::Down) return;
  if (phase_ == Phase::Ending) {
    if (!has_processes()) down({});
    return;
  }
  const std::string who = it.rank ? fmt::format("rank {}", *it.rank) : "the launcher";
  Verdict verdict{.code = ReturnCode::RankDied,
                  .why = fmt::format("{} {}", who, end_text(it.end)),
                  .rank = it.rank};
  if (suspect_ && !it.rank) {
    verdict.why = fmt::format("rank {} is gone, and {}", suspect_->rank, verdict.why);
    verdict.rank = suspect_->rank;
  }
  if (phase_ == Phase::Launching) verdict.code = ReturnCode::LaunchFailed;
  if (phase_ == Phase::Initialising) verdict.code = ReturnCode::InitFailed;
  if (is_out_of_memory(it.end)) verdict.code = ReturnCode::OutOfMemory;
  fail(std::move(verdict));
}

void Group::take(const KeeperLost& it) {
  if (phase_ == Phase::Down) return;
  for (Member& member : members_) member.process = false;
  launcher_ = false;
  if (phase_ == Phase::Ending) return down({});
  fail({.code = ReturnCode::RankDied, .why = it.why});
}

/// The group cannot go on. All callers that wait get the reason, and all processes are ended.
void Group::fail(Verdict verdict) {
  fault_ = verdict;
  suspect_.reset();
  end_events(verdict);
  const bool died = verdict.code == ReturnCode::RankDied || verdict.code == ReturnCode::OutOfMemory;
  if (phase_ == Phase::Launching || phase_ == Phase::Initialising) {
    commands_.emplace_back(Launched{verdict});
  } else if (execution_ && stopped_) {
    answer({.code = ReturnCode::TaskAborted,
            .why = fmt::format("{} ({})", stop_reason_, verdict.why),
            .rank = verdict.rank});
  } else if (execution_ && died && tries_ < options_.restarts) {
    ++tries_;
    retried_ = std::exchange(execution_, std::nullopt);
    commands_.emplace_back(Restart{.id = *retried_, .verdict = verdict});
  } else {
    answer(verdict);
  }
  end(/*cleanly=*/false, verdict.why);
}

// --- down ---

void Group::take(const CloseAsked&) {
  if (phase_ == Phase::Down || phase_ == Phase::Ending) return;
  if (phase_ == Phase::Ready) return end(/*cleanly=*/true, {});
  if (phase_ == Phase::Settling) return end(/*cleanly=*/false, "the group is closed");
  fail({.code = ReturnCode::TaskAborted, .why = "the group is closed"});
}

void Group::end(bool cleanly, const std::string& reason) {
  phase_ = Phase::Ending;
  ending_step_ = 0;
  ending_grace_ = cleanly ? options_.limits.close : options_.limits.stop;
  deadline_ = now_ + (ending_grace_ / 2);
  bool listening = false;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const Member& member = members_[index(rank)];
    if (!member.joined || member.gone) continue;
    listening = true;
    if (!member.waited_for) commands_.emplace_back(SendClose{rank});
  }
  tell_all_to_stop(reason);
  if (!has_processes()) return down({});
  if (!listening) next_way_of_ending();
}

void Group::next_way_of_ending() {
  ++ending_step_;
  if (ending_step_ == 1) {
    commands_.emplace_back(SignalProcesses{SIGTERM});
    deadline_ = now_ + (ending_grace_ / 2);
  } else if (ending_step_ == 2) {
    commands_.emplace_back(SignalProcesses{SIGKILL});
    deadline_ = now_ + kKillWait;
  } else {
    std::vector<std::string> left;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      if (members_[index(rank)].process) left.push_back(fmt::format("rank {}", rank));
    }
    if (launcher_) left.emplace_back("the launcher");
    down(fmt::format("{} cannot be ended", fmt::join(left, ", ")));
  }
}

void Group::down(std::string left) {
  phase_ = Phase::Down;
  deadline_.reset();
  suspect_.reset();
  end_events(fault_.value_or(Verdict{.code = ReturnCode::TaskAborted,
                                     .why = "the group was closed before all had heard it"}));
  commands_.emplace_back(GroupDown{std::move(left)});
}

// --- time ---

void Group::take(const TimePassed&) {
  if (suspect_ && suspect_->until <= now_) {
    const Suspect it = *suspect_;
    suspect_.reset();
    fail({.code = ReturnCode::RankDied,
          .why = fmt::format("rank {} is gone: {}", it.rank, it.why),
          .rank = it.rank});
  }
  std::vector<std::uint64_t> over;
  for (const auto& [id, event] : events_) {
    if (event.deadline <= now_) over.push_back(id);
  }
  for (const std::uint64_t id : over) {
    const auto event = events_.extract(id);
    commands_.emplace_back(EventOver{
        .id = id,
        .verdict = {.code = ReturnCode::Timeout,
                    .why = fmt::format("{} did not answer {}", names_of(event.mapped().missing),
                                       limit_text(options_.limits.event, "event")),
                    .rank = *event.mapped().missing.begin()}});
  }
  if (deadline_ && *deadline_ <= now_) late();
}

void Group::late() {
  std::vector<int> missing;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const Member& member = members_[index(rank)];
    if (phase_ == Phase::Launching ? !member.joined : member.waited_for) missing.push_back(rank);
  }
  const std::optional<int> first = missing.empty() ? std::nullopt : std::optional(missing.front());
  switch (phase_) {
    case Phase::Launching:
      return fail({.code = ReturnCode::LaunchFailed,
                   .why = fmt::format("{} did not connect {}", names_of(missing),
                                      limit_text(options_.limits.launch, "launch")),
                   .rank = first});
    case Phase::Initialising:
      return fail({.code = ReturnCode::InitFailed,
                   .why = fmt::format("{} did not make all components {}", names_of(missing),
                                      limit_text(options_.limits.initialise, "initialise")),
                   .rank = first});
    case Phase::Executing:
      if (!stopped_) {
        return settle({.code = ReturnCode::Timeout,
                       .why = fmt::format(
                           "{} did not end {}", names_of(missing),
                           limit_text(options_.limits.execute.value_or(Duration{0}), "execute")),
                       .rank = first});
      }
      [[fallthrough]];
    case Phase::Settling:
      fail({.code = ReturnCode::TaskAborted,
            .why = fmt::format("{} did not stop {}", names_of(missing),
                               limit_text(options_.limits.stop / 2, "stop")),
            .rank = first});
      if (phase_ == Phase::Ending && ending_step_ == 0) next_way_of_ending();
      return;
    case Phase::Ending:
      return next_way_of_ending();
    case Phase::Down:
    case Phase::Ready:
      deadline_.reset();
  }
}

}  // namespace trainyard::ranks
