// All machines of a run behind the Machine port: the one that the yard is on, where tasks may run
// there, and those that agents look after. Each command goes to the machine that it is for.
//
// Belongs to the thread of the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "run/local_machine.h"
#include "run/machine.h"
#include "run/remote_machine.h"
#include "run/remote_machines.h"

namespace trainyard::run {

class Fleet final : public Machine {
 public:
  /// `launch` makes what is needed to start an attempt on a remote machine. The others must outlive
  /// this; of remote machines there may be none.
  Fleet(LocalMachine& local, RemoteMachines* remotes, LocalMachine::Launcher launch)
      : local_(local), remotes_(remotes), launch_(std::move(launch)) {}
  Fleet(Fleet&&) = delete;
  Fleet& operator=(Fleet&&) = delete;
  ~Fleet() override;

  /// The remote machines join the run, after the local one if that is part of it: before any batch
  /// is added; those that are not ready yet, or come later, join as soon as they are. `note`
  /// receives notes for the user about them.
  void begin(bool local_joins, std::function<void(const std::string&)> note);

  /// Whether attempts of an earlier execution are still running on the remote machines.
  [[nodiscard]] bool has_found_attempts() const;
  /// Reports them: after all batches have been added, the last of which says that more follows.
  void go_on();

  void carry_out(const model::Command& command) override;
  void is_written() override;
  std::optional<model::ClaimRefused> claim(const Claim& claim) override;
  std::vector<model::Event> wait(std::optional<Instant> until) override {
    return local_.wait(until);
  }
  [[nodiscard]] bool more_to_come() const override { return local_.more_to_come(); }

 private:
  void join(RemoteMachine& machine);
  /// Null: the machine of the yard.
  [[nodiscard]] RemoteMachine* machine_of(model::MachineIndex machine);
  /// The machine that runs an attempt; unknown for one that has ended.
  [[nodiscard]] RemoteMachine* machine_of(model::AttemptKey key);
  void start(RemoteMachine& machine, const model::StartAttempt& command);

  LocalMachine& local_;
  RemoteMachines* remotes_;
  LocalMachine::Launcher launch_;
  RemoteMachine::Ears ears_;
  std::uint32_t first_ = 0;             ///< The number of the first remote machine.
  std::vector<RemoteMachine*> joined_;  ///< By their numbers, from that on.
};

}  // namespace trainyard::run
