// The files that a job file names and that are read with it, as text: those of a matrix. Kept with
// the job file of a submission, so that the job stays as submitted, whatever happens to the files
// while it waits. Pure: no file is opened here.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::job {

/// By their absolute paths.
using JobFiles = std::map<std::string, std::string>;

/// To JSON and back: {"/home/ada/seeds.txt": "1\n2\n"}. Contents read for a matrix are UTF-8.
std::string to_json(const JobFiles& files);
Result<JobFiles> job_files_from(std::string_view json);

}  // namespace trainyard::job
