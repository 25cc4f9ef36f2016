#include "link/control_client.h"

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "link/conversation.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {

Result<wire::ControlReply> ask(const std::string& socket_path, const wire::ControlRequest& request,
                               const AskOptions& options) {
  constexpr std::uint64_t kRequestSequence = 2;
  Conversation conversation({.with = fmt::format("the run in '{}'", options.run),
                             .within = options.within,
                             .limits = wire::kRequestLimits});
  Result<void> greeted = conversation.connect(socket_path);
  if (greeted) {
    greeted = conversation.greet({.role = wire::Role::Control,
                                  .version = wire::kProtocolVersion,
                                  .program = options.program,
                                  .token = {}});
  }
  if (!greeted) return std::unexpected(std::move(greeted.error()));
  const auto answered = conversation.exchange({.kind = wire::FrameKind::Request,
                                               .sequence = kRequestSequence,
                                               .fields = wire::to_fields(request),
                                               .buffers = wire::to_buffers(request),
                                               .shared = {}},
                                              wire::FrameKind::Reply);
  if (!answered) return std::unexpected(answered.error());
  auto reply = wire::read_reply(answered->fields);
  if (!reply) return conversation.not_understood(reply.error().message);
  return reply;
}

}  // namespace trainyard::link
