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

namespace trainyard::journal {

/// The row numbers of the tasks and groups of the run. They stay when the job file is edited.
struct RowNumbers {
  std::vector<std::uint32_t> tasks;  ///< Empty when each task's number is its index.
  std::vector<std::uint32_t> groups;
  /// Row of the first shape of this execution. The rows before it belong to earlier executions.
  std::uint32_t first_shape = 0;
  /// The names of the GPUs of each machine, by MachineIndex and GpuIndex: "0", "0:1".
  std::vector<std::vector<std::string>> gpus;

  [[nodiscard]] std::uint32_t of(model::TaskIndex task) const {
    return tasks.empty() ? task.value : tasks[task.value];
  }
  [[nodiscard]] std::uint32_t of(model::GroupIndex group) const { return groups[group.value]; }
  [[nodiscard]] std::uint32_t of(model::ShapeIndex shape) const {
    return first_shape + shape.value;
  }
  [[nodiscard]] const std::string& of(model::MachineIndex machine, model::GpuIndex gpu) const {
    return gpus.at(machine.value).at(gpu.value);
  }
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
  EventRows(const model::Event& event, const model::Decision& decision, const RowNumbers& numbers)
      : event_(event), decision_(decision), numbers_(numbers) {}

  /// Fills `row`, using its memory again; false when there are no more.
  bool next(EventRow& row);

 private:
  void begin(EventRow& row);

  const model::Event& event_;
  const model::Decision& decision_;
  const RowNumbers& numbers_;
  bool begun_ = false;
  std::size_t changes_done_ = 0;
  std::size_t commands_done_ = 0;
};

}  // namespace trainyard::journal
