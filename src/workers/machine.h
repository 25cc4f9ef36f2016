// Another machine of the run: which workers it has, and the stream to it and back.
//
// Belongs to the thread of its loop. workers/machines.h has all of them, and gives each what comes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "workers/bridge.h"
#include "workers/datagram.h"
#include "workers/machine_stream.h"
#include "workers/machine_words.h"
#include "workers/outbox.h"

namespace trainyard::workers {

class Machine {
 public:
  struct Options {
    MachineId own = 0;
    /// Number of this machine among the receivers of events: below 0, as workers count from 0.
    int number = 0;
    Duration now{0};
    /// The end of the run is sent again after this time.
    Duration repeat_end_after{0};
    /// Returns the number of received bytes that the router has not taken yet, for want of room.
    std::function<std::size_t()> untaken;
  };
  Machine(MachineEntry entry, Bridge& bridge, Options options);

  [[nodiscard]] MachineId id() const { return entry_.id; }
  [[nodiscard]] int number() const { return options_.number; }
  [[nodiscard]] const MachineEntry& entry() const { return entry_; }
  [[nodiscard]] bool has(int node) const;
  /// "host-b (workers 4, 5)"
  [[nodiscard]] std::string name() const;

  /// Sends from the outbox as many bytes as may be in flight; none while the connection is down.
  void send_from(Outbox& outbox, Duration now);
  /// Returns the bytes that are new and next.
  std::string_view take(const Datagram& datagram, Duration now);
  /// Says what has come, sends again what was lost, or only shows that it is there. When it is to
  /// be called again at the latest.
  Duration tick(Duration now, Duration show_every);
  /// Called when received bytes were taken; reports that where there were many.
  void show_room(Duration now);
  /// Things go through from now on, or not.
  void set_up(bool is_up, Duration now);
  /// Notifies the other machine at once that the run ends, and repeats that, as it may be lost.
  void end(const MachineEnd& why, Duration now);
  /// The other machine has said that the run ends.
  void take_end(Duration now);
  /// The other machine has all that was sent. Where the run ends, it knows that: it may have exited
  /// then, and acknowledges nothing more.
  [[nodiscard]] bool is_drained() const { return end_ ? ends_there_ : stream_.is_idle(); }
  [[nodiscard]] Duration last_message_at() const { return last_message_at_; }

 private:
  /// Says what has come.
  void say(Duration now);
  /// Nothing where the run goes on.
  void say_end(Duration now);
  void send(MachineStream::Piece& piece, Duration now);
  /// The head of a datagram, which also reports how far the other stream has come.
  [[nodiscard]] Datagram head(std::uint64_t offset, Duration now);
  void send_again(Duration now);
  [[nodiscard]] std::uint64_t window() const;

  MachineEntry entry_;
  Bridge& bridge_;
  Options options_;
  MachineStream stream_;
  bool is_up_ = true;
  Duration last_message_at_;
  Duration shown_at_;
  std::optional<MachineEnd> end_;  ///< Why the run ends; none: it goes on.
  Duration end_said_at_{0};
  bool ends_there_ = false;
  Duration missed_at_{0};  ///< When this end last reported that something is missing.
  std::uint64_t told_received_ = 0;
  std::uint64_t told_window_ = MachineStream::kWindowBytes;
};

}  // namespace trainyard::workers
