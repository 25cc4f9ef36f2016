#include "wire/field_reader.h"

#include <algorithm>
#include <cmath>
#include <expected>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/utf8.h"
#include "wire/json_text.h"
#include "wire/worker.h"

namespace trainyard::wire {

Result<nlohmann::json> parse_fields(std::string_view text) {
  if (text.empty()) return nlohmann::json::object();
  const auto compact = compact_json(text);
  if (!compact) return std::unexpected(Error{"fields: " + to_text(compact.error())});
  nlohmann::json fields = nlohmann::json::parse(compact->text, nullptr, /*allow_exceptions=*/false);
  check(!fields.is_discarded(), "compact_json gives what can be parsed");
  if (!fields.is_object()) {
    return std::unexpected(
        Error{fmt::format("fields must be an object, not {}", fields.type_name())});
  }
  return fields;
}

std::string fields_text(const nlohmann::json& fields) {
  return fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool nests_within(const nlohmann::json& value, int levels) {
  if (!value.is_structured()) return true;
  // It goes no deeper than this, however deep the value is.
  return levels > 0 && std::ranges::all_of(value, [levels](const nlohmann::json& member) {
           return nests_within(member, levels - 1);
         });
}

bool has_only_numbers_of_json(const nlohmann::json& value) {
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  return !value.is_structured() || std::ranges::all_of(value, has_only_numbers_of_json);
}

std::string last_of(const std::string& text, std::size_t bytes_max) {
  return text.size() <= bytes_max ? text : text.substr(text.size() - bytes_max);
}

using nlohmann::json;

FieldReader::FieldReader(std::string_view text) {
  auto parsed = parse_fields(text);
  if (parsed) {
    fields_ = std::make_shared<const json>(std::move(*parsed));
  } else {
    error_ = std::move(parsed.error());
  }
}

FieldReader FieldReader::of(const json& object) {
  FieldReader reader{std::string_view()};
  if (object.is_object()) {
    reader.fields_ = std::make_shared<const json>(object);
  } else {
    reader.error_ = Error{"an object is missing"};
  }
  return reader;
}

const json* FieldReader::find(const char* name) const {
  if (error_) return nullptr;
  const auto member = fields_->find(name);
  return member == fields_->end() || member->is_null() ? nullptr : &*member;
}

const json* FieldReader::find_needed(const char* name) {
  const json* const member = find(name);
  if (member == nullptr && !error_) error_ = Error{fmt::format("'{}' is missing", name)};
  return member;
}

void FieldReader::fail(const char* name, std::string_view what) {
  if (!error_) error_ = Error{fmt::format("'{}' must be {}", name, what)};
}

void FieldReader::fail_unknown(const char* name, std::string_view all, std::string_view word) {
  fail(name, fmt::format("{}, not '{}'", all, utf8_prefix(word, kShownBytesMax)));
}

void FieldReader::fail_as(const FieldReader& inner) {
  if (!error_) error_ = inner.error_;
}

std::string FieldReader::text(const char* name, std::size_t bytes_max) {
  const json* const member = find(name);
  if (member == nullptr) return {};
  if (!member->is_string()) return fail(name, "text"), std::string();
  auto value = member->get<std::string>();
  if (value.size() > bytes_max) return fail(name, "shorter"), std::string();
  return value;
}

std::optional<std::int64_t> FieldReader::number(const char* name, std::int64_t max) {
  const json* const member = find(name);
  if (member == nullptr) return std::nullopt;
  if (!member->is_number_integer() || *member < 0 || *member > max) {
    return fail(name, fmt::format("a whole number from 0 to {}", max)), std::nullopt;
  }
  return member->get<std::int64_t>();
}

bool FieldReader::flag(const char* name, bool otherwise) {
  const json* const member = find(name);
  if (member == nullptr) return otherwise;
  if (!member->is_boolean()) return fail(name, "true or false"), otherwise;
  return member->get<bool>();
}

std::vector<std::string> FieldReader::texts(const char* name) {
  const json* const member = find(name);
  std::vector<std::string> read;
  if (member == nullptr) return read;
  if (!member->is_array()) return fail(name, "a list"), read;
  for (const json& each : *member) {
    if (!each.is_string()) return fail(name, "a list of texts"), read;
    read.push_back(each.get<std::string>());
  }
  return read;
}

std::string FieldReader::needed_text(const char* name, std::size_t bytes_max) {
  return find_needed(name) == nullptr ? std::string() : text(name, bytes_max);
}

std::string FieldReader::event_name() {
  std::string name = text("name", kEventNameBytesMax);
  if (name.empty()) fail("name", "the name of an event");
  return name;
}

std::int64_t FieldReader::needed_number(const char* name, std::int64_t max) {
  return find_needed(name) == nullptr ? 0 : number(name, max).value_or(0);
}

std::uint64_t FieldReader::needed_id(const char* name) {
  const json* const member = find_needed(name);
  if (member == nullptr) return 0;
  if (!member->is_number_unsigned()) return fail(name, "a whole number from 0 on"), 0;
  return member->get<std::uint64_t>();
}

bool FieldReader::needed_flag(const char* name) {
  return find_needed(name) != nullptr && flag(name);
}

const json& FieldReader::needed_list(const char* name, std::size_t max) {
  static const json none = json::array();
  const json* const member = find_needed(name);
  if (member == nullptr) return none;
  if (!member->is_array() || member->size() > max) {
    return fail(name, fmt::format("a list of at most {}", max)), none;
  }
  return *member;
}

}  // namespace trainyard::wire
