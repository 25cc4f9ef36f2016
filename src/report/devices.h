// The output of `trainyard devices`: the GPUs, their processes, and the reservations of a run.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "journal/reader.h"
#include "model/gpu_limits.h"
#include "model/promises.h"
#include "model/resources.h"

namespace trainyard::report {

struct DeviceProcess {
  std::int64_t pid = 0;
  Bytes memory;
  std::string user;           ///< Empty where that is not known.
  std::string command;        ///< The same.
  std::string task;           ///< The task of the process, "train/lr=1"; empty: no task.
  std::string run_directory;  ///< And of which run.
  /// Number of the user to whom the process belongs, if that is another user.
  std::optional<std::uint32_t> other_user = std::nullopt;
};

/// One GPU, and how it is now.
struct DeviceView {
  model::Gpu gpu;
  bool present = true;
  bool processes_known = true;
  std::optional<double> utilization = std::nullopt;  ///< 0 to 1, where it is known.
  Bytes used;
  std::optional<model::Drain> drained = std::nullopt;  ///< No new tasks start on it.
  /// The drop-outs that runs of this user have seen.
  std::optional<model::DropOuts> drop_outs = std::nullopt;
  std::vector<DeviceProcess> processes;
};

struct DevicesView {
  std::vector<DeviceView> devices;
  std::string none_reason;              ///< The reason why there are none.
  std::vector<std::string> notes;       ///< "CUDA_VISIBLE_DEVICES leaves 2 of 8 GPUs"
  std::string run_directory;            ///< The run with reservations; empty: no run is active.
  std::vector<journal::TaskRow> tasks;  ///< Its tasks under way.
  /// The other runs on the machine, of whichever user.
  std::vector<model::Neighbour> neighbours;
  std::int64_t midnight_unix_s = 0;  ///< When this day began.
};

/// The device of this UUID, or nullptr.
DeviceView* find_device(DevicesView& view, const std::string& uuid);

/// Adds the drop-outs that another run of this user has seen; of several runs, those of the one
/// that has seen most. A GPU that has fallen off the bus, so that its driver no longer counts it or
/// knows no UUID of it, is shown as the run knew it.
void add_drop_outs(DevicesView& view, const model::Neighbour& run, std::int64_t now_unix_s);

/// "no new tasks start on it until 18:00", "... until 07:00 tomorrow", "... until 07:12 in 7
/// days".
std::string drained_text(const model::Drain& drain, std::int64_t midnight_unix_s);

std::string devices_text(const DevicesView& view);
std::string devices_json(const DevicesView& view);

}  // namespace trainyard::report
