// The two forms of JSON that the journal keeps for itself: an object of strings and a list of
// strings. They are written by hand, as a turn must not cost more than microseconds, and read by a
// parser.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::journal {

/// Adds `text` to `out` as a JSON string, quotes included. Bytes from 0x80 stay as they are.
void append_json_string(std::string& out, std::string_view text);

/// The values of a matrix cell, in order, as {"lr":"1e-3","seed":"0"}; "" for no values.
using MatrixValues = std::vector<std::pair<std::string, std::string>>;
std::string matrix_to_json(const MatrixValues& values);

/// Reads it back. A value that is not a member with a text, and all after it, is left out; bytes
/// that are not UTF-8 come back as U+FFFD.
MatrixValues matrix_from_json(std::string_view json);

/// ["a","b"]; [] for none.
std::string strings_to_json(const std::vector<std::string>& strings);

/// Reads it back, as above.
std::vector<std::string> strings_from_json(std::string_view json);

}  // namespace trainyard::journal
