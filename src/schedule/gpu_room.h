// The room that could be reserved on each GPU, and the choice of GPUs for a request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/site_wish.h"

namespace trainyard::schedule {

/// The tasks that share a GPU, as far as their terms limit that: their number, their use of it
/// together, and the number of tasks that each accepts. A small value that is copied with its GPU.
class Sharers {
 public:
  void add(const model::GpuSharing& task);
  /// The task must have been added.
  void remove(const model::GpuSharing& task);

  /// Whether another task may be there: no task is crowded more than it may be, and together they
  /// use no more than `utilization_max`, in thousandths. A task that is alone may use any part.
  [[nodiscard]] bool admit(const model::GpuSharing& task, int utilization_max) const;

  [[nodiscard]] int tasks() const { return tasks_; }
  /// Sum of the `gpu-utilization` of the tasks that have the key, in thousandths.
  [[nodiscard]] int utilization() const { return utilization_; }
  /// The smallest number of tasks that one of them lets be there; 0: any number.
  [[nodiscard]] int tasks_max() const;

 private:
  int tasks_ = 0;
  int utilization_ = 0;
  /// Number of tasks that set each maximum; 0 is not counted.
  std::array<std::uint16_t, model::kMaxPerGpuMost + 1> say_{};
};

/// The GPUs of one task, in order.
using GpuSet = std::vector<model::GpuIndex>;

/// The available room of one GPU.
struct GpuRoom {
  bool present = true;
  /// Negative when more is in use than should be. Memory of a task that has the GPU for itself
  /// counts as taken.
  Bytes free;
  int holders = 0;       ///< Tasks that hold a part of it.
  bool whole = false;    ///< It is the holder's own.
  Bytes of_others;       ///< In use by processes that are not ours.
  bool avoided = false;  ///< A process of another user computes there, so it is not used.
  Sharers sharers;       ///< The running ones of the holders.
  bool ours = false;     ///< A task of a run of our user is there, of this run or of another.
};

/// Whether no task runs on it, and processes other than tasks have next to nothing of it. Memory of
/// an ended task that the driver still shows does not make it busy.
bool is_idle(const GpuRoom& room);

/// The memory that the limits keep free on a GPU: the larger of remain-limit.cuda-memory and the
/// memory beyond utilization-limit.cuda-memory (fedflow `Scheduler`).
Bytes memory_kept_free(const model::Policy& policy, const model::Gpu& gpu);

/// Whether nothing is known of it yet: the driver counts it, and it has not answered so far.
bool is_unknown(const model::Gpu& gpu);
/// The assumed memory of such a GPU.
constexpr Bytes kUnknownGpuMemory = gb(1'000'000);

/// The GPUs of a machine, and the order in which they are taken. Immutable.
class GpuChooser {
 public:
  GpuChooser(const model::Policy& policy, const model::Capacity& capacity,
             model::MachineIndex machine = {});

  /// The GPUs that a request gets from this room, in their order; nothing when too few fit. Empty
  /// for a request that wants none. Up to `idle_max` of them are idle GPUs, where there are such
  /// with room, before any that has tasks; a request for whole GPUs takes no notice of it. Costs
  /// O(GPUs log GPUs).
  [[nodiscard]] std::optional<GpuSet> choose(std::span<const GpuRoom> room,
                                             const model::Request& request,
                                             std::size_t idle_max = 0) const;

  /// Whether some GPU is suitable; true if any is.
  [[nodiscard]] bool has_a(const model::SiteWish& where) const;
  /// Number of GPUs that could be one of its own, whatever is on them.
  [[nodiscard]] std::size_t count_for(const model::Request& request) const;

  /// Whether all of these GPUs have room for it.
  [[nodiscard]] bool fits_on(std::span<const GpuRoom> room, const model::Request& request,
                             const GpuSet& gpus) const;

  /// The room of each GPU with nothing on it; less for those that are gone.
  [[nodiscard]] std::vector<GpuRoom> empty(std::span<const GpuRoom> now) const;

  /// The part of a GPU that the tasks sharing it may use, in thousandths.
  [[nodiscard]] int utilization_max() const { return utilization_max_; }

  /// The most that a request could have on each of its GPUs, with nothing on them.
  [[nodiscard]] Bytes most_memory(const model::Request& request) const;
  /// The same for the GPUs in this room.
  [[nodiscard]] Bytes most_memory(std::span<const GpuRoom> room,
                                  const model::Request& request) const;

  /// For a request that wants the largest GPUs, the whole memory of the smallest that it may have;
  /// 0 for any other.
  [[nodiscard]] Bytes least_total(std::span<const GpuRoom> room,
                                  const model::Request& request) const;

 private:
  struct Card {
    Bytes most;   ///< Its memory less the memory kept free.
    Bytes least;  ///< Free memory that it needs to be given as a whole.
    Bytes total;
    std::int64_t speed = 0;
    std::size_t place = 0;  ///< Position on the bus.
    std::string name;
    bool slice = false;
    bool late = false;
  };

  /// Whether it could be one of its GPUs, whatever is on them.
  [[nodiscard]] bool suits(std::size_t index, const model::Request& request) const;

  [[nodiscard]] bool fits(std::span<const GpuRoom> rooms, model::GpuIndex gpu,
                          const model::Request& request) const;
  [[nodiscard]] bool before(std::span<const GpuRoom> room, model::GpuIndex a, model::GpuIndex b,
                            bool whole) const;

  model::MachineIndex machine_;
  std::vector<Card> cards_;
  int utilization_max_;  ///< Of each GPU, in thousandths.
  model::GpuStrategy strategy_;
  bool reverse_;
};

/// Takes the allocation of a request out of the room, or gives it back.
void take(std::vector<GpuRoom>& room, const model::Request& request, const GpuSet& gpus);

/// The tasks in their first allocation on a GPU, and the tasks that wait for that: of tasks that
/// share a tight GPU no two allocate at once. A framework's need is not known before it has started,
/// and two that see the same free memory both take it.
///
/// A new one is made for each look at the waiting tasks. Pure.
class StartupGate {
 public:
  explicit StartupGate(std::size_t gpus) : cards_(gpus) {}

  /// A task has `each` reserved on these GPUs and has not taken it. After `until` no task waits for
  /// it any more.
  void begins(const GpuSet& gpus, Bytes each, Instant until);

  /// The room without those GPUs on which a request would have to wait: if it or a task that begins
  /// there took twice its reservation, there would not be enough.
  [[nodiscard]] std::vector<GpuRoom> open(std::span<const GpuRoom> room,
                                          const model::Request& request) const;

  /// When the first of the beginning tasks is waited for no longer; nothing when none begins.
  [[nodiscard]] std::optional<Instant> opens_at() const { return opens_at_; }

 private:
  std::vector<Bytes> cards_;  ///< The largest reservation of a task that begins there; 0: none
                              ///< does.
  std::optional<Instant> opens_at_;
};

}  // namespace trainyard::schedule
