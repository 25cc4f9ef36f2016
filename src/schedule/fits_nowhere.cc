#include "schedule/fits_nowhere.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/list_text.h"
#include "model/site_wish.h"
#include "schedule/gpu_room.h"
#include "schedule/ledger.h"

namespace trainyard::schedule {
namespace {

/// Number of machines that the message names.
constexpr std::size_t kNamed = 8;

/// "big1", and where its GPUs matter "big1 (NVIDIA A100-SXM4-80GB)".
std::string name_with_gpus(const model::NamedMachine& machine, bool gpus) {
  if (!gpus) return machine.name;
  const std::string_view name = machine.name.empty() ? "one" : std::string_view(machine.name);
  std::set<std::string> names;
  for (const model::Gpu& gpu : machine.capacity.gpus) names.insert(gpu.name);
  return fmt::format("{} ({})", name,
                     names.empty() ? "no GPU" : fmt::to_string(fmt::join(names, ", ")));
}

std::string none_is_right(const model::SiteWish& where,
                          std::span<const model::NamedMachine> machines) {
  std::vector<std::string> names;
  std::ranges::transform(machines, std::back_inserter(names), [&where](const auto& machine) {
    return name_with_gpus(machine, !where.gpu.empty());
  });
  return fmt::format("where: no machine {}; {} {}", model::predicate_text(where),
                     names.size() == 1 ? "the only machine is" : "the machines are",
                     short_list_text(names, kNamed));
}

bool is_right(const model::NamedMachine& machine, const model::SiteWish& where,
              const model::Policy& policy) {
  return where.takes_machine(machine.name) && GpuChooser(policy, machine.capacity).has_a(where);
}

/// How near a machine comes to a request that does not fit there. A nearer one compares greater.
struct Nearness {
  std::ptrdiff_t fitting = 0;  ///< Number of the request's memory, CPUs and GPUs that fit.
  double share = 0;            ///< The granted part of its scarcest amount, 0 to 1.

  friend auto operator<=>(const Nearness&, const Nearness&) = default;
};

Nearness nearness_of(const model::Request& request, const model::Policy& policy,
                     const model::Capacity& capacity) {
  model::Request gpus = request;
  gpus.memory = {};
  gpus.cpus = {};
  const std::array parts{model::Request{.memory = request.memory},
                         model::Request{.cpus = request.cpus}, gpus};
  const auto fits = [&](const model::Request& part) { return !never_fits(part, policy, capacity); };
  const auto share = [](auto granted, auto requested) {
    if (requested <= 0) return 1.0;
    return std::clamp(static_cast<double>(granted) / static_cast<double>(requested), 0.0, 1.0);
  };
  const GpuChooser chooser(policy, capacity);
  model::Request one = gpus;
  one.gpus = 1;
  const Bytes memory = capacity.memory - memory_kept_free(policy, capacity);
  return {.fitting = std::ranges::count_if(parts, fits),
          .share = std::min({share(memory.count, request.memory.count),
                             share(capacity.cpus.milli, request.cpus.milli),
                             share(chooser.count_for(request), request.gpus),
                             share(chooser.most_memory(one).count, request.gpu_memory.count)})};
}

}  // namespace

std::optional<Misfit> fits_nowhere(const model::Request& request, const model::Policy& policy,
                                   std::span<const model::NamedMachine> machines,
                                   const MachineText& here) {
  std::vector<std::string> right;
  // A user who lowers the request to what the nearest machine has changes least.
  std::optional<Nearness> nearest;
  Misfit lack{.part = RequestPart::Where, .why = {}};
  for (const model::NamedMachine& machine : machines) {
    if (!is_right(machine, request.where, policy)) continue;
    right.push_back(machine.name);
    const bool by_name = machines.size() > 1 && !machine.name.empty();
    std::optional<Misfit> never = never_fits(request, policy, machine.capacity,
                                             by_name ? MachineText{.name = machine.name} : here);
    if (!never) return std::nullopt;
    const Nearness nearness = nearness_of(request, policy, machine.capacity);
    if (nearest && nearness <= *nearest) continue;
    nearest = nearness;
    lack = *std::move(never);
  }
  if (right.empty()) {
    lack.why = none_is_right(request.where, machines);
    return lack;
  }
  if (machines.size() == 1) return lack;
  const bool made_up = machines.front().name.empty();
  lack.why = fmt::format("fits on none of {}: {}",
                         made_up ? "them" : short_list_text(right, kNamed), lack.why);
  return lack;
}

std::string more_than_the_disk(Bytes requested, Bytes total) {
  return fmt::format(
      "needs {} of disk, the disk of the run directory has {} in total; request less, or put the "
      "run directory on a larger disk",
      to_text(requested, total), to_text(total, requested));
}

}  // namespace trainyard::schedule
