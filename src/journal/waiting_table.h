// Why tasks wait, as columns of `shapes`, and what could be promised at the last reading, as the
// one row of `headroom` and the rows of `headroom_gpus`.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "journal/sqlite.h"
#include "model/ids.h"
#include "model/waiting.h"

namespace trainyard::journal {

class WaitingTable {
 public:
  static Result<WaitingTable> open(Database& database);

  /// Both write inside the caller's transaction. `shape` is the number of its row, and `first`
  /// that of who is tried first.
  Result<void> put(std::uint32_t shape, const model::Reason& reason,
                   std::optional<std::uint32_t> first);
  Result<void> put(const model::Headroom& room);

 private:
  WaitingTable(Statement reason, Statement room, Statement gpu)
      : reason_(std::move(reason)), room_(std::move(room)), gpu_(std::move(gpu)) {}

  Statement reason_;
  Statement room_;
  Statement gpu_;
};

/// The columns of a reason, for read_reason().
extern const char* const kReasonColumns;
/// From the column `first` on; who is tried first is left out.
model::Reason read_reason(const Statement& row, int first);

/// What was put last; nothing when nobody has waited yet.
Result<std::optional<model::Headroom>> read_headroom(Database& database);

}  // namespace trainyard::journal
