// Whether an event that somebody wrote down speaks of what there is: of machines that have joined,
// of their GPUs, of groups that were added. The scheduler trusts what it hears, so that whoever
// reads events from a file or from a stream asks this first.
//
// One for each scheduler; sees each event that it hears, in order. No system call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"

namespace trainyard::run {

class EventCheck {
 public:
  /// What is wrong with the next event, for people; nothing: the scheduler may hear it, and is
  /// taken to have done so. `decided` is what it decided last.
  std::optional<std::string> fault_of(const model::Event& event, const model::Decision& decided);

 private:
  struct Machine {
    std::size_t gpus = 0;
    bool is_gone = false;
  };

  std::optional<std::string> look_at(const model::MachineJoined& joined);
  std::optional<std::string> look_at(const model::GpusSampled& reading) const;
  std::optional<std::string> look_at(const model::LimitsChanged& limits) const;
  std::optional<std::string> look_at(const model::AttemptFound& found) const;
  std::optional<std::string> look_at(const model::BatchAdded& batch);
  [[nodiscard]] std::optional<std::string> no_machine(model::MachineIndex machine) const;
  [[nodiscard]] std::optional<std::string> no_gpu(model::MachineIndex machine,
                                                  model::GpuIndex gpu) const;

  std::vector<Machine> machines_;
  std::uint32_t groups_ = 0;
};

}  // namespace trainyard::run
