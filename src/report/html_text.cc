#include "report/html_text.h"

#include <cctype>

#include <fmt/format.h>

#include "report/terminal_text.h"

namespace trainyard::report {

std::string html(std::string_view text) {
  std::string escaped;
  for (const char c : plain(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string legend_of(std::span<const LegendEntry> entries) {
  std::string text = R"(<div class="legend">)";
  for (const LegendEntry& entry : entries) {
    text += fmt::format(R"(<span><i class="{}"></i>{}</span>)", entry.look, entry.word);
  }
  return text + "</div>";
}

std::string link_to(std::string_view path) {
  constexpr std::string_view kAsIs = "-._~/=,+";
  std::string link;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool as_is = (byte < 0x80 && std::isalnum(byte) != 0) || kAsIs.contains(c);
    if (as_is) {
      link += c;
    } else {
      link += fmt::format("%{:02X}", byte);
    }
  }
  return link;
}

}  // namespace trainyard::report
