#include "hardware/this_machine.h"

#include <string>
#include <utility>

#include "base/result.h"
#include "hardware/capacity.h"
#include "hardware/gpu_driver.h"
#include "hardware/gpu_watch.h"
#include "sys/environment.h"

namespace trainyard::hardware {

ThisMachine find_this_machine() {
  Result<GpuWatch> watch = GpuWatch::start({.environment = sys::environment()});
  ThisMachine found{.reading = read_capacity(), .gpus = {}};
  if (!watch) {
    found.reading.capacity.no_gpus_reason = watch.error().message;
    return found;
  }
  const GpuList& list = watch->list();
  found.reading.capacity.gpus = list.gpus;
  found.reading.capacity.no_gpus_reason = list.none_reason;
  for (const std::string& note : list.notes) found.reading.notes.push_back(note);
  if (!list.gpus.empty()) found.gpus = std::move(*watch);
  return found;
}

}  // namespace trainyard::hardware
