#include "link/frame_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <expected>
#include <map>
#include <optional>
#include <utility>

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/check.h"
#include "base/duration_text.h"
#include "link/control_socket.h"
#include "sys/outgoing.h"
#include "sys/passing.h"
#include "wire/control.h"

namespace trainyard::link {
namespace {

constexpr std::size_t kReadOfEach = std::size_t{16} << 10;
constexpr int kAcceptsATurn = 16;
/// A process cannot have left more behind than its socket holds.
constexpr int kReadsToCatchUp = 64;

}  // namespace

struct Connection {
  sys::Descriptor socket;
  std::int64_t process = 0;
  std::optional<Duration> deadline;  ///< It ends then, unless it says something before.
  /// Before its hello, a connection may send only as much as the role with the smallest limits.
  wire::FrameReader reader{wire::kControlLimits};
  wire::FrameLimits limits = wire::kControlLimits;
  std::optional<wire::Role> role;  ///< Nothing before its hello.
  bool may_be_silent = false;
  sys::Outgoing unread;  ///< Bytes that the other end has not read yet.
  ArenaExchange arenas;
};

/// Faults of clients, for a log: reported up to a limit.
class Troubles {
 public:
  /// Reports at most `troubles_max` troubles in each `window`.
  Troubles(Duration window, int troubles_max) : window_(window), max_(troubles_max) {}

  /// The line for the log, if one is due: with the number that was held back before.
  std::optional<std::string> tell(std::string what);

 private:
  Duration window_;
  int max_;
  std::optional<Duration> begin_;
  int reported_ = 0;
  int held_back_ = 0;
};

std::optional<std::string> Troubles::tell(std::string what) {
  const Duration now = sys::EventLoop::now();
  if (!begin_ || now - *begin_ >= window_) {
    begin_ = now;
    reported_ = 0;
  }
  if (reported_ == max_) {
    ++held_back_;
    return std::nullopt;
  }
  ++reported_;
  if (held_back_ > 0) what += fmt::format(" (and {} more before)", held_back_);
  held_back_ = 0;
  return what;
}

/// Its connections have numbers, and everything that was called is followed by a fresh look at
/// whether the connection is still there: any send, and any callback, may be its end.
struct FrameServer::State : std::enable_shared_from_this<State> {
  State(sys::EventLoop& in, FrameServerOptions with, ControlSocket at)
      : loop(in),
        options(std::move(with)),
        listener(std::move(at)),
        troubles(options.trouble_window, options.troubles_max) {}

  void stop();

  void watch_listener();
  void let_in_who_waits();
  void let_in(sys::Descriptor socket);
  void pause_letting_in(int error_number);
  void turn_away(const sys::Descriptor& socket, const std::string& who, const std::string& why);

  void read(ConnectionId number);
  bool read_some(ConnectionId number);
  void catch_up();
  void catch_up(ConnectionId number);
  void take(ConnectionId number, wire::Frame frame);
  void take_release(ConnectionId number, const wire::Frame& frame);
  void release(ConnectionId number, const std::vector<wire::SharedBuffer>& shared);
  void take_hello(ConnectionId number, const wire::Frame& frame);
  [[nodiscard]] std::size_t strangers() const;
  void send(ConnectionId number, const wire::Frame& frame);
  void write(ConnectionId number);
  void end(ConnectionId number, const std::string& why);
  void cut_off(ConnectionId number, const std::string& why);
  void close(ConnectionId number);
  void end_the_silent();
  void await_more(Connection& connection);
  void wake_by(Duration due);
  void trouble(std::string what);

  Connection* find(ConnectionId number) {
    const auto found = connections.find(number);
    return found == connections.end() ? nullptr : &found->second;
  }

  /// A callback for the loop that does nothing once the server is gone.
  template <class... Arguments>
  sys::EventLoop::Callback when_alive(void (State::*what)(Arguments...), Arguments... arguments) {
    return [weak = weak_from_this(), what, arguments...] {
      // Copies: the callback that runs may be taken away by what it calls.
      const auto held = weak.lock();
      if (held) (held.get()->*what)(arguments...);
    };
  }

  sys::EventLoop& loop;
  ArenaPool* pool = nullptr;
  FrameServerOptions options;
  ControlSocket listener;
  Troubles troubles;
  std::map<wire::Role, std::shared_ptr<Door>> doors;
  std::map<ConnectionId, Connection> connections;
  ConnectionId last_number = 0;
  /// The timer of end_the_silent(), when one is set.
  struct Wake {
    sys::EventLoop::TimerId timer = 0;
    Duration due{0};
  };
  std::optional<Wake> wakes;
  std::optional<Duration> paused_until;  ///< Nobody is let in before.
};

void FrameServer::State::stop() {
  doors.clear();
  while (!connections.empty()) close(connections.begin()->first);
  loop.unwatch(listener.socket.get());
  if (wakes) loop.cancel(wakes->timer);
  wakes.reset();
  listener.socket.close();
  remove_socket(listener.path);
}

void FrameServer::State::watch_listener() {
  loop.watch_readable(listener.socket.get(), when_alive(&State::let_in_who_waits));
}

void FrameServer::State::let_in_who_waits() {
  for (int i = 0; i < kAcceptsATurn; ++i) {
    sys::Descriptor socket(
        ::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_open()) {
      let_in(std::move(socket));
      continue;
    }
    // Connections in the queue stay there: without a pause they would wake us again and again.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      pause_letting_in(errno);
    }
    return;
  }
}

void FrameServer::State::let_in(sys::Descriptor socket) {
  const auto peer = options.peer(socket.get());
  if (!peer) return turn_away(socket, "somebody", peer.error().message);
  const std::string who = fmt::format("process {}", peer->process);
  if (peer->user != ::geteuid()) {
    return turn_away(
        socket, who,
        fmt::format("user {} may not control the run of user {}", peer->user, ::geteuid()));
  }
  if (strangers() >= options.strangers_max) {
    return turn_away(socket, who,
                     fmt::format("there are {} connections already that have not said hello",
                                 options.strangers_max));
  }
  const ConnectionId number = ++last_number;
  const int descriptor = socket.get();
  Connection& connection = connections[number];
  connection.socket = std::move(socket);
  connection.process = peer->process;
  connection.deadline = sys::EventLoop::now() + options.hello_within;
  wake_by(*connection.deadline);
  loop.watch_readable(descriptor, when_alive(&State::read, number));
}

void FrameServer::State::pause_letting_in(int error_number) {
  loop.unwatch(listener.socket.get());
  paused_until = sys::EventLoop::now() + options.full_pause;
  wake_by(*paused_until);
  trouble(sys::system_error("cannot let a connection in", error_number).message);
}

void FrameServer::State::turn_away(const sys::Descriptor& socket, const std::string& who,
                                   const std::string& why) {
  const auto bytes =
      wire::encode({.kind = wire::FrameKind::Failure, .fields = wire::failure_fields(why)},
                   wire::kControlLimits);
  // A fresh socket has room for it; when it has not, the end of the connection must do.
  if (bytes) static_cast<void>(::send(socket.get(), bytes->data(), bytes->size(), MSG_NOSIGNAL));
  trouble(fmt::format("{} was turned away: {}", who, why));
}

void FrameServer::State::read(ConnectionId number) { static_cast<void>(read_some(number)); }

/// Takes what has come, up to a bound; whether there was anything.
bool FrameServer::State::read_some(ConnectionId number) {
  Connection* connection = find(number);
  if (connection == nullptr) return false;
  std::array<char, kReadOfEach> bytes;  // NOLINT(*-member-init): only what was read is looked at.
  std::vector<sys::Descriptor> descriptors;
  const ssize_t count = sys::receive_with(connection->socket.get(), bytes, descriptors, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {
    if (connection->reader.in_frame()) {
      trouble(fmt::format("process {} went in the middle of a frame", connection->process));
    }
    close(number);
    return false;
  }
  for (sys::Descriptor& descriptor : descriptors) {
    if (connection->limits.shared_max == 0) {
      end(number, "descriptors are not taken here");
      return false;
    }
    if (const Result<void> taken = connection->arenas.take(std::move(descriptor)); !taken) {
      end(number, taken.error().message);
      return false;
    }
  }
  connection->reader.add({bytes.data(), static_cast<std::size_t>(count)});
  while (connection != nullptr) {
    auto next = connection->reader.next();
    if (!next) {
      end(number, next.error().message);
      return false;
    }
    std::optional<wire::Frame>& frame = *next;
    if (!frame) return true;
    take(number, *std::move(frame));
    connection = find(number);
  }
  return false;
}

void FrameServer::State::catch_up() {
  let_in_who_waits();
  std::vector<ConnectionId> all;
  all.reserve(connections.size());
  for (const auto& [number, connection] : connections) all.push_back(number);
  for (const ConnectionId number : all) catch_up(number);
}

void FrameServer::State::catch_up(ConnectionId number) {
  for (int i = 0; i < kReadsToCatchUp && read_some(number); ++i) {
  }
}

void FrameServer::State::take(ConnectionId number, wire::Frame frame) {
  Connection& connection = *find(number);
  await_more(connection);
  if (!connection.role && frame.kind == wire::FrameKind::Hello) return take_hello(number, frame);
  if (!connection.role) return end(number, "the first frame must be a hello");
  if (frame.kind == wire::FrameKind::Release && pool != nullptr) return take_release(number, frame);
  // Held while it is called: what is called may close the door, or end the server.
  const std::shared_ptr<Door> door = doors.at(*connection.role);
  if (frame.kind != door->takes) {
    return end(number, fmt::format("a frame of kind {} is not expected here",
                                   static_cast<int>(frame.kind)));
  }
  if (frame.shared.empty()) return door->on_frame(number, std::move(frame));
  const auto opened = connection.arenas.open(frame);
  if (!opened) return end(number, opened.error().message);
  const std::vector<wire::SharedBuffer> shared = frame.shared;
  const std::weak_ptr<State> weak = weak_from_this();
  door->on_frame(number, std::move(frame));
  if (!weak.expired()) release(number, shared);
}

void FrameServer::State::take_release(ConnectionId number, const wire::Frame& frame) {
  const Result<void> known = find(number)->arenas.released(frame.topic, *pool);
  if (!known) end(number, known.error().message);
}

/// So that the sender can use the arenas again.
void FrameServer::State::release(ConnectionId number,
                                 const std::vector<wire::SharedBuffer>& shared) {
  for (const wire::SharedBuffer& buffer : shared) {
    send(number, {.kind = wire::FrameKind::Release, .topic = buffer.arena});
  }
}

void FrameServer::State::take_hello(ConnectionId number, const wire::Frame& frame) {
  const auto hello = wire::read_hello(frame.fields);
  if (!hello) return end(number, hello.error().message);
  wire::Welcome welcome = wire::answer(*hello, options.program);
  const auto open = doors.find(hello->role);
  const std::shared_ptr<Door> door = open == doors.end() ? nullptr : open->second;
  if (welcome.ok && door == nullptr) {
    welcome = {.ok = false,
               .server = welcome.server,
               .error = fmt::format("role '{}' is not taken here", wire::to_text(hello->role))};
  }
  if (welcome.ok) {
    if (const Result<void> admitted = door->admit(number, *hello); !admitted) {
      welcome = {.ok = false, .server = welcome.server, .error = admitted.error().message};
    }
  }
  Connection* const connection = find(number);
  if (connection == nullptr) return;
  if (welcome.ok) {
    connection->role = hello->role;
    connection->limits = door->limits;
    connection->reader.set_limits(door->limits);
    connection->may_be_silent = door->may_be_silent;
    await_more(*connection);
  }
  send(number, {.kind = wire::FrameKind::Welcome,
                .sequence = frame.sequence,
                .fields = wire::to_fields(welcome)});
  if (!welcome.ok) {
    // `status` asks all sockets: those without this door say so to it alone.
    const bool only_looks = door == nullptr && hello->role == wire::Role::Control;
    return only_looks ? close(number) : cut_off(number, welcome.error);
  }
  if (door->on_welcome) door->on_welcome(number);
}

std::size_t FrameServer::State::strangers() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      connections, [](const auto& it) { return !it.second.role.has_value(); }));
}

void FrameServer::State::send(ConnectionId number, const wire::Frame& frame) {
  Connection* const connection = find(number);
  if (connection == nullptr) return;
  const auto bytes = wire::encode(frame, connection->limits);
  check(bytes.has_value(), "what is sent is within the limits");
  check(frame.shared.empty() || pool != nullptr, "a pool for what is shared");
  const bool was_waiting = !connection->unread.empty();
  std::vector<int> descriptors;
  if (!frame.shared.empty()) descriptors = connection->arenas.descriptors_with(frame, *pool);
  connection->unread.add(*bytes, descriptors);
  if (!was_waiting) write(number);
  Connection* const after = find(number);
  if (after == nullptr || after->unread.size() <= options.unread_bytes_max) return;
  cut_off(number, "it does not read its answers");
}

void FrameServer::State::write(ConnectionId number) {
  Connection* const connection = find(number);
  if (connection == nullptr) return;
  sys::Outgoing& unread = connection->unread;
  unread.send_some(connection->socket.get());
  if (unread.empty()) return;
  loop.when_writable(connection->socket.get(), when_alive(&State::write, number));
}

void FrameServer::State::end(ConnectionId number, const std::string& why) {
  send(number, {.kind = wire::FrameKind::Failure, .fields = wire::failure_fields(why)});
  cut_off(number, why);
}

void FrameServer::State::cut_off(ConnectionId number, const std::string& why) {
  Connection* const connection = find(number);
  if (connection == nullptr) return;
  trouble(fmt::format("process {} was cut off: {}", connection->process, why));
  close(number);
}

void FrameServer::State::close(ConnectionId number) {
  const auto found = connections.find(number);
  if (found == connections.end()) return;
  loop.unwatch(found->second.socket.get());
  const std::optional<wire::Role> role = found->second.role;
  if (pool != nullptr) found->second.arenas.drop_all(*pool);
  connections.erase(found);
  if (!role) return;
  const auto door = doors.find(*role);
  if (door == doors.end()) return;
  const std::shared_ptr<Door> held = door->second;
  held->on_gone(number);
}

void FrameServer::State::end_the_silent() {
  wakes.reset();
  const Duration now = sys::EventLoop::now();
  if (paused_until && *paused_until <= now) {
    paused_until.reset();
    watch_listener();
  }
  std::vector<std::uint64_t> silent;
  for (const auto& [number, connection] : connections) {
    if (connection.deadline && *connection.deadline <= now) silent.push_back(number);
  }
  for (const ConnectionId number : silent) {
    const Connection* const connection = find(number);
    if (connection == nullptr) continue;
    end(number,
        fmt::format("nothing was said for {}",
                    to_text(connection->role ? options.silence_max : options.hello_within)));
  }
  if (paused_until) wake_by(*paused_until);
  for (const auto& [number, connection] : connections) {
    if (connection.deadline) wake_by(*connection.deadline);
  }
}

void FrameServer::State::await_more(Connection& connection) {
  if (!connection.role) return;
  if (connection.may_be_silent) return connection.deadline.reset();
  connection.deadline = sys::EventLoop::now() + options.silence_max;
  wake_by(*connection.deadline);
}

/// Deadlines mostly move away, so a timer that is early enough stays, and finds nothing to do.
void FrameServer::State::wake_by(Duration due) {
  if (wakes && wakes->due <= due) return;
  if (wakes) loop.cancel(wakes->timer);
  const Duration delay = std::max(due - sys::EventLoop::now(), Duration{0});
  wakes = Wake{.timer = loop.after(delay, when_alive(&State::end_the_silent)), .due = due};
}

void FrameServer::State::trouble(std::string what) {
  const auto text = troubles.tell(std::move(what));
  if (text) options.on_trouble(*text);
}

FrameServer::FrameServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
FrameServer::~FrameServer() { state_->stop(); }

Result<std::unique_ptr<FrameServer>> FrameServer::listen(sys::EventLoop& loop,
                                                         FrameServerOptions options) {
  auto listener = listen_in_one_of(options.parents, options.before_made);
  if (!listener) return std::unexpected(std::move(listener.error()));
  auto state = std::make_shared<State>(loop, std::move(options), std::move(*listener));
  state->watch_listener();
  return std::unique_ptr<FrameServer>(new FrameServer(std::move(state)));
}

void FrameServer::open_door(wire::Role role, Door door) {
  const bool fresh =
      state_->doors.try_emplace(role, std::make_shared<Door>(std::move(door))).second;
  check(fresh, "one door for each role");
}

void FrameServer::close_door(wire::Role role) {
  std::vector<ConnectionId> inside;
  for (const auto& [number, connection] : state_->connections) {
    if (connection.role == role) inside.push_back(number);
  }
  for (const ConnectionId number : inside) state_->close(number);
  state_->doors.erase(role);
}

void FrameServer::send(ConnectionId connection, const wire::Frame& frame) {
  state_->send(connection, frame);
}

void FrameServer::end(ConnectionId connection, const std::string& why) {
  state_->end(connection, why);
}

std::int64_t FrameServer::process_of(ConnectionId connection) const {
  const Connection* const found = state_->find(connection);
  return found == nullptr ? 0 : found->process;
}

Result<sys::Descriptor> FrameServer::hand_over(ConnectionId connection) {
  const auto found = state_->connections.find(connection);
  if (found == state_->connections.end()) return std::unexpected(Error{"it has gone"});
  if (found->second.reader.in_frame() || !found->second.unread.empty()) {
    return std::unexpected(Error{"it says more than its hello"});
  }
  state_->loop.unwatch(found->second.socket.get());
  sys::Descriptor socket = std::move(found->second.socket);
  state_->connections.erase(found);
  return socket;
}

void FrameServer::use(ArenaPool& pool) { state_->pool = &pool; }

std::vector<std::span<const std::byte>> FrameServer::shared(ConnectionId connection,
                                                            const wire::Frame& frame) {
  Connection* const found = state_->find(connection);
  if (found == nullptr) return {};
  return found->arenas.open(frame).value_or(std::vector<std::span<const std::byte>>());
}

void FrameServer::let_be_silent(ConnectionId connection, bool may_be) {
  Connection* const found = state_->find(connection);
  if (found == nullptr) return;
  found->may_be_silent = may_be;
  state_->await_more(*found);
}

// The state is held: what is called may end the server.
void FrameServer::catch_up() { std::shared_ptr(state_)->catch_up(); }
void FrameServer::catch_up(ConnectionId number) { std::shared_ptr(state_)->catch_up(number); }

const std::string& FrameServer::path() const { return state_->listener.path; }
std::size_t FrameServer::connections() const { return state_->connections.size(); }

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return std::unexpected(sys::system_error("cannot see who connects", errno));
  }
  return Peer{.process = credentials.pid, .user = credentials.uid};
}

}  // namespace trainyard::link
