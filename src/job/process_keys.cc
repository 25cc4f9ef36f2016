#include "job/process_keys.h"

#include "job/job_binding.h"
#include "job/task_keys.h"

namespace trainyard::job {

std::vector<ProcessMistake> process_mistakes(const GroupSpec& group, const TaskSpec& task) {
  std::vector<ProcessMistake> mistakes;
  const auto complain = [&](TaskKey key, std::string_view message) {
    if (const Text* const text = said(group, task, key)) {
      mistakes.push_back({.place = text->place, .key = info_of(key).name, .message = message});
    }
  };
  if (!group.preload.empty()) {
    complain(TaskKey::Ranks, "a task with 'preload' is one process");
    complain(TaskKey::Workers, "a task with 'preload' is one process");
  }
  if (said(group, task, TaskKey::Workers) != nullptr) {
    complain(TaskKey::Ranks, "'ranks' and 'workers' cannot be combined");
    complain(TaskKey::Launcher, "cannot be combined with 'workers', which trainyard starts itself");
    const Text* const two_phase = said(group, task, TaskKey::TwoPhase);
    const bool is_off = two_phase != nullptr && two_phase->text.text() == "false";
    if (!is_off) complain(TaskKey::TwoPhase, "one process waits for a device, and no 'workers' do");
  }
  return mistakes;
}

}  // namespace trainyard::job
