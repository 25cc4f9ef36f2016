// The machines of a run that are not the one its yard is on: reached together before the run
// begins, so that it begins with all of them or not at all, and left together at its end. More may
// be added while it is at work.
//
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "run/remote_machine.h"
#include "sys/event_loop.h"
#include "wire/agent.h"

namespace trainyard::run {

class RemoteMachines {
 public:
  /// Time limit for all of them together to answer.
  static constexpr Duration kConnectMax{40'000};

  RemoteMachines() = default;
  RemoteMachines(RemoteMachines&&) = delete;
  RemoteMachines& operator=(RemoteMachines&&) = delete;
  /// Calls leave().
  ~RemoteMachines() { leave(); }

  /// The event loop of the connections, which the run uses afterwards.
  [[nodiscard]] sys::EventLoop& loop() { return loop_; }

  /// Reaches all of them. An error names each that cannot be, and why.
  Result<void> connect(std::vector<RemoteMachine::Options> machines);

  /// Has each look for what it is to have, one question for each in order, and waits for the
  /// answers (RemoteMachine::seen()). An error names each that does not answer, and why.
  Result<void> look(std::vector<wire::AgentLook> questions);

  /// Tells all of them the run, and waits until they are ready. The proof is a file that is written
  /// in the run's directory, and removed when the run is over. An error names each that is not.
  Result<void> begin(wire::AgentBegin begin);

  /// The attempts of an earlier execution, whose yard has died, on all machines.
  [[nodiscard]] std::vector<wire::AgentRun> found() const;
  /// Keeps these of the attempts that were found. The agents kill the others; waits until they
  /// have.
  Result<void> keep(const std::set<model::AttemptKey>& goes_on);
  /// The keys of the agents with which that execution had begun.
  [[nodiscard]] std::vector<std::string> keys_of_others() const;

  /// All that there is of each, in order.
  [[nodiscard]] std::vector<model::Capacity> capacities() const;

  /// Adds a machine, also when the run has begun: it joins as soon as it is ready.
  RemoteMachine& add(RemoteMachine::Options machine);
  /// Called with each that is added from now on.
  void on_added(std::function<void(RemoteMachine&)> told) { on_added_ = std::move(told); }

  /// The time when the last of them is taken away; nothing if it is unknown for one.
  [[nodiscard]] std::optional<Duration> until() const;
  /// Waits for this time; machines that are reached stay so.
  void let_pass(Duration time);
  /// The run is to end: notes for each that is not reached how long it is waited for.
  void say_what_is_waited_for() const;

  [[nodiscard]] std::size_t count() const { return machines_.size(); }
  [[nodiscard]] RemoteMachine& at(std::size_t index) const { return *machines_.at(index); }

  /// The run is over: waits until all files are here that are on machines without our disk, or
  /// cannot be brought, or are wanted no more. Once, before leave().
  void bring_the_rest(const std::function<bool()>& is_wanted);

  /// After that, the names of the machines with files left there: "lab1, lab2"; empty: none.
  [[nodiscard]] std::string names_with_files_left() const;

  /// Ends all that still runs there. Waits until the agents have gone, as far as they are reached.
  /// A second call does nothing.
  void leave();

 private:
  Result<void> wait_until_ready();
  template <class Done>
  Result<void> wait_for(Done done, const char* what);

  sys::EventLoop loop_;
  std::vector<std::unique_ptr<RemoteMachine>> machines_;
  std::optional<wire::AgentBegin> begun_;
  std::function<void(RemoteMachine&)> on_added_;
};

}  // namespace trainyard::run
