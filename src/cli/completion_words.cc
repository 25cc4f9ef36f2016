// `trainyard completion`, which prints a script for a shell to complete our command lines, and the
// answers for these scripts.
//
// The script only asks the program: the possible words are read from the same description of
// commands and options by which they are parsed.
#include <algorithm>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/console.h"
#include "cli/entry.h"
#include "cli/help_format.h"
#include "cli/shared_words.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kAsked = "complete";
constexpr std::string_view kHelpCommand = "help";

// The scripts ask the program as typed, or, if that is an alias, the one on the path.

constexpr const char* kBashCompletion =
    R"sh(# Completion of trainyard for bash: source <(trainyard completion bash)
_trainyard() {
  local line program="${1/#\~/$HOME}"
  local -a words
  # COMP_WORDS splits --set=x, too. The x keeps an empty last word.
  read -rd '' -a words <<< "${COMP_LINE:0:COMP_POINT}x"
  words[-1]=${words[-1]%x}
  [[ -n $(type -P -- "$program") ]] || program=trainyard
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == $'\tfiles' ]]; then
      compopt -o default
      # The default is for no words at all: next to commands, files are words, too.
      if (( ${#COMPREPLY[@]} )); then
        compopt -o filenames
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "${words[-1]}")
      fi
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <("$program" complete "${words[@]:1}" 2>/dev/null)
  return 0
}
complete -F _trainyard trainyard
)sh";

constexpr const char* kZshCompletion = R"sh(#compdef trainyard
# Completion of trainyard for zsh: source <(trainyard completion zsh), or as the file _trainyard in a
# directory of $fpath.
_trainyard() {
  local line program="${(Q)words[1]/#\~/$HOME}"
  local -a offers shown
  whence -p -- "$program" >/dev/null || program=trainyard
  for line in "${(@f)$("$program" complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      $'\tfiles') _files ;;
      *) offers+=("${line%%$'\t'*}"); shown+=("${line//$'\t'/  -- }") ;;
    esac
  done
  (( $#offers )) && compadd -d shown -a offers
  return 0
}
if [[ $funcstack[1] == _trainyard ]]; then
  _trainyard
else
  compdef _trainyard trainyard
fi
)sh";

constexpr const char* kFishCompletion =
    R"sh(# Completion of trainyard for fish: trainyard completion fish | source
function __trainyard_complete
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    # A quote that is still open is no part of the word.
    set -l plain (string unescape -- $word)
    or set plain (string trim --left --chars '\'"' -- $word)
    set -l program trainyard
    command -q $before[1]; and set program $before[1]
    for line in ($program complete $before[2..] "$plain" 2>/dev/null)
        if test "$line" = \t'files'
            __fish_complete_path "$plain"
        else
            printf "%s\n" $line
        end
    end
end
complete -c trainyard -f -a '(__trainyard_complete)'
)sh";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

struct Offer {
  std::string text;   ///< The whole word.
  std::string about;  ///< For people, where the shell shows it.
};

struct Offers {
  std::vector<Offer> list;
  bool files = false;  ///< And the names of any files, which the shell itself completes.
};

/// Follows the words of a command line to the place behind them.
class CursorPlace {
 public:
  explicit CursorPlace(const CLI::App& app) : command_(&app) {}

  void read(const std::string& word);

  /// The commands and options that may stand there, if `word` is its beginning, and maybe others.
  [[nodiscard]] Offers offers(const std::string& word) const;

 private:
  void read_option(const std::string& word);
  void read_letters(const std::string& word);
  void expect_value(const CLI::Option& option);
  void read_name(const std::string& word);
  [[nodiscard]] bool is_value(const std::string& word) const;
  void add_options(Offers& offers) const;
  void add_commands(Offers& offers) const;

  const CLI::App* command_;
  const CLI::Option* due_ = nullptr;  ///< Its values come next; values_due_ is their number.
  int values_due_ = 0;
  bool only_values_ = false;  ///< Behind `--`.
  bool is_foreign_ = false;   ///< In the command of another program.
  bool is_help_ = false;      ///< Names of commands follow, and nothing else.
  bool has_values_ = false;   ///< A word was a value that needs no option: no command follows.
};

void CursorPlace::read(const std::string& word) {
  if (is_foreign_) return;
  if (due_ != nullptr && is_value(word)) {
    if (--values_due_ == 0) due_ = nullptr;
    return;
  }
  due_ = nullptr;
  if (word == "--") {
    only_values_ = true;
    is_foreign_ = command_->get_prefix_command() || takes_command(command_->get_name());
  } else if (!only_values_ && word.starts_with("--")) {
    read_option(word);
  } else if (!only_values_ && word.starts_with('-') && word.size() > 1) {
    read_letters(word);
  } else {
    read_name(word);
  }
}

/// Whether a word is a value of the option that is due: an option that may go without a value has
/// none that looks like an option.
bool CursorPlace::is_value(const std::string& word) const {
  return due_->get_items_expected_min() > 0 || !word.starts_with('-');
}

void CursorPlace::expect_value(const CLI::Option& option) {
  if (!takes_value(option)) return;
  due_ = &option;
  values_due_ = std::max(1, option.get_items_expected_min());
}

void CursorPlace::read_option(const std::string& word) {
  const CLI::Option* const option = command_->get_option_no_throw(word);
  if (option != nullptr) expect_value(*option);
}

/// `-af`, and `-n 4`.
void CursorPlace::read_letters(const std::string& word) {
  const CLI::Option* const last = command_->get_option_no_throw(fmt::format("-{}", word.back()));
  if (last != nullptr) expect_value(*last);
}

/// A command, or a value that needs no option.
void CursorPlace::read_name(const std::string& word) {
  if (command_->get_prefix_command()) {
    is_foreign_ = true;
    return;
  }
  const std::vector<const CLI::App*> commands = command_->get_subcommands(
      [&word](const CLI::App* command) { return command->check_name(word); });
  if (commands.empty() || has_values_) {
    has_values_ = true;
  } else if (word == kHelpCommand) {
    is_help_ = true;
  } else {
    command_ = commands.front();
  }
}

void CursorPlace::add_options(Offers& offers) const {
  for (const CLI::Option* option : command_->get_options()) {
    const std::string about = first_line(option->get_description());
    for (const std::string& name : option->get_lnames()) {
      offers.list.push_back({.text = "--" + name, .about = about});
    }
    for (const std::string& name : option->get_snames()) {
      offers.list.push_back({.text = "-" + name, .about = about});
    }
  }
}

void CursorPlace::add_commands(Offers& offers) const {
  const bool is_top = command_->get_parent() == nullptr;
  const auto is_offered = [&](const CLI::App* it) {
    if (is_help_ && it->get_name() == kTaskOptionsTopic) return true;
    return !it->get_group().empty() && !(is_top && it->get_group() == command_groups::kPlumbing);
  };
  for (const CLI::App* command : command_->get_subcommands(is_offered)) {
    offers.list.push_back({.text = command->get_name(), .about = command->get_description()});
    for (const std::string& alias : command->get_aliases()) {
      offers.list.push_back({.text = alias, .about = command->get_description()});
    }
  }
}

Offers CursorPlace::offers(const std::string& word) const {
  if (is_foreign_ || (due_ != nullptr && is_value(word))) return {.list = {}, .files = true};
  Offers offers;
  if (!only_values_ && !is_help_ && word.starts_with('-')) {
    add_options(offers);
    offers.files = word.contains('=');
    return offers;
  }
  const auto is_positional = [](const CLI::Option* it) { return it->get_positional(); };
  offers.files = !is_help_ &&
                 (command_->get_prefix_command() || !command_->get_options(is_positional).empty());
  if (!has_values_) add_commands(offers);
  return offers;
}

CLI::App* add_completion(CLI::App& app, std::string& shell) {
  CLI::App* completion = app.add_subcommand("completion", "Print a completion script for a shell");
  completion->group(command_groups::kSetup);
  completion->add_option("shell", shell, "Shell")->type_name("bash|zsh|fish")->required();
  completion->footer(
      "Examples:\n"
      "  trainyard completion bash\n"
      "  trainyard completion zsh > \"${fpath[1]}/_trainyard\"\n"
      "  trainyard completion fish > ~/.config/fish/completions/trainyard.fish\n"
      "\n"
      "Completes commands, options and file names.\n"
      "For bash, add this line to ~/.bashrc:\n"
      "  source <(trainyard completion bash)\n"
      "For fish, the directory of the file must exist:\n"
      "  mkdir -p ~/.config/fish/completions\n"
      "Exit codes: 0 printed, 1 standard output cannot be written, 2 unknown shell.");
  return completion;
}

ExitCode completion_command(const std::string& shell) {
  if (shell == "bash") return cli::answer(kBashCompletion);
  if (shell == "zsh") return cli::answer(kZshCompletion);
  if (shell == "fish") return cli::answer(kFishCompletion);
  return fail(fmt::format("no completion for '{}'; use bash, zsh or fish", shell));
}

}  // namespace

Entry completion_entry() { return entry({}, add_completion, completion_command); }

std::optional<ExitCode> answer_shell(const CLI::App& app, std::span<const char* const> words) {
  if (words.size() < 2 || words[1] != kAsked) return std::nullopt;
  if (words.size() == 2) return ExitCode::Success;
  CursorPlace place(app);
  for (const std::string_view word : words.subspan(2, words.size() - 3)) {
    place.read(std::string(word));
  }
  const std::string at_cursor = words.back();
  Offers offers = place.offers(at_cursor);
  std::erase_if(offers.list, [&](const Offer& it) { return !it.text.starts_with(at_cursor); });
  std::ranges::sort(offers.list, {}, &Offer::text);
  std::string text;
  for (const Offer& offer : offers.list) text += fmt::format("{}\t{}\n", offer.text, offer.about);
  if (offers.files) text += "\tfiles\n";
  return answer(text);
}

}  // namespace trainyard::cli
