#include "job/result_value.h"

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/number_text.h"

namespace trainyard::job {

std::optional<std::string> value_in_result(const std::string& result, const std::string& key) {
  const nlohmann::json json = nlohmann::json::parse(result, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::optional<double> number_in_result(const std::string& result, const std::string& key) {
  const std::optional<std::string> value = value_in_result(result, key);
  return value ? number_in(*value) : std::nullopt;
}

}  // namespace trainyard::job
