// Whether a task is tried again: a function of how its attempt ended, how often that has happened
// to it, and its terms. Pure; the scheduler asks it once for each attempt that did not end well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "model/terms.h"

namespace trainyard::schedule {

/// How an attempt ended, as far as another try is concerned.
enum class Setback : std::uint8_t {
  OutOfMemory,  ///< Of the host or of a GPU. Loading and training are counted apart.
  Crowded,      ///< Of a GPU on which others took more than was reserved: not the task's fault.
  Failed,       ///< What the task did itself: an exit code, a signal, an exception, no start.
  TimeLimit,    ///< It took longer than its time limit.
  Lost,         ///< Nobody knows how it ended, or its GPU dropped out: not the task's fault.
  Preempted,    ///< Interrupted because the machine's memory ran short: not its fault either.
  /// Somebody wants its GPU back, or its machine is taken away and it goes on where it was: as
  /// often as that happens, it costs no try.
  Cleared,
  /// The machine was short of what starting a process needs: as often as that happens, it costs no
  /// try.
  StartRefused,
  Final,  ///< Ended by a person, at its hard limit, with its group or with the run.
};

/// How often each of them has happened to a task.
struct Tries {
  std::uint8_t load_out_of_memory = 0;
  std::uint8_t train_out_of_memory = 0;
  std::uint8_t failed = 0;  ///< With those at the time limit, where these are tried again.
  std::uint8_t lost = 0;
  std::uint8_t preempted = 0;
  std::uint8_t crowded = 0;
  std::uint8_t cleared = 0;

  /// One more. Stays at 255.
  void count(Setback setback, Stage stage);
  /// Those that are about memory, by which a resumed run goes on.
  [[nodiscard]] model::MemoryTries of_memory() const;
};

/// The tries with which a task of a resumed run begins: those that it had come to, but one is left
/// whatever they are, as somebody has asked for the run to go on. What has nothing to do with
/// memory is counted anew.
Tries tries_after_resume(const model::MemoryTries& before, const model::Terms& terms,
                         const model::Policy& policy);

/// No count of more tries is larger: a task is tried 255 times at most for one cause, whatever its
/// terms say, and that is as far as Tries count.
constexpr int kRetriesMax = 254;

/// So often a task is tried again after what was not its fault, whatever its terms say.
constexpr int kFaultlessTriesMax = 5;

/// No task waits longer for another try.
constexpr Duration kRetryDelayMax{3'600'000};

struct AnotherTry {
  Duration delay{0};
  int number = 2;  ///< The try that comes, with the first; to_text() counts retries.
  int most = 2;    ///< 0: there is no end of them.

  friend bool operator==(const AnotherTry&, const AnotherTry&) = default;
};

/// `tries` has this setback counted. Nothing: it is not tried again.
std::optional<AnotherTry> another_try(Setback setback, Stage stage, const Tries& tries,
                                      const model::Terms& terms, const model::Policy& policy);

/// How many tries a stage has in all when memory runs out: fedflow `scheduler.load-nretry` and
/// `scheduler.train-nretry`, unless the task's own `oom-retries` says how many more.
int memory_tries_max(Stage stage, const model::Terms& terms, const model::Policy& policy);

/// Whether a task is not tried again that runs out of the memory of a GPU by itself.
bool ends_without_gpu_memory(const model::Terms& terms, const model::Policy& policy);

/// How long the retry of a failed attempt waits: from `delay` to one and a half of it, so that
/// tasks that failed together are not retried together. Depends on task and attempt alone, so that
/// a run that is played again waits as long.
Duration drawn_delay(Duration delay, model::AttemptKey failed);

/// The same for a task without a delay: from 0 s to kRetrySpread.
Duration spread_delay(model::AttemptKey failed);

/// Retries without a delay of tasks that failed within this time are spread over as much.
constexpr Duration kRetrySpread{1'000};

/// "0.3 s", "30 s", "2m", "1m30s", "1h13m".
std::string delay_text(Duration delay);

/// "retry 1 of 2", "retry 1 of 2 in 30 s": the first try is not counted.
std::string to_text(const AnotherTry& next);

}  // namespace trainyard::schedule
