#include "link/control_client.h"

#include <cstdint>
#include <expected>
#include <utility>

#include <fmt/format.h>

#include "link/conversation.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {
namespace {

/// The hello is the first.
constexpr std::uint64_t kFirstSequence = 2;

Result<void> greet(Conversation& conversation, const std::string& socket_path,
                   const AskOptions& options) {
  Result<void> connected = conversation.connect(socket_path);
  if (!connected) return connected;
  return conversation.greet(
      {.role = wire::Role::Control, .version = wire::kProtocolVersion, .program = options.program});
}

Result<void> tell(Conversation& conversation, const wire::ControlRequest& request,
                  std::uint64_t sequence) {
  return conversation.tell({.kind = wire::FrameKind::Request,
                            .sequence = sequence,
                            .fields = wire::to_fields(request),
                            .buffers = wire::to_buffers(request)});
}

std::vector<wire::ControlReply> ended(std::vector<wire::ControlReply> replies,
                                      const std::vector<bool>& answered, const Error& how) {
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!answered[i]) replies[i] = {.outcome = wire::Outcome::Error, .text = how.message};
  }
  return replies;
}

}  // namespace

Result<std::vector<wire::ControlReply>> ask_all(const std::string& socket_path,
                                                std::span<const wire::ControlRequest> requests,
                                                const AskOptions& options) {
  Conversation conversation({.with = fmt::format("the run in '{}'", options.run),
                             .within = options.within,
                             .limits = wire::kRequestLimits});
  Result<void> done = greet(conversation, socket_path, options);
  std::vector<wire::ControlReply> replies(requests.size());
  std::vector<bool> answered(requests.size(), false);
  std::size_t sent = 0;
  for (std::size_t received = 0; done && received < requests.size(); ++received) {
    for (; done && sent < requests.size() && sent - received < kAskedAtOnce; ++sent) {
      done = tell(conversation, requests[sent], kFirstSequence + sent);
      if (done && sent + 1 == requests.size() && options.on_all_sent) options.on_all_sent();
    }
    if (!done) break;
    const Result<wire::Frame> frame = conversation.hear(wire::FrameKind::Reply);
    if (!frame && received > 0 && conversation.has_ended()) {
      return ended(std::move(replies), answered, frame.error());
    }
    if (!frame) return std::unexpected(frame.error());
    const std::uint64_t place = frame->sequence - kFirstSequence;
    if (place >= sent || answered[place]) {
      return conversation.not_understood("an answer to something else");
    }
    Result<wire::ControlReply> reply = wire::read_reply(frame->fields);
    if (!reply) return conversation.not_understood(reply.error().message);
    replies[place] = std::move(*reply);
    answered[place] = true;
  }
  if (!done) return std::unexpected(std::move(done.error()));
  return replies;
}

Result<wire::ControlReply> ask(const std::string& socket_path, const wire::ControlRequest& request,
                               const AskOptions& options) {
  Result<std::vector<wire::ControlReply>> replies = ask_all(socket_path, {&request, 1}, options);
  if (!replies) return std::unexpected(std::move(replies.error()));
  return std::move(replies->front());
}

}  // namespace trainyard::link
