// Jobs made of text, for the tests of this folder.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"
#include "job/job.h"
#include "job/learned.h"
#include "model/resources.h"
#include "sys/test_directory.h"
#include "text/mistake.h"

namespace trainyard::job {

/// 4 CPUs and 20 GB, of which 2 GB stay free by default.
inline model::Capacity small_machine() { return {.memory = gb(20), .cpus = model::cpus(4)}; }

inline LoadOptions in_job_directory() {
  return {.job_file = "sweep.yaml", .current_directory = "/job"};
}

/// The mistakes of a job file, as people read them.
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

/// The mistakes of a job of one group of one task, with some more lines in the group.
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

/// The estimates as of runs of the commands that the job has; a task that it has no more had that
/// of the first one of its group.
inline Learned measured_from(const Job& job, const Learned& learned) {
  std::map<std::pair<std::string, std::string>, std::int64_t> commands;
  std::map<std::string, std::int64_t> first;
  for (std::uint32_t i = 0; i < job.plan().tasks.size(); ++i) {
    const std::string& group = job.plan().groups[job.group_of({i}).value].name;
    commands[{group, job.task_id({i})}] = job.command_fingerprint({i});
    first.try_emplace(group, job.command_fingerprint({i}));
  }
  Learned measured = learned;
  learned.each([&](std::string_view group, std::string_view id, const Learned::Taken& taken) {
    const auto found = commands.find({std::string(group), std::string(id)});
    const std::int64_t command =
        found == commands.end() ? first[std::string(group)] : found->second;
    measured.add(group, id, taken.task, taken.from, command);
  });
  return measured;
}

/// A job of whose commands earlier runs have left this in its learned file, on a small machine with
/// these GPUs.
inline Job taught_job(std::string_view text, std::string_view learned,
                      const std::vector<model::Gpu>& gpus) {
  const sys::TemporaryDirectory directory;
  const LoadOptions options{.job_file = "sweep.yaml", .current_directory = directory.path()};
  model::Capacity machine = small_machine();
  machine.gpus = gpus;
  const Learned measured =
      measured_from(job_of(text, options, machine), Learned::parse(learned).value());
  directory.make(".trainyard");
  directory.write(".trainyard/sweep.yaml.learned.json", measured.to_json());
  return job_of(text, options, machine);
}

inline std::vector<std::string> ids_of(const Job& job) {
  std::vector<std::string> ids;
  ids.reserve(job.plan().tasks.size());
  for (std::uint32_t i = 0; i < job.plan().tasks.size(); ++i) ids.push_back(job.task_id({i}));
  return ids;
}

}  // namespace trainyard::job
