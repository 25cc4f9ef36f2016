// Frames that a worker sends: put one behind the other by many threads, and written to the socket
// by whoever comes first.
//
// Where frames follow each other closely they are not written one by one, which costs more than all
// else: a thread of its own writes what has gathered, some tens of microseconds later. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "sys/outgoing.h"

namespace trainyard::workers {

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

}  // namespace trainyard::workers
