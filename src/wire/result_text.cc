#include "wire/result_text.h"

#include <utility>

#include <fmt/format.h>

#include "wire/json_text.h"

namespace trainyard::wire {
namespace {

ParsedResult nothing(std::string_view why) {
  return {.warning = fmt::format("{}: result discarded", why)};
}

/// The name of a value that is no object, by its first letter.
std::string_view kind_of(char first) {
  if (first == '[') return "a list";
  if (first == '"') return "a string";
  if (first == 't' || first == 'f') return "true or false";
  if (first == 'n') return "null";
  return "a number";
}

}  // namespace

ParsedResult parse_result(std::string_view text) {
  if (text.size() > kResultBytesMax) return nothing("is longer than 1 MiB");
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return nothing("is empty");
  auto compact = compact_json(text);
  if (!compact) return nothing(to_text(compact.error()));
  if (compact->text.front() != '{') {
    return nothing(fmt::format("is {}, not an object", kind_of(compact->text.front())));
  }
  if (compact->text.size() > kResultBytesMax) return nothing("is longer than 1 MiB once mended");
  return {.object = std::move(compact->text), .warning = std::move(compact->mended)};
}

}  // namespace trainyard::wire
