// Which names may become directories: of jobs, of groups and of tasks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::text {

constexpr std::size_t kFileNameMax = 200;

/// Why a name is no safe name of a file, as the end of a sentence that starts with the name:
/// "has a '/'", "is empty". Nothing when it is safe.
std::optional<std::string> why_unsafe(std::string_view name);

/// What users type for the last run of a directory, and behind a name for its last run.
constexpr std::string_view kLastRun = "last";
constexpr std::string_view kLastOfName = "@last";

/// Why a job cannot have a name, after which its runs are called, with the cure: "means the run
/// with this number; choose a name with a letter, such as 'run-5'". Nothing when it can.
std::optional<std::string> why_no_run_name(std::string_view name);

/// A path seen from a directory, without `.`, `..` and a slash at its end. Looks at no file.
std::string absolute_path(const std::string& directory, const std::string& path);

}  // namespace trainyard::text
