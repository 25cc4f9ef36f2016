// Asks a yard at work for something: the other end of link/control_server.h.
//
// Blocks, and keeps nothing open. For programs that do one thing and end; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "wire/control.h"

namespace trainyard::link {

struct AskOptions {
  std::string run;         ///< The run as the user typed it: its directory. For errors.
  std::string program;     ///< Who asks: "trainyard kill 0.1.0".
  Duration within{5'000};  ///< From the first attempt to connect to the last byte of the answer.
  /// Called once, when the yard has been sent all requests; answers may have come before. Optional.
  std::function<void()> on_all_sent = nullptr;
};

/// Connects, asks, waits for the answer. An error says that nobody is there ("the run in 'x' is not
/// running"), that we may not, that there was no answer in time, or what was wrong with it. That
/// the yard could not do it is no error: the reply says so.
Result<wire::ControlReply> ask(const std::string& socket_path, const wire::ControlRequest& request,
                               const AskOptions& options);

/// How many requests wait for their answers at a time: a server bounds them (ControlLimits).
constexpr std::size_t kAskedAtOnce = 256;

/// The same for several requests over one connection, which are answered in any order. The answers
/// are in the order of the requests. Where the yard ends after it has answered some of them, as it
/// does when the last of its tasks is killed, the others have its end as an Outcome::Error.
/// Any other error is one of all of them.
Result<std::vector<wire::ControlReply>> ask_all(const std::string& socket_path,
                                                std::span<const wire::ControlRequest> requests,
                                                const AskOptions& options);

}  // namespace trainyard::link
