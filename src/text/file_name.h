// Rules for names that become directories: of jobs, of groups and of tasks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::text {

constexpr std::size_t kFileNameMax = 200;

/// The reason why a name is not a safe file name, as the end of a sentence that starts with the
/// name: "has a '/'", "is empty". Nothing when it is safe.
std::optional<std::string> why_unsafe(std::string_view name);

/// The word for the last run of a directory.
constexpr std::string_view kLastRun = "last";

/// The reason why a job, whose runs take its name, cannot have this name, with the cure: "means the
/// run with this number; choose a name with a letter, such as 'run-5'". Nothing when it can.
std::optional<std::string> why_no_run_name(std::string_view name);

/// The name of a job for a file of this name: "sweep", "run-5" for "5", "last-run" for "last", "a_b"
/// for "a*b"; `otherwise` if the name is not safe.
std::string run_name_for(std::string name, std::string_view otherwise);

}  // namespace trainyard::text
