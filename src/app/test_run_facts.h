// Runs, their tasks and files as a test says that they are there. The current directory is /here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/run_facts.h"
#include "base/path_name.h"
#include "model/status.h"
#include "run/run_directory.h"

namespace trainyard::app {

struct TestRun {
  KnownRun run;
  std::vector<journal::TaskRow> tasks = {};
  std::string job_file = "sweep.yaml";
  bool is_here = true;  ///< A run of the current directory.
  bool over = false;
};

/// A run in this directory, seen from /here, that has ended. It was created and started at its
/// number.
inline TestRun ended_run(std::uint32_t number, const std::string& shown) {
  const std::string directory = absolute_path(shown, "/here");
  return {.run = {.directory = directory,
                  .real = directory,
                  .shown = shown,
                  .number = number,
                  .has_journal = true,
                  .started_ms = number,
                  .created_ms = number}};
}

inline TestRun running_run(std::uint32_t number, const std::string& shown) {
  TestRun run = ended_run(number, shown);
  run.run.is_running = true;
  return run;
}

/// A submission that has not started.
inline TestRun queued_run(std::uint32_t number, const std::string& shown) {
  TestRun run = ended_run(number, shown);
  run.run.is_queued = true;
  run.run.has_journal = false;
  run.run.started_ms = 0;
  return run;
}

/// A run that only its number, its path and its name from anywhere find.
inline TestRun run_elsewhere(std::uint32_t number, const std::string& directory) {
  TestRun run = ended_run(number, directory);
  run.is_here = false;
  return run;
}

/// A task that has finished. Its matrix is that of an id such as "lr=0.1,seed=0".
inline journal::TaskRow test_task(const std::string& group, const std::string& id) {
  journal::TaskRow row;
  row.group_name = group;
  row.group_in_file = group;
  row.id = id;
  row.attempt = 1;
  row.standing = {.status = Status::Exited, .verdict = model::Verdict::Finished};
  for (const auto part : std::views::split(id, ',')) {
    const std::string word(std::string_view{part});
    const std::size_t sign = word.find('=');
    if (sign == std::string::npos) break;
    row.matrix.emplace_back(word.substr(0, sign), word.substr(sign + 1));
  }
  return row;
}

inline journal::TaskRow test_task(const std::string& group, const std::string& id,
                                  const model::Standing& standing) {
  journal::TaskRow row = test_task(group, id);
  row.standing = standing;
  return row;
}

class TestTasks final : public RunTasks {
 public:
  TestTasks(const TestRun& run, std::vector<std::string> near) : run_(run), near_(std::move(near)) {
    for (std::uint32_t i = 0; i < run_.tasks.size(); ++i) run_.tasks[i].index = {i};
  }

  Result<journal::JournalReader::Lookup> look_up(std::string_view name) override {
    journal::JournalReader::Lookup lookup;
    std::ranges::copy_if(run_.tasks, std::back_inserter(lookup.found), [name](const auto& task) {
      return task.id == name || task.group_name + "/" + task.id == name;
    });
    if (lookup.found.empty()) lookup.near = near_;
    return lookup;
  }
  Result<std::vector<journal::TaskRow>> all() override { return run_.tasks; }
  bool is_over() override { return run_.over; }

 private:
  TestRun run_;
  std::vector<std::string> near_;
};

class TestFacts final : public RunFacts {
 public:
  explicit TestFacts(std::vector<TestRun> runs) : runs_(std::move(runs)) {}

  std::set<std::string> files;        ///< Absolute.
  std::set<std::string> directories;  ///< Absolute, without those of runs.
  std::vector<std::string> near;      ///< The similar names for every word that no task has.

  [[nodiscard]] PathKind kind_of(const std::string& path) const override {
    const std::string absolute = absolute_path(path, "/here");
    if (files.contains(absolute)) return PathKind::File;
    if (in(path)) return PathKind::RunDirectory;
    return directories.contains(absolute) ? PathKind::Directory : PathKind::Missing;
  }
  [[nodiscard]] bool has_runs_in(const std::string& directory) const override {
    return directories.contains(absolute_path(directory, "/here") + "/runs");
  }
  [[nodiscard]] std::optional<KnownRun> of_number(std::uint32_t number) const override {
    return first_of([number](const TestRun& each) { return each.run.number == number; });
  }
  [[nodiscard]] std::optional<KnownRun> in(const std::string& directory) const override {
    return first_of([path = absolute_path(directory, "/here")](const TestRun& each) {
      return each.run.directory == path && !each.run.is_gone;
    });
  }
  [[nodiscard]] std::vector<KnownRun> below(const std::string& directory) const override {
    return all_of([runs = absolute_path(directory, "/here") + "/runs"](const TestRun& each) {
      return std::filesystem::path(each.run.directory).parent_path() == runs;
    });
  }
  [[nodiscard]] Result<std::vector<KnownRun>> of_job(const std::string& job_file) const override {
    if (job_file == "broken.yaml") return std::unexpected(Error{"broken.yaml: no 'groups'"});
    return all_of([&job_file](const TestRun& each) { return each.job_file == job_file; });
  }
  [[nodiscard]] std::vector<KnownRun> here() const override {
    return all_of([](const TestRun& each) { return each.is_here; });
  }
  [[nodiscard]] std::vector<KnownRun> here_named(const std::string& name) const override {
    return all_of([&](const TestRun& each) { return each.is_here && has_name(each, name); });
  }
  [[nodiscard]] std::vector<KnownRun> anywhere_named(const std::string& name) const override {
    return all_of([&](const TestRun& each) { return has_name(each, name); });
  }
  [[nodiscard]] std::optional<KnownRun> last() const override {
    std::vector<KnownRun> runs = all_of([](const TestRun& each) { return !each.run.is_gone; });
    const auto last = std::ranges::max_element(runs, {}, &KnownRun::number);
    return last == runs.end() ? std::nullopt : std::optional(*last);
  }
  [[nodiscard]] Result<std::unique_ptr<RunTasks>> tasks_of(const std::string& run) const override {
    for (const TestRun& each : runs_) {
      const bool has_tasks = each.run.has_journal && !each.run.is_unreadable;
      if (each.run.directory == run && has_tasks) return std::make_unique<TestTasks>(each, near);
    }
    return std::unexpected(Error{"no tasks in '" + run + "'"});
  }

 private:
  static bool has_name(const TestRun& each, const std::string& name) {
    const std::string own = std::filesystem::path(each.run.directory).filename().string();
    return !each.run.is_gone && run::is_directory_like(own, name);
  }
  template <class Is>
  [[nodiscard]] std::vector<KnownRun> all_of(Is is) const {
    std::vector<KnownRun> found;
    for (const TestRun& each : runs_) {
      if (is(each)) found.push_back(each.run);
    }
    return found;
  }
  template <class Is>
  [[nodiscard]] std::optional<KnownRun> first_of(Is is) const {
    const std::vector<KnownRun> found = all_of(is);
    return found.empty() ? std::nullopt : std::optional(found.front());
  }

  std::vector<TestRun> runs_;
};

}  // namespace trainyard::app
