// The reasons why tasks wait, as columns of `shapes`, and the room at the last reading of each
// machine, as rows of `headroom` and `headroom_gpus`.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/result.h"
#include "journal/sqlite.h"
#include "model/ids.h"
#include "model/machine_rooms.h"
#include "model/waiting.h"

namespace trainyard::journal {

class WaitingTable {
 public:
  static Result<WaitingTable> open(Database& database);

  /// All write inside the caller's transaction. `shape` is the number of its row, and `first`
  /// that of who is tried first.
  Result<void> put(std::uint32_t shape, const model::Reason& reason,
                   std::optional<std::uint32_t> first);
  Result<void> put(model::MachineIndex machine, const model::Headroom& room);
  /// Removes the room of a machine that is gone.
  Result<void> leave(model::MachineIndex machine);

 private:
  WaitingTable(Database& database, Statement reason, Statement room, Statement gpu)
      : database_(&database),
        reason_(std::move(reason)),
        room_(std::move(room)),
        gpu_(std::move(gpu)) {}

  Database* database_;
  Statement reason_;
  Statement room_;
  Statement gpu_;
};

/// The columns of a reason, for read_reason().
extern const char* const kReasonColumns;
/// From the column `first` on; who is tried first is left out.
model::Reason read_reason(const Statement& row, int first);

/// The last room of each present machine of the last execution, and the names of all.
Result<model::MachineRooms> read_rooms(Database& database);

}  // namespace trainyard::journal
