#include "run/attempt_end.h"

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "process/end_reader.h"
#include "run/run_directory.h"
#include "wire/last_words.h"
#include "wire/memory_text.h"
#include "wire/result_text.h"

namespace trainyard::run {
namespace {

/// Reads the result that the task left, if any. A bad result is a warning, not a failure.
void read_result(const process::LeftBehind& left, model::AttemptEnded& ended) {
  ended.warning = left.trouble;
  if (!left.result) return;
  wire::ParsedResult parsed = wire::parse_result(*left.result);
  ended.result = std::move(parsed.object);
  if (parsed.warning.empty()) return;
  ended.warning = fmt::format("{}: {}", result_name(ended.key.attempt), parsed.warning);
}

/// Reads the output of a failed attempt: it may say that it ran out of memory, or that the service
/// through which it shares its GPU is gone.
void read_errors(const process::LeftBehind& left, const EndedWhere& where,
                 model::AttemptEnded& ended) {
  const std::string& errors = left.errors;
  ended.last_words =
      left.errors_are_output ? wire::last_words_of_output(errors) : wire::last_words(errors);
  const std::optional<std::string> line = wire::out_of_memory_line(errors);
  const auto* const killed = std::get_if<model::KilledBy>(&ended.end);
  if (line) {
    ended.out_of_memory = *line;
    ended.of_gpu = wire::is_of_gpu(*line);
  } else if (killed != nullptr && killed->signal == SIGBUS) {
    ended.out_of_memory = "killed by signal 7 (SIGBUS), as by a full /dev/shm";
  } else if (where.on_gpus && (where.mps_gone || wire::is_of_mps(errors))) {
    ended.end = model::Vanished{"the MPS service of its GPU has exited: " + ended.last_words};
  }
}

}  // namespace

model::AttemptEnded attempt_ended_from(const process::ProcessEnded& news, const EndedWhere& where) {
  model::AttemptEnded ended{.key = news.key, .end = news.end, .usage = news.usage};
  if (news.at) {
    const Instant ended_at{where.clock_offset + *news.at};
    ended.ended = std::max(ended_at, where.lived_at.value_or(ended_at));
  }
  if (!std::holds_alternative<model::NotStarted>(news.end)) {
    read_result(news.left, ended);
    if (news.end != model::End(model::ExitedWith{0})) {
      read_errors(news.left, where, ended);
      ended.has_checkpoint = news.left.has_checkpoint;
    }
  }
  ended.ranks = news.ranks;
  ended.told_to_end = news.told_to_end;
  return ended;
}

MemoryPeak memory_peak_of(const process::ProcessEnded& news, const SampledMemory& sampled) {
  const Bytes seen = std::max(sampled.peak, news.group_peak);
  if (sampled.alone || news.group_peak > Bytes{}) return {.bytes = seen};
  const auto and_a_little = [](Bytes bytes) { return bytes + Bytes{bytes.count / 16}; };
  const Bytes not_its_own = std::max(news.mark, sampled.others);
  const Bytes largest = news.usage.memory_peak - not_its_own;
  if (news.usage.memory_peak <= and_a_little(not_its_own)) return {.bytes = seen};
  if (largest <= and_a_little(seen)) return {.bytes = seen};
  return {.bytes = largest, .at_least = true};
}

}  // namespace trainyard::run
