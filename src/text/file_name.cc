#include "text/file_name.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/utf8.h"
#include "text/text_file.h"

namespace trainyard::text {

namespace {

constexpr std::string_view kPatternCharacters = "*?[";

bool has_digits_alone(std::string_view name) {
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Almost all names are plain, and no character of them needs a closer look.
bool is_printable_ascii(std::string_view name) {
  return std::ranges::all_of(name, [](char byte) { return byte >= ' ' && byte <= '~'; });
}

/// The reason why a character of a name is not allowed in it.
std::optional<std::string> why_unsafe_character(std::string_view name) {
  if (find_bad_byte(name)) return "is not UTF-8 text";
  for (std::size_t at = 0; at < name.size();) {
    const Utf8Character character = utf8_character(name.substr(at));
    at += character.bytes;
    if (acts_on_a_terminal(character.code_point)) return "has a control character";
    if (is_invisible(character.code_point)) {
      return fmt::format("has the character U+{:04X}, which cannot be seen", character.code_point);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_unsafe(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name == "." || name == "..") return "stands for an existing directory";
  if (name.size() > kFileNameMax) {
    return fmt::format("has {} bytes, but at most {} are allowed", name.size(), kFileNameMax);
  }
  if (name.contains('/')) return "has a '/'";
  if (!is_printable_ascii(name)) {
    if (std::optional<std::string> why = why_unsafe_character(name)) return why;
  }
  if (name.front() == '-') return "starts with '-', which commands read as an option";
  if (name.front() == ' ' || name.back() == ' ') return "starts or ends with a space";
  return std::nullopt;
}

std::optional<std::string> why_no_run_name(std::string_view name) {
  if (const auto why = why_unsafe(name)) return *why + "; it must be a valid directory name";
  if (name.find_first_of(kPatternCharacters) != std::string_view::npos) {
    return "is a pattern of tasks; choose one without '*', '?' and '['";
  }
  if (name.front() == ':') return "starts with ':', as states of tasks do; choose another";
  if (has_digits_alone(name)) {
    return fmt::format("means the run with this number; choose a name with a letter, such as '{}'",
                       run_name_for(std::string(name), ""));
  }
  if (name == kLastRun) return "means the last run; choose another, such as 'last-run'";
  return std::nullopt;
}

std::string run_name_for(std::string name, std::string_view otherwise) {
  if (why_unsafe(name)) return std::string(otherwise);
  std::ranges::replace_if(name, [](char byte) { return kPatternCharacters.contains(byte); }, '_');
  if (has_digits_alone(name) || name.front() == ':') return "run-" + name;
  return name == kLastRun ? name + "-run" : name;
}

}  // namespace trainyard::text
