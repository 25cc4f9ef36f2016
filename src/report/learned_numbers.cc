#include "report/learned_numbers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/time.h"
#include "job/learned.h"
#include "model/terms.h"
#include "report/terminal_text.h"
#include "schedule/another_try.h"

namespace trainyard::report {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t count_of(Bytes bytes) { return bytes.count; }
std::int64_t count_of(Duration time) { return time.count(); }

std::string text_of(Bytes bytes) { return to_text(bytes); }
std::string text_of(Duration time) { return exact_text(time); }

/// Estimates from this run override those from others.
template <class Value>
Json number_json(const std::optional<job::Expected<Value>>& number, Bytes of_this_run) {
  if (of_this_run > Bytes{}) return {{"value", of_this_run.count}, {"of_this_run", true}};
  if (!number) return nullptr;
  const job::LearnedFrom& from = number->from;
  const auto text = [](const std::string& it) { return it.empty() ? Json(nullptr) : Json(it); };
  return {
      {"value", count_of(number->value)},
      {"of_this_run", false},
      {"at_least", number->at_least},
      {"run", text(from.run)},
      {"started_unix_ms", from.started_unix_ms == 0 ? Json(nullptr) : Json(from.started_unix_ms)},
      {"host", text(from.host)},
      {"gpu", text(from.gpu)}};
}

std::string reached_text(const model::Reached& reached, const model::Terms& terms) {
  std::string text = to_text(reached.memory) + " of memory";
  if (reached.largest) {
    text += fmt::format(", alone on the largest GPU{}", terms.request.gpus > 1 ? "s" : "");
  } else if (reached.gpu_memory > terms.request.gpu_memory && terms.request.gpus > 0) {
    text += fmt::format(", {} on its GPU{}", to_text(reached.gpu_memory),
                        terms.request.gpus > 1 ? "s" : "");
  }
  const int tries = reached.tries.load + reached.tries.train;
  return tries == 0 ? text : text + fmt::format(", as memory ran out {}", counted(tries, "time"));
}

}  // namespace

LearnedNumbers::LearnedNumbers(const job::Job& job, const model::Plan& plan)
    : job_(job), plan_(plan) {
  for (const model::TakenBefore& taken : plan.taken) {
    estimates_.finished(plan.tasks.at(taken.task.value).shape,
                        {.memory = taken.memory, .gpu_memory = taken.gpu_memory});
  }
  for (const model::Reached& reached : plan.reached) reached_[reached.task] = &reached;
}

schedule::Peak LearnedNumbers::of_this_run(model::TaskIndex task) const {
  const model::ShapeIndex shape = plan_.tasks.at(task.value).shape;
  const model::Terms& terms = plan_.shapes.at(shape.value).terms;
  const schedule::Peak needed = estimates_.needed(shape);
  schedule::Peak peak;
  const bool learns = job_.policy().auto_adjust;
  if (learns && terms.learns_memory) peak.memory = std::max(needed.memory, terms.memory_least);
  if (needed.memory == Bytes{}) peak.memory = {};
  const bool is_automatic = terms.learns_gpu_memory && terms.request.gpu_memory == Bytes{};
  const Bytes gpu_memory = is_automatic && !schedule::ends_without_gpu_memory(terms, job_.policy())
                               ? estimates_.usual_gpu_memory(shape)
                               : needed.gpu_memory;
  if (terms.learns_gpu_memory && gpu_memory > terms.request.gpu_memory) {
    peak.gpu_memory = gpu_memory;
  }
  return peak;
}

std::vector<std::pair<std::string, std::string>> LearnedNumbers::lines(
    model::TaskIndex task) const {
  std::vector<std::pair<std::string, std::string>> lines;
  const job::Job::LearnedNumbers known = job_.learned_numbers(task);
  const schedule::Peak here = of_this_run(task);
  const auto add = [&](std::string_view key, const auto& number, Bytes of_this_run) {
    const std::string_view name = lines.empty() ? "learned" : "";
    if (of_this_run > Bytes{}) {
      lines.emplace_back(name, fmt::format("{} {}, in this run", key, to_text(of_this_run)));
    } else if (number) {
      lines.emplace_back(name, fmt::format("{} {}{}, from {}", key, text_of(number->value),
                                           number->at_least ? " (it may need more)" : "",
                                           job::to_text(number->from, job_.here())));
    }
  };
  add("memory", known.memory, here.memory);
  add("gpu-memory", known.gpu_memory, here.gpu_memory);
  add("duration", known.duration, {});
  if (const auto found = reached_.find(task); found != reached_.end()) {
    lines.emplace_back("resumes with", reached_text(*found->second, plan_.shape_of(task).terms));
  }
  return lines;
}

void LearnedNumbers::add_to(Json& json, model::TaskIndex task) const {
  const job::Job::LearnedNumbers known = job_.learned_numbers(task);
  const schedule::Peak here = of_this_run(task);
  json["learned"] = {{"memory_bytes", number_json(known.memory, here.memory)},
                     {"gpu_memory_bytes", number_json(known.gpu_memory, here.gpu_memory)},
                     {"duration_ms", number_json(known.duration, {})}};
  json["reached"] = nullptr;
  const auto found = reached_.find(task);
  if (found == reached_.end()) return;
  const model::Reached& reached = *found->second;
  json["reached"] = {{"memory_bytes", reached.memory.count},
                     {"gpu_memory_bytes", reached.gpu_memory.count},
                     {"alone", reached.largest},
                     {"tries", reached.tries.load + reached.tries.train}};
}

}  // namespace trainyard::report
