// Words between the machines of one run, next to the events and words of their workers: how a
// machine is let in, what its workers want, and when it leaves. Plain values and their JSON; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "workers/datagram.h"

namespace trainyard::workers {

struct MachineNode {
  int node = 0;
  std::vector<std::string> roles;

  friend bool operator==(const MachineNode&, const MachineNode&) = default;
};
struct MachineEntry {
  MachineId id = 0;
  std::string host;  ///< For people.
  std::vector<MachineNode> nodes;

  friend bool operator==(const MachineEntry&, const MachineEntry&) = default;
};

/// The greeting of a machine that joins, or that `begins` the run. Datagram::to says what it asks:
/// - 0: to be let in, or to begin the run, which a machine that has begun it refuses. With
///   `has_begun` nothing: where the receiver has begun the run, too, one of them has lost it;
/// - the machine that has begun the run of the sender, possibly itself: whether another one has
///   begun it since that machine was silent, or out of reach;
/// - another machine, with `begins`: nothing; that machine has lost the run to the sender.
struct MachineHello {
  MachineEntry machine;
  std::string topology;
  std::string when_full = {};  ///< The policy of its queues.
  bool begins = false;
  bool has_begun = false;  ///< And the run is its own.

  friend bool operator==(const MachineHello&, const MachineHello&) = default;
};
struct MachineWelcome {
  std::string error;                   ///< Why the machine is refused. Empty: it is let in.
  std::vector<MachineEntry> machines;  ///< All others, the one that began the run first.
  int index = 0;                       ///< Index of its first worker.
  int count = 0;                       ///< Number of all workers.
  int awaited = 0;                     ///< Workers that no machine has brought yet.

  friend bool operator==(const MachineWelcome&, const MachineWelcome&) = default;
};

/// The run ends on all machines. Not a word of the stream, which may have no room while the other
/// machine takes nothing.
struct MachineEnd {
  std::optional<int> node;  ///< The worker that failed. None: the user stops the run.
  std::string why;
  bool leaves = false;  ///< The machine exits: nothing more of its stream comes.

  friend bool operator==(const MachineEnd&, const MachineEnd&) = default;
};

/// Another machine has been let in. Sent by the machine that began the run.
struct CameWord {
  MachineEntry machine;
  int awaited = 0;

  friend bool operator==(const CameWord&, const CameWord&) = default;
};
/// The machine leaves the run: its workers have ended, or `why` is the reason.
struct LeaveWord {
  std::string why;

  friend bool operator==(const LeaveWord&, const LeaveWord&) = default;
};
/// A worker of the machine wants events of this name, or pattern, or does not any more.
struct NeedWord {
  int node = 0;
  std::string name;
  bool wanted = true;

  friend bool operator==(const NeedWord&, const NeedWord&) = default;
};
/// Sent to the machine that began the run: this machine knows now that a worker of the machine `of`
/// wants these events, and has sent before this word all that its own workers retained until then.
struct LastWord {
  MachineId of = 0;
  int node = 0;
  std::string name;

  friend bool operator==(const LastWord&, const LastWord&) = default;
};
/// Sent behind all that came before the request with this mark.
struct MarkWord {
  std::uint64_t mark = 0;

  friend bool operator==(const MarkWord&, const MarkWord&) = default;
};
/// The next event or word is for this worker alone.
struct OnlyWord {
  int node = 0;
  /// Retained events: the name, or the pattern, for which the worker gets the event. Else empty.
  std::string name = {};

  friend bool operator==(const OnlyWord&, const OnlyWord&) = default;
};
/// Requests an acknowledgement that the worker has received all events that were sent for it until
/// now. The numbers of the requests for one worker count from 1.
struct AckRequestWord {
  int node = 0;
  std::uint64_t number = 0;

  friend bool operator==(const AckRequestWord&, const AckRequestWord&) = default;
};
/// The worker has received them, or is gone.
struct AckWord {
  int node = 0;
  std::uint64_t number = 0;

  friend bool operator==(const AckWord&, const AckWord&) = default;
};
using MachineWord = std::variant<CameWord, LeaveWord, NeedWord, LastWord, MarkWord, OnlyWord,
                                 AckRequestWord, AckWord>;

/// Sent with the reply to a request of a worker.
struct ReplyNote {
  bool met = false;
  /// By machine, the mark that must have come before the worker gets the reply.
  std::vector<std::pair<MachineId, std::uint64_t>> marks;

  friend bool operator==(const ReplyNote&, const ReplyNote&) = default;
};

std::string to_fields(const MachineHello& hello);
std::string to_fields(const MachineWelcome& welcome);
/// At most `bytes_max` bytes: a longer `why` loses its end.
std::string to_fields(MachineEnd end, std::size_t bytes_max);
std::string to_fields(const MachineWord& word);
std::string to_fields(const ReplyNote& note);
/// An error says what is wrong.
Result<MachineHello> read_machine_hello(std::string_view fields);
Result<MachineWelcome> read_machine_welcome(std::string_view fields);
Result<MachineEnd> read_machine_end(std::string_view fields);
Result<MachineWord> read_machine_word(std::string_view fields);
Result<ReplyNote> read_reply_note(std::string_view fields);

}  // namespace trainyard::workers
