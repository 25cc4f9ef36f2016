// What an edit of the job file changes: the rows of the groups and tasks of earlier executions in a
// journal, and the changes in lines for users.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"
#include "journal/plan_rows.h"
#include "journal/sqlite.h"
#include "journal/stale_tasks.h"
#include "model/status.h"

namespace trainyard::journal {

/// No place, or no row.
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// A row of `tasks` from before.
struct OldTask {
  std::uint32_t number = 0;
  std::uint32_t attempt_before = 0;
  std::int64_t fingerprint = 0;
  std::uint32_t batch = 1;
  std::uint32_t position = kNone;  ///< In its batch; kNone: it was not in the job file.
  std::uint32_t group = 0;
  std::uint32_t shape = kNone;
  model::Verdict verdict = model::Verdict::None;
  bool edited = false;
  LastRun last_run;

  [[nodiscard]] bool finished() const { return verdict == model::Verdict::Finished; }
};

/// A row of `groups` from before.
struct OldGroup {
  std::uint32_t number = 0;
  std::uint32_t batch = 1;
  std::string name;
  GroupSettings settings;
  bool present = false;
  bool taken = false;
};

/// The groups of some batches, in SQL, in the order of their numbers.
Result<std::vector<OldGroup>> read_old_groups(Database& database, const std::string& batches);

/// The key of a row of a task without a place: its group, its id, and its turn among equals.
struct Lone {
  std::uint32_t group = 0;
  std::string id;
  std::uint32_t place = 0;  ///< In `old` or in the plan.

  friend auto operator<=>(const Lone&, const Lone&) = default;
};

/// Two rows of one task, by their places.
struct LonePair {
  std::uint32_t old = 0;
  std::uint32_t now = 0;
};

/// Pairs of tasks with the same group and id, in their order.
std::vector<LonePair> pairs_of(std::vector<Lone> old, std::vector<Lone> now);

/// The maximum number of lines.
constexpr std::size_t kChangeLinesMax = 8;

/// The changes of an edit: a few of them, and the number of the others.
class Changes {
 public:
  void add(std::string line);
  /// Counts a finished task that was edited and keeps its result: the first line is about all such.
  void count_kept() { ++kept_; }
  /// Says how the settings of a group differ.
  void compare(const std::string& group, const GroupSettings& before, const GroupSettings& after);

  /// All lines, or the first ones and "and 31 more".
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  std::vector<std::string> first_;
  std::size_t count_ = 0;
  std::size_t kept_ = 0;
};

}  // namespace trainyard::journal
