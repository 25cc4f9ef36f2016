// The address of a service on the web that is told something, as a person writes it. The part
// behind its host is often a secret: whoever has it may write there. So only the host is ever
// shown, and no error quotes what was written. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::text {

struct WebAddress {
  static constexpr std::size_t kBytesMax = 2048;

  std::string url;   ///< As written: "https://hooks.example.com/services/T0/B0/secret".
  std::string host;  ///< For people, with its port where it has one: "hooks.example.com".

  /// What stands in its place where anybody may look: "https://hooks.example.com/***".
  [[nodiscard]] std::string shown() const;

  friend bool operator==(const WebAddress&, const WebAddress&) = default;
};

/// https:// or http://, then a host; printable, without blanks. A name and a password before the
/// host are allowed, and not shown.
Result<WebAddress> read_web_address(std::string_view text);

}  // namespace trainyard::text
