// Words between the process of a two-phase task and the yard.
// Plain values and their fields; no sockets, no state, any thread.
//
// A report never fails for what it means: a word that nobody understands is one too
// (Said::Nonsense), and ends the task; of progress that makes no sense nothing is kept. A result is
// a file (wire/result_text.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/result.h"
#include "model/event.h"
#include "wire/frame.h"

namespace trainyard::wire {

/// Limits of the connection of a task.
constexpr FrameLimits kTaskLimits{.fields_bytes_max = std::size_t{128} << 10,
                                  .buffers_max = 1,
                                  .buffers_bytes_max = std::size_t{8} << 20,
                                  .shared_max = 1};

/// Limits of the connections of its helpers.
constexpr FrameLimits kHelperLimits{.fields_bytes_max = kTaskLimits.fields_bytes_max,
                                    .buffers_max = 0,
                                    .buffers_bytes_max = 0,
                                    .shared_max = 0};

/// Where it stands in its life.
struct StageWord {
  model::Said said = model::Said::Loading;
  std::string message;    ///< One line, for people; at most 4,000 bytes are sent.
  std::string traceback;  ///< Traceback of a failure; at most 64,000 bytes are sent, the last ones.
  /// With `loaded`: by whose words it will keep to what it may take of its GPUs, "torch 2.4.1"; at
  /// most 100 bytes. Empty: it will not.
  std::string capped_by;

  friend bool operator==(const StageWord&, const StageWord&) = default;
};

/// The values of progress are so long at most.
constexpr std::size_t kValuesBytesMax = 4'000;

/// How far it is.
struct Progress {
  std::optional<double> fraction;  ///< 0 to 1.
  std::string values;              ///< A JSON object, compact; empty when there is none.

  friend bool operator==(const Progress&, const Progress&) = default;
};

/// Joins two reports of progress, a later one over an earlier one: both are objects as
/// text, or nothing. Of what is too long together the later is kept.
std::string values_together(std::string_view earlier, const std::string& later);

/// For a handler in the program that runs the yard.
struct Message {
  std::string command;  ///< At most 1,000 bytes.
  std::string data;     ///< Any JSON, compact.
  /// The bytes that came with it, in the frame or in an arena, for as long as its frame lives.
  std::span<const std::byte> buffer;

  friend bool operator==(const Message& one, const Message& other) {
    return one.command == other.command && one.data == other.data &&
           std::ranges::equal(one.buffer, other.buffer);
  }
};

using TaskReport = std::variant<StageWord, Progress, Message>;

/// Train now. (A task that is to end gets SIGTERM.)
struct TrainOrder {
  std::string device;  ///< "cpu"
  /// Most memory that this process may take of each of its GPUs; 0: no limit is given.
  Bytes gpu_memory_max;
  bool again = false;  ///< It was given before: who speaks now has connected since.

  friend bool operator==(const TrainOrder&, const TrainOrder&) = default;
};

using TaskOrder = std::variant<TrainOrder>;

/// To and from the fields of a frame. Members that nobody knows are skipped. The only error of a
/// report is that its fields are no JSON object.
std::string to_fields(const TaskReport& report);
std::string to_fields(const TaskOrder& order);
Result<TaskReport> read_report(std::string_view fields);
Result<TaskOrder> read_order(std::string_view fields);

}  // namespace trainyard::wire
