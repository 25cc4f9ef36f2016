#include "journal/machine_table.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "journal/rows.h"

namespace trainyard::journal {

std::vector<std::string> labels_of(const std::vector<model::Gpu>& gpus) {
  std::vector<std::string> labels;
  labels.reserve(gpus.size());
  std::ranges::transform(gpus, std::back_inserter(labels),
                         [](const model::Gpu& gpu) { return gpu.label(); });
  return labels;
}

Result<void> put_gpus(Database& database, std::int64_t execution, model::MachineIndex machine,
                      const std::vector<model::Gpu>& gpus) {
  Result<void> cleared = database.run(fmt::format(
      "DELETE FROM gpus WHERE execution = {} AND machine = {}", execution, machine.value));
  if (!cleared) return cleared;
  Result<Statement> insert = database.prepare(
      "INSERT INTO gpus (execution, machine, position, label, uuid, name, pci, memory) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const Result<void> put =
        insert->run(execution, machine.value, static_cast<std::int64_t>(i), gpus[i].label(),
                    gpus[i].uuid, gpus[i].name, gpus[i].pci, gpus[i].memory);
    if (!put) return put;
  }
  return {};
}

Result<MachineTable> MachineTable::open(Database& database, std::int64_t execution) {
  Result<Statement> put = database.prepare(
      "INSERT OR REPLACE INTO machines "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, '', NULL, ?7)");
  if (!put) return std::unexpected(std::move(put.error()));
  Result<Statement> gone = database.prepare(
      "UPDATE machines SET gone_ms = ?3, why = ?4 WHERE execution = ?1 AND number = ?2");
  if (!gone) return std::unexpected(std::move(gone.error()));
  Result<Statement> silent =
      database.prepare("UPDATE machines SET silent_ms = ?3 WHERE execution = ?1 AND number = ?2");
  if (!silent) return std::unexpected(std::move(silent.error()));
  Result<Statement> found = database.prepare(
      "UPDATE gpus SET label = ?4, uuid = ?5, name = ?6, pci = ?7, memory = ?8 "
      "WHERE execution = ?1 AND machine = ?2 AND position = ?3");
  if (!found) return std::unexpected(std::move(found.error()));
  return MachineTable(database, execution,
                      {.put = std::move(*put),
                       .gone = std::move(*gone),
                       .silent = std::move(*silent),
                       .gpu_found = std::move(*found)});
}

Result<void> MachineTable::join(Instant at, const model::MachineJoined& joined) {
  const model::Capacity& capacity = joined.capacity;
  Result<void> put = statements_.put.run(execution_, joined.machine.value, joined.name,
                                         capacity.cpus.milli, capacity.memory, at, joined.until);
  return put ? put_gpus(*database_, execution_, joined.machine, capacity.gpus) : put;
}

Result<void> MachineTable::leave(Instant at, const model::MachineGone& gone) {
  return statements_.gone.run(execution_, gone.machine.value, at, gone.why);
}

Result<void> MachineTable::hear(Instant at, const model::KeeperSilent& keeper) {
  return statements_.silent.run(execution_, keeper.machine.value,
                                keeper.silent ? std::optional(at) : std::nullopt);
}

Result<void> MachineTable::find(model::MachineIndex machine, const model::GpuFound& found) {
  const model::Gpu& gpu = found.what;
  return statements_.gpu_found.run(execution_, machine.value, found.gpu.value, gpu.label(),
                                   gpu.uuid, gpu.name, gpu.pci, gpu.memory);
}

Result<KnownMachines> KnownMachines::read(Database& database) {
  KnownMachines known;
  std::int64_t execution = 0;
  const Result<void> read =
      each(database,
           "SELECT x.number, x.started_ms, m.number, coalesce(m.name, '') FROM executions x "
           "LEFT JOIN machines m ON m.execution = x.number ORDER BY x.number, m.number",
           [&](const Statement& row) {
             if (row.integer(0) != execution) {
               execution = row.integer(0);
               known.executions_.push_back({.since = {Duration(row.integer(1))}, .names = {}});
             }
             if (!row.null(2)) known.executions_.back().names[row.integer(2)] = row.text(3);
           });
  if (!read) return std::unexpected(read.error());
  return known;
}

std::string KnownMachines::name(Instant started, std::int64_t machine) const {
  const auto later = std::ranges::upper_bound(executions_, started, {}, &OfExecution::since);
  if (later == executions_.begin()) return {};
  const auto found = std::prev(later)->names.find(machine);
  return found == std::prev(later)->names.end() ? std::string() : found->second;
}

}  // namespace trainyard::journal
