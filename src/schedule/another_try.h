// Whether a task is tried again: a function of how its attempt ended, how often that has happened
// to it, and its terms. Pure; the scheduler calls it once for each attempt that did not end well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "model/terms.h"

namespace trainyard::schedule {

/// The end of an attempt, as far as another try is concerned.
enum class Setback : std::uint8_t {
  OutOfMemory,  ///< On the host or a GPU. Loading and training are counted apart.
  Crowded,      ///< Others on its GPU took more than was reserved: not the task's fault.
  Failed,       ///< By the task itself: an exit code, a signal, an exception, no start.
  TimeLimit,    ///< It took longer than its time limit.
  Lost,         ///< Its end is unknown, or its GPU dropped out: not the task's fault.
  Preempted,    ///< Interrupted because the machine's memory ran short: not its fault either.
  /// A user wants its GPU back, or its machine is taken away and the task resumes in the same
  /// place. However often that happens, it costs no try.
  Cleared,
  /// The machine was short of a resource that starting a process needs. However often that happens,
  /// it costs no try.
  StartRefused,
  Final,  ///< Ended by a person, at its hard limit, with its group or with the run.
};

/// Number of times that each setback has happened to a task.
struct Tries {
  std::uint8_t load_out_of_memory = 0;
  std::uint8_t train_out_of_memory = 0;
  std::uint8_t failed = 0;  ///< Includes attempts at the time limit, if these are tried again.
  std::uint8_t lost = 0;
  std::uint8_t preempted = 0;
  std::uint8_t crowded = 0;
  std::uint8_t cleared = 0;

  /// One more. Stays at 255.
  void count(Setback setback, Stage stage);
  /// The tries that are about memory; a resumed run continues with them.
  [[nodiscard]] model::MemoryTries of_memory() const;
};

/// The tries with which a task of a resumed run begins: those that it had reached, but at least one
/// is left, as a user has asked for the run to resume. Tries that have nothing to do with memory
/// are counted from 0.
Tries tries_after_resume(const model::MemoryTries& before, const model::Terms& terms,
                         const model::Policy& policy);

/// The maximum of any count of retries: a task is tried at most 255 times for one cause, whatever
/// its terms say, and Tries count no further.
constexpr int kRetriesMax = 254;

/// Maximum number of tries after ends that were not the task's fault, whatever its terms say.
constexpr int kFaultlessTriesMax = 5;

/// No task waits longer for another try.
constexpr Duration kRetryDelayMax{3'600'000};

struct AnotherTry {
  Duration delay{0};
  int number = 2;  ///< Number of the next try, counting the first; to_text() counts retries.
  int most = 2;    ///< 0: no maximum.

  friend bool operator==(const AnotherTry&, const AnotherTry&) = default;
};

/// `tries` has this setback counted. Nothing: the task is not tried again.
std::optional<AnotherTry> another_try(Setback setback, Stage stage, const Tries& tries,
                                      const model::Terms& terms, const model::Policy& policy);

/// Number of tries that a stage has in all when memory runs out: fedflow `scheduler.load-nretry`
/// and `scheduler.train-nretry`, unless the task's own `oom-retries` sets the number of retries.
int memory_tries_max(Stage stage, const model::Terms& terms, const model::Policy& policy);

/// Whether a task that runs out of the memory of a GPU by itself is not tried again.
bool ends_without_gpu_memory(const model::Terms& terms, const model::Policy& policy);

/// The delay of the retry of a failed attempt: from `delay` to one and a half of it, so that tasks
/// that failed together are not retried together. Depends on task and attempt alone, so that a
/// replayed run has the same delays.
Duration drawn_delay(Duration delay, model::AttemptKey failed);

/// The same for a task without a delay: from 0 s to kRetrySpread.
Duration spread_delay(model::AttemptKey failed);

/// Retries without a delay of tasks that failed within this time are spread over as much.
constexpr Duration kRetrySpread{1'000};

/// "0.3 s", "30 s", "2m", "1m30s", "1h13m".
std::string delay_text(Duration delay);

/// "retry 1 of 2", "retry 1 of 2 in 30 s": the first try is not counted.
std::string to_text(const AnotherTry& next);

/// Comes before the delay in the message of an attempt that was not started.
constexpr std::string_view kNextStart = ", next start in ";

/// The message of an attempt that is retried, `age` after its end: its delay is the time that is
/// left, and is left out when it is over. Other messages stay the same.
std::string with_time_left(std::string_view message, Duration age);

}  // namespace trainyard::schedule
