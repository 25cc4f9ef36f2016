#include "run/limits_watch.h"

#include <cstdint>

#include "process/drain_file.h"
#include "sys/clock.h"

namespace trainyard::run {

model::LimitsChanged limits_now(const model::GpuLimitNow& limit,
                                std::span<const model::Drain> drains,
                                std::span<const model::Gpu> gpus, std::int64_t unix_s) {
  model::LimitsChanged now{
      .gpus_max = limit.gpus_max, .until = limit.until, .drained = {}, .cleared = {}};
  // Without a limit it does not matter until when there is none.
  if (!now.gpus_max) now.until.clear();
  for (std::uint32_t index = 0; index < gpus.size(); ++index) {
    bool drained = false;
    bool cleared = false;
    for (const model::Drain& drain : drains) {
      const bool over = drain.until_unix_s != 0 && drain.until_unix_s <= unix_s;
      if (over || drain.uuid != gpus[index].uuid) continue;
      drained = true;
      cleared = cleared || drain.now;
    }
    if (drained) now.drained.push_back({index});
    if (cleared) now.cleared.push_back({index});
  }
  return now;
}

std::optional<model::LimitsChanged> LimitsWatch::look(std::span<const model::Gpu> gpus) {
  constexpr std::int64_t kMilliseconds = 1'000;
  const sys::LocalTime here = sys::local_time();
  model::LimitsChanged now = limits_now(
      model::limit_at(limits_, {.day = here.day, .minute = here.minute}),
      process::read_drains(directories_), gpus, sys::unix_milliseconds() / kMilliseconds);
  if (now == told_) return std::nullopt;
  told_ = now;
  return now;
}

}  // namespace trainyard::run
