// A worker's end of its connection to the router: what its buses emit goes out, what others emit
// comes in, and what it asks is answered.
//
// A thread of its own reads, and calls the listeners for what came: one that does not return holds
// up all others of this worker, and in the end, where the policy says so, whoever emits to it.
// Sending is done by whoever emits. Any thread may call anything.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "link/frame_socket.h"
#include "pipeline/bus_remote.h"
#include "pipeline/bus_state.h"
#include "ranks/shared_arenas.h"
#include "sys/outgoing.h"
#include "trainyard/detail/codec.h"
#include "trainyard/timeout.h"
#include "wire/frame.h"
#include "wire/worker.h"

namespace trainyard::workers {

/// Frames that a worker sends: put one behind the other by many threads, and written to the socket
/// by whoever comes first.
///
/// Where frames follow each other closely they are not written one by one, which costs more than all
/// else: a thread of its own writes what has gathered, some tens of microseconds later.
class Sender {
 public:
  /// So much may gather before whoever adds writes himself, and waits for room.
  static constexpr std::size_t kGatheredMax = std::size_t{1} << 20;

  /// How long a worker that fails waits for room while nothing goes.
  static constexpr std::chrono::seconds kPatience{2};

  /// The socket outlives it. `is_over`: nobody is there any more.
  Sender(int socket, std::function<bool()> is_over, std::chrono::milliseconds patience = kPatience);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  /// Drops what has not gone.
  ~Sender();

  /// Under the lock of what is sent, so that what `make` puts into the frame is in order.
  /// `make(bytes, descriptors)` returns what is wrong with the frame, if it cannot be sent.
  template <class Make>
  Result<void> add(Make make) {
    if (Result<void> given = given_up(); !given) return given;
    std::unique_lock lock(adding_);
    scratch_.clear();
    descriptors_.clear();
    if (Result<void> made = make(scratch_, descriptors_); !made) return made;
    gathered_.add(scratch_, descriptors_);
    return added(std::move(lock));
  }

  /// Without a wait for anything but others that add: it goes with what is sent next, or soon.
  template <class Make>
  void add_without_waiting(Make make) {
    const std::unique_lock lock(adding_);
    scratch_.clear();
    make(scratch_);
    if (scratch_.empty()) return;
    gathered_.add(scratch_, {});
    want_writer();
  }

  /// Adds a word, which is small, and writes what has room. Waits for room where more than
  /// kGatheredMax of words have gathered. `make(bytes)` returns what is wrong with the word.
  template <class Make>
  Result<void> add_word(Make make) {
    std::unique_lock lock(adding_);
    scratch_.clear();
    if (Result<void> made = make(scratch_); !made) return made;
    gathered_.add(scratch_, {});
    words_ += scratch_.size();
    const bool is_full = words_ > kGatheredMax;
    lock.unlock();
    if (is_full) return flush();
    write_what_has_room();
    return {};
  }

  /// Something has come: what is sent next may be the answer, and is not held up.
  void heard() { heard_ = true; }

  /// Writes all that has gathered, and waits for room. An error: nobody is there, or nothing has
  /// gone for `patience` and this worker fails.
  Result<void> flush();

  /// Between these two this worker fails. They nest.
  void begin_to_fail() { ++failures_; }
  void has_failed() { --failures_; }
  [[nodiscard]] bool fails() const { return failures_ > 0; }

 private:
  using Clock = std::chrono::steady_clock;
  Result<void> added(std::unique_lock<std::mutex> lock);
  /// Leaves the rest to the thread that writes.
  void write_what_has_room();
  /// With `writing_`. False: there is no room for the rest.
  bool write_some();
  /// With `adding_`.
  void want_writer();
  void write_what_gathers();
  [[nodiscard]] Result<void> given_up() const;

  const int socket_;
  const std::function<bool()> is_over_;
  const std::chrono::milliseconds patience_;

  std::atomic<bool> heard_ = false;
  std::atomic<int> failures_ = 0;
  std::atomic<bool> stuck_ = false;  ///< Nothing has gone for `patience_`, and no more is added.

  std::mutex writing_;
  sys::Outgoing going_;  ///< Guarded by `writing_`.

  std::mutex adding_;
  std::condition_variable changed_;
  std::string scratch_;  ///< Guarded by `adding_`, as all below.
  std::vector<int> descriptors_;
  sys::Outgoing gathered_;
  std::size_t words_ = 0;  ///< Bytes of words in `gathered_`.
  Clock::time_point last_;
  int in_a_row_ = 0;
  bool wanted_ = false;
  bool ends_ = false;
  std::thread writer_;  ///< Started when frames first follow each other closely.
};

class Channel final : public detail::BusRemote, public std::enable_shared_from_this<Channel> {
 public:
  struct Options {
    int node = 0;
    std::uint32_t life = 1;
    /// Called on the reading thread, like those below.
    std::function<void(const wire::PeerWord&)> on_peer;
    std::function<void(const wire::RollWord&)> on_roll;
    std::function<void(const wire::LostWord&)> on_lost;
    /// The parent wants it to end, or is gone.
    std::function<void(const wire::EndWord&)> on_end;
    /// The parent takes nothing more of it: what was not read yet is lost.
    std::function<void(const std::string& why)> on_refused;
    /// A bus that was connected has stopped; on the thread that stopped it.
    std::function<void(const detail::BusState& bus)> on_bus_gone;
  };

  /// `socket` has been welcomed.
  static std::shared_ptr<Channel> start(link::FrameSocket socket, Options options);
  explicit Channel(link::FrameSocket socket, Options options);
  Channel(Channel&&) = delete;
  Channel& operator=(Channel&&) = delete;
  ~Channel() override;

  /// Nothing comes or goes any more.
  void close();

  void connect(const std::shared_ptr<detail::BusState>& bus);
  /// It listens to all that it wants from the beginning. Again: no effect.
  void settle();
  /// Waits kAnswerPatience longer than `within`, and whatever holds up this worker's events. An
  /// error in a listener: the answer would wait for it to return.
  Result<wire::WorkerReply> ask(const wire::WorkerRequest& request, Timeout within,
                                const std::stop_token& stop);
  void report(const wire::WorkerReport& report);
  /// Waits until all that was said before has gone, so that it comes although the process exits. An
  /// error: it has not, as this worker fails and nobody takes anything.
  Result<void> flush();

  /// In memory that others can map: it goes to them without a copy.
  ranks::SharedArenas& arenas() { return *arenas_; }

  void want(std::string_view name) override;
  void want_not(std::string_view name) override;
  void send(const detail::EventName& name, const detail::Codec& codec, const void* payload,
            bool is_retained) override;
  void will_wait() override { settle(); }
  void waited(std::string_view name, std::chrono::nanoseconds took, bool came) override;
  void begin_to_fail() override;
  void has_failed() override { sender_.has_failed(); }
  void bus_stopped(detail::BusState& bus) override;

 private:
  class Lease;
  void read();
  void take(wire::Frame frame);
  void take_order(const wire::Frame& frame);
  void take_event(wire::Frame frame);
  /// The memory of a shared buffer; its arena is released when nothing here has it any more.
  [[nodiscard]] Result<std::shared_ptr<detail::BufferMemory>> lease(
      const wire::SharedBuffer& place);
  void release(std::uint64_t arena);
  /// An arena that is not read any more, here or there. Never waits: it may be the reading thread
  /// that calls, which whoever sends may wait for.
  struct Released {
    std::uint64_t arena = 0;
    bool here = false;
  };
  void add_released(Released it);
  void pass_on_released();
  /// Under the lock of the sender.
  void pass_on(Released it, std::string& bytes);
  /// Waits until others have released more than `seen` arenas, and counts these there. False: there
  /// is nothing to wait for, as the run ends, this worker fails, the thread is the one that reads,
  /// or they hold only what is retained.
  bool wait_for_release(std::uint64_t& seen);
  /// False: it was over before.
  bool end(const std::string& why);
  Result<void> say(wire::FrameKind kind, std::uint64_t sequence, std::string fields);
  /// Why a request was not answered in its time.
  [[nodiscard]] std::string no_answer(const wire::WorkerRequest& request, Timeout within) const;
  /// The frame behind what is there, and before it of which type the event is, the first time.
  Result<void> put_event(const detail::EventName& name, std::string_view type, wire::Frame& frame,
                         std::string& bytes);

  const Options options_;
  const std::uint32_t origin_;
  std::shared_ptr<ranks::SharedArenas> arenas_;

  link::FrameSocket socket_;                          ///< Read by the reading thread alone.
  std::map<std::uint64_t, std::uint64_t> sequences_;  ///< By topic; guarded by the sender.
  link::ArenaExchange sent_;                          ///< The same: of what others have of ours.
  /// The same: arenas of the last retained event of a topic, which others hold until the next one.
  std::map<std::uint64_t, std::vector<std::uint64_t>> retained_;
  std::atomic<bool> settled_ = false;
  std::atomic<bool> over_ = false;
  std::atomic<bool> takes_ = false;  ///< The reading thread is in what came last: in listeners.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int, std::less<>> wanted_;  ///< How often. Guarded, as all below.
  std::vector<std::weak_ptr<detail::BusState>> buses_;
  std::map<std::uint64_t, std::optional<wire::WorkerReply>> asked_;
  std::uint64_t last_request_ = 0;
  std::map<std::uint64_t, int> last_from_;  ///< The sender of the last event of a topic.
  std::string why_over_;
  bool ends_ = false;           ///< The run does.
  std::uint64_t releases_ = 0;  ///< Arenas that others have released.

  std::mutex releasing_;
  std::vector<Released> released_;  ///< Guarded by `releasing_`.
  std::mutex passing_on_;           ///< Whoever has it passes on what was released.

  // Used by the reading thread.
  std::map<std::uint64_t, wire::TopicWord> topics_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> heard_;

  Sender sender_;
  std::thread reader_;
};

}  // namespace trainyard::workers
