#include "workers/nats_address.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <expected>
#include <system_error>

#include <fmt/format.h>

namespace trainyard::workers {
namespace {

constexpr std::string_view kPlain = "nats://";
constexpr std::string_view kSecure = "tls://";
constexpr std::string_view kUsualPort = "4222";
constexpr std::size_t kRunNameBytesMax = 64;

Error no_address() {
  return Error{
      "an address of a server of NATS is nats://[token@|user:password@]host:port, or tls://"};
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65'535;
}

}  // namespace

Result<NatsAddress> read_nats_address(std::string_view text) {
  NatsAddress address;
  if (text.starts_with(kSecure)) {
    address.is_secure = true;
    text.remove_prefix(kSecure.size());
  } else if (text.starts_with(kPlain)) {
    text.remove_prefix(kPlain.size());
  } else {
    return std::unexpected(no_address());
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  const std::size_t at = text.rfind('@');
  const std::string_view who = at == std::string_view::npos ? "" : text.substr(0, at + 1);
  std::string_view host = text.substr(who.size());
  std::string_view port = kUsualPort;
  // Behind the last colon that does not stand in an address of IPv6.
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  const bool has_odd_letters = std::ranges::any_of(text, [](char letter) {
    return letter == '/' || letter == ',' || static_cast<unsigned char>(letter) <= ' ';
  });
  if (host.empty() || !is_port(port) || has_odd_letters) return std::unexpected(no_address());
  address.has_credentials = !who.empty();
  address.name = fmt::format("{}:{}", host, port);
  address.url = fmt::format("nats://{}{}", who, address.name);
  return address;
}

bool is_run_name(std::string_view run) {
  return !run.empty() && run.size() <= kRunNameBytesMax &&
         std::ranges::all_of(run, [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                  (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
         });
}

std::string subject_of_machine(std::string_view run, MachineId machine) {
  return fmt::format("trainyard.{}.machine.{:016x}", run, machine);
}

std::string subject_of_hub(std::string_view run) { return fmt::format("trainyard.{}.hub", run); }

std::string subjects_of(std::string_view run) { return fmt::format("trainyard.{}.>", run); }

}  // namespace trainyard::workers
