#include "journal/waiting_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "journal/sqlite.h"
#include "model/ids.h"
#include "model/promises.h"
#include "model/resources.h"
#include "model/waiting.h"
#include "wire/promises_text.h"

namespace trainyard::journal {

const char* const kReasonColumns =
    "s.cause, s.needs_memory, s.needs_cpus_milli, s.needs_gpus, s.needs_gpu_memory, s.needs_gpu, "
    "s.needs_parallel, s.needs_groups, s.needs_since_ms, s.needs_time_ms, s.needs_largest, "
    "s.needs_utilization, s.needs_max_per_gpu, s.needs_measured, s.needs_until_known, "
    "s.needs_gpu_seen, s.needs_disk";

namespace {

/// Those that are worth naming: so many in any case.
std::string neighbours_kept(const model::Headroom& room) {
  constexpr std::size_t kKept = 32;
  const std::span<const model::Neighbour> all = room.neighbours;
  return wire::neighbours_text(all.first(std::min(all.size(), kKept)));
}

}  // namespace

Result<WaitingTable> WaitingTable::open(Database& database) {
  Result<Statement> reason = database.prepare(
      "UPDATE shapes SET cause = ?2, needs_memory = ?3, needs_cpus_milli = ?4, needs_gpus = ?5, "
      "needs_gpu_memory = ?6, needs_gpu = ?7, needs_parallel = ?8, needs_groups = ?9, needs_task = "
      "?10, needs_since_ms = ?11, needs_time_ms = ?12, needs_largest = ?13, needs_utilization = "
      "?14, needs_max_per_gpu = ?15, needs_measured = ?16, needs_until_known = ?17, "
      "needs_gpu_seen = ?18, needs_disk = ?19 "
      "WHERE number = ?1");
  if (!reason) return std::unexpected(std::move(reason.error()));
  Result<Statement> room = database.prepare(
      "INSERT OR REPLACE INTO headroom "
      "VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, "
      "?19, ?20, ?21, ?22)");
  if (!room) return std::unexpected(std::move(room.error()));
  Result<Statement> gpu = database.prepare(
      "INSERT OR REPLACE INTO headroom_gpus VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
      "?12, ?13, ?14)");
  if (!gpu) return std::unexpected(std::move(gpu.error()));
  return WaitingTable(std::move(*reason), std::move(*room), std::move(*gpu));
}

Result<void> WaitingTable::put(std::uint32_t shape, const model::Reason& reason,
                               std::optional<std::uint32_t> first) {
  const model::Request& needs = reason.needs;
  std::optional<std::uint32_t> gpu;
  if (needs.gpu) gpu = needs.gpu->value;
  return reason_.run(shape, model::to_text(reason.cause), needs.memory, needs.cpus.milli,
                     needs.gpus, needs.gpu_memory, gpu, reason.parallel_max, reason.groups, first,
                     reason.first_since, reason.not_before, needs.largest ? 1 : 0,
                     needs.sharing.utilization, needs.sharing.max_per_gpu,
                     reason.per_gpu_measured ? 1 : 0, reason.own_until_known ? 1 : 0,
                     reason.gpu_memory_seen, needs.disk);
}

Result<void> WaitingTable::put(const model::Headroom& room) {
  Result<void> done = room_.run(
      room.memory_free, room.memory_held, room.memory_of_others, room.holders, room.cpus.milli,
      room.cpus_free.milli, room.cpu_holders, room.cpu_used_by_others, room.cpu_utilization_max,
      room.processes_max, room.processes_reason, room.ahead, room.waiting_max, room.at,
      room.try_first_time, room.gpu_utilization_max, neighbours_kept(room), room.gpus_max,
      room.gpus_max_until, room.disk_free, room.disk_promised, room.disk_holders);
  for (int position = 0; std::cmp_less(position, room.gpus.size()) && done; ++position) {
    const model::Headroom::Card& card = room.gpus[static_cast<std::size_t>(position)];
    done = gpu_.run(position, card.label, card.present ? 1 : 0, card.whole ? 1 : 0, card.holders,
                    card.free, card.of_others, card.lingering, card.avoided_for, card.tasks,
                    card.utilization, card.tasks_max, card.uuid, card.drained ? 1 : 0);
  }
  return done;
}

model::Reason read_reason(const Statement& row, int first) {
  model::Reason reason{.cause = model::cause_from(row.text(first)),
                       .needs = {.memory = {row.integer(first + 1)},
                                 .cpus = {row.integer(first + 2)},
                                 .gpus = row.small(first + 3),
                                 .gpu_memory = {row.integer(first + 4)},
                                 .largest = row.small(first + 10) != 0,
                                 .sharing = {.utilization = row.small(first + 11),
                                             .max_per_gpu = row.small(first + 12)},
                                 .disk = {row.integer(first + 16)}},
                       .parallel_max = row.small(first + 6),
                       .groups = std::string(row.text(first + 7)),
                       .per_gpu_measured = row.small(first + 13) != 0,
                       .own_until_known = row.small(first + 14) != 0,
                       .gpu_memory_seen = {row.integer(first + 15)}};
  if (!row.null(first + 5)) {
    reason.needs.gpu = model::GpuIndex{static_cast<std::uint32_t>(row.integer(first + 5))};
  }
  if (!row.null(first + 8)) reason.first_since = Instant{Duration(row.integer(first + 8))};
  if (!row.null(first + 9)) reason.not_before = Instant{Duration(row.integer(first + 9))};
  return reason;
}

Result<std::optional<model::Headroom>> read_headroom(Database& database) {
  Result<Statement> row = database.prepare(
      "SELECT memory_free, memory_held, memory_of_others, holders, cpus_milli, cpus_free_milli, "
      "cpu_holders, cpu_used_by_others, cpu_utilization_max, processes_max, processes_reason, "
      "ahead, waiting_max, at_ms, try_first_time_ms, gpu_utilization_max, neighbours, gpus_max, "
      "gpus_max_until, disk_free, disk_promised, disk_holders FROM headroom");
  if (!row) return std::unexpected(std::move(row.error()));
  const Result<bool> found = row->next();
  if (!found) return std::unexpected(found.error());
  if (!*found) return std::nullopt;
  model::Headroom room{.at = {Duration(row->integer(13))},
                       .memory_free = {row->integer(0)},
                       .memory_held = {row->integer(1)},
                       .memory_of_others = {row->integer(2)},
                       .holders = row->small(3),
                       .cpus = {row->integer(4)},
                       .cpus_free = {row->integer(5)},
                       .cpu_holders = row->small(6),
                       .cpu_used_by_others = row->real(7),
                       .cpu_utilization_max = row->real(8),
                       .gpu_utilization_max = row->small(15),
                       .processes_max = row->small(9),
                       .processes_reason = std::string(row->text(10)),
                       .ahead = row->small(11),
                       .waiting_max = row->small(12),
                       .try_first_time = Duration(row->integer(14)),
                       .gpus = {},
                       .neighbours = wire::neighbours_from(row->text(16)),
                       .gpus_max_until = std::string(row->text(18)),
                       .disk_promised = {row->integer(20)},
                       .disk_holders = row->small(21)};
  if (!row->null(17)) room.gpus_max = row->small(17);
  if (!row->null(19)) room.disk_free = Bytes{row->integer(19)};
  Result<Statement> gpus = database.prepare(
      "SELECT label, present, whole, holders, free, of_others, lingering, avoided_for, tasks, "
      "utilization, tasks_max, uuid, drained "
      "FROM headroom_gpus ORDER BY position");
  if (!gpus) return std::unexpected(std::move(gpus.error()));
  while (true) {
    const Result<bool> more = gpus->next();
    if (!more) return std::unexpected(more.error());
    if (!*more) return room;
    room.gpus.push_back({.label = std::string(gpus->text(0)),
                         .present = gpus->small(1) != 0,
                         .whole = gpus->small(2) != 0,
                         .holders = gpus->small(3),
                         .tasks = gpus->small(8),
                         .utilization = gpus->small(9),
                         .tasks_max = gpus->small(10),
                         .free = {gpus->integer(4)},
                         .of_others = {gpus->integer(5)},
                         .lingering = {gpus->integer(6)},
                         .avoided_for = {},
                         .uuid = std::string(gpus->text(11)),
                         .drained = gpus->small(12) != 0});
    if (!gpus->null(7)) room.gpus.back().avoided_for = static_cast<std::uint32_t>(gpus->integer(7));
  }
}

}  // namespace trainyard::journal
