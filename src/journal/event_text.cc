#include "journal/event_text.h"

#include <array>
#include <iterator>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/match.h"
#include "base/time.h"
#include "journal/json_text.h"
#include "model/code.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/site_wish.h"
#include "model/status.h"
#include "model/waiting.h"

namespace trainyard::journal {
namespace {

void append_named(std::string& data, std::string_view name, std::string_view text) {
  fmt::format_to(std::back_inserter(data), ",\"{}\":", name);
  append_json_string(data, text);
}

void append_moment(std::string& data, std::string_view name, std::optional<Instant> moment) {
  if (!moment) return;
  fmt::format_to(std::back_inserter(data), ",\"{}\":{}", name, moment->since_start.count());
}

/// The first one is where all is that says nothing else.
void append_machine(std::string& data, model::MachineIndex machine) {
  if (machine.value == 0) return;
  fmt::format_to(std::back_inserter(data), R"(,"machine":{})", machine.value);
}

void append(std::string& data, const model::End& end) {
  match(
      end,
      [&](const model::ExitedWith& exit) {
        fmt::format_to(std::back_inserter(data), R"(,"exit":{})", exit.code);
      },
      [&](const model::KilledBy& kill) {
        fmt::format_to(std::back_inserter(data), R"(,"signal":{})", kill.signal);
        if (kill.out_of_memory) data += R"(,"out_of_memory":true)";
        if (kill.over_limit) data += R"(,"over_limit":true)";
      },
      [&](const model::NotStarted& none) {
        append_named(data, "not_started", none.why);
        if (none.of_machine) data += R"(,"of_machine":true)";
      },
      [&](const model::Vanished& gone) { append_named(data, "vanished", gone.why); });
}

void append(std::string& data, const model::TaskChanged& change, const RowNumbers& numbers) {
  fmt::format_to(std::back_inserter(data), R"({{"task":{},"attempt":{},"status":"{}")",
                 numbers.of(change.key.task), change.key.attempt, to_text(change.status));
  if (change.stage == Stage::Load) data += R"(,"stage":"LOAD")";
  if (change.verdict != model::Verdict::None)
    append_named(data, "verdict", model::to_text(change.verdict));
  if (change.failure != model::Failure::None)
    append_named(data, "failure", model::to_text(change.failure));
  if (change.exit_code != 0) {
    fmt::format_to(std::back_inserter(data), R"(,"exit_code":{})", change.exit_code);
  }
  if (!change.message.empty()) append_named(data, "message", change.message);
  data.push_back('}');
}

void append(std::string& data, const model::GroupChanged& change, const RowNumbers& numbers) {
  constexpr std::array<std::string_view, 6> kPhases{"BLOCKED", "RUNNING", "FINISHED",
                                                    "FAILED",  "SKIPPED", "STOPPED"};
  fmt::format_to(std::back_inserter(data), R"({{"group":{},"phase":"{}")", numbers.of(change.group),
                 kPhases.at(std::to_underlying(change.phase)));
  if (!change.message.empty()) append_named(data, "message", change.message);
  data.push_back('}');
}

/// Appends the fields of a reason that have a value.
void append(std::string& data, const model::Reason& reason, const RowNumbers& numbers) {
  append_named(data, "cause", model::to_text(reason.cause));
  append_machine(data, reason.machine);
  const model::Request& needs = reason.needs;
  const auto add = [&data](std::string_view name, std::int64_t value) {
    if (value != 0) fmt::format_to(std::back_inserter(data), ",\"{}\":{}", name, value);
  };
  add("memory", needs.memory.count);
  add("cpus_milli", needs.cpus.milli);
  add("gpus", needs.gpus);
  add("gpu_memory", needs.gpu_memory.count);
  if (needs.gpu) fmt::format_to(std::back_inserter(data), R"(,"gpu":{})", needs.gpu->value);
  add("largest", needs.largest ? 1 : 0);
  add("utilization", needs.sharing.utilization);
  add("max_per_gpu", needs.sharing.max_per_gpu);
  add("gpu_memory_seen", reason.gpu_memory_seen.count);
  add("disk", needs.disk.count);
  if (!needs.where.says_nothing()) append_named(data, "where", model::to_text(needs.where));
  add("parallel_max", reason.parallel_max);
  if (!reason.groups.empty()) append_named(data, "groups", reason.groups);
  if (!reason.refusal.empty()) append_named(data, "refusal", reason.refusal);
  if (reason.first) {
    fmt::format_to(std::back_inserter(data), R"(,"first":{})", numbers.of(*reason.first));
  }
  if (reason.not_before) add("not_before_ms", reason.not_before->since_start.count());
  if (reason.first_since) add("since_ms", reason.first_since->since_start.count());
}

void append(std::string& data, const model::Change& change, const RowNumbers& numbers) {
  match(
      change, [&](const model::TaskChanged& task) { append(data, task, numbers); },
      [&](const model::GroupChanged& group) { append(data, group, numbers); },
      [&](const model::ReasonChanged& reason) {
        fmt::format_to(std::back_inserter(data), R"({{"shape":{})", numbers.of(reason.shape));
        append(data, reason.reason, numbers);
        data.push_back('}');
      },
      [&](const model::SharingMeasured& it) {
        fmt::format_to(
            std::back_inserter(data),
            R"({{"shape":{},"to_a_gpu":{},"factor":{:.3f},"tasks":{},"to_a_gpu_max":{}}})",
            numbers.of(it.shape), it.to_a_gpu, it.factor, it.tasks, it.to_a_gpu_max);
      },
      // A reading, and not kept among what happened.
      [&](const model::HeadroomSeen&) {},
      [&](const model::Reached& it) {
        fmt::format_to(std::back_inserter(data), R"({{"reached":{},"memory":{})",
                       numbers.of(it.task), it.memory.count);
        if (it.gpu_memory > Bytes{}) {
          fmt::format_to(std::back_inserter(data), R"(,"gpu_memory":{})", it.gpu_memory.count);
        }
        if (it.largest) data += R"(,"largest":true)";
        data.push_back('}');
      },
      [&](const model::SaidOfTask& it) {
        fmt::format_to(std::back_inserter(data), R"({{"said":{},"on_hold":{})", numbers.of(it.task),
                       it.on_hold);
        if (it.priority) {
          fmt::format_to(std::back_inserter(data), R"(,"priority":{})", *it.priority);
        }
        data.push_back('}');
      },
      [&](const model::Learned& it) {
        fmt::format_to(std::back_inserter(data),
                       R"({{"shape":{},"learned":{},"memory":{},"gpu_memory":{}}})",
                       numbers.of(it.shape), it.tasks, it.memory.count, it.gpu_memory.count);
      });
}

void append_site(std::string& data, const model::Request& promise, const model::Site& site,
                 const RowNumbers& numbers) {
  append_machine(data, site.machine);
  if (site.gpus.empty()) return;
  data += R"(,"gpus":[)";
  for (std::size_t i = 0; i < site.gpus.size(); ++i) {
    fmt::format_to(std::back_inserter(data), R"({}"{}")", i == 0 ? "" : ",",
                   numbers.of(site.machine, site.gpus[i]));
  }
  fmt::format_to(std::back_inserter(data), R"(],"gpu_memory":{})", promise.gpu_memory.count);
}

void append(std::string& data, const model::Command& command, const RowNumbers& numbers) {
  match(
      command,
      [&](const model::StartAttempt& start) {
        fmt::format_to(std::back_inserter(data),
                       R"({{"start":{},"attempt":{},"memory":{},"cpus_milli":{})",
                       numbers.of(start.key.task), start.key.attempt, start.promise.memory.count,
                       start.promise.cpus.milli);
        append_site(data, start.promise, start.site, numbers);
        data.push_back('}');
      },
      [&](const model::GrantDevice& grant) {
        fmt::format_to(std::back_inserter(data),
                       R"({{"train":{},"attempt":{},"memory":{},"cpus_milli":{})",
                       numbers.of(grant.key.task), grant.key.attempt, grant.promise.memory.count,
                       grant.promise.cpus.milli);
        append_site(data, grant.promise, grant.site, numbers);
        data.push_back('}');
      },
      [&](const model::SignalAttempt& early) {
        fmt::format_to(std::back_inserter(data), R"({{"signal":{},"attempt":{},"number":{}}})",
                       numbers.of(early.key.task), early.key.attempt, early.signal);
      },
      [&](const model::StopAttempt& stop) {
        fmt::format_to(std::back_inserter(data), R"({{"stop":{},"attempt":{},"kill":{}}})",
                       numbers.of(stop.key.task), stop.key.attempt, stop.kill);
      },
      [&](const model::Answer& answer) {
        fmt::format_to(std::back_inserter(data), R"({{"answer":{},"done":{}}})", answer.request,
                       answer.done);
      });
}

/// Adds the items that the row has room for; returns how many.
template <class Item>
std::size_t append_list(std::string& data, std::string_view name, std::span<const Item> items,
                        const RowNumbers& numbers) {
  if (items.empty() || data.size() >= kEventTextMax) return 0;
  fmt::format_to(std::back_inserter(data), ",\"{}\":", name);
  std::size_t done = 0;
  for (; done < items.size() && data.size() < kEventTextMax; ++done) {
    data.push_back(done == 0 ? '[' : ',');
    append(data, items[done], numbers);
  }
  data.push_back(']');
  return done;
}

/// Returns the changes without the one about available resources. That is a reading with a table of
/// its own, and comes last.
std::span<const model::Change> changes_to_tell(const model::Decision& decision) {
  std::span<const model::Change> changes = decision.changes;
  while (!changes.empty() && std::holds_alternative<model::HeadroomSeen>(changes.back())) {
    changes = changes.first(changes.size() - 1);
  }
  return changes;
}

bool says_nothing(const model::What& what) {
  return std::holds_alternative<model::Sampled>(what) ||
         std::holds_alternative<model::GpusSampled>(what) ||
         std::holds_alternative<model::Progressed>(what) ||
         std::holds_alternative<model::NeighboursSeen>(what) ||
         std::holds_alternative<model::TimePassed>(what);
}

std::string retry_json(const model::RetryAsked& retry) {
  return fmt::format(R"("request":{},"memory":{},"gpu_memory":{},"time_limit_ms":{})",
                     retry.request, retry.memory.count, retry.gpu_memory.count,
                     retry.time_limit.count());
}

void append(std::string& data, const model::MachineJoined& joined) {
  fmt::format_to(std::back_inserter(data), R"(,"machine":{})", joined.machine.value);
  append_named(data, "name", joined.name);
  const model::Capacity& has = joined.capacity;
  fmt::format_to(std::back_inserter(data), R"(,"memory":{},"cpus_milli":{})", has.memory.count,
                 has.cpus.milli);
  for (std::size_t i = 0; i < has.gpus.size(); ++i) {
    fmt::format_to(std::back_inserter(data), R"({}"{}")", i == 0 ? R"(,"gpus":[)" : ",",
                   has.gpus[i].label());
  }
  if (!has.gpus.empty()) data.push_back(']');
  if (joined.until) {
    fmt::format_to(std::back_inserter(data), R"(,"until_ms":{})",
                   joined.until->since_start.count());
  }
}

void append(std::string& data, const model::MachineGone& gone) {
  fmt::format_to(std::back_inserter(data), R"(,"machine":{})", gone.machine.value);
  append_named(data, "message", gone.why);
}

void append(std::string& data, const model::KeeperSilent& keeper) {
  fmt::format_to(std::back_inserter(data), R"(,"silent":{})", keeper.silent);
  if (keeper.another) fmt::format_to(std::back_inserter(data), R"(,"pid":{})", *keeper.another);
  append_machine(data, keeper.machine);
}

void append(std::string& data, const model::GpusSampled& sample) {
  for (const model::GpuFound& it : sample.found) append_named(data, "found", it.what.uuid);
  append_machine(data, sample.machine);
}

void append(std::string& data, const model::InterruptAsked& interrupt) {
  if (!interrupt.why.empty()) append_named(data, "message", interrupt.why);
}

void append(std::string& data, const model::BatchAdded& batch) {
  fmt::format_to(std::back_inserter(data), R"(,"number":{},"tasks":{})", batch.number,
                 batch.plan->tasks.size());
}

void append(std::string& data, const model::NeighboursSeen& seen) {
  fmt::format_to(std::back_inserter(data), R"(,"runs":{})", seen.neighbours.size());
  append_machine(data, seen.machine);
}

void append(std::string& data, const model::ClaimRefused& refused) {
  fmt::format_to(std::back_inserter(data), R"(,"starts":{},"runs":{})", refused.attempts.size(),
                 refused.neighbours.size());
  append_machine(data, refused.machine);
}

void append(std::string& data, const model::CodeFound& found) {
  if (found.code) append_named(data, "code", model::to_text(*found.code));
  fmt::format_to(std::back_inserter(data), R"(,"attempts":{})", found.attempts.size());
}

void append(std::string& data, const model::LimitsChanged& limits) {
  if (limits.gpus_max) {
    fmt::format_to(std::back_inserter(data), R"(,"gpus_max":{})", *limits.gpus_max);
  }
  fmt::format_to(std::back_inserter(data), R"(,"drained":{},"cleared":{})", limits.drained.size(),
                 limits.cleared.size());
  append_machine(data, limits.machine);
}

void append(std::string& data, const model::AttemptEnded& ended) {
  append(data, ended.end);
  append_moment(data, "ended_ms", ended.ended);
  fmt::format_to(std::back_inserter(data), R"(,"memory_peak":{},"cpu_ms":{})",
                 ended.usage.memory_peak.count, ended.usage.cpu_time.count());
  if (ended.usage.gpu_memory_peak > Bytes{}) {
    fmt::format_to(std::back_inserter(data), R"(,"gpu_memory_peak":{})",
                   ended.usage.gpu_memory_peak.count);
  }
  if (ended.ranks.failed) {
    fmt::format_to(std::back_inserter(data), R"(,"rank":{})", *ended.ranks.failed);
  }
  if (!ended.result.empty()) {
    fmt::format_to(std::back_inserter(data), R"(,"result_bytes":{})", ended.result.size());
  }
  if (!ended.warning.empty()) append_named(data, "warning", ended.warning);
}

}  // namespace

void EventRows::begin(EventRow& row) {
  const auto about = [&](std::string_view kind, model::AttemptKey key) {
    row.kind = kind;
    row.task = numbers_.of(key.task);
    row.attempt = key.attempt;
  };
  const auto asked = [&](std::string_view kind, model::TaskIndex task, const std::string& what) {
    row.kind = kind;
    row.task = numbers_.of(task);
    row.data += "," + what;
  };
  const auto of = [&](std::string_view kind, const auto& what) {
    row.kind = kind;
    append(row.data, what);
  };
  match(
      event_.what, [&](const model::MachineJoined& it) { of("machine_joined", it); },
      [&](const model::MachineGone& it) { of("machine_gone", it); },
      [&](const model::AttemptStarted& started) {
        about("started", started.key);
        fmt::format_to(std::back_inserter(row.data), R"(,"pid":{})", started.pid);
        append_moment(row.data, "began_ms", started.began);
      },
      [&](const model::StageReported& report) {
        about(model::to_text(report.said), report.key);
        if (!report.message.empty()) append_named(row.data, "message", report.message);
      },
      [&](const model::Progressed& progress) { about("progress", progress.key); },
      [&](const model::AttemptEnded& ended) {
        about("ended", ended.key);
        append(row.data, ended);
      },
      [&](const model::Sampled& it) {
        row.kind = "sampled";
        append_machine(row.data, it.machine);
      },
      [&](const model::GpusSampled& it) { of("gpus_sampled", it); },
      [&](const model::KeeperSilent& it) { of("keeper", it); },
      [&](const model::InterruptAsked& it) { of("interrupt", it); },
      [&](const model::KillAsked& kill) {
        asked("kill", kill.task, fmt::format(R"("request":{})", kill.request));
      },
      [&](const model::HoldAsked& hold) {
        asked(hold.hold ? "hold" : "release", hold.task,
              fmt::format(R"("request":{})", hold.request));
      },
      [&](const model::PriorityAsked& it) {
        asked("priority", it.task,
              fmt::format(R"("request":{},"priority":{})", it.request, it.priority));
      },
      [&](const model::RetryAsked& retry) { asked("retry", retry.task, retry_json(retry)); },
      [&](const model::BatchAdded& it) { of("batch", it); },
      [&](const model::NeighboursSeen& it) { of("neighbours", it); },
      [&](const model::ClaimRefused& it) { of("claim_refused", it); },
      [&](const model::LimitsChanged& it) { of("limits", it); },
      [&](const model::AttemptFound& found) { about("found", found.key); },
      [&](const model::CodeFound& it) { of("code", it); },
      [&](const model::TimePassed&) { row.kind = "time"; });
}

bool EventRows::next(EventRow& row) {
  const std::span<const model::Change> changes = changes_to_tell(decision_);
  const bool done = changes_done_ == changes.size() && commands_done_ == decision_.commands.size();
  if (done && (begun_ || says_nothing(event_.what))) return false;
  row.kind = "more";
  row.task.reset();
  row.attempt.reset();
  row.data.clear();
  if (!begun_) begin(row);
  begun_ = true;
  changes_done_ += append_list(row.data, "changes", changes.subspan(changes_done_), numbers_);
  commands_done_ += append_list(
      row.data, "commands",
      std::span<const model::Command>(decision_.commands).subspan(commands_done_), numbers_);
  // Every member was written with a comma before it.
  if (row.data.empty()) {
    row.data = "{}";
  } else {
    row.data.front() = '{';
    row.data.push_back('}');
  }
  return true;
}

}  // namespace trainyard::journal
