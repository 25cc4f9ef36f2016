// Whether an event from a file or a stream refers only to what exists: to machines that have
// joined, to their GPUs, to groups that were added. The scheduler trusts its events, so code that
// reads events from outside checks them here first.
//
// One for each scheduler; sees each of its events, in order. No system call.
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
  /// The mistake in the next event, for people; nothing: the scheduler may take it, and is assumed
  /// to have done so. `decided` is its last decision.
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
