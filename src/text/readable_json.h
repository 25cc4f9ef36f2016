// JSON for people and programs, as every command with --json prints it.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace trainyard::text {

/// Indented by two, with a line end after it. Bytes that are not UTF-8 are replaced, as a name may
/// have them. Pure.
std::string readable_json(const nlohmann::ordered_json& json);

}  // namespace trainyard::text
