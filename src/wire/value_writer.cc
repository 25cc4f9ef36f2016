#include "wire/value_writer.h"

#include <bit>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/utf8.h"

namespace trainyard::wire {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = utf8_character(text);
    if (!character.valid) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

void append_hex(std::string& out, std::string_view text) {
  out += R"({"hex":")";
  for (const char c : text) {
    fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned char>(c));
  }
  out += R"("})";
}

}  // namespace

void append_text(std::string& out, std::string_view text) {
  if (!is_utf8(text)) return append_hex(out, text);
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_number(std::string& out, double number) {
  if (std::isnan(number)) {
    out += R"("nan")";
  } else if (std::isinf(number)) {
    out += number > 0 ? R"("inf")" : R"("-inf")";
  } else if (number == 0) {
    // As a whole number it would lose its sign.
    out += std::signbit(number) ? "-0.0" : "0";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", number);
  }
}

void append_number(std::string& out, std::int64_t number) {
  fmt::format_to(std::back_inserter(out), "{}", number);
}

void append_number(std::string& out, std::uint64_t number) {
  fmt::format_to(std::back_inserter(out), "{}", number);
}

bool is_same_number(double one, double other) {
  return std::bit_cast<std::uint64_t>(one) == std::bit_cast<std::uint64_t>(other);
}

void append_name(std::string& out, std::string_view name) {
  if (out.back() != '{') out += ',';
  out += '"';
  out += name;
  out += "\":";
}

}  // namespace trainyard::wire
