#include "io/this_machine.h"

#include <string>
#include <utility>

#include "base/result.h"
#include "io/capacity.h"
#include "io/environment.h"
#include "io/gpu_driver.h"
#include "io/gpu_watch.h"

namespace trainyard::io {

ThisMachine find_this_machine() {
  Result<GpuWatch> watch = GpuWatch::start({.environment = environment()});
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

}  // namespace trainyard::io
