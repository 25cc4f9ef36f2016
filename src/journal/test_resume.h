// For the tests of what a resumed run takes over.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "journal/journal.h"
#include "journal/test_run.h"
#include "model/plan.h"

namespace trainyard::journal {

inline Journal::Resumed resume(const JournalDirectory& directory, const TestJob& job) {
  return must(Journal::resume(directory.journal(), {job.batch()}, {.host = "again"}));
}

/// Tasks of a plan as "first attempt", with a + for those that have finished before.
inline std::vector<std::string> attempts_of(const model::Plan& plan) {
  std::vector<std::string> texts;
  for (const model::PlannedTask& task : plan.tasks) {
    texts.push_back(fmt::format("{}{}", task.first_attempt, task.finished_before() ? "+" : ""));
  }
  return texts;
}

}  // namespace trainyard::journal
