// The terms of a task: its requests and rules as one value, the same for the job file, the library
// and the scheduler; and the requests that follow from them. Tasks of a group that have the same
// terms are one shape.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"
#include "model/resources.h"

namespace trainyard::model {

/// A signal that comes a while before any TERM, so that a task can save what it has.
struct EarlySignal {
  int number = 0;  ///< 0: none.
  Duration before{0};
  friend auto operator<=>(const EarlySignal&, const EarlySignal&) = default;
};

/// The limit on a shared GPU that is passed to a task, in a form that its framework understands.
enum class GpuMemoryLimit : std::uint8_t {
  None,  ///< Nothing.
  Soft,  ///< Its reservation, and the memory that was not reserved when it began.
  Hard,  ///< Its reservation; it is killed when it takes more.
};

constexpr std::string_view to_text(GpuMemoryLimit limit) {
  constexpr std::array<std::string_view, 3> kNames{"none", "soft", "hard"};
  return kNames.at(static_cast<std::size_t>(limit));
}

/// The condition on the outcomes of all that a task and its group need, for it to run.
enum class RunIf : std::uint8_t {
  Success,  ///< All of it has finished. It is skipped as soon as some never will.
  Failure,  ///< Some of it has not.
  Always,   ///< Whatever.
};

constexpr std::string_view to_text(RunIf condition) {
  constexpr std::array<std::string_view, 3> kNames{"success()", "failure()", "always()"};
  return kNames.at(static_cast<std::size_t>(condition));
}

/// How often a task is tried again. All are counts of *more* tries; what was not its fault (lost,
/// interrupted for memory) is in none of them.
struct Retries {
  int failures = 0;  ///< After an exit code, a signal, or when it could not start.
  /// After memory ran out, loading and training apart; nothing: as the settings say.
  std::optional<int> out_of_memory;
  bool after_time_limit = false;  ///< Reaching the time limit counts as a failure.
  Duration delay{
      0};  ///< Before the second try after a failure; doubled each time, at most an hour.

  friend auto operator<=>(const Retries&, const Retries&) = default;
};

struct Terms {
  Request request;
  Duration time_limit{0};  ///< Of one attempt, waiting for a device left out; 0 is none.
  /// The task loads first, says so, and waits for a device to train on. Else it trains from its
  /// start.
  bool two_phase = false;
  /// How many processes the task has; 0: one, that of its command. Of several none trains again
  /// when memory ran out, as the others wait for it: all of them start over.
  int ranks = 0;
  /// How many workers the process of its command starts; 0: it is no parallel run.
  int workers = 0;
  /// A task that takes more memory than it was promised is ended.
  bool memory_hard = false;
  GpuMemoryLimit gpu_memory_limit = GpuMemoryLimit::Soft;
  /// The larger goes first, of all that wait in the run.
  int priority = 0;
  RunIf run_if = RunIf::Success;
  /// It starts no earlier than so long after the run began, or its submission came.
  Duration start_after{0};
  /// The task may be interrupted, to be tried again, when the machine's memory runs short.
  bool preemptible = true;
  Retries retries;
  EarlySignal early_signal;  ///< Its time is under the time limit, where there is one.
  /// Another try goes on where one was interrupted, from what the task saves as it trains.
  bool checkpoints = false;
  Duration load_expected{0};   ///< How long loading is expected to take; 0: nobody knows.
  Duration train_expected{0};  ///< How long training is expected to take; 0: nobody knows.
  /// Nobody said how much memory of the host the task needs: that is to be learned, too.
  bool learns_memory = false;
  /// Its GPU memory is learned: until it is known, the task gets whole GPUs.
  bool learns_gpu_memory = false;
  /// The least that is reserved whatever is learned, as configured. 0: no minimum.
  Bytes memory_least;
  Bytes gpu_memory_least;

  friend auto operator<=>(const Terms&, const Terms&) = default;
};

/// How many workers a task may have.
constexpr int kWorkersMax = 1'024;

/// How many processes share what a task is given.
inline int processes_of(const Terms& terms) { return std::max({terms.ranks, terms.workers, 1}); }

/// Whether a task loses little when it is interrupted: it saves its state as it trains, or at a
/// signal.
inline bool goes_on_where_it_was(const Terms& terms) {
  return terms.checkpoints || terms.early_signal.number != 0;
}

/// The request of a task over all its life: a two-phase task knows only GPUs that were there when
/// its process began.
inline Request request_of(const Terms& terms) {
  Request request = terms.request;
  request.listed_only = terms.two_phase && request.gpus > 0;
  return request;
}

/// How much more memory a task reserves after it ran out of it: 20% more, or 50% more on a GPU.
constexpr Bytes more_memory(Bytes had) { return had + Bytes{had.count / 5}; }
constexpr Bytes more_gpu_memory(Bytes had) { return had + Bytes{had.count / 2}; }

}  // namespace trainyard::model
