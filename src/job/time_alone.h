// How long a task that shared its GPUs would have taken alone on them, by who was there when. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace trainyard::job {

/// A task on its GPUs, which have the driver's numbers: "0,2".
struct StayOnGpus {
  std::string_view gpus;
  Instant from;
  Instant until;
};

class TimeAlone {
 public:
  /// All that were on GPUs are added before anything is asked.
  void add(const StayOnGpus& stay);

  /// What one of them would have taken alone, where tasks that share a GPU do `factor` times the
  /// work of one, however many they are: 1 where sharing gains nothing. Never more than it took.
  [[nodiscard]] Duration of(const StayOnGpus& stay, double factor);

 private:
  /// When somebody came to a GPU (1) or left it (-1); after sorting, how many are there from then.
  using Presence = std::vector<std::pair<Instant, int>>;

  void sort();

  std::map<std::string, Presence, std::less<>> on_gpu_;
  bool sorted_ = false;
};

}  // namespace trainyard::job
