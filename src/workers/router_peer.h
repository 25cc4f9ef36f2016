// A worker, or another machine of the run, as the router has it. Private to the router.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "sys/descriptor.h"
#include "trainyard/parallel.h"
#include "wire/frame.h"
#include "wire/worker.h"
#include "workers/machine_words.h"
#include "workers/outbox.h"

namespace trainyard::workers {

/// Flow control for the events that go to a worker of another machine: how many of them it has not
/// received yet, and so whether more may go.
///
/// Only the sender counts. Behind each quarter of the limit it requests an acknowledgement, which the
/// other machine sends when the worker has received all events before the request, or is gone. So
/// neither a worker that begins again nor an event that it does not want any more can make the
/// counts of two machines differ.
///
///   if (!credit.is_used_up()) { send(event); if (auto number = credit.use(size)) request(*number); }
class Credit {
 public:
  explicit Credit(const QueueLimits& limits) : limits_(limits) {}

  /// Counts an event that is sent. Returns the number of the acknowledgement to request behind it,
  /// if one is due.
  std::optional<std::uint64_t> use(std::size_t bytes);
  /// The worker has received all events before that request. False: there was no such request.
  bool acknowledge(std::uint64_t number);

  [[nodiscard]] bool is_used_up() const {
    return in_flight_.events >= limits_.events_max || in_flight_.bytes >= limits_.bytes_max;
  }
  /// At most half of it is used: a sender that waited continues.
  [[nodiscard]] bool has_room() const {
    return in_flight_.events <= limits_.events_max / 2 && in_flight_.bytes <= limits_.bytes_max / 2;
  }

 private:
  struct Amount {
    std::size_t events = 0;
    std::size_t bytes = 0;
  };
  QueueLimits limits_;
  Amount in_flight_;              ///< All that is not acknowledged.
  Amount since_request_;          ///< The part of it behind the last request.
  std::deque<Amount> requested_;  ///< The other parts, by request.
  std::uint64_t acknowledged_ = 0;
};

class Machine;

/// Words are within the limits, but for texts of users, which are cut before.
std::string word_text(const wire::Frame& word);

struct RouterPeer {
  RouterPeer(int number, std::uint32_t its_life, sys::Descriptor its_socket, Outbox its_outbox)
      : node(number),
        life(its_life),
        socket(std::move(its_socket)),
        outbox(std::move(its_outbox)) {}

  int node;
  std::uint32_t life;
  sys::Descriptor socket;  ///< None of a machine.
  /// Another machine, with all its workers: its number is below 0.
  Machine* machine = nullptr;
  /// For a machine: the names and patterns that its workers want, and which of them.
  std::map<std::string, std::set<int>> needs;
  /// Those workers by topic: what was looked for since `needs` changed.
  std::map<std::uint64_t, std::vector<int>> needing;
  /// For a machine, with WhenFull::Block: by worker, what may be sent for it.
  std::map<int, Credit> credits;
  /// For a machine: the one worker for which its next event or word is.
  std::optional<OnlyWord> only;

  std::string bytes;        ///< That came and are not taken.
  std::size_t taken = 0;    ///< So many of them are.
  std::uint64_t reads = 0;  ///< How often something came.
  /// Nothing is read of it until these peers have room, or until all are settled.
  bool waits = false;
  /// Peers that have no room for the waiting event, each with those of its workers that lack it.
  std::map<int, std::vector<int>> waits_for;
  Duration waits_since{0};
  std::vector<int> waited_for = {};  ///< The value of full_workers() when the wait began.
  /// Whole events that came before all were settled, which go then.
  std::string held;
  std::size_t held_left = 0;  ///< So much of that has not gone yet.
  bool writing = false;       ///< The socket was full.
  bool eof = false;           ///< Nothing more comes of it, and it takes nothing.
  /// Its process has succeeded; the others are notified when all that it sent has gone.
  std::optional<wire::PeerWord> end;

  /// Puts a word behind what waits for it.
  void add_word(const wire::Frame& word);
  /// Something of it has come that could not go yet.
  [[nodiscard]] bool is_pending() const { return waits || !held.empty(); }
  /// All workers in `waits_for`, sorted.
  [[nodiscard]] std::vector<int> full_workers() const;

  std::set<std::uint64_t> told;  ///< The topics that were announced to it.
  Outbox outbox;
  /// False: an event for these workers of it has to wait.
  [[nodiscard]] bool has_room_for(const std::vector<int>& workers) const;

  /// For a worker: acknowledgements that other machines have requested, in order.
  struct Ack {
    std::uint64_t events_gone = 0;  ///< Value of Outbox::events_gone() when it is due.
    int machine = 0;
    std::uint64_t number = 0;
  };
  std::deque<Ack> acks;

  /// Events of it that another worker was not sent.
  struct Refusal {
    std::uint64_t topic = 0;
    int node = 0;  ///< The worker that they did not reach.
    /// Reported to a machine: the worker of it that emitted them.
    std::optional<int> only = {};
    bool is_full = false;  ///< Its queue was full.
    auto operator<=>(const Refusal&) const = default;
  };
  struct RefusedEvents {
    std::uint64_t count = 0;
    std::string why = {};  ///< The reason of the last one; empty: the queue was full.
  };
  /// Not reported yet. The reason is not in the key: it may be another one for each event.
  std::map<Refusal, RefusedEvents> refusals;

  struct Counts {
    std::uint64_t events_in = 0;
    std::uint64_t bytes_in = 0;
    std::uint64_t events_out = 0;
    std::uint64_t bytes_out = 0;
    std::uint64_t dropped = 0;
    std::uint64_t refused = 0;
    std::size_t waiting_most = 0;
  };
  Counts counts;
  Duration since{0};
};

}  // namespace trainyard::workers
