// The likely meaning of a command line that could not be read.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): its name is not ours.
class App;
}

namespace trainyard::cli {

/// Returns nullptr if `app` has no command of this name.
const CLI::App* find_command(const CLI::App& app, const std::string& name);

/// "trainyard retry 1 --time-limit 3h": a line with the word at `at`, an option or the name of one
/// ("time-limit=3h"), in the command that has it and takes the same arguments as `here`, or any
/// arguments if `here` is the program itself. All other words stay, except options that this
/// command does not have. Empty: no command has it.
std::string line_with_option(const CLI::App& app, const CLI::App& here,
                             std::span<const char* const> words, std::size_t at);

/// "python3 fit.py --lr 0.1", for the words "fit.py --lr 0.1".
std::string as_command(std::span<const char* const> words);

/// Advice for a word of other tools for which `command` has no name, with `number` where it needs
/// one: "the job file needs no option before it" for "-f" of "run". Empty: the word is unknown.
std::string other_way(std::string_view command, std::string_view word, std::string_view number);

/// "unknown option '--dryrun' (did you mean '--dry-run'?)": the first of `words` (which begin with
/// the program's name) that is not a command or an option in its place; empty if all are known.
/// `cure`, if not empty, is what to do about an unknown option, in the place of the nearest one.
/// `program` has the words after '--', if they are not among `words`.
std::string unknown_word(const CLI::App& app, std::span<const char* const> words,
                         std::string_view cure = {}, std::span<const std::string> program = {});

/// The first of `words` that is not a command, for `trainyard help`, where each word must be one:
/// "unexpected argument 'submit'; 'trainyard help run' shows the help of one command".
std::string unknown_topic(const CLI::App& app, std::span<const char* const> words);

/// The message of unknown_word() for one word that looks like an option of this command, but is
/// not; `next` is the word after it.
std::string unknown_option(const CLI::App& command, std::string_view word,
                           std::string_view next = {});

}  // namespace trainyard::cli
