// What tasks were seen to need, and what the next ones of their kind are promised by that.
//
// Of finished tasks the 95th percentile of their peaks counts, and a margin; never less than what
// one that still runs has taken already. Of a GPU that tasks share the middle one counts: who takes
// more is beside others that take less, and has what it took reserved from then on. Pure; costs
// nothing where nothing was seen.
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

  /// A task of a shape has ended well. What nobody saw (0) does not count.
  void finished(model::ShapeIndex shape, const Peak& peak);

  /// One that runs has had so much by now; nothing (0): it has begun, or runs no more. `told` is
  /// what was said of it before, nothing at first.
  void unfinished(model::ShapeIndex shape, const Peak& told, const Peak& now);

  /// A task of a group has ended well for which somebody wrote what it would need of a GPU.
  void took_of_gpu(model::GroupIndex group, Bytes written, Bytes peak);
  /// What one of this group will need of a GPU for which so much is written: as many times that as
  /// those took which have ended, if that is more.
  [[nodiscard]] Bytes gpu_memory_by_ratio(model::GroupIndex group, Bytes written) const;

  /// What the next one will need, with a margin; 0 where nothing is known of it.
  [[nodiscard]] Peak needed(model::ShapeIndex shape) const;
  /// What one that shares a GPU will usually need of it, with a margin; 0 where nothing is known.
  [[nodiscard]] Bytes usual_gpu_memory(model::ShapeIndex shape) const;
  /// Number of finished tasks of a shape whose memory was measured, on the host or on a GPU, among
  /// those that count.
  [[nodiscard]] std::size_t count_finished(model::ShapeIndex shape) const;
  /// What is known to be needed: the same without a margin, and also before one has finished.
  [[nodiscard]] Peak seen(model::ShapeIndex shape) const;

 private:
  /// The last peaks, in the order of their coming.
  struct Peaks {
    std::vector<Bytes> last;
    std::size_t next = 0;
    std::vector<Bytes> sorted;  ///< The same, the smallest first.
    Bytes percentile;
    Bytes middle;

    void add(Bytes peak);
    [[nodiscard]] Bytes with_margin(Bytes of) const;
  };
  /// What those have that run, each for itself: who ends takes its own away.
  using Unfinished = std::multiset<Bytes>;
  static Bytes most_of(const Unfinished& all) { return all.empty() ? Bytes{} : *all.rbegin(); }
  static void change(Unfinished& all, Bytes told, Bytes now);
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
