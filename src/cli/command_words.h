// The words of a command line: in the form that may be stored, in the journal and in reports, for
// anyone who may see a run; and the name of a run of a command. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::cli {

/// In the place of a value that is never shown.
constexpr std::string_view kHidden = "******";

/// Whether `setting` ("smtp.password=...", as --set takes it) sets a value that is never shown.
bool sets_a_secret(std::string_view setting);

/// All words as one text for a shell, with kHidden in the place of secrets: passwords of --set and
/// the values of --env.
std::string shown_command_line(std::span<const char* const> words);

/// Returns the name of what a command runs, as the name of a directory: "train" of "python3 -u
/// train.py" and "torchrun --nproc_per_node 4 train.py", "pkg.train" of "python3 -m pkg.train",
/// "python3" of "python3 -c ...". A single word is a text for a shell, whose first command counts.
std::string command_name(const std::vector<std::string>& command);

/// Whether a program runs another one or a script, as python3.12 and bash do.
bool is_runner(std::string_view program);

/// Returns the name of a file without its directory and what follows its first dot.
std::string name_of_file(const std::string& path);

}  // namespace trainyard::cli
