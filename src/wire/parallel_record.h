// The record of a parallel run in workers.json: the lives of its workers, and who waited for
// whom. Reports draw it. The file is in the directory of a task, so its content is not trusted:
// more than the limits is an error.
//
// All times are milliseconds since the run began. Plain values; no state, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trainyard::wire {

constexpr std::string_view kRecordName = "workers.json";
/// So large may such a file be, and so much may it hold of one worker.
constexpr std::size_t kRecordBytesMax = std::size_t{16} << 20;
constexpr std::size_t kRecordWorkersMax = 1'024;
constexpr std::size_t kRecordWaitsMax = 4'096;
constexpr std::size_t kRecordLivesMax = 64;
constexpr std::size_t kRecordTotalsMax = 256;
/// Number of workers named of those that one waits for.
constexpr std::size_t kRecordWhomMax = 8;

/// One process of a worker.
struct WorkerLife {
  std::uint32_t number = 1;
  std::int64_t from_ms = 0;
  std::optional<std::int64_t> came_ms = {};  ///< When it joined the run.
  std::optional<std::int64_t> to_ms = {};    ///< Nothing: it lives.
  std::string outcome = {};  ///< "finished", "ended" (it was), "failed", "lost" (it comes again).

  friend bool operator==(const WorkerLife&, const WorkerLife&) = default;
};

/// For what a worker waits.
enum class WaitKind : std::uint8_t {
  Barrier,  ///< At a barrier, for those that had not come.
  Ready,    ///< Until others listened.
  Room,     ///< For room in the queue of one that reads more slowly.
  Event,    ///< For an event, in an exchange or by its name.
};
std::string_view to_text(WaitKind kind);

/// One wait, or several that are joined.
struct WorkerWait {
  WaitKind kind = WaitKind::Event;
  std::string name = {};       ///< Name of the barrier or the event.
  std::vector<int> whom = {};  ///< The last of those that were waited for; none: nobody knows.
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
  std::int64_t waited_ms = 0;  ///< Time waited between these two.
  std::uint64_t count = 1;

  friend bool operator==(const WorkerWait&, const WorkerWait&) = default;
};

/// How long a worker has waited for the same, in all.
struct WaitTotal {
  WaitKind kind = WaitKind::Event;
  std::string name = {};
  std::vector<int> whom = {};
  std::int64_t waited_ms = 0;
  std::uint64_t count = 0;

  friend bool operator==(const WaitTotal&, const WaitTotal&) = default;
};

struct WorkerRecord {
  int node = 0;
  std::vector<std::string> roles = {};
  std::vector<WorkerLife> lives = {};
  std::vector<WorkerWait> waits = {};  ///< In the order in which they ended.
  std::vector<WaitTotal> totals = {};
  std::uint64_t lives_left_out = 0;   ///< The first ones.
  std::int64_t waited_beside_ms = 0;  ///< For what is in no total, as there are too many.

  friend bool operator==(const WorkerRecord&, const WorkerRecord&) = default;
};

struct ParallelRecord {
  std::int64_t span_ms = 0;  ///< Until it ended, or until its last message.
  bool ended = false;
  std::vector<WorkerRecord> workers = {};

  friend bool operator==(const ParallelRecord&, const ParallelRecord&) = default;
};

std::string to_text(const ParallelRecord& record);
/// Members that nobody knows are skipped. An error says which is wrong.
Result<ParallelRecord> read_parallel_record(std::string_view text);

}  // namespace trainyard::wire
