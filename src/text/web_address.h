// The address of a web service that receives news, as configured. The part after its host is often
// a secret: anyone who has it may write there. So only the host is ever shown, and no error quotes
// the configured text. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::text {

struct WebAddress {
  static constexpr std::size_t kBytesMax = 2048;

  std::string url;   ///< As configured: "https://hooks.example.com/services/T0/B0/secret".
  std::string host;  ///< For people, with its port where it has one: "hooks.example.com".

  /// The form for public places: "https://hooks.example.com/***".
  [[nodiscard]] std::string shown() const;

  friend bool operator==(const WebAddress&, const WebAddress&) = default;
};

/// https:// or http://, then a host; printable, without blanks. A name and a password before the
/// host are allowed, and not shown.
Result<WebAddress> read_web_address(std::string_view text);

}  // namespace trainyard::text
