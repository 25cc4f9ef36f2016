#include "journal/json_text.h"

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

/// What is left to read of a text, from its front.
class Front {
 public:
  explicit Front(std::string_view text) : rest_(text) {}

  bool take(char wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// A string of the form that append_json_string() writes.
  std::optional<std::string> take_string() {
    if (!take('"')) return std::nullopt;
    std::string text;
    while (!rest_.empty() && !rest_.starts_with('"')) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c != '\\') {
        text.push_back(c);
      } else if (!take_escape(text)) {
        return std::nullopt;
      }
    }
    if (!take('"')) return std::nullopt;
    return text;
  }

 private:
  bool take_escape(std::string& text) {
    if (take('"')) {
      text.push_back('"');
      return true;
    }
    if (take('\\')) {
      text.push_back('\\');
      return true;
    }
    if (!rest_.starts_with("u00") || rest_.size() < 5) return false;
    unsigned code = 0;
    const char* end = rest_.data() + 5;
    const auto [stop, error] = std::from_chars(rest_.data() + 3, end, code, 16);
    if (error != std::errc() || stop != end) return false;
    text.push_back(static_cast<char>(code));
    rest_.remove_prefix(5);
    return true;
  }

  std::string_view rest_;
};

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte >= 0x20 && byte != 0x7F) {
      out.push_back(c);
    } else {
      out += "\\u00";
      out.push_back(kHexDigits[std::size_t{byte} >> 4U]);
      out.push_back(kHexDigits[std::size_t{byte} & 0xFU]);
    }
  }
  out.push_back('"');
}

std::string matrix_to_json(const MatrixValues& values) {
  std::string json;
  for (const auto& [key, value] : values) {
    json.push_back(json.empty() ? '{' : ',');
    append_json_string(json, key);
    json.push_back(':');
    append_json_string(json, value);
  }
  if (!json.empty()) json.push_back('}');
  return json;
}

MatrixValues matrix_from_json(std::string_view json) {
  MatrixValues values;
  Front front(json);
  if (!front.take('{')) return values;
  do {
    std::optional<std::string> key = front.take_string();
    if (!key || !front.take(':')) break;
    std::optional<std::string> value = front.take_string();
    if (!value) break;
    values.emplace_back(std::move(*key), std::move(*value));
  } while (front.take(','));
  return values;
}

std::string strings_to_json(const std::vector<std::string>& strings) {
  std::string json = "[";
  for (const std::string& text : strings) {
    if (json.size() > 1) json.push_back(',');
    append_json_string(json, text);
  }
  json.push_back(']');
  return json;
}

std::vector<std::string> strings_from_json(std::string_view json) {
  std::vector<std::string> strings;
  Front front(json);
  if (!front.take('[')) return strings;
  do {
    std::optional<std::string> text = front.take_string();
    if (!text) break;
    strings.push_back(std::move(*text));
  } while (front.take(','));
  return strings;
}

}  // namespace trainyard
