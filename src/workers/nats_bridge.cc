#include "workers/nats_bridge.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nats/nats.h>
#include <nats/status.h>

#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "sys/descriptor.h"
#include "sys/passing.h"
#include "sys/waker.h"
#include "workers/nats_library.h"

namespace trainyard::workers {
namespace {

constexpr std::int64_t kConnectMs = 5'000;
constexpr std::int64_t kWriteMs = 5'000;
/// Between two attempts to connect again.
constexpr Duration kReconnectAfter{100};
constexpr std::int64_t kPingMs = 5'000;
constexpr int kPingsOut = 2;
constexpr std::chrono::milliseconds kCloseWithin{5'000};
/// Bytes to read at once: more than the largest record of TLS, as nothing reports the rest of a
/// record that is left in its buffer.
constexpr int kReadBytes = 256 << 10;
constexpr std::size_t kUrlBytesMax = 1'024;
/// libnats 3.4 signs about one of 256 challenges wrongly, so that a server refuses an nkey that it
/// knows: another connection has another challenge.
constexpr int kSignatures = 4;

struct Closed {};
struct Trouble {
  std::string what;
};
/// The server does not permit this user to publish or to subscribe.
struct NotPermitted {
  std::string what;
};
/// The server takes no message of this size, so this one was not sent.
struct TooLarge {
  std::size_t bytes = 0;
};
using News = std::variant<Closed, Trouble, NotPermitted, TooLarge>;

/// Shared by the loop and the threads of the library, which look whether the server is there.
struct Shared {
  const NatsLibrary library;
  sys::Waker waker;
  const std::thread::id loop_thread = std::this_thread::get_id();
  std::atomic<bool> wants_to_write = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<News> news;                          ///< Guarded, as all below.
  std::shared_ptr<const sys::Descriptor> socket;  ///< Socket of the connection, while there is one.
  bool is_replaced = false;                       ///< `socket` is new to the loop.
  bool is_open = false;                           ///< Something may still call.

  void add(News it) {
    {
      const std::scoped_lock lock(mutex);
      news.push_back(std::move(it));
    }
    waker.wake();
  }
  void replace(std::shared_ptr<const sys::Descriptor> by) {
    {
      const std::scoped_lock lock(mutex);
      // The loop may be in the middle of a record of TLS whose rest never comes.
      if (socket && !by) sys::shut_down(*socket);
      socket = std::move(by);
      is_replaced = true;
    }
    waker.wake();
  }
  void set_open(bool open) {
    const std::scoped_lock lock(mutex);
    is_open = open;
    // With the lock: who waits for it takes all of this away then.
    changed.notify_all();
  }
  /// Nothing calls any more when it returns.
  void wait_until_closed() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return !is_open; });
  }
};

Shared& shared_of(void* closure) { return *static_cast<Shared*>(closure); }

void on_closed(natsConnection* /*it*/, void* closure) {
  Shared& shared = shared_of(closure);
  shared.add(Closed{});
  shared.set_open(false);
}

void on_error(natsConnection* /*it*/, natsSubscription* /*by*/, natsStatus status, void* closure) {
  Shared& shared = shared_of(closure);
  if (status == NATS_NOT_PERMITTED) {
    // The server's words, which are this thread's while it is here.
    const char* const last = shared.library.last_error(nullptr);
    return shared.add(NotPermitted{last == nullptr ? shared.library.text(status) : last});
  }
  shared.add(Trouble{shared.library.text(status)});
}

/// There is a new connection. Our own descriptor of its socket is watched: the library may close
/// its own at any time, on any thread.
natsStatus on_attach(void** user, void* loop, natsConnection* /*it*/, natsSock socket) {
  auto own = std::make_shared<const sys::Descriptor>(sys::Descriptor::duplicate(socket));
  if (!own->is_open()) return NATS_SYS_ERROR;
  *user = loop;
  shared_of(loop).replace(std::move(own));
  return NATS_OK;
}

natsStatus on_read_wanted(void* user, bool wanted) {
  if (!wanted) shared_of(user).replace(nullptr);
  return NATS_OK;
}

natsStatus on_write_wanted(void* user, bool wanted) {
  Shared& shared = shared_of(user);
  shared.wants_to_write = wanted;
  if (wanted && std::this_thread::get_id() != shared.loop_thread) shared.waker.wake();
  return NATS_OK;
}

natsStatus on_detach(void* user) {
  shared_of(user).replace(nullptr);
  return NATS_OK;
}

/// The names of the servers, for people.
std::string names_of(const std::vector<NatsAddress>& servers) {
  std::vector<std::string> names;
  names.reserve(servers.size());
  for (const NatsAddress& each : servers) names.push_back(each.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// One connection, which the library never connects again: where an event loop reads for it, it
/// takes the bytes of the next connection for the rest of the message that the last one broke off
/// in (libnats 3.4 to 3.8; nats.c, issue 1007).
class NatsLink {
 public:
  struct Listener {
    std::function<void(std::string_view message)> on_message;
    std::function<void()> on_no_hub;
    std::function<void()> on_closed;
    std::function<void(const std::string& what)> on_not_permitted;
    std::function<void(std::size_t bytes)> on_too_large;
    std::function<void(const std::string& what)> on_trouble;
  };

  NatsLink(sys::EventLoop& loop, const NatsLibrary& library, NatsBridgeOptions options,
           sys::Waker waker)
      : loop_(loop),
        library_(library),
        options_(std::move(options)),
        name_(names_of(options_.servers)),
        shared_(new Shared{.library = library, .waker = std::move(waker)}) {}
  NatsLink(NatsLink&&) = delete;
  NatsLink& operator=(NatsLink&&) = delete;
  ~NatsLink() { close(); }

  /// Takes some seconds if a server does not answer. Any thread; no listener is called before
  /// start().
  std::expected<void, NoNats> connect();

  void start(Listener listener) {
    listener_ = std::move(listener);
    loop_.watch_readable(shared_->waker.descriptor(), [this] { take_news(); });
    watched_ = true;
    take_news();
  }
  void publish(const std::string& subject, std::string_view message) {
    has_published(library_.publish(connection_, subject.c_str(), message.data(),
                                   static_cast<int>(message.size())),
                  message);
  }
  void request(const std::string& subject, const std::string& reply, std::string_view message) {
    has_published(library_.publish_request(connection_, subject.c_str(), reply.c_str(),
                                           message.data(), static_cast<int>(message.size())),
                  message);
  }
  /// The library writes nothing when it closes a connection that an event loop writes for.
  [[nodiscard]] bool is_drained() const { return !shared_->wants_to_write; }
  [[nodiscard]] std::size_t message_bytes_max() const { return message_bytes_max_; }
  /// Host and port of the server; of all servers before there is a connection.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  using Options = std::unique_ptr<natsOptions, void (*)(natsOptions*)>;
  Result<void> set(natsOptions* to);
  Result<void> set_credentials(natsOptions* to);
  Result<void> subscribe(const std::string& subject);
  void has_published(natsStatus status, std::string_view message);
  void take_news();
  void tell(const News& news);
  void watch(std::shared_ptr<const sys::Descriptor> socket);
  void read();
  void take_messages(natsSubscription* of);
  void write_what_waits();
  void close();
  /// The text of an error of the library, which is the calling thread's.
  [[nodiscard]] Error error_of(natsStatus status) const;

  sys::EventLoop& loop_;
  const NatsLibrary library_;
  NatsBridgeOptions options_;
  std::string name_;
  std::unique_ptr<Shared> shared_;
  Listener listener_;
  natsConnection* connection_ = nullptr;
  std::vector<natsSubscription*> subscriptions_;
  std::size_t message_bytes_max_ = 0;
  std::shared_ptr<const sys::Descriptor> socket_;  ///< That is watched.
  bool watched_ = false;
  bool waits_for_room_ = false;
};

/// The library's text without the place in its source: "(conn.c:1905): ".
std::string_view without_source(std::string_view text) {
  const std::size_t end = text.find("): ");
  return text.starts_with('(') && end != std::string_view::npos ? text.substr(end + 3) : text;
}

Error NatsLink::error_of(natsStatus status) const {
  const char* const last = library_.last_error(nullptr);
  const std::string_view more = without_source(last == nullptr ? "" : last);
  std::string text = library_.text(status);
  if (!more.empty() && text != more) text += fmt::format(" ({})", more);
  if (status == NATS_CONNECTION_AUTH_FAILED || more.contains("Authorization")) {
    if (!options_.nats.nkey.empty()) {
      text +=
          "; the server must know the nkey (--nats-nkey), and the seed must be its own "
          "(--nats-seed)";
    } else if (std::ranges::any_of(options_.servers, &NatsAddress::has_credentials)) {
      text += "; the server must know the token or the user in its address";
    } else if (!options_.nats.token.empty() || !options_.nats.user.empty()) {
      text += "; the server must know this token, or this user and password";
    } else {
      text += "; set TRAINYARD_NATS_TOKEN, or TRAINYARD_NATS_USER and TRAINYARD_NATS_PASSWORD";
    }
  }
  return Error{fmt::format("NATS: {}: {}", name_, text)};
}

Result<void> NatsLink::set_credentials(natsOptions* to) {
  const NatsOptions& nats = options_.nats;
  natsStatus status = NATS_OK;
  if (!nats.token.empty()) status = library_.set_token(to, nats.token.c_str());
  if (status == NATS_OK && !nats.user.empty()) {
    status = library_.set_user_info(to, nats.user.c_str(), nats.password.c_str());
  }
  if (status == NATS_OK && !nats.nkey_seed_file.empty()) {
    status = library_.set_nkey(to, nats.nkey.c_str(), nats.nkey_seed_file.c_str());
  }
  if (status == NATS_OK && options_.servers.front().is_secure) {
    status = library_.set_secure(to, true);
    if (status == NATS_OK && !nats.ca_file.empty()) {
      status = library_.load_ca(to, nats.ca_file.c_str());
    }
    if (status == NATS_OK && !nats.host_name.empty()) {
      status = library_.set_host_name(to, nats.host_name.c_str());
    }
  }
  if (status != NATS_OK) return std::unexpected(error_of(status));
  return {};
}

Result<void> NatsLink::set(natsOptions* to) {
  std::vector<const char*> servers;
  servers.reserve(options_.servers.size());
  for (const NatsAddress& each : options_.servers) servers.push_back(each.url.c_str());
  void* const shared = shared_.get();
  for (const natsStatus status :
       {library_.set_servers(to, servers.data(), static_cast<int>(servers.size())),
        library_.set_no_randomize(to, true), library_.set_name(to, "trainyard"),
        library_.set_timeout(to, kConnectMs), library_.set_write_deadline(to, kWriteMs),
        // Without it a thread of the library sends what is published a millisecond later.
        library_.set_send_asap(to, true), library_.set_no_echo(to, true),
        library_.set_buffer_size(to, kReadBytes),
        library_.set_event_loop(to, shared, on_attach, on_read_wanted, on_write_wanted, on_detach),
        library_.set_allow_reconnect(to, false), library_.set_ping_interval(to, kPingMs),
        library_.set_pings_out(to, kPingsOut), library_.set_on_error(to, on_error, shared),
        library_.set_on_closed(to, on_closed, shared)}) {
    if (status != NATS_OK) return std::unexpected(error_of(status));
  }
  return set_credentials(to);
}

std::expected<void, NoNats> NatsLink::connect() {
  const auto failed = [](Error error) {
    return std::unexpected(NoNats{.why = std::move(error.message)});
  };
  natsOptions* made = nullptr;
  if (const natsStatus status = library_.options_create(&made); status != NATS_OK) {
    return failed(error_of(status));
  }
  const Options options(made, library_.options_destroy);
  if (Result<void> done = set(made); !done) return failed(std::move(done.error()));
  natsStatus status = library_.connect(&connection_, made);
  const int tries = options_.nats.nkey.empty() ? 1 : kSignatures;
  for (int i = 1; i < tries && status == NATS_CONNECTION_AUTH_FAILED; ++i) {
    status = library_.connect(&connection_, made);
  }
  if (status != NATS_OK) {
    connection_ = nullptr;
    return std::unexpected(NoNats{.why = error_of(status).message,
                                  .may_come = status == NATS_NO_SERVER || status == NATS_TIMEOUT,
                                  .is_refused = status == NATS_CONNECTION_AUTH_FAILED});
  }
  shared_->set_open(true);
  std::array<char, kUrlBytesMax> url{};
  if (library_.connected_url(connection_, url.data(), url.size()) == NATS_OK) {
    // The URL may have a token or a password, the name has none.
    if (auto server = read_nats_address(url.data())) name_ = std::move(server->name);
  }
  const std::int64_t payload = library_.max_payload(connection_);
  message_bytes_max_ = static_cast<std::size_t>(payload > 0 ? payload : 0);
  if (message_bytes_max_ < 2 * kDatagramHeadBytes) {
    return std::unexpected(
        NoNats{.why = fmt::format("NATS: {} takes messages of at most {} bytes (max_payload)",
                                  name_, message_bytes_max_),
               .is_refused = true});
  }
  Result<void> done = subscribe(subject_of_machine(options_.run, options_.own));
  if (done && options_.is_hub) done = subscribe(subject_of_hub(options_.run));
  if (!done) return failed(std::move(done.error()));
  return {};
}

Result<void> NatsLink::subscribe(const std::string& subject) {
  natsSubscription* made = nullptr;
  const natsStatus status = library_.subscribe(&made, connection_, subject.c_str());
  if (status != NATS_OK) return std::unexpected(error_of(status));
  subscriptions_.push_back(made);
  return {};
}

void NatsLink::has_published(natsStatus status, std::string_view message) {
  // A message that is not sent for another reason is sent again when there is another connection.
  if (status == NATS_MAX_PAYLOAD) shared_->add(TooLarge{message.size()});
  write_what_waits();
}

void NatsLink::take_news() {
  shared_->waker.drain();
  std::deque<News> news;
  std::optional<std::shared_ptr<const sys::Descriptor>> fresh;
  {
    const std::scoped_lock lock(shared_->mutex);
    news.swap(shared_->news);
    if (std::exchange(shared_->is_replaced, false)) fresh = shared_->socket;
  }
  if (fresh) watch(*std::move(fresh));
  for (const News& each : news) tell(each);
  write_what_waits();
}

void NatsLink::tell(const News& news) {
  match(
      news, [this](const Closed&) { listener_.on_closed(); },
      [this](const Trouble& it) { listener_.on_trouble(it.what); },
      [this](const NotPermitted& it) { listener_.on_not_permitted(it.what); },
      [this](const TooLarge& it) { listener_.on_too_large(it.bytes); });
}

void NatsLink::watch(std::shared_ptr<const sys::Descriptor> socket) {
  if (socket_) loop_.unwatch(socket_->get());
  waits_for_room_ = false;
  socket_ = std::move(socket);
  if (socket_) loop_.watch_readable(socket_->get(), [this] { read(); });
}

void NatsLink::read() {
  library_.process_read(connection_);
  for (natsSubscription* const each : subscriptions_) take_messages(each);
  // An answer to a ping, perhaps.
  write_what_waits();
}

void NatsLink::take_messages(natsSubscription* of) {
  while (true) {
    natsMsg* message = nullptr;
    const natsStatus status = library_.next_message(&message, of, 0);
    if (status == NATS_SLOW_CONSUMER) continue;  // Messages that were too many come again.
    if (status == NATS_NO_RESPONDERS) {
      listener_.on_no_hub();
      continue;
    }
    if (status != NATS_OK) return;
    const std::unique_ptr<natsMsg, void (*)(natsMsg*)> own(message, library_.message_destroy);
    const char* const data = library_.data(message);
    const auto length = static_cast<std::size_t>(library_.data_length(message));
    listener_.on_message(data == nullptr ? std::string_view() : std::string_view(data, length));
  }
}

void NatsLink::write_what_waits() {
  if (waits_for_room_ || !socket_ || !shared_->wants_to_write) return;
  library_.process_write(connection_);
  if (!shared_->wants_to_write) return;
  waits_for_room_ = true;
  loop_.when_writable(socket_->get(), [this] {
    waits_for_room_ = false;
    write_what_waits();
  });
}

void NatsLink::close() {
  if (watched_) loop_.unwatch(shared_->waker.descriptor());
  if (watched_) watch(nullptr);
  if (connection_ == nullptr) return;
  // A thread keeps the handlers until the library no longer calls them.
  std::promise<void> closed;
  const std::future<void> is_closed = closed.get_future();
  std::thread([library = library_, connection = connection_,
               subscriptions = std::move(subscriptions_), shared = std::move(shared_),
               closed = std::move(closed)]() mutable {
    for (natsSubscription* const each : subscriptions) library.unsubscribe(each);
    library.close(connection);
    library.destroy(connection);
    shared->wait_until_closed();
    shared.reset();
    closed.set_value();
  }).detach();
  static_cast<void>(is_closed.wait_for(kCloseWithin));
}

/// A connection that a thread of its own makes. Both threads hold it, as either may end first.
struct Connecting {
  Connecting(std::unique_ptr<NatsLink> its_link, sys::Waker its_waker)
      : link(std::move(its_link)), waker(std::move(its_waker)) {}

  std::unique_ptr<NatsLink> link;       ///< The thread's until it is done; then none if it failed.
  std::expected<void, NoNats> outcome;  ///< Written by the thread before it is done.
  std::atomic<bool> is_done = false;
  sys::Waker waker;
};

Result<std::shared_ptr<Connecting>> begin_to_connect(sys::EventLoop& loop,
                                                     const NatsLibrary& library,
                                                     const NatsBridgeOptions& options) {
  Result<sys::Waker> of_link = sys::Waker::make();
  if (!of_link) return std::unexpected(std::move(of_link.error()));
  Result<sys::Waker> of_thread = sys::Waker::make();
  if (!of_thread) return std::unexpected(std::move(of_thread.error()));
  auto connecting = std::make_shared<Connecting>(
      std::make_unique<NatsLink>(loop, library, options, *std::move(of_link)),
      *std::move(of_thread));
  std::thread([connecting] {
    connecting->outcome = connecting->link->connect();
    // Closing a link may take seconds, for which the loop must not wait.
    const std::unique_ptr<NatsLink> failed =
        connecting->outcome ? nullptr : std::move(connecting->link);
    connecting->is_done = true;
    connecting->waker.wake();
  }).detach();
  return connecting;
}

/// A connection, and after its loss another one, of the first server that answers.
class NatsBridge final : public Bridge {
 public:
  NatsBridge(sys::EventLoop& loop, const NatsLibrary& library, NatsBridgeOptions options,
             std::unique_ptr<NatsLink> link)
      : loop_(loop),
        library_(library),
        options_(std::move(options)),
        message_bytes_max_(link->message_bytes_max()),
        name_(link->name()),
        link_(std::move(link)) {}
  NatsBridge(NatsBridge&&) = delete;
  NatsBridge& operator=(NatsBridge&&) = delete;
  ~NatsBridge() override {
    if (timer_) loop_.cancel(*timer_);
    stop_connecting();
  }

  void start(Listener listener) override {
    listener_ = std::move(listener);
    start_link();
  }
  void send(MachineId to, std::string_view message) override {
    if (link_) link_->publish(subject_of_machine(options_.run, to), message);
  }
  void send_to_hub(std::string_view message) override {
    // The server answers for a subject to which nobody subscribes, if there is where to answer to.
    if (!link_) return;
    link_->request(subject_of_hub(options_.run), subject_of_machine(options_.run, options_.own),
                   message);
  }
  [[nodiscard]] bool is_drained() const override { return !link_ || link_->is_drained(); }
  [[nodiscard]] std::size_t message_bytes_max() const override { return message_bytes_max_; }
  [[nodiscard]] std::string name() const override { return name_; }

 private:
  void start_link();
  void lost();
  void after(Duration delay, std::move_only_function<void()> call);
  void connect_again();
  void take_link();
  void stop_connecting();

  sys::EventLoop& loop_;
  const NatsLibrary library_;
  const NatsBridgeOptions options_;
  Listener listener_;
  std::size_t message_bytes_max_;
  std::string name_;
  std::unique_ptr<NatsLink> link_;  ///< None while there is no connection.
  std::shared_ptr<Connecting> connecting_;
  std::optional<sys::EventLoop::TimerId> timer_;
};

void NatsBridge::start_link() {
  link_->start(
      {.on_message = listener_.on_message,
       .on_no_hub = listener_.on_no_hub,
       // Its link is what calls.
       .on_closed = [this] { after(Duration(0), [this] { lost(); }); },
       .on_not_permitted =
           [this](const std::string& what) {
             listener_.on_end(fmt::format(
                 "NATS: {}: {}; this user must be allowed to publish and to subscribe to \"{}\"",
                 name(), what, subjects_of(options_.run)));
           },
       .on_too_large =
           [this](std::size_t bytes) {
             listener_.on_end(
                 fmt::format("NATS: {}: a message of {} bytes cannot be sent: the "
                             "server takes at most {} bytes (max_payload)",
                             name(), bytes, message_bytes_max_));
           },
       .on_trouble = listener_.on_trouble});
}

void NatsBridge::after(Duration delay, std::move_only_function<void()> call) {
  timer_ = loop_.after(delay, [this, call = std::move(call)]() mutable {
    timer_.reset();
    call();
  });
}

void NatsBridge::lost() {
  link_.reset();
  connect_again();
  listener_.on_change(false);
}

void NatsBridge::connect_again() {
  Result<std::shared_ptr<Connecting>> begun = begin_to_connect(loop_, library_, options_);
  if (!begun) return after(kReconnectAfter, [this] { connect_again(); });
  connecting_ = *std::move(begun);
  loop_.watch_readable(connecting_->waker.descriptor(), [this] { take_link(); });
}

void NatsBridge::take_link() {
  connecting_->waker.drain();
  if (!connecting_->is_done) return;
  const std::shared_ptr<Connecting> done = connecting_;
  stop_connecting();
  if (done->outcome) {
    link_ = std::move(done->link);
    message_bytes_max_ = link_->message_bytes_max();
    name_ = link_->name();
    start_link();
    return listener_.on_change(true);
  }
  if (done->outcome.error().is_refused) return listener_.on_end(done->outcome.error().why);
  // A server that is just ending, or starting, fails in more ways than by not being there.
  after(kReconnectAfter, [this] { connect_again(); });
}

void NatsBridge::stop_connecting() {
  if (!connecting_) return;
  loop_.unwatch(connecting_->waker.descriptor());
  connecting_.reset();
}

}  // namespace

std::expected<std::unique_ptr<Bridge>, NoNats> connect_nats(
    sys::EventLoop& loop, NatsBridgeOptions options, const std::function<bool()>& is_given_up) {
  auto library = load_nats_library();
  if (!library) return std::unexpected(NoNats{.why = std::move(library.error().message)});
  Result<std::shared_ptr<Connecting>> begun = begin_to_connect(loop, *library, options);
  if (!begun) return std::unexpected(NoNats{.why = "NATS: " + begun.error().message});
  const std::shared_ptr<Connecting> connecting = *std::move(begun);
  loop.watch_readable(connecting->waker.descriptor(), [&] { connecting->waker.drain(); });
  while (!connecting->is_done && !is_given_up()) loop.run_once(std::nullopt);
  loop.unwatch(connecting->waker.descriptor());
  if (!connecting->is_done) {
    return std::unexpected(NoNats{.why = "NATS: the connection was given up"});
  }
  if (!connecting->outcome) return std::unexpected(std::move(connecting->outcome.error()));
  return std::make_unique<NatsBridge>(loop, *library, std::move(options),
                                      std::move(connecting->link));
}

}  // namespace trainyard::workers
