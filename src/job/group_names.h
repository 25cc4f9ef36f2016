// The name of a group for people where the plain name would be ambiguous: in a round of a repeat,
// and in a submission to a run. Pure; any thread.
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

/// The name under which users see a group of the batch: "clients.3" in a round, "train (2)" if an
/// earlier batch has a group of the name. Empty if its own name is not taken.
std::string called_in_run(const GroupSpec& group, const JobSpec& spec, std::uint32_t batch,
                          GroupsBefore groups_before);

}  // namespace trainyard::job
