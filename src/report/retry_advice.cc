#include "report/retry_advice.h"

#include <fmt/format.h>

#include "model/status.h"
#include "model/waiting.h"
#include "report/terminal_text.h"
#include "text/shell_quote.h"

namespace trainyard::report {

void RetryAdvice::look_at(const journal::TaskRow& row) {
  if (row.standing.verdict != model::Verdict::Failed) return;
  // More memory of the machine does not help a task that shares a GPU without a reservation.
  const bool reserves_no_gpu = row.message.contains(model::kReservesNoGpu);
  reserves_no_gpu_ = reserves_no_gpu_ || reserves_no_gpu;
  const bool out_of_memory =
      row.standing.failure == model::Failure::OutOfMemory && !reserves_no_gpu;
  out_of_memory_ = out_of_memory_ || out_of_memory;
  with_gpus_ = with_gpus_ || (out_of_memory && !row.gpus.empty());
  const bool timed_out = row.standing.failure == model::Failure::Timeout;
  timed_out_ = timed_out_ || timed_out;
  has_other_cause_ = has_other_cause_ || !(out_of_memory || reserves_no_gpu || timed_out);
}

std::string RetryAdvice::text(std::string_view run_directory) const {
  const std::string run = plain(text::shell_word(run_directory));
  std::string lines;
  if (out_of_memory_) {
    lines += fmt::format("tasks out of memory: 'trainyard retry {} :oom {}' reserves more\n", run,
                         with_gpus_ ? "--memory SIZE --gpu-memory SIZE" : "--memory SIZE");
  }
  if (reserves_no_gpu_) {
    lines += fmt::format(
        "tasks ran out of GPU memory but reserve no GPU: add 'gpu-memory: SIZE' to the job file, "
        "then 'trainyard run --resume {}'\n",
        run);
  }
  if (timed_out_) {
    lines += fmt::format(
        "tasks over their time limit: 'trainyard retry {} :timeout --time-limit TIME' allows more "
        "time\n",
        run);
  }
  return lines;
}

std::string RetryAdvice::resume_text(const ResumableRun& run) const {
  if (!has_other_cause_ || reserves_no_gpu_) return {};
  return fmt::format("after a fix{}: 'trainyard run --resume {}' runs the failed tasks again{}\n",
                     run.is_of_command ? " of the program" : "",
                     plain(text::shell_word(run.directory)),
                     run.is_of_command ? ", with the same command" : "");
}

}  // namespace trainyard::report
