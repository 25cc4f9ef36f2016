#include "cli/with_command.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/did_you_mean.h"
#include "sys/environment.h"
#include "text/python_command.h"
#include "text/shell_reader.h"

namespace trainyard::cli {
namespace {

constexpr std::array<std::string_view, 3> kCommands{"ranks", "rank", "parallel"};

/// Whether the next word is the value of this one.
bool has_value(const CLI::App& command, std::string_view word) {
  const CLI::Option* const option = command.get_option_no_throw(std::string(word));
  return option != nullptr && option->get_items_expected_max() > 0;
}

}  // namespace

void takes_command(CLI::App& app) { app.prefix_command(); }

std::vector<const char*> without_separator(const CLI::App& app,
                                           std::span<const char* const> words) {
  std::vector<const char*> kept(words.begin(), words.end());
  const std::string_view name = kept.size() > 1 ? kept[1] : "";
  if (std::ranges::find(kCommands, name) == kCommands.end()) return kept;
  const CLI::App& command = *app.get_subcommand_ptr(std::string(name));
  // Before the command are options; one further on belongs to the command.
  for (std::size_t at = 2; at < kept.size(); ++at) {
    const std::string_view word = kept[at];
    if (word == "--") {
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    }
    if (!word.starts_with('-')) break;
    if (has_value(command, word)) ++at;
  }
  return kept;
}

Result<std::vector<std::string>> typed_command(const CLI::App& app) {
  std::vector<std::string> command = app.remaining();
  if (command.empty()) {
    return std::unexpected(Error{fmt::format(
        "no command given: use 'trainyard {} -n 4 -- python3 train.py'", app.get_name())});
  }
  if (command.front().starts_with('-')) {
    return std::unexpected(Error{unknown_option(app, command.front())});
  }
  if (command.size() == 1 && text::needs_shell(command.front())) {
    return text::bash_command(std::move(command.front()));
  }
  return command;
}

std::string usual_logs() { return sys::variable("TRAINYARD_TASK_DIR").value_or("."); }

}  // namespace trainyard::cli
