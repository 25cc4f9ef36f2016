#include "process/guard_words.h"

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include <sys/socket.h>

#include "model/event.h"
#include "sys/packing.h"
#include "sys/passing.h"

namespace trainyard::process {
namespace {

/// A path, and what is around it.
constexpr std::size_t kYardWordMax = PATH_MAX + 64;
constexpr std::size_t kExitSize = 3 * sizeof(std::uint32_t) + 4 * sizeof(bool);
constexpr std::size_t kGuardWordMax = 256 + ExitBoard::kPlaces * kExitSize;

/// A packet, with what came with it.
struct Packet {
  std::string bytes;
  std::vector<sys::Descriptor> descriptors;
  bool closed = false;
};

std::optional<Packet> receive(const sys::Descriptor& socket, std::size_t size_max, int flags) {
  std::vector<char> buffer(size_max + 1);
  Packet packet;
  for (;;) {
    const ssize_t got = sys::receive_with(socket.get(), buffer, packet.descriptors, flags);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return std::nullopt;
    packet.closed = got <= 0 || static_cast<std::size_t>(got) > size_max;
    if (!packet.closed) packet.bytes.assign(buffer.data(), static_cast<std::size_t>(got));
    return packet;
  }
}

void send(const sys::Descriptor& socket, std::string_view bytes,
          std::span<const int> descriptors = {}) {
  while (sys::send_with(socket.get(), bytes, descriptors, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
         errno == EINTR) {
  }
}

void add_exit(sys::Packing& packing, const UnreportedExit& it) {
  const auto* const killed = std::get_if<model::KilledBy>(&it.exit);
  packing.add(it.key.task.value);
  packing.add(it.key.attempt);
  packing.add(killed != nullptr);
  packing.add(
      std::int32_t{killed != nullptr ? killed->signal : std::get<model::ExitedWith>(it.exit).code});
  packing.add(killed != nullptr && killed->out_of_memory);
  packing.add(killed != nullptr && killed->over_limit);
  packing.add(it.was_signalled);
}

UnreportedExit exit_from(sys::Unpacking& packed) {
  UnreportedExit it;
  it.key.task.value = packed.number<std::uint32_t>();
  it.key.attempt = packed.number<std::uint32_t>();
  const bool was_killed = packed.number<bool>();
  const auto number = packed.number<std::int32_t>();
  model::KilledBy killed{.signal = number, .out_of_memory = packed.number<bool>()};
  killed.over_limit = packed.number<bool>();
  it.was_signalled = packed.number<bool>();
  if (was_killed) {
    it.exit = killed;
  } else {
    it.exit = model::ExitedWith{number};
  }
  return it;
}

}  // namespace

void send_word(const sys::Descriptor& socket, const ToGuard& word) {
  sys::Packing packing;
  packing.add(static_cast<std::uint8_t>(word.kind));
  packing.add(word.path);
  send(socket, std::move(packing).take());
}

void send_word(const sys::Descriptor& socket, const FromGuard& word) {
  sys::Packing packing;
  packing.add(std::int32_t{word.keeper.value_or(0)});
  packing.add(word.died.has_value());
  packing.add(std::int32_t{word.died.value_or(0)});
  packing.add(word.was_silent);
  packing.add(std::int32_t{word.in_a_row});
  packing.add(std::int32_t{word.error});
  packing.add(static_cast<std::uint32_t>(word.exits.size()));
  for (const UnreportedExit& it : word.exits) add_exit(packing, it);
  const std::string bytes = std::move(packing).take();
  if (!word.socket.is_open()) return send(socket, bytes);
  const std::array<int, 1> descriptor{word.socket.get()};
  send(socket, bytes, descriptor);
}

Heard<ToGuard> hear_yard(const sys::Descriptor& socket) {
  const std::optional<Packet> packet = receive(socket, kYardWordMax, MSG_DONTWAIT);
  if (!packet) return {};
  if (packet->closed) return {.word = {}, .closed = true};
  sys::Unpacking packed(packet->bytes);
  // NOLINTNEXTLINE(*EnumCastOutOfRange): whoever looks at it knows these alone.
  ToGuard word{.kind = static_cast<ToGuard::Kind>(packed.number<std::uint8_t>()),
               .path = packed.text()};
  return {.word = std::move(word)};
}

Heard<FromGuard> hear_guard(const sys::Descriptor& socket, bool waits) {
  std::optional<Packet> packet = receive(socket, kGuardWordMax, waits ? 0 : MSG_DONTWAIT);
  if (!packet) return {};
  if (packet->closed) return {.word = {}, .closed = true};
  sys::Unpacking packed(packet->bytes);
  FromGuard word;
  if (const auto pid = packed.number<std::int32_t>(); pid > 0) word.keeper = pid;
  const bool died = packed.number<bool>();
  const auto status = packed.number<std::int32_t>();
  if (died) word.died = status;
  word.was_silent = packed.number<bool>();
  word.in_a_row = packed.number<std::int32_t>();
  word.error = packed.number<std::int32_t>();
  for (std::size_t left = packed.count(); left > 0; --left) {
    word.exits.push_back(exit_from(packed));
  }
  if (!packet->descriptors.empty()) word.socket = std::move(packet->descriptors.front());
  // A word about a keeper without its end of the socket is of no use: the descriptor was lost on
  // its way.
  if (word.keeper && !word.socket.is_open()) word.keeper.reset();
  return {.word = std::move(word)};
}

}  // namespace trainyard::process
