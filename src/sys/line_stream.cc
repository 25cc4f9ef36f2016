#include "sys/line_stream.h"

#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <sys/types.h>

#include <fmt/format.h>

namespace trainyard::sys {

LineStream::LineStream(EventLoop& loop, Descriptor socket, Options options)
    : loop_(loop),
      socket_(std::move(socket)),
      options_(std::make_shared<Options>(std::move(options))) {
  loop_.watch_readable(socket_.get(), [this] { read(); });
}

LineStream::~LineStream() {
  if (!ended_) loop_.unwatch(socket_.get());
}

void LineStream::read() {
  std::array<char, 65536> buffer;  // NOLINT(*-member-init): written by recv, and large.
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got < 0) return end(error_text(errno));
  if (got == 0) return end("it was closed");
  std::string_view rest(buffer.data(), static_cast<std::size_t>(got));
  const std::weak_ptr<int> alive = alive_;
  const std::shared_ptr<Options> options = options_;
  for (std::size_t length = rest.find('\n'); length != std::string_view::npos;
       length = rest.find('\n')) {
    incoming_ += rest.substr(0, length);
    rest.remove_prefix(length + 1);
    const std::string line = std::exchange(incoming_, {});
    options->on_line(line);
    if (alive.expired() || ended_) return;
  }
  incoming_ += rest;
  if (incoming_.size() > options->line_max) {
    end(fmt::format("a line is longer than {} bytes", options->line_max));
  }
}

void LineStream::send(std::string_view line) {
  if (ended_) return;
  outgoing_.add(line, {});
  outgoing_.add("\n", {});
  if (!waits_for_room_) write();
}

/// Errors are ignored here: a missing reader is noticed by reading.
void LineStream::write() {
  outgoing_.send_some(socket_.get());
  waits_for_room_ = !outgoing_.empty();
  if (waits_for_room_) loop_.when_writable(socket_.get(), [this] { write(); });
}

void LineStream::end(const std::string& why) {
  ended_ = true;
  loop_.unwatch(socket_.get());
  socket_.close();
  const std::shared_ptr<Options> options = options_;
  options->on_end(why);
}

}  // namespace trainyard::sys
