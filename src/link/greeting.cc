#include "link/greeting.h"

#include <expected>

#include "wire/control.h"
#include "wire/frame.h"

namespace trainyard::link {

Result<void> greet(FrameSocket& socket, const wire::Hello& hello, const std::string& with) {
  Result<void> said =
      socket.send({.kind = wire::FrameKind::Hello, .fields = wire::to_fields(hello)});
  if (!said) return said;
  const auto frame = socket.wait_for_frame();
  if (!frame) return std::unexpected(Error{with + ": " + frame.error().message});
  if (frame->kind == wire::FrameKind::Failure) {
    return std::unexpected(Error{"refused: " + wire::read_failure(frame->fields)});
  }
  const auto welcome = wire::read_welcome(frame->fields);
  if (!welcome) return std::unexpected(welcome.error());
  if (!welcome->ok) return std::unexpected(Error{"refused: " + welcome->error});
  return {};
}

}  // namespace trainyard::link
