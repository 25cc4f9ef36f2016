#include "wire/fields.h"

#include <algorithm>
#include <cmath>
#include <expected>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "wire/json_text.h"

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

Result<std::string> text_field(const nlohmann::json& fields, const char* name) {
  const auto member = fields.find(name);
  if (member == fields.end()) return std::unexpected(Error{fmt::format("'{}' is missing", name)});
  if (!member->is_string()) return std::unexpected(Error{fmt::format("'{}' must be text", name)});
  return member->get<std::string>();
}

std::string last_of(const std::string& text, std::size_t bytes_max) {
  return text.size() <= bytes_max ? text : text.substr(text.size() - bytes_max);
}

}  // namespace trainyard::wire
