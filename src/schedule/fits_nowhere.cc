#include "schedule/fits_nowhere.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::string listed(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kNamed);
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + std::ptrdiff_t(shown), ", "),
                     shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "");
}

std::string none_is_right(const model::SiteWish& where,
                          std::span<const model::NamedMachine> machines) {
  std::vector<std::string> names;
  std::ranges::transform(machines, std::back_inserter(names), [&where](const auto& machine) {
    return name_with_gpus(machine, !where.gpu.empty());
  });
  return fmt::format("where: no machine {}; there {} {}", model::predicate_text(where),
                     names.size() == 1 ? "is" : "are", listed(names));
}

bool is_right(const model::NamedMachine& machine, const model::SiteWish& where,
              const model::Policy& policy) {
  return where.takes_machine(machine.name) && GpuChooser(policy, machine.capacity).has_a(where);
}

/// The part of a request that a machine grants. A machine that grants more of it compares greater.
auto granted_of(const model::Request& request, const model::Policy& policy,
                const model::Capacity& capacity) {
  const GpuChooser chooser(policy, capacity);
  const model::Request one{.gpus = 1, .listed_only = request.listed_only, .where = request.where};
  return std::tuple(std::min(request.memory, capacity.memory - memory_kept_free(policy, capacity)),
                    std::min(request.cpus, capacity.cpus),
                    std::min(request.gpus, static_cast<int>(chooser.count_for(one))),
                    std::min(request.gpu_memory, chooser.most_memory(one)));
}

}  // namespace

bool is_somewhere(const model::SiteWish& where, const model::Policy& policy,
                  std::span<const model::NamedMachine> machines) {
  return std::ranges::any_of(machines, [&](const auto& it) { return is_right(it, where, policy); });
}

std::optional<std::string> fits_nowhere(const model::Request& request, const model::Policy& policy,
                                        std::span<const model::NamedMachine> machines,
                                        std::string_view here) {
  std::vector<std::string> right;
  // The machine that grants most says how much can be requested.
  using Granted = decltype(granted_of(request, policy, machines.front().capacity));
  std::optional<Granted> most;
  std::string why;
  for (const model::NamedMachine& machine : machines) {
    if (!is_right(machine, request.where, policy)) continue;
    right.push_back(machine.name);
    const bool by_name = machines.size() > 1 && !machine.name.empty();
    const std::optional<std::string> never =
        never_fits(request, policy, machine.capacity, by_name ? machine.name : here);
    if (!never) return std::nullopt;
    const Granted granted = granted_of(request, policy, machine.capacity);
    if (most && granted < *most) continue;
    most = granted;
    why = *never;
  }
  if (right.empty()) return none_is_right(request.where, machines);
  if (machines.size() == 1) return why;
  const bool made_up = machines.front().name.empty();
  return fmt::format("fits on none of {}: {}", made_up ? "them" : listed(right), why);
}

std::string more_than_the_disk(Bytes requested, Bytes total) {
  return fmt::format(
      "needs {} of disk, the disk of the run directory has {} in total; request less, or put the "
      "run directory on a larger disk",
      to_text(requested, total), to_text(total, requested));
}

}  // namespace trainyard::schedule
