// Where the files of a task and of a report lie, under a run directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "journal/reader.h"

namespace trainyard::report {

/// Whether tasks have a directory a group (task.directory-grouping), or lie in the run directory.
enum class Grouping : std::uint8_t { ByGroup, Flat };

/// Looks at the directories of a task that has been started; ByGroup when neither is there.
Grouping grouping_of(const std::string& run_directory, const TaskRow& row);

/// "train/lr=1", relative to the run directory.
std::string task_directory_of(const TaskRow& row, Grouping grouping);

/// "stderr.log", and "stderr.2.log" of the second attempt.
std::string log_name(std::string_view stream, std::uint32_t attempt);

/// The name of a group as a file name: what would lead out of the directory is replaced.
std::string report_name(std::string_view group);

}  // namespace trainyard::report
