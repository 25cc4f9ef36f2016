// What people call a group where its name alone would not tell it from others: in a round of a
// repeat, and in what is submitted to a run. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "job/job_needs.h"
#include "job/job_spec.h"

namespace trainyard::job {

/// "clients.3": its name, and its directory's.
std::string name_in_round(std::string_view group, std::uint32_t round);

/// The group and the round of such a name; nothing where it is none.
struct RoundOfGroup {
  std::string_view group;
  std::uint32_t round = 0;
};
std::optional<RoundOfGroup> read_name_in_round(std::string_view name);

/// Of a group of the batch of that number: empty where its name does, as no batch before has a
/// group that people see under it, nor will a round that is to come.
std::string called_in_run(const GroupSpec& group, const JobSpec& spec, std::uint32_t batch,
                          GroupsBefore groups_before);

}  // namespace trainyard::job
