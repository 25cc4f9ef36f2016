#include "hardware/gpu_driver.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace trainyard::hardware {
namespace {

std::optional<std::string_view> own_variable(const std::vector<std::string>& environment,
                                             std::string_view name) {
  for (const std::string& each : environment) {
    const std::string_view text = each;
    if (text.starts_with(name) && text.substr(name.size()).starts_with('=')) {
      return text.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The GPU that a word of such a list means: its place among all, or the beginning of its UUID.
std::optional<std::size_t> meant(std::string_view word, const std::vector<model::Gpu>& gpus) {
  if (word.starts_with("GPU-") || word.starts_with("MIG-")) {
    const auto found = std::ranges::find_if(gpus, [word](const model::Gpu& gpu) {
      return std::string_view(gpu.uuid).starts_with(word);
    });
    if (found == gpus.end()) return std::nullopt;
    return static_cast<std::size_t>(found - gpus.begin());
  }
  std::size_t number = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || rest != word.data() + word.size()) return std::nullopt;
  return number < gpus.size() ? std::optional(number) : std::nullopt;
}

/// As CUDA and HIP read it: in that order, up to the first that there is not.
std::vector<std::size_t> chosen(std::string_view text, const std::vector<model::Gpu>& gpus) {
  std::vector<std::size_t> indices;
  for (const auto word : std::views::split(text, ',')) {
    const auto index = meant(trimmed({word.begin(), word.end()}), gpus);
    if (!index) break;
    if (std::ranges::find(indices, *index) == indices.end()) indices.push_back(*index);
  }
  return indices;
}

}  // namespace

Gpus::Gpus(const GpuSources& sources) {
  Result<std::unique_ptr<GpuDriver>> nvidia = open_nvml(sources.nvml, sources.restart_pause);
  if (nvidia) {
    drivers_.push_back(std::move(*nvidia));
  } else {
    list_.none_reason = nvidia.error().message;
  }
  drivers_.push_back(open_amd(sources.sys));
  for (std::size_t driver = 0; driver < drivers_.size(); ++driver) {
    const std::vector<model::Gpu>& gpus = drivers_[driver]->gpus();
    if (gpus.empty()) continue;
    std::vector<std::size_t> indices(gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i) indices[i] = i;
    const bool amd = gpus.front().maker == model::GpuMaker::Amd;
    for (const char* const name : amd ? std::vector{"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}
                                      : std::vector{"CUDA_VISIBLE_DEVICES"}) {
      const auto text = own_variable(sources.environment, name);
      if (!text) continue;
      indices = chosen(*text, gpus);
      list_.notes.push_back(
          fmt::format("{} leaves {} of {} GPUs", name, indices.size(), gpus.size()));
      if (indices.empty()) list_.none_reason = fmt::format("{} hides all of them", name);
    }
    if (sources.only) {
      std::erase_if(indices, [&](std::size_t i) {
        return std::ranges::none_of(*sources.only, [&gpu = gpus[i]](const std::string& name) {
          return model::is_called(gpu, name);
        });
      });
      if (indices.empty()) list_.none_reason = "'machines' selects none of the GPUs";
    }
    for (const std::size_t index : indices) {
      sources_.push_back({.driver = driver, .index = index});
      list_.gpus.push_back(gpus[index]);
    }
  }
  if (!list_.gpus.empty()) list_.none_reason.clear();
  put_late_ones_last();
}

/// A program counts the GPUs that it sees: what comes later must not be in between.
void Gpus::put_late_ones_last() {
  std::vector<Source> late;
  std::vector<model::Gpu> late_gpus;
  std::vector<Source> sources;
  std::vector<model::Gpu> gpus;
  for (std::size_t i = 0; i < list_.gpus.size(); ++i) {
    const model::Gpu& gpu = list_.gpus[i];
    (gpu.late ? late : sources).push_back(sources_[i]);
    (gpu.late ? late_gpus : gpus).push_back(gpu);
    if (!gpu.late) continue;
    list_.notes.push_back(fmt::format(
        "GPU {} DOES NOT ANSWER though the driver counts it: tasks use it once it answers",
        gpu.label()));
  }
  std::ranges::move(late, std::back_inserter(sources));
  std::ranges::move(late_gpus, std::back_inserter(gpus));
  sources_ = std::move(sources);
  list_.gpus = std::move(gpus);
}

Gpus::~Gpus() = default;

std::vector<GpuState> Gpus::look() {
  std::vector<GpuState> states;
  std::ranges::transform(sources_, std::back_inserter(states), [this](const Source& source) {
    return drivers_[source.driver]->look(source.index);
  });
  return states;
}

}  // namespace trainyard::hardware
