#include "cli/completion_words.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/completion_scripts.h"
#include "cli/console.h"
#include "cli/help_format.h"
#include "cli/offers.h"
#include "cli/shared_words.h"
#include "text/typed_line.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kAsked = "complete";
constexpr std::string_view kHelpCommand = "help";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// The word of its kind (cli/value_kinds.h), without what its check says.
std::string kind_of(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));
}

/// Follows the words of a command line to the place behind them.
class CursorPlace {
 public:
  explicit CursorPlace(const CLI::App& app) : command_(&app) {}

  void read(const std::string& word);

  /// Completions that begin with `word`.
  Offers offers(const std::string& word);

 private:
  void read_option(const std::string& word);
  void read_letters(const std::string& word);
  void expect_value(const CLI::Option& option);
  void take_value(const CLI::Option& option, const std::string& value);
  void read_name(const std::string& word);
  [[nodiscard]] bool is_value(const std::string& word) const;
  [[nodiscard]] const CLI::Option* next_positional() const;
  [[nodiscard]] Offers values(const CLI::Option& option, const std::string& word,
                              const std::string& before);
  void add_options(Offers& offers) const;
  void add_commands(Offers& offers) const;

  const CLI::App* command_;
  const CLI::Option* due_ = nullptr;  ///< Its values come next; values_due_ is their number.
  int values_due_ = 0;
  bool only_values_ = false;  ///< Behind `--`.
  bool is_foreign_ = false;   ///< In the command of another program.
  bool is_help_ = false;      ///< Names of commands follow, and nothing else.
  Typed typed_;
};

void CursorPlace::read(const std::string& word) {
  if (is_foreign_) return;
  if (due_ != nullptr && is_value(word)) {
    take_value(*due_, word);
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

void CursorPlace::take_value(const CLI::Option& option, const std::string& value) {
  if (option.check_name("--run-dir")) typed_.run_directory = value;
}

void CursorPlace::read_option(const std::string& word) {
  const std::size_t sign = word.find('=');
  const CLI::Option* const option = command_->get_option_no_throw(word.substr(0, sign));
  if (option == nullptr) return;
  if (sign == std::string::npos) return expect_value(*option);
  take_value(*option, word.substr(sign + 1));
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
  if (commands.empty() || !typed_.before.empty()) {
    typed_.before.push_back(word);
  } else if (word == kHelpCommand) {
    is_help_ = true;
  } else {
    command_ = commands.front();
  }
}

const CLI::Option* CursorPlace::next_positional() const {
  std::size_t taken = typed_.before.size();
  for (const CLI::Option* option :
       command_->get_options([](const CLI::Option* it) { return it->get_positional(); })) {
    const auto most = static_cast<std::size_t>(option->get_items_expected_max());
    if (taken < most) return option;
    taken -= most;
  }
  return nullptr;
}

/// `before` is in the same word: "--set=".
Offers CursorPlace::values(const CLI::Option& option, const std::string& word,
                           const std::string& before) {
  typed_.word = word;
  Offers offers = offers_of(kind_of(option), typed_);
  for (Offer& offer : offers.list) offer.text.insert(0, before);
  return offers;
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

Offers CursorPlace::offers(const std::string& word) {
  if (is_foreign_) return {.list = {}, .files = true};
  if (due_ != nullptr && is_value(word)) return values(*due_, word, "");
  const bool dashed = !only_values_ && !is_help_ && word.starts_with('-');
  const std::size_t sign = word.find('=');
  if (dashed && sign != std::string::npos) {
    const CLI::Option* const option = command_->get_option_no_throw(word.substr(0, sign));
    if (option == nullptr || !takes_value(*option)) return {};
    return values(*option, word.substr(sign + 1), word.substr(0, sign + 1));
  }
  Offers offers;
  if (dashed) {
    add_options(offers);
    return offers;
  }
  const CLI::Option* const positional = is_help_ ? nullptr : next_positional();
  if (positional != nullptr) offers = values(*positional, word, "");
  if (command_->get_prefix_command()) offers.files = true;
  if (typed_.before.empty()) add_commands(offers);
  return offers;
}

struct Question {
  text::TypedLine line;
  bool of_bash = false;  ///< Bash puts the answer into the line as typed there.
};

std::optional<Question> read_question(std::span<const char* const> words) {
  constexpr std::size_t kOfBash = 3;
  if (words.size() == kOfBash && std::string_view(words[0]) == "bash") {
    Question question{.line = text::read_typed_line(words[2], words[1]), .of_bash = true};
    // The program itself.
    if (question.line.words.empty()) return std::nullopt;
    question.line.words.erase(question.line.words.begin());
    return question;
  }
  if (words.size() < 2 || std::string_view(words[0]) != "words") return std::nullopt;
  Question question;
  question.line.words.assign(words.begin() + 1, words.end() - 1);
  question.line.word = words.back();
  return question;
}

}  // namespace

CompletionWords::CompletionWords(CLI::App& app) {
  completion_ = app.add_subcommand("completion", "Print a completion script for a shell");
  completion_->group(command_groups::kSetup);
  completion_->add_option("shell", shell_, "Shell")->type_name("bash|zsh|fish")->required();
  completion_->footer(
      "Examples:\n"
      "  trainyard completion bash > ~/.local/share/bash-completion/completions/trainyard\n"
      "  trainyard completion zsh > \"${fpath[1]}/_trainyard\"\n"
      "  trainyard completion fish > ~/.config/fish/completions/trainyard.fish\n"
      "\n"
      "The directory of the file must exist. For bash and fish:\n"
      "  mkdir -p ~/.local/share/bash-completion/completions\n"
      "  mkdir -p ~/.config/fish/completions\n"
      "\n"
      "Completes commands, options, runs, tasks and states. For bash without the file, in "
      "~/.bashrc:\n"
      "source <(trainyard completion bash).\n"
      "Exit codes: 0 printed, 1 standard output cannot be written, 2 unknown shell.");
}

std::optional<ExitCode> CompletionWords::run() const {
  if (!completion_->parsed()) return std::nullopt;
  if (shell_ == "bash") return cli::answer(kBashCompletion);
  if (shell_ == "zsh") return cli::answer(kZshCompletion);
  if (shell_ == "fish") return cli::answer(kFishCompletion);
  return fail(fmt::format("no completion for '{}'; use bash, zsh or fish", shell_));
}

std::optional<ExitCode> answer_shell(const CLI::App& app, std::span<const char* const> words) {
  if (words.size() < 2 || words[1] != kAsked) return std::nullopt;
  const std::optional<Question> question = read_question(words.subspan(2));
  if (!question) return ExitCode::Success;
  CursorPlace place(app);
  for (const std::string& word : question->line.words) place.read(word);
  Offers offers = place.offers(question->line.word);
  std::string text;
  for (const Offer& offer : shown_offers(std::move(offers.list), question->line.word)) {
    if (question->of_bash) {
      text += text::as_typed(offer.text, question->line) + "\n";
    } else {
      text += offer.about.empty() ? offer.text + "\n"
                                  : fmt::format("{}\t{}\n", offer.text, offer.about);
    }
  }
  if (offers.files) text += "\tfiles\n";
  return answer(text);
}

}  // namespace trainyard::cli
