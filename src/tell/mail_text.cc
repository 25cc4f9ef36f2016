#include "tell/mail_text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utf8.h"

namespace trainyard::tell {
namespace {

/// No line at the head may be begun by what stands in another.
std::string one_line(std::string_view text) {
  std::string line = valid_utf8(text);
  std::ranges::replace_if(line, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, ' ');
  return line;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= group.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

/// As it stands at the head: what is not plain ASCII, or too long for a line, in encoded words of
/// at most 75 bytes (RFC 2047).
std::string head_text(std::string_view written) {
  constexpr std::size_t kPlainMax = 200;
  constexpr std::size_t kWordBytes = 42;
  std::string line = one_line(written);
  const bool plain = std::ranges::all_of(line, [](char c) { return c >= ' '; });
  if (plain && line.size() <= kPlainMax && !line.contains("=?")) return line;
  std::string words;
  for (std::string_view rest = line; !rest.empty();) {
    const std::string_view part = utf8_prefix(rest, kWordBytes);
    rest.remove_prefix(part.size());
    words += fmt::format("{}=?UTF-8?B?{}?=", words.empty() ? "" : "\r\n ", base64(part));
  }
  return words;
}

}  // namespace

std::string MailServer::sender() const {
  return one_line(user.contains('@') ? user : fmt::format("{}@{}", user, host));
}

std::string MailServer::shown() const { return fmt::format("{}:{}", host, port); }

std::string mail_date(std::int64_t unix_ms) {
  constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::chrono::sys_time<std::chrono::milliseconds> moment{std::chrono::milliseconds(unix_ms)};
  const auto day = std::chrono::floor<std::chrono::days>(moment);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::seconds>(moment - day));
  return fmt::format(
      "{}, {} {} {} {:02}:{:02}:{:02} +0000", kDays.at(std::chrono::weekday(day).c_encoding()),
      static_cast<unsigned>(date.day()), kMonths.at(static_cast<unsigned>(date.month()) - 1),
      static_cast<int>(date.year()), time.hours().count(), time.minutes().count(),
      time.seconds().count());
}

std::vector<std::string> mail_head(const MailServer& server, std::string_view subject,
                                   const MailStamp& stamp) {
  std::vector<std::string> receivers;
  receivers.reserve(server.receivers.size());
  for (const std::string& receiver : server.receivers) receivers.push_back(one_line(receiver));
  return {fmt::format("Date: {}", mail_date(stamp.unix_ms)),
          fmt::format("From: trainyard <{}>", server.sender()),
          fmt::format("To: {}", fmt::join(receivers, ",\r\n ")),
          fmt::format("Subject: {}", head_text(subject)),
          fmt::format("Message-ID: <{}@trainyard>", stamp.id),
          // So that no answering machine answers.
          "Auto-Submitted: auto-generated"};
}

}  // namespace trainyard::tell
