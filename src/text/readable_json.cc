#include "text/readable_json.h"

#include <nlohmann/json.hpp>

namespace trainyard::text {

std::string readable_json(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace trainyard::text
