// The decision core: which task starts next, and what follows when one has ended.
//
// It is pure: no clock, thread, file or process. Each Event that happens goes in, a Decision with
// commands and changes comes out, and time is a number on the event. The tasks to run arrive in an
// event like all others (BatchAdded). The same events give the same decisions, so a run can be
// played again, simulated with faults (tests/sim/) and forecast.
//
// Not thread-safe: it belongs to the one thread that runs the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/waiting.h"

namespace trainyard::schedule {

class Scheduler {
 public:
  /// A new scheduler has nothing to run until a batch is added, and no place to run it before a
  /// machine has joined.
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

  /// The latest time at which it wants a TimePassed, whatever else happens; nothing when it needs
  /// none.
  [[nodiscard]] std::optional<Instant> wakeup() const;

  /// True when every task of every batch so far has its verdict.
  [[nodiscard]] bool idle() const;

  /// Why the scheduler has ended the run early, as no machine could start its tasks for too long
  /// (Policy::machine_patience): "cannot start tasks: no space left on device". Empty: it has not.
  [[nodiscard]] const std::string& refused_by_machine() const;

  /// The resources that could be reserved on a machine now, after all decisions so far.
  [[nodiscard]] model::Headroom headroom(model::MachineIndex machine, Instant at) const;

  /// Whether anything runs on a machine, or a waiting task may yet begin there before it is taken
  /// away; true for a machine that has not joined, or was not sampled. Costs O(lanes that wait).
  [[nodiscard]] bool is_of_use(model::MachineIndex machine, Instant at) const;

  /// Number of tasks that have neither a verdict nor an attempt.
  [[nodiscard]] std::size_t count_waiting() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether one request is less than the other: in whole GPUs, then in memory of GPUs, then in host
/// memory. A group that tries one task first takes the task with the largest request.
bool asks_for_less(const model::Request& one, const model::Request& other);

/// The name in messages of the machine that trainyard runs on.
inline constexpr std::string_view kThisMachine = "this machine";

/// A machine, as messages about requests name it.
struct MachineText {
  std::string_view name = kThisMachine;
  bool is_planned = false;  ///< It is only described, and no other process runs there.
  std::optional<Bytes> memory_now = std::nullopt;  ///< Available to new work now, if known.
};

/// The part of a request that a machine cannot grant.
enum class RequestPart : std::uint8_t { Memory, Cpus, Gpus, GpuMemory, Device, Where };

/// A request that a machine can never grant.
struct Misfit {
  RequestPart part;  ///< The part that the text is about.
  /// For the person who wrote the request: "needs 64 GB of memory, this machine has 22 GB available
  /// (24 GB less 2 GB kept free); request at most 22GB (if no other process uses any)".
  std::string why;
};

/// Finds the first part of a request that can never be granted there; nothing when all can. A GPU
/// that has not answered yet may be one that the request fits on.
std::optional<Misfit> never_fits(const model::Request& request, const model::Policy& policy,
                                 const model::Capacity& capacity, const MachineText& machine = {});

}  // namespace trainyard::schedule
