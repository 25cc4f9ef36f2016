#include "link/control_server.h"

#include <cstdint>
#include <expected>
#include <map>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {

Reply& Reply::operator=(Reply&& other) noexcept {
  // The reply that `other` has afterwards is answered in its destructor.
  std::swap(send_, other.send_);
  return *this;
}

Reply::~Reply() {
  if (send_) (*this)({.outcome = wire::Outcome::Error, .text = "the request was not answered"});
}

void Reply::operator()(const wire::ControlReply& reply) {
  check(static_cast<bool>(send_), "a request that is answered once");
  std::exchange(send_, nullptr)(reply);
}

struct ControlServer::State : std::enable_shared_from_this<State> {
  State(FrameServer& with, ControlLimits within, OnRequest to)
      : server(with), limits(within), on_request(std::move(to)) {}

  Result<void> admit(ConnectionId connection);
  void take(ConnectionId connection, const wire::Frame& frame);
  void reply(ConnectionId connection, std::uint64_t sequence, const wire::ControlReply& reply);

  FrameServer& server;
  ControlLimits limits;
  OnRequest on_request;
  std::map<ConnectionId, std::size_t> unanswered;  ///< Of each connection.
};

Result<void> ControlServer::State::admit(ConnectionId connection) {
  if (unanswered.size() >= limits.connections_max) {
    return std::unexpected(
        Error{fmt::format("there are {} control connections already", unanswered.size())});
  }
  unanswered.try_emplace(connection, 0);
  return {};
}

void ControlServer::State::take(ConnectionId connection, const wire::Frame& frame) {
  std::size_t& open = unanswered.at(connection);
  if (open == limits.unanswered_max) {
    return server.end(connection,
                      fmt::format("more than {} requests at once", limits.unanswered_max));
  }
  ++open;
  server.let_be_silent(connection, true);
  auto request = wire::read_request(frame.fields, frame.buffers);
  if (!request) {
    return reply(connection, frame.sequence,
                 {.outcome = wire::Outcome::Error, .text = request.error().message});
  }
  on_request(std::move(*request), Reply([weak = weak_from_this(), connection,
                                         sequence = frame.sequence](const auto& answer) {
               const auto held = weak.lock();
               if (held) held->reply(connection, sequence, answer);
             }));
}

void ControlServer::State::reply(ConnectionId connection, std::uint64_t sequence,
                                 const wire::ControlReply& reply) {
  const auto found = unanswered.find(connection);
  if (found == unanswered.end()) return;
  --found->second;
  server.let_be_silent(connection, found->second > 0);
  server.send(
      connection,
      {.kind = wire::FrameKind::Reply, .sequence = sequence, .fields = wire::to_fields(reply)});
}

ControlServer::ControlServer(FrameServer& server, ControlLimits limits, OnRequest on_request)
    : state_(std::make_shared<State>(server, limits, std::move(on_request))) {
  const std::weak_ptr<State> weak = state_;
  server.open_door(wire::Role::Control,
                   {.takes = wire::FrameKind::Request,
                    .limits = wire::kRequestLimits,
                    .admit = [weak](ConnectionId connection,
                                    const wire::Hello&) { return weak.lock()->admit(connection); },
                    .on_frame =
                        [weak](ConnectionId connection, const wire::Frame& frame) {
                          // Held: the callback may end the server.
                          const std::shared_ptr<State> held = weak.lock();
                          if (held) held->take(connection, frame);
                        },
                    .on_gone =
                        [weak](ConnectionId connection) {
                          if (const auto held = weak.lock()) held->unanswered.erase(connection);
                        }});
}

ControlServer::~ControlServer() { state_->server.close_door(wire::Role::Control); }

}  // namespace trainyard::link
