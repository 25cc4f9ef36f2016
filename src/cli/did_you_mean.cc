#include "cli/did_you_mean.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest.h"

namespace trainyard::cli {
namespace {

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Whether a word that is none of its commands may be a value.
bool takes_values(const CLI::App& app) {
  return std::ranges::any_of(app.get_options(),
                             [](const CLI::Option* option) { return option->get_positional(); });
}

std::string unknown(std::string_view what, std::string_view word,
                    const std::vector<std::string>& right, std::string_view command) {
  const std::vector<std::string_view> candidates(right.begin(), right.end());
  const auto near = nearest(word, candidates);
  return near ? fmt::format("unknown {} '{}' (did you mean '{}'?)", what, word, *near)
              : fmt::format("unknown {} '{}'; '{} --help' lists them", what, word, command);
}

}  // namespace

std::string unknown_word(const CLI::App& app, std::span<const char* const> words,
                         std::string_view cure) {
  const CLI::App* here = &app;
  std::string command = app.get_name();
  for (const std::string_view word : words.subspan(1)) {
    if (word == "--") break;
    if (word.starts_with("--")) {
      const std::string_view name = word.substr(0, word.find('='));
      const std::vector<std::string> options = options_of(*here);
      if (std::ranges::find(options, name) != options.end()) continue;
      if (!cure.empty()) return fmt::format("unknown option '{}'; {}", name, cure);
      return unknown("option", name, options, command);
    }
    const std::vector<const CLI::App*> commands = commands_of(*here);
    // Where there are no commands left it is a value.
    if (word.starts_with('-') || commands.empty()) continue;
    const auto next = std::ranges::find_if(
        commands, [&word](const CLI::App* it) { return it->check_name(std::string(word)); });
    if (next == commands.end()) {
      std::vector<std::string> names;
      names.reserve(commands.size());
      for (const CLI::App* known : commands) {
        names.push_back(known->get_name());
        for (const std::string& alias : known->get_aliases()) names.push_back(alias);
      }
      const std::vector<std::string_view> near(names.begin(), names.end());
      if (takes_values(*here) && !nearest(word, near)) continue;
      return unknown("command", word, names, command);
    }
    here = *next;
    command += " " + here->get_name();
  }
  return {};
}

std::string unknown_option(const CLI::App& command, std::string_view word) {
  return unknown("option", word.substr(0, word.find('=')), options_of(command),
                 "trainyard " + command.get_name());
}

}  // namespace trainyard::cli
