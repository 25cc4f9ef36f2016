#include "hardware/mps.h"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/bytes.h"
#include "hardware/process_owner.h"
#include "sys/files.h"
#include "sys/foreign_mounts.h"
#include "sys/open_file.h"

namespace trainyard::hardware {

std::optional<MpsService> find_mps(const std::string& directory) {
  // As /proc has it, which shortens names.
  constexpr std::string_view kDaemon = "nvidia-cuda-mps";
  // Every user may make that file, or a pipe in its place, in a directory below /tmp, or mount a
  // file system there that does not answer.
  const auto place = sys::ForeignMounts::read().place_of(directory);
  if (!place) return std::nullopt;
  const std::string file = fmt::format("{}/nvidia-cuda-mps-control.pid", *place);
  if (!sys::entry_facts(file)) return std::nullopt;
  const std::string text =
      sys::read_plain_file(file, kib(1), sys::Links::Refuse).value_or("").value_or("");
  std::int64_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  const bool runs = pid > 0 && name_of_process(pid) == kDaemon && !other_user_of(pid);
  if (!runs) return std::nullopt;
  return MpsService{.directory = directory, .daemon = pid};
}

bool is_gone(const MpsService& service) {
  const std::optional<MpsService> now = find_mps(service.directory);
  return !now || now->daemon != service.daemon;
}

}  // namespace trainyard::hardware
