#include "workers/meetings.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/list_text.h"
#include "base/match.h"

namespace trainyard::workers {

std::optional<wire::WorkerRequest> still_asked(wire::WorkerRequest request, Duration now) {
  const auto is_asked = [&](auto& it) {
    if (!it.asked_ms) return true;
    const Duration left = Duration(*it.asked_ms) + Duration(it.within_ms) - now;
    if (left + wire::kAnswerPatience <= Duration(0)) return false;
    it.within_ms = std::clamp<std::int64_t>(left.count(), 0, it.within_ms);
    it.asked_ms.reset();
    return true;
  };
  const bool is = match(
      request, [&](wire::ReadyRequest& it) { return is_asked(it); },
      [&](wire::BarrierRequest& it) { return is_asked(it); }, [](const auto&) { return true; });
  return is ? std::optional(std::move(request)) : std::nullopt;
}

Meetings::Answers Meetings::ask(Asker asker, const wire::ReadyRequest& request, Duration now) {
  if (waiting_of(asker.node) >= kWaitingMax) {
    return {{.to = asker, .reply = {.error = "it waits for too much already"}}};
  }
  const int all = static_cast<int>(roll_.members().size()) + roll_.unknown();
  if (request.workers > all) {
    return {{.to = asker,
             .reply = {.error = fmt::format("{} workers are waited for, and there are {}",
                                            request.workers, all)}}};
  }
  ready_.push_back({.asker = asker,
                    .workers = request.workers == 0 ? all : request.workers,
                    .since = now,
                    .deadline = now + Duration(request.within_ms)});
  return look();
}

bool Meetings::lacks_all(const std::set<std::string>& known,
                         const std::vector<std::string>& roles) const {
  // A worker without roles has every role, and those that are to come may have others.
  const bool has_every_role =
      std::ranges::any_of(roll_.members(), [](const auto& it) { return it.second.roles.empty(); });
  if (roles.empty() || has_every_role || roll_.unknown() > 0) return false;
  return std::ranges::none_of(roles, [&](const std::string& role) { return known.contains(role); });
}

Meetings::Answers Meetings::ask(Asker asker, const wire::BarrierRequest& request, Duration now) {
  if (waiting_of(asker.node) >= kWaitingMax) {
    return {{.to = asker, .reply = {.error = "it waits for too much already"}}};
  }
  const auto [entry, is_new] = barriers_.try_emplace(request.name);
  Barrier& barrier = entry->second;
  if (is_new) barrier.roles = request.roles;
  std::string wrong;
  if (barrier.roles != request.roles) {
    wrong = barrier.roles.empty() ? fmt::format("barrier '{}' is one of all workers", request.name)
                                  : fmt::format("barrier '{}' is one of other roles: {}",
                                                request.name, fmt::join(barrier.roles, ", "));
  } else if (const std::set<std::string> known = roll_.roles(); lacks_all(known, barrier.roles)) {
    wrong = fmt::format("barrier '{}': no worker of the run has the role {}; the roles are {}",
                        request.name, list_text(barrier.roles, {.word = "or", .quote = "'"}),
                        fmt::join(known, ", "));
  } else if (!roll_.plays(asker.node, barrier.roles)) {
    wrong = fmt::format("barrier '{}' is none of {}", request.name, roll_.name_of(asker.node));
  } else if (barrier.arrived.contains(asker.node)) {
    wrong =
        fmt::format("{} waits at barrier '{}' already", roll_.name_of(asker.node), request.name);
  }
  if (!wrong.empty()) {
    if (is_new) barriers_.erase(entry);
    return {{.to = asker, .reply = {.error = std::move(wrong)}}};
  }
  std::erase(left_, std::pair(request.name, asker.node));
  barrier.arrived[asker.node] = {
      .sequence = asker.sequence, .since = now, .deadline = now + Duration(request.within_ms)};
  return look();
}

Meetings::Answers Meetings::withdraw(Asker asker, Duration now) {
  for (Ready& it : ready_) {
    if (it.asker.node == asker.node && it.asker.sequence == asker.sequence) it.deadline = now;
  }
  for (auto& [name, barrier] : barriers_) {
    const auto arrival = barrier.arrived.find(asker.node);
    if (arrival == barrier.arrived.end()) continue;
    if (arrival->second.sequence == asker.sequence) arrival->second.deadline = now;
  }
  return overdue(now);
}

void Meetings::remember_left(const std::string& barrier, int node) {
  left_.emplace_back(barrier, node);
  if (left_.size() > kLeftMax) left_.pop_front();
}

void Meetings::leave_all(int node) {
  std::erase_if(ready_, [&](const Ready& it) { return it.asker.node == node; });
  for (auto& [name, barrier] : barriers_) {
    if (barrier.arrived.erase(node) > 0) remember_left(name, node);
  }
}

Meetings::Answers Meetings::disconnect(int node) {
  leave_all(node);
  return look();
}

Meetings::Answers Meetings::look(std::optional<int> ended) {
  Answers answers;
  if (ended) {
    leave_all(*ended);
    std::erase_if(left_, [&](const auto& it) { return it.second == *ended; });
  }
  const int settled = roll_.settled();
  std::erase_if(ready_, [&](const Ready& it) {
    const std::vector<std::string> never = never_ready(it);
    if (settled < it.workers && never.empty()) return false;
    MeetingAnswer& answer = answers.emplace_back(MeetingAnswer{
        .to = it.asker,
        .waited = MeetingWait{.kind = wire::WaitKind::Ready, .since = it.since, .whom = missing_}});
    if (settled >= it.workers) return true;
    answer.reply = {.error = fmt::format("{} of {} workers are ready, and {} cannot be: {}",
                                         settled, it.workers, it.workers, fmt::join(never, ", ")),
                    .missing = missing_names(not_ready())};
    return true;
  });
  missing_ = ready_.empty() ? std::vector<int>() : not_ready();
  for (auto entry = barriers_.begin(); entry != barriers_.end();) {
    const bool over = is_over(entry->first, entry->second, answers);
    entry = over ? barriers_.erase(entry) : std::next(entry);
  }
  return answers;
}

bool Meetings::is_over(const std::string& name, Barrier& barrier, Answers& answers) const {
  const std::vector<int> failed = failed_at(barrier);
  std::vector<int> missing = missing_at(barrier);
  // Whoever is not known yet may have to come, too.
  const bool is_complete = missing.empty() && roll_.unknown() == 0;
  if (!barrier.arrived.empty() && !is_complete && failed.empty()) {
    barrier.missing = std::move(missing);
    return false;
  }
  const std::vector<std::string> names = names_of(failed);
  for (const auto& arrival : barrier.arrived) {
    MeetingAnswer& answer = answers.emplace_back(answer_to(name, barrier, arrival));
    answer.met = failed.empty();
    if (answer.met) continue;
    answer.reply = {.error = fmt::format("barrier '{}': {} failed, and will not come", name,
                                         fmt::join(names, ", ")),
                    .missing = names};
  }
  return true;
}

Meetings::Answers Meetings::overdue(Duration now) {
  Answers answers;
  std::erase_if(ready_, [&](const Ready& it) {
    if (it.deadline > now) return false;
    answers.push_back({.to = it.asker,
                       .reply = late(it),
                       .waited = MeetingWait{
                           .kind = wire::WaitKind::Ready, .since = it.since, .whom = not_ready()}});
    return true;
  });
  for (auto& each : barriers_) {
    const std::string& name = each.first;
    Barrier& barrier = each.second;
    const std::vector<int> nodes = missing_at(barrier);
    const std::vector<std::string> missing = missing_names(nodes);
    const std::string error = late_text(name, nodes);
    std::erase_if(barrier.arrived, [&](const auto& entry) {
      if (entry.second.deadline > now) return false;
      remember_left(name, entry.first);
      MeetingAnswer& answer = answers.emplace_back(answer_to(name, barrier, entry));
      answer.reply = {.error = error, .missing = missing};
      return true;
    });
  }
  std::erase_if(barriers_, [](const auto& entry) { return entry.second.arrived.empty(); });
  return answers;
}

std::vector<int> Meetings::not_ready() const {
  std::vector<int> missing;
  for (const auto& [node, member] : roll_.members()) {
    if (!member.settled_once) missing.push_back(node);
  }
  return missing;
}

MeetingWait Meetings::wait_at(const std::string& name, const Barrier& barrier,
                              const Arrival& arrival) {
  return {.kind = wire::WaitKind::Barrier,
          .name = name,
          .since = arrival.since,
          .whom = barrier.missing};
}

MeetingAnswer Meetings::answer_to(const std::string& name, const Barrier& barrier,
                                  const std::pair<const int, Arrival>& arrival) {
  const auto& [node, it] = arrival;
  return {.to = {.node = node, .sequence = it.sequence}, .waited = wait_at(name, barrier, it)};
}

wire::WorkerReply Meetings::late(const Ready& ready) const {
  const std::vector<std::string> names = missing_names(not_ready());
  return {.error = fmt::format("{} of {} workers are ready; missing: {}", roll_.settled(),
                               ready.workers, fmt::join(names, ", ")),
          .missing = names};
}

std::optional<Duration> Meetings::next_deadline() const {
  std::optional<Duration> next;
  const auto sooner = [&](Duration deadline) {
    if (!next || deadline < *next) next = deadline;
  };
  for (const Ready& it : ready_) sooner(it.deadline);
  for (const auto& [name, barrier] : barriers_) {
    for (const auto& [node, arrival] : barrier.arrived) sooner(arrival.deadline);
  }
  return next;
}

std::vector<Meetings::Waiting> Meetings::waiting() const {
  std::vector<Waiting> all;
  for (const auto& [name, barrier] : barriers_) {
    Waiting one{.barrier = name, .missing = missing_at(barrier)};
    one.arrived.reserve(barrier.arrived.size());
    for (const auto& [node, arrival] : barrier.arrived) one.arrived.push_back(node);
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<std::pair<int, MeetingWait>> Meetings::open_waits() const {
  std::vector<std::pair<int, MeetingWait>> open;
  open.reserve(ready_.size());
  for (const Ready& it : ready_) {
    open.emplace_back(it.asker.node, MeetingWait{.since = it.since, .whom = missing_});
  }
  for (const auto& [name, barrier] : barriers_) {
    for (const auto& [node, arrival] : barrier.arrived) {
      open.emplace_back(node, wait_at(name, barrier, arrival));
    }
  }
  return open;
}

std::vector<int> Meetings::missing_at(const Barrier& barrier) const {
  std::vector<int> missing;
  for (const auto& [node, member] : roll_.members()) {
    const bool is_to_come = roll_.counts(node) && roll_.plays(node, barrier.roles);
    if (is_to_come && !barrier.arrived.contains(node)) missing.push_back(node);
  }
  return missing;
}

std::string Meetings::late_text(const std::string& name, std::vector<int> missing) const {
  const auto has_left = [&](int node) {
    return std::ranges::find(left_, std::pair(name, node)) != left_.end();
  };
  std::vector<int> nodes_left;
  std::ranges::copy_if(missing, std::back_inserter(nodes_left), has_left);
  std::erase_if(missing, has_left);
  const std::vector<std::string> absent = missing_names(missing);
  std::string text = fmt::format("barrier '{}'", name);
  if (!absent.empty()) text += fmt::format(" waits for {}", fmt::join(absent, ", "));
  if (!nodes_left.empty()) {
    text += fmt::format("{} {} came before and gave up waiting", absent.empty() ? ":" : ";",
                        fmt::join(names_of(nodes_left), ", "));
  }
  return text;
}

std::vector<int> Meetings::failed_at(const Barrier& barrier) const {
  std::vector<int> failed;
  for (const auto& [node, member] : roll_.members()) {
    if (member.presence == Presence::Failed && roll_.plays(node, barrier.roles)) {
      failed.push_back(node);
    }
  }
  return failed;
}

std::vector<std::string> Meetings::never_ready(const Ready& ready) const {
  std::vector<std::string> never;
  int possible = roll_.unknown();
  for (const auto& [node, member] : roll_.members()) {
    if (member.settled_once || roll_.counts(node)) {
      ++possible;
      continue;
    }
    never.push_back(fmt::format("{} has {}", roll_.name_of(node),
                                member.presence == Presence::Failed ? "failed" : "ended"));
  }
  return possible < ready.workers ? never : std::vector<std::string>();
}

std::vector<std::string> Meetings::names_of(const std::vector<int>& nodes) const {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const int node : nodes) names.push_back(roll_.name_of(node));
  return names;
}

std::vector<std::string> Meetings::missing_names(const std::vector<int>& nodes) const {
  std::vector<std::string> names = names_of(nodes);
  if (roll_.unknown() > 0) {
    names.push_back(fmt::format("{} workers of machines that have not joined", roll_.unknown()));
  }
  return names;
}

std::size_t Meetings::waiting_of(int node) const {
  const auto ready =
      std::ranges::count_if(ready_, [&](const Ready& it) { return it.asker.node == node; });
  const auto at_barriers = std::ranges::count_if(
      barriers_, [&](const auto& it) { return it.second.arrived.contains(node); });
  return static_cast<std::size_t>(ready + at_barriers);
}

}  // namespace trainyard::workers
