// Writing JSON by hand where a turn must not cost more than microseconds, and reading back the two
// forms of it that the journal keeps for itself: an object of strings and a list of strings.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard {

/// Adds `text` to `out` as a JSON string, quotes included. Bytes from 0x80 stay as they are.
void append_json_string(std::string& out, std::string_view text);

/// The values of a matrix cell, in order, as {"lr":"1e-3","seed":"0"}; "" for no values.
using MatrixValues = std::vector<std::pair<std::string, std::string>>;
std::string matrix_to_json(const MatrixValues& values);

/// Reads it back. What it cannot read, and what comes after that, is left out.
MatrixValues matrix_from_json(std::string_view json);

/// ["a","b"]; [] for none.
std::string strings_to_json(const std::vector<std::string>& strings);

/// Reads it back, as above.
std::vector<std::string> strings_from_json(std::string_view json);

}  // namespace trainyard
