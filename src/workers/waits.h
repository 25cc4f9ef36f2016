// The lives of the workers of a parallel run and their waits for each other: the content of
// workers.json. The memory is limited, however long a run is: if there are too many waits,
// neighbours are joined, so that the rest covers all of the time; totals stay exact.
//
// Pure: one thread; callers pass the time.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "wire/parallel_record.h"

namespace trainyard::workers {

/// One wait that has ended.
struct Wait {
  wire::WaitKind kind = wire::WaitKind::Event;
  std::string name = {};
  std::vector<int> whom = {};
  Duration from{0};
  Duration to{0};
};

class Waits {
 public:
  /// Bounds for all workers together; each of a few workers has wire::kRecordWaitsMax, and
  /// kRecordTotalsMax.
  static constexpr std::size_t kAllMax = 32'768;
  static constexpr std::size_t kAllTotalsMax = 16'384;
  /// Waits for the same with less between them are one.
  static constexpr Duration kApart{2};

  /// When the run began.
  explicit Waits(Duration start) : start_(start) {}

  /// All of them, before anything else is said of one.
  void add(int node, std::vector<std::string> roles);
  void begins(int node, std::uint32_t life, Duration now);
  void comes(int node, Duration now);
  void ends(int node, const std::string& outcome, Duration now);
  /// Those that are too short, or of a worker that is not here, are left out.
  void waited(int node, const Wait& wait);

  [[nodiscard]] wire::ParallelRecord record(Duration now, bool ended) const;

 private:
  struct What {
    wire::WaitKind kind;
    std::string name;
    std::vector<int> whom;
    auto operator<=>(const What&) const = default;
  };
  struct Sum {
    std::int64_t waited_ms = 0;
    std::uint64_t count = 0;
  };
  struct OfWorker {
    wire::WorkerRecord record;
    std::map<What, Sum> totals;
  };
  [[nodiscard]] std::int64_t since_start(Duration at) const { return (at - start_).count(); }
  /// The share of each worker of `all`, between these two.
  [[nodiscard]] std::size_t part_of(std::size_t all, std::size_t most) const;
  void count(OfWorker& worker, const wire::WorkerWait& wait);
  static void join_neighbours(std::vector<wire::WorkerWait>& waits);

  Duration start_;
  std::map<int, OfWorker> workers_;
};

}  // namespace trainyard::workers
