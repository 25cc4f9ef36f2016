#include "workers/parallel_options.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "sys/descriptor.h"
#include "trainyard/step_options.h"
#include "wire/worker.h"

namespace trainyard {

std::string_view to_text(Topology topology) {
  static constexpr std::array<std::string_view, 3> kWords{"mesh", "star", "alone"};
  return kWords.at(static_cast<std::size_t>(topology));
}

std::string_view to_text(WhenFull when_full) {
  static constexpr std::array<std::string_view, 3> kWords{"block", "drop oldest", "fail"};
  return kWords.at(static_cast<std::size_t>(when_full));
}

}  // namespace trainyard

namespace trainyard::workers {
namespace {

constexpr int kFirstPort = 50'515;
/// As many as one machine is asked for: each is a process.
constexpr int kWorkersMax = 1'024;

Error wrong(std::string what) { return Error{std::move(what)}; }

/// An error: there is a path, and no file that can be read. Not read: it may be a pipe.
Result<void> check_readable(std::string_view option, const std::string& path,
                            std::string_view cure) {
  if (path.empty()) return {};
  std::error_code ignored;
  int why = std::filesystem::is_directory(path, ignored) ? EISDIR : 0;
  if (why == 0 && ::access(path.c_str(), R_OK) != 0) why = errno;
  if (why == 0) return {};
  return std::unexpected(wrong(
      fmt::format("{}: {}; {}", option,
                  sys::system_error(fmt::format("cannot read '{}'", path), why).message, cure)));
}

Result<void> check_nats_files(const NatsOptions& nats) {
  Result<void> readable =
      check_readable("ca_file (--nats-ca)", nats.ca_file, "give a file of certificates (PEM)");
  if (!readable) return readable;
  return check_readable("nkey_seed_file (--nats-seed)", nats.nkey_seed_file,
                        "give the file that has the seed of the nkey");
}

}  // namespace

Result<std::vector<int>> padded(const std::vector<int>& given, int workers, int start,
                                const std::string& what) {
  if (given.size() <= 1) {
    std::vector<int> all(static_cast<std::size_t>(workers));
    int next = given.empty() ? start : given.front();
    std::ranges::generate(all, [&next] { return next++; });
    return all;
  }
  if (given.size() != static_cast<std::size_t>(workers)) {
    return std::unexpected(wrong(
        fmt::format("{} {} are given, and there are {} workers", given.size(), what, workers)));
  }
  return given;
}

Result<std::vector<NatsAddress>> plan_servers(const ParallelOptions& options) {
  std::vector<NatsAddress> servers;
  if (options.attach_to.empty()) {
    if (!options.joins && options.workers_elsewhere == 0) return servers;
    return std::unexpected(
        wrong("workers of other machines need a server: set attach_to (--attach)"));
  }
  if (!is_run_name(options.run)) {
    return std::unexpected(
        wrong("run (--run): the name of a run must have 1 to 64 letters, digits, '-' and '_'"));
  }
  if (options.joins != (options.workers_elsewhere == 0) || options.workers_elsewhere < 0 ||
      options.workers_elsewhere >= wire::kNodesMax) {
    return std::unexpected(wrong(
        "the machine that begins a run sets workers_elsewhere (--elsewhere), one that joins it "
        "sets joins (--join) instead"));
  }
  if (options.nats.nkey.empty() != options.nats.nkey_seed_file.empty()) {
    return std::unexpected(
        wrong("nkey (--nats-nkey) and nkey_seed_file (--nats-seed) must be set together"));
  }
  if (!options.nats.token.empty() && !options.nats.user.empty()) {
    return std::unexpected(
        wrong("token (TRAINYARD_NATS_TOKEN) and user (TRAINYARD_NATS_USER) are both set, and a "
              "server takes one of them: unset the other"));
  }
  if (options.nats.lost_after.count() < 1) {
    return std::unexpected(wrong("lost_after (--lost-after) must be at least 1 ms"));
  }
  for (const std::string& each : options.attach_to) {
    auto server = read_nats_address(each);
    if (!server) return std::unexpected(std::move(server.error()));
    servers.push_back(*std::move(server));
    if (servers.back().is_secure != servers.front().is_secure) {
      return std::unexpected(
          wrong("attach_to (--attach): either all addresses are tls:// or none"));
    }
  }
  const bool has_credentials = !options.nats.token.empty() || !options.nats.user.empty();
  if (has_credentials && std::ranges::any_of(servers, &NatsAddress::has_credentials)) {
    return std::unexpected(wrong(fmt::format(
        "attach_to (--attach) has an address with a token or a user, and {} is set, too: a server "
        "takes one of them, so unset it or write the address as nats://host:4222",
        options.nats.token.empty() ? "user (TRAINYARD_NATS_USER)"
                                   : "token (TRAINYARD_NATS_TOKEN)")));
  }
  const bool is_secure = servers.front().is_secure;
  if (!is_secure && !(options.nats.ca_file.empty() && options.nats.host_name.empty())) {
    return std::unexpected(
        wrong("ca_file (--nats-ca) and host_name (--nats-host) are for tls:// and have no effect "
              "on nats://: write the addresses as tls://host:4222, or leave them out"));
  }
  if (Result<void> readable = check_nats_files(options.nats); !readable) {
    return std::unexpected(std::move(readable.error()));
  }
  return servers;
}

Result<std::vector<WorkerPlan>> plan_workers(const ParallelOptions& options) {
  if (options.workers < 1 || options.workers > kWorkersMax) {
    return std::unexpected(
        wrong(fmt::format("there can be 1 to {} workers, not {}", kWorkersMax, options.workers)));
  }
  const auto nodes = padded(options.node_ids, options.workers, 0, "node ids");
  if (!nodes) return std::unexpected(nodes.error());
  const auto ports = padded(options.ports, options.workers, kFirstPort, "ports");
  if (!ports) return std::unexpected(ports.error());
  if (options.roles.size() > nodes->size()) {
    return std::unexpected(wrong(fmt::format("roles are given for {} workers, but there are {}",
                                             options.roles.size(), options.workers)));
  }
  if (options.queue.events_max == 0 || options.queue.bytes_max == 0) {
    return std::unexpected(wrong("a queue holds at least one event, and one byte"));
  }
  if (const auto servers = plan_servers(options); !servers) {
    return std::unexpected(servers.error());
  }
  if (options.stop_grace.count() < 0 || options.retry_delay.count() < 0) {
    return std::unexpected(wrong("stop_grace and retry_delay are at least 0"));
  }
  if (options.show && options.directory.empty()) {
    return std::unexpected(wrong("what is shown is kept, too: show needs a directory"));
  }
  if (options.max_retries < 0) return std::unexpected(wrong("max_retries is at least 0"));
  for (const std::string& label : options.labels) {
    if (const auto unfit = wire::wrong_worker_name(label)) {
      return std::unexpected(wrong(fmt::format("labels: {}", *unfit)));
    }
  }
  std::vector<WorkerPlan> plan;
  std::set<int> known;
  std::set<int> known_ports;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const int node = (*nodes)[i];
    const int port = (*ports)[i];
    if (node < 0 || node >= wire::kNodesMax) {
      return std::unexpected(
          wrong(fmt::format("a node id is 0 to {}, not {}", wire::kNodesMax - 1, node)));
    }
    if (!known.insert(node).second) {
      return std::unexpected(wrong(fmt::format("two workers have the node id {}", node)));
    }
    if (port < 1 || port > std::numeric_limits<std::uint16_t>::max()) {
      return std::unexpected(wrong(fmt::format("a port is 1 to 65535, not {}", port)));
    }
    if (!known_ports.insert(port).second) {
      return std::unexpected(wrong(fmt::format(
          "two workers have the port {}: give each another one, or only the first", port)));
    }
    WorkerPlan one{.node = node, .port = port};
    if (i < options.roles.size()) {
      for (const Role role : options.roles[i]) {
        if (std::ranges::find(one.roles, role.name) != one.roles.end()) {
          return std::unexpected(
              wrong(fmt::format("roles of worker {}: duplicate role '{}'", node, role.name)));
        }
        if (const auto unfit = wire::wrong_worker_name(role.name)) {
          return std::unexpected(wrong(fmt::format("roles of worker {}: {}", node, *unfit)));
        }
        one.roles.emplace_back(role.name);
      }
    }
    plan.push_back(std::move(one));
  }
  return plan;
}

}  // namespace trainyard::workers
