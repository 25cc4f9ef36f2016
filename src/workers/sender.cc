#include "workers/sender.h"

#include <expected>
#include <utility>

#include <fmt/format.h>

#include "sys/writable.h"

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;

/// Frames that come closer than this, so many in a row, are written together: unless an answer came
/// between them, so that whoever asks and answers is never held up.
constexpr auto kClose = 100us;
/// A pause of this length is the end of such a row. A shorter one is none of whoever emits: others
/// had the processor.
constexpr auto kPause = 2ms;
constexpr int kRow = 32;
/// How long and how much they gather.
constexpr auto kGather = 50us;
constexpr std::size_t kBatch = std::size_t{32} << 10;
/// How long it is waited for room at once, before it is seen whether all is over.
constexpr std::chrono::milliseconds kLook{500};

}  // namespace

Sender::Sender(int socket, std::function<bool()> is_over, std::chrono::milliseconds patience)
    : socket_(socket), is_over_(std::move(is_over)), patience_(patience) {}

Sender::~Sender() {
  {
    const std::scoped_lock lock(adding_);
    ends_ = true;
  }
  changed_.notify_all();
  if (writer_.joinable()) writer_.join();
}

Result<void> Sender::added(std::unique_lock<std::mutex> lock) {
  const auto now = Clock::now();
  const auto since_last = now - std::exchange(last_, now);
  if (heard_.exchange(false) || since_last >= kPause) {
    in_a_row_ = 0;
  } else if (since_last < kClose) {
    ++in_a_row_;
  }
  if (in_a_row_ < kRow || gathered_.size() >= kGatheredMax) {
    lock.unlock();
    return flush();
  }
  want_writer();
  return {};
}

void Sender::want_writer() {
  if (!writer_.joinable()) writer_ = std::thread([this] { write_what_gathers(); });
  const bool is_first = !std::exchange(wanted_, true);
  if (is_first || gathered_.size() >= kBatch) changed_.notify_all();
}

void Sender::write_what_gathers() {
  std::unique_lock lock(adding_);
  while (true) {
    changed_.wait(lock, [this] { return wanted_ || ends_; });
    if (ends_) return;
    changed_.wait_for(lock, kGather, [this] { return gathered_.size() >= kBatch || ends_; });
    wanted_ = false;
    lock.unlock();
    // The reading thread reports a closed connection.
    [[maybe_unused]] const Result<void> done = flush();
    lock.lock();
  }
}

Result<void> Sender::flush() {
  const std::scoped_lock writes(writing_);
  std::size_t left = 0;
  auto since = Clock::now();
  while (!write_some()) {
    if (is_over_()) return std::unexpected(Error{"nobody is there any more"});
    if (std::exchange(left, going_.size()) != left) {
      since = Clock::now();
    } else if (fails() && Clock::now() - since >= patience_) {
      stuck_ = true;
    }
    if (Result<void> given = given_up(); !given) return given;
    sys::wait_until_writable(socket_, kLook);
  }
  stuck_ = false;
  return {};
}

Result<void> Sender::given_up() const {
  if (!stuck_ || !fails()) return {};
  return std::unexpected(Error{fmt::format(
      "this worker fails, and the workers that it waits for have read nothing for {:g} s",
      std::chrono::duration<double>(patience_).count())});
}

void Sender::write_what_has_room() {
  {
    const std::unique_lock writes(writing_, std::try_to_lock);
    if (writes && write_some()) return;
  }
  const std::scoped_lock lock(adding_);
  want_writer();
}

bool Sender::write_some() {
  while (true) {
    if (going_.empty()) {
      const std::scoped_lock lock(adding_);
      if (gathered_.empty()) return true;
      std::swap(going_, gathered_);
      words_ = 0;
    }
    going_.send_some(socket_);
    if (!going_.empty()) return false;
  }
}

}  // namespace trainyard::workers
