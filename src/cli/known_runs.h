// The runs that a person has on this host, by the numbers and names that they call them by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trainyard::cli {

/// The directories that "46" or "digits" (all runs of this name, as has_name() says) stand for, the
/// largest number first. Empty if there is none. The directory of a number may be gone, and so may
/// that of a submission that has not ended; the others exist.
std::vector<std::string> known_runs(std::string_view name);

/// Whether a run has this name: its directory has it, or is the second or a later one of the job of
/// this name: "eval-3" of "eval".
bool has_name(const std::string& run_directory, std::string_view name);

/// Runs that were started or submitted from a directory, wherever they are.
std::vector<std::string> started_from(const std::string& directory);

/// The directory of the run with the largest number, on all of this host. Its directory exists,
/// unless it is that of a submission that has not ended.
std::optional<std::string> last_known_run();

/// The number in "99" and in "99/lr=0.1", where no run of this user has it.
std::optional<std::uint32_t> unknown_number_in(std::string_view word);

/// "run 99 not found; the last one is run 46 ('runs/digits')".
Error no_run_of_number(std::uint32_t number);

/// Nothing if it has none, such as a run that began on another host.
std::optional<std::uint32_t> number_of_run(const std::string& run_directory);

/// "run 46 ('runs/digits')", as seen from here; without a number the directory alone.
std::string name_of_run(const std::string& run_directory);

/// "run 13 ('runs/sweep-2'), the latest of 2 runs", of the run that was chosen among `candidates`
/// runs.
std::string name_of_latest_run(const std::string& run_directory, std::size_t candidates);

/// On a terminal, says on standard error which run a number names, what became of it ("submitted"),
/// and what to do with it. A script reads the number alone, from standard output.
void explain_number(std::uint32_t number, const std::string& run_directory,
                    std::string_view outcome);

}  // namespace trainyard::cli
