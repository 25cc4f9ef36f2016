// The scheduler's view of one machine: its capacity, the reservations on it, and the GPUs that a
// request gets in the present pass. The tasks that wait for it are not known here.
//
// For the files of this folder alone. Its ledgers keep their own rules; Scheduler::State enters the
// tasks in them (schedule/state.h).
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
#include "schedule/neighbours.h"
#include "schedule/start_refusals.h"

namespace trainyard::schedule {

/// The time that a machine is available, if it is taken away at a known time, as by a batch system:
/// which tasks may begin there, and when the running ones have to be interrupted so that they have
/// had their signal, TERM and its grace before that.
///
/// For the files of this folder alone. Pure.
class MachineTime {
 public:
  /// Between the last KILL and the end of the machine: the time until all ends are reported.
  static constexpr Duration kForNews{5'000};

  /// The time that a task needs which may begin.
  struct Wish {
    Duration before{0};                 ///< Time between its signal and TERM.
    std::optional<Duration> takes;      ///< Its expected duration; nothing: unknown.
    bool goes_on_where_it_was = false;  ///< It resumes: little is lost by an interruption.
  };

  /// `until`: nothing if no such time is known. `grace` is the time between TERM and KILL.
  MachineTime(Instant joined, std::optional<Instant> until, Duration grace);

  /// Whether a task may begin now. A task that would not be done in all the time that the machine
  /// has had begins whenever it can: holding it back would be of no use.
  [[nodiscard]] bool is_enough_for(const Wish& wish, Instant now) const;

  /// The time at which a task that has begun is interrupted. A signal never takes more than half of
  /// the time.
  [[nodiscard]] std::optional<Instant> end_of(Duration before) const;
  /// The time by which TERM has been sent to all tasks.
  [[nodiscard]] std::optional<Instant> last_term() const { return last_term_; }

  /// A task has begun, and is interrupted at end_of() at the latest.
  void began(Duration before);
  /// The time of the next interruption; the task may have ended by then.
  [[nodiscard]] std::optional<Instant> next_end() const { return next_end_; }
  /// All interruptions that are due have been made, and this is the next one.
  void set_next_end(std::optional<Instant> at) { next_end_ = at; }

 private:
  Instant joined_;
  std::optional<Instant> last_term_;
  std::optional<Instant> next_end_;
};

struct MachineBook {
  MachineBook(const model::MachineJoined& machine, const model::Policy& policy, Instant at);

  /// Whether attempts may be started there: it was sampled, is not gone, and its keeper answers.
  [[nodiscard]] bool may_start() const { return was_read && !is_gone && !keeper_silent; }

  /// The memory that can be reserved there in all.
  [[nodiscard]] Bytes memory_most(const model::Policy& policy) const {
    return capacity.memory - memory_kept_free(policy, capacity);
  }

  /// "GPU 0", "GPUs 0, 1".
  [[nodiscard]] std::string names_of(const GpuSet& gpus_there) const;

  /// Whether a request may run there, whatever room there is.
  [[nodiscard]] bool is_where(const model::SiteWish& where) const {
    return where.says_nothing() || (where.takes_machine(name) && chooser.has_a(where));
  }

  // Enter the news about the machine into all its books.
  void see(const model::Sampled& reading);
  /// Returns whether a GPU has answered that was late.
  bool see(Instant at, const model::GpusSampled& reading, const model::Policy& policy);
  void see(std::vector<model::Neighbour> its_neighbours);
  void see(const model::LimitsChanged& limits);

  /// The user's fair share of the GPUs: all of them, divided by the users while others have a run
  /// or a process on some; at least one.
  [[nodiscard]] std::size_t share_of_gpus() const;
  /// Number of GPUs that this leaves beyond those on which the user's tasks are.
  [[nodiscard]] std::size_t gpus_left_of_share() const;

  /// The reason why existing GPUs cannot be given.
  [[nodiscard]] model::Cause lack_of_gpus(Instant at, Duration linger_max) const;

  // The present pass, in which tasks begin one after the other on a GPU that is tight.

  void begin_pass();
  /// A task is in its first allocation there until then, unless it settles before.
  void is_settling(const GpuSet& gpus_there, Bytes each, Instant until);
  /// The room that could be reserved, less what is kept for tasks that begin soon.
  [[nodiscard]] std::span<const GpuRoom> room_for_choice() const;
  /// The GPUs that a request gets: Cause::None. Or those that it gets when the tasks there have
  /// settled, or tasks that are to begin there before: Cause::Settling. None if it lacks room. Idle
  /// GPUs come first as GpuChooser::choose() says.
  [[nodiscard]] model::Cause choose_gpus(const model::Request& request, std::size_t idle_max,
                                         Instant at, Duration linger_max, GpuSet& chosen) const;
  /// Keeps younger tasks from beginning in the place of one that only waits for its turn to begin.
  /// Returns the latest moment of that.
  std::optional<Instant> hold(const model::Request& request, const GpuSet& gpus_there);
  /// A task begins on these GPUs now. Its reservation has been entered.
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
  int short_of_memory = 0;            ///< Readings in a row that showed too little memory.
  std::vector<int> overfull;          ///< By GPU: the same of readings that showed it overfull.
  model::Headroom reported_headroom;  ///< In the last HeadroomSeen of this machine.

  // The tasks that are started there and do not train yet.
  int ahead = 0;           ///< Their number.
  int ahead_on_gpus = 0;   ///< The number of these that want GPUs.
  model::Cpus ahead_cpus;  ///< The CPUs on which those without GPUs will train.

  // The present pass.
  bool is_in_pass = false;      ///< Something is remembered until the next one begins.
  bool loads_wait = false;      ///< An older task may not be loaded ahead yet.
  bool gpu_loads_wait = false;  ///< The same of those that want GPUs.
  /// An older task waits for disk space that running tasks may not need: no other task takes it
  /// before.
  bool disk_waits = false;

 private:
  /// A task that begins as soon as another has settled on its GPUs: until then these are kept for
  /// it.
  struct Held {
    model::Request request;
    GpuSet gpus;
  };

  StartupGate gate_;
  std::vector<Held> held_;
  std::vector<GpuRoom> room_beside_held_;  ///< While there are any.
};

}  // namespace trainyard::schedule
