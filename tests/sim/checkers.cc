#include "sim/checkers.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "base/match.h"
#include "model/waiting.h"

namespace trainyard::sim {

Checkers::Checkers(const Workload& workload, FaultCounts& counts)
    : workload_(workload), counts_(counts), outside_(workload.policy, workload.capacity) {}

void Checkers::complain(std::string what) {
  if (complaint_) return;
  complaint_ = fmt::format("at {} ms: {}", now_.since_start.count(), std::move(what));
}

void Checkers::expect(bool holds, std::string_view rule) {
  if (!holds) complain(std::string(rule));
}

void Checkers::expect_of(model::TaskIndex task, bool holds, std::string_view rule) {
  if (!holds) complain(fmt::format("task {}: {}", task.value, rule));
}

void Checkers::offered(const model::Turn& turn, bool committed) {
  expect(turn.events.size() == turn.decisions.size(), "there is a decision for each event");
  for (; looked_at_ < turn.events.size() && !complaint_; ++looked_at_) {
    look_at(turn.events[looked_at_], turn.decisions[looked_at_]);
  }
  written_ = committed;
  if (!committed) return;
  looked_at_ = 0;
  for (Due& due : due_) due.committed = true;
}

void Checkers::look_at(const model::Event& event, const model::Decision& decision) {
  expect(event.at >= now_, "time does not go back");
  now_ = event.at;
  event_ = &event;
  about_.reset();
  held_back_ = false;
  refused_ = false;
  expected_ = {};
  entered_.clear();
  reached_due_.reset();
  kill_of_.reset();
  lost_needs_.clear();
  retry_of_.reset();
  said_due_.reset();
  said_free_.reset();
  oldest_.reset();
  oldest_loaded_.reset();
  kept_.reset();
  kept_loaded_.reset();
  held_.clear();
  passed_by_.clear();
  caps_.clear();
  outside_.started.clear();
  outside_.settling.clear();
  outside_.without_disk.clear();
  lack_disk_alone_.clear();
  stop_due_ = StopReason::None;
  too_much_.clear();
  signal_due_.reset();
  outside_.latest = event.at;
  look_at_trials();
  happened(event);
  outside_.gpus.time_passes(event.at);
  look_at_delays();
  for (const model::Change& change : decision.changes) {
    match(change, [this](const auto& it) { changed(it); });
  }
  for (const model::Command& command : decision.commands) {
    match(command, [this](const auto& it) { decided(it); });
    due_.push_back({.command = command});
  }
  take_causes_to_heart();
  // Before the first reading of the machine there is nothing that could be decided.
  begun_ = begun_ || std::holds_alternative<model::Sampled>(event.what);
  if (begun_) check_after(event);
  event_ = nullptr;
}

void Checkers::happened(const model::Event& event) {
  match(
      event.what, [](const model::MachineJoined&) {}, [](const model::MachineGone&) {},
      [&](const model::AttemptStarted& it) { attempt_started(it); },
      [&](const model::StageReported& it) { stage_reported(it); },
      [&](const model::AttemptEnded& it) { attempt_ended(event.at, it); },
      [&](const model::Sampled& it) { look_at_memory(it); },
      [&](const model::GpusSampled& it) { look_at_gpus(event.at, it); },
      [&](const model::KeeperSilent& it) { outside_.keeper_silent = it.silent; },
      [&](const model::InterruptAsked&) {
        ++outside_.interrupts;
        if (outside_.interrupts == 1) counts_.count(Fault::InterruptOnce);
        for (SeenGroup& group : outside_.groups) group.tried_first.reset();
        for (auto& [task, attempt] : outside_.running) not_again(attempt, StopReason::Interrupt);
        if (outside_.interrupts == 2) counts_.count(Fault::InterruptTwice);
      },
      [&](const model::KillAsked& it) { kill_asked(it); },
      [&](const model::RetryAsked& it) { retry_asked(it); },
      [&](const model::HoldAsked& it) { hold_asked(it); },
      [&](const model::PriorityAsked& it) { priority_asked(it); },
      [&](const model::BatchAdded& it) {
        outside_.add(*it.plan, it.number == 1 ? Instant{} : event.at);
        for (std::size_t i = 0; i < it.plan->taken.size(); ++i) counts_.count(Fault::TaughtBefore);
      },
      [&](const model::Progressed& it) { progressed(it); },
      // Several yards on one machine are played by sim/many_yards.h.
      [](const model::NeighboursSeen&) {}, [](const model::ClaimRefused&) {},
      [](const model::LimitsChanged&) {}, [](const model::AttemptFound&) {},
      [](const model::CodeFound&) {}, [](const model::TimePassed&) {});
}

/// Its time limit counts from now on, its duration from its beginning.
void Checkers::heard_of(SeenAttempt& attempt, std::optional<Instant> began) {
  const model::TaskIndex index = attempt.key.task;
  held_back_ = outside_.pause.has_value();
  outside_.started_after_all(index, now_);
  attempt.started = std::clamp(began.value_or(now_), attempt.granted, now_);
  const Duration limit = outside_.time_limit_of(index);
  if (limit > Duration{0} && attempt.stop == StopReason::None) {
    const Duration before = outside_.shape_of(index).terms.early_signal.before;
    attempt.end_by = now_ + std::max(Duration{0}, limit - before);
  }
  if (outside_.two_phase(index)) return;
  attempt.trains_since = attempt.started;
}

void Checkers::attempt_started(const model::AttemptStarted& news) {
  const auto found = outside_.running.find(news.key.task);
  if (found == outside_.running.end() || found->second.key != news.key) return;
  if (found->second.started) return;
  found->second.keeps_to_cap = !news.capped_by.empty();
  heard_of(found->second, news.began);
  about_ = news.key.task;
  if (!outside_.two_phase(news.key.task)) expected_.statuses = {Status::Training};
}

void Checkers::attempt_ended(Instant at, const model::AttemptEnded& news) {
  const auto found = outside_.running.find(news.key.task);
  if (found == outside_.running.end() || found->second.key != news.key) return;
  about_ = news.key.task;
  const bool on_gpus = !outside_.gpus.shares_of(news.key.task).empty();
  const bool crowded = outside_.gpus.is_crowded(news.key.task);
  const auto lost_gpu = outside_.gpus.lost_one(news.key.task, at);
  model::Usage usage = news.usage;
  usage.gpu_memory_peak = std::max(usage.gpu_memory_peak, outside_.gpus.peak_of(news.key.task));
  SeenAttempt attempt = outside_.release(news.key.task, at);
  outside_.learn_from_running();
  SeenTask& task = outside_.task(news.key.task);
  const bool two_phase = outside_.two_phase(news.key.task);
  const bool was = !std::holds_alternative<model::NotStarted>(news.end);
  const bool unheard_of = was && !attempt.started && !two_phase;
  const Instant ended = std::min(news.ended.value_or(at), at);
  const auto* const not_started = std::get_if<model::NotStarted>(&news.end);
  refused_ = not_started != nullptr && not_started->of_machine && outside_.refuse(news.key, at);
  if (refused_) {
    expect_of(news.key.task, !attempt.started, "what was not started was not heard of before");
    if (task.refusal_delay > Duration{0}) counts_.count(Fault::RefusedAlone);
  } else if (was && !attempt.started) {
    outside_.started_after_all(news.key.task, attempt.granted);
  } else if (outside_.pause && outside_.pause->tried == news.key) {
    outside_.end_pause();
  }
  if (was || attempt.stop != StopReason::Interrupt) {
    forget_what_was_found_late(attempt, task, ended);
  }
  if (died_of_warning(attempt, news.end)) attempt.stop = StopReason::TimeLimit;
  blame_its_cap(attempt, usage.gpu_memory_peak);
  expected_ = judge(attempt, task, news.end);
  const bool by_itself =
      expected_.may_be_its_own() && attempt.stop == StopReason::None && !attempt.word;
  if (by_itself && !news.out_of_memory.empty()) {
    attempt.out_of_gpu = news.of_gpu && on_gpus;
    attempt.out_of_other_gpu = news.of_gpu && !on_gpus;
    attempt.crowded = attempt.out_of_gpu && crowded;
    blame_its_cap(attempt, usage.gpu_memory_peak);
    expected_ = judge_out_of_memory(attempt, task);
  }
  if (lost_gpu && may_have_died_with_gpu(attempt)) {
    counts_.count(Fault::DiesWithGpu);
    attempt.gpu_died = lost_gpu;
    expected_ = failed(model::Failure::Lost);
  }
  const bool for_memory = expected_.failure == model::Failure::OutOfMemory;
  const bool preempted =
      attempt.stop == StopReason::Preempted || attempt.stop == StopReason::Crowds;
  const bool excused = for_memory && !preempted && is_excused(attempt, task);
  if (excused) {
    counts_.count(Fault::Crowded);
  } else if (for_memory && !preempted) {
    ++(attempt.stage == Stage::Load ? task.load_failures : task.train_failures);
  }
  const Duration delay = try_again(attempt, task, at);
  if (unheard_of) expected_.statuses.insert(expected_.statuses.begin(), Status::Training);
  // It died before it could say that it loads.
  if (two_phase && for_memory && task.status == Status::Available) {
    expected_.statuses.insert(expected_.statuses.begin(), Status::Loading);
  }
  for (const std::uint64_t request : attempt.requests) answers_due_[request] = true;
  if (expected_.verdict == model::Verdict::None) {
    ask_again(attempt, task, usage);
    if (excused) ++task.crowded;
    if (for_memory || preempted) {
      reached_due_ = what_is_reached(news.key.task, task.request.memory);
    }
    if (delay > Duration{0}) {
      task.back_at = at + delay;
      --outside_.waiting_in[task.shape.value];
    } else {
      outside_.waiting.insert(news.key.task);
    }
  }
  if (expected_.verdict != model::Verdict::None) trial_ended(attempt);
  if (expected_.verdict == model::Verdict::Finished) learn_from(attempt, task, news, ended);
  if (refused_) look_whether_run_is_given_up();
}

/// Nothing runs, and nothing could be started for too long: all that waits is stopped, and starts
/// when the run is resumed.
void Checkers::look_whether_run_is_given_up() {
  if (outside_.interrupts > 0 || !outside_.running.empty() || !outside_.pause) return;
  if (now_ - outside_.pause->since < workload_.policy.machine_patience) return;
  counts_.count(Fault::RunGivenUp);
  ++outside_.interrupts;
  for (SeenGroup& group : outside_.groups) group.tried_first.reset();
  // An attempt whose end was requested has ended already.
  if (expected_.verdict != model::Verdict::None) return;
  expected_ = {.statuses = {Status::Interrupt, Status::Interrupt},
               .verdict = model::Verdict::Stopped};
}

void Checkers::forget_what_was_found_late(SeenAttempt& attempt, SeenTask& task, Instant ended) {
  if (!ended_before_it_was_found(attempt, ended)) return;
  counts_.count(Fault::HadEnded);
  const bool interrupted =
      attempt.stop == StopReason::Preempted || attempt.stop == StopReason::Crowds;
  if (interrupted) --task.preempted;
  attempt.stop = StopReason::None;
}

void Checkers::learn_from(const SeenAttempt& attempt, const SeenTask& task,
                          const model::AttemptEnded& news, Instant ended) {
  const bool capped = news.usage.gpu_capped;
  if (capped) counts_.count(Fault::CappedPeak);
  outside_.learn(news.key.task, std::max(news.usage.memory_peak, attempt.peak),
                 capped ? Bytes{} : news.usage.gpu_memory_peak);
  SeenGroup& group = outside_.groups[task.group.value];
  // However late that was heard.
  const Duration took = ended - attempt.trains_since.value_or(attempt.granted);
  ++group.ended_well;
  group.durations += took;
  group.longest = std::max(group.longest, took);
}

/// The request of its next attempt: more of the resource that this one lacked.
void Checkers::ask_again(const SeenAttempt& attempt, SeenTask& task, const model::Usage& usage) {
  const bool for_memory = expected_.failure == model::Failure::OutOfMemory;
  const Bytes most = outside_.capacity.memory - outside_.kept_free;
  Bytes memory = attempt.promise.memory;
  if (attempt.stop == StopReason::Preempted) {
    // It did not fail.
    memory = std::max(memory, std::min(attempt.peak, most));
  } else if (!for_memory && attempt.stop != StopReason::Crowds) {
    // It did not lack the memory that it requests.
  } else if (attempt.stop != StopReason::Crowds && !attempt.out_of_gpu &&
             !attempt.out_of_other_gpu) {
    memory = after_out_of_memory(memory, usage.memory_peak, most);
  } else if (attempt.out_of_gpu || attempt.stop == StopReason::Crowds) {
    const int failures = attempt.stage == Stage::Load ? task.load_failures : task.train_failures;
    ask_for_more_gpu(attempt, task.gpu_request, usage.gpu_memory_peak,
                     outside_.tries_for_memory(task, attempt.stage) - failures - 1);
    task.asked_of_gpus(attempt.promise.gpu_memory, task.gpu_request.gpu_memory);
  }
  if (attempt.gpu_died) {
    std::vector<model::GpuPlace>& avoids = task.gpu_request.avoids;
    const model::GpuPlace place{.machine = {}, .gpu = *attempt.gpu_died};
    if (std::ranges::find(avoids, place) == avoids.end()) avoids.push_back(place);
  }
  if (!outside_.two_phase(attempt.key.task)) {
    const model::Request before = task.request;
    task.request = task.gpu_request;
    task.request.cpus = before.cpus;
    task.request.disk = before.disk;
  }
  task.request.memory = memory;
  task.again = true;
}

void Checkers::kill_asked(const model::KillAsked& news) {
  ++requests_;
  const bool known = news.task.value < outside_.tasks.size();
  if (!known) {
    counts_.count(Fault::KillOfUnknown);
  } else if (outside_.running.contains(news.task)) {
    counts_.count(Fault::KillOfRunning);
    outside_.running.at(news.task).requests.push_back(news.request);
    not_again(outside_.running.at(news.task), StopReason::KillAsked);
    return;
  } else if (outside_.task(news.task).verdict != model::Verdict::None) {
    counts_.count(Fault::KillOfEnded);
  } else {
    counts_.count(Fault::KillOfWaiting);
    kill_of_ = news.task;
  }
  answers_due_[news.request] = kill_of_.has_value();
}

void Checkers::carried_out(const model::Command& command) {
  if (complaint_) return;
  const auto same = [&](const Due& due) {
    return match(
        command,
        [&](const model::StartAttempt& it) {
          const auto* other = std::get_if<model::StartAttempt>(&due.command);
          return other != nullptr && other->key == it.key && other->promise == it.promise &&
                 other->site == it.site && other->memory_max == it.memory_max &&
                 other->gpu_memory_max == it.gpu_memory_max;
        },
        [&](const model::GrantDevice& it) {
          const auto* other = std::get_if<model::GrantDevice>(&due.command);
          return other != nullptr && other->key == it.key && other->promise == it.promise &&
                 other->site == it.site && other->memory_max == it.memory_max &&
                 other->gpu_memory_max == it.gpu_memory_max;
        },
        [&](const model::SignalAttempt& it) {
          const auto* other = std::get_if<model::SignalAttempt>(&due.command);
          return other != nullptr && other->key == it.key && other->signal == it.signal;
        },
        [&](const model::StopAttempt& it) {
          const auto* other = std::get_if<model::StopAttempt>(&due.command);
          return other != nullptr && other->key == it.key && other->kill == it.kill;
        },
        [&](const model::Answer& it) {
          const auto* other = std::get_if<model::Answer>(&due.command);
          return other != nullptr && other->request == it.request && other->done == it.done;
        });
  };
  const auto found = std::ranges::find_if(due_, same);
  const auto* const stop = std::get_if<model::StopAttempt>(&command);
  const auto* const signal = std::get_if<model::SignalAttempt>(&command);
  if (found == due_.end() && (stop != nullptr || signal != nullptr) && !written_) {
    giving_up_ = true;
    // TERM comes with the end of the keeper, which is next.
    stopped_.insert(stop != nullptr ? stop->key : signal->key);
    return;
  }
  expect(found != due_.end(), "only what was decided reaches the machine, and once");
  if (complaint_) return;
  match(
      command,
      [&](const model::StartAttempt& it) {
        expect_of(it.key.task, found->committed, "nothing starts before it is written down");
        expect_of(it.key.task, on_machine_.insert(it.key).second, "an attempt starts once");
      },
      [&](const model::GrantDevice& it) {
        expect_of(it.key.task, found->committed, "nothing trains before it is written down");
      },
      [&](const model::SignalAttempt& it) {
        expect_of(it.key.task, on_machine_.contains(it.key), "is started before it is signalled");
        stopped_.insert(it.key);
      },
      [&](const model::StopAttempt& it) {
        expect_of(it.key.task, on_machine_.contains(it.key), "is started before it is stopped");
        stopped_.insert(it.key);
      },
      [&](const model::Answer& it) {
        expect(answered_.insert(it.request).second, "a kill request is answered once");
      });
  due_.erase(found);
}

void Checkers::waits(std::optional<Instant> until) {
  if (complaint_) return;
  expect(!giving_up_, "a run that is given up is over");
  const bool all_done = std::ranges::none_of(due_, &Due::committed);
  expect(all_done, "what is written down is carried out before the loop waits");
  for (const auto& [task, attempt] : outside_.running) {
    std::optional<Instant> deadline = attempt.end_by;
    if (attempt.stopped) deadline = *attempt.stopped + workload_.policy.stop_grace;
    if (attempt.killed) deadline.reset();
    if (!deadline) continue;
    expect_of(task, until && *until <= *deadline, "the loop wakes up for its deadline");
  }
  const bool someone_may_be_tried = outside_.pause && !outside_.pause->tried &&
                                    now_ < outside_.pause->tries_at && outside_.interrupts == 0 &&
                                    !outside_.keeper_silent && !outside_.waiting.empty();
  expect(!someone_may_be_tried || (until && *until <= outside_.pause->tries_at),
         "the loop wakes up when a task is tried again after a machine has refused to start one");
  for (const SeenGroup& group : outside_.groups) {
    const auto since = group.tried_first ? outside_.lives_since(*group.tried_first) : std::nullopt;
    expect(!since || (until && *until <= *since + workload_.policy.try_first_time),
           "the loop wakes up when one that is tried first has lived long enough");
  }
}

void Checkers::over(bool gave_up, std::size_t processes_left) {
  if (complaint_) return;
  if (gave_up) {
    counts_.count(Fault::DiskFullTooLong);
    for (const auto& [task, attempt] : outside_.running) {
      if (!on_machine_.contains(attempt.key)) continue;
      expect_of(task, stopped_.contains(attempt.key), "is told to end when the run is given up");
    }
    return;
  }
  expect(due_.empty(), "all that was decided has been carried out");
  expect(processes_left == 0, "no process outlives the run");
  expect(outside_.running.empty(), "every attempt that was started has ended");
  expect(answered_.size() == requests_, "every kill request is answered");
  expect(outside_.tasks.size() == workload_.plan.tasks.size(), "every batch comes to be run");
  for (std::uint32_t index = 0; index < outside_.tasks.size(); ++index) {
    expect_of({index}, outside_.tasks[index].verdict != model::Verdict::None, "every task ends");
  }
  for (const SeenGroup& group : outside_.groups) {
    const bool open =
        group.phase == model::GroupPhase::Blocked || group.phase == model::GroupPhase::Running;
    expect(!open, "every group ends");
  }
  for (const model::Reason& reason : outside_.reasons) {
    expect(reason.cause == model::Cause::None, "no reason is left when nobody waits");
  }
}

}  // namespace trainyard::sim
