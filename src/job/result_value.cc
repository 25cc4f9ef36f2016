#include "job/result_value.h"

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace trainyard::job {

std::optional<std::string> value_in_result(const std::string& result, const std::string& key) {
  const nlohmann::json json = nlohmann::json::parse(result, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::optional<double> number_in_result(const std::string& result, const std::string& key) {
  const nlohmann::json json = nlohmann::json::parse(result, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace trainyard::job
