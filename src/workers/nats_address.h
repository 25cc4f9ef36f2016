// Addresses of servers of NATS, and the subjects by which the machines of a run speak over them.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workers/datagram.h"

namespace trainyard::workers {

struct NatsAddress {
  std::string url;   ///< As libnats takes it, with what it has of a user or a token.
  std::string name;  ///< For people: host and port, and no secret.
  bool is_secure = false;
  bool has_credentials = false;  ///< A token or a user.

  friend bool operator==(const NatsAddress&, const NatsAddress&) = default;
};
/// "nats://[token@|user:password@]host[:port]", or tls://. An error does not quote it.
Result<NatsAddress> read_nats_address(std::string_view text);

/// Whether subjects can have it.
bool is_run_name(std::string_view run);
/// Whatever is for that machine.
std::string subject_of_machine(std::string_view run, MachineId machine);
/// The subject to which workers send their request to join.
std::string subject_of_hub(std::string_view run);
/// All of the run, as permissions of a user name them.
std::string subjects_of(std::string_view run);

}  // namespace trainyard::workers
