// The words of a reason and the help against it: one table of the causes. See model/waiting.h.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/time.h"
#include "model/gpu_obstacle.h"
#include "model/ids.h"
#include "model/neighbour_words.h"
#include "model/promises.h"
#include "model/resources.h"
#include "model/site_wish.h"
#include "model/waiting.h"

namespace trainyard::model {
namespace {

/// The least GPU memory of others that the text mentions.
constexpr Bytes kWorthSaying = gb(1);

std::string count_text(Cpus cpus) { return fmt::format("{}", as_number(cpus)); }

std::string cpus_text(Cpus cpus) {
  return fmt::format("{} {}", count_text(cpus), cpus == Cpus{1000} ? "CPU" : "CPUs");
}

std::string tasks_text(int count) { return count == 1 ? "1 task" : fmt::format("{} tasks", count); }

std::string gpus_text(int count) { return count == 1 ? "1 GPU" : fmt::format("{} GPUs", count); }

/// ", the rest reserved by 2 tasks"; nothing where no task of this run has any.
std::string by_tasks_text(std::string_view what, int count) {
  return count == 0 ? std::string() : fmt::format(", {} by {}", what, tasks_text(count));
}

Bytes not_below_zero(Bytes bytes) { return std::max(Bytes{}, bytes); }

/// The number of CPUs that the tasks of this run have reserved: those that are neither free nor
/// reserved by neighbours. "some" if the neighbours have more than the machine, or if there may be
/// neighbours that the journal has left out.
std::string own_cpus_text(const Headroom& room) {
  if (room.neighbours.size() >= kNeighboursKept) return "some";
  Cpus own = room.cpus - room.cpus_free;
  for (const Neighbour& neighbour : room.neighbours) {
    // The reservations of a run with a larger part of the machine may be on CPUs outside ours.
    if (neighbour.its.cpus_total > room.cpus) continue;
    own = own - sum_of(neighbour.its.held, neighbour.its.claimed).cpus;
  }
  return own > Cpus{} ? count_text(own) : "some";
}

/// "needs 1 CPU: both CPUs are reserved by 2 tasks"; with other runs "needs 1 CPU: both CPUs are
/// reserved, 1 by 1 task of this run, 1 by your run 46 (sweep) since 02:10".
std::string cpu_words(const Reason& reason, const Headroom& room) {
  const std::string needs = "needs " + cpus_text(reason.needs.cpus);
  const std::string others = cpu_words_of_neighbours(room);
  std::string by = others;
  if (room.cpu_holders > 0) {
    const std::string tasks = tasks_text(room.cpu_holders);
    by = others.empty()
             ? " by " + tasks
             : fmt::format(", {} by {} of this run{}", own_cpus_text(room), tasks, others);
  }
  if (by.empty() || room.cpus_free > Cpus{}) {
    return fmt::format("{}: {} of {} free{}{}", needs, count_text(room.cpus_free),
                       cpus_text(room.cpus), by.empty() ? "" : ", the rest reserved", by);
  }
  const std::string all = room.cpus == cpus(1) ? "the only CPU is"
                          : room.cpus == cpus(2)
                              ? "both CPUs are"
                              : fmt::format("all {} CPUs are", count_text(room.cpus));
  return fmt::format("{}: {} reserved{}", needs, all, by);
}

std::string memory_words(const Reason& reason, const Headroom& room) {
  const Bytes free = not_below_zero(room.memory_free);
  std::string words =
      fmt::format("needs {} of memory, {} available", to_text(reason.needs.memory, free),
                  to_text(free, reason.needs.memory));
  if (room.memory_kept_free > Bytes{}) {
    words +=
        fmt::format(" ({} kept free: {})", to_text(room.memory_kept_free), room.memory_kept_by);
  }
  // A task that uses more than it has reserved counts with that.
  words += by_tasks_text(to_text(room.memory_held) + " reserved or used", room.holders);
  if (room.memory_of_others > Bytes{}) {
    words += fmt::format(", other processes use {}", to_text(room.memory_of_others));
  }
  return words + memory_words_of_neighbours(room);
}

/// "needs 20 GB of disk, 70 GB free, 60 GB of it reserved by 2 tasks".
std::string disk_words(const Reason& reason, const Headroom& room) {
  const Bytes free = room.disk_free.value_or(Bytes{});
  return fmt::format(
      "needs {} of disk, {} free{}", to_text(reason.needs.disk), to_text(free, reason.needs.disk),
      by_tasks_text(to_text(room.disk_promised) + " of it reserved", room.disk_holders));
}

std::string processes_words(const Headroom& room) {
  const std::string tasks = tasks_text(room.processes_max);
  if (room.processes_reason.empty()) return fmt::format("max-process allows {} at once", tasks);
  return fmt::format("the machine allows {} at once ({})", tasks, room.processes_reason);
}

/// Begins with what the task would wait for without the limit of the CPUs, where there is such.
std::string cpu_gate_words(const Reason& reason, const Headroom& room) {
  const std::string besides = reason_text(without_cpu_limit(reason, room), room);
  return fmt::format(
      "{}{}other processes use {:.0f} % of the CPUs: from {:.0f} %, a task without a GPU starts "
      "only when no other runs",
      besides, besides.empty() ? "" : "; ", 100 * room.cpu_used_by_others,
      100 * room.cpu_utilization_max);
}

std::string ahead_words(const Headroom& room) {
  if (room.waiting_max > 0 && room.ahead >= room.waiting_max) {
    return fmt::format("max-waiting allows {} to load ahead", tasks_text(room.waiting_max));
  }
  return fmt::format("{} loaded ahead already",
                     room.ahead == 1 ? "1 task has" : fmt::format("{} tasks have", room.ahead));
}

/// "waits for lr=0.1, which runs first ('try-first'): 1m20s of 2m".
std::string tried_first_words(const Reason& reason, const Headroom& room, std::string_view first) {
  std::string words =
      fmt::format("waits for {}, which runs first ('try-first')", first.empty() ? "a task" : first);
  if (!reason.first_since) return words;
  const Duration lived =
      std::clamp(room.at - *reason.first_since, Duration{0}, room.try_first_time);
  return words + fmt::format(": {} of {}", trainyard::to_text(lived),
                             trainyard::to_text(room.try_first_time));
}

std::string avoided_words(std::uint32_t user, const Headroom::Card& card) {
  return fmt::format(", user {} is using GPU {} (other processes use {} of it)", user, card.label,
                     to_text(card.of_others));
}

/// "needs a whole GPU"; of one of which it is only not known how much it takes, that.
std::string whole_gpu_need(const Reason& reason) {
  const Request& needs = reason.needs;
  const std::string whole =
      needs.gpus == 1 ? std::string("a whole GPU") : fmt::format("{} whole GPUs", needs.gpus);
  if (needs.largest) return fmt::format("needs {} of the largest size for its last retry", whole);
  if (!reason.own_until_known) return "needs " + whole;
  const std::string seen = reason.gpu_memory_seen > Bytes{}
                               ? fmt::format(" ({} seen so far)", to_text(reason.gpu_memory_seen))
                               : std::string();
  return fmt::format("needs {} until a task of its kind has ended and its GPU memory is known{}",
                     whole, seen);
}

std::string drained_words(const Headroom::Card& card) {
  return fmt::format(", GPU {} is drained ('trainyard drain')", card.label);
}

/// The obstacle for tasks that request whole GPUs.
std::string whole_gpu_words(const Reason& reason, const Headroom& room) {
  int idle = 0;
  int present = 0;
  std::string others;
  for (std::size_t index = 0; index < room.gpus.size(); ++index) {
    const Headroom::Card& card = room.gpus[index];
    if (!card.present || !may_be_on(reason, room, index)) continue;
    ++present;
    others += card_words_of_neighbours(room, index);
    if (card.drained) others += drained_words(card);
    if (card.holders > 0 || card.drained) continue;
    ++idle;
    if (card.avoided_for) {
      others += avoided_words(*card.avoided_for, card);
    } else if (card.of_others >= kWorthSaying) {
      others +=
          fmt::format(", other processes use {} of GPU {}", to_text(card.of_others), card.label);
    }
  }
  return fmt::format(", {} of {} without tasks{}", idle, gpus_text(present), others);
}

/// "GPU 1 has enough memory, but 2 tasks are on it and 'max-per-gpu' allows no more".
std::string crowd_words(const Reason& reason, const Headroom::Card& card) {
  const std::string room = fmt::format(", GPU {} has enough memory, but ", card.label);
  const std::string there =
      fmt::format("{} {} on it", tasks_text(card.tasks), card.tasks == 1 ? "is" : "are");
  if (!is_full_by_its_own_word(reason, card)) {
    return room + fmt::format("{}, {} allows at most {}", there,
                              card.tasks == 1 ? "which" : "one of which", card.tasks_max);
  }
  if (reason.per_gpu_measured) {
    return room + fmt::format("running more than {} per GPU was measured to do less work in total",
                              tasks_text(reason.needs.sharing.max_per_gpu));
  }
  return room + there + " and 'max-per-gpu' allows no more";
}

std::string busy_words(const Reason& reason, const Headroom& room, const Headroom::Card& card) {
  constexpr int kPercent = 10;  // Of thousandths.
  return fmt::format(
      ", GPU {} has enough memory, but its tasks use {} % of it and this one {} %: "
      "'utilization-limit.gpu' is {} %",
      card.label, card.utilization / kPercent, reason.needs.sharing.utilization / kPercent,
      room.gpu_utilization_max / kPercent);
}

/// And of those who want some memory of one.
std::string shared_gpu_words(const Reason& reason, const Headroom& room) {
  const std::optional<GpuObstacle> nearest = nearest_obstacle(reason, room);
  if (!nearest) return {};
  const Headroom::Card& card = room.gpus[nearest->gpu];
  std::string words;
  switch (nearest->kind) {
    case GpuObstacle::Kind::Tasks:
      words = crowd_words(reason, card);
      break;
    case GpuObstacle::Kind::Utilization:
      words = busy_words(reason, room, card);
      break;
    case GpuObstacle::Kind::OtherUser:
      break;  // Said below, as of all such.
    case GpuObstacle::Kind::Whole:
      if (!is_whole_of_neighbour(room, nearest->gpu)) {
        words = fmt::format(", another task has reserved all of GPU {}", card.label);
      }
      break;
    case GpuObstacle::Kind::Drained:
      words = drained_words(card);
      break;
    case GpuObstacle::Kind::None:
    case GpuObstacle::Kind::Memory:
      words = fmt::format(", GPU {} has the most free memory: {}", card.label,
                          to_text(not_below_zero(card.free)));
      if (card.of_others >= kWorthSaying && !card.avoided_for) {
        words += fmt::format(", other processes use {} of it", to_text(card.of_others));
      }
      break;
  }
  words += card_words_of_neighbours(room, nearest->gpu);
  for (std::size_t index = 0; index < room.gpus.size(); ++index) {
    const Headroom::Card& other = room.gpus[index];
    if (!other.present || !other.avoided_for || !may_be_on(reason, room, index)) continue;
    words += avoided_words(*other.avoided_for, other);
  }
  return words;
}

std::string gpu_words(const Reason& reason, const Headroom& room) {
  const bool whole = wants_whole_gpus(reason.needs);
  std::string words = whole ? whole_gpu_need(reason) + whole_gpu_words(reason, room)
                            : fmt::format("needs {}", gpu_promise_text(reason.needs)) +
                                  shared_gpu_words(reason, room);
  Bytes lingering;
  std::string gone;
  for (std::size_t index = 0; index < room.gpus.size(); ++index) {
    const Headroom::Card& card = room.gpus[index];
    if (may_be_on(reason, room, index)) lingering += card.lingering;
    if (is_avoided(reason, index)) {
      gone += fmt::format(
          ", GPU {} is avoided {}", card.label,
          card.last_resort ? "after it dropped out" : "because the task was lost on it");
    } else if (!card.present) {
      gone +=
          fmt::format(", GPU {} does not answer (or is avoided after it dropped out)", card.label);
    }
  }
  if (reason.cause == Cause::GpusLinger && lingering > Bytes{}) {
    words += fmt::format(", the driver does not report {} of ended tasks as free yet",
                         to_text(lingering));
  }
  return words + gone;
}

/// The card is named where it was one when that was told.
std::string settling_words(const Reason& reason, const Headroom& room) {
  const std::optional<GpuIndex> gpu = reason.needs.gpu;
  const bool known = gpu && gpu->value < room.gpus.size();
  return fmt::format(
      "waits for a task that has just started on {} to allocate its memory, as little is left "
      "there",
      known ? "GPU " + room.gpus[gpu->value].label : std::string("its GPU"));
}

/// "'limits.gpus' allows your runs 2 GPUs in total until 19:00".
std::string gpu_limit_words(const Headroom& room) {
  std::string words = fmt::format("'limits.gpus' allows your runs {} in total",
                                  gpus_text(room.gpus_max.value_or(0)));
  if (!room.gpus_max_until.empty()) words += " until " + room.gpus_max_until;
  return words;
}

using Where = Help::Where;

Help seeing_devices() { return {.where = Where::Shell, .line = "trainyard devices"}; }

Help with_setting(std::string_view key, std::string_view value) {
  return {.where = Where::Resume, .line = fmt::format("--set {}={}", key, value)};
}

Help with_key(std::string_view key, std::string_view value) {
  return {.where = Where::JobFile, .line = fmt::format("{}: {}", key, value)};
}

/// A GPU that no task holds and that is left to another user, of those that it could have.
bool is_kept_for_another_user(const Reason& reason, const Headroom& room) {
  for (std::size_t gpu = 0; gpu < room.gpus.size(); ++gpu) {
    const Headroom::Card& card = room.gpus[gpu];
    if (card.present && card.avoided_for && card.holders == 0 && may_be_on(reason, room, gpu)) {
      return true;
    }
  }
  return false;
}

Help for_whole_gpus(const Reason& reason, const Headroom& room) {
  if (is_kept_for_another_user(reason, room)) return with_setting("other-users", "share");
  for (std::size_t gpu = 0; gpu < room.gpus.size(); ++gpu) {
    const Headroom::Card& card = room.gpus[gpu];
    const bool idle = card.present && card.holders == 0 && may_be_on(reason, room, gpu);
    if (idle && card.of_others > Bytes{}) return seeing_devices();
  }
  // While nothing of its kind was seen, `auto` would give it a GPU of its own as well.
  if (reason.needs.largest || reason.gpu_memory_seen == Bytes{}) return {};
  std::string seen = to_text(reason.gpu_memory_seen);
  seen.erase(seen.find(' '), 1);
  return with_key("gpu-memory", "at least " + seen);
}

Help for_shared_gpus(const Reason& reason, const Headroom& room) {
  const std::optional<GpuObstacle> nearest = nearest_obstacle(reason, room);
  if (!nearest) return seeing_devices();
  const Headroom::Card& card = room.gpus[nearest->gpu];
  switch (nearest->kind) {
    case GpuObstacle::Kind::Tasks:
      if (reason.per_gpu_measured || !is_full_by_its_own_word(reason, card)) return {};
      return with_key("max-per-gpu", std::to_string(card.tasks + 1));
    case GpuObstacle::Kind::Utilization: {
      constexpr int kPercent = 10;  // Of thousandths.
      const int together = card.utilization + reason.needs.sharing.utilization;
      // No limit is more than the whole.
      if (together > 1000) return {};
      return with_setting("utilization-limit.gpu",
                          fmt::format("{}%", (together + kPercent - 1) / kPercent));
    }
    case GpuObstacle::Kind::OtherUser:
      return with_setting("other-users", "share");
    case GpuObstacle::Kind::Memory:
      // Where what others have of it would do, it is worth to look who they are.
      return card.of_others >= nearest->missing ? seeing_devices() : Help{};
    case GpuObstacle::Kind::Drained:
      return seeing_devices();
    case GpuObstacle::Kind::None:
    case GpuObstacle::Kind::Whole:
      return {};
  }
  return {};
}

/// A reason as it is shown.
struct Shown {
  const Reason& reason;
  const Headroom& room;
  std::string_view first = {};  ///< The name of Reason::first.
};

struct CauseInfo {
  Cause cause;
  std::string_view word;
  bool of_machine = false;  ///< One machine is short of something, and is named.
  std::string (*text)(const Shown& it);
  /// Null: there is nothing but to wait.
  Help (*help)(const Shown& it) = nullptr;
};

std::string words_of_gpus(const Shown& it) { return gpu_words(it.reason, it.room); }
Help help_of_devices(const Shown& /*it*/) { return seeing_devices(); }

/// In the order of Cause.
constexpr auto kCauses = std::to_array<CauseInfo>({
    {.cause = Cause::None, .word = "", .text = [](const Shown&) { return std::string(); }},
    {.cause = Cause::Group,
     .word = "group",
     .text = [](const Shown& it) { return "waits for group " + it.reason.groups; }},
    {.cause = Cause::TriedFirst,
     .word = "tried-first",
     .text = [](const Shown& it) { return tried_first_words(it.reason, it.room, it.first); },
     .help = [](const Shown&) { return with_key("try-first", "0"); }},
    {.cause = Cause::Needs,
     .word = "needs",
     .text =
         [](const Shown& it) {
           return fmt::format("waits for the tasks of group {} that it needs", it.reason.groups);
         }},
    {.cause = Cause::Held,
     .word = "held",
     .text = [](const Shown&) { return std::string("on hold until 'trainyard release'"); }},
    {.cause = Cause::NotYet,
     .word = "not-yet",
     .text =
         [](const Shown& it) {
           const Instant start = it.reason.not_before.value_or(Instant{});
           return fmt::format("starts {} after the run began ('start-after')",
                              trainyard::to_text(start - Instant{}));
         }},
    {.cause = Cause::Queued,
     .word = "queued",
     .text = [](const Shown&) { return std::string("older tasks are considered first"); }},
    {.cause = Cause::NoMachine,
     .word = "machines",
     .text = [](const Shown&) { return std::string("no machine is available"); }},
    {.cause = Cause::Elsewhere,
     .word = "where",
     .text =
         [](const Shown& it) {
           return "where: no available machine " + predicate_text(it.reason.needs.where);
         }},
    {.cause = Cause::NoTime,
     .word = "time",
     .of_machine = true,
     .text =
         [](const Shown&) { return std::string("the time left in the allocation is too short"); }},
    {.cause = Cause::KeeperSilent,
     .word = "keeper",
     .of_machine = true,
     .text =
         [](const Shown&) {
           return std::string("the keeper (the process that starts tasks) does not respond");
         }},
    {.cause = Cause::StartsRefused,
     .word = "starts-refused",
     .of_machine = true,
     .text = [](const Shown& it) { return "cannot start tasks: " + it.reason.refusal; }},
    {.cause = Cause::Processes,
     .word = "processes",
     .of_machine = true,
     .text = [](const Shown& it) { return processes_words(it.room); },
     .help =
         [](const Shown& it) {
           return it.room.processes_reason.empty() ? with_setting("scheduler.max-process", "0")
                                                   : Help{};
         }},
    {.cause = Cause::OthersUseCpu,
     .word = "others-use-cpu",
     .of_machine = true,
     .text = [](const Shown& it) { return cpu_gate_words(it.reason, it.room); },
     .help =
         [](const Shown& it) {
           if (without_cpu_limit(it.reason, it.room).cause != Cause::None) return Help{};
           return with_setting("utilization-limit.cpu", "100%");
         }},
    {.cause = Cause::Parallel,
     .word = "parallel",
     .text =
         [](const Shown& it) {
           return fmt::format("max-parallel allows {} of its group at once",
                              tasks_text(it.reason.parallel_max));
         },
     .help =
         [](const Shown& it) {
           return with_key("max-parallel", std::to_string(it.reason.parallel_max + 1));
         }},
    {.cause = Cause::Cpus,
     .word = "cpus",
     .of_machine = true,
     .text = [](const Shown& it) { return cpu_words(it.reason, it.room); }},
    {.cause = Cause::Memory,
     .word = "memory",
     .of_machine = true,
     .text = [](const Shown& it) { return memory_words(it.reason, it.room); },
     .help =
         [](const Shown& it) {
           const Bytes missing = it.reason.needs.memory - it.room.memory_free;
           if (it.room.memory_of_others < missing) return Help{};
           return Help{.where = Where::Shell,
                       .line = "ps -eo user,pid,rss,args --sort=-rss | head"};
         }},
    {.cause = Cause::Gpus,
     .word = "gpus",
     .of_machine = true,
     .text = words_of_gpus,
     .help =
         [](const Shown& it) {
           return wants_whole_gpus(it.reason.needs) ? for_whole_gpus(it.reason, it.room)
                                                    : for_shared_gpus(it.reason, it.room);
         }},
    {.cause = Cause::GpusLinger,
     .word = "gpus-linger",
     .of_machine = true,
     .text = words_of_gpus,
     .help = help_of_devices},
    {.cause = Cause::GpusGone,
     .word = "gpus-gone",
     .of_machine = true,
     .text = words_of_gpus,
     .help = help_of_devices},
    {.cause = Cause::Settling,
     .word = "settling",
     .of_machine = true,
     .text = [](const Shown& it) { return settling_words(it.reason, it.room); }},
    {.cause = Cause::Ahead,
     .word = "ahead",
     .text = [](const Shown& it) { return ahead_words(it.room); },
     .help =
         [](const Shown& it) {
           if (it.room.waiting_max == 0 || it.room.ahead < it.room.waiting_max) return Help{};
           return with_setting("scheduler.max-waiting", std::to_string(it.room.waiting_max + 1));
         }},
    {.cause = Cause::Reserved,
     .word = "reserved",
     .of_machine = true,
     .text =
         [](const Shown&) {
           return std::string("would delay an older task that waits for more than is free");
         }},
    {.cause = Cause::Disk,
     .word = "disk",
     .text = [](const Shown& it) { return disk_words(it.reason, it.room); },
     .help =
         [](const Shown& it) {
           if (it.room.disk_holders > 0) return Help{};
           return Help{.where = Where::Shell,
                       .line = "trainyard clean --older 30d --keep results --dry-run"};
         }},
    {.cause = Cause::GivesWay,
     .word = "gives-way",
     .of_machine = true,
     .text = [](const Shown& it) { return giving_way_words(it.reason, it.room); }},
    {.cause = Cause::GpuLimit,
     .word = "gpu-limit",
     .of_machine = true,
     .text = [](const Shown& it) { return gpu_limit_words(it.room); },
     .help = [](const Shown&) { return with_setting("limits.gpus", "auto"); }},
});

consteval bool in_order() {
  for (std::size_t i = 0; i < kCauses.size(); ++i) {
    if (std::to_underlying(kCauses.at(i).cause) != i) return false;
  }
  return true;
}
static_assert(in_order(), "a row stands where its cause is numbered");

const CauseInfo& info_of(Cause cause) { return kCauses.at(std::to_underlying(cause)); }

}  // namespace

std::string_view to_text(Cause cause) { return info_of(cause).word; }

Cause cause_from(std::string_view text) {
  const auto* const found = std::ranges::find(kCauses, text, &CauseInfo::word);
  return found == kCauses.end() ? Cause::None : found->cause;
}

std::vector<Cause> all_causes() {
  std::vector<Cause> causes;
  for (const CauseInfo& info : kCauses) {
    if (info.cause != Cause::None) causes.push_back(info.cause);
  }
  return causes;
}

bool is_of_machine(Cause cause) { return info_of(cause).of_machine; }

std::string gpu_promise_text(const Request& promise) {
  if (wants_whole_gpus(promise)) {
    return promise.gpus == 1 ? "a whole GPU" : fmt::format("{} whole GPUs", promise.gpus);
  }
  return fmt::format("{} on {}", to_text(promise.gpu_memory),
                     promise.gpus == 1 ? "its GPU" : fmt::format("each of {} GPUs", promise.gpus));
}

Reason without_cpu_limit(Reason reason, const Headroom& room) {
  const Request& needs = reason.needs;
  reason.cause = Cause::None;
  if (reason.parallel_max > 0) {
    reason.cause = Cause::Parallel;
  } else if (needs.cpus > room.cpus_free) {
    reason.cause = Cause::Cpus;
  } else if (needs.memory > room.memory_free) {
    reason.cause = Cause::Memory;
  } else if (room.disk_free && needs.disk > *room.disk_free - room.disk_promised) {
    reason.cause = Cause::Disk;
  }
  return reason;
}

std::string reason_text(const Reason& reason, const Headroom& room, std::string_view first) {
  return info_of(reason.cause).text({.reason = reason, .room = room, .first = first});
}

std::string brief_reason_text(const Reason& reason, const Headroom& room) {
  const std::string whole = reason_text(reason, room);
  if (reason.cause == Cause::TriedFirst) return whole.substr(0, whole.find(": "));
  std::string brief = whole.substr(0, whole.find(','));
  if (reason.cause != Cause::Gpus || wants_whole_gpus(reason.needs)) return brief;
  const std::optional<GpuObstacle> nearest = nearest_obstacle(reason, room);
  if (!nearest) return brief;
  switch (nearest->kind) {
    case GpuObstacle::Kind::Tasks:
      return brief + ", and no more tasks may share a GPU";
    case GpuObstacle::Kind::Utilization:
      return brief + ", and the tasks that share it keep it busy";
    case GpuObstacle::Kind::OtherUser:
      return brief + ", and other users are using it";
    case GpuObstacle::Kind::Drained:
      return brief + ", and GPUs with enough memory are drained";
    case GpuObstacle::Kind::None:
    case GpuObstacle::Kind::Memory:
    case GpuObstacle::Kind::Whole:
      break;
  }
  return brief;
}

std::string_view to_text(Where where) {
  switch (where) {
    case Where::Nowhere:
      return {};
    case Where::Shell:
      return "shell";
    case Where::Resume:
      return "resume";
    case Where::JobFile:
      return "job-file";
  }
  return {};
}

Help help_for(const Reason& reason, const Headroom& room, std::uint32_t batch) {
  const CauseInfo& info = info_of(reason.cause);
  Help help = info.help == nullptr ? Help{} : info.help({.reason = reason, .room = room});
  return help.where == Where::JobFile && batch > 1 ? Help{} : help;
}

}  // namespace trainyard::model
