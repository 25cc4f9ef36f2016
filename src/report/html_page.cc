#include "report/html_page.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "report/planned_time.h"
#include "report/terminal_text.h"

namespace trainyard::report {
namespace {

/// "2025-03-04 15:06 UTC"; nothing if the time is not known.
std::string date_text(std::int64_t unix_ms) {
  if (unix_ms <= 0) return {};
  const std::chrono::sys_time<std::chrono::milliseconds> time{std::chrono::milliseconds{unix_ms}};
  const auto day = std::chrono::time_point_cast<std::chrono::sys_days::duration>(time);
  const std::chrono::year_month_day date{day};
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(time - day).count();
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", int{date.year()}, unsigned{date.month()},
                     unsigned{date.day()}, minutes / 60, minutes % 60);
}

std::string fact(std::string_view name, std::string_view value) {
  if (value.empty()) return {};
  return fmt::format("<span>{}{}{}</span>", name, name.empty() ? "" : " ", html(value));
}

}  // namespace

std::string html(std::string_view text) {
  static constexpr std::array<std::pair<char, std::string_view>, 5> kEscapes{
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
  std::string escaped;
  for (const char c : plain(text)) {
    const auto* const escape =
        std::ranges::find(kEscapes, c, &std::pair<char, std::string_view>::first);
    if (escape == kEscapes.end()) {
      escaped += c;
    } else {
      escaped += escape->second;
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

std::string section_top(std::string_view title, std::string_view more) {
  return fmt::format("<section>\n<div class=\"bar\"><h2>{}</h2>{}</div>\n", html(title), more);
}

std::string page_note(std::string_view text) {
  return fmt::format("<p class=\"note\">{}</p>\n", html(text));
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

std::string page_top(std::string_view title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      // Nothing is loaded from anywhere, whatever may have come into the page.
      R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; )"
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n",
      html(title), kPageStyle);
}

std::string page_bottom(const journal::ExecutionRow& execution) {
  return fmt::format(
      "<footer><span>trainyard {}</span><span>{}</span></footer>\n"
      "</main>\n<script>{}</script>\n</body>\n</html>\n",
      html(execution.version), html(execution.job_file), kPageScript);
}

std::string facts(const journal::ExecutionRow& execution) {
  std::string text = "<p class=\"facts\">";
  text += fact("", date_text(execution.started_unix_ms)) + fact("on", execution.host);
  text += fact("commit", execution.git_commit.substr(0, 12));
  if (execution.number > 1) text += fact("resumed", counted(execution.number - 1, "time"));
  text += fact("forecast", planned_time_text(execution));
  return text + fact("", execution.command_line) + "</p>\n";
}

std::string_view chip_look(std::string_view phase) {
  if (phase == "FINISHED") return "ok";
  return phase == "FAILED" ? "bad" : "";
}

}  // namespace trainyard::report
