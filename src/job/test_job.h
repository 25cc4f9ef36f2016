// Jobs made of text, for the tests of this folder.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"
#include "job/job.h"
#include "model/resources.h"
#include "sys/test_directory.h"
#include "text/mistake.h"

namespace trainyard::job {

/// 4 CPUs and 20 GB, of which 2 GB stay free by default.
inline model::Capacity small_machine() { return {.memory = gb(20), .cpus = model::cpus(4)}; }

inline LoadOptions in_job_directory() {
  return {.job_file = "sweep.yaml", .current_directory = "/job"};
}

/// What is wrong with a job file, as people read it.
inline std::vector<std::string> mistakes_of(std::string_view text,
                                            const LoadOptions& options = in_job_directory(),
                                            const model::Capacity& machine = small_machine()) {
  std::vector<std::string> lines;
  const auto job = Job::parse(text, options, machine);
  if (job) return lines;
  lines.reserve(job.error().size());
  for (const text::Mistake& mistake : job.error()) lines.push_back(text::to_text(mistake));
  return lines;
}

/// What is wrong with a job of one group of one task, and some lines in the group.
inline std::vector<std::string> in_group(std::string_view lines) {
  std::string text = "groups:\n  - name: train\n    tasks: [{command: ./t}]\n";
  for (std::size_t at = 0; at < lines.size();) {
    const auto end = std::min(lines.find('\n', at), lines.size());
    text += fmt::format("    {}\n", lines.substr(at, end - at));
    at = end + 1;
  }
  return mistakes_of(text);
}

inline Job job_of(std::string_view text, const LoadOptions& options = in_job_directory(),
                  const model::Capacity& machine = small_machine()) {
  auto job = Job::parse(text, options, machine);
  if (!job) {
    for (const text::Mistake& mistake : job.error())
      std::fprintf(stderr, "%s\n", text::to_text(mistake).c_str());
  }
  check(job.has_value(), "a job file without mistakes");
  return std::move(*job);
}

/// A job whose earlier runs have left this in its learned file, on a small machine with these GPUs.
inline Job taught_job(std::string_view text, std::string_view learned,
                      const std::vector<model::Gpu>& gpus) {
  const sys::TemporaryDirectory directory;
  directory.write("sweep.yaml", std::string(text));
  directory.make(".trainyard");
  directory.write(".trainyard/sweep.yaml.learned.json", std::string(learned));
  model::Capacity machine = small_machine();
  machine.gpus = gpus;
  return job_of(text, {.job_file = "sweep.yaml", .current_directory = directory.path()}, machine);
}

inline std::vector<std::string> ids_of(const Job& job) {
  std::vector<std::string> ids;
  ids.reserve(job.plan().tasks.size());
  for (std::uint32_t i = 0; i < job.plan().tasks.size(); ++i) ids.push_back(job.task_id({i}));
  return ids;
}

}  // namespace trainyard::job
