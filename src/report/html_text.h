// Text in a form that is safe in HTML. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trainyard::report {

/// In one line, with everything escaped that could end an element or an attribute.
std::string html(std::string_view text);

/// The meaning of a color of a picture, which is a class of page.css.
struct LegendEntry {
  std::string_view look;
  std::string_view word;
};
std::string legend_of(std::span<const LegendEntry> entries);

/// A relative path as a link, percent-encoded; slashes stay.
std::string link_to(std::string_view path);

}  // namespace trainyard::report
