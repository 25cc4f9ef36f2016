// Sees the turns of a run and says what somebody is to be told: its first failure, that nothing has
// run for an hour, that a group has ended. Has no clock but the times of the events. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/machine_rooms.h"
#include "model/status.h"
#include "model/turn.h"
#include "model/waiting.h"
#include "tell/notice.h"

namespace trainyard::tell {

/// How long nothing has to run before somebody is told.
constexpr Duration kIdleLong{3'600'000};

/// A group has ended as it does once, and its report can be read.
struct GroupEnded {
  model::GroupIndex group;
  friend bool operator==(const GroupEnded&, const GroupEnded&) = default;
};

using Sight = std::variant<FirstFailure, NothingRuns, GroupEnded>;

class RunWatch {
 public:
  /// "train/lr=1".
  explicit RunWatch(std::move_only_function<std::string(model::TaskIndex) const> name_of)
      : name_of_(std::move(name_of)) {}

  /// The news of this turn.
  std::vector<Sight> see(const model::Turn& turn);

  [[nodiscard]] Counts counts() const;

 private:
  void see(const model::Event& event);
  void see(const model::TaskChanged& change, std::vector<Sight>& sights);
  void see(const model::GroupChanged& change, std::vector<Sight>& sights);
  void add(const model::BatchAdded& batch);
  void count(model::Verdict verdict, int by);
  [[nodiscard]] std::optional<NothingRuns> idle();

  std::move_only_function<std::string(model::TaskIndex) const> name_of_;
  std::vector<model::Verdict> verdicts_;   ///< By task.
  std::vector<bool> open_groups_;          ///< By group: something of it is to be run.
  std::vector<std::uint32_t> group_ends_;  ///< The first task after each group.
  std::map<model::Verdict, int> ended_;
  std::set<model::AttemptKey> running_;
  std::map<model::ShapeIndex, model::Reason> reasons_;
  model::MachineRooms rooms_;
  bool begun_ = false;
  bool failure_told_ = false;
  bool idle_told_ = false;
  Instant now_;
  Instant idle_since_;
};

}  // namespace trainyard::tell
