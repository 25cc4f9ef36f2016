#include "cli/help_format.h"

#include <array>
#include <cstddef>
#include <ranges>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/shared_words.h"
#include "text/text_file.h"

namespace trainyard::cli {
namespace {

/// The column where the descriptions begin.
constexpr std::size_t kColumn = 28;
constexpr std::string_view kOptions = "Options";
constexpr std::array<std::string_view, 5> kCommandGroups{
    command_groups::kRun, command_groups::kWatch, command_groups::kChange, command_groups::kMachine,
    command_groups::kSetup};

/// The maximum columns of a line.
constexpr std::size_t kColumns = 80;

/// Breaks a line at spaces. "(default: x)" stays together.
std::string wrapped(std::string_view line, std::size_t columns) {
  std::string text;
  std::size_t column = 0;
  for (std::size_t begin = 0; begin < line.size();) {
    std::size_t end = line.find(' ', begin);
    const bool is_glued = line.substr(begin).starts_with("(default: ");
    if (is_glued) end = line.find(' ', end + 1);
    const std::string_view word = line.substr(begin, end - begin);
    const bool fits = column + 1 + text::count_characters(word) <= columns;
    if (column > 0) text += fits ? ' ' : '\n';
    column = (column > 0 && fits ? column + 1 : 0) + text::count_characters(word);
    text += word;
    begin = end == std::string_view::npos ? line.size() : end + 1;
  }
  return text;
}

std::string row(const std::string& left, const std::string& description) {
  std::string lines;
  for (const auto part : std::views::split(description, '\n')) {
    if (!lines.empty()) lines += '\n';
    lines += wrapped(std::string_view(part), kColumns - kColumn);
  }
  std::ostringstream text;
  CLI::detail::format_help(text, left, lines, kColumn);
  return text.str();
}

/// "NUMBER": behind a colon CLI11 lists the valid values.
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string usage_of_positional(const CLI::Option& option) {
  std::string text = type_of(option);
  if (!option.get_required()) text = "[" + text + "]";
  return option.get_items_expected_max() > 1 ? text + "..." : text;
}

std::string usage(const CLI::App& app, const std::string& name) {
  const std::string begin = "Usage: " + name;
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  if (app.get_name() == kTaskOptionsTopic) {
    return "Usage: trainyard run [OPTIONS] -- COMMAND\n"
           "       trainyard submit [OPTIONS] -- COMMAND\n";
  }
  if (app.get_require_subcommand_min() > 0) return begin + " COMMAND [OPTIONS]\n";
  std::string text = begin;
  if (!commands.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* command : commands) names.push_back(command->get_name());
    text += fmt::format(" [{}]", fmt::join(names, "|"));
  }
  text += " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) text += " " + usage_of_positional(*option);
  }
  const std::string with_command = begin + " [OPTIONS] -- COMMAND\n";
  if (app.get_prefix_command()) return with_command;
  text += '\n';
  if (takes_command(app.get_name())) {
    text += std::string(std::string_view("Usage: ").size(), ' ') +
            with_command.substr(std::string_view("Usage: ").size());
  }
  return text;
}

/// "-d, --detach", "--cpus NUMBER"; a positional has the name of its kind.
std::string label_of(const CLI::Option& option) {
  const std::string type = type_of(option);
  std::string text = option.get_positional() ? type : "";
  const auto add = [&text](std::string_view dashes, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      text += fmt::format("{}{}{}", text.empty() ? "" : ", ", dashes, name);
    }
  };
  add("-", option.get_snames());
  add("--", option.get_lnames());
  const bool has_value = option.get_items_expected_max() > 0 && !type.empty();
  const bool may_be_bare = option.get_items_expected_min() == 0;
  if (has_value && option.nonpositional()) {
    text += may_be_bare ? fmt::format(" [{}]", type) : " " + type;
  }
  return text;
}

std::string list_arguments(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || option->get_description().empty()) continue;
    text += row(label_of(*option), option->get_description());
  }
  return text.empty() ? text : "\nArguments:\n" + text;
}

/// In the order of their first options, "Options" at the end: it has --help.
std::vector<std::string> option_groups_of(const CLI::App& app) {
  std::vector<std::string> groups;
  for (const std::string& group : app.get_groups()) {
    const bool is_hidden =
        group.starts_with(option_groups::kTaskPrefix) && app.get_name() != kTaskOptionsTopic;
    if (!group.empty() && !is_hidden) groups.push_back(group);
  }
  if (std::erase(groups, kOptions) > 0) groups.emplace_back(kOptions);
  return groups;
}

std::string list_options(const CLI::App& app) {
  std::string text;
  for (const std::string& group : option_groups_of(app)) {
    std::string rows;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() != group || option->get_positional()) continue;
      rows += row(label_of(*option), option->get_description());
    }
    if (rows.empty()) continue;
    const bool of_task = group.starts_with(option_groups::kTaskPrefix);
    text += fmt::format("\n{}:\n{}",
                        of_task ? group.substr(option_groups::kTaskPrefix.size()) : group, rows);
  }
  return text;
}

std::string list_commands(const CLI::App& app) {
  const auto of_group = [&app](std::string_view group) {
    std::string rows;
    for (const CLI::App* command : app.get_subcommands({})) {
      if (command->get_group() != group) continue;
      rows += row(command->get_display_name(true), command->get_description());
    }
    return rows;
  };
  // A command below another one is in the group of that.
  if (app.get_parent() != nullptr) {
    const std::string rows = of_group(app.get_group());
    return rows.empty() ? rows : "\nCommands:\n" + rows;
  }
  std::string text;
  for (const std::string_view group : kCommandGroups) {
    text += fmt::format("\n{}:\n{}", group, of_group(group));
  }
  return text;
}

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode /*mode*/) const override {
    const std::string footer = app->get_footer();
    const bool has_examples = footer.starts_with("Example");
    const std::size_t end = has_examples ? footer.find("\n\n") : 0;
    const std::string examples = has_examples ? footer.substr(0, end) : "";
    const std::string notes =
        end == std::string::npos ? "" : footer.substr(has_examples ? end + 2 : 0);
    std::string text = app->get_description() + ".\n\n" + usage(*app, name);
    if (!examples.empty()) text += "\n" + examples + "\n";
    text += list_commands(*app) + list_arguments(*app) + list_options(*app);
    if (!notes.empty()) text += "\n" + wrapped_notes(notes) + "\n";
    return text;
  }
};

}  // namespace

std::string wrapped_notes(std::string_view notes) {
  std::string text;
  std::string joined;
  const auto add_joined = [&text, &joined] {
    if (!joined.empty()) text += wrapped(joined, kColumns) + "\n";
    joined.clear();
  };
  for (const auto part : std::views::split(notes, '\n')) {
    const std::string_view line(part);
    // A line for a shell must stay whole.
    if (line.empty() || line.starts_with(' ')) {
      add_joined();
      text += fmt::format("{}\n", line);
      continue;
    }
    joined += fmt::format("{}{}", joined.empty() ? "" : " ", line);
    if (line.ends_with('.')) add_joined();
  }
  add_joined();
  return text.substr(0, text.rfind('\n'));
}

std::shared_ptr<CLI::FormatterBase> help_format() { return std::make_shared<HelpFormat>(); }

}  // namespace trainyard::cli
