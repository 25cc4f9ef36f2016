// The JSON fields of a frame as values: read within limits, written so that they can be read.
// No state; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace trainyard::wire {

/// So much is kept of what a child says of itself, and of the traceback that it has.
constexpr std::size_t kMessageBytesMax = 4'000;
constexpr std::size_t kTracebackBytesMax = 64'000;
/// So much is shown of a word that nobody knows.
constexpr std::size_t kShownBytesMax = 64;

/// The end of a long text: the last call of a traceback says most. Half a character at the cut
/// becomes U+FFFD when it is sent.
std::string last_of(const std::string& text, std::size_t bytes_max);

/// Reads an object as compact_json() does (wire/json_text.h). No bytes are an object without
/// members.
Result<nlohmann::json> parse_fields(std::string_view text);

/// Compact, with U+FFFD for what is not UTF-8.
std::string fields_text(const nlohmann::json& fields);

/// Whether lists and objects stand in each other no more than `levels` deep: 0 is a plain value,
/// [] is 1.
bool nests_within(const nlohmann::json& value, int levels);

/// JSON has no word for NaN, nor for infinities. As deep as the value is.
bool has_only_numbers_of_json(const nlohmann::json& value);

/// A member that must be there and be text.
Result<std::string> text_field(const nlohmann::json& fields, const char* name);

}  // namespace trainyard::wire
