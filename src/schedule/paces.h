// The measured speed of tasks next to others on their GPU: the cost of sharing.
//
// A GPU that k tasks share does k times the work of one of them next to k - 1 others. More tasks
// are let onto a GPU as long as that rises. A number of tasks that was not measured is not
// forbidden.
//
// Measured is the time of a task of a shape with a number of tasks on its GPU: of one that
// succeeded and spent nearly all of its time so, or by its reported progress while no task came or
// went. The shapes of the others do not matter. Pure; costs nothing where no GPU is shared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard::schedule {

class Paces {
 public:
  /// Number of tasks that must have been measured before they count.
  static constexpr std::size_t kTasksLeast = 3;
  /// For each shape and each number of tasks on a GPU, the last measured tasks count.
  static constexpr std::size_t kTasksMax = 64;
  /// The minimum gain of work per hour by one more task, in thousandths.
  static constexpr int kGainLeast = 20;

  /// A task begins to work on the GPUs of a site, which has at least one. The tasks there go on
  /// next to it.
  void began(model::TaskIndex task, model::ShapeIndex shape, const model::Site& site, Instant at);
  /// The progress of a task, 0 to 1. Ignored for a task that is not here, or that reported more
  /// before.
  void progressed(model::TaskIndex task, double fraction, Instant at);
  /// The task has left its GPUs. Ignored for a task that is not here.
  void ended(model::TaskIndex task, bool well, Instant at);

  /// The work of k tasks to a GPU.
  struct Gain {
    int to_a_gpu = 0;
    double factor = 0;  ///< Times the work of one to a GPU.
    int tasks = 0;      ///< Number of measured tasks.

    friend bool operator==(const Gain&, const Gain&) = default;
  };
  struct Price {
    /// Maximum number of tasks of the shape on a GPU; 0: no maximum is known.
    int to_a_gpu_max = 0;
    /// The number of tasks on a GPU that does the most work together, if one task alone was
    /// measured, too. It is one task if no measured number gains anything.
    std::optional<Gain> best;

    friend bool operator==(const Price&, const Price&) = default;
  };
  [[nodiscard]] Price price(model::ShapeIndex shape) const;

  /// The shapes of which something was measured since the last call.
  std::vector<model::ShapeIndex> take_news();

 private:
  static constexpr std::size_t kNumbers = model::kMaxPerGpuMost + 1;

  /// The times of tasks that were measured with one number of tasks on their GPU.
  struct Times {
    std::vector<Duration> last;
    std::size_t next = 0;
    int tasks = 0;

    void add(Duration time);
    [[nodiscard]] std::optional<Duration> median() const;
  };
  /// The progress of a task while the number of tasks on its GPU stayed the same.
  struct Stretch {
    Instant since;
    std::optional<Instant> first_word;  ///< The time of its first progress report.
    Instant last_word;
    double first_fraction = 0;
  };
  struct AtWork {
    model::ShapeIndex shape;
    model::Site site;
    Instant since;
    std::size_t together = 1;  ///< Number of tasks on its fullest GPU.
    double fraction = 0;
    Stretch stretch;
    std::array<Duration, kNumbers> spent{};
    std::array<bool, kNumbers> measured{};  ///< By its progress.
  };

  void look_at_all(Instant at);
  void close(AtWork& task, Instant at);
  void measure(AtWork& task, std::size_t together, Duration time);
  [[nodiscard]] std::size_t together_on(const model::Site& site) const;

  std::map<model::TaskIndex, AtWork> at_work_;
  std::map<std::pair<model::MachineIndex, model::GpuIndex>, std::size_t> on_gpu_;
  std::map<model::ShapeIndex, std::array<Times, kNumbers>> times_;
  std::vector<model::ShapeIndex> news_;
};

}  // namespace trainyard::schedule
