#include "text/web_address.h"

#include <algorithm>
#include <cctype>
#include <expected>

#include <fmt/format.h>

namespace trainyard::text {
namespace {

constexpr std::string_view kSecure = "https://";
constexpr std::string_view kUnsecured = "http://";

bool is_printable(char c) { return c > ' ' && c < '\x7f'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_of_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
         c == '_';
}

/// "example.com", "example.com:8080", "[::1]:8080".
bool is_host(std::string_view text) {
  std::string_view port;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos || end == 1) return false;
    const auto of_address = [](char c) {
      return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '.';
    };
    if (!std::ranges::all_of(text.substr(1, end - 1), of_address)) return false;
    port = text.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return false;
  } else {
    const auto colon = std::min(text.find(':'), text.size());
    if (colon == 0 || !std::ranges::all_of(text.substr(0, colon), is_of_name)) return false;
    port = text.substr(colon);
  }
  if (port.empty()) return true;
  port.remove_prefix(1);
  return !port.empty() && port.size() <= 5 && std::ranges::all_of(port, is_digit);
}

}  // namespace

std::string WebAddress::shown() const {
  return fmt::format("{}{}/***", url.starts_with(kUnsecured) ? kUnsecured : kSecure, host);
}

Result<WebAddress> read_web_address(std::string_view text) {
  const bool secure = text.starts_with(kSecure);
  if (!secure && !text.starts_with(kUnsecured)) {
    return std::unexpected(
        Error{"is not a valid address; it must start with https://, as in "
              "https://hooks.example.com/..."});
  }
  if (text.size() > WebAddress::kBytesMax) {
    return std::unexpected(
        Error{fmt::format("the address is longer than {} bytes", WebAddress::kBytesMax)});
  }
  if (!std::ranges::all_of(text, is_printable)) {
    return std::unexpected(Error{
        "the address has a blank or a character beyond ASCII; such are written as %20 and the "
        "like"});
  }
  std::string_view host = text.substr(secure ? kSecure.size() : kUnsecured.size());
  host = host.substr(0, host.find_first_of("/?#"));
  if (const auto at = host.rfind('@'); at != std::string_view::npos) host.remove_prefix(at + 1);
  if (!is_host(host)) {
    return std::unexpected(
        Error{"the address has no host; write it as in https://hooks.example.com/..."});
  }
  return WebAddress{.url = std::string(text), .host = std::string(host)};
}

}  // namespace trainyard::text
