// The JSON fields of a frame as values: read within limits, written so that they can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// Reads the members of the JSON fields of a frame as values. The first fault is kept, and values
/// that are read after it are meaningless: one check at the end covers all. A member that is null
/// counts as missing. One thread. Values are copies.
class FieldReader {
 public:
  /// As parse_fields() reads them.
  explicit FieldReader(std::string_view text);
  /// Reads an object that is JSON already, as one within another is.
  static FieldReader of(const nlohmann::json& object);

  /// Nullptr: it is not there, or something was wrong before.
  [[nodiscard]] const nlohmann::json* find(const char* name) const;

  // --- left out it is empty, or what is said ---

  std::string text(const char* name, std::size_t bytes_max = kTextBytesMax);
  /// A whole number from 0 on.
  std::optional<std::int64_t> number(const char* name, std::int64_t max);
  bool flag(const char* name, bool otherwise = false);
  std::vector<std::string> texts(const char* name);

  // --- must be there ---

  const nlohmann::json* find_needed(const char* name);
  std::string needed_text(const char* name, std::size_t bytes_max = kTextBytesMax);
  /// The name of an event, or a pattern of such names.
  std::string event_name();
  std::int64_t needed_number(const char* name, std::int64_t max);
  std::uint64_t needed_id(const char* name);
  bool needed_flag(const char* name);
  const nlohmann::json& needed_list(const char* name, std::size_t max);

  void fail(const char* name, std::string_view what);
  /// None of the words that are known.
  void fail_unknown(const char* name, std::string_view all, std::string_view word);
  /// A fault of an object within this one is one of this.
  void fail_as(const FieldReader& inner);

  /// The value that was read, unless something was wrong with it: `what`.
  template <class Value>
  Result<Value> give(Value value, const char* what) && {
    if (error_) return std::unexpected(std::move(*error_).in(what));
    return value;
  }

 private:
  static constexpr std::size_t kTextBytesMax = std::size_t{64} << 20;

  std::shared_ptr<const nlohmann::json> fields_;  ///< Nullptr: something was wrong.
  std::optional<Error> error_;
};

}  // namespace trainyard::wire
