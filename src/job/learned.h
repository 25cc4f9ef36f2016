// Learned estimates of a job file: how much memory its tasks took, how long they loaded and
// trained, and from which run on which machine that is known. Kept in a JSON file next to the job
// file (docs/job-file.md#learned-estimates). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace trainyard::job {

/// A task on its GPUs, which have the driver's numbers: "0,2".
struct StayOnGpus {
  std::string_view gpus;
  Instant from;
  Instant until;
};

/// The measured work of tasks that share a GPU: `best` of them together do `factor` times the work
/// of one. 0: not known.
struct WorkTogether {
  int best = 0;
  double factor = 0;
};

/// The time that a task that shared its GPUs would have taken alone on them, from the times at which
/// others were there.
class TimeAlone {
 public:
  /// All stays on GPUs must be added before the first call of of().
  void add(const StayOnGpus& stay);

  /// The time that one of the tasks would have taken alone, within these two bounds except for
  /// rounding. For fewer tasks than the best number, the gain is interpolated linearly. More tasks
  /// than that do not do more work, and are assumed to do at least half the work of one. If nothing
  /// was measured, sharing is assumed to cost at least nothing and to gain at least nothing.
  struct Bounds {
    Duration least;
    Duration most;  ///< Never more than it took.

    friend bool operator==(const Bounds&, const Bounds&) = default;
  };
  [[nodiscard]] Bounds of(const StayOnGpus& stay, const WorkTogether& work);

 private:
  /// The times when a task came to a GPU (1) or left it (-1); after sorting, the number there from
  /// then.
  using Presence = std::vector<std::pair<Instant, int>>;

  void sort();

  std::map<std::string, Presence, std::less<>> on_gpu_;
  bool sorted_ = false;
};

/// The measurements of a finished task; 0 where there is none.
struct LearnedTask {
  Bytes memory;                  ///< Its peak.
  bool memory_at_least = false;  ///< `memory` is of its largest process alone.
  Bytes gpu_memory;              ///< Its peak on one of its GPUs.
  Duration load{0};
  /// Alone on its GPUs: for a task that shared them, corrected by the measured cost of sharing.
  Duration train{0};
  /// It shared them at an unknown cost: alone it takes at least this long, and at most `train`. 0:
  /// the time is known.
  Duration train_least{0};

  friend bool operator==(const LearnedTask&, const LearnedTask&) = default;
};

/// The source of a learned number. Empty: not known.
struct LearnedFrom {
  std::string run;  ///< Its directory, seen from that of the job file.
  std::int64_t started_unix_ms = 0;
  std::string host;
  std::string gpu;   ///< The model of the GPUs that the task had; empty: it had none.
  Bytes gpu_memory;  ///< The whole memory of one of them.

  friend auto operator<=>(const LearnedFrom&, const LearnedFrom&) = default;
};

/// The measured cost of sharing GPUs for the tasks of a group, as in model::SharingMeasured.
struct LearnedSharing {
  int to_a_gpu = 0;
  double factor = 0;
  int tasks = 0;
  int to_a_gpu_max = 0;
  LearnedFrom from;

  [[nodiscard]] WorkTogether together() const {
    if (to_a_gpu > 0) return {.best = to_a_gpu, .factor = factor};
    return to_a_gpu_max == 1 ? WorkTogether{.best = 1, .factor = 1} : WorkTogether{};
  }

  friend bool operator==(const LearnedSharing&, const LearnedSharing&) = default;
};

/// The machine on which learned estimates are to be used.
struct LearnedFor {
  std::string host;
  std::vector<std::string> gpus;  ///< The models that are here.
};

/// Whether durations measured on that machine hold here: on the same host, or on a GPU of the same
/// model. Also true if the host of the measurement is not known.
bool is_alike(const LearnedFrom& from, const LearnedFor& here);

/// "runs/digits-2 of 2026-11-21", and where that was another machine "on lab1, NVIDIA H100".
std::string to_text(const LearnedFrom& from, const LearnedFor& here);

/// A number that is expected of a task, and where it is known from: of several runs the last one.
template <class Value>
struct Expected {
  Value value{};
  LearnedFrom from;
  bool at_least = false;  ///< It may be more.

  friend bool operator==(const Expected&, const Expected&) = default;
};

/// The expected needs of a task; 0 where nothing is known.
struct ExpectedTask {
  Expected<Bytes> memory;
  Expected<Bytes> gpu_memory;
  Expected<Duration> load;
  Expected<Duration> train;
  bool beside_others =
      false;  ///< Tasks that shared GPUs alone have taught `train`: it may be less.
  /// No task with this command was measured: the memory may raise a reservation, not lower it.
  bool other_command = false;

  friend bool operator==(const ExpectedTask&, const ExpectedTask&) = default;
};

class Learned {
 public:
  /// No more tasks are remembered; of a larger job the first ones.
  static constexpr std::size_t kTasksMax = 20'000;

  /// Reads the text of to_json(). An error for anything else, also of another version: it is better
  /// to learn again than to believe it.
  static Result<Learned> parse(std::string_view json);
  [[nodiscard]] std::string to_json() const;

  /// Replaces the numbers of a task, except its GPU memory if that was not measured this time and
  /// the command is the same. `command`: its fingerprint (command_fingerprint()); 0: not known.
  void add(std::string_view group, std::string_view id, const LearnedTask& task,
           const LearnedFrom& from = {}, std::int64_t command = 0);

  /// The fingerprints of the commands that the tasks of a group have now. Numbers measured with
  /// other commands then count only where none was measured with these.
  void set_commands(std::string_view group, std::set<std::int64_t> commands);

  /// Sets the cost of sharing of a group with a known task. Deleted with its last task.
  void set_sharing(std::string_view group, const LearnedSharing& sharing);
  /// Nothing if it was not measured on a machine like this one.
  [[nodiscard]] std::optional<LearnedSharing> sharing(std::string_view group,
                                                      const LearnedFor& here) const;

  /// Returns the number of tasks: all, those of a group, or one of it.
  std::size_t forget();
  std::size_t forget(std::string_view group);
  std::size_t forget(std::string_view group, std::string_view id);

  [[nodiscard]] bool empty() const { return groups_.empty(); }
  /// Nothing more can be added that is not known already.
  [[nodiscard]] bool full() const { return tasks_ == kTasksMax; }
  [[nodiscard]] bool knows(std::string_view group) const { return groups_.contains(group); }

  /// The expected needs of a task. Memory is the 95th percentile of its group plus a tenth. Time is
  /// the average of the tasks that ran on a machine like this one and whose time alone is known; if
  /// there are none, the smallest. A task's own numbers count instead where they were clearly more
  /// or less (a tenth of memory, a fourth of time). They are rounded (coarsely in a large group),
  /// so that similar tasks stay similar. After set_commands(), `command` is that of the task, and
  /// its own numbers count if they were measured with it.
  [[nodiscard]] ExpectedTask expected(std::string_view group, std::string_view id,
                                      const LearnedFor& here, std::int64_t command = 0) const;

  /// The last measurements of a task, and where its GPU memory is known from.
  struct Taken {
    LearnedTask task;
    LearnedFrom from;
    LearnedFrom gpu_from;
    std::int64_t command = 0;  ///< See add().
  };
  [[nodiscard]] std::optional<Taken> taken(std::string_view group, std::string_view id) const;

  /// All of them, group by group, both in the order of their names.
  void each(const std::function<void(std::string_view group, std::string_view id, const Taken&)>&
                visit) const;

 private:
  struct Known {
    LearnedTask task;
    std::uint32_t from = 0;  ///< In sources_.
    std::uint32_t gpu_from = 0;
    std::int64_t command = 0;
  };
  /// The numbers of the tasks of a group together, without a margin.
  struct Usual {
    LearnedFor here;
    ExpectedTask expected;
    std::set<std::int64_t> commands;  ///< The commands that were measured.
  };
  struct Group {
    std::map<std::string, Known, std::less<>> tasks;
    std::set<std::int64_t> commands;  ///< The current commands; empty: not known, all numbers
                                      ///< count.
    std::optional<LearnedSharing> sharing;
    std::optional<Usual> usual;
  };
  std::uint32_t number_of(const LearnedFrom& from);
  const Usual& usual_of(Group& group, const LearnedFor& here) const;
  [[nodiscard]] Taken taken_by(const Known& known) const;

  /// Sums are computed at their first use.
  mutable std::map<std::string, Group, std::less<>> groups_;
  std::size_t tasks_ = 0;
  std::vector<LearnedFrom> sources_{LearnedFrom{}};
  std::map<LearnedFrom, std::uint32_t> numbers_{{LearnedFrom{}, 0}};
};

/// The path for a job file: <its directory>/.trainyard/<its name>.learned.json
std::string learned_path(std::string_view job_file);

/// The path of the learned estimates of a job of this name. For a job file that is not that of a
/// command, learned_path(job_file). The job file of a command is run::kept_job_path() of its run:
/// runs of commands of one name, in runs/tr, runs/tr-2, ..., share runs/.trainyard/tr.learned.json.
/// A run in a directory of another name (--run-dir) has a file of its own in that directory.
std::string learned_path(const std::string& job_file, std::string_view job_name);

}  // namespace trainyard::job
