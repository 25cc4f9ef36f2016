// The command line: reads it, calls one function, says its exit code.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/check.h"
#include "cli/command_job.h"
#include "cli/command_words.h"
#include "cli/console.h"
#include "cli/did_you_mean.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/selection_words.h"
#include "cli/shared_words.h"
#include "cli/typed_mistakes.h"
#include "cli/version.h"
#include "cli/with_command.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/this_process.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kHelp = "help";

/// `help run` is `run --help`, and `help` alone `--help`: people type this first. False: the words
/// are something else.
bool move_help_to_the_end(std::vector<const char*>& words) {
  if (words.size() < 2 || std::string_view(words[1]) != kHelp) return false;
  words.erase(words.begin() + 1);
  words.push_back("--help");
  return true;
}

Runner add_help(CLI::App& app) {
  CLI::App* help = app.add_subcommand(std::string(kHelp), "Show the help of a command");
  help->footer(
          "Examples:\n"
          "  trainyard help run\n"
          "  trainyard help task-options\n"
          "  trainyard help client progress")
      ->group(command_groups::kSetup);
  // Only for its help: move_help_to_the_end() leaves no words.
  help->add_option("command")->type_name("COMMAND")->description("Command to explain");
  // Its words are not used: the topic is only for its help.
  auto words = std::make_unique<CommandWords>();
  add_task_options_topic(app, *words);
  return [words = std::move(words),
          &app](const std::vector<std::string>& /*command*/) -> std::optional<ExitCode> {
    if (!app.got_subcommand(kTaskOptionsTopic)) return std::nullopt;
    return answer(app.help());
  };
}

/// All commands, in the order in which the help shows them.
std::vector<Entry> all_entries(const std::string& command_line) {
  std::vector<Entry> all;
  all.push_back(run_entry(command_line));
  all.push_back(submit_entry(command_line));
  all.push_back(retry_entry(command_line));
  all.push_back(plan_entry());
  all.push_back(wait_entry());
  all.push_back(up_entry());
  all.push_back(down_entry());
  all.push_back(ranks_entry());
  all.push_back(parallel_entry());
  all.push_back(status_entry());
  all.push_back(logs_entry());
  all.push_back(results_entry());
  all.push_back(learned_entry());
  all.push_back(kill_entry());
  all.push_back(hold_entry());
  all.push_back(release_entry());
  all.push_back(update_entry());
  all.push_back(clean_entry());
  all.push_back(devices_entry());
  all.push_back(drain_entry());
  all.push_back(machines_entry());
  all.push_back(doctor_entry());
  all.push_back(config_entry());
  all.push_back(client_entry());
  all.push_back(replay_entry());
  all.push_back(agent_entry());
  all.push_back(completion_entry());
  all.push_back({.names = {}, .add = add_help});
  return all;
}

/// The program's command line with some of the commands.
class Program {
 public:
  explicit Program(std::span<const Entry> entries);

  CLI::App& app() { return app_; }

  /// Runs the typed command; `command` has the words after --.
  ExitCode run(const std::vector<std::string>& command);

 private:
  CLI::App app_{"Run many training tasks on one machine or several"};
  std::vector<Runner> runners_;
};

Program::Program(std::span<const Entry> entries) {
  app_.formatter(help_format());
  app_.name("trainyard");
  app_.option_defaults()->disable_flag_override();
  app_.set_version_flag("--version", kProgram);
  app_.require_subcommand(1);
  for (const Entry& each : entries) runners_.push_back(each.add(app_));
  // After the commands, which would have it, too.
  app_.footer(
      "Start with: trainyard run sweep.yaml. Help of a command: trainyard help run.\n"
      "List ended runs here: trainyard clean --older 0s --dry-run (deletes nothing).\n" +
      std::string(kExitCodes));
}

ExitCode Program::run(const std::vector<std::string>& command) {
  for (Runner& runner : runners_) {
    if (const std::optional<ExitCode> done = runner(command)) return *done;
  }
  check(false, "a command that was typed has a runner");
  return ExitCode::NotDone;
}

/// The unknown command of "trainyard list --help", of which CLI11 shows the help of the program;
/// empty if the commands before the first option are known.
std::string unknown_command(const CLI::App& app, const std::vector<const char*>& typed) {
  const auto option = std::ranges::find_if(
      typed, [](const char* word) { return std::string_view(word).starts_with('-'); });
  return unknown_word(app, {typed.begin(), option});
}

/// A command line, split at the '--' of `run` and `submit`.
struct Typed {
  std::vector<const char*> words;
  std::vector<std::string> command;  ///< Behind the '--'.
  bool has_separator = false;
};

/// Gives the words to the app; the error that CLI11 throws is the caller's.
void parse(CLI::App& app, const std::vector<const char*>& typed) {
  std::string sort;
  std::deque<std::string> kept;
  const std::vector<const char*> words =
      with_kept_brackets(app, with_joined_sort(without_separator(app, typed), sort), kept);
  app.parse(static_cast<int>(words.size()), words.data());
}

/// Whether all words are valid, and none asks for help.
bool takes(CLI::App& app, const Typed& typed) {
  const TypedWords all{.words = typed.words, .has_command = typed.has_separator};
  if (!missing_value_mistake(app, all).empty()) return false;
  try {
    parse(app, typed.words);
  } catch (const CLI::ParseError&) {
    return false;
  }
  return true;
}

/// Reads the typed words. An exit code if nothing remains to do: a mistake, or a request for help.
std::optional<ExitCode> read_typed(CLI::App& app, Typed& typed) {
  if (move_help_to_the_end(typed.words)) {
    // CLI11 would show the help of all instead of an error for the unknown command.
    const std::string unknown = unknown_topic(app, typed.words);
    if (!unknown.empty()) return fail(unknown);
  }
  const TypedWords all{
      .words = typed.words, .has_command = typed.has_separator, .command = typed.command};
  if (const std::string missing = missing_value_mistake(app, all); !missing.empty()) {
    return fail(missing);
  }
  try {
    parse(app, typed.words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      return fail(typed_mistake(app, all, error));
    }
    if (const std::string unknown = unknown_command(app, typed.words); !unknown.empty()) {
      return fail(unknown);
    }
    std::ostringstream help;
    app.exit(error, help, help);
    return answer(help.str());
  }
  return std::nullopt;
}

ExitCode run(Program& program, const Typed& typed) {
  if (typed.has_separator && typed.command.empty()) return fail("no command after '--'");
  try {
    return program.run(typed.command);
  } catch (const sys::EventLoopError& error) {
    return fail(error.what(), ExitCode::NotDone);
  }
}

ExitCode main(int argc, const char* const* argv) {
  const std::span<const char* const> all{argv, static_cast<std::size_t>(argc)};
  const std::vector<Entry> entries = all_entries(shown_command_line(all));
  Typed typed;
  typed.words = without_command({argv, argv + argc}, typed.command);
  typed.has_separator = typed.words.size() < all.size();
  const std::string_view first = all.size() > 1 ? all[1] : "";
  // One command is set up in a fraction of the time of all, and nearly all that is typed is right.
  // For a mistake and for help all are needed: they name other commands.
  const auto has_first = [first](const Entry& each) {
    return std::ranges::find(each.names, first) != each.names.end();
  };
  if (const auto found = std::ranges::find_if(entries, has_first); found != entries.end()) {
    Program alone(std::span(&*found, 1));
    if (takes(alone.app(), typed)) return run(alone, typed);
  }
  Program program(entries);
  if (const std::optional<ExitCode> asked = answer_shell(program.app(), all)) return *asked;
  if (const std::optional<ExitCode> done = read_typed(program.app(), typed)) return *done;
  return run(program, typed);
}

/// The kernel sends SIGBUS to a process that reads what a mapped file has no more. SQLite maps
/// journal.db-shm, which every task of the run can cut short; the journal itself stays whole.
[[noreturn]] void end_for_cut_file(int /*signal*/) {
  constexpr std::string_view kText =
      "trainyard: a file was cut short while trainyard used it, as when a task empties "
      "journal.db-shm of its run: 'trainyard run --resume' continues the run\n";
  sys::end_at_once(kText, static_cast<int>(ExitCode::NotDone));
}

}  // namespace
}  // namespace trainyard::cli

int main(int argc, char** argv) {
  trainyard::sys::open_standard_descriptors();
  trainyard::sys::survive_file_size_limit();
  // Programs that it starts have the default again, and so has the keeper.
  std::signal(SIGBUS, trainyard::cli::end_for_cut_file);
  return static_cast<int>(trainyard::cli::main(argc, argv));
}
