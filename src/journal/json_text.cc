#include "journal/json_text.h"

#include <cstddef>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace trainyard::journal {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

/// Hears a flat object or list of texts, and ends the reading at anything else: a damaged journal
/// costs what stands behind the damage, and time in proportion to its length.
class FlatTexts final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FlatTexts(bool object) : object_(object) {}

  std::vector<std::string> keys;
  std::vector<std::string> texts;

  bool start_object(std::size_t /*members*/) override {
    return object_ && !std::exchange(in_, true);
  }
  bool start_array(std::size_t /*items*/) override { return !object_ && !std::exchange(in_, true); }
  bool key(std::string& name) override {
    keys.push_back(std::move(name));
    return true;
  }
  bool string(std::string& text) override {
    if (in_) texts.push_back(std::move(text));
    return in_;
  }
  bool end_object() override { return true; }
  bool end_array() override { return true; }

  bool null() override { return false; }
  bool boolean(bool /*value*/) override { return false; }
  bool number_integer(std::int64_t /*value*/) override { return false; }
  bool number_unsigned(std::uint64_t /*value*/) override { return false; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return false; }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return false; }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return false;
  }

 private:
  bool object_;
  bool in_ = false;
};

/// Returns what was read before the end or the damage.
FlatTexts read_flat(std::string_view json, bool object) {
  FlatTexts flat(object);
  static_cast<void>(nlohmann::json::sax_parse(valid_utf8(json), &flat));
  return flat;
}

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
  FlatTexts flat = read_flat(json, true);
  MatrixValues values;
  values.reserve(flat.texts.size());
  for (std::size_t i = 0; i < flat.texts.size(); ++i) {
    values.emplace_back(std::move(flat.keys[i]), std::move(flat.texts[i]));
  }
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
  return read_flat(json, false).texts;
}

}  // namespace trainyard::journal
