// The inside of a RankGroup: what its threads share, and what belongs to the group's thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/time.h"
#include "link/arena.h"
#include "link/frame_server.h"
#include "link/frame_socket.h"
#include "model/ids.h"
#include "process/keeper.h"
#include "process/port_lease.h"
#include "ranks/context_access.h"
#include "ranks/rank_group.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/this_process.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::ranks {

/// The two connections to one rank, as the parent sees them. Guarded by the lock of its group.
struct RankChannel {
  RankChannel(link::FrameSocket first, link::FrameSocket second, sys::Descriptor theirs)
      : requests(std::move(first)), words(std::move(second)), their_words(std::move(theirs)) {}

  link::FrameSocket requests;
  link::FrameSocket words;
  sys::Descriptor their_words;  ///< Kept until it has gone to the rank, with the first request.
  std::vector<std::string> listens;
  /// The shared buffers of the last request, until the rank has replied.
  std::vector<wire::SharedBuffer> reads;
  /// The contexts as the rank has them, by each of its connections, and by both.
  ContextMirror request_mirror;
  ContextMirror word_mirror;
  ContextMirror sticky_mirror;
};

/// The reply in a frame, and what is needed to read its buffers later.
struct ReplyFrame {
  wire::RankReply reply;
  wire::Frame frame;
  std::vector<link::ArenaExchange::SharedView> views;
};

/// An error: it is no reply to that request.
Result<ReplyFrame> read_reply(RankChannel& channel, wire::Frame frame, std::uint64_t request);

class RankGroup::State : public std::enable_shared_from_this<State> {
 public:
  using Lock = std::unique_lock<std::mutex>;
  using Work = std::move_only_function<void()>;

  explicit State(RankGroup::Options with);
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State();

  // --- any thread, with the lock ---

  void handle(const GroupEvent& event);
  /// For the group's thread to do, soon.
  void post(Work work);
  void note(std::string what);
  [[nodiscard]] bool on_own_thread() const { return std::this_thread::get_id() == thread_id_; }
  /// An error: the word is too long.
  Result<void> send_word(const std::shared_ptr<RankChannel>& channel, wire::FrameKind kind,
                         std::uint64_t sequence, const wire::RankWord& word);

  void give_back_read(RankChannel& channel);
  struct Fired;
  /// Waits until all have received it. The thread for events calls other handlers meanwhile: the
  /// ranks that are to receive this event may wait for one of them.
  void wait_for_event(Lock& lock, const Fired& event);
  static void release(RankChannel& channel, std::uint64_t arena);

  // --- any thread, without it ---

  Result<void> start_threads();
  void end_threads();

  // --- the group's thread ---

  struct Machinery;
  void run();
  /// Reads the replies of ranks that did not reply while a caller waited for them.
  void read_late_replies();
  Result<void> make_machinery();
  void do_inbox();

  std::shared_ptr<const void> alive;  ///< The first member, which goes last.
  RankGroup::Options options;
  const std::int64_t owner = sys::own_pid();  ///< The owner of these threads and connections.

  std::mutex mutex;
  /// Notified when a member below has changed; a thread that waits checks its condition again.
  std::condition_variable changed;
  Group group;
  int closing = 0;           ///< The number that wait for its end; it is not launched then.
  bool keeper_gone = false;  ///< A new one is made for the next launch.
  bool settled_down = true;  ///< It is down, and nothing is left of the last launch.
  std::vector<std::shared_ptr<RankChannel>> channels;  ///< By rank; null: has not joined.
  std::uint32_t epoch = 0;
  std::vector<std::string> tokens;  ///< One for each rank, or one for the launcher.
  std::set<int> joining;            ///< Let in, and not taken over yet.
  std::optional<Verdict> launched;
  std::string launch_traceback;  ///< From the first that could not make its components.
  std::string first_changes;     ///< Changes of the context, for ranks that join.
  ContextMirror first_mirror;
  ContextMirror first_sticky;

  struct Answer {
    Verdict verdict;
    bool again = false;
  };
  bool executing = false;  ///< A caller is in execute(), and reads the replies.
  std::optional<Answer> executed;
  std::uint64_t request = 0;    ///< The sequence of the last one.
  std::uint64_t requests = 0;   ///< The number of requests so far.
  sys::Descriptor caller_wake;  ///< Written to when `executed` is there.

  struct Fired {
    bool over = false;
    Verdict verdict;
    std::vector<std::string> errors;
    std::string changes;
  };
  std::map<std::uint64_t, Fired> fired;
  std::uint64_t last_event = 0;

  struct Risen {
    std::shared_ptr<RankChannel> channel;
    int rank = 0;
    std::uint64_t sequence = 0;
    wire::EventWord event;
  };
  std::deque<Risen> risen;  ///< Events of ranks that the thread for events has not taken.

  std::deque<Work> inbox;
  sys::Descriptor inbox_wake;
  std::optional<Duration> sleeps_until;  ///< The group's thread; nothing: without end.
  bool quit = false;
  bool running = false;
  std::optional<Error> broken;  ///< The error that kept the group's thread from starting.

 private:
  void carry_out(const GroupCommand& command);
  void carry_out_here(const GroupCommand& command);
  [[nodiscard]] static bool needs_own_thread(const GroupCommand& command);

  void start_processes();
  void launch_process(std::optional<int> rank, std::vector<std::string> command,
                      std::vector<std::string> environment);
  void signal_processes(int signal);
  [[nodiscard]] model::AttemptKey key_of(std::optional<int> rank) const;
  void send_initialise(int rank);
  void take_keeper_news(const process::KeeperNews& news);
  void clear_away(const std::string& left);

  [[nodiscard]] Result<void> admit(link::ConnectionId connection, const wire::Hello& hello);
  [[nodiscard]] Result<int> rank_of(const wire::Hello& hello) const;
  [[nodiscard]] Result<void> check_descent(link::ConnectionId connection) const;
  void take_over(link::ConnectionId connection, int rank, std::uint32_t of_epoch);
  void watch_requests(int rank);
  void unwatch_requests();
  void read_requests(int rank);
  void take_late_reply(int rank, RankChannel& channel, const ReplyFrame& reply, bool first);
  void read_words(int rank);
  [[nodiscard]] Result<void> take_word(int rank, const std::shared_ptr<RankChannel>& channel,
                                       const wire::Frame& frame);
  void flush_words(const std::shared_ptr<RankChannel>& channel);
  void wake_thread() const;

  void tell_events();
  /// The first of those that have risen.
  void tell_one(Lock& lock);
  void flush_requests(const std::shared_ptr<RankChannel>& channel);
  Result<void> make_keeper();

  std::thread own_thread_;
  std::thread::id thread_id_;
  std::thread event_thread_;
  std::unique_ptr<Machinery> machinery_;

  friend class RankGroup;
};

/// The outcome that the reply reports.
Verdict verdict_of(const wire::RankOutcome& outcome);

/// The parts that only the thread of a rank group has: they are made and ended there.
struct RankGroup::State::Machinery {
  sys::EventLoop loop;
  std::unique_ptr<process::Keeper> keeper;
  std::unique_ptr<link::FrameServer> server;
  std::optional<process::PortLease> lease;
  std::set<int> watched_requests;  ///< Ranks whose replies are read here, and not by a caller.
};

}  // namespace trainyard::ranks
