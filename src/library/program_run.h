// The run of a program: one directory with one lock and one journal, for all groups that a yard
// runs, one after the other. What an earlier execution of the program did there is known again.
//
// Between two groups the journal is closed and only the lock is held. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "journal/reader.h"
#include "report/write_reports.h"
#include "sys/files.h"
#include "trainyard/task.h"
#include "trainyard/task_group.h"

namespace trainyard::library {

/// Tasks of a group that are a batch of the run.
struct Part {
  std::uint32_t batch = 1;
  int number = 1;  ///< Of the parts of the group, from 1.
  std::vector<Task*> tasks;
  /// The ids of those that earlier executions have finished.
  std::set<std::string> finished_before;
};

class ProgramRun {
 public:
  /// Makes the directory and locks it, and ends what a dead execution left there. An error when
  /// another process has it, or when it has the run of a job file.
  static Result<ProgramRun> open(const std::string& directory, std::string name);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// It has a journal.
  [[nodiscard]] bool has_begun() const { return has_begun_; }

  /// The tasks of a group that are to be run now, as batches in order: what an earlier execution
  /// has run in the batch where it is known, and the others in the group's first batch when that
  /// is run again, else in a new one. Changes nothing.
  [[nodiscard]] Result<std::vector<Part>> parts_of(const TaskGroup& group,
                                                   const std::vector<Task*>& tasks) const;
  /// They stand in the journal as run by this execution.
  void took(const TaskGroup& group, const std::vector<Part>& parts);

  /// The tasks of a batch as they stand in the journal now, by id.
  using Rows = std::map<std::string, journal::TaskRow>;
  [[nodiscard]] Result<Rows> rows_of(std::uint32_t batch) const;

  /// Writes the reports. An error is worth a note.
  Result<void> report();

 private:
  /// A batch in the journal.
  struct Known {
    std::uint32_t batch = 1;
    bool of_before = false;  ///< Of an earlier execution, and not run by this one.
  };
  ProgramRun(std::string directory, std::string name, sys::RunLock lock);
  Result<void> look_into_journal();
  [[nodiscard]] Result<journal::JournalReader> journal() const;

  std::string directory_;
  std::string name_;
  sys::RunLock lock_;
  bool has_begun_ = false;
  std::map<std::string, Known, std::less<>> known_;  ///< By what people call their group.
  std::uint32_t next_batch_ = 1;
  report::Overview overview_;
};

}  // namespace trainyard::library
