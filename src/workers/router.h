// The middle of a parallel run: relays events between the workers of this machine, and answers what
// they ask it. It looks at nothing of an event but its prefix, and copies it once for each who
// wants it.
//
//   emit ──▶ Channel, Sender ──▶ Router: Routes ──▶ Outbox of each receiver ──▶ Channel ──▶ listener
//                                                     └──▶ MachineStream ──▶ another Router
//
// Events that are emitted before all workers are settled wait here. Each worker has a bounded
// Outbox. When it is full, the policy decides: the router stops reading from the sender, or drops
// the oldest event, or the new one. With WhenFull::Block a worker of another machine has a Credit
// here, so that the stream to that machine never waits for one that reads slowly.
//
// Belongs to the thread of its event loop. Knows no processes: workers/parallel_run.h starts them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "trainyard/parallel.h"
#include "wire/frame.h"
#include "wire/worker.h"
#include "workers/arena_relay.h"
#include "workers/machine_words.h"
#include "workers/meetings.h"
#include "workers/outbox.h"
#include "workers/roll.h"
#include "workers/router_peer.h"
#include "workers/routes.h"
#include "workers/waits.h"

namespace trainyard::workers {

class Router {
 public:
  /// Bounds for all retained events together: in the router, and in shared memory, where their
  /// buffers are. A retained event counts until another one replaces it, also when its worker has
  /// ended: the router keeps the arena open then.
  static constexpr std::uint64_t kRetainedBytesMax = std::uint64_t{256} << 20;
  static constexpr std::uint64_t kRetainedSharedMax = std::uint64_t{16} << 30;

  struct Options {
    Topology topology = Topology::Mesh;
    QueueLimits queue;
    std::map<int, std::vector<std::string>> nodes;  ///< And their roles.
    /// A pipeline of the worker begins to run.
    std::function<void(int node)> on_begin;
    /// The worker says that what it does has ended.
    std::function<void(int node, const wire::FinishWord&)> on_finish;
    /// It does not speak the protocol, or reads nothing of what it asked for: it is cut off.
    std::function<void(int node, const std::string& why)> on_refused;
    std::function<void(const std::string&)> note;
    /// A worker of this machine has waited; none: nobody wants to know.
    std::function<void(int node, const Wait&)> on_wait = {};
    /// A run of several machines; nullptr: the run is on this machine alone.
    struct Elsewhere {
      bool joins = false;  ///< Another machine has begun it, the first that is admitted.
      int first_node = 0;  ///< On the machine that has begun the run.
      int unknown = 0;     ///< Workers that nobody has brought yet.
      std::function<void(const CameWord&)> on_came;
      std::function<void(int number, const std::string& why)> on_left;
      /// A worker has failed there, and does not come again.
      std::function<void(int node, const std::string& why)> on_failed;
    };
    std::unique_ptr<const Elsewhere> elsewhere = {};
  };

  Router(sys::EventLoop& loop, Options options);
  Router(Router&&) = delete;
  Router& operator=(Router&&) = delete;
  ~Router();

  /// A worker in one of its lives, which has been welcomed.
  void admit(int node, std::uint32_t life, sys::Descriptor socket);
  /// Takes what it has said and was not looked at yet. Where events of it wait for room, on_begin
  /// and on_finish are called for the words behind them, and once more when these are taken.
  void catch_up(int node);
  /// Takes the outcome of a worker whose process has ended; Awaited when it starts again.
  void has_ended(int node, Presence presence, const std::string& outcome, const std::string& why);
  /// Orders all workers of this machine to end.
  void end_all(const wire::EndWord& word);
  /// As JSON.
  [[nodiscard]] std::string status() const;
  /// Waits of this machine's workers that still last, up to now. Waits for events are left out: a
  /// worker reports these when they have ended.
  [[nodiscard]] std::vector<std::pair<int, Wait>> open_waits() const;

  // --- of other machines: router_machines.cc ---

  /// Adds an admitted machine, which must outlive its membership. Messages to it are sent when it
  /// has room, or with the next ones.
  void admit(Machine& machine);
  /// Sets the number of workers that other machines have yet to bring.
  void expect(int unknown);
  [[nodiscard]] int awaited() const { return roll_.unknown(); }
  /// Takes the bytes that arrived from the machine, in order.
  void take(int number, std::string_view bytes);
  /// More may be sent to it.
  void has_room(int number);
  /// Removes the machine. Those of its workers that have not ended have failed: why.
  void forget_machine(int number, const std::string& why);
  void say_to_machines(const MachineWord& word);
  /// Number of bytes that came from the machine and cannot be taken yet.
  [[nodiscard]] std::size_t untaken_of(int number);
  /// Nothing waits to be sent to it.
  [[nodiscard]] bool is_drained(int number);
  /// Workers of this machine that are there, or come again.
  [[nodiscard]] bool is_anybody_here() const;
  /// All that those of this machine have sent has gone as far as it goes at once, as they are gone.
  [[nodiscard]] bool has_all_gone() const;
  /// And of other ones.
  [[nodiscard]] bool is_anybody_elsewhere() const;
  /// A worker of this machine is there, or comes again.
  [[nodiscard]] bool is_anybody_at(const Machine& machine) const;

 private:
  [[nodiscard]] static ArenaRelay::End end_of(const RouterPeer& peer);
  /// The workers that an event of worker `from` is for when it goes to this one: itself, or those
  /// of a machine. Never empty.
  [[nodiscard]] std::vector<int> workers_behind(RouterPeer& to, std::uint64_t topic,
                                                int from) const;
  /// The workers of that machine that want the topic.
  [[nodiscard]] const std::vector<int>& needing(RouterPeer& to, std::uint64_t topic) const;
  /// Those of workers_behind() that have no room for it.
  [[nodiscard]] std::vector<int> workers_without_room(RouterPeer& to, std::uint64_t topic,
                                                      int from);
  /// Counts an event that goes to the machine `to`, and requests the acknowledgements that are due.
  void use_credit(RouterPeer& to, const wire::FramePrefix& prefix, std::size_t bytes);
  /// Sends other machines the acknowledgements that are due.
  void send_acks(RouterPeer& of);
  /// Goes before an event that is for one worker alone; empty: it is for all.
  [[nodiscard]] static std::string only_frame(const std::optional<OnlyWord>& only);
  void read(RouterPeer& peer);
  /// Handles the received frames that may be handled now. Error: a violation of the protocol.
  Result<void> take_frames(RouterPeer& peer);
  Result<void> take(RouterPeer& peer, const wire::FramePrefix& prefix, std::string_view frame);
  Result<void> take_event(RouterPeer& peer, const wire::FramePrefix& prefix,
                          std::string_view frame);
  /// Calls on_begin and on_finish for what has come of it and is not taken.
  void look_ahead(const RouterPeer& peer);
  /// Nothing is read of it for now.
  void pause(RouterPeer& peer);
  Result<void> take_report(RouterPeer& peer, const wire::WorkerReport& report);
  Result<void> take_request(RouterPeer& peer, std::uint64_t sequence,
                            const wire::WorkerRequest& asked);
  Result<void> take_want(RouterPeer& peer, const wire::WantWord& word);

  void relay(RouterPeer* from, const wire::FramePrefix& prefix, std::string_view frame,
             const std::vector<RouterPeer*>& receivers);
  /// Whether there is room, or some was made.
  bool make_room(RouterPeer* from, RouterPeer& to, const wire::FramePrefix& prefix);
  /// An error: to another machine it cannot go.
  Result<void> put(RouterPeer& to, const wire::FramePrefix& prefix, std::string_view frame,
                   ArenaRelay::End sender);
  /// Replaces the last one of the topic. An error: all of them would be more than the bound.
  Result<void> retain(const RouterPeer& from, const wire::FramePrefix& prefix,
                      std::string_view frame);
  /// The holder has released the arenas that the frame names, or will not get them.
  void release_arenas(ArenaRelay::End holder, ArenaRelay::End sender,
                      const wire::FramePrefix& prefix, std::string_view frame);
  void send_retained(RouterPeer& to, std::uint64_t topic);
  /// Whether what this worker retained is for that one: for itself in a later life, too.
  [[nodiscard]] bool is_retained_for(int from, int to) const {
    return from == to || routes_.hears(from, to);
  }
  Result<void> name_arenas(const RouterPeer& from, const wire::FramePrefix& prefix,
                           std::string_view frame, const std::vector<RouterPeer*>& receivers,
                           bool is_retained);
  void send_releases();

  Result<void> take_of_machine(RouterPeer& peer, const wire::FramePrefix& prefix,
                               std::string_view frame);
  Result<void> take_word(RouterPeer& peer, const MachineWord& word);
  Result<void> take_need(RouterPeer& peer, const NeedWord& word);
  Result<void> take_ack_request(RouterPeer& peer, const AckRequestWord& word);
  Result<void> take_ack(RouterPeer& peer, const AckWord& word);
  void take_last(RouterPeer& peer, const LastWord& word);
  Result<void> take_order(RouterPeer& peer, const wire::WorkerOrder& order);
  Result<void> take_peer_word(RouterPeer& peer, const wire::PeerWord& word);
  void take_lost(RouterPeer& peer, const wire::LostWord& word);
  Result<void> take_request_there(RouterPeer& peer, const wire::Frame& frame);
  Result<void> take_reply_there(RouterPeer& peer, const wire::Frame& frame);
  /// Whether what this one sends in the name of `from` goes to that one.
  [[nodiscard]] bool reaches(const RouterPeer& peer, int from, const RouterPeer& to) const;
  /// All that it gets of this event, of `from`.
  void find_receivers(RouterPeer& peer, const wire::FramePrefix& prefix);
  Result<std::string> raw(ArenaRelay::End sender, const wire::FramePrefix& prefix,
                          std::string_view frame);
  void say_word(RouterPeer& to, const MachineWord& word);
  void say_mark(RouterPeer& to);
  /// Notifies the other machines whether a worker of this machine needs the topic.
  void tell_need(int node, const std::string& name, bool wanted);
  void forget_needs(int node);
  void tell_own_state(RouterPeer& to);
  void ask_hub(const RouterPeer& peer, std::uint64_t sequence, const wire::WorkerRequest& request);
  void reply_there(RouterPeer& to, const MeetingAnswer& answer);
  /// Whether events that were sent before the barrier are still in flight.
  [[nodiscard]] bool is_early(const MeetingAnswer& answer) const;
  RouterPeer* way_to(int node);
  [[nodiscard]] bool is_here(int node) const { return options_.nodes.contains(node); }
  [[nodiscard]] bool joins() const {
    return options_.elsewhere != nullptr && options_.elsewhere->joins;
  }
  /// To the machine, for one of its workers, which wants it by this name or pattern.
  void send_retained_alone(RouterPeer& to, std::uint64_t topic, const NeedWord& need);
  /// Notes that a retained event did not reach the worker, once for each event and worker. The
  /// worker that emitted it may have ended before it gets the error.
  void note_unreached(const wire::FramePrefix& prefix, int node, const std::string& why);

  void say(RouterPeer& to, const wire::WorkerOrder& order);
  /// Soon, together with others of its kind.
  void say_refused(RouterPeer& to, const RouterPeer::Refusal& what,
                   const RouterPeer::RefusedEvents& events);
  /// An event of `from` was not put into the queue of `to`. `why` is empty where that was full.
  void refuse(RouterPeer& from, RouterPeer& to, const wire::FramePrefix& prefix,
              const std::string& why);
  void tell_refusals(RouterPeer& to);
  /// A queue to a worker, or to the machine of this worker.
  Outbox outbox_for(int node);
  void reply(const Meetings::Answers& answers);
  void tell_wait(int node, const MeetingWait& wait);
  void tell_wait(int node, const Wait& wait);
  void tell_peers(int of, const wire::PeerWord& word);
  /// Sends the changed roll of the run to the workers of this machine.
  void tell_roll();
  [[nodiscard]] std::string roll_text() const;
  void open_if_all_are_settled();
  /// Whether events that came before all workers were settled still wait here.
  [[nodiscard]] bool is_opening() const { return !open_ || !opening_.empty(); }
  void answer_when_all_held_has_gone();
  void watch_deadlines();
  /// Sends the frames that this turn has queued.
  void flush();
  void flush(RouterPeer& peer);
  void flush_dirty();
  /// Writes as much as the socket takes now. False if the connection has ended, which is handled
  /// when the end is read.
  static bool send_some(RouterPeer& peer);
  void go_on_reading_from_those_that_waited();
  void drop(int node, const std::string& why);
  /// Its connection has ended; it goes when what has come of it has gone.
  void at_its_end(RouterPeer& peer);
  /// Reads the bytes that are still in its socket.
  Result<void> read_rest(RouterPeer& peer);
  void end_if_all_has_gone(int node);
  RouterPeer* find(int node);

  sys::EventLoop& loop_;
  Options options_;
  Roll roll_;
  Routes routes_;
  Meetings meetings_;
  ArenaRelay arenas_;
  std::vector<char> read_buffer_;
  std::map<int, std::unique_ptr<RouterPeer>> peers_;
  std::map<int, wire::PeerWord> ended_;
  bool open_ = false;
  bool opens_ = false;     ///< Soon.
  std::set<int> opening_;  ///< Workers whose held events wait for room.
  /// Answers to send when the events that wait in `opening_` have gone.
  Meetings::Answers deferred_;
  std::vector<RouterPeer*> receivers_;  ///< Receivers of the event that is relayed now.
  /// Topics and patterns that workers of this machine want, with these workers.
  std::map<std::string, std::set<int>> needs_;
  std::map<int, std::uint64_t> marks_;        ///< That machines have said to have sent.
  std::map<int, std::uint64_t> marks_heard_;  ///< And that have come of them.
  std::uint64_t mark_ = 0;                    ///< Our own.
  bool owes_mark_ = false;                    ///< To the others.
  Meetings::Answers early_;
  std::string roll_word_;  ///< Names all workers of the run; the same for each of them.

  /// The last event of a topic that is to be kept.
  struct Retained {
    std::string bytes;
    wire::FramePrefix prefix;
    ArenaRelay::End sender = 0;
    int node = 0;
    std::uint64_t shared = 0;  ///< Bytes of its buffers in shared memory.
  };
  std::map<std::uint64_t, Retained> retained_;
  std::uint64_t retained_bytes_ = 0;
  std::uint64_t retained_shared_ = 0;
  /// Retained events that could not go to a worker of another machine, by topic and worker.
  std::set<std::pair<std::uint64_t, int>> unreached_;
  std::optional<sys::EventLoop::TimerId> timer_;
  std::set<int> dirty_;
  /// An event without room is dropped, so that no worker is killed while it waits in emit().
  bool ending_ = false;
  std::set<int> to_go_on_;  ///< Peers whose received frames can be taken now.
  std::vector<std::pair<int, std::string>> to_drop_;
};

}  // namespace trainyard::workers
