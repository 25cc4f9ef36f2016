#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "hardware/cgroup.h"
#include "hardware/gpu_driver.h"
#include "model/resources.h"

namespace trainyard::hardware {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVendor = "0x1002";

std::string line_of(const std::string& path) {
  std::string text = read_small_file(path);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::vector<std::string> entries_of(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

/// A card of amdgpu, and what amdkfd calls it.
struct Card {
  std::string device;  ///< /sys/class/drm/card0/device
  std::string kfd_id;  ///< The number in the names of its files in kfd/proc; empty when unknown.
};

class AmdGpus final : public GpuDriver {
 public:
  explicit AmdGpus(std::string sys);

  [[nodiscard]] const std::vector<model::Gpu>& gpus() const override { return gpus_; }
  GpuState look(std::size_t index) override;

 private:
  struct Found {
    Card card;
    model::Gpu gpu;
  };
  std::optional<Found> find(const std::string& device) const;
  void find_node(Found& found) const;

  std::string sys_;
  std::vector<Card> cards_;
  std::vector<model::Gpu> gpus_;
};

AmdGpus::AmdGpus(std::string sys) : sys_(std::move(sys)) {
  std::vector<Found> all;
  for (const std::string& name : entries_of(sys_ + "/class/drm")) {
    // Not the connectors, which are card0-DP-1.
    if (!name.starts_with("card") || name.contains('-')) continue;
    if (auto found = find(fmt::format("{}/class/drm/{}/device", sys_, name))) {
      all.push_back(std::move(*found));
    }
  }
  std::ranges::sort(all, {}, [](const Found& it) { return it.gpu.pci; });
  for (Found& found : all) {
    found.gpu.number = static_cast<int>(gpus_.size());
    gpus_.push_back(std::move(found.gpu));
    cards_.push_back(std::move(found.card));
  }
}

std::optional<AmdGpus::Found> AmdGpus::find(const std::string& device) const {
  if (line_of(device + "/vendor") != kVendor) return std::nullopt;
  const auto total = read_limit(device + "/mem_info_vram_total");
  if (!total || *total <= 0) return std::nullopt;
  std::error_code error;
  const fs::path real = fs::canonical(device, error);
  Found found{.card = {.device = device},
              .gpu = {.pci = error ? device : real.filename().string(),
                      .memory = {*total},
                      .maker = model::GpuMaker::Amd}};
  found.gpu.name = line_of(device + "/product_name");
  if (found.gpu.name.empty()) found.gpu.name = "AMD GPU " + line_of(device + "/device");
  const std::string unique = line_of(device + "/unique_id");
  found.gpu.uuid = unique.empty() ? found.gpu.pci : "GPU-" + unique;
  find_node(found);
  return found;
}

/// Its node in the topology of amdkfd, by its place on the bus.
void AmdGpus::find_node(Found& found) const {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  unsigned function = 0;
  const std::string_view pci = found.gpu.pci;
  const auto hex = [pci](std::size_t at, std::size_t length, unsigned& number) {
    if (pci.size() < at + length) return false;
    const char* const first = pci.data() + at;
    return std::from_chars(first, first + length, number, 16).ec == std::errc{};
  };
  // "0000:c3:00.0"
  if (!hex(0, 4, domain) || !hex(5, 2, bus) || !hex(8, 2, slot) || !hex(11, 1, function)) return;
  const std::int64_t location = (std::int64_t{bus} << 8U) | (slot << 3U) | function;
  const std::string nodes = sys_ + "/class/kfd/kfd/topology/nodes";
  for (const std::string& node : entries_of(nodes)) {
    const std::string directory = fmt::format("{}/{}", nodes, node);
    const std::string properties = read_small_file(directory + "/properties");
    if (number_after(properties, "location_id") != location) continue;
    if (number_after(properties, "domain").value_or(0) != domain) continue;
    found.card.kfd_id = line_of(directory + "/gpu_id");
    found.gpu.speed = number_after(properties, "simd_count").value_or(0) *
                      number_after(properties, "max_engine_clk_fcompute").value_or(0);
    return;
  }
}

GpuState AmdGpus::look(std::size_t index) {
  const Card& card = cards_.at(index);
  GpuState state;
  const auto used = read_limit(card.device + "/mem_info_vram_used");
  if (!used) {
    state.present = false;
    return state;
  }
  state.used = {*used};
  const auto busy = read_limit(card.device + "/gpu_busy_percent");
  if (busy) state.utilization = static_cast<double>(*busy) / 100;
  state.processes_known = !card.kfd_id.empty();
  if (!state.processes_known) return state;
  const std::string processes = sys_ + "/class/kfd/kfd/proc";
  for (const std::string& name : entries_of(processes)) {
    std::int64_t pid = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || rest != name.data() + name.size()) continue;
    const auto memory = read_limit(fmt::format("{}/{}/vram_{}", processes, name, card.kfd_id));
    if (memory && *memory > 0) state.processes.push_back({.pid = pid, .memory = {*memory}});
  }
  std::ranges::sort(state.processes, {}, &GpuProcess::pid);
  return state;
}

}  // namespace

std::unique_ptr<GpuDriver> open_amd(const std::string& sys) {
  return std::make_unique<AmdGpus>(sys);
}

}  // namespace trainyard::hardware
