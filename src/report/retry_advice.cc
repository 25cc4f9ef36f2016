#include "report/retry_advice.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/number_text.h"
#include "model/status.h"
#include "model/terms.h"
#include "model/waiting.h"
#include "report/terminal_text.h"
#include "text/shell_quote.h"

namespace trainyard::report {
namespace {

/// "370MB", as one word of a command line.
std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

/// " --memory 370MB --gpu-memory 3GB"; an amount of 0 is left out.
std::string memory_options(Bytes memory, Bytes gpu_memory) {
  std::string options;
  for (const auto& [option, amount] :
       {std::pair{"--memory", memory}, std::pair{"--gpu-memory", gpu_memory}}) {
    if (amount == Bytes{}) continue;
    const Bytes rounded{up_to_two_digits(amount.count)};
    options += fmt::format(" {} {}", option, without_spaces(to_text(rounded)));
  }
  return options;
}

/// " --time-limit 2h"; empty for 0.
std::string time_option(Duration limit) {
  if (limit == Duration{0}) return {};
  return fmt::format(" --time-limit {}", without_spaces(exact_text(limit)));
}

/// Twice the time limit of the job, or twice that again and so on: an earlier retry may have allowed
/// more time than the job does.
Duration longer_time_limit(const journal::TaskRow& row) {
  constexpr Duration kShortest{1'000};
  const Duration ran = row.started && row.ended ? *row.ended - *row.started : Duration{0};
  Duration limit = 2 * (row.time_limit > Duration{0} ? row.time_limit : kShortest);
  while (limit <= ran) limit *= 2;
  return limit;
}

}  // namespace

bool has_gpus(const std::vector<journal::MachineRow>& machines) {
  return machines.empty() ||
         std::ranges::any_of(machines, [](const auto& machine) { return !machine.gpus.empty(); });
}

void RetryAdvice::look_at(const journal::TaskRow& row) {
  const model::TaskEnd* const end = model::end_of(row.standing);
  if (end == nullptr || end->verdict != model::Verdict::Failed) return;
  // More memory of the machine does not help a task that shares a GPU without a reservation.
  const bool reserves_no_gpu = row.message.contains(model::kReservesNoGpu);
  reserves_no_gpu_ = reserves_no_gpu_ || reserves_no_gpu;
  const bool out_of_memory = end->cure == model::Cure::MoreMemory && !reserves_no_gpu;
  out_of_memory_ = out_of_memory_ || out_of_memory;
  if (out_of_memory) {
    memory_ =
        std::max(memory_, model::more_memory(std::max(row.memory_requested, row.memory_peak)));
    out_of_memory_limit_ = std::max(out_of_memory_limit_, row.retry_time_limit);
    // A whole GPU has no more memory to give.
    if (row.gpu_memory_requested > Bytes{}) {
      const Bytes had = std::max(row.gpu_memory_requested, row.gpu_memory_peak);
      gpu_memory_ = std::max(gpu_memory_, model::more_gpu_memory(had));
    }
  }
  const bool timed_out = end->cure == model::Cure::MoreTime;
  timed_out_ = timed_out_ || timed_out;
  if (timed_out) {
    time_limit_ = std::max(time_limit_, longer_time_limit(row));
    if (row.memory_requested > row.memory_planned) {
      timed_out_memory_ = std::max(timed_out_memory_, row.memory_requested);
    }
    if (row.gpu_memory_requested > row.gpu_memory_planned) {
      timed_out_gpu_memory_ = std::max(timed_out_gpu_memory_, row.gpu_memory_requested);
    }
  }
  const bool other_cause = !(out_of_memory || reserves_no_gpu || timed_out);
  has_other_cause_ = has_other_cause_ || other_cause;
  const bool needs_fix = other_cause && end->cure == model::Cure::Fix;
  needs_fix_ = needs_fix_ || needs_fix;
  is_read_again_ = is_read_again_ || (needs_fix && row.batch == 1);
}

std::string RetryAdvice::text(const ResumableRun& resumable) const {
  const std::string run = plain(text::shell_word(resumable.directory));
  std::string lines;
  if (out_of_memory_) {
    lines += fmt::format("tasks out of memory: {} reserves more\n",
                         text::quoted_command(fmt::format("trainyard retry {} :oom{}{}", run,
                                                          memory_options(memory_, gpu_memory_),
                                                          time_option(out_of_memory_limit_))));
  }
  if (reserves_no_gpu_) {
    lines += fmt::format(
        "tasks ran out of GPU memory but reserve no GPU: {}\n",
        !resumable.has_gpus       ? "trainyard found no GPU, and 'trainyard doctor' shows why"
        : resumable.is_of_command ? "run the command again with '--gpu-memory auto'"
                                  : "add 'gpu-memory: auto' to the job file, then " +
                                        text::quoted_command("trainyard run --resume " + run));
  }
  if (timed_out_) {
    lines += fmt::format(
        "tasks over their time limit: {} allows more time\n",
        text::quoted_command(fmt::format("trainyard retry {} :timeout{}{}", run,
                                         memory_options(timed_out_memory_, timed_out_gpu_memory_),
                                         time_option(time_limit_))));
  }
  return lines;
}

std::string RetryAdvice::resume_text(const ResumableRun& run) const {
  if (!has_other_cause_ || (reserves_no_gpu_ && run.has_gpus && !run.is_of_command)) {
    return {};
  }
  // A resumed run reads its job file again, and takes a command or a submission from its records.
  const bool is_kept = run.is_of_command || (needs_fix_ && !is_read_again_);
  std::string fix;
  if (needs_fix_) fix = is_kept ? "after a fix of the program or its files: " : "after a fix: ";
  const std::string command =
      text::quoted_command("trainyard run --resume " + plain(text::shell_word(run.directory)));
  return fmt::format("{}{} runs the failed{} tasks again{}\n", fix, command,
                     run.has_skipped ? " and skipped" : "",
                     run.is_of_command ? ", with the same command"
                     : is_kept         ? ", as they were submitted"
                                       : "");
}

}  // namespace trainyard::report
