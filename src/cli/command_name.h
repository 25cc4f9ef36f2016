// The name of a run that was started from a command, where the user gives none. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::cli {

/// Returns the name of what a command runs, as the name of a directory: "train" of "python3 -u
/// train.py" and "torchrun --nproc_per_node 4 train.py", "pkg.train" of "python3 -m pkg.train",
/// "python3" of "python3 -c ...". A single word is a text for a shell, whose first command counts.
std::string command_name(const std::vector<std::string>& command);

/// Whether a program runs another one or a script, as python3.12 and bash do.
bool is_runner(std::string_view program);

/// Returns the name of a file without its directory and what follows its first dot.
std::string name_of_file(const std::string& path);

}  // namespace trainyard::cli
