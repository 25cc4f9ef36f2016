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

namespace trainyard {

class WaitingTable {
 public:
  static Result<WaitingTable> open(Database& database);

  /// Both write inside the caller's transaction.
  Result<void> put(ShapeIndex shape, const Reason& reason);
  Result<void> put(const Headroom& room);

 private:
  WaitingTable(Statement reason, Statement room, Statement gpu)
      : reason_(std::move(reason)), room_(std::move(room)), gpu_(std::move(gpu)) {}

  Statement reason_;
  Statement room_;
  Statement gpu_;
};

/// The columns of a reason, for read_reason().
extern const char* const kReasonColumns;
/// From the column `first` on.
Reason read_reason(const Statement& row, int first);

/// What was put last; nothing when nobody has waited yet.
Result<std::optional<Headroom>> read_headroom(Database& database);

}  // namespace trainyard
