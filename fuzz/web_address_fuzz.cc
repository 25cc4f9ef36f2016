// Whatever somebody writes as the address of a service: one with a host that is shown, or none.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/result.h"
#include "text/web_address.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const trainyard::Result<trainyard::text::WebAddress> address =
      trainyard::text::read_web_address(text);
  if (!address) return 0;
  check(address->url == text, "it is kept as written");
  check(!address->host.empty() && text.contains(address->host), "its host is a part of it");
  check(address->host.find_first_of("@/?# \n\"<>\x1b") == std::string_view::npos,
        "nothing but a host");
  const auto shown = trainyard::text::read_web_address(address->shown());
  check(shown.has_value() && shown->host == address->host, "what is shown has the same host");
  return 0;
}
