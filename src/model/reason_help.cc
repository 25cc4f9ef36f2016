// The help against a reason to wait. See model/waiting.h.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/bytes.h"
#include "model/gpu_obstacle.h"
#include "model/resources.h"
#include "model/waiting.h"

namespace trainyard::model {
namespace {

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

/// Whatever its batch.
Help help_against(const Reason& reason, const Headroom& room) {
  switch (reason.cause) {
    case Cause::TriedFirst:
      return with_key("try-first", "0");
    case Cause::Processes:
      return room.processes_reason.empty() ? with_setting("scheduler.max-process", "0") : Help{};
    case Cause::OthersUseCpu:
      if (without_cpu_limit(reason, room).cause != Cause::None) return {};
      return with_setting("utilization-limit.cpu", "100%");
    case Cause::Parallel:
      return with_key("max-parallel", std::to_string(reason.parallel_max + 1));
    case Cause::Memory:
      if (room.memory_of_others < reason.needs.memory - room.memory_free) return {};
      return {.where = Where::Shell, .line = "ps -eo user,pid,rss,args --sort=-rss | head"};
    case Cause::Disk:
      if (room.disk_holders > 0) return {};
      return {.where = Where::Shell,
              .line = "trainyard clean --older 30d --keep results --dry-run"};
    case Cause::Gpus:
      return wants_whole_gpus(reason.needs) ? for_whole_gpus(reason, room)
                                            : for_shared_gpus(reason, room);
    case Cause::GpusLinger:
    case Cause::GpusGone:
      return seeing_devices();
    case Cause::Ahead:
      if (room.waiting_max == 0 || room.ahead < room.waiting_max) return {};
      return with_setting("scheduler.max-waiting", std::to_string(room.waiting_max + 1));
    case Cause::None:
    case Cause::Group:
    case Cause::Needs:
    case Cause::Held:
    case Cause::NotYet:
    case Cause::Queued:
    case Cause::NoMachine:
    case Cause::Elsewhere:
    case Cause::NoTime:
    case Cause::KeeperSilent:
    case Cause::StartsRefused:
    case Cause::Cpus:
    case Cause::Settling:
    case Cause::Reserved:
    case Cause::GivesWay:
      return {};
    case Cause::GpuLimit:
      return with_setting("limits.gpus", "auto");
  }
  return {};
}

}  // namespace

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
  Help help = help_against(reason, room);
  return help.where == Where::JobFile && batch > 1 ? Help{} : help;
}

}  // namespace trainyard::model
