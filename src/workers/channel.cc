#include "workers/channel.h"

#include <algorithm>
#include <expected>
#include <span>
#include <stdexcept>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/match.h"
#include "base/utf8.h"
#include "link/arena.h"
#include "trainyard/buffer.h"
#include "trainyard/event.h"
#include "trainyard/worker.h"
#include "wire/control.h"
#include "workers/parcel.h"

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

namespace {

constexpr std::size_t kArenasMax = 32;

/// Whether events that go to others may have this name.
bool is_name(std::string_view name) {
  if (name.empty() || name.size() > wire::kEventNameBytesMax) return false;
  for (std::size_t bytes = 0; !name.empty(); name.remove_prefix(bytes)) {
    const Utf8Character character = utf8_character(name);
    if (!character.valid) return false;
    bytes = character.bytes;
  }
  return true;
}

/// An event of each process alone, which no other worker may imitate.
bool is_reserved(std::string_view name) {
  return name == kPeerChange.name.text || name == kEventsLost.name.text;
}

std::string no_name() {
  return fmt::format("the name of an event that goes to others has 1 to {} bytes of UTF-8",
                     wire::kEventNameBytesMax);
}

}  // namespace

/// A piece of memory of another worker: its arena is released when nobody has it any more.
class Channel::Lease final : public detail::BufferMemory {
 public:
  Lease(std::weak_ptr<Channel> channel, std::uint64_t arena, link::ArenaExchange::SharedView view)
      : channel_(std::move(channel)), arena_(arena), view_(std::move(view)) {}
  Lease(Lease&&) = delete;
  Lease& operator=(Lease&&) = delete;
  ~Lease() override {
    if (const auto channel = channel_.lock()) channel->release(arena_);
  }
  [[nodiscard]] std::span<const std::byte> bytes() const override { return view_.bytes; }

 private:
  std::weak_ptr<Channel> channel_;
  std::uint64_t arena_;
  link::ArenaExchange::SharedView view_;
};

std::shared_ptr<Channel> Channel::start(link::FrameSocket socket, Options options) {
  auto channel = std::make_shared<Channel>(std::move(socket), std::move(options));
  // It holds no share: it is joined by who ends the channel.
  channel->reader_ = std::thread([it = channel.get()] { it->read(); });
  return channel;
}

Channel::Channel(link::FrameSocket socket, Options options)
    : options_(std::move(options)),
      origin_(wire::origin_of(options_.node, options_.life)),
      arenas_(std::make_shared<ranks::SharedArenas>(
          link::ArenaPool::Options{.arenas_max = kArenasMax})),
      socket_(std::move(socket)),
      sender_(socket_.descriptor(), [this] { return over_.load(); }) {}

Channel::~Channel() { close(); }

void Channel::close() {
  // The events that were emitted last are to arrive; a connection that has ended is seen at once.
  static_cast<void>(flush());
  socket_.shut_down();
  if (reader_.joinable() && reader_.get_id() != std::this_thread::get_id()) reader_.join();
}

bool Channel::end(const std::string& why) {
  {
    const std::scoped_lock lock(mutex_);
    if (over_.exchange(true)) return false;
    why_over_ = why;
  }
  changed_.notify_all();
  return true;
}

// --- what goes ---

Result<void> Channel::say(wire::FrameKind kind, std::uint64_t sequence, std::string fields) {
  return sender_.add_word([&](std::string& bytes) {
    return wire::encode_behind(bytes,
                               {.kind = kind, .sequence = sequence, .fields = std::move(fields)},
                               wire::kWorkerLimits);
  });
}

void Channel::report(const wire::WorkerReport& report) {
  // Where nobody is there any more, the reading thread finds it out.
  [[maybe_unused]] const Result<void> said =
      say(wire::FrameKind::Report, 0, wire::to_fields(report));
}

Result<void> Channel::flush() {
  if (over_) return {};
  Result<void> gone = sender_.flush();
  // Where nobody is there any more, the reading thread finds it out.
  if (over_) return {};
  return gone;
}

void Channel::begin_to_fail() {
  {
    const std::scoped_lock lock(mutex_);
    sender_.begin_to_fail();
  }
  changed_.notify_all();
}

void Channel::settle() {
  if (settled_ || settled_.exchange(true)) return;
  report(wire::SettledWord{});
}

void Channel::connect(const std::shared_ptr<detail::BusState>& bus) {
  {
    const std::scoped_lock lock(mutex_);
    buses_.push_back(bus);
  }
  bus->connect(shared_from_this());
}

void Channel::bus_stopped(detail::BusState& bus) {
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(buses_, [&](const auto& it) {
      const auto alive = it.lock();
      return !alive || alive.get() == &bus;
    });
  }
  if (options_.on_bus_gone) options_.on_bus_gone(bus);
}

void Channel::want(std::string_view name) {
  const auto is_known = [&] {
    const std::scoped_lock lock(mutex_);
    return wanted_[std::string(name)]++ > 0;
  };
  if (is_known()) return;
  if (is_name(name)) return report(wire::WantWord{.name = std::string(name), .wanted = true});
  const auto buses = [this] {
    const std::scoped_lock lock(mutex_);
    return buses_;
  };
  for (const auto& each : buses()) {
    if (const auto bus = each.lock()) bus->tell(name, no_name());
  }
}

void Channel::want_not(std::string_view name) {
  const auto still = [&] {
    const std::scoped_lock lock(mutex_);
    const auto found = wanted_.find(name);
    if (found == wanted_.end() || --found->second > 0) return true;
    wanted_.erase(found);
    return false;
  };
  if (!still() && is_name(name)) {
    report(wire::WantWord{.name = std::string(name), .wanted = false});
  }
}

void Channel::send(const detail::EventName& name, const detail::Codec& codec, const void* payload,
                   bool is_retained) {
  if (!is_name(name.text)) throw std::invalid_argument(no_name());
  settle();
  detail::RemotePayload encoded;
  codec.encode(payload, encoded);
  pass_on_released();
  const auto releases = [this] {
    const std::scoped_lock lock(mutex_);
    return releases_;
  };
  auto parcel = pack(std::move(encoded), *arenas_,
                     [this, seen = releases()]() mutable { return wait_for_release(seen); });
  if (!parcel) throw std::runtime_error(parcel.error().message);
  wire::Frame& frame = parcel->frame;
  frame.kind = wire::FrameKind::Event;
  frame.flags = is_retained ? wire::kRetainedFlag : std::uint16_t{0};
  frame.topic = name.hash;
  frame.origin = origin_;
  const Result<void> sent =
      sender_.add([&](std::string& bytes, std::vector<int>& descriptors) -> Result<void> {
        if (Result<void> put = put_event(name, codec.type, frame, bytes); !put) return put;
        if (!frame.shared.empty()) {
          descriptors = arenas_->with_pool(
              [&](link::ArenaPool& pool) { return sent_.descriptors_with(frame, pool); });
        }
        if (is_retained) {
          std::vector<std::uint64_t>& arenas = retained_[name.hash];
          arenas.clear();
          for (const wire::SharedBuffer& each : frame.shared) arenas.push_back(each.arena);
        }
        return {};
      });
  if (sent) return;
  if (sender_.fails()) throw detail::NotSent(sent.error().message);
  throw std::runtime_error(sent.error().message);
}

void Channel::waited(std::string_view name, std::chrono::nanoseconds took, bool came) {
  if (took < wire::kWaitedLeast || !is_name(name)) return;
  wire::WaitedWord word{.name = std::string(name),
                        .ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count()};
  if (came) {
    const std::scoped_lock lock(mutex_);
    const auto from = last_from_.find(wire::topic_of(name));
    if (from != last_from_.end()) word.from = from->second;
  }
  report(word);
}

Result<void> Channel::put_event(const detail::EventName& name, std::string_view type,
                                wire::Frame& frame, std::string& bytes) {
  std::uint64_t& sequence = sequences_[name.hash];
  if (sequence == 0) {
    const wire::TopicWord word{.name = std::string(name.text), .type = std::string(type)};
    Result<void> put_topic = wire::encode_behind(
        bytes,
        {.kind = wire::FrameKind::Report, .fields = wire::to_fields(wire::WorkerReport(word))});
    if (!put_topic) return put_topic;
  }
  frame.sequence = sequence + 1;
  Result<void> put = wire::encode_behind(bytes, frame, wire::kWorkerLimits);
  if (put) ++sequence;
  return put;
}

Result<wire::WorkerReply> Channel::ask(const wire::WorkerRequest& request, Timeout within,
                                       const std::stop_token& stop) {
  // The listener of a worker that emits could wait, but those of its event elsewhere cannot come.
  if (std::this_thread::get_id() == reader_.get_id() ||
      detail::BusState::is_in_a_remote_listener()) {
    return std::unexpected(
        Error{"a listener of remote events cannot wait for the others: wait outside of listeners"});
  }
  const auto until = std::chrono::steady_clock::now() + within.time() + wire::kAnswerPatience;
  if (!std::holds_alternative<wire::StatusRequest>(request)) settle();
  std::unique_lock lock(mutex_);
  const std::uint64_t number = ++last_request_;
  asked_.emplace(number, std::nullopt);
  lock.unlock();
  const Result<void> said = say(wire::FrameKind::Request, number, wire::to_fields(request));
  const std::stop_callback at_stop(stop, [this] {
    const std::scoped_lock locked(mutex_);
    changed_.notify_all();
  });
  lock.lock();
  changed_.wait_until(lock, until, [&] {
    return over_ || !said || stop.stop_requested() || asked_.at(number).has_value();
  });
  auto reply = std::move(asked_.extract(number).mapped());
  const std::string why = why_over_;
  lock.unlock();  // Before the callback goes, which takes it.
  if (reply) return *std::move(reply);
  if (!said) return std::unexpected(said.error());
  // Where nobody is there any more, the reading thread finds it out.
  static_cast<void>(
      say(wire::FrameKind::Request, number, wire::to_fields(wire::WithdrawRequest{})));
  if (stop.stop_requested()) return std::unexpected(Error{"it was told to stop"});
  return std::unexpected(Error{over_ ? why : no_answer(request, within)});
}

std::string Channel::no_answer(const wire::WorkerRequest& request, Timeout within) const {
  const std::string asked = match(
      request, [](const wire::ReadyRequest&) { return std::string("ready()"); },
      [](const wire::BarrierRequest& it) { return fmt::format("barrier '{}'", it.name); },
      [](const auto&) { return std::string("status()"); });
  return fmt::format("{}: no answer came within {:g} s: {}", asked,
                     std::chrono::duration<double>(within.time()).count(),
                     takes_
                         ? "a listener of remote events of this worker has not returned, or "
                           "events that came before the answer are still being handled"
                         : "events wait for workers that read more slowly: those that this worker "
                           "emitted before it asked or, with several machines, those that come to "
                           "its machine before the answer");
}

void Channel::release(std::uint64_t arena) { add_released({.arena = arena, .here = false}); }

void Channel::add_released(Released it) {
  {
    const std::scoped_lock lock(releasing_);
    released_.push_back(it);
  }
  pass_on_released();
}

void Channel::pass_on_released() {
  const auto any = [this] {
    const std::scoped_lock lock(releasing_);
    return !released_.empty();
  };
  // Whoever passes them on now looks again when that is done.
  while (any()) {
    const std::unique_lock passes(passing_on_, std::try_to_lock);
    if (!passes) return;
    const auto take_all = [this] {
      const std::scoped_lock lock(releasing_);
      return std::exchange(released_, {});
    };
    const std::vector<Released> all = take_all();
    // Nothing that must be waited for: it may be the reading thread that calls.
    sender_.add_without_waiting([&](std::string& bytes) {
      for (const Released& each : all) pass_on(each, bytes);
    });
  }
}

void Channel::pass_on(Released it, std::string& bytes) {
  if (!it.here) {
    static_cast<void>(
        wire::encode_behind(bytes, {.kind = wire::FrameKind::Release, .topic = it.arena}));
    return;
  }
  // One that we did not send is nothing to us.
  arenas_->with_pool(
      [&](link::ArenaPool& pool) { static_cast<void>(sent_.released(it.arena, pool)); });
  {
    const std::scoped_lock lock(mutex_);
    ++releases_;
  }
  changed_.notify_all();
}

bool Channel::wait_for_release(std::uint64_t& seen) {
  if (std::this_thread::get_id() == reader_.get_id()) return false;
  bool is_held = false;
  sender_.add_without_waiting([&](std::string& /*bytes*/) {
    std::map<std::uint64_t, int> held = sent_.held();
    for (const auto& [topic, arenas] : retained_) {
      for (const std::uint64_t arena : arenas) --held[arena];
    }
    is_held = std::ranges::any_of(held, [](const auto& it) { return it.second > 0; });
  });
  std::unique_lock lock(mutex_);
  // Arenas that were released meanwhile may be all that were held.
  if (releases_ == seen && !is_held) return false;
  changed_.wait(lock, [&] { return releases_ != seen || ends_ || over_ || sender_.fails(); });
  if (releases_ == seen || ends_ || over_) return false;
  seen = releases_;
  return true;
}

// --- what comes ---

void Channel::read() {
  while (true) {
    auto frame = socket_.wait_for_frame();
    if (!frame) {
      const std::string why = "the parent of this worker is gone: " + frame.error().message;
      if (end(why) && options_.on_end) options_.on_end({.why = why});
      return;
    }
    if (frame->kind == wire::FrameKind::Failure) {
      const std::string why = "this worker is cut off: " + wire::read_failure(frame->fields);
      if (end(why) && options_.on_refused) options_.on_refused(why);
      return;
    }
    takes_ = true;
    take(*std::move(frame));
    takes_ = false;
  }
}

void Channel::take(wire::Frame frame) {
  switch (frame.kind) {
    case wire::FrameKind::Event:
      sender_.heard();
      return take_event(std::move(frame));
    case wire::FrameKind::Order:
      return take_order(frame);
    case wire::FrameKind::Release:
      return add_released({.arena = frame.topic, .here = true});
    case wire::FrameKind::Reply: {
      auto reply = wire::read_worker_reply(frame.fields);
      const std::scoped_lock lock(mutex_);
      const auto asked = asked_.find(frame.sequence);
      if (asked == asked_.end()) return;
      asked->second = reply ? *std::move(reply) : wire::WorkerReply{.error = reply.error().message};
      return changed_.notify_all();
    }
    default:
      return;
  }
}

void Channel::take_order(const wire::Frame& frame) {
  const auto order = wire::read_worker_order(frame.fields);
  if (!order) return;
  match(
      *order, [&](const wire::TopicWord& it) { topics_[wire::topic_of(it.name)] = it; },
      [&](const wire::PeerWord& it) {
        if (options_.on_peer) options_.on_peer(it);
      },
      [&](const wire::LostWord& it) {
        if (options_.on_lost) options_.on_lost(it);
      },
      [&](const wire::EndWord& it) {
        {
          const std::scoped_lock lock(mutex_);
          ends_ = true;
        }
        changed_.notify_all();
        if (options_.on_end) options_.on_end(it);
      },
      [&](const wire::RollWord& it) {
        if (options_.on_roll) options_.on_roll(it);
      });
}

void Channel::take_event(wire::Frame frame) {
  const auto topic = topics_.find(frame.topic);
  if (topic == topics_.end()) return;
  const wire::TopicWord word = topic->second;
  std::uint64_t& heard = heard_[{frame.origin, frame.topic}];
  // It came before; what was retained comes again to who listens again.
  const bool is_old = frame.sequence <= heard && (frame.flags & wire::kRetainedFlag) == 0;
  heard = std::max(heard, frame.sequence);
  const std::uint64_t number = frame.topic;
  const int from = wire::node_of(frame.origin);
  const bool is_retained = (frame.flags & wire::kRetainedFlag) != 0;
  // The payload of an event that is not passed on is unpacked, too: its destructor releases the
  // shared buffers.
  auto payload =
      unpack(std::move(frame), [this](const wire::SharedBuffer& place) { return lease(place); });
  if (is_old || is_reserved(word.name)) return;
  const auto buses = [&] {
    const std::scoped_lock lock(mutex_);
    last_from_[number] = from;
    return buses_;
  };
  for (const auto& each : buses()) {
    const auto bus = each.lock();
    if (!bus) continue;
    if (payload) {
      bus->deliver_remote(word.name, word.type, *payload, is_retained);
    } else {
      bus->tell(word.name, payload.error().message);
    }
  }
}

Result<std::shared_ptr<detail::BufferMemory>> Channel::lease(const wire::SharedBuffer& place) {
  auto view = socket_.arenas().view_of(place);
  if (!view) return std::unexpected(std::move(view.error()));
  return std::make_shared<Lease>(weak_from_this(), place.arena, *std::move(view));
}

}  // namespace trainyard::workers
