// The part of a machine that an agent looks after that knows how attempts begin and end there, and
// where their files are meanwhile.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "run/remote_machine.h"
#include "wire/agent.h"

namespace trainyard::run {

model::Grant RemoteMachine::grant() const {
  model::Grant grant{.gpus = {}, .memory_max = {}, .of_machine = gpus_, .program = hello_.path};
  grant.gpus_answer = gpus_answer_;
  if (files_) grant.elsewhere = files_->elsewhere();
  return grant;
}

void RemoteMachine::start(const model::StartAttempt& command, model::Launch launch) {
  attempts_.insert(command.key);
  // The ends that its keeper sees are reported to us, and noted nowhere.
  const std::uint32_t number = std::exchange(launch.journal_number, std::nullopt).value_or(0);
  const std::vector<std::string> needed = std::exchange(launch.needed_directories, {});
  wire::AgentStart start{.command = command, .launch = std::move(launch), .journal_number = number};
  if (!files_) return say(std::move(start));
  not_started_[command.key];
  files_->bring_for(
      command.key, start.launch.task_directory, needed,
      [this, start](const Result<void>& brought) { start_with_files(start, brought); });
}

void RemoteMachine::start_with_files(const wire::AgentStart& start, const Result<void>& brought) {
  const model::AttemptKey key = start.command.key;
  const auto commands = not_started_.extract(key);
  if (commands.empty()) return;
  if (!brought) {
    return end_before_start(key, fmt::format("cannot copy its files to {}: {}", options_.name,
                                             brought.error().message));
  }
  say(start);
  for (const model::Command& command : commands.mapped()) carry_out(command);
}

void RemoteMachine::end_before_start(model::AttemptKey key, std::string why) {
  not_started_.erase(key);
  attempts_.erase(key);
  ears_.tell(model::AttemptEnded{.key = key, .end = model::NotStarted{.why = std::move(why)}});
}

void RemoteMachine::carry_out(const model::Command& command) {
  const std::optional<model::AttemptKey> key = match(
      command, [](const model::Answer&) { return std::optional<model::AttemptKey>(); },
      [](const auto& it) { return std::optional(it.key); });
  const auto waits = key ? not_started_.find(*key) : not_started_.end();
  const auto* const stop = std::get_if<model::StopAttempt>(&command);
  if (waits != not_started_.end() && stop == nullptr) return waits->second.push_back(command);
  if (waits != not_started_.end()) {
    return end_before_start(stop->key, "it was to end before its files were copied");
  }
  // A killed attempt that has ended does not wait for its files any more.
  if (files_ && stop != nullptr && stop->kill) files_->give_up(stop->key);
  say(wire::AgentCommand{.command = command});
}

void RemoteMachine::tell(model::What what) {
  auto* const ended = std::get_if<model::AttemptEnded>(&what);
  if (ended == nullptr) return ears_.tell(std::move(what));
  if (files_) return tell_when_files_are_here(std::move(*ended));
  attempts_.erase(ended->key);
  ears_.tell(std::move(what));
}

/// Reports the end when the files are here: they must be there for whatever waits for the end.
void RemoteMachine::tell_when_files_are_here(model::AttemptEnded ended) {
  files_->make_own(ended);
  const model::AttemptKey key = ended.key;
  untold_ends_.insert_or_assign(key, line_);
  files_->bring_back(key, [this, ended = std::move(ended)](const Result<void>& brought) mutable {
    attempts_.erase(ended.key);
    untold_ends_.erase(ended.key);
    if (!brought) {
      left_ = brought.error().message;
      ended.warning +=
          fmt::format("{}its files are still on {}: {}", ended.warning.empty() ? "" : "; ",
                      options_.name, brought.error().message);
    }
    ears_.tell(std::move(ended));
  });
}

bool RemoteMachine::is_of_attempt(const model::What& what) {
  return std::holds_alternative<model::AttemptStarted>(what) ||
         std::holds_alternative<model::StageReported>(what) ||
         std::holds_alternative<model::Progressed>(what) ||
         std::holds_alternative<model::AttemptEnded>(what);
}

/// True for a message that is valid for the next yard, too. Answers are for the yard that asked,
/// and readings are repeated.
bool RemoteMachine::outlasts_its_yard(const decltype(wire::AgentSays::what)& what) {
  const auto* const tells = std::get_if<wire::AgentTells>(&what);
  const bool is_event =
      tells != nullptr &&
      (is_of_attempt(tells->what) || std::holds_alternative<model::KeeperSilent>(tells->what));
  return is_event || std::holds_alternative<wire::AgentLog>(what);
}

/// Its first readings come before the run begins here.
void RemoteMachine::take(wire::AgentTells tells) {
  if (!in_run_ || (!found_.empty() && is_of_attempt(tells.what))) {
    constexpr std::size_t kEarlyMax = 16;
    const auto is_reading = [](const Early& it) { return !is_of_attempt(it.tells.what); };
    // The agent has bounded the others: each is reported once.
    if (std::cmp_equal(std::ranges::count_if(early_, is_reading), kEarlyMax)) {
      early_.erase(std::ranges::find_if(early_, is_reading));
    }
    early_.push_back({.line = line_, .tells = std::move(tells)});
    return look_whether_to_join();
  }
  if (!joined_ || !ready_ || check_.fault_of({.at = tells.at, .what = tells.what}, {})) return;
  if (take_in(tells.what)) tell(std::move(tells.what));
}

/// Changes what the agent reports to what it means for the run. False if the run ignores it.
bool RemoteMachine::take_in(model::What& what) {
  // The clocks are compared to some milliseconds: no event is later than its report.
  const auto shift = [this](std::optional<Instant>& at) {
    const Duration to_run = ears_.now().since_start - sys::EventLoop::now();
    if (at) at = std::clamp(*at + agents_time_ + to_run, Instant{}, ears_.now());
  };
  return match(
      what,
      [&](model::AttemptStarted& it) {
        shift(it.began);
        return runs(it.key);
      },
      [&](model::AttemptEnded& it) {
        shift(it.ended);
        return runs(it.key);
      },
      [&](const model::StageReported& it) { return runs(it.key); },
      [&](const model::Progressed& it) { return runs(it.key); },
      [&](model::Sampled& it) {
        it.machine = machine_;
        std::erase_if(it.tasks, [&](const model::TaskSample& each) { return !runs(each.key); });
        return true;
      },
      [&](model::GpusSampled& it) {
        it.machine = machine_;
        std::erase_if(it.uses, [&](const model::GpuUse& each) { return !runs(each.key); });
        for (const model::GpuFound& each : it.found) gpus_[each.gpu.value] = each.what;
        gpus_answer_ = std::ranges::all_of(it.gpus, &model::GpuReading::present);
        return true;
      },
      [&](model::KeeperSilent& it) {
        it.machine = machine_;
        return true;
      },
      [](const auto&) { return false; });
}

bool RemoteMachine::has_been_looked_at() const {
  return std::ranges::any_of(early_, [](const Early& it) {
    return std::holds_alternative<model::Sampled>(it.tells.what);
  });
}

void RemoteMachine::take_early(bool of_attempts) {
  const std::uint64_t line = line_;
  for (Early& each : std::exchange(early_, {})) {
    if (is_of_attempt(each.tells.what) != of_attempts) {
      early_.push_back(std::move(each));
      continue;
    }
    line_ = each.line;
    take(std::move(each.tells));
  }
  line_ = line;
}

void RemoteMachine::keep(const std::set<model::AttemptKey>& goes_on) {
  if (!begin_) return;
  wire::AgentBegin begin = *begin_;
  std::vector<model::AttemptKey>& keys = begin.keeps.emplace();
  for (const wire::AgentRun& run : found_) {
    if (goes_on.contains(run.command.key)) keys.push_back(run.command.key);
  }
  ready_ = false;
  say(std::move(begin));
}

void RemoteMachine::tell_what_goes_on(bool more_follow) {
  for (wire::AgentRun& run : found_) {
    const model::AttemptKey key = run.command.key;
    attempts_.insert(key);
    started_before_.insert(key);
    if (files_) files_->go_on_with(key, run.task_directory);
    Instant since = ears_.now();
    if (run.started) {
      model::What started = *std::move(run.started);
      static_cast<void>(take_in(started));
      auto& it = std::get<model::AttemptStarted>(started);
      since = it.began.value_or(since);
      run.started = std::move(it);
    }
    ears_.tell(model::AttemptFound{.key = key,
                                   .promise = run.command.promise,
                                   .site = {.machine = machine_, .gpus = run.command.site.gpus},
                                   .gpu_memory_max = run.command.gpu_memory_max,
                                   .since = since,
                                   .more_follow = more_follow || &run != &found_.back()});
  }
}

void RemoteMachine::tell_what_became_of_it() {
  for (wire::AgentRun& run : std::exchange(found_, {})) {
    if (run.started) ears_.tell(*std::move(run.started));
  }
  take_early(/*of_attempts=*/true);
}

bool RemoteMachine::has_started_before(model::AttemptKey key) {
  return started_before_.erase(key) > 0;
}

/// The number of the last line up to which all reports were passed on, and no files are awaited.
std::uint64_t RemoteMachine::settled() const {
  if (is_of_another_execution()) return hello_.acknowledged;
  std::uint64_t settled = heard_;
  for (const auto& [key, line] : untold_ends_) settled = std::min(settled, line - 1);
  if (!early_.empty() && in_run_) settled = std::min(settled, early_.front().line - 1);
  return settled;
}

void RemoteMachine::is_written() { written_ = std::max(written_, settled()); }

void RemoteMachine::take(const wire::AgentLog& log) {
  if (files_ && joined_) files_->add(log);
}

void RemoteMachine::bring_the_rest() {
  if (!files_ || !in_run_) return;
  // The attempts of that machine have been retried elsewhere, or will be.
  if (!is_ready()) return tell_what_is_left("the machine is unreachable");
  // Files that were given up before are not waited for now.
  if (!left_.empty()) return tell_what_is_left(left_);
  brings_ = true;
  files_->bring_the_rest([this](const Result<void>& brought) {
    brings_ = false;
    forgets_ = brought.has_value();
    if (forgets_) return;
    left_ = brought.error().message;
    tell_what_is_left(left_);
  });
}

void RemoteMachine::leave_the_rest() {
  files_->forget();
  brings_ = false;
  left_ = "interrupted";
  tell_what_is_left(left_);
}

void RemoteMachine::tell_what_is_left(const std::string& why) const {
  note(fmt::format("files are left there, in {}: {}", files_->elsewhere().run.there, why));
}

}  // namespace trainyard::run
