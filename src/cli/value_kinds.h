// The kinds of option values, in the words that follow the options in `--help`. Those of task
// options are in the table of keys (job/task_keys.cc).
#pragma once

namespace trainyard::cli::value_kinds {

constexpr const char* kFile = "FILE";
constexpr const char* kDirectory = "DIRECTORY";
constexpr const char* kJobFile = "JOB-FILE";
constexpr const char* kRun = "RUN";
constexpr const char* kTasks = "TASKS";  ///< Tasks and their run: app/task_selection.h.
constexpr const char* kPattern = "PATTERN";
constexpr const char* kSetting = "KEY=VALUE";
constexpr const char* kColumn = "COLUMN";       ///< One column of a table of results, or several.
constexpr const char* kKeyColumns = "KEYS";     ///< Columns of keys in a table of results.
constexpr const char* kPivot = "ROWS,COLUMNS";  ///< Two columns of keys.
constexpr const char* kCondition = "CONDITION";
constexpr const char* kSize = "SIZE";
constexpr const char* kTime = "TIME";
constexpr const char* kNumber = "NUMBER";
constexpr const char* kCards = "GPUS";
constexpr const char* kMachines = "MACHINES";
constexpr const char* kName = "NAME";
constexpr const char* kHosts = "HOSTS";
constexpr const char* kOptions = "OPTIONS";  ///< Options of another program.
constexpr const char* kKey = "KEY";
constexpr const char* kResult = "NAME=VALUE";

}  // namespace trainyard::cli::value_kinds
