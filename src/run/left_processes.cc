#include "run/left_processes.h"

#include "process/process_table.h"
#include "run/run_directory.h"
#include "sys/files.h"

namespace trainyard::run {

std::vector<std::int64_t> processes_left(const std::string& run_directory,
                                         const journal::ExecutionRow& last) {
  if (last.ended || last.host != sys::host_name()) return {};
  return process::processes_left({.mark = mark_of(real_directory(run_directory)),
                                  .user = process::user_of_run(run_directory)});
}

}  // namespace trainyard::run
