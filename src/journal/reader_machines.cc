// The part of the readers that is of machines: which there are, and why tasks wait, which is said
// of one.
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "journal/reader.h"
#include "journal/reader_rows.h"
#include "journal/rows.h"
#include "journal/sqlite.h"
#include "journal/waiting_table.h"
#include "model/machine_rooms.h"
#include "model/waiting.h"

namespace trainyard::journal {

namespace {

/// `which`: a condition in SQL on `gpus g`.
Result<std::vector<GpuRow>> read_gpus(Database& database, std::string_view which) {
  return collect(
      database,
      fmt::format("SELECT g.execution, coalesce(m.name, ''), g.label, g.name, g.memory FROM gpus g "
                  "LEFT JOIN machines m ON m.execution = g.execution AND m.number = g.machine "
                  "WHERE {} ORDER BY g.execution, g.machine, g.position",
                  which),
      [](const Statement& row) {
        return GpuRow{.execution = row.integer(0),
                      .machine = std::string(row.text(1)),
                      .label = std::string(row.text(2)),
                      .name = std::string(row.text(3)),
                      .memory = {row.integer(4)}};
      });
}

}  // namespace

Result<std::vector<GpuRow>> read_gpus(Database& database) { return read_gpus(database, "TRUE"); }

Result<std::vector<MachineRow>> read_machines(Database& database) {
  constexpr std::string_view kLast = "(SELECT max(number) FROM executions)";
  Result<std::vector<MachineRow>> machines =
      collect(database,
              fmt::format("SELECT name, cpus_milli, memory, joined_ms, gone_ms, why, silent_ms, "
                          "until_ms FROM machines WHERE execution = {} ORDER BY number",
                          kLast),
              [](const Statement& row) {
                return MachineRow{.name = std::string(row.text(0)),
                                  .cpus = {row.integer(1)},
                                  .memory = {row.integer(2)},
                                  .joined = {Duration(row.integer(3))},
                                  .gone = optional_instant(row, 4),
                                  .why = std::string(row.text(5)),
                                  .silent = optional_instant(row, 6),
                                  .until = optional_instant(row, 7),
                                  .gpus = {}};
              });
  if (!machines) return machines;
  // They are numbered as they join, without a gap.
  for (std::size_t number = 0; number < machines->size(); ++number) {
    Result<std::vector<GpuRow>> gpus =
        read_gpus(database, fmt::format("g.execution = {} AND g.machine = {}", kLast, number));
    if (!gpus) return std::unexpected(std::move(gpus.error()));
    (*machines)[number].gpus = std::move(*gpus);
  }
  return machines;
}

Result<std::vector<WaitingReason>> read_waiting(Database& database) {
  const Result<model::MachineRooms> rooms = read_rooms(database);
  if (!rooms) return std::unexpected(rooms.error());
  std::vector<WaitingReason> waiting;
  constexpr int kShape = 6;
  constexpr int kCpus = 7;
  const auto add = [&](const Statement& row, int tasks, const model::Reason& reason) {
    if (tasks <= 0 || reason.cause == model::Cause::None) return;
    waiting.push_back({.group_name = std::string(row.text(0)),
                       .shape = static_cast<std::uint32_t>(row.integer(kShape)),
                       .tasks = tasks,
                       .memory = {row.integer(2)},
                       .cpus = {row.integer(kCpus)},
                       .cause = reason.cause,
                       .machine = std::string(rooms->name_for(reason)),
                       .reason = rooms->reason_text(reason, row.text(3)),
                       .help = model::help_for(reason, rooms->room_of(reason),
                                               static_cast<std::uint32_t>(row.small(4)))});
  };
  // A shape has one reason, and its tasks that are on hold wait for nothing but their release.
  const Result<void> read = each(
      database,
      fmt::format(
          "SELECT g.called, s.waiting + s.retrying, s.memory, "
          "(SELECT id FROM tasks WHERE number = s.needs_task), g.batch, "
          "coalesce(h.tasks, 0), s.number, s.cpus_milli, {} FROM shapes s "
          "JOIN groups g ON g.number = s.group_number "
          "LEFT JOIN (SELECT t.shape, count(*) AS tasks FROM said d JOIN tasks t ON t.number = "
          "d.task WHERE d.on_hold <> 0 AND NOT EXISTS (SELECT 1 FROM ended WHERE task = d.task) "
          "GROUP BY t.shape) h ON h.shape = s.number "
          "WHERE s.waiting + s.retrying > 0 ORDER BY s.number",
          kReasonColumns),
      [&add](const Statement& row) {
        constexpr int kFirst = kCpus + 1;
        const int on_hold = row.small(5);
        add(row, row.small(1) - on_hold, read_reason(row, kFirst));
        add(row, on_hold, {.cause = model::Cause::Held, .needs = {}});
        return true;
      });
  if (!read) return std::unexpected(read.error());
  return waiting;
}

}  // namespace trainyard::journal
