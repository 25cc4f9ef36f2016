#include "app/planned_machines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "schedule/scheduler.h"
#include "settings/made_up_machines.h"
#include "settings/setting_value.h"
#include "text/shell_quote.h"

namespace trainyard::app {
namespace {

/// Without model names: those are not known.
std::vector<model::Gpu> made_up_gpus(const std::vector<Bytes>& memories) {
  std::vector<model::Gpu> gpus;
  for (const Bytes memory : memories) {
    const int number = static_cast<int>(gpus.size());
    gpus.push_back({.number = number,
                    .uuid = fmt::format("GPU-{}", number),
                    .name = {},
                    .pci = fmt::format("{:04}", number),
                    .memory = memory});
  }
  return gpus;
}

/// "4x24GB": four alike; "24GB": one; "0": none.
Result<std::vector<model::Gpu>> gpus_of_word(std::string_view text) {
  if (text == "0") return std::vector<model::Gpu>();
  const auto refuse = [text](std::string_view cure) {
    return std::unexpected(Error{fmt::format("--gpus: '{}' {}", text, cure)});
  };
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos) {
    return refuse(
        fmt::format("does not say how much memory a GPU has (did you mean '{}x24GB'?)", text));
  }
  int count = 1;
  std::string_view memory = text;
  if (const std::size_t times = text.find('x'); times != std::string_view::npos) {
    count = settings::parse_count(text.substr(0, times)).value_or(0);
    if (count < 1 || count > settings::kMadeUpGpusMax) {
      return refuse("is not valid; write it as in 4x24GB");
    }
    memory = text.substr(std::min(text.find_first_not_of(' ', times + 1), text.size()));
  }
  // "4xA100": an A100 has 40 GB or 80 GB.
  if (memory.empty() || !std::string_view("0123456789.").contains(memory.front())) {
    return refuse("is not valid; name the memory of each GPU, as in 4x24GB");
  }
  const Result<Bytes> each = parse_bytes(memory);
  if (!each) return std::unexpected(Error(each.error()).in("--gpus"));
  return made_up_gpus(std::vector<Bytes>(static_cast<std::size_t>(count), *each));
}

/// This machine with the amounts of the words in the place of its own.
Result<model::Capacity> usual_capacity(const MachineWords& words, model::Capacity here) {
  if (!words.memory.empty()) {
    const Result<Bytes> memory = parse_bytes(words.memory);
    if (!memory) return std::unexpected(Error(memory.error()).in("--memory"));
    here.memory = *memory;
  }
  if (!words.cpus.empty()) {
    const Result<model::Cpus> cpus = settings::parse_cpus(words.cpus);
    if (!cpus) return std::unexpected(Error(cpus.error()).in("--cpus"));
    here.cpus = *cpus;
  }
  std::erase_if(here.gpus, [](const model::Gpu& gpu) { return gpu.late; });
  here.processes_max = 0;
  return here;
}

model::Capacity with_other_gpus(model::Capacity capacity, std::vector<model::Gpu> gpus) {
  capacity.gpus = std::move(gpus);
  capacity.no_gpus_reason.clear();
  return capacity;
}

/// "4x24GB, 64GB of memory, 1 CPU"; without a word "this machine".
std::string name_of_words(const MachineWords& words, const std::string& gpus = {}) {
  std::vector<std::string> parts;
  if (!gpus.empty()) parts.push_back(gpus == "0" ? "no GPU" : gpus);
  if (!words.memory.empty()) parts.push_back(words.memory + " of memory");
  if (!words.cpus.empty()) parts.push_back(words.cpus + (words.cpus == "1" ? " CPU" : " CPUs"));
  return parts.empty() ? std::string(schedule::kThisMachine)
                       : fmt::format("{}", fmt::join(parts, ", "));
}

/// "GPU 1 DOES NOT ANSWER, and is left out here ('trainyard devices')"; empty if all answer.
std::string silent_among(const std::vector<model::Gpu>& gpus) {
  std::vector<std::string> labels;
  for (const model::Gpu& gpu : gpus) {
    if (gpu.late) labels.emplace_back(gpu.label());
  }
  if (labels.empty()) return {};
  const bool is_one = labels.size() == 1;
  return fmt::format("GPU{} {} {} NOT ANSWER, and {} left out here ('trainyard devices')",
                     is_one ? "" : "s", fmt::join(labels, ", "), is_one ? "DOES" : "DO",
                     is_one ? "is" : "are");
}

/// "8x(4x80GB, 64 CPUs)"; amounts that are left out are the usual ones.
Result<PlannedMachines> machines_of_word(const std::string& text, const model::Capacity& usual) {
  const auto kinds = settings::parse_made_up_machines(text);
  if (!kinds) return std::unexpected(Error(kinds.error()).in("--machines"));
  PlannedMachines machines{.name = text, .kinds = {}};
  for (const settings::MadeUpMachines& kind : *kinds) {
    model::Capacity capacity = with_other_gpus(usual, made_up_gpus(kind.gpus));
    capacity.cpus = kind.cpus.value_or(usual.cpus);
    capacity.memory = kind.memory.value_or(usual.memory);
    machines.kinds.push_back({.text = settings::to_text(kind),
                              .machines = static_cast<std::uint32_t>(kind.count),
                              .capacity = std::move(capacity)});
  }
  return machines;
}

}  // namespace

std::vector<model::NamedMachine> PlannedMachines::one_of_each() const {
  std::vector<model::NamedMachine> machines;
  machines.reserve(kinds.size());
  for (const report::PlannedKind& kind : kinds) {
    machines.push_back({.name = host, .capacity = kind.capacity});
  }
  return machines;
}

std::vector<model::NamedMachine> PlannedMachines::all() const {
  std::vector<model::NamedMachine> machines;
  for (const report::PlannedKind& kind : kinds) {
    machines.insert(machines.end(), kind.machines, {.name = host, .capacity = kind.capacity});
  }
  return machines;
}

model::Capacity PlannedMachines::most() const {
  return model::most_of(kinds.front().capacity, one_of_each());
}

Result<std::vector<PlannedMachines>> planned_machines(const MachineWords& words,
                                                      const MachineNow& now) {
  const Result<model::Capacity> usual = usual_capacity(words, now.capacity);
  if (!usual) return std::unexpected(usual.error());
  std::vector<PlannedMachines> found;
  if (words.is_for_here()) {
    found.push_back({.name = name_of_words(words),
                     .kinds = {{.text = {}, .machines = 1, .capacity = *usual}},
                     .host = now.host,
                     .silent = silent_among(now.capacity.gpus),
                     .others = now.others});
  }
  for (const std::string& text : words.gpus) {
    Result<std::vector<model::Gpu>> gpus = gpus_of_word(text);
    if (!gpus) return std::unexpected(std::move(gpus.error()));
    model::Capacity capacity = with_other_gpus(*usual, *std::move(gpus));
    found.push_back({.name = name_of_words(words, text),
                     .kinds = {{.text = {}, .machines = 1, .capacity = std::move(capacity)}}});
  }
  for (const std::string& text : words.machines) {
    Result<PlannedMachines> machines = machines_of_word(text, *usual);
    if (!machines) return std::unexpected(std::move(machines.error()));
    found.push_back(*std::move(machines));
  }
  return found;
}

std::string gpus_for(const model::Plan& plan) {
  int count = 1;
  std::int64_t memory = 24;
  for (const model::Shape& shape : plan.shapes) {
    const model::Request& request = shape.terms.request;
    count = std::max(count, request.gpus);
    if (request.gpu) count = std::max(count, static_cast<int>(request.gpu->value) + 1);
    memory = std::max(memory, request.gpu_memory.count * 5 / 4 / gb(1).count);
  }
  return fmt::format("{}x{}GB", count, memory);
}

std::string advice_on_others(const std::string& job_file, const PlannedMachines& machines) {
  const auto is_used = [](const model::GpuReading& gpu) { return gpu.used > Bytes{}; };
  const auto computes = [](const model::GpuReading& gpu) { return gpu.other_user.has_value(); };
  if (std::ranges::none_of(machines.others, is_used)) return {};
  const std::vector<model::Gpu>& gpus = machines.kinds.front().capacity.gpus;
  const auto largest = std::ranges::max_element(gpus, {}, &model::Gpu::memory);
  return fmt::format(
      ". The processes on the GPUs now are assumed to stay: {} simulates the job on free GPUs{}",
      text::quoted_command(fmt::format("trainyard plan {} --gpus {}x{}MiB",
                                       text::shell_word(job_file), gpus.size(),
                                       largest->memory.count >> 20)),
      std::ranges::any_of(machines.others, computes)
          ? ", '--set other-users=share' next to processes of other users"
          : "");
}

}  // namespace trainyard::app
