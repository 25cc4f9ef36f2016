// Events and decisions as rows of the table `events`: one row an event, and more when what was
// decided is long. Only writes: the journal's tables say what is so, the events say how it came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"

namespace trainyard {

/// Which rows the tasks and groups of the plan are. Numbers stay when the job file is edited.
struct RowNumbers {
  std::vector<std::uint32_t> tasks;  ///< Empty when each task's number is its index.
  std::vector<std::uint32_t> groups;
  std::vector<std::string> gpus;  ///< What people call them, by GpuIndex: "0", "0:1".

  [[nodiscard]] std::uint32_t of(TaskIndex task) const {
    return tasks.empty() ? task.value : tasks[task.value];
  }
  [[nodiscard]] std::uint32_t of(GroupIndex group) const { return groups[group.value]; }
  [[nodiscard]] const std::string& of(GpuIndex gpu) const { return gpus.at(gpu.value); }
};

/// A row is at most about this long, whatever was decided; except for one that holds one longer
/// message.
constexpr std::size_t kEventTextMax = std::size_t{64} << 10U;

struct EventRow {
  std::string_view kind;
  std::optional<std::uint32_t> task;
  std::optional<std::uint32_t> attempt;
  std::string data;
};

/// Goes through the rows of one event. Samples and progress have tables of their own: a Sampled, a
/// Progressed and a TimePassed have rows only for what was decided then.
class EventRows {
 public:
  EventRows(const Event& event, const Decision& decision, const RowNumbers& numbers)
      : event_(event), decision_(decision), numbers_(numbers) {}

  /// Fills `row`, using its memory again; false when there are no more.
  bool next(EventRow& row);

 private:
  void begin(EventRow& row);

  const Event& event_;
  const Decision& decision_;
  const RowNumbers& numbers_;
  bool begun_ = false;
  std::size_t changes_done_ = 0;
  std::size_t commands_done_ = 0;
};

}  // namespace trainyard
