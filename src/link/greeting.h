// The hello on a connection whose other end may speak at once: what comes together with its welcome
// stays in the socket's reader. Any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "link/frame_socket.h"
#include "wire/hello.h"

namespace trainyard::link {

/// Says who we are, and waits for the answer. An error says why we are not let in; `with` is what
/// it calls the other end.
Result<void> greet(FrameSocket& socket, const wire::Hello& hello, const std::string& with);

}  // namespace trainyard::link
