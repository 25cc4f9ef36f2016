#include "job/result_value.h"

#include <nlohmann/json.hpp>

namespace trainyard::job {

namespace {

/// Null where there is no such member.
nlohmann::json member_of(const std::string& result, const std::string& key) {
  const nlohmann::json json = nlohmann::json::parse(result, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json.value(key, nlohmann::json()) : nlohmann::json();
}

}  // namespace

std::optional<std::string> value_in_result(const std::string& result, const std::string& key) {
  const nlohmann::json member = member_of(result, key);
  if (member.is_null()) return std::nullopt;
  return member.is_string() ? member.get<std::string>() : member.dump();
}

std::optional<double> number_in_result(const std::string& result, const std::string& key) {
  const nlohmann::json member = member_of(result, key);
  return member.is_number() ? std::optional(member.get<double>()) : std::nullopt;
}

}  // namespace trainyard::job
