#include "cli/command_words.h"

#include <algorithm>
#include <array>
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

constexpr std::string_view kTorchrun = "torchrun";
/// Programs that run another one, which gives the run its name.
constexpr std::array<std::string_view, 9> kRunners{"python", "bash", "sh",   "env",    "uv",
                                                   "node",   "ruby", "perl", kTorchrun};

/// With nothing that a name of a directory should not have.
std::string as_name(std::string_view text) {
  constexpr std::string_view kAnyLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  constexpr std::string_view kLaterLetters = "-.";
  std::string name;
  for (const char letter : text) {
    const bool is_later = !name.empty() && kLaterLetters.contains(letter);
    if (kAnyLetters.contains(letter) || is_later) name += letter;
  }
  return name.empty() ? "command" : name;
}

std::string stem_of(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return std::string(path.substr(0, std::max<std::size_t>(1, path.find('.'))));
}

/// Whether a program is the named one in any version: python3, python3.12.
bool is_version_of(std::string_view program, std::string_view name) {
  return program.starts_with(name) &&
         program.substr(name.size()).find_first_not_of("0123456789.") == std::string_view::npos;
}

/// Whether a word ends with a one-letter flag, before its value: -c, -lc.
bool ends_with_flag(std::string_view word, char flag) {
  return word.size() > 1 && word.starts_with('-') && !word.starts_with("--") && word.back() == flag;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (!word.empty()) words.emplace_back(word);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return words;
}

std::string name_of_words(const std::vector<std::string>& words) {
  std::string runner;
  for (auto word = words.begin(); word != words.end(); ++word) {
    const std::string stem = stem_of(*word);
    if (is_runner(stem)) {
      runner = stem;
      continue;
    }
    const bool has_next = word + 1 != words.end();
    const bool is_python = is_version_of(runner, "python");
    if (has_next && (is_python || runner == kTorchrun) && ends_with_flag(*word, 'm')) {
      const std::string& module = *++word;
      if (!module.starts_with("torch.distributed.")) return as_name(module);
      runner = kTorchrun;
      continue;
    }
    if (is_python && ends_with_flag(*word, 'c')) break;
    const bool is_shell = runner == "sh" || runner == "bash";
    if (has_next && is_shell && ends_with_flag(*word, 'c')) return name_of_words(words_of(word[1]));
    const bool is_subcommand = runner == "uv" && *word == "run";
    if (is_subcommand || word->starts_with('-') || word->contains('=')) continue;
    // The values of its options are words of their own: --nproc_per_node 4.
    const auto begins_script = [](const std::string& each) {
      return each.ends_with(".py") || each == "-m";
    };
    const bool is_value = runner == kTorchrun && !begins_script(*word) &&
                          std::any_of(word, words.end(), begins_script);
    if (is_value) continue;
    return as_name(stem);
  }
  return as_name(runner);
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

bool is_runner(std::string_view program) {
  return std::ranges::any_of(
      kRunners, [program](std::string_view each) { return is_version_of(program, each); });
}

std::string command_name(const std::vector<std::string>& command) {
  return name_of_words(command.size() == 1 ? words_of(command.front()) : command);
}

std::string name_of_file(const std::string& path) { return as_name(stem_of(path)); }

}  // namespace trainyard::cli
