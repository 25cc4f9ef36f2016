#include "cli/command_words.h"

#include <algorithm>
#include <cstddef>

#include "settings/configuration.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kSetOption = "--set=";
constexpr std::string_view kVariableOption = "--env=";

/// Whether `word`, the one after `before`, assigns a variable of a task: --env NAME=VALUE.
bool is_variable(std::string_view word, std::string_view before) {
  return word.starts_with(kVariableOption) ||
         before == kVariableOption.substr(0, kVariableOption.size() - 1);
}

}  // namespace

bool sets_a_secret(std::string_view setting) {
  const std::string_view key = setting.substr(0, setting.find('='));
  return std::ranges::any_of(settings::settings(), [key](const settings::SettingInfo& info) {
    return info.kind == settings::SettingKind::Secret && info.key == key;
  });
}

std::string shown_command_line(std::span<const char* const> words) {
  std::string text;
  std::string_view before;
  bool of_command = false;  // Behind --.
  for (const std::string_view word : words) {
    if (!text.empty()) text += ' ';
    const bool variable = !of_command && is_variable(word, before);
    std::size_t start = word.starts_with(kSetOption) ? kSetOption.size() : 0;
    if (variable && word.starts_with(kVariableOption)) start = kVariableOption.size();
    const std::size_t equals = word.find('=', start);
    const bool secret = equals != std::string_view::npos &&
                        (variable || sets_a_secret(word.substr(start, equals - start)));
    text += secret ? text::shell_word(word.substr(0, equals + 1)) + std::string(kHidden)
                   : text::shell_word(word);
    of_command = of_command || word == "--";
    before = word;
  }
  return text;
}

}  // namespace trainyard::cli
