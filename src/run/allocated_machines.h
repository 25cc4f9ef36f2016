// Machines of a run that a batch system gives for a time: the nodes of allocations, each of which
// becomes a remote machine when it is granted, also while the run is at work. When an allocation
// has ended another one is asked for; what ran in it is taken for lost as soon as the batch system
// says that nothing of it runs any more, or as of any remote machine.
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
#include "run/granted_nodes.h"
#include "run/remote_machine.h"
#include "run/remote_machines.h"
#include "sys/event_loop.h"

namespace trainyard::run {

class AllocatedMachines {
 public:
  /// Between an allocation that has ended and the next one that is asked for: at first, and at most
  /// where one after the other is refused or ends before it was of use.
  static constexpr Duration kAgainMin{1'000};
  static constexpr Duration kAgainMax{300'000};
  /// One that has lasted so long was of use.
  static constexpr Duration kOfUse{60'000};

  struct Options {
    Allocation::Options each;
    int count = 1;  ///< So many at once.
    /// How long an allocation is kept in which no task runs or could start.
    Duration idle_max{10'000};
    /// What leads to a node of an allocation.
    std::function<RemoteMachine::Options(const std::string& node, const std::string& allocation)>
        lead;
    std::function<void(const std::string&)> note;  ///< What people should know.
  };

  /// The remote machines must outlive this.
  AllocatedMachines(RemoteMachines& remotes, Options options);
  AllocatedMachines(AllocatedMachines&&) = delete;
  AllocatedMachines& operator=(AllocatedMachines&&) = delete;
  /// Gives all back: after the machines have been left.
  ~AllocatedMachines();

  /// Asks for all of them, and waits until the first is granted, however long that takes, while
  /// `is_wanted` says so. An error says why none is.
  Result<void> wait_for_the_first(const std::function<bool()>& is_wanted);

  /// What is known of the run that is at work.
  struct Run {
    /// Whether anything runs on a machine, or may yet begin there.
    std::function<bool(model::MachineIndex)> has_use_for;
    /// How many tasks have neither ended nor been started.
    std::function<std::size_t()> count_waiting;
  };
  /// The run is at work: what ends is asked for again from now on while somebody waits, and what is
  /// of no use is given back. `note` is told what people should know.
  void go_on(Run run, std::function<void(const std::string&)> note);

 private:
  /// For one of those at once.
  struct Place {
    std::unique_ptr<Allocation> allocation;  ///< Nothing: it is asked for again in a while.
    Duration granted_at{0};
    std::optional<Duration> idle_since;  ///< Since when nothing runs in it, or could begin.
    Duration again_after = kAgainMin;
    std::optional<sys::EventLoop::TimerId> timer;
  };
  struct Node {
    RemoteMachine* machine = nullptr;
    std::string allocation;  ///< The last one that it was in.
    bool rests = false;      ///< And that has ended.
  };

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
  std::deque<std::unique_ptr<Allocation>> past_;  ///< Ended, and not seen to be over by now.
  std::map<std::string, Node> nodes_;             ///< By the names of their machines.
  std::string failure_;                           ///< Of the last one that was not granted.
  std::optional<Run> run_;                        ///< Since go_on().
  std::optional<sys::EventLoop::TimerId> looks_;
};

}  // namespace trainyard::run
