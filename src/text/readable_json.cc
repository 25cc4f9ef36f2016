#include "text/readable_json.h"

#include <nlohmann/json.hpp>

namespace trainyard::text {

using Json = nlohmann::ordered_json;

std::string readable_json(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string one_line_json(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

Json number_or_null(std::int64_t number) { return number == 0 ? Json(nullptr) : Json(number); }

}  // namespace trainyard::text
