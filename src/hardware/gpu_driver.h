// The GPUs of this machine as their drivers show them: which there are, what of their memory is in
// use, and by whom. NVIDIA's through its management library (NVML), opened when the program runs,
// so that nothing of it is needed to build; AMD's through sysfs.
//
// A driver may hang or crash whoever asks it: hardware/gpu_watch.h asks it from a process of its
// own. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "model/resources.h"

namespace trainyard::hardware {

/// Where to look: the real machine, or a made-up one in a test.
struct GpuSources {
  std::string nvml = "libnvidia-ml.so.1";  ///< Looked for where all shared libraries are.
  std::string sys = "/sys";
  /// NAME=value, of which CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES count.
  std::vector<std::string> environment;
  /// Only those that are called so ("0", and "0:1" for a slice, of which "0" is all), whatever else
  /// leaves them; nothing: all.
  std::optional<std::vector<std::string>> only = std::nullopt;
  /// Between two restarts of NVIDIA's library while a GPU does not answer.
  Duration restart_pause{2'000};
};

/// A process that has memory of a GPU.
struct GpuProcess {
  std::int64_t pid = 0;
  Bytes memory;
  bool memory_known = true;  ///< Or the driver hides it, and says 0.
  bool draws = false;  ///< It computes nothing there: it shows pictures, as a display server does.
};

/// How a GPU is now.
struct GpuState {
  bool present = true;
  bool processes_known = true;                       ///< Whether the driver says who has what.
  std::optional<double> utilization = std::nullopt;  ///< 0 to 1; nothing where nobody tells it.
  Bytes used;
  std::vector<GpuProcess> processes;
  /// The GPU, where it was late and now answers.
  std::optional<model::Gpu> found = std::nullopt;
};

struct GpuList {
  /// Those that tasks may have, in the order they are numbered; those that are late are the last.
  std::vector<model::Gpu> gpus;
  std::string none_reason;         ///< Why there are none, where that is known.
  std::vector<std::string> notes;  ///< For people: "CUDA_VISIBLE_DEVICES leaves 2 of 8 GPUs".
};

/// One maker's driver.
class GpuDriver {
 public:
  GpuDriver() = default;
  GpuDriver(const GpuDriver&) = delete;
  GpuDriver& operator=(const GpuDriver&) = delete;
  virtual ~GpuDriver() = default;

  /// All its GPUs as they were at the beginning, slices in the place of the cards that are cut into
  /// them. Those that are counted and did not answer are late.
  [[nodiscard]] virtual const std::vector<model::Gpu>& gpus() const = 0;
  /// Looks at one of these.
  virtual GpuState look(std::size_t index) = 0;
};

/// All GPUs that tasks may have.
class Gpus {
 public:
  explicit Gpus(const GpuSources& sources);
  ~Gpus();

  [[nodiscard]] const GpuList& list() const { return list_; }
  /// Looks at all of them, in the order of the list.
  std::vector<GpuState> look();

 private:
  struct Source {
    std::size_t driver = 0;
    std::size_t index = 0;
  };
  void put_late_ones_last();

  std::vector<std::unique_ptr<GpuDriver>> drivers_;
  std::vector<Source> sources_;
  GpuList list_;
};

/// AMD's GPUs as the kernel shows them below `sys` ("/sys"): no library of AMD's is needed; none is
/// no error. Memory and load are what amdgpu says; processes and their memory what amdkfd says,
/// which are those that compute.
std::unique_ptr<GpuDriver> open_amd(const std::string& sys);

/// Opens NVIDIA's management library and lists what it shows. An error says why there is nothing to
/// show, for people ("no NVIDIA driver", "NVIDIA's driver fails: Driver/library version mismatch");
/// a driver that shows no GPU is one, too. May take seconds, and hang with a driver that does.
/// While a GPU does not answer, the library is restarted with at least `restart_pause` between two
/// restarts.
Result<std::unique_ptr<GpuDriver>> open_nvml(const std::string& library, Duration restart_pause);

}  // namespace trainyard::hardware
