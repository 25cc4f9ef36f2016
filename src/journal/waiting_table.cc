#include "journal/waiting_table.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <expected>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/rows.h"
#include "model/promises.h"
#include "model/resources.h"
#include "model/site_wish.h"
#include "wire/promises_text.h"

namespace trainyard::journal {

const char* const kReasonColumns =
    "s.cause, s.needs_memory, s.needs_cpus_milli, s.needs_gpus, s.needs_gpu_memory, s.needs_gpu, "
    "s.needs_parallel, s.needs_groups, s.needs_since_ms, s.needs_time_ms, s.needs_largest, "
    "s.needs_utilization, s.needs_max_per_gpu, s.needs_measured, s.needs_until_known, "
    "s.needs_gpu_seen, s.needs_disk, s.needs_machine, s.needs_where, s.needs_refusal, "
    "s.needs_avoids";

namespace {

/// The first neighbours, of which a bounded number is worth naming.
std::string neighbours_kept(const model::Headroom& room) {
  const std::span<const model::Neighbour> all = room.neighbours;
  return wire::neighbours_text(all.first(std::min(all.size(), model::kNeighboursKept)));
}

/// "0,2"
std::string positions_text(std::span<const model::GpuPlace> gpus) {
  std::string text;
  for (const model::GpuPlace& it : gpus) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", it.gpu.value);
  }
  return text;
}

/// The GPUs of a machine from such a text.
std::vector<model::GpuPlace> gpus_at(std::string_view positions, model::MachineIndex machine) {
  std::vector<model::GpuPlace> gpus;
  for (const auto& part : std::views::split(positions, ',')) {
    std::uint32_t position = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), position);
    if (error == std::errc{}) gpus.push_back({.machine = machine, .gpu = {position}});
  }
  return gpus;
}

}  // namespace

Result<WaitingTable> WaitingTable::open(Database& database) {
  Result<Statement> reason = database.prepare(
      "UPDATE shapes SET cause = ?2, needs_memory = ?3, needs_cpus_milli = ?4, needs_gpus = ?5, "
      "needs_gpu_memory = ?6, needs_gpu = ?7, needs_parallel = ?8, needs_groups = ?9, needs_task = "
      "?10, needs_since_ms = ?11, needs_time_ms = ?12, needs_largest = ?13, needs_utilization = "
      "?14, needs_max_per_gpu = ?15, needs_measured = ?16, needs_until_known = ?17, "
      "needs_gpu_seen = ?18, needs_disk = ?19, needs_machine = ?20, needs_where = "
      "?21, needs_refusal = ?22, needs_avoids = ?23 "
      "WHERE number = ?1");
  if (!reason) return std::unexpected(std::move(reason.error()));
  Result<Statement> room = database.prepare(
      "INSERT OR REPLACE INTO headroom "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, "
      "?19, ?20, ?21, ?22, ?23, ?24, ?25)");
  if (!room) return std::unexpected(std::move(room.error()));
  Result<Statement> gpu = database.prepare(
      "INSERT OR REPLACE INTO headroom_gpus VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
      "?12, ?13, ?14, ?15, ?16)");
  if (!gpu) return std::unexpected(std::move(gpu.error()));
  return WaitingTable(database, std::move(*reason), std::move(*room), std::move(*gpu));
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
                     reason.gpu_memory_seen, needs.disk, reason.machine.value,
                     model::to_text(needs.where), reason.refusal, positions_text(needs.avoids));
}

Result<void> WaitingTable::put(model::MachineIndex machine, const model::Headroom& room) {
  Result<void> done = room_.run(
      machine.value, room.memory_free, room.memory_held, room.memory_of_others, room.holders,
      room.cpus.milli, room.cpus_free.milli, room.cpu_holders, room.cpu_used_by_others,
      room.cpu_utilization_max, room.processes_max, room.processes_reason, room.ahead,
      room.waiting_max, room.at, room.try_first_time, room.gpu_utilization_max,
      neighbours_kept(room), room.gpus_max, room.gpus_max_until, room.disk_free, room.disk_promised,
      room.disk_holders, room.memory_kept_free, room.memory_kept_by);
  for (int position = 0; std::cmp_less(position, room.gpus.size()) && done; ++position) {
    const model::Headroom::Card& card = room.gpus[static_cast<std::size_t>(position)];
    done = gpu_.run(machine.value, position, card.label, card.present ? 1 : 0, card.whole ? 1 : 0,
                    card.holders, card.free, card.of_others, card.lingering, card.avoided_for,
                    card.tasks, card.utilization, card.tasks_max, card.uuid, card.drained ? 1 : 0,
                    card.name);
  }
  return done;
}

Result<void> WaitingTable::leave(model::MachineIndex machine) {
  return database_->run(
      fmt::format("DELETE FROM headroom WHERE machine = {0}; "
                  "DELETE FROM headroom_gpus WHERE machine = {0}",
                  machine.value));
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
                       .refusal = std::string(row.text(first + 19)),
                       .machine = {static_cast<std::uint32_t>(row.integer(first + 17))},
                       .per_gpu_measured = row.small(first + 13) != 0,
                       .own_until_known = row.small(first + 14) != 0,
                       .gpu_memory_seen = {row.integer(first + 15)}};
  reason.needs.where = model::parse_site_wish(row.text(first + 18)).value_or(model::SiteWish{});
  reason.needs.avoids = gpus_at(row.text(first + 20), reason.machine);
  if (!row.null(first + 5)) {
    reason.needs.gpu = model::GpuIndex{static_cast<std::uint32_t>(row.integer(first + 5))};
  }
  if (!row.null(first + 8)) reason.first_since = Instant{Duration(row.integer(first + 8))};
  if (!row.null(first + 9)) reason.not_before = Instant{Duration(row.integer(first + 9))};
  return reason;
}

namespace {

/// From the row of a machine in `headroom`; its GPUs have a table of their own.
model::Headroom read_room(const Statement& row) {
  model::Headroom room{.at = {Duration(row.integer(13))},
                       .memory_free = {row.integer(0)},
                       .memory_held = {row.integer(1)},
                       .memory_of_others = {row.integer(2)},
                       .memory_kept_free = {row.integer(22)},
                       .memory_kept_by = std::string(row.text(23)),
                       .holders = row.small(3),
                       .cpus = {row.integer(4)},
                       .cpus_free = {row.integer(5)},
                       .cpu_holders = row.small(6),
                       .cpu_used_by_others = row.real(7),
                       .cpu_utilization_max = row.real(8),
                       .gpu_utilization_max = row.small(15),
                       .processes_max = row.small(9),
                       .processes_reason = std::string(row.text(10)),
                       .ahead = row.small(11),
                       .waiting_max = row.small(12),
                       .try_first_time = Duration(row.integer(14)),
                       .gpus = {},
                       .neighbours = wire::neighbours_from(row.text(16)),
                       .gpus_max_until = std::string(row.text(18)),
                       .disk_promised = {row.integer(20)},
                       .disk_holders = row.small(21)};
  if (!row.null(17)) room.gpus_max = row.small(17);
  if (!row.null(19)) room.disk_free = Bytes{row.integer(19)};
  return room;
}

model::Headroom::Card read_card(const Statement& row) {
  model::Headroom::Card card{.label = std::string(row.text(0)),
                             .present = row.small(1) != 0,
                             .whole = row.small(2) != 0,
                             .holders = row.small(3),
                             .tasks = row.small(8),
                             .utilization = row.small(9),
                             .tasks_max = row.small(10),
                             .free = {row.integer(4)},
                             .of_others = {row.integer(5)},
                             .lingering = {row.integer(6)},
                             .avoided_for = {},
                             .uuid = std::string(row.text(11)),
                             .drained = row.small(12) != 0,
                             .name = std::string(row.text(13))};
  if (!row.null(7)) card.avoided_for = static_cast<std::uint32_t>(row.integer(7));
  return card;
}

Result<std::vector<model::Headroom::Card>> read_cards(Database& database, std::uint32_t machine) {
  return collect(
      database,
      "SELECT label, present, whole, holders, free, of_others, lingering, avoided_for, tasks, "
      "utilization, tasks_max, uuid, drained, name "
      "FROM headroom_gpus WHERE machine = ?1 ORDER BY position",
      read_card, machine);
}

}  // namespace

Result<model::MachineRooms> read_rooms(Database& database) {
  model::MachineRooms rooms;
  Result<void> read = each(
      database,
      "SELECT number, name FROM machines WHERE execution = (SELECT max(number) FROM executions)",
      [&rooms](const Statement& row) {
        rooms.join({static_cast<std::uint32_t>(row.integer(0))}, std::string(row.text(1)));
      });
  if (!read) return std::unexpected(std::move(read.error()));
  std::map<std::uint32_t, model::Headroom> of_machines;
  read = each(
      database,
      "SELECT memory_free, memory_held, memory_of_others, holders, cpus_milli, cpus_free_milli, "
      "cpu_holders, cpu_used_by_others, cpu_utilization_max, processes_max, processes_reason, "
      "ahead, waiting_max, at_ms, try_first_time_ms, gpu_utilization_max, neighbours, gpus_max, "
      "gpus_max_until, disk_free, disk_promised, disk_holders, memory_kept_free, memory_kept_by, "
      "machine FROM headroom",
      [&of_machines](const Statement& row) {
        constexpr int kMachineColumn = 24;
        of_machines[static_cast<std::uint32_t>(row.integer(kMachineColumn))] = read_room(row);
      });
  if (!read) return std::unexpected(std::move(read.error()));
  for (auto& [machine, room] : of_machines) {
    Result<std::vector<model::Headroom::Card>> cards = read_cards(database, machine);
    if (!cards) return std::unexpected(std::move(cards.error()));
    room.gpus = std::move(*cards);
    rooms.see({machine}, std::move(room));
  }
  return rooms;
}

}  // namespace trainyard::journal
