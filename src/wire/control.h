// Requests of a user's command to an active run, and the replies. Plain values and their
// fields; no sockets, no state, any thread. The frame's sequence says which request a reply is for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace trainyard::wire {

/// Asks whether the yard responds. Answered by Done.
struct Ping {
  friend bool operator==(const Ping&, const Ping&) = default;
};

/// Kills this task.
struct Kill {
  std::string group;
  std::string id;
  friend bool operator==(const Kill&, const Kill&) = default;
};

/// Retries this task, which has ended without success. 0: as it was.
struct Retry {
  std::string group;
  std::string id;
  std::int64_t memory_bytes = 0;      ///< Least request of host memory,
  std::int64_t gpu_memory_bytes = 0;  ///< and of memory on each GPU, unless it has whole GPUs.
  std::int64_t time_limit_ms = 0;     ///< Time limit of an attempt.
  friend bool operator==(const Retry&, const Retry&) = default;
};

/// Keeps this task from starting, or lets it start again.
struct Hold {
  std::string group;
  std::string id;
  bool hold = true;
  friend bool operator==(const Hold&, const Hold&) = default;
};

/// Puts this task before those of a smaller priority, whenever it waits.
struct SetPriority {
  std::string group;
  std::string id;
  std::int32_t priority = 0;
  friend bool operator==(const SetPriority&, const SetPriority&) = default;
};

/// Adds a job file to the run. Answered when it is in the journal, with what was added.
struct Submit {
  std::string job_file;               ///< Absolute path.
  std::string current_directory;      ///< Absolute; relative paths on the command line begin there.
  std::vector<std::string> settings;  ///< Each --set, in order.
  std::string command_line;           ///< Without secrets.
  std::string job_text;
  std::vector<std::string> environment;  ///< NAME=value, as the submitting command has it.
  /// The option behind each line of the job text of a command, which mistakes name; else empty.
  std::vector<std::string> line_names = {};
  friend bool operator==(const Submit&, const Submit&) = default;
};

using ControlRequest = std::variant<Ping, Kill, Retry, Hold, SetPriority, Submit>;

enum class Outcome : std::uint8_t {
  Done,
  NotRunning,  ///< The task exists, but there is nothing to kill, to retry, or to hold.
  NoSuchTask,
  Error,  ///< The request was not understood, or could not be carried out.
};

std::string_view to_text(Outcome outcome);

struct ControlReply {
  Outcome outcome = Outcome::Done;
  std::string text;                                    ///< For people; may be empty.
  std::optional<std::uint32_t> number = std::nullopt;  ///< Number of the submission.

  friend bool operator==(const ControlReply&, const ControlReply&) = default;
};

/// To and from the fields of a frame, and of a Submit the buffers: its text, and its environment
/// with a NUL after each entry. Members that nobody knows are skipped; an error says which member
/// is wrong. Of a reply's text at most 16,000 bytes are sent.
std::string to_fields(const ControlRequest& request);
std::vector<std::string> to_buffers(const ControlRequest& request);
std::string to_fields(const ControlReply& reply);
Result<ControlRequest> read_request(std::string_view fields,
                                    std::span<const std::string> buffers = {});
Result<ControlReply> read_reply(std::string_view fields);

/// The fields of a frame of kind Failure, and what they say.
std::string failure_fields(std::string_view why);
std::string read_failure(std::string_view fields);

}  // namespace trainyard::wire
