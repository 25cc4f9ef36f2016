// The commands of the program: each adds its words to the command line, and runs. A command is in
// the file that has its name; main.cc puts all of them together.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

/// Runs its command with the words after --; nothing if another one was typed.
using Runner = std::move_only_function<std::optional<ExitCode>(const std::vector<std::string>&)>;

/// A command of the program, or several that share their words.
struct Entry {
  std::vector<std::string_view> names;   ///< Empty: `add` needs the other commands.
  std::function<Runner(CLI::App&)> add;  ///< The app must outlive the runner.
};

/// A class whose constructor adds the words, and whose run() runs the typed command.
template <typename Words, typename... More>
Entry entry(std::initializer_list<std::string_view> names, const More&... more) {
  return {.names = names, .add = [more...](CLI::App& app) -> Runner {
            return [words = std::make_unique<Words>(app, more...)](
                       const std::vector<std::string>& command) -> std::optional<ExitCode> {
              if constexpr (requires { words->run(command); }) {
                return words->run(command);
              } else {
                // The code of `ranks` and `parallel` is the exit code of their program.
                const auto code = words->run();
                return code ? std::optional(static_cast<ExitCode>(*code)) : std::nullopt;
              }
            };
          }};
}

/// Returns the entry of a command whose options `add` connects with its words. `otherwise` are the
/// options without words.
template <typename Options, typename App>
Entry entry(std::initializer_list<std::string_view> names, App* (*add)(App&, Options&),
            ExitCode (*run)(const Options&), const Options& otherwise = {}) {
  return {.names = names, .add = [add, run, otherwise](App& app) -> Runner {
            auto options = std::make_unique<Options>(otherwise);
            const App* const command = add(app, *options);
            return [options = std::move(options), command,
                    run](const std::vector<std::string>& /*command*/) -> std::optional<ExitCode> {
              if (!command->parsed()) return std::nullopt;
              return run(*options);
            };
          }};
}

/// `command_line` is the typed one without secrets, for the journal.
Entry run_entry(const std::string& command_line);
Entry submit_entry(const std::string& command_line);
Entry retry_entry(const std::string& command_line);
Entry agent_entry();
Entry clean_entry();
Entry client_entry();
Entry completion_entry();
Entry config_entry();
Entry devices_entry();
Entry doctor_entry();
Entry down_entry();
Entry drain_entry();
Entry hold_entry();
Entry kill_entry();
Entry learned_entry();
Entry logs_entry();
Entry machines_entry();
Entry parallel_entry();
Entry plan_entry();
Entry ranks_entry();
Entry release_entry();
Entry replay_entry();
Entry results_entry();
Entry status_entry();
Entry up_entry();
Entry update_entry();
Entry wait_entry();

/// `--sort -acc` of `results` as one word, `--sort=-acc`: alone the second would be a flag. `kept`
/// owns the joined word.
std::vector<const char*> with_joined_sort(const std::vector<const char*>& words, std::string& kept);

/// Answers a shell that asks for completions; nothing if the words are another command. The
/// question is `complete <word>... <word at the cursor>`. The answer has a line for each command and
/// option that begins so, with its meaning after a tab. A line with a tab and `files` means that
/// names of files may follow. Never reports an error.
std::optional<ExitCode> answer_shell(const CLI::App& app, std::span<const char* const> words);

}  // namespace trainyard::cli
