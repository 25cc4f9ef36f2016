// Machines of a run that a batch system gives for a time: the nodes of allocations, each of which
// becomes a remote machine when it is granted, also while the run is active. When an allocation has
// ended another one is requested. Its attempts count as lost as soon as the batch system says that
// nothing of it runs any more, or as on any remote machine.
//
// Belongs to the thread of the loop.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/ids.h"
#include "run/allocation.h"
#include "run/remote_machine.h"
#include "run/remote_machines.h"
#include "sys/event_loop.h"

namespace trainyard::run {

class AllocatedMachines {
 public:
  /// Pause between an allocation that has ended and the next request: at first, and at most if one
  /// after the other is refused or ends before it was of use.
  static constexpr Duration kAgainMin{1'000};
  static constexpr Duration kAgainMax{300'000};
  /// An allocation that has lasted this long was of use.
  static constexpr Duration kOfUse{60'000};

  struct Options {
    Allocation::Options each;
    int count = 1;  ///< Number of allocations at once.
    /// The time that an allocation is kept while no task runs there or could start.
    Duration idle_max{10'000};
    /// Returns the options of the machine for a node of an allocation.
    std::function<RemoteMachine::Options(const std::string& node, const std::string& allocation)>
        lead;
    std::function<void(const std::string&)> note;  ///< Receives notes for the user.
  };

  /// The remote machines must outlive this.
  AllocatedMachines(RemoteMachines& remotes, Options options);
  AllocatedMachines(AllocatedMachines&&) = delete;
  AllocatedMachines& operator=(AllocatedMachines&&) = delete;
  /// Gives all back: after the machines have been left.
  ~AllocatedMachines();

  /// Requests all of them, and waits until the first is granted, however long that takes, while
  /// `is_wanted` returns true. An error says why none is.
  Result<void> wait_for_the_first(const std::function<bool()>& is_wanted);

  /// Access to the state of the active run.
  struct Run {
    /// Whether anything runs on a machine, or may yet begin there.
    std::function<bool(model::MachineIndex)> has_use_for;
    /// Number of tasks that have neither ended nor been started.
    std::function<std::size_t()> count_waiting;
  };
  /// The run is active: from now on a new allocation is requested for one that ends while tasks
  /// wait, and one that is of no use is given back. `note` receives notes for the user.
  void go_on(Run run, std::function<void(const std::string&)> note);

 private:
  /// The place of one of these allocations.
  struct Place {
    std::unique_ptr<Allocation> allocation;  ///< Nothing: the next is requested in a while.
    Duration granted_at{0};
    std::optional<Duration> idle_since;  ///< Start of the time without tasks.
    Duration again_after = kAgainMin;
    std::optional<sys::EventLoop::TimerId> timer;
  };
  struct Node {
    RemoteMachine* machine = nullptr;
    std::string allocation;  ///< The last one that it was in.
    bool rests = false;      ///< And that allocation has ended.
  };

  /// Whether a place has an allocation, granted or not.
  [[nodiscard]] bool is_any_requested() const;
  void ask(Place& place);
  void granted(Place& place, const GrantedNodes& nodes);
  void ended(Place& place, const std::string& why);
  void plan_to_ask(Place& place);
  void wait_to_ask(Place& place);
  [[nodiscard]] bool is_one_more_wanted() const;
  void plan_to_look();
  void look_for_use();
  [[nodiscard]] bool is_of_use(const Allocation& allocation) const;
  void over(const std::string& allocation);
  void lead_to(const Place& place, const std::string& node, const GrantedNodes& nodes);

  RemoteMachines& remotes_;
  Options options_;
  std::vector<Place> places_;
  std::deque<std::unique_ptr<Allocation>> past_;  ///< Ended, but not known to be over.
  std::map<std::string, Node> nodes_;             ///< By the names of their machines.
  std::string failure_;                           ///< The reason why the last one was not granted.
  std::optional<Run> run_;                        ///< Since go_on().
  std::optional<sys::EventLoop::TimerId> looks_;
};

}  // namespace trainyard::run
