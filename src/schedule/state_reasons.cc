// The part of the scheduler that says why tasks wait.
#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "base/bytes.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard {
namespace {

std::string count_text(Cpus cpus) {
  return fmt::format("{}", static_cast<double>(cpus.milli) / 1000);
}

std::string cpus_text(Cpus cpus) {
  return fmt::format("{} {}", count_text(cpus), cpus == Cpus{1000} ? "CPU" : "CPUs");
}

std::string tasks_text(int count) { return count == 1 ? "1 task" : fmt::format("{} tasks", count); }

}  // namespace

void Scheduler::State::note_reason(const WaitingRoom::Lane& lane, Cause cause, Decision& out) {
  // The oldest lane of a shape speaks for it.
  std::uint32_t& noted = noted_in_[lane.shape.value];
  if (noted == pass_) return;
  noted = pass_;
  Cause& told = causes_[lane.shape.value];
  if (told == cause) return;
  told = cause;
  out.changes.emplace_back(ReasonChanged{.shape = lane.shape, .reason = words_for(lane, cause)});
}

void Scheduler::State::clear_reason(ShapeIndex shape, Decision& out) {
  Cause& told = causes_[shape.value];
  if (told == Cause::None) return;
  told = Cause::None;
  out.changes.emplace_back(ReasonChanged{.shape = shape, .reason = {}});
}

void Scheduler::State::note_queued(Decision& out) {
  for (const WaitingRoom::Place& place : waiting_.order()) {
    const WaitingRoom::Lane& lane = waiting_.lane(place.lane);
    const Cause told = causes_[lane.shape.value];
    if (told == Cause::None || told == Cause::Group) note_reason(lane, Cause::Queued, out);
  }
}

std::string Scheduler::State::words_for(const WaitingRoom::Lane& lane, Cause cause) const {
  const auto hold = [](int count) {
    return fmt::format("{} {}", tasks_text(count), count == 1 ? "holds" : "hold");
  };
  switch (cause) {
    case Cause::KeeperSilent:
      return "the keeper of the task processes does not answer";
    case Cause::Processes:
      if (limits_.processes_max > 0 && processes_max() == limits_.processes_max) {
        return fmt::format("max-process lets {} run at once", tasks_text(limits_.processes_max));
      }
      return fmt::format("the machine lets {} run at once ({})", tasks_text(processes_max()),
                         capacity_.processes_max_reason);
    case Cause::OthersUseCpu:
      return fmt::format("others use {:.0f} % of the CPUs, utilization-limit.cpu is {:.0f} %",
                         100 * ledger_.cpu_used_by_others(), 100 * limits_.cpu_utilization_max);
    case Cause::Parallel:
      return fmt::format("max-parallel lets {} of its group run at once",
                         tasks_text(groups_.planned(lane.group).parallel_max));
    case Cause::Cpus:
      return fmt::format("needs {}, {} of {} free, {} the others", cpus_text(lane.request.cpus),
                         count_text(ledger_.cpus_free()), count_text(capacity_.cpus),
                         hold(ledger_.tasks_with_cpus()));
    case Cause::Memory: {
      const Bytes free = std::max(Bytes{}, ledger_.memory_free());
      const Bytes others = ledger_.memory_of_others();
      return fmt::format("needs {} of memory, {} free, {} {}{}", to_text(request_of(lane).memory),
                         to_text(free), hold(ledger_.tasks()), to_text(ledger_.memory_held()),
                         others > Bytes{} ? fmt::format(", others use {}", to_text(others)) : "");
    }
    case Cause::Gpus:
    case Cause::GpusLinger:
    case Cause::GpusGone:
      return gpu_words_for(within_gpus(lane.request, lane.shape), cause);
    case Cause::Ahead:
      if (limits_.waiting_max > 0 && ahead_ >= limits_.waiting_max) {
        return fmt::format("max-waiting lets {} be loaded ahead", tasks_text(limits_.waiting_max));
      }
      return fmt::format("{} loaded ahead already",
                         ahead_ == 1 ? "1 task is" : fmt::format("{} tasks are", ahead_));
    case Cause::Reserved:
      return "would delay an older task that waits for more than is free";
    case Cause::Queued:
      return "older tasks are looked at first";
    case Cause::Group:
    case Cause::None:
      break;
  }
  return {};
}

}  // namespace trainyard
