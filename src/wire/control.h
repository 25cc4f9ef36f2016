// What a person's command may ask of a yard at work, and what it answers. Plain values and their
// fields; no sockets, no state, any thread. The frame's sequence says which request a reply is for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace trainyard::wire {

/// Are you there? Answered by Done.
struct Ping {
  friend bool operator==(const Ping&, const Ping&) = default;
};

/// End this task.
struct Kill {
  std::string group;
  std::string id;
  friend bool operator==(const Kill&, const Kill&) = default;
};

using ControlRequest = std::variant<Ping, Kill>;

enum class Outcome : std::uint8_t {
  Done,
  NotRunning,  ///< The task is there, but there is nothing to end.
  NoSuchTask,
  Error,  ///< The request was not understood, or could not be carried out.
};

std::string_view to_text(Outcome outcome);

struct ControlReply {
  Outcome outcome = Outcome::Done;
  std::string text;  ///< For people; may be empty.

  friend bool operator==(const ControlReply&, const ControlReply&) = default;
};

/// To and from the fields of a frame. Members that nobody knows are skipped; an error says which
/// member is wrong. Of a reply's text at most 1,000 bytes are sent.
std::string to_fields(const ControlRequest& request);
std::string to_fields(const ControlReply& reply);
Result<ControlRequest> read_request(std::string_view fields);
Result<ControlReply> read_reply(std::string_view fields);

/// The fields of a frame of kind Failure, and what they say.
std::string failure_fields(std::string_view why);
std::string read_failure(std::string_view fields);

}  // namespace trainyard::wire
