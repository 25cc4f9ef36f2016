// Messages between the workers of a parallel run and its router, after the hello of a worker.
//
// An event is a frame of kind Event, of which the router reads only the prefix: its topic is the
// hash of its name, which its sender has announced; its origin is the sender; its sequence counts
// the events of that origin and topic, from 1. Its fields are the JSON that it carries. Its first
// buffer, if it has any, describes the types and shapes of the others.
//
// Other messages are Reports and Requests of a worker, and Orders and Replies of the router. Plain
// values and their fields; no sockets, no state, any thread.
#pragma once

#include <chrono>
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

/// The buffers of an event that are in its frame: so many bytes together, without the first one,
/// which says what the others are.
constexpr std::size_t kEventBuffersBytesMax = std::size_t{64} << 20;
constexpr std::size_t kShapeDimensionsMax = 32;
constexpr std::size_t kShapeBuffersMax = 64;
constexpr std::size_t kShapesBytesMax =
    kShapeBuffersMax * (2 + kShapeDimensionsMax * sizeof(std::int64_t));

/// Limits of the connection of a worker.
constexpr FrameLimits kWorkerLimits{.fields_bytes_max = std::size_t{8} << 20,
                                    .buffers_max = 64,
                                    .buffers_bytes_max = kEventBuffersBytesMax + kShapesBytesMax,
                                    .shared_max = kDescriptorsMax};
constexpr std::size_t kEventNameBytesMax = 256;
constexpr std::size_t kWorkerNameBytesMax = 64;
/// Bytes of the reason with which a worker ends: the rest is cut off, as others quote it in their
/// own words.
constexpr std::size_t kFinishWhyBytesMax = 16'000;

/// The number of a name, as everybody calculates it (FNV-1a of 64 bits).
std::uint64_t topic_of(std::string_view name);

/// Who sends: a node, and which life of it, so that the count of the next life is another one.
std::uint32_t origin_of(int node, std::uint32_t life);
int node_of(std::uint32_t origin);
constexpr int kNodesMax = 65'536;

/// Says why a role or a label of a worker cannot have this name; nothing where it can. The signs
/// between names, ',' and '+', are not allowed, nor are the labels that every pipeline has anyway.
std::optional<std::string> wrong_worker_name(std::string_view name);

// --- both ways ---

/// Before the first event of a topic goes over a connection.
struct TopicWord {
  std::string name;
  std::string type;  ///< The kind of its payload: "json", "buffer" or "bundle".

  friend bool operator==(const TopicWord&, const TopicWord&) = default;
};

// --- from a worker ---

/// From now on events of this name, or of names that match it as a pattern; and no more.
struct WantWord {
  std::string name;
  bool wanted = true;

  friend bool operator==(const WantWord&, const WantWord&) = default;
};
/// It listens to all that it wants from the beginning: what others send need not wait for it.
struct SettledWord {
  friend bool operator==(const SettledWord&, const SettledWord&) = default;
};
/// A pipeline begins to run. A process that exits before the FinishWord has failed, whatever its
/// exit code is.
struct BeginWord {
  friend bool operator==(const BeginWord&, const BeginWord&) = default;
};
/// Its work has ended. It wants no more events.
struct FinishWord {
  std::string outcome;  ///< "max steps", "finished", "stopped", "failed".
  std::string why;

  friend bool operator==(const FinishWord&, const FinishWord&) = default;
};
/// It has waited for an event, in an exchange or by its name, and waits no more.
struct WaitedWord {
  std::string name;
  std::int64_t ms = 0;
  std::optional<int> from = {};  ///< The worker whose event ended that; nothing: none came.

  friend bool operator==(const WaitedWord&, const WaitedWord&) = default;
};
/// Shorter waits are not worth a word.
constexpr std::chrono::milliseconds kWaitedLeast{1};
using WorkerReport =
    std::variant<TopicWord, WantWord, SettledWord, BeginWord, FinishWord, WaitedWord>;

/// Time that a worker waits for an answer beyond the deadline of its request, as the answer names
/// those that are missing.
constexpr std::chrono::milliseconds kAnswerPatience{2'000};

/// Answered when so many have settled.
struct ReadyRequest {
  int workers = 0;
  std::int64_t within_ms = 0;
  /// When it was asked, by the monotonic clock of the machine; nothing: when it came.
  std::optional<std::int64_t> asked_ms = {};

  friend bool operator==(const ReadyRequest&, const ReadyRequest&) = default;
};
/// Answered when all that are to come have come.
struct BarrierRequest {
  std::string name;                ///< Not empty.
  std::vector<std::string> roles;  ///< Workers with one of these wait for each other; empty: all.
  std::int64_t within_ms = 0;
  std::optional<std::int64_t> asked_ms = {};  ///< As in ReadyRequest.

  friend bool operator==(const BarrierRequest&, const BarrierRequest&) = default;
};
/// Answered at once: what the router knows.
struct StatusRequest {
  friend bool operator==(const StatusRequest&, const StatusRequest&) = default;
};
/// The request with this sequence is not waited for any more: its worker is not counted. Whatever
/// answers that is ignored.
struct WithdrawRequest {
  friend bool operator==(const WithdrawRequest&, const WithdrawRequest&) = default;
};
using WorkerRequest = std::variant<ReadyRequest, BarrierRequest, StatusRequest, WithdrawRequest>;

// --- from the router ---

/// To a request: well, or who is missing.
struct WorkerReply {
  std::string error;                 ///< Empty: it went well.
  std::vector<std::string> missing;  ///< "worker 2 (collector)"
  std::string status;                ///< JSON, of a StatusRequest.

  friend bool operator==(const WorkerReply&, const WorkerReply&) = default;
};

/// Another worker has come, or has gone.
struct PeerWord {
  int node = 0;
  std::string change;  ///< "settled", "finished", "lost" (it comes again), "failed".
  std::string outcome;
  std::string why;
  std::vector<std::string> roles;

  friend bool operator==(const PeerWord&, const PeerWord&) = default;
};
/// All known workers of the run and the topology, from which a worker derives its possible senders.
/// Sent when the worker joins, and whenever another machine brings more workers. Not sent to
/// machines.
struct RollWord {
  struct Worker {
    int node = 0;
    std::vector<std::string> roles;

    friend bool operator==(const Worker&, const Worker&) = default;
  };
  std::string topology;
  int hub = 0;  ///< The node in the middle of a star.
  std::vector<Worker> workers;
  int awaited = 0;  ///< Workers that no machine has brought yet.

  friend bool operator==(const RollWord&, const RollWord&) = default;
};
/// Events were lost: they were dropped on the way to the worker that receives this message, or are
/// events of this worker that were refused.
struct LostWord {
  std::string name;
  int node = 0;  ///< The worker that emitted them, or that did not get them.
  std::uint64_t count = 0;
  bool refused = false;
  std::string why = {};  ///< Reason of a refusal; empty: the queue was full.

  friend bool operator==(const LostWord&, const LostWord&) = default;
};
/// Orders the worker to end.
struct EndWord {
  std::string why;
  bool stopped = false;  ///< Somebody has stopped the run; otherwise something has failed.

  friend bool operator==(const EndWord&, const EndWord&) = default;
};
using WorkerOrder = std::variant<TopicWord, PeerWord, LostWord, EndWord, RollWord>;

/// To and from the fields of a frame. Members that nobody knows are skipped. An error says which
/// member is wrong.
std::string to_fields(const WorkerReport& report);
std::string to_fields(const WorkerRequest& request);
std::string to_fields(const WorkerReply& reply);
std::string to_fields(const WorkerOrder& order);
Result<WorkerReport> read_worker_report(std::string_view fields);
Result<WorkerRequest> read_worker_request(std::string_view fields);
Result<WorkerReply> read_worker_reply(std::string_view fields);
Result<WorkerOrder> read_worker_order(std::string_view fields);

/// Type and shape of a buffer of an event, as the first of its buffers describes them.
struct BufferShape {
  std::uint8_t dtype = 0;  ///< The place of its type in trainyard/buffer.h.
  bool shared = false;     ///< True: a shared buffer of the frame; false: a raw one.
  std::vector<std::int64_t> shape;

  friend bool operator==(const BufferShape&, const BufferShape&) = default;
};
std::string shapes_text(const std::vector<BufferShape>& shapes);
Result<std::vector<BufferShape>> read_shapes(std::string_view bytes);

}  // namespace trainyard::wire
