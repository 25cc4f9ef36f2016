// Text as it may stand in HTML. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trainyard::report {

/// In one line, with everything escaped that could end an element or an attribute.
std::string html(std::string_view text);

/// What a colour of a picture, a class of page.css, means.
struct LegendEntry {
  std::string_view look;
  std::string_view word;
};
std::string legend_of(std::span<const LegendEntry> entries);

/// A relative path as a link, percent-encoded; slashes stay.
std::string link_to(std::string_view path);

}  // namespace trainyard::report
