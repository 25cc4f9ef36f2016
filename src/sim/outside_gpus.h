// The GPUs of a run as somebody sees them who reads every event and every decision: who was
// promised what of which, what the last reading said, what ended tasks have not given back. Written
// anew from the rules, as sim/outside.h is.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::sim {

/// What there is to give of one GPU.
struct SeenGpu {
  bool there = true;
  Bytes free;
  int users = 0;
  bool owned = false;  ///< By one task alone.
  Bytes others;        ///< In use by who is none of ours.
  bool left = false;   ///< To another user who computes there.
};

/// What somebody has on a GPU, or had.
struct SeenShare {
  GpuIndex gpu;
  Bytes promise;  ///< 0: it is its own.
  Bytes measured;

  [[nodiscard]] Bytes holds() const { return std::max(promise, measured); }
};

class OutsideGpus {
 public:
  OutsideGpus(const Limits& limits, const Capacity& capacity);

  void read(Instant at, const GpusSampled& reading);
  void promise(TaskIndex task, const std::vector<GpuIndex>& gpus, Bytes each);
  void change(TaskIndex task, Bytes each);
  void release(TaskIndex task, Instant at);
  void time_passes(Instant at);

  [[nodiscard]] std::vector<SeenGpu> now() const;
  /// Which GPUs a request has to get from these; nothing when there are too few.
  [[nodiscard]] std::optional<std::vector<GpuIndex>> right_ones(const std::vector<SeenGpu>& from,
                                                                const Request& request) const;
  [[nodiscard]] bool fits(const SeenGpu& gpu, GpuIndex which, const Request& request) const;
  [[nodiscard]] bool has_room_for(const Request& request) const {
    return right_ones(now(), request).has_value();
  }
  [[nodiscard]] const std::vector<SeenShare>& shares_of(TaskIndex task) const;
  [[nodiscard]] Bytes peak_of(TaskIndex task) const;
  /// The most that a request can have on each of its GPUs, ever and by the last reading.
  [[nodiscard]] Bytes most_on(const Request& request) const;
  [[nodiscard]] Bytes most_alone(const Request& request) const;
  /// Whether it fits on those that are there, or have not been gone for too long, when all is over.
  [[nodiscard]] bool may_ever_fit(const Request& request, Instant at) const;

  struct Left {
    SeenShare share;
    Instant until;
  };
  [[nodiscard]] const std::vector<Left>& left_behind() const { return left_; }

 private:
  [[nodiscard]] Bytes kept(GpuIndex gpu) const;
  [[nodiscard]] Bytes explained(GpuIndex gpu) const;
  [[nodiscard]] Bytes most_of(const std::vector<SeenGpu>& gpus, const Request& request) const;

  const Limits& limits_;
  const Capacity& capacity_;
  std::vector<GpuReading> last_;
  std::vector<Bytes> others_;
  std::vector<std::optional<Instant>> gone_;
  std::map<TaskIndex, std::vector<SeenShare>> shares_;
  std::map<TaskIndex, Bytes> peaks_;
  std::vector<Left> left_;
};

/// Takes what a request gets on these GPUs.
void take_from(std::vector<SeenGpu>& from, const Request& request,
               const std::vector<GpuIndex>& gpus);

}  // namespace trainyard::sim
