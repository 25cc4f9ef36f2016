// Whatever stands in the file that keeps the files of a submitted job.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "job/job_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace job = trainyard::job;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto read = job::job_files_from(text)) {
    trainyard::check(job::job_files_from(job::to_json(*read)) == *read,
                     "what was read is written so that it is read again");
  }
  return 0;
}
