// Stands in for NVIDIA's libnvidia-ml.so.1 where there is no GPU. The devices, what is on them and
// what is wrong with them are in the JSON file that TRAINYARD_FAKE_NVML names, which a test changes
// while it runs; README.md has its form. A process that has ended has nothing any more.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kGpuIsLost = 15;
constexpr unsigned kSlicesMax = 8;

struct File {
  Json json;
  timespec changed{};
  ino_t number = 0;
};

/// As it is now. A test replaces the file as a whole, so that it is never seen half written.
const Json& devices() {
  static File file;
  // Set before the program begins.
  const char* const path = std::getenv("TRAINYARD_FAKE_NVML");  // NOLINT(concurrency-mt-unsafe)
  if (path == nullptr) return file.json = Json::object();
  struct stat status{};
  ::stat(path, &status);
  const bool same = status.st_mtim.tv_sec == file.changed.tv_sec &&
                    status.st_mtim.tv_nsec == file.changed.tv_nsec && status.st_ino == file.number;
  if (same && !file.json.is_null()) return file.json;
  file.changed = status.st_mtim;
  file.number = status.st_ino;
  std::ifstream stream(path);
  Json read = Json::parse(stream, nullptr, false);
  if (!read.is_discarded()) file.json = std::move(read);
  return file.json;
}

/// A handle is 1 + the index of a card, and 100 times 1 + the index of the slice with it.
std::uintptr_t number(void* handle) { return reinterpret_cast<std::uintptr_t>(handle); }
void* handle_of(std::uintptr_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): nobody follows it.
}

/// The object for a handle whose target is gone.
const Json& nothing() {
  static const Json none = Json::object();
  return none;
}

const Json& card_of(void* handle) {
  const std::size_t index = (number(handle) % 100) - 1;
  const Json& all = devices();
  const auto list = all.find("devices");
  return list == all.end() || index >= list->size() ? nothing() : (*list)[index];
}

const Json& device_of(void* handle) {
  const Json& card = card_of(handle);
  const std::uintptr_t slice = number(handle) / 100;
  if (slice == 0) return card;
  const auto slices = card.find("mig");
  return slices == card.end() || slice > slices->size() ? nothing() : (*slices)[slice - 1];
}

bool lives(std::int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM; }

/// Waits as long as the file says: a driver that hangs.
int ready(void* handle) {
  const Json card = card_of(handle);  // The file may be read anew meanwhile.
  if (const double hang = card.value("hang_s", 0.0); hang > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(hang));
  }
  if (card.value("crash", false)) std::abort();
  if (device_of(handle).empty()) return kNotFound;
  return card.value("lost", false) ? kGpuIsLost : kSuccess;
}

std::uint64_t used(const Json& device) {
  std::uint64_t sum = device.value("reserved", std::uint64_t{0});
  for (const Json& process : device.value("processes", Json::array())) {
    if (lives(process.at("pid").get<std::int64_t>())) {
      sum += process.at("memory").get<std::uint64_t>();
    }
  }
  return sum;
}

int copy(const Json& device, const char* field, char* to, unsigned length) {
  const std::string text = device.value(field, std::string());
  if (text.size() + 1 > length) return kInsufficientSize;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kSuccess;
}

struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct PciInfo {
  std::array<char, 16> legacy;
  unsigned domain, bus, device, id, subsystem;
  std::array<char, 32> bus_id;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

}  // namespace

// The names are NVIDIA's.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

int nvmlInit_v2() { return devices().value("init", kSuccess); }
int nvmlShutdown() { return kSuccess; }

const char* nvmlErrorString(int code) {
  return code == 18           ? "Driver/library version mismatch"
         : code == kGpuIsLost ? "GPU is lost"
                              : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(devices().value("devices", Json::array()).size());
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = handle_of(std::uintptr_t{index} + 1);
  return ready(*handle);
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  const Json all = devices().value("devices", Json::array());
  for (std::size_t index = 0; index < all.size(); ++index) {
    *handle = handle_of(index + 1);
    if (all[index].value("uuid", std::string()) == uuid) return ready(*handle);
    const Json slices = all[index].value("mig", Json::array());
    for (std::size_t slice = 0; slice < slices.size(); ++slice) {
      *handle = handle_of(index + 1 + (100 * (slice + 1)));
      if (slices[slice].value("uuid", std::string()) == uuid) return ready(*handle);
    }
  }
  return kNotFound;
}

int nvmlDeviceGetUUID(void* handle, char* uuid, unsigned length) {
  return copy(device_of(handle), "uuid", uuid, length);
}

int nvmlDeviceGetName(void* handle, char* name, unsigned length) {
  return copy(device_of(handle), "name", name, length);
}

int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
  if (const int code = ready(handle); code != kSuccess) return code;
  const Json& device = device_of(handle);
  memory->total = device.at("memory").get<std::uint64_t>();
  memory->used = std::min<unsigned long long>(used(device), memory->total);
  memory->free = memory->total - memory->used;
  return kSuccess;
}

int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* info) {
  *info = {};
  return copy(card_of(handle), "pci", info->bus_id.data(),
              static_cast<unsigned>(info->bus_id.size()));
}

int nvmlDeviceGetUtilizationRates(void* handle, Utilization* rates) {
  *rates = {.gpu = device_of(handle).value("utilization", 0U), .memory = 0};
  if (device_of(handle).value("hides_utilization", false)) return kNoPermission;
  return number(handle) >= 100 ? kNotSupported : kSuccess;
}

}  // extern "C"

namespace {

/// The processes that draw, or the others.
int list_processes(void* handle, unsigned* count, ProcessInfo* infos, bool drawing) {
  if (const int code = ready(handle); code != kSuccess) return code;
  const Json& device = device_of(handle);
  if (device.value("hides_processes", false)) {
    *count = 0;
    return kSuccess;
  }
  std::vector<ProcessInfo> found;
  for (const Json& process : device.value("processes", Json::array())) {
    const auto pid = process.at("pid").get<std::int64_t>();
    if (!lives(pid) || process.value("draws", false) != drawing) continue;
    found.push_back({.pid = static_cast<unsigned>(pid),
                     .memory = device.value("hides_memory", false)
                                   ? ~0ULL
                                   : process.at("memory").get<unsigned long long>(),
                     .gpu_instance = 0,
                     .compute_instance = 0});
  }
  const unsigned room = *count;
  *count = static_cast<unsigned>(found.size());
  if (found.size() > room) return kInsufficientSize;
  std::ranges::copy(found, infos);
  return kSuccess;
}

}  // namespace

extern "C" {

int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, ProcessInfo* infos) {
  return list_processes(handle, count, infos, false);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void* handle, unsigned* count, ProcessInfo* infos) {
  return list_processes(handle, count, infos, true);
}

int nvmlDeviceGetNumGpuCores(void* handle, unsigned* cores) {
  *cores = device_of(handle).value("cores", 1000U);
  return kSuccess;
}

int nvmlDeviceGetMaxClockInfo(void* handle, unsigned /*type*/, unsigned* clock) {
  *clock = device_of(handle).value("clock", 1500U);
  return kSuccess;
}

int nvmlDeviceGetMigMode(void* handle, unsigned* current, unsigned* pending) {
  *current = *pending = card_of(handle).contains("mig") ? 1 : 0;
  return kSuccess;
}

int nvmlDeviceGetMaxMigDeviceCount(void* /*handle*/, unsigned* count) {
  *count = kSlicesMax;
  return kSuccess;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void* handle, unsigned index, void** slice) {
  if (index >= card_of(handle).value("mig", Json::array()).size()) return kNotFound;
  *slice = handle_of(number(handle) + (100 * (std::uintptr_t{index} + 1)));
  return kSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
