// JSON for people and programs, as every command with --json prints it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace trainyard::text {

/// Indented by two, with a line end after it. Bytes that are not UTF-8 are replaced, as a name may
/// have them. Pure.
std::string readable_json(const nlohmann::ordered_json& json);

/// The same in one line, without spaces and without a line end.
std::string one_line_json(const nlohmann::ordered_json& json);

/// A string; null for an empty text.
nlohmann::ordered_json text_or_null(std::string_view text);
/// A number; null for 0, which stands for a number that is not known.
nlohmann::ordered_json number_or_null(std::int64_t number);

}  // namespace trainyard::text
