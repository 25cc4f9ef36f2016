// The first exchange on a connection: who connects says what it is, and is let in or not.
// Plain values and their fields; no sockets, no state, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::wire {

/// The purpose of a connection.
enum class Role : std::uint8_t {
  Control,  ///< A person's command: asks and gets an answer.
  Task,     ///< The first connection of an attempt.
  Helper,   ///< A further one: a data loader, a command within a task.
  Rank,     ///< One of the processes of a task that has several.
  Worker,   ///< One of the processes of a parallel run (wire/worker.h).
};

std::string_view to_text(Role role);

struct Hello {
  Role role = Role::Control;
  int version = 1;
  std::string program;       ///< For logs: "trainyard kill 0.1.0".
  std::string token;         ///< The token of a task or worker; empty for control.
  std::optional<int> rank;   ///< The number of a rank or worker, from 0.
  std::optional<int> ranks;  ///< The number of ranks that it expects; of ranks only.

  friend bool operator==(const Hello&, const Hello&) = default;
};

struct Welcome {
  bool ok = false;
  std::string server;  ///< "trainyard 0.1.0"
  std::string error;   ///< Why not, for people; empty when it is ok.

  friend bool operator==(const Welcome&, const Welcome&) = default;
};

/// To and from the fields of a frame. Members that nobody knows are skipped: a later version may
/// say more. An error says which member is wrong.
std::string to_fields(const Hello& hello);
std::string to_fields(const Welcome& welcome);
Result<Hello> read_hello(std::string_view fields);
Result<Welcome> read_welcome(std::string_view fields);

/// The answer of `server` to a hello: a welcome, or a refusal because of its version. Which roles
/// are taken is the server's business.
Welcome answer(const Hello& hello, std::string_view server);

}  // namespace trainyard::wire
