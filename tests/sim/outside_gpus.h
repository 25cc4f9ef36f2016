// The GPUs of a run as seen by a reader of every event and every decision: the promises on each,
// the last reading, and the memory that ended tasks have not given back. Written anew from the
// rules, as sim/outside.h is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::sim {

/// The room on one GPU.
struct SeenGpu {
  bool there = true;
  Bytes free;
  int users = 0;
  bool owned = false;                      ///< By one task alone.
  Bytes others;                            ///< In use by processes that are not ours.
  bool left = false;                       ///< To another user who computes there.
  std::vector<model::GpuSharing> sharing;  ///< The sharing terms of the tasks that run there.
};

/// The share of a task on a GPU, present or past.
struct SeenShare {
  model::GpuIndex gpu;
  Bytes promise;  ///< 0: it is its own.
  model::GpuSharing sharing;
  Bytes measured;
  Bytes strangers;                    ///< Their least memory there since it was promised.
  std::optional<Instant> unanswered;  ///< The last time without an answer since it was promised.

  [[nodiscard]] Bytes holds() const { return std::max(promise, measured); }
};

/// The order of GPUs without a task among those on which a request fits.
enum class IdleGpus : std::uint8_t {
  LikeOthers,
  First,  ///< Before the others, as far as the user's share of the GPUs goes.
};

class OutsideGpus {
 public:
  OutsideGpus(const model::Policy& policy, const model::Capacity& capacity);

  void read(Instant at, const model::GpusSampled& reading);
  void promise(model::TaskIndex task, const std::vector<model::GpuIndex>& gpus,
               const model::Request& request);
  void change(model::TaskIndex task, Bytes each);
  void release(model::TaskIndex task, Instant at);
  /// It has all that it takes when it begins.
  void settle(model::TaskIndex task) { settled_.insert(task); }
  [[nodiscard]] bool has_settled(model::TaskIndex task) const { return settled_.contains(task); }
  void time_passes(Instant at);

  [[nodiscard]] std::vector<SeenGpu> now() const;
  /// The GPUs that a request has to get from these; nothing when there are too few.
  [[nodiscard]] std::optional<std::vector<model::GpuIndex>> right_ones(
      const std::vector<SeenGpu>& from, const model::Request& request,
      IdleGpus idle = IdleGpus::LikeOthers) const;
  [[nodiscard]] bool fits(const SeenGpu& gpu, model::GpuIndex which,
                          const model::Request& request) const;
  [[nodiscard]] bool has_room_for(const model::Request& request) const {
    return right_ones(now(), request).has_value();
  }
  [[nodiscard]] const std::vector<SeenShare>& shares_of(model::TaskIndex task) const;
  [[nodiscard]] Bytes peak_of(model::TaskIndex task) const;
  /// The one of its GPUs that did not answer in the last minute; of several the last.
  [[nodiscard]] std::optional<model::GpuIndex> lost_one(model::TaskIndex task, Instant at) const;
  /// Whether others have more of one of its GPUs than they were promised, or than strangers had
  /// when it got its own part.
  [[nodiscard]] bool is_crowded(model::TaskIndex task) const;
  /// Whether those who keep to their promises could not take these in full, with all that are there
  /// or but for one.
  [[nodiscard]] bool is_overfull(model::GpuIndex gpu,
                                 std::optional<model::TaskIndex> but_for = {}) const;
  /// Its memory on this GPU beyond its promise.
  [[nodiscard]] Bytes beyond(model::TaskIndex task, model::GpuIndex gpu) const;
  /// The number of readings in a row that have shown a GPU overfull.
  std::vector<int> overfull_readings;
  /// The most that a request can have on each of its GPUs, ever and by the last reading.
  [[nodiscard]] Bytes most_on(const model::Request& request) const;
  [[nodiscard]] Bytes most_alone(const model::Request& request) const;
  /// Whether it would fit now if no task were there.
  [[nodiscard]] bool would_fit_alone(const model::Request& request) const;
  /// The GPUs that are left to tasks that fit on no other: they have answered for the first quiet
  /// time, but not for a longer one.
  [[nodiscard]] const std::set<std::uint32_t>& last_resorts() const { return last_resorts_; }
  /// Whether it fits on those that are there, or have not been gone for too long, when all is over.
  [[nodiscard]] bool may_ever_fit(const model::Request& request, Instant at) const;

  struct Left {
    SeenShare share;
    Instant until;
  };
  [[nodiscard]] const std::vector<Left>& left_behind() const { return left_; }

 private:
  [[nodiscard]] std::size_t share_left() const;
  [[nodiscard]] bool may_be_shared(const SeenGpu& gpu, const model::GpuSharing& with) const;
  void note_absence(std::size_t index, Instant at);
  /// The time for which it has to answer without a break until it is used again.
  [[nodiscard]] Duration quiet_time(std::size_t index) const;
  [[nodiscard]] Bytes kept(model::GpuIndex gpu) const;
  [[nodiscard]] Bytes explained(model::GpuIndex gpu) const;
  [[nodiscard]] std::vector<SeenGpu> without_tasks() const;
  [[nodiscard]] Bytes most_of(const std::vector<SeenGpu>& gpus,
                              const model::Request& request) const;

  const model::Policy& policy_;
  const model::Capacity& capacity_;
  std::vector<model::GpuReading> last_;
  std::vector<Bytes> others_;
  std::vector<std::optional<Instant>> gone_;  ///< Kept until they have answered for long enough.
  std::vector<int> drop_outs_;                ///< Number of times each stopped to answer.
  std::vector<std::optional<Instant>> back_;  ///< Since when they answer again.
  std::set<std::uint32_t> last_resorts_;
  std::map<model::TaskIndex, std::vector<SeenShare>> shares_;
  std::map<model::TaskIndex, Bytes> peaks_;
  std::set<model::TaskIndex> settled_;
  std::vector<Left> left_;
};

/// Takes what a request gets on these GPUs.
void take_from(std::vector<SeenGpu>& from, const model::Request& request,
               const std::vector<model::GpuIndex>& gpus);

}  // namespace trainyard::sim
