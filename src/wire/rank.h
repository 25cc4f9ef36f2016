// Words between a group of ranks and its parent, once a rank has said hello.
//
// A rank has two channels. On its first the parent requests (make your components, execute a task,
// close) and the rank replies, one at a time. The second, which comes as a descriptor with the
// first request, carries what cannot wait for that: events both ways, and the order to stop. A
// request and its reply have the same sequence number.
//
// Plain values and their fields; JSON is text here. No sockets, no state, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "wire/frame.h"

namespace trainyard::wire {

/// Values, headers, the data of events and properties nest no deeper than this: what holds them in
/// the fields of a frame comes on top (wire/result_text.h, kJsonDepthMax).
constexpr int kValueLevelsMax = 60;

/// So many events may be fired in reaction to each other: more are a cycle.
constexpr int kEventDepthMax = 20;

/// Limits of both channels of a rank.
constexpr FrameLimits kRankLimits{.fields_bytes_max = std::size_t{1} << 20,
                                  .buffers_max = 1024,
                                  .buffers_bytes_max = std::size_t{64} << 20,
                                  .shared_max = 1024};

/// A buffer of a payload. Those that are shared are the shared buffers of the frame in their order,
/// the others its raw ones.
struct NamedBuffer {
  std::string name;
  std::string dtype;  ///< "float32"
  std::vector<std::int64_t> shape;
  bool shared = false;

  friend bool operator==(const NamedBuffer&, const NamedBuffer&) = default;
};

/// The content of a Shareable. The texts are JSON objects, or empty for one without members.
struct Payload {
  std::string headers;
  std::string cookies;
  std::string values;
  std::vector<NamedBuffer> buffers;

  friend bool operator==(const Payload&, const Payload&) = default;
};

/// How something went: a return code by its name, and why for people.
struct RankOutcome {
  std::string code = "ok";
  std::string message;
  std::string traceback;

  friend bool operator==(const RankOutcome&, const RankOutcome&) = default;
};

/// Contexts travel as what changed: {"set": {name: [value, flags]}, "remove": [name]} as JSON text,
/// or empty for no change.

struct InitialiseRequest {
  std::string components;  ///< A JSON list of {"id", "type", "args"}.
  std::string executor;    ///< The id of one of them.
  int rank = 0;
  int ranks = 1;
  bool buffers_wanted = true;  ///< In the replies of this rank; without them it sends values alone.
  int event_ms = 30'000;       ///< How long it waits for the answer to an event.
  std::string context;

  friend bool operator==(const InitialiseRequest&, const InitialiseRequest&) = default;
};
struct ExecuteRequest {
  std::string task;
  Payload payload;
  std::string context;

  friend bool operator==(const ExecuteRequest&, const ExecuteRequest&) = default;
};
struct CloseRequest {
  friend bool operator==(const CloseRequest&, const CloseRequest&) = default;
};
using RankRequest = std::variant<InitialiseRequest, ExecuteRequest, CloseRequest>;

/// To both of the first.
struct RankReply {
  RankOutcome outcome;
  std::vector<std::string> listens;  ///< To which events; "*" is all. After initialising.
  Payload payload;                   ///< After executing.
  std::string context;               ///< Changes by the rank.

  friend bool operator==(const RankReply&, const RankReply&) = default;
};

/// Returns whether a listener to these events receives the event.
bool hears(const std::vector<std::string>& listens, std::string_view event);

/// An event, in either direction.
struct EventWord {
  std::string name;
  std::string data;  ///< Any JSON; empty for null.
  std::string context;
  int depth = 0;                 ///< How many events led to it, one in reaction to the other.
  std::optional<int> from_rank;  ///< Downwards: where it was fired, if it was in a rank.
  bool to_group = false;         ///< Upwards: the other ranks receive it, too.

  friend bool operator==(const EventWord&, const EventWord&) = default;
};
/// The answer to an event, with its sequence: all listeners there have received it.
struct EventDone {
  std::vector<std::string> errors;  ///< Exceptions of its listeners.
  std::string context;

  friend bool operator==(const EventDone&, const EventDone&) = default;
};
/// From the parent: what runs is to end soon.
struct StopWord {
  std::string reason;

  friend bool operator==(const StopWord&, const StopWord&) = default;
};
using RankWord = std::variant<EventWord, EventDone, StopWord>;

/// To and from the fields of a frame. Members that nobody knows are skipped. An error says which
/// member is wrong.
std::string to_fields(const RankRequest& request);
std::string to_fields(const RankReply& reply);
std::string to_fields(const RankWord& word);
Result<RankRequest> read_rank_request(std::string_view fields);
Result<RankReply> read_rank_reply(std::string_view fields);
Result<RankWord> read_rank_word(std::string_view fields);

}  // namespace trainyard::wire
