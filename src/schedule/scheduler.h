// The decision core: which task starts next, and what becomes of one that ended.
//
// It is pure: no clock, thread, file or process. What happens comes in as an Event, what is to be
// done and what has changed comes out as a Decision, and time is a number on the event. That there
// is something to run is an event like all others (BatchAdded). The same events give the same
// decisions, so a run can be played again, simulated with faults (tests/sim/) and forecast.
//
// Not thread-safe: it belongs to the one thread that runs the loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/waiting.h"

namespace trainyard::schedule {

class Scheduler {
 public:
  /// It has nothing to run until a batch is added, and nowhere to run it before a machine has
  /// joined.
  explicit Scheduler(const model::Policy& policy);
  ~Scheduler();
  Scheduler(Scheduler&&) noexcept;
  Scheduler& operator=(Scheduler&&) noexcept;

  /// Takes in one thing that happened. Returns what must now be written down and done, in order.
  /// Nothing is started on a machine before a reading of it has come; where it has GPUs one of
  /// these must come before that. Each shape of a batch must fit into the capacity of a machine
  /// less what the limits keep free (see never_fits()), or wait for one that it fits on; its groups
  /// may need those of earlier batches. Costs O(log tasks + lanes looked at): at most 128 lanes of
  /// tasks that lack room (those of one shape that ask for the same), and 16,384 of groups that run
  /// as many as max-parallel lets them.
  [[nodiscard]] model::Decision on(const model::Event& event);

  /// When it wants a TimePassed at the latest, whatever else happens; nothing when it needs none.
  [[nodiscard]] std::optional<Instant> wakeup() const;

  /// True when every task of every batch so far has its verdict.
  [[nodiscard]] bool idle() const;

  /// Why the scheduler has ended the run early, as no machine could start its tasks for too long
  /// (Policy::machine_patience): "cannot start tasks: no space left on device". Empty: it has not.
  [[nodiscard]] const std::string& refused_by_machine() const;

  /// What could be promised of a machine now, with all that was decided so far.
  [[nodiscard]] model::Headroom headroom(model::MachineIndex machine, Instant at) const;

  /// Whether anything runs on a machine, or something that waits may yet begin there before it is
  /// taken away; true of one that has not joined, or was not looked at. Costs O(lanes that wait).
  [[nodiscard]] bool is_of_use(model::MachineIndex machine, Instant at) const;

  /// How many tasks have neither a verdict nor an attempt.
  [[nodiscard]] std::size_t count_waiting() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether one asks for less than the other: of whole GPUs, then of memory of GPUs, then of the
/// host's. Of a group that tries one first it is the one that asks for most.
bool asks_for_less(const model::Request& one, const model::Request& other);

/// How messages call the machine that trainyard runs on.
inline constexpr std::string_view kThisMachine = "this machine";

/// Why a request can never be granted there, in words for the person who wrote it; nothing when it
/// can: "needs 64 GB of memory, this machine has 22 GB available (24 GB less 2 GB kept free);
/// request at most 22GB, less what other processes use". A GPU that has not answered yet may be one
/// that it fits on. The message calls the machine `machine`.
std::optional<std::string> never_fits(const model::Request& request, const model::Policy& policy,
                                      const model::Capacity& capacity,
                                      std::string_view machine = kThisMachine);

}  // namespace trainyard::schedule
