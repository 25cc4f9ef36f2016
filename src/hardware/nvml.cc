#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "hardware/gpu_driver.h"
#include "model/resources.h"
#include "sys/loaded_library.h"

namespace trainyard::hardware {
namespace {

// The part of nvml.h that is used, from its documentation: the names, numbers and layouts are a
// fixed interface of the library.
using Return = int;
using Handle = void*;
constexpr Return kSuccess = 0;
constexpr Return kInsufficientSize = 7;
constexpr unsigned kClockSm = 1;
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr std::size_t kTextBytes = 96;
constexpr unsigned kProcessesMax = 4096;

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  std::array<char, 32> bus_id;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};

using ListProcesses = Return(Handle, unsigned*, ProcessInfo*);

/// The functions of the library; those that older drivers lack may be missing.
struct Functions {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error)(Return) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle)(unsigned, Handle*) = nullptr;
  Return (*handle_of_uuid)(const char*, Handle*) = nullptr;
  Return (*uuid)(Handle, char*, unsigned) = nullptr;
  Return (*name)(Handle, char*, unsigned) = nullptr;
  Return (*memory)(Handle, Memory*) = nullptr;
  Return (*pci)(Handle, PciInfo*) = nullptr;
  Return (*utilization)(Handle, Utilization*) = nullptr;
  ListProcesses* compute = nullptr;
  ListProcesses* graphics = nullptr;
  Return (*cores)(Handle, unsigned*) = nullptr;
  Return (*clock)(Handle, unsigned, unsigned*) = nullptr;
  Return (*mig_mode)(Handle, unsigned*, unsigned*) = nullptr;
  Return (*mig_count)(Handle, unsigned*) = nullptr;
  Return (*mig_handle)(Handle, unsigned, Handle*) = nullptr;
};

Functions find_all(void* library) {
  using sys::find_function;
  Functions found;
  find_function(library, "nvmlInit_v2", found.init);
  find_function(library, "nvmlShutdown", found.shutdown);
  find_function(library, "nvmlErrorString", found.error);
  find_function(library, "nvmlDeviceGetCount_v2", found.count);
  find_function(library, "nvmlDeviceGetHandleByIndex_v2", found.handle);
  find_function(library, "nvmlDeviceGetHandleByUUID", found.handle_of_uuid);
  find_function(library, "nvmlDeviceGetUUID", found.uuid);
  find_function(library, "nvmlDeviceGetName", found.name);
  find_function(library, "nvmlDeviceGetMemoryInfo", found.memory);
  find_function(library, "nvmlDeviceGetPciInfo_v3", found.pci);
  find_function(library, "nvmlDeviceGetUtilizationRates", found.utilization);
  find_function(library, "nvmlDeviceGetComputeRunningProcesses_v3", found.compute);
  find_function(library, "nvmlDeviceGetGraphicsRunningProcesses_v3", found.graphics);
  // The second version has the same layout.
  if (found.compute == nullptr) {
    find_function(library, "nvmlDeviceGetComputeRunningProcesses_v2", found.compute);
    find_function(library, "nvmlDeviceGetGraphicsRunningProcesses_v2", found.graphics);
  }
  find_function(library, "nvmlDeviceGetNumGpuCores", found.cores);
  find_function(library, "nvmlDeviceGetMaxClockInfo", found.clock);
  find_function(library, "nvmlDeviceGetMigMode", found.mig_mode);
  find_function(library, "nvmlDeviceGetMaxMigDeviceCount", found.mig_count);
  find_function(library, "nvmlDeviceGetMigDeviceHandleByIndex", found.mig_handle);
  return found;
}

bool complete(const Functions& found) {
  return found.init != nullptr && found.shutdown != nullptr && found.count != nullptr &&
         found.handle != nullptr && found.handle_of_uuid != nullptr && found.uuid != nullptr &&
         found.name != nullptr && found.memory != nullptr && found.pci != nullptr;
}

struct Closing {
  void operator()(void* library) const { ::dlclose(library); }
};

class Nvml final : public GpuDriver {
 public:
  Nvml(std::unique_ptr<void, Closing> library, const Functions& functions, Duration restart_pause)
      : library_(std::move(library)), nvml_(functions), restart_pause_(restart_pause) {}
  Nvml(Nvml&&) = delete;
  Nvml& operator=(Nvml&&) = delete;
  ~Nvml() override {
    if (begun_) nvml_.shutdown();
  }

  [[nodiscard]] const std::vector<model::Gpu>& gpus() const override { return gpus_; }
  GpuState look(std::size_t index) override;

  Result<void> list();

 private:
  [[nodiscard]] std::optional<std::string> uuid_of(Handle handle) const;
  [[nodiscard]] std::optional<model::Gpu> describe(Handle handle, int number,
                                                   std::optional<int> slice) const;
  bool add(Handle handle, int number, std::optional<int> slice);
  bool add_slices(Handle card, int number);
  void number_for_cuda(unsigned count);
  void begin_again();
  [[nodiscard]] bool knows(const std::string& uuid) const;
  void find_late_ones();
  /// False: it does not say who has how much.
  bool add_processes(Handle handle, ListProcesses* ask,
                     std::map<unsigned, std::optional<Bytes>>& found) const;
  [[nodiscard]] std::string words(Return code) const {
    return nvml_.error != nullptr ? nvml_.error(code) : fmt::format("error {}", code);
  }

  std::unique_ptr<void, Closing> library_;
  Functions nvml_;
  Duration restart_pause_;
  std::vector<model::Gpu> gpus_;
  std::vector<Handle> handles_;  ///< By GPU; nothing for one that does not answer.
  /// By GPU: what those are that were late.
  std::vector<std::optional<model::Gpu>> found_;
  bool begun_ = true;
  std::chrono::steady_clock::time_point next_beginning_;
  bool shows_processes_ = false;  ///< It has listed one.
};

std::optional<std::string> Nvml::uuid_of(Handle handle) const {
  std::array<char, kTextBytes> uuid{};
  if (nvml_.uuid(handle, uuid.data(), uuid.size()) != kSuccess) return std::nullopt;
  uuid.back() = '\0';
  return uuid.data();
}

std::optional<model::Gpu> Nvml::describe(Handle handle, int number,
                                         std::optional<int> slice) const {
  std::array<char, kTextBytes> name{};
  Memory memory{};
  PciInfo pci{};
  std::optional<std::string> uuid = uuid_of(handle);
  if (!uuid || nvml_.name(handle, name.data(), name.size()) != kSuccess) return std::nullopt;
  if (nvml_.memory(handle, &memory) != kSuccess) return std::nullopt;
  // A slice is where its card is.
  if (!slice && nvml_.pci(handle, &pci) != kSuccess) return std::nullopt;
  unsigned cores = 0;
  unsigned clock = 0;
  if (nvml_.cores != nullptr) nvml_.cores(handle, &cores);
  if (nvml_.clock != nullptr) nvml_.clock(handle, kClockSm, &clock);
  name.back() = pci.bus_id.back() = '\0';
  return model::Gpu{.number = number,
                    .uuid = std::move(*uuid),
                    .name = name.data(),
                    .pci = pci.bus_id.data(),
                    .memory = {static_cast<std::int64_t>(memory.total)},
                    .speed = std::int64_t{cores} * clock,
                    .maker = model::GpuMaker::Nvidia,
                    .slice = slice};
}

bool Nvml::add(Handle handle, int number, std::optional<int> slice) {
  std::optional<model::Gpu> gpu = describe(handle, number, slice);
  if (!gpu) return false;
  gpus_.push_back(std::move(*gpu));
  handles_.push_back(handle);
  return true;
}

/// The slices of a card that is cut into them. False when it is not.
bool Nvml::add_slices(Handle card, int number) {
  unsigned mode = 0;
  unsigned pending = 0;
  if (nvml_.mig_mode == nullptr || nvml_.mig_count == nullptr || nvml_.mig_handle == nullptr) {
    return false;
  }
  if (nvml_.mig_mode(card, &mode, &pending) != kSuccess || mode == 0) return false;
  unsigned most = 0;
  PciInfo pci{};
  if (nvml_.mig_count(card, &most) != kSuccess) most = 0;
  nvml_.pci(card, &pci);
  pci.bus_id.back() = '\0';
  for (unsigned index = 0; index < most; ++index) {
    Handle slice = nullptr;
    if (nvml_.mig_handle(card, index, &slice) != kSuccess) continue;
    if (add(slice, number, static_cast<int>(index)))
      gpus_.back().pci = fmt::format("{}/{}", pci.bus_id.data(), index);
  }
  return true;
}

Result<void> Nvml::list() {
  unsigned count = 0;
  if (const Return code = nvml_.count(&count); code != kSuccess) {
    return std::unexpected(Error{fmt::format("NVIDIA's driver fails: {}", words(code))});
  }
  if (count == 0) return std::unexpected(Error{"NVIDIA's driver shows no GPU"});
  for (unsigned index = 0; index < count; ++index) {
    Handle card = nullptr;
    const auto number = static_cast<int>(index);
    const bool answers = nvml_.handle(index, &card) == kSuccess &&
                         (add_slices(card, number) || add(card, number, std::nullopt));
    if (answers) continue;
    gpus_.push_back({.number = number, .late = true});
    handles_.push_back(nullptr);
  }
  found_.resize(gpus_.size());
  number_for_cuda(count);
  return {};
}

/// The driver counts in the order of the bus, and so does CUDA when it is told to. CUDA leaves out a
/// GPU that does not answer and shows at most one instance of split ones.
void Nvml::number_for_cuda(unsigned count) {
  const bool differs = std::ranges::any_of(
      gpus_, [](const model::Gpu& gpu) { return gpu.late || gpu.slice.has_value(); });
  // A split GPU without an instance is not in the list.
  if (differs || gpus_.size() != count) return;
  for (model::Gpu& gpu : gpus_) gpu.cuda_number = gpu.number;
}

/// A card that fell off the bus answers a driver that begins anew, if it does at all, and may have
/// another number then: each is looked for by its UUID.
void Nvml::begin_again() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_beginning_) return;
  if (begun_) nvml_.shutdown();
  begun_ = nvml_.init() == kSuccess;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    handles_[i] = nullptr;
    const std::string uuid = found_[i].value_or(gpus_[i]).uuid;
    if (!begun_ || uuid.empty()) continue;
    if (nvml_.handle_of_uuid(uuid.c_str(), &handles_[i]) != kSuccess) handles_[i] = nullptr;
  }
  if (begun_) find_late_ones();
  next_beginning_ = std::chrono::steady_clock::now() + restart_pause_;
}

bool Nvml::knows(const std::string& uuid) const {
  return std::ranges::find(gpus_, uuid, &model::Gpu::uuid) != gpus_.end() ||
         std::ranges::any_of(found_, [&](const auto& it) { return it && it->uuid == uuid; });
}

/// Finds the GPUs whose UUID is not known yet, in the order of their numbers.
void Nvml::find_late_ones() {
  unsigned count = 0;
  if (nvml_.count(&count) != kSuccess) return;
  for (unsigned index = 0; index < count; ++index) {
    Handle card = nullptr;
    if (nvml_.handle(index, &card) != kSuccess) continue;
    std::optional<model::Gpu> gpu = describe(card, static_cast<int>(index), std::nullopt);
    unsigned mode = 0;
    unsigned pending = 0;
    const bool cut =
        nvml_.mig_mode != nullptr && nvml_.mig_mode(card, &mode, &pending) == kSuccess && mode != 0;
    // Slices have places of their own, of which there are none for it.
    if (!gpu || cut) continue;
    if (knows(gpu->uuid)) continue;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      if (!gpus_[i].late || found_[i]) continue;
      gpu->late = true;
      found_[i] = std::move(gpu);
      handles_[i] = card;
      break;
    }
  }
}

bool Nvml::add_processes(Handle handle, ListProcesses* ask,
                         std::map<unsigned, std::optional<Bytes>>& found) const {
  if (ask == nullptr) return false;
  std::vector<ProcessInfo> infos(64);
  Return code = kInsufficientSize;
  while (code == kInsufficientSize && infos.size() <= kProcessesMax) {
    auto count = static_cast<unsigned>(infos.size());
    code = ask(handle, &count, infos.data());
    infos.resize(code == kSuccess ? std::min<std::size_t>(count, infos.size()) : infos.size() * 2);
  }
  if (code != kSuccess) return false;
  bool known = true;
  for (const ProcessInfo& info : infos) {
    known = known && info.memory != kNotAvailable;
    std::optional<Bytes>& memory = found[info.pid];
    if (info.memory == kNotAvailable) continue;
    memory = std::max(memory.value_or(Bytes{}), Bytes{static_cast<std::int64_t>(info.memory)});
  }
  return known;
}

GpuState Nvml::look(std::size_t index) {
  Memory memory{};
  GpuState state;
  const auto answers = [&] {
    Handle handle = handles_.at(index);
    return handle != nullptr && nvml_.memory(handle, &memory) == kSuccess;
  };
  if (!answers()) {
    begin_again();
    if (!answers()) {
      state.present = false;
      return state;
    }
  }
  Handle handle = handles_.at(index);
  state.found = found_.at(index);
  state.used = {static_cast<std::int64_t>(memory.total - std::min(memory.free, memory.total))};
  Utilization utilization{};
  if (nvml_.utilization != nullptr && nvml_.utilization(handle, &utilization) == kSuccess) {
    state.utilization = std::min(utilization.gpu, 100U) / 100.0;
  }
  std::map<unsigned, std::optional<Bytes>> computing;
  const bool computes = add_processes(handle, nvml_.compute, computing);
  std::map<unsigned, std::optional<Bytes>> found = computing;
  // Who draws and computes is in both lists. A slice draws nothing.
  if (nvml_.graphics != nullptr) add_processes(handle, nvml_.graphics, found);
  for (const auto& [pid, bytes] : found) {
    state.processes.push_back({.pid = pid,
                               .memory = bytes.value_or(Bytes{}),
                               .memory_known = bytes.has_value(),
                               .draws = !computing.contains(pid)});
  }
  // In a container the driver shows no process, ever.
  constexpr Bytes kDriversOwn = mib(1024);
  shows_processes_ = shows_processes_ || !found.empty();
  state.processes_known = computes && (shows_processes_ || state.used <= kDriversOwn);
  return state;
}

}  // namespace

Result<std::unique_ptr<GpuDriver>> open_nvml(const std::string& library, Duration restart_pause) {
  std::unique_ptr<void, Closing> opened(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!opened) return std::unexpected(Error{"no NVIDIA driver is installed"});
  const Functions functions = find_all(opened.get());
  if (!complete(functions)) {
    return std::unexpected(
        Error{fmt::format("NVIDIA's driver is too old: '{}' lacks functions "
                          "that version 450 has",
                          library)});
  }
  if (const Return code = functions.init(); code != kSuccess) {
    const char* const why = functions.error != nullptr ? functions.error(code) : "it cannot begin";
    return std::unexpected(Error{fmt::format("NVIDIA's driver fails: {}", why)});
  }
  auto nvml = std::make_unique<Nvml>(std::move(opened), functions, restart_pause);
  if (Result<void> listed = nvml->list(); !listed) {
    return std::unexpected(std::move(listed.error()));
  }
  return nvml;
}

}  // namespace trainyard::hardware
