// The words of a reason. See model/waiting.h.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/time.h"
#include "model/resources.h"
#include "model/waiting.h"

namespace trainyard::model {
namespace {

constexpr std::array<std::pair<Cause, std::string_view>, 16> kCauseNames{
    {{Cause::Group, "group"},
     {Cause::TriedFirst, "tried-first"},
     {Cause::NotYet, "not-yet"},
     {Cause::Queued, "queued"},
     {Cause::KeeperSilent, "keeper"},
     {Cause::Processes, "processes"},
     {Cause::OthersUseCpu, "others-use-cpu"},
     {Cause::Parallel, "parallel"},
     {Cause::Cpus, "cpus"},
     {Cause::Memory, "memory"},
     {Cause::Gpus, "gpus"},
     {Cause::GpusLinger, "gpus-linger"},
     {Cause::GpusGone, "gpus-gone"},
     {Cause::Settling, "settling"},
     {Cause::Ahead, "ahead"},
     {Cause::Reserved, "reserved"}}};
/// What others use of a GPU is said from here on.
constexpr Bytes kWorthSaying = gb(1);

std::string count_text(Cpus cpus) {
  return fmt::format("{}", static_cast<double>(cpus.milli) / 1000);
}

std::string cpus_text(Cpus cpus) {
  return fmt::format("{} {}", count_text(cpus), cpus == Cpus{1000} ? "CPU" : "CPUs");
}

std::string tasks_text(int count) { return count == 1 ? "1 task" : fmt::format("{} tasks", count); }

std::string gpus_text(int count) { return count == 1 ? "1 GPU" : fmt::format("{} GPUs", count); }

std::string hold_text(int count) {
  return fmt::format("{} {}", tasks_text(count), count == 1 ? "holds" : "hold");
}

Bytes not_below_zero(Bytes bytes) { return std::max(Bytes{}, bytes); }

std::string memory_words(const Reason& reason, const Headroom& room) {
  std::string words =
      fmt::format("needs {} of memory, {} free, {} {}", to_text(reason.needs.memory),
                  to_text(not_below_zero(room.memory_free)), hold_text(room.holders),
                  to_text(room.memory_held));
  if (room.memory_of_others > Bytes{}) {
    words += fmt::format(", others use {}", to_text(room.memory_of_others));
  }
  return words;
}

std::string processes_words(const Headroom& room) {
  const std::string tasks = tasks_text(room.processes_max);
  if (room.processes_reason.empty()) return fmt::format("max-process lets {} run at once", tasks);
  return fmt::format("the machine lets {} run at once ({})", tasks, room.processes_reason);
}

std::string cpu_gate_words(const Headroom& room) {
  return fmt::format(
      "others use {:.0f} % of the CPUs: from {:.0f} % on, tasks without a GPU run one at a time; "
      "'--set utilization-limit.cpu=100%' lifts that",
      100 * room.cpu_used_by_others, 100 * room.cpu_utilization_max);
}

std::string ahead_words(const Headroom& room) {
  if (room.waiting_max > 0 && room.ahead >= room.waiting_max) {
    return fmt::format("max-waiting lets {} be loaded ahead", tasks_text(room.waiting_max));
  }
  return fmt::format("{} loaded ahead already",
                     room.ahead == 1 ? "1 task is" : fmt::format("{} tasks are", room.ahead));
}

/// "waits for lr=0.1, which is tried first: 1:20 of 2:00".
std::string tried_first_words(const Reason& reason, const Headroom& room, std::string_view first) {
  std::string words =
      fmt::format("waits for {}, which is tried first", first.empty() ? "a task" : first);
  if (!reason.first_since) return words;
  const Duration lived =
      std::clamp(room.at - *reason.first_since, Duration{0}, room.try_first_time);
  return words + fmt::format(": {} of {}", trainyard::to_text(lived),
                             trainyard::to_text(room.try_first_time));
}

bool is_wanted(const Reason& reason, std::size_t index) {
  return !reason.needs.gpu || reason.needs.gpu->value == index;
}

/// Whether it would do but for another user. For a whole one nothing else may hold it.
bool is_avoided(const Headroom::Card& card, bool whole) {
  return card.present && card.avoided_for && (!whole || card.holders == 0);
}

std::string avoided_words(std::uint32_t user, const Headroom::Card& card) {
  return fmt::format(", user {} computes on GPU {} (others use {} of it)", user, card.label,
                     to_text(card.of_others));
}

/// What stands in the way of those who want whole GPUs.
std::string whole_gpu_words(const Reason& reason, const Headroom& room) {
  int idle = 0;
  int present = 0;
  std::string others;
  for (std::size_t index = 0; index < room.gpus.size(); ++index) {
    const Headroom::Card& card = room.gpus[index];
    if (!card.present || !is_wanted(reason, index)) continue;
    ++present;
    if (card.holders > 0) continue;
    ++idle;
    if (card.avoided_for) {
      others += avoided_words(*card.avoided_for, card);
    } else if (card.of_others >= kWorthSaying) {
      others += fmt::format(", others use {} of GPU {}", to_text(card.of_others), card.label);
    }
  }
  return fmt::format(", {} of {} held by no task{}", gpus_text(idle), present, others);
}

/// And of those who want some memory of one.
std::string shared_gpu_words(const Reason& reason, const Headroom& room) {
  const Headroom::Card* roomiest = nullptr;
  bool any = false;
  std::string avoided;
  for (std::size_t index = 0; index < room.gpus.size(); ++index) {
    const Headroom::Card& card = room.gpus[index];
    if (!card.present || !is_wanted(reason, index)) continue;
    if (card.avoided_for) {
      avoided += avoided_words(*card.avoided_for, card);
      continue;
    }
    any = true;
    if (!card.whole && (roomiest == nullptr || card.free > roomiest->free)) roomiest = &card;
  }
  if (roomiest == nullptr) return (any ? ", which tasks have for their own" : "") + avoided;
  std::string words = fmt::format(", GPU {} has most free: {}", roomiest->label,
                                  to_text(not_below_zero(roomiest->free)));
  if (roomiest->of_others >= kWorthSaying) {
    words += fmt::format(", others use {} of it", to_text(roomiest->of_others));
  }
  return words + avoided;
}

std::string gpu_words(const Reason& reason, const Headroom& room) {
  const Request& needs = reason.needs;
  const bool whole = wants_whole_gpus(needs);
  std::string words = fmt::format(
      "needs {}", whole && needs.gpus == 1 ? "a GPU of its own" : gpu_promise_text(needs));
  words += whole ? whole_gpu_words(reason, room) : shared_gpu_words(reason, room);
  Bytes lingering;
  bool avoided = false;
  std::string gone;
  for (std::size_t index = 0; index < room.gpus.size(); ++index) {
    const Headroom::Card& card = room.gpus[index];
    if (is_wanted(reason, index)) {
      lingering += card.lingering;
      avoided = avoided || is_avoided(card, whole);
    }
    if (!card.present) gone += fmt::format(", GPU {} does not answer", card.label);
  }
  if (reason.cause == Cause::GpusLinger && lingering > Bytes{}) {
    words += fmt::format(", the driver does not show {} of ended tasks to be free yet",
                         to_text(lingering));
  }
  words += gone;
  return avoided ? words + " ('--set other-users=share' takes such a GPU)" : words;
}

/// The card is named where it was one when that was told.
std::string settling_words(const Reason& reason, const Headroom& room) {
  const std::optional<GpuIndex> gpu = reason.needs.gpu;
  const bool known = gpu && gpu->value < room.gpus.size();
  return fmt::format(
      "a task that has just begun on {} takes its memory first, as there is little room beside it",
      known ? "GPU " + room.gpus[gpu->value].label : std::string("its GPU"));
}

}  // namespace

std::string_view to_text(Cause cause) {
  const auto* const found =
      std::ranges::find(kCauseNames, cause, &decltype(kCauseNames)::value_type::first);
  return found == kCauseNames.end() ? std::string_view() : found->second;
}

Cause cause_from(std::string_view text) {
  const auto* const found =
      std::ranges::find(kCauseNames, text, &decltype(kCauseNames)::value_type::second);
  return found == kCauseNames.end() ? Cause::None : found->first;
}

std::string gpu_promise_text(const Request& promise) {
  if (wants_whole_gpus(promise)) {
    return promise.gpus == 1 ? "a whole GPU" : fmt::format("{} whole GPUs", promise.gpus);
  }
  return fmt::format("{} on {}", to_text(promise.gpu_memory),
                     promise.gpus == 1 ? "its GPU" : fmt::format("each of {} GPUs", promise.gpus));
}

std::string reason_text(const Reason& reason, const Headroom& room, std::string_view first) {
  switch (reason.cause) {
    case Cause::None:
      break;
    case Cause::Group:
      return "waits for group " + reason.groups;
    case Cause::TriedFirst:
      return tried_first_words(reason, room, first);
    case Cause::NotYet:
      return fmt::format("starts {} after the run began ('start-after')",
                         trainyard::to_text(reason.not_before.value_or(Instant{}) - Instant{}));
    case Cause::Queued:
      return "older tasks are looked at first";
    case Cause::KeeperSilent:
      return "the keeper of the task processes does not answer";
    case Cause::Processes:
      return processes_words(room);
    case Cause::OthersUseCpu:
      return cpu_gate_words(room);
    case Cause::Parallel:
      return fmt::format("max-parallel lets {} of its group run at once",
                         tasks_text(reason.parallel_max));
    case Cause::Cpus:
      return fmt::format("needs {}, {} of {} free, {} the others", cpus_text(reason.needs.cpus),
                         count_text(room.cpus_free), count_text(room.cpus),
                         hold_text(room.cpu_holders));
    case Cause::Memory:
      return memory_words(reason, room);
    case Cause::Gpus:
    case Cause::GpusLinger:
    case Cause::GpusGone:
      return gpu_words(reason, room);
    case Cause::Settling:
      return settling_words(reason, room);
    case Cause::Ahead:
      return ahead_words(room);
    case Cause::Reserved:
      return "would delay an older task that waits for more than is free";
  }
  return {};
}

}  // namespace trainyard::model
