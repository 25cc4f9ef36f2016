// How fast tasks go beside others on their GPU, by what was measured: what sharing costs.
//
// A GPU that k tasks share does k times the work of one of them beside k - 1 others. More of them
// are let onto one as long as that rises. What nobody has measured forbids nothing.
//
// Measured is how long a task of a shape takes with so many on its GPU: one that ended well and
// spent nearly all of its time so, or what it said of its progress while nobody came or went. It
// does not matter of which shape the others are. Pure; costs nothing where no GPU is shared.
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
  /// What the work per hour must gain by one more task, in thousandths: less is no gain.
  static constexpr int kGainLeast = 20;

  /// A task begins to work on the GPUs of a site, which are not none. Those that are there go on
  /// beside it.
  void began(model::TaskIndex task, model::ShapeIndex shape, const model::Site& site, Instant at);
  /// How far one has come, 0 to 1. Nothing of one that is not here, or that said more before.
  void progressed(model::TaskIndex task, double fraction, Instant at);
  /// It has left its GPUs. Nothing for one that is not here.
  void ended(model::TaskIndex task, bool well, Instant at);

  /// What k tasks to a GPU come to.
  struct Gain {
    int to_a_gpu = 0;
    double factor = 0;  ///< Times the work of one to a GPU.
    int tasks = 0;      ///< That were measured so.

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

  /// The shapes of which something was measured since this was asked for last.
  std::vector<model::ShapeIndex> take_news();

 private:
  static constexpr std::size_t kNumbers = model::kMaxPerGpuMost + 1;

  /// How long those take that were measured with one number beside each other.
  struct Times {
    std::vector<Duration> last;
    std::size_t next = 0;
    int tasks = 0;

    void add(Duration time);
    [[nodiscard]] std::optional<Duration> median() const;
  };
  /// What a task did while the number of those on its GPU stayed the same.
  struct Stretch {
    Instant since;
    std::optional<Instant> first_word;  ///< When it said first how far it had come.
    Instant last_word;
    double first_fraction = 0;
  };
  struct AtWork {
    model::ShapeIndex shape;
    model::Site site;
    Instant since;
    std::size_t together = 1;  ///< As many are on its fullest GPU.
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
