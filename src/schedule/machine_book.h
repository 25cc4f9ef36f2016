// One machine in the eyes of the scheduler: what it has, what is promised of it and to whom, and
// which of its GPUs a request gets in the present pass. Who waits for it is not known here.
//
// For the files of this folder alone. Its ledgers keep their own rules; who is entered in them is
// Scheduler::State's to say (schedule/state.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/site_wish.h"
#include "model/waiting.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/ledger.h"
#include "schedule/machine_time.h"
#include "schedule/neighbours.h"
#include "schedule/start_refusals.h"
#include "schedule/startup_gate.h"

namespace trainyard::schedule {

struct MachineBook {
  MachineBook(const model::MachineJoined& machine, const model::Policy& policy, Instant at);

  /// Whether attempts may be started there: it was looked at, is not gone, and its keeper answers.
  [[nodiscard]] bool may_start() const { return was_read && !is_gone && !keeper_silent; }

  /// What can be promised of its memory in all.
  [[nodiscard]] Bytes memory_most(const model::Policy& policy) const {
    return capacity.memory - memory_kept_free(policy, capacity);
  }

  /// "GPU 0", "GPUs 0, 1".
  [[nodiscard]] std::string names_of(const GpuSet& gpus_there) const;

  /// Whether it is one on which a request may run, whatever room there is.
  [[nodiscard]] bool is_where(const model::SiteWish& where) const {
    return where.says_nothing() || (where.takes_machine(name) && chooser.has_a(where));
  }

  // What is heard of it, into all its books.
  void see(const model::Sampled& reading);
  /// Returns whether one has answered that was late.
  bool see(Instant at, const model::GpusSampled& reading, const model::Policy& policy);
  void see(std::vector<model::Neighbour> its_neighbours);
  void see(const model::LimitsChanged& limits);

  /// The user's fair share of the GPUs: all of them, divided by the users while others have a run
  /// or a process on some; at least one.
  [[nodiscard]] std::size_t share_of_gpus() const;
  /// How many more than those on which the user's tasks are.
  [[nodiscard]] std::size_t gpus_left_of_share() const;

  /// Why no GPUs can be given that there are.
  [[nodiscard]] model::Cause lack_of_gpus(Instant at, Duration linger_max) const;

  // The present pass, in which tasks begin one after the other on a GPU that is tight.

  void begin_pass();
  /// One is in its first allocation there until then, unless it settles before.
  void is_settling(const GpuSet& gpus_there, Bytes each, Instant until);
  /// What could be promised, less what is kept for those that begin soon.
  [[nodiscard]] std::span<const GpuRoom> room_for_choice() const;
  /// The GPUs that a request gets: Cause::None. Or those that it gets when who is there has
  /// settled, or who is to begin there before: Cause::Settling. None where it lacks room.
  /// Idle GPUs come first as GpuChooser::choose() says.
  [[nodiscard]] model::Cause choose_gpus(const model::Request& request, std::size_t idle_max,
                                         Instant at, Duration linger_max, GpuSet& chosen) const;
  /// Younger ones do not begin in the place of one that only waits for its turn to begin. Returns
  /// when that is at the latest.
  std::optional<Instant> hold(const model::Request& request, const GpuSet& gpus_there);
  /// One begins on these GPUs now. What is promised has been entered.
  void occupy(const model::Request& request, const GpuSet& gpus_there, Instant at,
              Duration settle_max);

  model::MachineIndex index;
  std::string name;
  model::Capacity capacity;
  Ledger ledger;
  GpuLedger gpus;
  GpuChooser chooser;
  NeighbourBook neighbours;
  MachineTime time;
  bool was_read = false;
  bool is_gone = false;
  bool keeper_silent = false;
  StartPause start_pause;
  std::optional<int> gpus_max;        ///< limits.gpus, now.
  std::string gpus_max_until;         ///< For people.
  int short_of_memory = 0;            ///< How many readings in a row showed too little memory.
  std::vector<int> overfull;          ///< By GPU: the same of readings that showed it overfull.
  model::Headroom reported_headroom;  ///< In the last HeadroomSeen of this machine.

  // Those that are started there and do not train yet.
  int ahead = 0;           ///< How many.
  int ahead_on_gpus = 0;   ///< How many of these want GPUs.
  model::Cpus ahead_cpus;  ///< The CPUs on which those of them will train that want no GPU.

  // The present pass.
  bool is_in_pass = false;      ///< Something is remembered until the next one begins.
  bool loads_wait = false;      ///< An older task may not be loaded ahead yet.
  bool gpu_loads_wait = false;  ///< The same of those that want GPUs.
  /// An older task waits for the disk that those that run may not need: nobody takes it before.
  bool disk_waits = false;

 private:
  /// One that begins as soon as another has settled on its GPUs: until then these are kept for it.
  struct Held {
    model::Request request;
    GpuSet gpus;
  };

  StartupGate gate_;
  std::vector<Held> held_;
  std::vector<GpuRoom> room_beside_held_;  ///< While there are any.
};

}  // namespace trainyard::schedule
