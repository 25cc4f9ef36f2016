// Frames: how messages go over a stream. A fixed binary prefix, then JSON fields as text, then raw
// buffers; docs/protocol.md has it byte by byte. A hub can pass a frame on by its prefix alone.
//
// Knows no sockets and does not look into the fields (wire/hello.h and wire/control.h do). A
// FrameReader belongs to one connection and one thread; the rest has no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trainyard::wire {

/// The version of prefix, hello and requests. Both ends must have the same.
constexpr std::uint8_t kProtocolVersion = 1;
constexpr std::size_t kPrefixBytes = 48;

enum class FrameKind : std::uint8_t {
  Hello = 1,    ///< The first frame of who connects.
  Welcome = 2,  ///< The answer to it, good or bad.
  Request = 3,
  Reply = 4,    ///< Has the sequence of its request.
  Failure = 5,  ///< Why the connection is about to be closed.
  Report = 6,   ///< A word of a task about itself (wire/task.h). Not answered.
  Order = 7,    ///< A word to a task. Not answered.
  Release = 8,  ///< A buffer in the arena `topic` is not read any more. Not answered.
  Event = 9,    ///< From one worker to those who want its topic (wire/worker.h). Not answered.
};

/// Flag of an Event, which workers get that want its topic later, too. No other frame has flags.
constexpr std::uint16_t kRetainedFlag = 1;

/// How many descriptors may come at once.
constexpr std::size_t kDescriptorsMax = 16;

/// A buffer that does not travel: it lies in memory that both ends have mapped (link/arena.h).
struct SharedBuffer {
  std::uint64_t arena = 0;  ///< A number of the sender's.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const SharedBuffer&, const SharedBuffer&) = default;
};

struct Frame {
  FrameKind kind = FrameKind::Request;
  std::uint16_t flags = 0;
  std::uint64_t topic = 0;     ///< 0: none. Control connections have none.
  std::uint32_t origin = 0;    ///< Who sent it, where there are many; 0 on control connections.
  std::uint64_t sequence = 0;  ///< Chosen by the sender of a request.
  std::string fields;          ///< A JSON object, or nothing.
  std::vector<std::string> buffers;  ///< Raw bytes.
  std::vector<SharedBuffer> shared;

  friend bool operator==(const Frame&, const Frame&) = default;
};

struct FrameLimits {
  std::size_t fields_bytes_max = std::size_t{1} << 20;
  std::size_t buffers_max = 64;
  std::size_t buffers_bytes_max = std::size_t{64} << 20;  ///< Bytes of all buffers of a frame.
  std::size_t shared_max = kDescriptorsMax;
};

/// Limits of connections that are not identified yet, and of those that only ask and answer.
constexpr FrameLimits kControlLimits{.fields_bytes_max = std::size_t{64} << 10,
                                     .buffers_max = 0,
                                     .buffers_bytes_max = 0,
                                     .shared_max = 0};

/// Limits of a user's command: the buffers are a job file, an environment and the options of a
/// command.
constexpr FrameLimits kRequestLimits{.fields_bytes_max = std::size_t{64} << 10,
                                     .buffers_max = 3,
                                     .buffers_bytes_max = std::size_t{20} << 20,
                                     .shared_max = 0};

/// The bytes of a frame. An error says which limit it is over.
Result<std::string> encode(const Frame& frame, const FrameLimits& limits = {});
/// The same, behind what is there already; an error adds nothing.
Result<void> encode_behind(std::string& bytes, const Frame& frame, const FrameLimits& limits = {});

/// The first 48 bytes of a frame: all that a hub needs to pass it on.
struct FramePrefix {
  FrameKind kind = FrameKind::Request;
  std::uint16_t flags = 0;
  std::uint64_t topic = 0;
  std::uint64_t sequence = 0;
  std::uint32_t origin = 0;
  std::size_t fields_bytes = 0;
  std::size_t buffers = 0;
  std::size_t shared = 0;
  std::size_t buffers_bytes = 0;

  /// Size of the frame, with its prefix.
  [[nodiscard]] std::size_t bytes() const;
};
/// Nothing when more bytes are needed. An error: no frame begins here, or one over a limit.
Result<std::optional<FramePrefix>> read_prefix(std::string_view bytes, const FrameLimits& limits);
/// The frame that has this prefix, of all its bytes.
Result<Frame> read_frame(const FramePrefix& prefix, std::string_view bytes);

/// Number of the arena of one shared buffer of a whole frame.
std::uint64_t arena_at(std::string_view frame, const FramePrefix& prefix, std::size_t index);
/// Bytes of all its shared buffers together; the maximum where the sum would be larger.
std::uint64_t shared_bytes(std::string_view frame, const FramePrefix& prefix);
void set_arena_at(std::string& bytes, std::size_t frame_at, const FramePrefix& prefix,
                  std::size_t index, std::uint64_t arena);

/// Takes bytes as they come and gives frames. The first thing that is no frame is the end: the same
/// error from then on. Holds no more than what came, at most one frame and the last bytes added:
/// what a length announces is not allocated before it is there.
class FrameReader {
 public:
  explicit FrameReader(FrameLimits limits = {}) : limits_(limits) {}

  /// Sets the limits of the frames that come next.
  void set_limits(const FrameLimits& limits) { limits_ = limits; }

  /// More bytes. After an error they are dropped.
  void add(std::string_view bytes);

  /// The next whole frame; nothing when more bytes are needed for it.
  Result<std::optional<Frame>> next();

  /// Whether some, but not all bytes of a frame have come.
  [[nodiscard]] bool in_frame() const { return !error_ && taken_ < bytes_.size(); }

 private:
  Result<std::optional<Frame>> fail(std::string what);

  FrameLimits limits_;
  std::string bytes_;
  std::size_t taken_ = 0;  ///< So many of bytes_ have been given out as frames.
  std::optional<Error> error_;
};

}  // namespace trainyard::wire
