// The work of the keeper in its own process: starts, watches and ends processes on messages from a
// socket, and ends them all when the other end of the socket is gone. See process/keeper.h.
//
// One thread, no Asio: it should be small. It waits in one place, wakes only for events, and sends
// all its news in one piece.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/ids.h"
#include "model/launch.h"
#include "process/end_reader.h"
#include "process/exit_board.h"
#include "process/keeper.h"
#include "process/keeper_attempts.h"
#include "process/keeper_message.h"
#include "process/keeper_patience.h"
#include "process/keeper_spawn.h"
#include "process/preloads.h"
#include "process/socket_remains.h"
#include "sys/clock.h"
#include "sys/descriptor.h"

namespace trainyard::process {

class KeeperProcess {
 public:
  /// Turns this process, which must be a fresh fork, into the keeper at the other end of `socket`.
  /// `guard` is the process behind it: a descriptor that is readable when that has ended, or closed
  /// when it has already. `inherited` are the descriptors that forked launches have of the program.
  /// `board` is shared with the guard, and must outlive this.
  KeeperProcess(sys::Descriptor socket, sys::Descriptor guard, KeeperOptions options,
                std::vector<int> inherited, ExitBoard& board);

  /// Returns when the yard has gone and every process has been ended.
  void run();

  /// The file of notes is emptied once it has this many, as soon as all of them are written down.
  static constexpr int kNotesKept = 64;

 private:
  using Clock = KeeperAttempts::Clock;

  [[nodiscard]] Preloads::Options preload_options();
  [[nodiscard]] EndReader::Options reader_options();
  void wait_for_events();
  void has_woken(const KeeperPresence::Wait& wait);
  void read_socket();
  void take_messages();
  void take(KeeperMessage message);
  void start(model::AttemptKey key, model::Launch launch);
  Result<Spawned> start_one(model::AttemptKey key, model::Launch launch);
  void start_ranks(model::AttemptKey key, model::Launch launch);
  Result<Spawned> watched(Spawned spawned, KeeperAttempts::Number number);
  void tell_not_started(model::AttemptKey key, Error why);
  void start_those_that_wait();
  bool signal_one_that_waits(const SignalMessage& message);
  void take_preloaded();
  void has_been_born(model::AttemptKey key, Result<Spawned> spawned);
  void tell_start(KeeperAttempts::Number number);
  void look_at_the_newborn(Clock::time_point now);
  void watch_start(KeeperAttempts::Number number);
  void read_what_is_left(KeeperAttempts::Over over);
  EndReader::Question question_about(KeeperAttempts::Over& over);
  void note_early(KeeperAttempts::Over over);
  void tell_end(const ProcessEnded& ended);
  void note(model::AttemptKey key, EndReader::Question question,
            std::move_only_function<void(EndReader::Answer)> answer);
  void note_again();
  void is_written(model::AttemptKey key);
  void tell_note(std::string text);
  void carry_out_signals();
  void see_what_has_started();
  void see_what_has_ended();
  void look_at_the_clock(Clock::time_point now);

  /// The epoll number of an event of the lease; keeper_process.cc has the others.
  static constexpr std::uint64_t kLeaseEvent = ~std::uint64_t{3};
  void take_lease(Duration until);
  void yard_has_gone();
  void guard_has_gone();
  void hear_what_was_said();
  void end_everything();

  void flush();
  void watch_socket(bool for_writing);
  [[nodiscard]] bool finished() const;
  [[nodiscard]] std::optional<Clock::time_point> wake_at() const;

  KeeperOptions options_;
  sys::Descriptor socket_;
  sys::Descriptor guard_;
  sys::Descriptor epoll_;
  sys::Descriptor child_signals_;  ///< SIGCHLD: an orphan may have ended.
  sys::Descriptor continued_;      ///< SIGCONT: we were stopped.
  Spawner spawner_;
  ExitBoard& board_;
  KeeperAttempts attempts_;
  Preloads preloads_;
  EndReader reader_of_ends_;
  KeeperPresence presence_;

  KeeperMessageReader reader_;
  std::string outgoing_;
  std::optional<Clock::time_point> flush_at_;   ///< The time when `outgoing_` must be sent.
  std::vector<model::AttemptKey> unsent_ends_;  ///< Attempts whose end may be in `outgoing_`.

  std::deque<StartMessage> waiting_;  ///< For descriptors: no more than the yard runs at once.
  std::vector<SignalMessage> signals_;
  struct Newborn {
    KeeperAttempts::Number number;
    Clock::time_point look_at;
  };
  std::deque<Newborn> newborn_;                 ///< Processes whose way is not watched yet.
  std::vector<KeeperAttempts::Number> starts_;  ///< Processes that may be a step further.
  std::vector<KeeperAttempts::Number> leaders_ended_;
  Clock::time_point looked_at_;

  std::optional<sys::BootAlarm> lease_;  ///< Nothing: tasks run as long as the yard is there.

  /// Attempts that have ended, and whose end is not written down as far as is known.
  std::set<model::AttemptKey> unwritten_;
  /// Ends that could not be noted: to be noted when the yard is gone.
  std::map<model::AttemptKey, EndReader::Question> unnoted_;
  int notes_since_empty_ = 0;  ///< Made since their file was emptied.
  SocketRemains remains_;
  Clock::time_point kill_at_;
  Clock::time_point give_up_at_;

  bool waits_for_room_ = false;  ///< In the socket.
  bool look_ = false;            ///< Something has ended, or may have.
  bool more_messages_ = false;   ///< There are more in `reader_` than were taken at once.
  bool yard_gone_ = false;
  bool yard_has_left_ = false;  ///< In order: it goes on living.
  bool killing_ = false;
};

/// The launch of each process, by rank; a launch without ranks of the keeper is returned as it is.
/// Ranks meet at `port`; 0: they have none. The parts made once for the attempt - its result, its
/// memory group - are rank 0's.
std::vector<model::Launch> launches_of(model::Launch launch, int port);

}  // namespace trainyard::process
