// Frames that wait to be sent to one worker, and the descriptors that go with them. Frames of
// events can be dropped. One thread.
//
// A message reports dropped events in their place: after all that was sent before them, and before
// all that follows. It is written when its turn comes, with all events that are lost there by then.
//
// Does not limit itself: callers check full() before they add.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sys/descriptor.h"
#include "trainyard/parallel.h"

namespace trainyard::workers {

class Outbox {
 public:
  /// How many events of a topic.
  using Counts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

  /// Numbers of events that are lost at one place, by topic.
  using Losses = std::map<std::uint64_t, std::uint64_t>;
  /// The frames that report them.
  using LossWords = std::function<std::string(const Losses& losses)>;

  Outbox(const QueueLimits& limits, LossWords loss_words)
      : limits_(limits), loss_words_(std::move(loss_words)) {}

  /// Place where the number of events that wait here is bounded.
  enum class BoundBy : std::uint8_t {
    This,    ///< Here: they count in full() and has_room().
    Sender,  ///< On the machine of the sender: they do not.
  };
  /// An event of that topic. Its bytes can be changed by `back()` until the next call.
  void add_event(std::string_view frame, std::uint64_t topic, BoundBy bound = BoundBy::This);
  /// The last event names shared memory, which its receiver knows by this number. `descriptor`: the
  /// first one that does brings it; it stays open for as long as somebody has it.
  void add_share(std::uint64_t alias, std::shared_ptr<const sys::Descriptor> descriptor);
  /// The chunk in which the last frame lies, and where it begins in it.
  std::pair<std::string*, std::size_t> back() { return {&chunks_.back().bytes, last_at_}; }
  void add_word(std::string_view frame);
  /// Events of that topic were dropped before they came here: reported behind all that waits.
  void add_lost(std::uint64_t topic, std::uint64_t count);

  /// Appends the next bytes, at most so many, for who sends them himself. No descriptor goes with
  /// them.
  void take(std::size_t bytes_max, std::string& to);
  /// As much as the socket takes now. False: nobody is there any more.
  bool send_some(int socket);
  struct DroppedEvents {
    Counts events;                       ///< None: nothing can be dropped.
    std::vector<std::uint64_t> aliases;  ///< Shared memory that they named, each time.
    /// Those of them whose descriptor goes with nothing that waits: the receiver never gets it.
    std::vector<std::uint64_t> unsent;
  };
  /// Drops the oldest events, as many as were put together, and reports them in their place. The
  /// next event that names the same shared memory brings the descriptor.
  DroppedEvents drop_oldest();

  [[nodiscard]] bool empty() const { return chunks_.empty(); }
  [[nodiscard]] std::size_t events() const { return events_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Number of events that have left it, sent or dropped.
  [[nodiscard]] std::uint64_t events_gone() const { return events_gone_; }
  /// Counts words alone, in a time that grows with all that waits.
  [[nodiscard]] std::size_t word_bytes() const;
  [[nodiscard]] bool full() const {
    return events_ - bound_by_sender_.events >= limits_.events_max ||
           bytes_ - bound_by_sender_.bytes >= limits_.bytes_max;
  }
  /// Half of that: whoever waited goes on.
  [[nodiscard]] bool has_room() const {
    return events_ - bound_by_sender_.events <= limits_.events_max / 2 &&
           bytes_ - bound_by_sender_.bytes <= limits_.bytes_max / 2;
  }

 private:
  struct Share {
    std::uint64_t alias = 0;
    std::shared_ptr<const sys::Descriptor> descriptor;  ///< None: the receiver has it by then.
  };
  struct Amount {
    std::size_t events = 0;
    std::size_t bytes = 0;
  };
  struct Chunk {
    std::string bytes;
    std::vector<Share> shares;  ///< As the event names them; descriptors go with the first byte.
    Counts events;              ///< None: a word.
    Losses lost;                ///< None: another word.
    std::size_t sent = 0;
    std::size_t count = 0;
    Amount bound_by_sender = {};  ///< The part of it that is not counted in full().

    /// A report of lost events that more can be added to.
    [[nodiscard]] bool is_open_report() const { return !lost.empty() && sent == 0; }
  };
  void gone(const Chunk& chunk);
  /// Its turn has come: writes what it reports.
  void write_report(Chunk& chunk);
  /// Gives the descriptor to the first event behind this place that names the same memory. False:
  /// there is none.
  bool hand_on(std::size_t at, Share& share);
  /// Makes one report of this one and the next, where both are open.
  void join_reports(std::size_t at);

  QueueLimits limits_;
  LossWords loss_words_;
  std::deque<Chunk> chunks_;
  std::size_t last_at_ = 0;
  std::size_t events_ = 0;
  std::size_t bytes_ = 0;
  Amount bound_by_sender_;
  std::uint64_t events_gone_ = 0;
};

}  // namespace trainyard::workers
