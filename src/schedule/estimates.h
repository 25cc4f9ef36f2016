// Measured needs of tasks, and the estimates for the next tasks of their kind.
//
// The estimate of finished tasks is the 95th percentile of their peaks, with a margin; never less
// than a running one has taken already. For a GPU that tasks share it is the median: a task that
// takes more is next to others that take less, and has what it took reserved from then on. Pure;
// costs nothing where nothing was measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "model/ids.h"

namespace trainyard::schedule {

/// The most that a task had at once.
struct Peak {
  Bytes memory;
  Bytes gpu_memory;  ///< On each of its GPUs.

  friend bool operator==(const Peak&, const Peak&) = default;
};

class Estimates {
 public:
  /// Number of finished tasks of a shape whose peaks count, the last ones.
  static constexpr std::size_t kPeaksMax = 256;

  /// A task of a shape has succeeded. A peak that was not measured (0) does not count.
  void finished(model::ShapeIndex shape, const Peak& peak);

  /// The present peak of a running task; nothing (0): it has begun, or no longer runs. `before` is
  /// the previous value of `now`, nothing at first.
  void unfinished(model::ShapeIndex shape, const Peak& before, const Peak& now);

  /// A task of a group has succeeded for which the user wrote its need of a GPU.
  void took_of_gpu(model::GroupIndex group, Bytes written, Bytes peak);
  /// The need of a GPU of a task of this group for which `written` bytes are written: as many times
  /// that as the finished ones took, if that is more.
  [[nodiscard]] Bytes gpu_memory_by_ratio(model::GroupIndex group, Bytes written) const;

  /// The need of the next task, with a margin; 0 where nothing is known of it.
  [[nodiscard]] Peak needed(model::ShapeIndex shape) const;
  /// The usual need of a task that shares a GPU, with a margin; 0 where nothing is known.
  [[nodiscard]] Bytes usual_gpu_memory(model::ShapeIndex shape) const;
  /// Number of finished tasks of a shape whose memory was measured, on the host or on a GPU, among
  /// those that count.
  [[nodiscard]] std::size_t count_finished(model::ShapeIndex shape) const;
  /// The known need: the same without a margin, and also before a task has finished.
  [[nodiscard]] Peak seen(model::ShapeIndex shape) const;

 private:
  /// The last peaks, in the order of their arrival.
  struct Peaks {
    std::vector<Bytes> last;
    std::size_t next = 0;
    std::vector<Bytes> sorted;  ///< The same, the smallest first.
    Bytes percentile;
    Bytes middle;

    void add(Bytes peak);
    [[nodiscard]] Bytes with_margin(Bytes of) const;
  };
  /// The peaks of running tasks, each for itself: a task that ends removes its own.
  using Unfinished = std::multiset<Bytes>;
  static Bytes most_of(const Unfinished& all) { return all.empty() ? Bytes{} : *all.rbegin(); }
  static void change(Unfinished& all, Bytes before, Bytes now);
  struct Known {
    Peaks memory;
    Peaks gpu_memory;
    Unfinished memory_now;
    Unfinished gpu_memory_now;
  };

  std::unordered_map<std::uint32_t, Known> known_;  ///< By shape.
  /// By group: what its last tasks took for each thousand bytes that were written.
  std::unordered_map<std::uint32_t, Peaks> ratios_;
};

}  // namespace trainyard::schedule
