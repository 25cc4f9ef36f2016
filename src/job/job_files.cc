#include "job/job_files.h"

#include <expected>

#include <nlohmann/json.hpp>

namespace trainyard::job {

using Json = nlohmann::json;

std::string to_json(const JobFiles& files) {
  return Json(files).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<JobFiles> job_files_from(std::string_view json) {
  const Json read = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const std::unexpected<Error> damaged(Error{"is damaged: no object of texts"});
  if (!read.is_object()) return damaged;
  JobFiles files;
  for (const auto& [path, text] : read.items()) {
    if (!text.is_string()) return damaged;
    files.emplace(path, text.get<std::string>());
  }
  return files;
}

}  // namespace trainyard::job
