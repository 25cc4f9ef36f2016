#include "job/gpu_caps.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hardware/python_packages.h"
#include "job/gpu_variables.h"

namespace trainyard::job {
namespace {

constexpr std::string_view kTorchOption = "per_process_memory_fraction";

/// An allocator that does not know the option ends the program, so only of releases that have it.
/// From 2.9 on there are two names; the newer is read with the options of CUDA from 2.10 on.
std::optional<Capper> find_torch(const CapBasis& basis, const std::vector<std::string>& packages,
                                 std::string& why_not) {
  const std::optional<std::string> release = hardware::release_of_torch(packages);
  if (!release) return std::nullopt;
  if (!hardware::is_at_least(*release, 2, 10) || hardware::is_at_least(*release, 3, 0)) {
    why_not = fmt::format("torch {} is not known to take one (2.10 to 2.x are)", *release);
    return std::nullopt;
  }
  const std::string_view variable =
      find_variable(basis.environment, kTorchConfNew) != nullptr ? kTorchConfNew : kTorchConf;
  const std::string* const theirs = find_variable(basis.environment, variable);
  std::string before = theirs == nullptr ? std::string() : *theirs;
  // Torch forgives a comma at the end, and not one more behind it.
  before.resize(before.find_last_not_of(", ") + 1);
  if (before.contains(kTorchOption)) {
    why_not = fmt::format("{} says it already", variable);
    return std::nullopt;
  }
  return Capper{.kind = Capper::Kind::Torch,
                .variable = variable,
                .before = std::move(before),
                .name = fmt::format("torch {}", *release)};
}

/// Before 0.5 it reads the older name alone; since then either, and does not begin with both.
std::optional<Capper> find_jax(const CapBasis& basis, const std::vector<std::string>& packages,
                               std::string& why_not) {
  const std::optional<std::string> release = hardware::release_of_jaxlib(packages);
  if (!release) return std::nullopt;
  const bool knows_new_name = hardware::is_at_least(*release, 0, 5);
  for (const std::string_view name : {kJaxFraction, kJaxFractionOld}) {
    const bool is_read = knows_new_name || name == kJaxFractionOld;
    if (!is_read || find_variable(basis.environment, name) == nullptr) continue;
    why_not = fmt::format("{} says it already", name);
    return std::nullopt;
  }
  const std::string* const allocator = find_variable(basis.environment, kJaxAllocator);
  if (allocator != nullptr && *allocator != "default" && *allocator != "bfc") {
    why_not = fmt::format("JAX keeps to none with {}={}", kJaxAllocator, *allocator);
    return std::nullopt;
  }
  if (!hardware::is_at_least(*release, 0, 4) || hardware::is_at_least(*release, 1, 0)) {
    why_not = fmt::format("jaxlib {} is not known to take one (0.4 to 0.x are)", *release);
    return std::nullopt;
  }
  return Capper{.kind = Capper::Kind::Jax,
                .variable = knows_new_name ? kJaxFraction : kJaxFractionOld,
                .name = fmt::format("JAX {}", *release)};
}

hardware::PythonSurroundings surroundings_of(const CapBasis& basis) {
  const auto value = [&basis](std::string_view name) {
    const std::string* const found = find_variable(basis.environment, name);
    return found == nullptr ? std::string() : *found;
  };
  return {.path = value("PATH"),
          .home = value("HOME"),
          .python_path = value("PYTHONPATH"),
          .user_packages = value("PYTHONNOUSERSITE").empty(),
          .working_directory = basis.working_directory};
}

void find_frameworks(const CapBasis& basis, Cappers& cappers) {
  if (basis.program.empty()) {
    cappers.why_not = "which Python runs is up to its shell";
    return;
  }
  const hardware::PythonSurroundings around = surroundings_of(basis);
  const std::optional<std::string> python = hardware::find_python(basis.program, around);
  if (!python) {
    cappers.why_not = hardware::is_script(basis.program, around)
                          ? fmt::format(
                                "'{}' is a script that starts another program, such as "
                                "those of pyenv",
                                basis.program)
                          : fmt::format("'{}' is not a Python interpreter", basis.program);
    return;
  }
  const std::vector<std::string> packages = hardware::package_directories(*python, around);
  for (const auto find : {find_torch, find_jax}) {
    if (std::optional<Capper> found = find(basis, packages, cappers.why_not)) {
      cappers.found.push_back(*std::move(found));
    }
  }
  if (cappers.found.empty() && cappers.why_not.empty()) {
    cappers.why_not = fmt::format("{} has neither torch nor JAX", *python);
  }
}

/// Rounded down to what four digits say.
std::string fraction_of(Bytes part, Bytes whole) {
  constexpr std::int64_t kSteps = 10'000;
  const std::int64_t unit = std::max<std::int64_t>(1, whole.count / kSteps);
  const std::int64_t steps = std::clamp<std::int64_t>(part.count / unit, 1, kSteps);
  return fmt::format("{:.4f}", static_cast<double>(steps) / kSteps);
}

/// The part of a process's memory that the framework's allocator may use.
Bytes counted_of(const CapAmount& amount) {
  const Bytes each{amount.most.count / std::max(amount.sharing, 1)};
  const Bytes uncounted = amount.ranks ? kUncountedOfRank : kUncountedAlone;
  return std::max(each - uncounted, Bytes{each.count / 2});
}

/// "0=3000M,1=3000M": for every GPU of the machine, since a process may number those that it sees
/// differently.
std::string pinned_limit(const CapAmount& amount) {
  constexpr std::int64_t kMebibyte = 1 << 20;
  const std::int64_t each = amount.most.count / std::max(amount.sharing, 1) / kMebibyte;
  std::vector<std::string> parts;
  parts.reserve(static_cast<std::size_t>(std::max(amount.gpus_of_machine, 0)));
  for (int gpu = 0; gpu < amount.gpus_of_machine; ++gpu) {
    parts.push_back(fmt::format("{}={}M", gpu, std::max<std::int64_t>(1, each)));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace

Cappers find_cappers(const CapBasis& basis) {
  Cappers cappers;
  find_frameworks(basis, cappers);
  if (basis.mps && find_variable(basis.environment, kMpsLimit) == nullptr) {
    cappers.found.push_back({.kind = Capper::Kind::Mps, .variable = kMpsLimit, .name = "MPS"});
  }
  if (!cappers.found.empty()) cappers.why_not.clear();
  return cappers;
}

Variables cap_variables(const Cappers& cappers, const std::optional<CapAmount>& amount) {
  Variables variables;
  const std::string fraction =
      amount ? fraction_of(counted_of(*amount), amount->total) : std::string(kChosenLater);
  for (const Capper& capper : cappers.found) {
    std::string value;
    switch (capper.kind) {
      case Capper::Kind::Torch:
        value = fmt::format("{}{}{}:{}", capper.before, capper.before.empty() ? "" : ",",
                            kTorchOption, fraction);
        break;
      case Capper::Kind::Jax:
        value = fraction;
        break;
      case Capper::Kind::Mps:
        value = amount ? pinned_limit(*amount) : std::string(kChosenLater);
        break;
    }
    variables.emplace_back(capper.variable, std::move(value));
  }
  return variables;
}

bool is_capped_at_start(const model::Terms& terms) {
  const bool shares = terms.request.gpu_memory > Bytes{} || terms.learns_gpu_memory;
  return terms.request.gpus > 0 && shares && !terms.two_phase &&
         terms.gpu_memory_limit != model::GpuMemoryLimit::None;
}

std::string to_text(const Cappers& cappers) {
  std::vector<std::string_view> names;
  names.reserve(cappers.found.size());
  for (const Capper& capper : cappers.found) names.push_back(capper.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace trainyard::job
